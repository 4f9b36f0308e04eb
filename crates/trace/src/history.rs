//! Live objects of allocation sites over time. A trace divides a run of a JVM into time intervals (ticks). A site has a
//! row for each interval in which it had activity. So the live amount of a site (samples, objects, bytes) stays
//! constant until the next interval with a row for the site.

use std::collections::{BTreeMap, HashMap};

use heapdiff_trend::onset;

use crate::TraceError;
use crate::amount::{Amount, Live};
use crate::read::{Collection, Run, Tick, Trace};
use crate::window::Window;

/// Maximum number of points that a trend is computed from.
const MOST_POINTS: usize = 64;
/// Minimum number of samples for a trend over the program's work (the bytes that all sites allocated). With fewer
/// samples, it is unclear how much was allocated in each part of the time.
const ENOUGH_FOR_WORK: u64 = 1000;
/// Minimum number of full GCs to compute a trend from the live amounts after them.
const LEAST_MAJOR: usize = heapdiff_trend::LEAST_POINTS;

/// The [`Tick`]s (time intervals of a run) and the GCs in one part of a run (a [`Window`]).
#[derive(Clone, Debug)]
pub struct Timeline {
    run: i64,
    ticks: Vec<Tick>,
    index: HashMap<i64, usize>,
    collections: Vec<Collection>,
    /// True if the run was imported from a recording. The live amounts of such a run are known only at the few times
    /// when the recorder searched for live objects.
    survivors: bool,
    /// For each time interval of the window: bytes that all sites together allocated from the start of the window to
    /// the end of the interval. Empty if there are fewer than [`ENOUGH_FOR_WORK`] samples.
    work: Vec<u64>,
    /// The full GCs, by the index of the time interval in which each GC ended. Set only if young GCs find no dead
    /// samples, as in generational ZGC.
    majors: Option<BTreeMap<usize, Major>>,
}

/// A major collection of generational ZGC.
///
/// Such a GC finds dead objects only among the objects that were in the old generation when the GC began. It treats
/// young objects as live. Example: the newest sample that any GC has found dead was allocated at 80 s. So objects
/// allocated before 80 s were examined, and objects allocated later were not:
///
/// ```text
/// allocated before 80 s: was examined; what is still recorded as live has survived
/// allocated after 80 s:  not examined yet; may be dead
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Major {
    /// The end of the GC, in milliseconds since the run began.
    ended_ms: u64,
    /// The GC did not examine objects that were allocated after this time, in milliseconds since the run began. `None`
    /// if the time is unknown.
    tried_ms: Option<u64>,
}

impl Major {
    /// Returns the allocation time up to which the GC examined objects. Objects allocated later may be dead. If this
    /// time is unknown, returns the end of the GC.
    fn until_ms(&self) -> u64 {
        self.tried_ms.unwrap_or(self.ended_ms)
    }
}

/// Let G be the GC that comes this many GCs before a full GC of generational ZGC. Objects that were allocated before
/// the end of G are certainly in the old generation, because the largest tenuring threshold of ZGC is 15. So the full
/// GC examines them. This number is larger than 15, because a GC may have begun before an object was allocated.
const CERTAINLY_OLD: usize = 17;

/// Returns true if generational ZGC made the GC. The name of the collector identifies generational ZGC.
fn is_generational_z(collection: &Collection) -> bool {
    ignores_dead_samples(collection) || collection.collector.contains("ZGC Major")
}

/// Returns true for a young GC of generational ZGC. Such a GC treats the referents of weak and phantom references as
/// live, so only full GCs find dead samples.
fn ignores_dead_samples(collection: &Collection) -> bool {
    collection.collector.contains("ZGC Minor")
}

/// The point in time at which the live amounts are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliveAt {
    /// The end of the window.
    End,
    /// The last full GC. No GC has examined the objects allocated since then, so they may be garbage.
    Major {
        /// The end of the GC, in milliseconds since the run began.
        uptime_ms: u64,
        /// The live amounts include only the objects that were allocated by this time and survived the GC. The time is
        /// in milliseconds since the run began. `None` if it is unknown which objects the GC examined. Then the live
        /// amounts are an upper bound.
        tried_ms: Option<u64>,
    },
    /// The time is unknown: the window has no full GC, or dead samples were found for the first time after its last
    /// full GC. The live amounts include objects that are dead.
    Unknown,
}

