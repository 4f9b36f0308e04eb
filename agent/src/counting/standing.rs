//! The standing count (`count=on`): counts allocations as long as the agent samples. The counts are copied to the Java
//! heap, so that dumps contain them.
//!
//! While a standing count runs, `heapdiff count` neither inserts nor removes hooks. The result of `heapdiff count` is
//! the difference between two readings of the counters.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_sites::types::of_class;
use heapdiff_sites::{Batch, Counted, TOTALS_CHUNK, attach, statics};
use heapdiff_units::Span;
use rustc_hash::FxHashSet;

use super::cells::MOST_SITES;
use super::table::Known;
use super::{
    Asked, Begun, ENGINE, Engine, GRACE, Plan, Progress, STATE, Sampled, begin, locked, parse_plan,
    state, transition,
};
use crate::heap::{Blobs, Fields, LongChunks};
use crate::jvmti::Environment;
use crate::jvmti::calls::{Env, Global, Longs, Result};
use crate::log::{Level, print_line};
use crate::options::{CountChoice, Options};

/// Minimum time between two copies of the counts to the heap.
const OFTEN: Duration = Duration::from_secs(1);
/// Maximum number of sites that are written to the heap in one step.
const PORTION: usize = 512;
/// Number of values per site in the heap: allocations, and bytes of arrays.
const FIGURES: usize = 2;

/// True while a standing count (`count=on`) runs.
pub(super) static STANDS: AtomicBool = AtomicBool::new(false);
/// The second count, which `heapdiff count` started while the standing count (`count=on`) runs. The value consists of
/// the options of the second count, and the readings of the counters at its start. Both counts use the same counters.
static SHARED: Mutex<Option<(Plan, Begun)>> = Mutex::new(None);

/// Starts the standing count if the options contain `count=on` or `count=jdk`. This count runs as long as the agent
/// samples. If the count cannot start, the agent samples without counting.
pub(crate) fn start_standing(env: &Env<'_>, options: &Options) {
    let jdk = match options.count {
        CountChoice::Off => return,
        CountChoice::On => false,
        CountChoice::Jdk => true,
    };
    if !transition(state::IDLE, state::CHANGING) {
        print_line(
            Level::Warn,
            "count: not started, because `heapdiff count` already counts in this JVM; dumps will have no counts",
        );
        return;
    }
    let start = Instant::now();
    let begun = Environment::create_another(env)
        .ok_or_else(|| "this JVM has no JVMTI 11".to_owned())
        .and_then(|environment| {
            let plan = Plan::for_standing_count(jdk, options.filter.patterns());
            begin(environment, env, plan).map_err(|(_, why)| why)
        });
    match begun {
        Ok(()) => {
            let classes = ENGINE
                .get()
                .map_or(0, |engine| locked(&engine.table).classes);
            if classes > 0 {
                let classes = match classes {
                    1 => "1 loaded class".to_owned(),
                    _ => format!("{classes} loaded classes"),
                };
                let span = Span(start.elapsed());
                print_line(
                    Level::Info,
                    format_args!("count: inserted counters into {classes}; this took {span}"),
                );
            }
            STATE.store(state::COUNTING, Release);
            STANDS.store(true, Release);
        }
        Err(why) => {
            STATE.store(state::IDLE, Release);
            print_line(Level::Error, format_args!("count: not started: {why}"));
        }
    }
}

/// Ends the standing count (`count=on`) if such a count runs, and removes the hooks.
pub(crate) fn stop_standing(env: &Env<'_>) {
    if !STANDS.swap(false, AcqRel) {
        return;
    }
    drop(locked(&SHARED).take());
    if let Some(engine) = ENGINE.get()
        && transition(state::COUNTING, state::CHANGING)
    {
        engine.end_count(env, &Progress::new(None));
    }
}

