//! What was alive of some sites over time, as steps: figures change where rows say so and stay in between.

use std::collections::{BTreeMap, HashMap};

use heapdiff_trend::onset;

use crate::TraceError;
use crate::amount::{Amount, Live};
use crate::read::{Collection, Run, Tick, Trace};
use crate::window::Window;

/// The most points that a trend is computed from.
const MOST_POINTS: usize = 64;
/// Of fewer samples taken it is not clear when how much was allocated.
const ENOUGH_FOR_WORK: u64 = 1000;
/// Fewer major collections than that say too little of a trend.
const LEAST_MAJOR: usize = heapdiff_trend::LEAST_POINTS;

/// The ticks and collections of a part of a run.
#[derive(Clone, Debug)]
pub struct Timeline {
    run: i64,
    ticks: Vec<Tick>,
    index: HashMap<i64, usize>,
    collections: Vec<Collection>,
    /// Whether what is alive was looked for a few times only, in a recording.
    survivors: bool,
    /// Bytes that all sites together had allocated at the end of each tick, since the window began; empty where
    /// samples are too few to tell.
    work: Vec<u64>,
    /// Where only major collections find dead samples: the last of each tick that one ended in.
    majors: Option<BTreeMap<usize, Major>>,
}

/// A major collection of generational ZGC.
///
/// It finds dead what was in the old generation when it began, and takes what was young for alive, as minor
/// collections do. So of what was allocated after the newest sample that any of them has found dead, nothing can be
/// found dead yet; and what was allocated before that and is there has outlived it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Major {
    /// When it ended, milliseconds since the run began.
    ended_ms: u64,
    /// What was allocated later has not been tried; none: not known.
    tried_ms: Option<u64>,
}

impl Major {
    /// What was allocated later may be dead: where it is not known how far it has looked, what came after its end.
    fn until_ms(&self) -> u64 {
        self.tried_ms.unwrap_or(self.ended_ms)
    }
}

/// An object is in the old generation for certain after as many young collections: ZGC's largest threshold is 15, and
/// one may have begun before the object was allocated.
const CERTAINLY_OLD: usize = 17;

/// Whether it is of generational ZGC, whose minor and major collections are named.
fn is_generational_z(collection: &Collection) -> bool {
    keeps_samples(collection) || collection.collector.contains("ZGC Major")
}

/// Collections of a young generation of ZGC. They take what weak and phantom references refer to for alive: samples
/// are found to be dead by major collections only.
fn keeps_samples(collection: &Collection) -> bool {
    collection.collector.contains("ZGC Minor")
}

/// What the figures of what is alive are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliveAt {
    /// The window's end.
    End,
    /// The last major collection: what came since may be garbage that no collection has found.
    Major {
        /// When it ended, in milliseconds since the run began.
        uptime_ms: u64,
        /// The figures are of what was allocated by then and has outlived it. None: it is not known how far it has
        /// looked, and figures are the most that may be alive.
        tried_ms: Option<u64>,
    },
    /// Nothing: no major collection was seen, so that dead samples are among them.
    Unknown,
}

impl AliveAt {
    /// As reports call it.
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
    /// Reads the ticks and collections of a run's window.
    ///
    /// Cost: in time and memory, the window's ticks and collections.
    ///
    /// # Errors
    /// The file cannot be read.
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
            timeline.majors = Some(timeline.majors_after(tried));
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

    /// The work done until the end of each tick: all that was allocated.
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