impl AliveAt {
    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Major { .. } => "major",
            Self::Unknown => "unknown",
        }
    }
}

impl Timeline {
    /// Reads the time intervals ([`Tick`]) and the GCs in a window of a run.
    ///
    /// Cost: time and memory linear in the number of time intervals and GCs in the window.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn of(trace: &Trace, run: &Run, window: Window) -> Result<Self, TraceError> {
        let ticks = trace.ticks_of(run.id, window)?;
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else {
            return Ok(Self::new(run.id, ticks, Vec::new()));
        };
        let within = Window {
            from_ms: first.uptime_ms.saturating_sub(first.span_ms),
            to_ms: last.uptime_ms,
        };
        let begins = first.uptime_ms;
        let collections = trace.collections_of(run.id, within)?;
        let mut timeline = Self::new(run.id, ticks, collections);
        timeline.survivors = run.strategy == crate::RECORDING;
        timeline.work = timeline.work_of(trace)?;
        if timeline.collections.iter().any(is_generational_z) {
            let tried = trace.newest_collected(run.id, begins)?;
            timeline.majors = Some(timeline.major_collections(tried));
        }
        Ok(timeline)
    }

    fn new(run: i64, ticks: Vec<Tick>, collections: Vec<Collection>) -> Self {
        let index = ticks.iter().enumerate().map(|(i, t)| (t.id, i)).collect();
        Self {
            run,
            ticks,
            index,
            collections,
            survivors: false,
            work: Vec::new(),
            majors: None,
        }
    }

    /// Returns, for each time interval of the window, the bytes that all sites together allocated from the start of the
    /// window to the end of the interval. Empty if there are fewer than [`ENOUGH_FOR_WORK`] samples.
    fn work_of(&self, trace: &Trace) -> Result<Vec<u64>, TraceError> {
        let Some((first, last)) = self.rows() else {
            return Ok(Vec::new());
        };
        let mut allocated = vec![0_u64; self.ticks.len()];
        let mut taken = 0_u64;
        for (tick, samples, bytes) in trace.allocated(first, last)? {
            if let Some(&i) = self.index.get(&tick) {
                allocated[i] = bytes;
                taken = taken.saturating_add(samples);
            }
        }
        if taken < ENOUGH_FOR_WORK {
            return Ok(Vec::new());
        }
        let sums = allocated.into_iter().scan(0_u64, |sum, bytes| {
            *sum = sum.saturating_add(bytes);
            Some(*sum)
        });
        Ok(sums.collect())
    }

    /// Returns the major collections of generational ZGC, by the index of the time interval in which each GC ended.
    /// `newest` is the latest allocation time of the samples that were found dead before the first time interval of the
    /// window.
    fn major_collections(&self, mut newest: Option<u64>) -> BTreeMap<usize, Major> {
        let is_told =
            newest.is_some() || self.ticks.iter().any(|t| t.newest_collected_ms.is_some());
        let mut majors = BTreeMap::new();
        let mut seen = 0;
        for (i, collection) in self.collections.iter().enumerate() {
            let Some((at, next)) = self.after(collection).filter(|_| collection.major) else {
                continue;
            };
            let looked = self.ticks.get(seen..=next).unwrap_or_default();
            newest = newest.max(looked.iter().filter_map(|t| t.newest_collected_ms).max());
            seen = seen.max(next + 1);
            let old = i.checked_sub(CERTAINLY_OLD).filter(|_| is_told);
            let old = old.and_then(|i| self.collections.get(i));
            let major = Major {
                ended_ms: collection.uptime_ms,
                tried_ms: newest.max(old.map(|c| c.uptime_ms)),
            };
            // For some GCs, the trace shows which objects they examined. If there are such GCs, leave out the other
            // GCs, because they add no information.
            if major.tried_ms.is_some() || !is_told {
                majors.insert(at, major);
            }
        }
        majors
    }

    /// Returns the point in time at which the live amounts are valid. It depends on the collector and its full GCs.
    #[must_use]
    pub fn alive_at(&self) -> AliveAt {
        match self.majors.as_ref().map(BTreeMap::last_key_value) {
            None => AliveAt::End,
            Some(None) => AliveAt::Unknown,
            Some(Some((_, major))) => AliveAt::Major {
                uptime_ms: major.ended_ms,
                tried_ms: major.tried_ms,
            },
        }
    }

    /// Returns the [`Tick`]s (time intervals of the run) in the window, oldest first.
    #[must_use]
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// Returns the GCs in the window, oldest first.
    #[must_use]
    pub fn collections(&self) -> &[Collection] {
        &self.collections
    }

    /// Returns the indexes of the first and the last time interval in which the live amounts can fall because of
    /// `collection`. The first is the interval in which the GC ended. The last is the next interval, because by its end
    /// the agent's thread has certainly checked the samples.
    fn after(&self, collection: &Collection) -> Option<(usize, usize)> {
        let at = self
            .ticks
            .partition_point(|t| t.uptime_ms < collection.uptime_ms);
        let last = self.ticks.len().checked_sub(1)?;
        (at <= last).then(|| (at, (at + 1).min(last)))
    }

    /// Returns true if a GC that ended in the time interval with the index `tick` may have removed dead samples. Then
    /// the live amounts at the end of the interval are valid.
    fn may_have_found_dead(&self, tick: usize) -> bool {
        let majors = self.majors.as_ref();
        majors.is_none_or(|majors| majors.contains_key(&tick))
    }

    /// Returns the smallest and the largest row id of the window's ticks.
    fn rows(&self) -> Option<(i64, i64)> {
        let ids = || self.ticks.iter().map(|t| t.id);
        Some((ids().min()?, ids().max()?))
    }
}