/// Handles a request of `heapdiff count` while the standing count (`count=on`) runs. Returns one of [`attach`]'s codes,
/// or `None` if no standing count runs.
pub(super) fn handle_count_request(
    env: &Env<'_>,
    asked: &Asked<'_>,
    sampled: Sampled<'_>,
) -> Option<i32> {
    let engine = ENGINE.get().filter(|_| STANDS.load(Acquire))?;
    let standing = locked(&engine.plan).clone()?;
    let answer = match asked {
        Asked::Classes(_) => return Some(attach::CLASSES),
        Asked::Begin(options) => match parse_plan(options, sampled) {
            Err(why) => Err(why),
            Ok(plan) if plan.jdk != standing.jdk || !standing.is_open() => {
                let why = "the agent already counts, but in other classes (see its options `count`, `include` and `exclude`)";
                Err((attach::COUNTS_ALREADY, why.to_owned()))
            }
            Ok(plan) => {
                let counters = engine.counters(env);
                let at = Instant::now();
                let mut shared = locked(&SHARED);
                match &*shared {
                    Some((other, begun)) if begun.at.elapsed() < other.time + GRACE => {
                        return Some(attach::COUNTS_ALREADY);
                    }
                    _ => *shared = Some((plan, Begun { at, counters })),
                }
                Ok(())
            }
        },
        Asked::End(token) => {
            let shared = locked(&SHARED).take();
            let Some((plan, begun)) = shared else {
                return Some(attach::COUNTS_NOT);
            };
            let mut counts = engine.counts(env, &begun);
            counts.sites.retain(|site| plan.passes(&site.class));
            engine.publish_counts(&counts, token)
        }
    };
    Some(match answer {
        Ok(()) => attach::DONE,
        Err((code, why)) => {
            print_line(Level::Error, format_args!("cannot count: {why}"));
            code
        }
    })
}

/// The copy of the counts in the Java heap.
pub(crate) struct InHeap {
    head: Arc<Global<Longs>>,
    sites: Blobs,
    totals: LongChunks,
    /// Records which data the heap contains already. `None` while a thread is copying.
    told: Mutex<Option<Told>>,
}

/// Records which data the heap contains already.
#[derive(Default)]
struct Told {
    at: Option<Instant>,
    since: i64,
    /// Ids of the names that were written to the heap.
    names: FxHashSet<u32>,
    /// Number of sites that were written to the heap. These are the sites with the lowest numbers in the table.
    sites: usize,
    /// The counts that were copied last. They are stored in chunks, as in the heap.
    figures: Vec<Vec<i64>>,
}

/// Sites that are not in the heap yet, each with the names of its class, its method and the allocated class.
type New = Vec<(Known, [Arc<str>; 3])>;

impl InHeap {
    /// Creates the arrays in the heap. Returns `None` if the option `count` is off.
    pub(crate) fn create(
        env: &Env<'_>,
        fields: &mut Fields,
        choice: CountChoice,
    ) -> Result<Option<Self>> {
        let head = fields.longs(env, statics::COUNTED, Counted::LEN)?;
        if choice == CountChoice::Off {
            // These empty arrays replace the arrays of an earlier agent.
            fields.objects(env, statics::COUNTED_SITES, 0)?;
            fields.objects(env, statics::COUNTED_TOTALS, 0)?;
            return Ok(None);
        }
        let chunks = MOST_SITES / TOTALS_CHUNK + 1;
        Ok(Some(Self {
            head,
            sites: Blobs::create(env, fields, statics::COUNTED_SITES)?,
            totals: LongChunks::create(env, fields, statics::COUNTED_TOTALS, chunks)?,
            told: Mutex::new(Some(Told::default())),
        }))
    }

    /// Copies the counts that have changed to the Java heap, unless the last copy was less than [`OFTEN`] ago.
    pub(crate) fn copy_if_due(&self, env: &Env<'_>) {
        let is_due = |told: &Told| told.at.is_none_or(|at| at.elapsed() >= OFTEN);
        self.copy_matching(env, is_due);
    }

    /// Copies the counts that have changed to the Java heap.
    pub(crate) fn copy(&self, env: &Env<'_>) {
        self.copy_matching(env, |_| true);
    }

    fn copy_matching(&self, env: &Env<'_>, is_wanted: impl FnOnce(&Told) -> bool) {
        let Some(engine) = ENGINE.get().filter(|_| STANDS.load(Acquire)) else {
            return;
        };
        // Only one thread copies at a time. Other threads return without a copy.
        let told = locked(&self.told).take_if(|told| is_wanted(told));
        if let Some(mut told) = told {
            self.copied(env, engine, &mut told);
            *locked(&self.told) = Some(told);
        }
    }

