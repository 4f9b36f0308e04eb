//! The trace's thread: writes what was booked to the trace, tick by tick.
//!
//! It asks the JVM for its figures, closes the [`crate::ledger::Ledger`]'s books and writes; no other thread
//! ever waits for the disk. An error of the file ends the trace with one line, and the rest
//! of the agent goes on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_sites::{Counter, Strategy};
use heapdiff_trace::{
    ClassTotal, Collected, NewCollection, NewRun, NewTick, Sample, Samples, THINNED, TraceError,
    Writer, Written,
};

use crate::counters::Counters;
use crate::jvm_stats::{Figures, Invocation, JvmStats};
use crate::jvmti::calls::{Env, JniError};
use crate::ledger::Ledger;
use crate::log::say;
use crate::options::{Options, TraceOptions};
use crate::pauses::Pauses;
use crate::sampler::Sampler;
use crate::totals::Seen;
use crate::wakeup::Wakeup;

/// After a look at the collector it rests, however often that runs.
const REST: Duration = Duration::from_millis(5);
/// How long a file may be held by others before the trace gives up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Collections that wait to be written, at most.
const MOST_COLLECTIONS: usize = 4096;
/// The JVM's name for the collection before a dump of live objects.
const DUMP: &str = "Heap Dump Initiated GC";

/// How long a file has been held by others.
#[derive(Debug)]
struct Hold {
    free_since: Instant,
}

impl Hold {
    fn new(now: Instant) -> Self {
        Self { free_since: now }
    }

    /// What became of a tick that was tried by now; why to give up, if that is to be done.
    fn tried(
        &mut self,
        written: Result<Written, TraceError>,
        path: &Path,
        now: Instant,
    ) -> Result<(), String> {
        match written {
            Ok(Written::Done) => self.free_since = now,
            Ok(Written::Busy) if now.saturating_duration_since(self.free_since) < PATIENCE => {}
            Ok(Written::Busy) => {
                return Err(format!(
                    "{}: another process has held it for {} seconds",
                    path.display(),
                    PATIENCE.as_secs()
                ));
            }
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }
}

/// What the thread works with.
pub(crate) struct Tracing<'a> {
    pub(crate) options: &'a Options,
    pub(crate) trace: &'a TraceOptions,
    pub(crate) sampler: &'a Sampler,
    pub(crate) ledger: &'a Ledger,
    pub(crate) counters: &'a Counters,
    pub(crate) wakeup: &'a Wakeup,
    pub(crate) pauses: &'a Pauses,
    /// Milliseconds since 1970 when sampling was set up.
    pub(crate) started_ms: i64,
    /// Whether the agent was there from the JVM's start.
    pub(crate) at_startup: bool,
    /// Set when the thread is done.
    pub(crate) done: &'a AtomicBool,
}

/// Figures at the end of the last tick.
#[derive(Clone, Copy, Default)]
struct Before {
    uptime_ms: i64,
    samples: u64,
    lost: u64,
    lost_bytes: u64,
    thinnings: u64,
    sites_full: u64,
}

/// What waits for the next tick.
#[derive(Default)]
struct Waiting {
    /// What was counted of each class until the last one.
    counted: Seen,
    collections: Vec<NewCollection>,
    dumps: Vec<(i64, i64, Option<String>)>,
    notes: Vec<String>,
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    millis(since.unwrap_or_default())
}

/// What the trace notes where the management beans cannot be asked.
fn without_beans(why: &JniError) -> String {
    let why = match why {
        JniError::Thrown(class) if class == "java.lang.NoClassDefFoundError" => {
            "this JVM has no module java.management".to_owned()
        }
        JniError::HeapFull => {
            "the management beans of this JVM could not be asked, the heap is full".to_owned()
        }
        why => format!("the management beans of this JVM could not be asked ({why})"),
    };
    format!("{why}: collections are known by their pauses alone")
}