/// The kind of points in time at which live amounts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The live amounts after full GCs. They include no garbage.
    Major,
    /// The live amounts after GCs of any kind. If there are many GCs, each point is the minimum over several GCs. The
    /// amounts may include garbage in the old generation.
    Collections,
    /// The live amounts at the ends of the trace's time intervals (ticks). If there are many intervals, each point is
    /// the minimum over several neighbouring intervals. Used if there was no GC that could find dead samples.
    Ticks,
    /// The same points as for [`Self::Ticks`]. Used for imported JFR recordings. If the recorder's last search found an
    /// object alive, the object counts as live since its allocation. Objects that died before that search are unknown,
    /// so a cache whose content changes seems to grow.
    Survivors,
}

impl Basis {
    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Major => "major",
            Self::Collections => "collections",
            Self::Ticks => "ticks",
            Self::Survivors => "survivors",
        }
    }
}

/// The points in time at which live amounts are compared. Each point is a range of time intervals. The live amount of a
/// point is the minimum of the live amounts in its range.
#[derive(Clone, Debug)]
pub struct Points {
    /// The kind of points in time that are compared.
    pub basis: Basis,
    pub(crate) ranges: Vec<(usize, usize)>,
    /// For the first and the last full GC in the window: the range of time intervals in which live amounts can fall
    /// because of the GC; see `Timeline::after`.
    pub(crate) across: Option<[(usize, usize); 2]>,
    /// Number of full GCs in the window.
    pub majors: usize,
    /// Number of GCs in the window.
    pub collections: usize,
}