    fn copied(&self, env: &Env<'_>, engine: &Engine, told: &mut Told) {
        // Read the clock before the counters, so that the counts include everything that was counted until the recorded
        // time.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX);
        told.at = Some(Instant::now());
        let counters = engine.counters(env);
        let (new, mut head): (New, [i64; Counted::LEN]) = {
            let table = locked(&engine.table);
            let all = told.sites..table.len();
            let mut head = [0; Counted::LEN];
            for (place, figure) in [
                (Counted::Classes, table.classes),
                (Counted::NoRoom, table.uncounted),
                (Counted::LeftAlone, table.left_alone.count),
                (Counted::Refused, table.refused.count),
            ] {
                head[place.index()] = figure.cast_signed();
            }
            (all.filter_map(|number| table.site(number)).collect(), head)
        };
        self.write_sites(env, &new, told);
        let done = {
            let begun = locked(&engine.begun);
            let Some(begun) = begun.as_ref() else { return };
            if told.since == 0 {
                let millis = i64::try_from(begun.at.elapsed().as_millis()).unwrap_or(0);
                told.since = now - millis;
            }
            changes(&counters, &begun.counters, told.sites)
        };
        let jdk = locked(&engine.plan).as_ref().is_some_and(|plan| plan.jdk);
        let mut well = true;
        told.figures.resize(done.len(), Vec::new());
        for (chunk, (now, before)) in done.into_iter().zip(&mut told.figures).enumerate() {
            if now == *before || now.iter().all(|figure| *figure == 0) {
                continue;
            }
            let array = self.totals.at(env, chunk, FIGURES * TOTALS_CHUNK);
            if array.is_some_and(|array| array.get().put(env, 0, &now).is_ok()) {
                *before = now
            } else {
                well = false
            }
        }
        if well {
            let missing = counters.len().saturating_sub(told.sites);
            head[Counted::HeapFull.index()] = i64::try_from(missing).unwrap_or(i64::MAX);
            head[Counted::Jdk.index()] = jdk.into();
            head[Counted::Since.index()] = told.since;
            head[Counted::At.index()] = now;
            // If this write fails, the heap keeps the header of the previous copy, and the next copy writes a new
            // header.
            let _ = self.head.get().put(env, 0, &head);
        }
    }

    /// Writes the sites in `new` to the heap, until the heap is full.
    fn write_sites(&self, env: &Env<'_>, new: &New, told: &mut Told) {
        for portion in new.chunks(PORTION) {
            let mut batch = Batch::new();
            let mut names: Vec<u32> = Vec::new();
            let first = told.sites + 1;
            for ((site, texts), id) in portion.iter().zip(first..) {
                let Ok(id) = u32::try_from(id) else { return };
                let numbers = site.names().map(|name| name + 1);
                for (number, text) in numbers.into_iter().zip(texts) {
                    if told.names.insert(number) {
                        names.push(number);
                        batch.string(number, &of_class(text));
                    }
                }
                let [class, method, allocated] = numbers;
                batch.method(id, class, method, 0);
                batch.frame(id, id, site.line.map_or(0, i32::from));
                batch.site(id, &[id], false);
                batch.class(id, allocated);
            }
            if !self.sites.put(env, &batch.finish()) {
                names.iter().for_each(|name| _ = told.names.remove(name));
                return;
            }
            told.sites += portion.len();
        }
    }
}

/// Returns how much the counters of the first `sites` sites have increased. The result has chunks like the arrays in
/// the heap. The increase for the site with index `i` is at position `i + 1`, because ids of sites begin at 1.
fn changes(now: &[[u64; 2]], before: &[[u64; 2]], sites: usize) -> Vec<Vec<i64>> {
    let mut chunks = vec![vec![0; FIGURES * TOTALS_CHUNK]; (sites + 1).div_ceil(TOTALS_CHUNK)];
    for (number, now) in now.iter().enumerate().take(sites) {
        let before = before.get(number).copied().unwrap_or_default();
        let (chunk, place) = ((number + 1) / TOTALS_CHUNK, (number + 1) % TOTALS_CHUNK);
        for (i, (now, before)) in now.iter().zip(before).enumerate() {
            chunks[chunk][FIGURES * place + i] = now.wrapping_sub(before).cast_signed();
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_counts_are_subtracted() {
        let now: Vec<[u64; 2]> = (0..1100).map(|i| [i + 5, 2 * i]).collect();
        let before: Vec<[u64; 2]> = (0..1000).map(|i| [i, i]).collect();
        let chunks = changes(&now, &before, 1100);
        assert_eq!(chunks.len(), 2);
        assert!(chunks.iter().all(|c| c.len() == FIGURES * TOTALS_CHUNK));
        assert_eq!(chunks[0][..4], [0, 0, 5, 0]);
        assert_eq!(chunks[0][2 * 11..2 * 12], [5, 10]);
        // Sites that were added after `before` was read had a count of 0 at that time.
        assert_eq!(chunks[0][2 * 1001..2 * 1002], [1005, 2000]);
        assert_eq!(chunks[1][..2], [1028, 2046]);
        assert_eq!(changes(&now, &before, 1023).len(), 1);
        assert_eq!(changes(&now, &before, 1023)[0][2 * 1023], 1027);
    }
}
