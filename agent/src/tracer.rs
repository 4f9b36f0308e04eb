//! The thread that writes the trace, one tick after another. A tick is the data of one time interval.
//!
//! For each tick, the thread reads the JVM's statistics, and the sums of each allocation site from the
//! [`crate::ledger::Ledger`]. Then it writes this data to the trace. No other thread ever waits for the disk. If the
//! disk is full, the sums are added to the ledger again, and a later tick, for a longer interval, contains them. Any
//! other error of the file ends the trace with one message, and the agent continues without a trace.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_sites::{Counter, Strategy};
use heapdiff_trace::{
    ClassTotal, Collected, NewCollection, NewRun, NewTick, Sample, Samples, THINNED, TraceError,
    Writer, Written,
};
use heapdiff_units::Span;

use crate::cgroup;
use crate::counters::Counters;
use crate::counting::Lines;
use crate::guard::Guard;
use crate::jvm_stats::{Figures, Invocation, JvmStats, largest_heap, runtime};
use crate::jvmti::calls::{Env, JniError};
use crate::ledger::Ledger;
use crate::log::{Level, print_line};
use crate::options::{Options, TraceOptions};
use crate::pauses::Pauses;
use crate::sampler::Sampler;
use crate::totals::{Seen, Totals};
use crate::tries::Tries;
use crate::wakeup::Wakeup;

/// Minimum time between two readings of the GC statistics, even if GCs follow each other faster.
const REST: Duration = Duration::from_millis(5);
/// Maximum number of GCs that wait to be written to the trace.
const MOST_COLLECTIONS: usize = 4096;
/// The cause that the JVM reports for the GC that precedes a dump of live objects.
const DUMP: &str = "Heap Dump Initiated GC";

/// The data that the trace's thread works with.
pub(crate) struct Tracing<'a> {
    pub(crate) options: &'a Options,
    pub(crate) trace: &'a TraceOptions,
    pub(crate) sampler: &'a Sampler,
    pub(crate) ledger: &'a Ledger,
    pub(crate) counters: &'a Counters,
    pub(crate) wakeup: &'a Wakeup,
    pub(crate) pauses: &'a Pauses,
    /// Time when sampling was set up, in milliseconds since 1970.
    pub(crate) started_ms: i64,
    /// True if the agent was loaded at the JVM's start.
    pub(crate) at_startup: bool,
    /// Set when the trace has ended.
    pub(crate) done: &'a AtomicBool,
    /// Set by a request to write new data (a tick) to the trace at once. Cleared after the attempt to write this data.
    pub(crate) tick_now: &'a AtomicBool,
    /// Set if the requested data was written to the trace.
    pub(crate) has_written: &'a AtomicBool,
    /// The guard, which gets the heap size in use after each major GC.
    pub(crate) guard: Option<&'a Guard>,
}

/// Values at the end of the time interval that was last written to the trace.
#[derive(Clone, Copy, Default)]
struct Before {
    uptime_ms: i64,
    samples: u64,
    lost: u64,
    lost_bytes: u64,
    thinnings: u64,
    sites_full: u64,
}

/// Data that the next write to the trace will contain.
#[derive(Default)]
struct Waiting {
    /// Allocation counts of each class at the last write to the trace.
    counted: Seen,
    /// Allocation counts of each line of code.
    lines: Lines,
    collections: Vec<NewCollection>,
    dumps: Vec<(i64, i64, Option<String>)>,
    unsaid: Unsaid,
}

/// Notes (messages for users) that the next write to the trace will contain.
#[derive(Clone, Default)]
struct Unsaid {
    notes: Vec<String>,
    /// Number of GCs without details. For these GCs the agent knows only the pause, or nothing.
    unseen: u64,
    /// Number of GCs that were dropped because too many were waiting to be written.
    left_out: u64,
}