impl Tracing<'_> {
    /// Goes on until the JVM ends or the trace fails.
    pub(crate) fn run(&self, env: &Env<'_>) {
        if let Err(why) = self.record(env) {
            say(format_args!(
                "the trace ends here: {why}; sampling goes on without it"
            ));
        }
        self.done.store(true, Relaxed);
        self.wakeup.notify();
    }

    fn record(&self, env: &Env<'_>) -> Result<(), String> {
        let run = self.describe(env);
        let path = self.trace.path();
        let runtime = Arc::clone(&self.sampler.runtime);
        let mut stats = JvmStats::new(runtime, self.pauses, self.at_startup);
        let created = Writer::create(&path, &run, self.trace.limits);
        let mut writer = created.map_err(|error| error.to_string())?;
        let mut waiting = Waiting::default();
        self.ask_for_beans(env, &mut stats, &mut waiting);
        let (mut before, mut next) = (Before::default(), self.now() + self.trace.tick);
        let mut hold = Hold::new(Instant::now());
        loop {
            let left = next.saturating_sub(self.now());
            let going = if left.is_zero() {
                !self.wakeup.is_stopping()
            } else {
                self.wakeup.wait(left)
            };
            self.look(env, &mut stats, &mut waiting);
            if !going || self.now() >= next {
                next = self.now() + self.trace.tick;
                let figures = stats.figures(env);
                let tick = || self.tick(figures, &mut waiting, &mut before);
                let written = writer.tick(&self.sampler.stacks, self.sampler, tick);
                hold.tried(written, &path, Instant::now())?;
            }
            if !going {
                break;
            }
            if !self.wakeup.rest(REST) {
                // The last tick comes at once.
                next = self.now();
            }
        }
        writer.end(wall_ms()).map_err(|error| error.to_string())
    }

    /// Time since sampling was set up.
    fn now(&self) -> Duration {
        self.sampler.started.elapsed()
    }

    fn describe(&self, env: &Env<'_>) -> NewRun {
        let invocation = Invocation::of_this_jvm(env);
        let sampling = self.sampler.first;
        let pid = std::process::id();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        NewRun {
            uid: format!("{pid}-{}", self.started_ms),
            pid,
            host: host.trim().to_owned(),
            service: self.trace.service.clone(),
            started_ms: self.started_ms,
            jvm: invocation.jvm,
            command: invocation.command,
            flags: invocation.flags,
            options: self.options.given.clone(),
            interval_bytes: sampling.interval,
            strategy: match sampling.strategy {
                Strategy::Bytes => "bytes",
                Strategy::Count => "count",
                Strategy::Time => "time",
                Strategy::Class => "class",
            }
            .to_owned(),
        }
    }

    fn ask_for_beans(&self, env: &Env<'_>, stats: &mut JvmStats, waiting: &mut Waiting) {
        if let Some(Err(why)) = stats.ask_for_beans(env, self.pauses) {
            waiting.notes.push(without_beans(&why));
        }
    }

    /// Collections since the last look.
    fn look(&self, env: &Env<'_>, stats: &mut JvmStats, waiting: &mut Waiting) {
        self.ask_for_beans(env, stats, waiting);
        let clock = |at: Instant| {
            let uptime = millis(at.saturating_duration_since(self.sampler.started));
            let ago = millis(at.elapsed());
            (wall_ms() - ago, uptime)
        };
        for collection in stats.collections(env, self.pauses, &clock) {
            if collection.cause == DUMP {
                let when = (collection.time_ms, collection.uptime_ms, None);
                waiting.dumps.push(when);
            }
            if waiting.collections.len() < MOST_COLLECTIONS {
                waiting.collections.push(collection);
            } else {
                stats.unseen += 1;
            }
        }
        let unseen = std::mem::take(&mut stats.unseen);
        if unseen > 0 {
            waiting.notes.push(format!(
                "{unseen} collections followed each other so fast that only their pauses are known, or nothing"
            ));
        }
    }

    /// What has happened since `before`, which it brings up to date.
    fn tick(&self, figures: Figures, waiting: &mut Waiting, before: &mut Before) -> NewTick {
        let get = |counter| self.counters.get(counter);
        let (sites, classes) = self.ledger.close();
        let newest = self.ledger.newest_collected_ms();
        let (full, full_bytes) = self.ledger.refused();
        let lost = get(Counter::DroppedFull)
            + get(Counter::DroppedFailed)
            + get(Counter::DroppedPending)
            + full;
        let now = Before {
            uptime_ms: millis(self.now()),
            samples: get(Counter::Recorded),
            lost,
            lost_bytes: get(Counter::DroppedBytes) + full_bytes,
            thinnings: get(Counter::Thinnings),
            sites_full: get(Counter::SitesFull),
        };
        let class_totals = self.sampler.class_totals.as_ref();
        let class_totals = class_totals.map_or_else(Vec::new, |t| t.since(&mut waiting.counted));
        let class_total = |(class, [objects, bytes]): (u32, [u64; 2])| ClassTotal {
            class,
            objects,
            bytes,
        };
        let time_ms = wall_ms();
        let mut notes = std::mem::take(&mut waiting.notes);
        if now.thinnings > before.thinnings {
            let sampling = self.sampler.strategy.sampling();
            notes.push(match sampling.strategy {
                Strategy::Bytes if self.sampler.unproven.is_some() => format!(
                    "few samples are followed until they are collected, one every {} bytes from here on: ZGC's minor \
                     collections keep what is followed",
                    sampling.interval
                ),
                _ if self.sampler.unproven.is_some() => format!(
                    "few samples are followed until they are collected, at a rate of {} from here on: ZGC's minor \
                     collections keep what is followed",
                    sampling.rate
                ),
                Strategy::Bytes => format!(
                    "{THINNED}: the interval is {} bytes from here on, and live samples were thinned to it",
                    sampling.interval
                ),
                _ => format!(
                    "{THINNED}: the rate is {} from here on, and live samples were thinned to it",
                    sampling.rate
                ),
            });
        }
        if before.sites_full == 0 && now.sites_full > 0 {
            notes.push("the table of sites is full: new stacks are not told apart".to_owned());
        }
        let tick = NewTick {
            time_ms,
            uptime_ms: now.uptime_ms,
            span_ms: now.uptime_ms - before.uptime_ms,
            heap_used: figures.heap_used,
            heap_committed: figures.heap_committed,
            metaspace_used: figures.metaspace_used,
            metaspace_committed: figures.metaspace_committed,
            loaded_classes: figures.loaded_classes,
            samples: now.samples - before.samples,
            lost_samples: now.lost - before.lost,
            lost_bytes: now.lost_bytes - before.lost_bytes,
            newest_collected_ms: newest.and_then(|ms| i64::try_from(ms).ok()),
            sites,
            classes,
            class_totals: class_totals.into_iter().map(class_total).collect(),
            collections: std::mem::take(&mut waiting.collections),
            dumps: std::mem::take(&mut waiting.dumps),
            notes,
        };
        *before = now;
        tick
    }
}