    /// The major collections of generational ZGC. `newest` is when the newest sample was allocated that was found dead
    /// before these ticks.
    fn majors_after(&self, mut newest: Option<u64>) -> BTreeMap<usize, Major> {
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
            // Beside those of which it is known how far they have looked, the others tell nothing.
            if major.tried_ms.is_some() || !is_told {
                majors.insert(at, major);
            }
        }
        majors
    }

    /// What the figures of what is alive are of.
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

    /// The ticks of the window, oldest first.
    #[must_use]
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// The collections of the window, oldest first.
    #[must_use]
    pub fn collections(&self) -> &[Collection] {
        &self.collections
    }

    /// The ticks at the ends of which something collected before can be missing from what is alive: the one
    /// that a collection ended in, and the next, in which the agent's thread has surely looked.
    fn after(&self, collection: &Collection) -> Option<(usize, usize)> {
        let at = self
            .ticks
            .partition_point(|t| t.uptime_ms < collection.uptime_ms);
        let last = self.ticks.len().checked_sub(1)?;
        (at <= last).then(|| (at, (at + 1).min(last)))
    }

    /// Whether a collection that ended in this tick tells what is alive.
    fn tells(&self, tick: usize) -> bool {
        let majors = self.majors.as_ref();
        majors.is_none_or(|majors| majors.contains_key(&tick))
    }

    /// The bounds of the window's rows of `tick`.
    fn rows(&self) -> Option<(i64, i64)> {
        let ids = || self.ticks.iter().map(|t| t.id);
        Some((ids().min()?, ids().max()?))
    }
}

/// What the points of a trend are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// What is alive after collections of the whole heap: surely not garbage.
    Major,
    /// The least that is alive between collections of any kind: garbage that is old may be among it.
    Collections,
    /// The least in equal parts of the time: nothing was collected.
    Ticks,
    /// The same, of what a recording found alive at its last look, by when that was allocated. What was
    /// alive before and was not found any more is not known, so a cache whose content changes seems to grow.
    Survivors,
}