impl Points {
    /// Returns the points of a window. If the window has at least five full GCs, each point is after a full GC. See
    /// [`Basis`] for the other cases.
    #[must_use]
    pub fn of(timeline: &Timeline) -> Self {
        let all = timeline.collections();
        let tells = |c: &&Collection| !ignores_dead_samples(c);
        let ranges = |major: bool| {
            let chosen = all.iter().filter(tells).filter(|c| c.major || !major);
            let after = chosen.filter_map(|c| timeline.after(c));
            merge_indistinct(after.filter(|range| timeline.may_have_found_dead(range.0)))
        };
        let (major, any) = (ranges(true), ranges(false));
        let across = match &major[..] {
            [first, .., last] => Some([*first, *last]),
            _ => None,
        };
        let ticks = || -> Vec<(usize, usize)> {
            let ticks = 0..timeline.ticks.len();
            merge_ranges(&ticks.map(|i| (i, i)).collect::<Vec<_>>())
        };
        let (basis, ranges) = if timeline.survivors {
            (Basis::Survivors, ticks())
        } else if major.len() >= LEAST_MAJOR {
            (Basis::Major, select_evenly(&major))
        } else if !any.is_empty() {
            (Basis::Collections, merge_ranges(&any))
        } else {
            (Basis::Ticks, ticks())
        };
        Self {
            basis,
            ranges,
            across,
            majors: count_full_gcs(all),
            collections: all.len(),
        }
    }

    /// Returns the number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if there are no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the index of the last time interval of the last point in time that is compared. No GC has examined the
    /// objects allocated after this interval, so it is unknown whether they are live.
    fn end(&self) -> Option<usize> {
        self.ranges.last().map(|r| r.1)
    }
}

/// Returns the given ranges: for each GC, the time intervals in which live amounts can fall because of it. Leaves out
/// each GC whose effect cannot be distinguished from that of the previous GC, such as G1's Cleanup after Remark.
fn merge_indistinct(ranges: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for range in ranges {
        match all.last() {
            Some(last) if range.0 <= last.0 || range.0 == last.1 && range.1 == last.1 => {}
            _ => all.push(range),
        }
    }
    all
}

/// Returns the number of full GCs. All pauses of one concurrent cycle count as a single GC.
fn count_full_gcs(all: &[Collection]) -> usize {
    /// If the time between two pauses of the same concurrent collector is shorter than this, both belong to one cycle.
    const NEAR_MS: u64 = 2000;
    let mut last: Option<&Collection> = None;
    let mut count = 0;
    for collection in all.iter().filter(|c| c.major) {
        let is_same = last.take_if(|last| {
            last.collector == collection.collector
                && collection.collector.contains("Concurrent")
                && collection.uptime_ms.saturating_sub(last.uptime_ms) < NEAR_MS
        });
        if is_same.is_none() {
            count += 1;
            last = Some(collection);
        }
    }
    count
}

/// Returns at most [`MOST_POINTS`] of the ranges, evenly spaced.
fn select_evenly(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let count = ranges.len().min(MOST_POINTS);
    let pick = |i: usize| ranges[i * (ranges.len() - 1) / (count - 1).max(1)];
    (0..count).map(pick).collect()
}

/// Merges neighbouring ranges of time intervals into at most [`MOST_POINTS`] ranges. If there are enough GCs, each
/// merged range covers the ranges of at least three GCs. A single young GC leaves garbage in the old generation. So the
/// minimum over several GCs is closer to the amount that survives.
fn merge_ranges(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let count = (ranges.len() / 3)
        .clamp(LEAST_MAJOR * 2, MOST_POINTS)
        .min(ranges.len());
    (0..count)
        .filter_map(|i| {
            let part = &ranges[i * ranges.len() / count..(i + 1) * ranges.len() / count];
            Some((part.first()?.0, part.last()?.1))
        })
        .collect()
}

/// The summed amounts of several sites in a window.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// Live amount before the first time interval of the window.
    before: Live,
    /// Changes of the live amount. Each entry is the index of a time interval, and the live amount from this interval
    /// until the interval of the next entry.
    at: Vec<(usize, Live)>,
    /// Allocated amount by index of the time interval. Contains only intervals in which one of the sites had activity.
    came: BTreeMap<usize, Amount>,
    /// Amount allocated in the window.
    pub allocated: Amount,
    /// Amount of the objects that were found dead in the window.
    pub collected: Amount,
}