impl Unsaid {
    fn notes(mut self) -> Vec<String> {
        if self.unseen > 0 {
            self.notes.push(format!(
                "{} GCs followed each other too fast: for some the trace has only the pause, for the others nothing",
                self.unseen
            ));
        }
        if self.left_out > 0 {
            self.notes.push(format!(
                "{} GCs are missing in the trace, because the agent keeps at most {MOST_COLLECTIONS} GCs in memory until it writes them",
                self.left_out
            ));
        }
        self.notes
    }
}

/// Values that are read before a tick (the data of one time interval) is written.
struct State {
    figures: Figures,
    /// True if the disk was full at the previous attempt.
    lacked_room: bool,
    /// True if the counters of lines of code were read for the data that is written to the trace now.
    counts: bool,
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    millis(since.unwrap_or_default())
}

/// Returns a note (a message in the trace) for a JVM whose management beans cannot be read.
fn without_beans(why: &JniError) -> String {
    let why = match why {
        JniError::Thrown(class) if class == "java.lang.NoClassDefFoundError" => {
            "this JVM does not have the module java.management".to_owned()
        }
        JniError::HeapFull => {
            "the GC MXBeans of this JVM could not be read: the heap is full".to_owned()
        }
        why => format!("the GC MXBeans of this JVM could not be read ({why})"),
    };
    format!("{why}. So the trace records only the pauses of GCs")
}