impl Basis {
    /// As reports call it.
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

/// The moments at which what is alive is compared: runs of ticks of which each counts with its least figure.
#[derive(Clone, Debug)]
pub struct Points {
    /// What they are.
    pub basis: Basis,
    pub(crate) ranges: Vec<(usize, usize)>,
    /// The first and the last major collection.
    pub(crate) across: Option<[(usize, usize); 2]>,
    /// Major collections of the window.
    pub majors: usize,
    /// All collections of the window.
    pub collections: usize,
}

impl Points {
    /// Those of a window: after major collections where there are five or more.
    #[must_use]
    pub fn of(timeline: &Timeline) -> Self {
        let all = timeline.collections();
        let tells = |c: &&Collection| !keeps_samples(c);
        let ranges = |major: bool| {
            let chosen = all.iter().filter(tells).filter(|c| c.major || !major);
            let after = chosen.filter_map(|c| timeline.after(c));
            one_for_one(after.filter(|range| timeline.tells(range.0)))
        };
        let (major, any) = (ranges(true), ranges(false));
        let across = match &major[..] {
            [first, .., last] => Some([*first, *last]),
            _ => None,
        };
        let ticks = || -> Vec<(usize, usize)> {
            let ticks = 0..timeline.ticks.len();
            joined(&ticks.map(|i| (i, i)).collect::<Vec<_>>())
        };
        let (basis, ranges) = if timeline.survivors {
            (Basis::Survivors, ticks())
        } else if major.len() >= LEAST_MAJOR {
            (Basis::Major, thinned(&major))
        } else if !any.is_empty() {
            (Basis::Collections, joined(&any))
        } else {
            (Basis::Ticks, ticks())
        };
        Self {
            basis,
            ranges,
            across,
            majors: cycles(all),
            collections: all.len(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The last tick that counts: what is alive behind it has not been through a collection.
    fn end(&self) -> Option<usize> {
        self.ranges.last().map(|r| r.1)
    }
}

/// Two collections between which nothing can be told apart are one: those of G1's Remark and Cleanup.
fn one_for_one(ranges: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for range in ranges {
        match all.last() {
            Some(last) if range.0 <= last.0 || range.0 == last.1 && range.1 == last.1 => {}
            _ => all.push(range),
        }
    }
    all
}

/// Collections of the whole heap, the pauses of one concurrent cycle counted once.
fn cycles(all: &[Collection]) -> usize {
    /// Pauses of one cycle are nearer to each other than two cycles.
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

/// As many as are wanted, evenly.
fn thinned(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let count = ranges.len().min(MOST_POINTS);
    let pick = |i: usize| ranges[i * (ranges.len() - 1) / (count - 1).max(1)];
    (0..count).map(pick).collect()
}

/// Neighbours joined, so that as many are left as are wanted and each holds three where there are enough: the
/// young generation's collections leave old garbage, and the least of a few is nearer to what stays.
fn joined(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
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

/// What some sites did in a window, together.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// What was alive before the window's first tick.
    before: Live,
    /// What is alive from a tick on.
    at: Vec<(usize, Live)>,
    /// Allocated in each tick in which something was.
    came: BTreeMap<usize, Amount>,
    /// Allocated in the window.
    pub allocated: Amount,
    /// Collected in it.
    pub collected: Amount,
}

/// Sums that may pass below zero in between.
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
    /// Reads what happened at some sites.
    ///
    /// Cost: in time and memory, the window's rows of these sites, and a look into an index for each site.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(trace: &Trace, timeline: &Timeline, sites: &[i64]) -> Result<Self, TraceError> {
        let mut steps = Self::default();
        let Some((first, last)) = timeline.rows() else {
            return Ok(steps);
        };
        let mut before = Change::default();
        let mut changes: Vec<(usize, Live, i128)> = Vec::new();
        for &site in sites {
            trace.check_deadline()?;
            // Ids of a run's ticks grow with time, though other runs may have some in between.
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
                steps.allocated = steps.allocated.plus(row.allocated);
                let came = steps.came.entry(i).or_default();
                *came = came.plus(row.allocated);
                steps.collected = steps.collected.plus(row.collected);
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

    /// What is alive at the end of a tick.
    fn at(&self, tick: usize) -> Live {
        let behind = self.at.partition_point(|(i, _)| *i <= tick);
        match behind.checked_sub(1) {
            Some(last) => self.at[last].1,
            None => self.before,
        }
    }

    /// The least that is alive at the ends of some ticks.
    pub(crate) fn least(&self, (first, last): (usize, usize)) -> Live {
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

    /// What was alive at these ticks of a point: the least; of a major collection of generational ZGC what it has left.
    pub(crate) fn left(&self, timeline: &Timeline, range: (usize, usize)) -> Live {
        match timeline.majors.as_ref().and_then(|m| m.get(&range.0)) {
            Some(major) => self.left_by(timeline, range.0, major),
            None => self.least(range),
        }
    }

    /// What a major collection has left that ended in a tick: what is alive when the agent has looked, less what was
    /// allocated since the moment up to which it has looked, of which nothing was found to be dead.
    fn left_by(&self, timeline: &Timeline, at: usize, major: &Major) -> Live {
        let of = |last: usize| {
            let (since, variance) = self.came_since(timeline, major.until_ms(), last);
            let live = self.at(last);
            (live, live.amount.less(since), variance)
        };
        let mut left = of(at);
        let next = at + 1;
        let is_next_plain = timeline
            .majors
            .as_ref()
            .is_some_and(|m| !m.contains_key(&next));
        if next < timeline.ticks.len() && is_next_plain {
            // The agent may have been late.
            let later = of(next);
            if later.1.bytes < left.1.bytes {
                left = later;
            }
        }
        let (live, amount, variance) = left;
        // As uncertain as its part of the samples, and as what is taken away.
        let part = amount.bytes as f64 / live.amount.bytes.max(1) as f64;
        Live {
            amount,
            variance: live.variance * part + variance,
        }
    }

    /// What was allocated after a moment, up to the end of a tick; of the tick that it lies in a part, which has a
    /// variance of its own.
    fn came_since(&self, timeline: &Timeline, uptime_ms: u64, last: usize) -> (Amount, f64) {
        let first = timeline.ticks.partition_point(|t| t.uptime_ms <= uptime_ms);
        if first > last {
            return (Amount::default(), 0.0);
        }
        let whole = self.came.range(first + 1..last + 1);
        let whole = whole.fold(Amount::default(), |sum, (_, came)| sum.plus(*came));
        let came = self.came.get(&first).copied().unwrap_or_default();
        let tick = &timeline.ticks[first];
        let span = tick.span_ms.max(1);
        let after = (tick.uptime_ms - uptime_ms).min(span);
        let share = after as f64 / span as f64;
        let each = came.bytes as f64 / came.samples.max(1) as f64;
        let variance = came.samples as f64 * share * (1.0 - share) * each * each;
        (whole.plus(came.part(after, span)), variance)
    }

    /// What is alive as far as it is known: at [`Timeline::alive_at`]. Where that is not known, all of which no
    /// collection has shown that it is dead.
    #[must_use]
    pub fn alive(&self, timeline: &Timeline) -> Live {
        match timeline.majors.as_ref().and_then(BTreeMap::last_key_value) {
            Some((&at, major)) => self.left_by(timeline, at, major),
            None => self.last(),
        }
    }

    /// The part of what was allocated in the window that was not collected in it, in thousandths; none where no
    /// collection could tell. What came since the last that could is in neither.
    #[must_use]
    pub fn survival_permille(&self, timeline: &Timeline) -> Option<u64> {
        let allocated = match timeline.majors.as_ref().map(BTreeMap::last_key_value) {
            None => self.allocated,
            Some(None) => return None,
            Some(Some(_)) => {
                let since = self.last().amount.less(self.alive(timeline).amount);
                self.allocated.less(since)
            }
        };
        let stayed = allocated.bytes.saturating_sub(self.collected.bytes);
        let permille = (u128::from(stayed) * 1000).checked_div(u128::from(allocated.bytes));
        Some(permille.and_then(|p| u64::try_from(p).ok()).unwrap_or(0))
    }

    /// What is alive from the end of a tick on, for each tick that changed it, oldest first.
    pub fn changes<'a>(
        &'a self,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = (&'a Tick, &'a Live)> {
        let tick = |(i, live): &'a (usize, Live)| Some((timeline.ticks.get(*i)?, live));
        self.at.iter().filter_map(tick)
    }

    /// What is alive at the window's end.
    #[must_use]
    pub fn last(&self) -> Live {
        self.at.last().map_or(self.before, |(_, live)| *live)
    }

    /// What was alive before the window's first tick.
    #[must_use]
    pub fn before(&self) -> Live {
        self.before
    }

    /// When what stays began to grow, in milliseconds since the run began. What stays at a moment is the least
    /// that is alive from there up to the last collection, so garbage that is collected later does
    /// not count. None where nothing grows.
    ///
    /// Cost: linear in the window's ticks.
    #[must_use]
    pub fn began(&self, timeline: &Timeline, points: &Points) -> Option<Began> {
        let end = points.end()?;
        let mut stays = Vec::with_capacity(end + 1);
        let mut least = u64::MAX;
        let majors = timeline.majors.as_ref().filter(|m| !m.is_empty());
        for i in (0..=end).rev() {
            match majors.map(|m| m.get(&i)) {
                None => least = least.min(self.at(i).amount.bytes),
                Some(Some(_)) => least = least.min(self.left(timeline, (i, i)).amount.bytes),
                // Nothing is found to be dead here.
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

    /// What is alive over the window in at most `most` parts of it: the least of each, with the time of the
    /// part's end. Where only major collections find dead samples, what the last one has left.
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
                    Some((&at, _)) => self.left(timeline, (at, at)),
                    None => self.least((first, last)),
                };
                (timeline.ticks[last], live)
            })
            .collect()
    }

    /// What all sites together had allocated at each point; empty where that is not known.
    pub(crate) fn work(timeline: &Timeline, points: &Points) -> Vec<u64> {
        let at = |range: &(usize, usize)| timeline.work.get(range.0).copied();
        let work: Option<Vec<u64>> = points.ranges.iter().map(at).collect();
        work.filter(|_| points.basis != Basis::Survivors)
            .unwrap_or_default()
    }

    /// Time (since the run began, milliseconds) and figures at each point.
    pub(crate) fn points(&self, timeline: &Timeline, points: &Points) -> Vec<(u64, Live)> {
        let at = |&range: &(usize, usize)| {
            (
                timeline.ticks[range.0].uptime_ms,
                self.left(timeline, range),
            )
        };
        points.ranges.iter().map(at).collect()
    }
}

/// When something began to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// Milliseconds since the run began.
    pub uptime_ms: u64,
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// False: it grew from the window's first tick on, perhaps since before.
    pub within: bool,
}