/// As the trace lists them: each in its place in the table.
impl Samples for Sampler {
    fn places(&self) -> u32 {
        self.samples.places()
    }

    fn uid(&self, place: u32) -> u64 {
        self.samples.uid_at(place)
    }

    fn live(&self, place: u32) -> Option<Sample> {
        let record = self.samples.record_at(place)?;
        let site = self.ledger.as_ref()?.site(record.booking)?;
        Some(record.sample(site))
    }

    fn thread(&self, thread: u32) -> Option<Arc<str>> {
        self.stacks.thread_name(thread)
    }

    fn collected(&self) -> Option<Vec<Collected>> {
        self.collected.all()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use heapdiff_trace::{Database, Limits, NewRun, NewTick, Writer, Written};

    use super::{Hold, JniError, PATIENCE, without_beans};

    #[test]
    fn a_full_heap_is_not_told_as_a_missing_module() {
        let missing = JniError::Thrown("java.lang.NoClassDefFoundError".to_owned());
        assert!(without_beans(&missing).starts_with("this JVM has no module java.management: "));
        let full = without_beans(&JniError::HeapFull);
        assert!(
            full.contains("could not be asked, the heap is full: ") && !full.contains("module"),
            "{full}"
        );
        let other = without_beans(&JniError::Thrown("java.lang.InternalError".to_owned()));
        assert!(other.contains("(java.lang.InternalError)") && !other.contains("module"));
    }

    /// The file is held by another connection for real; only the clock is set forward.
    #[test]
    fn a_file_that_is_held_too_long_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut writer = Writer::create(&path, &NewRun::default(), Limits::default()).unwrap();
        let mut tick = |uptime_ms| {
            writer.tick(&(), &(), || NewTick {
                time_ms: uptime_ms,
                uptime_ms,
                ..NewTick::default()
            })
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut hold = Hold::new(start);
        hold.tried(tick(1000), &path, at(1)).unwrap();
        let holder = Database::create(&path).unwrap();
        let lock = |sql| holder.connection().execute_batch(sql).unwrap();
        lock("BEGIN IMMEDIATE");
        hold.tried(tick(2000), &path, at(2)).unwrap();
        let busy = || Ok(Written::Busy);
        hold.tried(busy(), &path, at(30)).unwrap();
        // Free in between: it begins anew.
        lock("ROLLBACK");
        hold.tried(tick(30_500), &path, at(31)).unwrap();
        lock("BEGIN IMMEDIATE");
        hold.tried(tick(32_000), &path, at(60)).unwrap();
        let why = hold.tried(busy(), &path, at(31) + PATIENCE).unwrap_err();
        assert!(
            why.contains("t.db: another process has held it for 30 seconds"),
            "{why}"
        );
        lock("ROLLBACK");
        let ticks = "SELECT count(*) FROM tick";
        let ticks: i64 = holder
            .connection()
            .query_row(ticks, [], |row| row.get(0))
            .unwrap();
        assert_eq!(ticks, 2, "nothing of what was tried while it was held");
    }
}