/// Sums of samples, objects and bytes. They are signed, because a partial sum may be negative.
#[derive(Clone, Copy, Default)]
struct Change {
    samples: i128,
    objects: i128,
    bytes: i128,
    variance: f64,
}

impl Change {
    fn add(&mut self, live: &Live, sign: i128) {
        self.samples += sign * i128::from(live.amount.samples);
        self.objects += sign * i128::from(live.amount.objects);
        self.bytes += sign * i128::from(live.amount.bytes);
        self.variance += sign as f64 * live.variance;
    }

    fn live(&self) -> Live {
        let whole = |n: i128| u64::try_from(n.max(0)).unwrap_or(u64::MAX);
        Live {
            amount: Amount {
                samples: whole(self.samples),
                objects: whole(self.objects),
                bytes: whole(self.bytes),
            },
            variance: self.variance.max(0.0),
        }
    }
}

impl Steps {
    /// Reads the amounts of the given sites, and adds them up.
    ///
    /// Cost: time and memory linear in the rows of these sites in the window, plus one index lookup per site.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn of(trace: &Trace, timeline: &Timeline, sites: &[i64]) -> Result<Self, TraceError> {
        let mut steps = Self::default();
        let Some((first, last)) = timeline.rows() else {
            return Ok(steps);
        };
        let mut before = Change::default();
        let mut changes: Vec<(usize, Live, i128)> = Vec::new();
        for &site in sites {
            trace.check_deadline()?;
            // Within a run, the row ids of ticks grow with time. Between two ids of a run there may be ids of other
            // runs' ticks.
            let mut now = trace.live_at(timeline.run, site, first.saturating_sub(1))?;
            before.add(&now, 1);
            let mut rows: Vec<_> = trace
                .site_ticks(site, first, last)?
                .into_iter()
                .filter_map(|row| timeline.index.get(&row.tick).map(|&i| (i, row)))
                .collect();
            rows.sort_by_key(|(i, _)| *i);
            for (i, row) in rows {
                let next = Live {
                    amount: row.live,
                    variance: row.variance,
                };
                steps.allocated = steps.allocated.saturating_add(row.allocated);
                let came = steps.came.entry(i).or_default();
                *came = came.saturating_add(row.allocated);
                steps.collected = steps.collected.saturating_add(row.collected);
                changes.push((i, now, -1));
                changes.push((i, next, 1));
                now = next;
            }
        }
        changes.sort_by_key(|(i, ..)| *i);
        steps.before = before.live();
        let mut sum = before;
        for together in changes.chunk_by(|a, b| a.0 == b.0) {
            for (_, live, sign) in together {
                sum.add(live, *sign);
            }
            steps.at.push((together[0].0, sum.live()));
        }
        Ok(steps)
    }

    /// Returns the live amount at the end of the time interval with the index `tick`.
    fn at(&self, tick: usize) -> Live {
        let behind = self.at.partition_point(|(i, _)| *i <= tick);
        match behind.checked_sub(1) {
            Some(last) => self.at[last].1,
            None => self.before,
        }
    }

    /// Returns the minimum of the live amounts at the ends of the time intervals in a range.
    pub(crate) fn min_live(&self, (first, last): (usize, usize)) -> Live {
        let behind = self.at.partition_point(|(i, _)| *i <= first);
        let within = self.at[behind..].iter().take_while(|(i, _)| *i <= last);
        within.fold(self.at(first), |least, (_, live)| {
            if live.amount.bytes < least.amount.bytes {
                *live
            } else {
                least
            }
        })
    }

    /// Returns the live amount of a point in time, which is a range of time intervals (see [`Points`]). This amount is
    /// normally the minimum of the live amounts in the range. If a full GC of generational ZGC ended in the first
    /// interval of the range, it is the amount that survived the GC.
    pub(crate) fn live_at_point(&self, timeline: &Timeline, range: (usize, usize)) -> Live {
        match timeline.majors.as_ref().and_then(|m| m.get(&range.0)) {
            Some(major) => self.survived(timeline, range.0, major),
            None => self.min_live(range),
        }
    }

    /// Returns the amount that survived a full GC that ended in the time interval with the index `at`. This is the live
    /// amount at the agent's next check of the samples, minus everything that was allocated after [`Major::until_ms`].
    /// The GC did not examine these later objects, so it found none of them dead.
    fn survived(&self, timeline: &Timeline, at: usize, major: &Major) -> Live {
        let of = |last: usize| {
            let (since, variance) = self.allocated_since(timeline, major.until_ms(), last);
            let live = self.at(last);
            (live, live.amount.saturating_sub(since), variance)
        };
        let mut left = of(at);
        let next = at + 1;
        let is_next_plain = timeline
            .majors
            .as_ref()
            .is_some_and(|m| !m.contains_key(&next));
        if next < timeline.ticks.len() && is_next_plain {
            // The agent may have checked the samples only after the end of the interval in which the GC ended.
            let later = of(next);
            if later.1.bytes < left.1.bytes {
                left = later;
            }
        }
        let (live, amount, variance) = left;
        // The survivors are the live amount (`live`) minus the amount allocated since the GC. The variance of the
        // survivors is a sum. The first term is the variance of `live`, multiplied by `part`: survivors' bytes divided
        // by live bytes. The second term is the variance of the subtracted amount.
        let part = amount.bytes as f64 / live.amount.bytes.max(1) as f64;
        Live {
            amount,
            variance: live.variance * part + variance,
        }
    }

    /// Returns the amount allocated between `uptime_ms` and the end of the time interval with the index `last`, and its
    /// variance. For the interval that contains `uptime_ms`, only a part of the amount is included, in proportion to
    /// the time after `uptime_ms`. Because this part is an estimate, it adds to the variance.
    fn allocated_since(&self, timeline: &Timeline, uptime_ms: u64, last: usize) -> (Amount, f64) {
        let first = timeline.ticks.partition_point(|t| t.uptime_ms <= uptime_ms);
        if first > last {
            return (Amount::default(), 0.0);
        }
        let whole = self.came.range(first + 1..last + 1);
        let whole = whole.fold(Amount::default(), |sum, (_, came)| {
            sum.saturating_add(*came)
        });
        let came = self.came.get(&first).copied().unwrap_or_default();
        let tick = &timeline.ticks[first];
        let span = tick.span_ms.max(1);
        let after = (tick.uptime_ms - uptime_ms).min(span);
        let share = after as f64 / span as f64;
        let each = came.bytes as f64 / came.samples.max(1) as f64;
        let variance = came.samples as f64 * share * (1.0 - share) * each * each;
        (whole.saturating_add(came.part(after, span)), variance)
    }

    /// Returns the live amount at [`Timeline::alive_at`]. If that time is unknown, returns the amount of all objects
    /// that no GC has found dead.
    #[must_use]
    pub fn alive(&self, timeline: &Timeline) -> Live {
        match timeline.majors.as_ref().and_then(BTreeMap::last_key_value) {
            Some((&at, major)) => self.survived(timeline, at, major),
            None => self.last(),
        }
    }

    /// Returns, in thousandths, the part of the bytes allocated in the window that were not collected in the window. If
    /// only full GCs find dead samples, as in generational ZGC, objects allocated since the last full GC are left out.
    /// In this case, returns `None` if there was no full GC.
    #[must_use]
    pub fn survival_permille(&self, timeline: &Timeline) -> Option<u64> {
        let allocated = match timeline.majors.as_ref().map(BTreeMap::last_key_value) {
            None => self.allocated,
            Some(None) => return None,
            Some(Some(_)) => {
                let since = self
                    .last()
                    .amount
                    .saturating_sub(self.alive(timeline).amount);
                self.allocated.saturating_sub(since)
            }
        };
        let stayed = allocated.bytes.saturating_sub(self.collected.bytes);
        let permille = (u128::from(stayed) * 1000).checked_div(u128::from(allocated.bytes));
        Some(permille.and_then(|p| u64::try_from(p).ok()).unwrap_or(0))
    }

    /// Returns an iterator over the time intervals in which the live amount changed, oldest first, with the new live
    /// amount.
    pub fn changes<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = (&'a Tick, &'a Live)> {
        let tick = |(i, live): &'a (usize, Live)| Some((timeline.ticks.get(*i)?, live));
        self.at.iter().filter_map(tick)
    }

    /// Returns the live amount at the end of the window.
    #[must_use]
    pub fn last(&self) -> Live {
        self.at.last().map_or(self.before, |(_, live)| *live)
    }

    /// Returns the live amount before the first time interval of the window.
    #[must_use]
    pub fn live_before_window(&self) -> Live {
        self.before
    }

    /// Returns the time at which lasting growth began. `None` if nothing grows. The lasting amount at any time is the
    /// minimum of the live amounts from then to the last GC. So garbage that is collected later does not count.
    ///
    /// Cost: linear in the number of time intervals in the window.
    #[must_use]
    pub fn growth_start(&self, timeline: &Timeline, points: &Points) -> Option<Began> {
        let end = points.end()?;
        let mut stays = Vec::with_capacity(end + 1);
        let mut least = u64::MAX;
        let majors = timeline.majors.as_ref().filter(|m| !m.is_empty());
        for i in (0..=end).rev() {
            match majors.map(|m| m.get(&i)) {
                None => least = least.min(self.at(i).amount.bytes),
                Some(Some(_)) => {
                    least = least.min(self.live_at_point(timeline, (i, i)).amount.bytes)
                }
                // With generational ZGC, only a full GC can remove dead samples. So the live amounts of the time
                // intervals after the last full GC are not used.
                Some(None) if least == u64::MAX => continue,
                Some(None) => {}
            }
            stays.push((timeline.ticks[i].uptime_ms as f64, least as f64));
        }
        stays.reverse();
        let knee = onset(&stays)?;
        let tick = &timeline.ticks[knee];
        Some(Began {
            uptime_ms: tick.uptime_ms,
            time_ms: tick.time_ms,
            within: knee > 0,
        })
    }

    /// Divides the window into at most `most` equal parts. Returns for each part its last time interval ([`Tick`]) and
    /// a live amount.
    ///
    /// The live amount is the minimum in the part. Generational ZGC is an exception, because only its full GCs find
    /// dead samples. In this case, the live amount is the amount that survived the last full GC before the end of the
    /// part.
    #[must_use]
    pub fn series(&self, timeline: &Timeline, most: usize) -> Vec<(Tick, Live)> {
        let ticks = timeline.ticks.len();
        let count = ticks.min(most);
        (0..count)
            .map(|i| {
                let first = i * ticks / count;
                let last = (i + 1) * ticks / count - 1;
                let major = timeline.majors.as_ref();
                let major = major.and_then(|m| m.range(..=last).next_back());
                let live = match major {
                    Some((&at, _)) => self.live_at_point(timeline, (at, at)),
                    None => self.min_live((first, last)),
                };
                (timeline.ticks[last], live)
            })
            .collect()
    }

    /// Returns the bytes that all sites together had allocated at each point. Empty if unknown.
    pub(crate) fn work(timeline: &Timeline, points: &Points) -> Vec<u64> {
        let at = |range: &(usize, usize)| timeline.work.get(range.0).copied();
        let work: Option<Vec<u64>> = points.ranges.iter().map(at).collect();
        work.filter(|_| points.basis != Basis::Survivors)
            .unwrap_or_default()
    }

    /// Returns the time (milliseconds since the run began) and the live amount at each point.
    pub(crate) fn points(&self, timeline: &Timeline, points: &Points) -> Vec<(u64, Live)> {
        let at = |&range: &(usize, usize)| {
            (
                timeline.ticks[range.0].uptime_ms,
                self.live_at_point(timeline, range),
            )
        };
        points.ranges.iter().map(at).collect()
    }
}

/// The time at which growth began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// Milliseconds since the run began.
    pub uptime_ms: u64,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// False if the growth began at or before the end of the first time interval of the window.
    pub within: bool,
}