impl Tracing<'_> {
    /// Runs until the agent is stopped, the JVM ends, or the trace fails.
    pub(crate) fn run(&self, env: &Env<'_>) {
        if let Err(why) = self.record(env) {
            let rest = if self.wakeup.is_stopping() {
                ""
            } else {
                "; sampling continues without a trace"
            };
            print_line(Level::Error, format_args!("the trace stopped: {why}{rest}"));
        }
        self.done.store(true, Release);
        self.wakeup.notify();
    }

    fn record(&self, env: &Env<'_>) -> Result<(), String> {
        let run = self.describe(env);
        let path = self.trace.path();
        let runtime = Arc::clone(&self.sampler.runtime);
        let mut stats = JvmStats::new(runtime, self.pauses, self.at_startup);
        let open = || Writer::create(&path, &run, self.trace.limits);
        let mut tries = Tries::new(Instant::now());
        let mut next = self.now() + self.trace.tick;
        let mut writer = match open() {
            Ok(writer) => Some(writer),
            Err(error) => {
                next = next.max(self.now() + self.handle_written(&mut tries, Err(error), &path)?);
                None
            }
        };
        let (mut waiting, mut before) = (Waiting::default(), Before::default());
        self.look_up_beans(env, &mut stats, &mut waiting);
        loop {
            let left = next.saturating_sub(self.now());
            let going = if left.is_zero() {
                !self.wakeup.is_stopping()
            } else {
                self.wakeup.wait(left)
            };
            self.read_collections(env, &mut stats, &mut waiting);
            let is_asked = self.tick_now.load(Acquire);
            if !going || is_asked || self.now() >= next {
                next = self.now() + self.trace.tick;
                let figures = stats.figures(env);
                let now = (self.now(), !going);
                let state = State {
                    counts: waiting.lines.read(env, now, figures.loaded_classes),
                    figures,
                    lacked_room: tries.was_disk_full(),
                };
                let written = match &mut writer {
                    Some(writer) => self.write(writer, state, &mut waiting, &mut before),
                    none => open().and_then(|opened| {
                        self.write(none.insert(opened), state, &mut waiting, &mut before)
                    }),
                };
                let is_written = matches!(written, Ok(Written::Done));
                next = next.max(self.now() + self.handle_written(&mut tries, written, &path)?);
                if is_asked {
                    self.has_written.store(is_written, Release);
                    self.tick_now.store(false, Release);
                    self.wakeup.notify();
                }
            }
            if !going {
                break;
            }
            if !self.wakeup.rest(REST) {
                // The agent is being stopped, so write the last data to the trace at once.
                next = self.now();
            }
        }
        match writer {
            Some(writer) if !tries.was_disk_full() => {
                writer.end(wall_ms()).map_err(|error| error.to_string())
            }
            _ => {
                let seconds = (millis(self.now()) - before.uptime_ms).unsigned_abs() / 1000;
                let span = Span(Duration::from_secs(seconds));
                Err(format!(
                    "{}: the data of the last {span} is missing",
                    path.display()
                ))
            }
        }
    }

    /// Handles the result of an attempt to write to the trace. Prints a message if the user must know about the result.
    /// Returns how long to wait before the next attempt.
    fn handle_written(
        &self,
        tries: &mut Tries,
        written: Result<Written, TraceError>,
        path: &Path,
    ) -> Result<Duration, String> {
        let next = tries.after_attempt(written, path, Instant::now())?;
        if let Some(text) = next.say {
            print_line(Level::Warn, text);
        }
        Ok(next.pause)
    }

    /// Writes a tick (the data of one time interval) to the trace. If this fails, restores the data, so that the next
    /// tick contains it.
    fn write(
        &self,
        writer: &mut Writer,
        state: State,
        waiting: &mut Waiting,
        before: &mut Before,
    ) -> Result<Written, TraceError> {
        let (unsaid, at_last_tick) = (waiting.unsaid.clone(), *before);
        let mut made = None;
        let counts = state.counts;
        let make = |anew| {
            if anew {
                self.ledger.mark_live_dirty();
                waiting.counted = Seen::default();
                waiting.lines.report_all_again();
            }
            let counting = counts.then(|| waiting.lines.counting());
            let tick = self.tick(state, waiting, before);
            &*made.insert(NewTick { counting, ..tick })
        };
        let written = writer.tick(&self.sampler.stacks, self.sampler, make);
        if counts && matches!(written, Ok(Written::Done)) {
            waiting.lines.mark_reported();
        }
        if let (Err(_), Some(tick)) = (&written, made) {
            let newest = tick.newest_collected_ms.map(i64::unsigned_abs);
            self.ledger.reopen(&tick.sites, &tick.classes, newest);
            let counted = tick.class_totals.iter();
            let counted = counted.map(|c| (c.class, [c.objects, c.bytes]));
            Totals::restore_increases(&mut waiting.counted, counted);
            (waiting.collections, waiting.dumps) = (tick.collections, tick.dumps);
            (waiting.unsaid, *before) = (unsaid, at_last_tick);
        }
        written
    }

    /// Returns the time since sampling was set up.
    fn now(&self) -> Duration {
        self.sampler.started.elapsed()
    }

    fn describe(&self, env: &Env<'_>) -> NewRun {
        let invocation = Invocation::current(env);
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
            heap_limit: runtime(env)
                .and_then(|runtime| largest_heap(env, runtime.get()))
                .ok()
                .filter(|bytes| (1..1 << 53).contains(bytes)),
            container_limit: cgroup::limit(),
        }
    }

    fn look_up_beans(&self, env: &Env<'_>, stats: &mut JvmStats, waiting: &mut Waiting) {
        if let Some(Err(why)) = stats.look_up_beans(env, self.pauses) {
            waiting.unsaid.notes.push(without_beans(&why));
        }
    }

    /// Reads the GCs since the last call.
    fn read_collections(&self, env: &Env<'_>, stats: &mut JvmStats, waiting: &mut Waiting) {
        self.look_up_beans(env, stats, waiting);
        let clock = |at: Instant| {
            let uptime = millis(at.saturating_duration_since(self.sampler.started));
            let ago = millis(at.elapsed());
            (wall_ms() - ago, uptime)
        };
        let collections = stats.collections(env, self.pauses, &clock);
        // The guard needs this value also while the trace cannot be written.
        let last_full = collections.iter().rev().find(|gc| gc.major);
        if let (Some(guard), Some(last)) = (self.guard, last_full) {
            guard.after_major_gc(last.after_bytes);
        }
        for collection in collections {
            if waiting.collections.len() == MOST_COLLECTIONS {
                waiting.unsaid.left_out += 1;
                continue;
            }
            if collection.cause == DUMP {
                let when = (collection.time_ms, collection.uptime_ms, None);
                waiting.dumps.push(when);
            }
            waiting.collections.push(collection);
        }
        waiting.unsaid.unseen += std::mem::take(&mut stats.unseen);
    }

    /// Returns a tick (new data for the trace) with all changes since the last tick (`before`), and updates `before`.
    fn tick(&self, state: State, waiting: &mut Waiting, before: &mut Before) -> NewTick {
        let figures = state.figures;
        let get = |counter| self.counters.get(counter);
        let (sites, classes) = self.ledger.close();
        let newest = self.ledger.newest_collected_ms();
        let (full, full_bytes) = self.ledger.unaccounted();
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
        let class_totals =
            class_totals.map_or_else(Vec::new, |t| t.take_increases(&mut waiting.counted));
        let class_total = |(class, [objects, bytes]): (u32, [u64; 2])| ClassTotal {
            class,
            objects,
            bytes,
        };
        let time_ms = wall_ms();
        let mut notes = std::mem::take(&mut waiting.unsaid).notes();
        if state.lacked_room {
            let seconds = (now.uptime_ms - before.uptime_ms).unsigned_abs() / 1000;
            let span = Span(Duration::from_secs(seconds));
            notes.push(format!(
                "the disk was full, so the trace has only one data point for {span}"
            ));
        }
        if now.thinnings > before.thinnings {
            let sampling = self.sampler.strategy.sampling();
            let distance = match sampling.strategy {
                Strategy::Bytes => format!("{} bytes", sampling.interval),
                Strategy::Time => format!("{} ms", sampling.rate),
                Strategy::Count | Strategy::Class => format!("{} allocations", sampling.rate),
            };
            notes.push(match self.sampler.unproven {
                Some(_) => format!(
                    "from now on, the agent tracks only one sampled object per {distance}, because young GCs of ZGC do not free tracked objects"
                ),
                None => format!(
                    "{THINNED}: from now on, the agent takes one sample per {distance}, and it discarded some earlier samples so that all samples have this rate"
                ),
            });
        }
        if before.sites_full == 0 && now.sites_full > 0 {
            notes.push(
                "the table of allocation sites is full: from now on, all new stacks count as one site"
                    .to_owned(),
            );
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
            counting: None,
            collections: std::mem::take(&mut waiting.collections),
            dumps: std::mem::take(&mut waiting.dumps),
            notes,
        };
        *before = now;
        tick
    }
}

/// Provides the live samples in the form in which the trace lists them, each with its slot in the table.
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

    fn collected(&self, anew: bool) -> Option<Vec<Collected>> {
        self.collected.all(anew)
    }
}

#[cfg(test)]
mod tests {
    use super::{JniError, MOST_COLLECTIONS, Unsaid, without_beans};

    #[test]
    fn a_full_heap_is_not_reported_as_a_missing_module() {
        let missing = JniError::Thrown("java.lang.NoClassDefFoundError".to_owned());
        assert!(
            without_beans(&missing)
                .starts_with("this JVM does not have the module java.management. ")
        );
        let full = without_beans(&JniError::HeapFull);
        assert!(
            full.contains("could not be read: the heap is full.") && !full.contains("module"),
            "{full}"
        );
        let other = without_beans(&JniError::Thrown("java.lang.InternalError".to_owned()));
        assert!(other.contains("(java.lang.InternalError)") && !other.contains("module"));
    }

    #[test]
    fn missing_gcs_are_noted_once_per_cause() {
        assert!(Unsaid::default().notes().is_empty());
        let unsaid = Unsaid {
            notes: vec!["first".to_owned()],
            unseen: 3,
            left_out: 5,
        };
        let notes = unsaid.notes();
        assert_eq!((notes.len(), notes[0].as_str()), (3, "first"));
        assert!(notes[1].starts_with("3 GCs followed each other too fast"));
        let left_out = format!(
            "5 GCs are missing in the trace, because the agent keeps at most {MOST_COLLECTIONS} GCs"
        );
        assert!(notes[2].starts_with(&left_out), "{}", notes[2]);
    }
}
