//! Which sites or classes leak: ranked by the trend of what stays.
//!
//! Garbage that has not been collected yet looks alive, so figures are compared after collections only
//! ([`Points`]). The slope is a robust one with its interval, widened by the error of the estimates; and a trend
//! tells what still grows from what filled up and stayed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use heapdiff_trend::{Course, LEAST_POINTS, Slope, Trend, Z95};

use crate::TraceError;
use crate::amount::Live;
use crate::history::{Basis, Points, Steps, Timeline};
use crate::read::{Amount, Site, Trace};

const MS_PER_HOUR: f64 = 3_600_000.0;
const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;
/// Work is uneven where its share differs from that of the time by more.
const UNEVEN_PART: f64 = 0.125;
/// The most figures by work.
const PARTS_OF_WORK: usize = 64;
/// Figures that a trend is computed from: medians of so many parts of the points.
const PARTS: usize = 8;
/// Growth below this part of all that is alive counts as no growth.
const NOISE_PART: u64 = 1000;

/// What is ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// Allocation sites: class and stack.
    #[default]
    Site,
    /// Classes, all sites of each together.
    Class,
}

/// What a candidate is taken for, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It grows for certain, across collections of the whole heap, and still does.
    Leak,
    /// It grows, but less surely, ever more slowly, or no major collection has tried it.
    Growth,
    /// It seems to grow; too few collections tell.
    Unclear,
    /// It grew and is full.
    Plateau,
    /// It grew at the start.
    Warmup,
    /// It does not grow.
    Level,
}

impl Verdict {
    /// As reports call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Growth => "growth",
            Self::Unclear => "unclear",
            Self::Plateau => "plateau",
            Self::Warmup => "warmup",
            Self::Level => "level",
        }
    }
}

/// A slope in whole units an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourlySlope {
    /// The Theil-Sen estimate.
    pub slope: i64,
    /// Its 95 % interval, that of the estimates included; none with fewer than five points.
    pub ci95: Option<[i64; 2]>,
}

impl HourlySlope {
    /// Whether it rises for certain.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.ci95.is_some_and(|[low, _]| low > 0)
    }
}

/// How figures went by the work done: by what all sites together allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerWork {
    /// As [`Trending::trend`].
    pub trend: Trend,
    /// Bytes for each GiB allocated.
    pub bytes: HourlySlope,
}

/// What some sites' figures say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trending {
    /// What it is taken for.
    pub verdict: Verdict,
    /// How the figures went, as reports of dumps call it.
    pub trend: Trend,
    /// The last point less the first.
    pub grown_objects: i64,
    /// The same in bytes.
    pub grown_bytes: i64,
    /// Bytes an hour.
    pub bytes: HourlySlope,
    /// Objects an hour, without an interval of the estimates.
    pub objects: HourlySlope,
    /// The same by the work done, where that was done unevenly.
    pub per_work: Option<PerWork>,
    /// Whether it grew from the first major collection to the last; none where there were not two.
    pub across_major: Option<bool>,
    /// Of the bytes allocated in the window, the part that was not collected in it, in thousandths; none where no
    /// collection could tell.
    pub survival_permille: Option<u64>,
}

/// Points of a trace that is too short for its slopes to tell which candidate is worse.
const FEW_POINTS: usize = 10;

/// Where a candidate stands among others: the one rule by which candidates are put in order, here and wherever
/// those of several runs are laid together. The worst is the least.
///
/// The verdict comes first. Among those that grow it is the low end of the slope's interval that counts, where
/// that is above zero: what a line grows by for certain. Between slopes that are not certain, and in
/// a trace too short for slopes (fewer than ten points, some seconds of a JVM that has just begun), the
/// bytes decide by which each has grown; and between those that do not grow, the bytes alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    /// What it is taken for.
    pub verdict: Verdict,
    sure: Reverse<i64>,
    grown: Reverse<i64>,
    alive: Reverse<u64>,
}

impl Standing {
    fn of(trending: &Trending, live: &Live, points: usize) -> Self {
        let grows = trending.verdict <= Verdict::Unclear;
        let sure = trending.bytes.ci95.map_or(0, |[low, _]| low.max(0));
        Self {
            verdict: trending.verdict,
            sure: Reverse(if grows && points >= FEW_POINTS {
                sure
            } else {
                0
            }),
            grown: Reverse(if grows { trending.grown_bytes } else { 0 }),
            alive: Reverse(live.amount.bytes),
        }
    }

    /// That of the same thing in two runs together: the worse verdict, and the sums.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let sum = |a: Reverse<i64>, b: Reverse<i64>| Reverse(a.0.saturating_add(b.0));
        Self {
            verdict: self.verdict.min(other.verdict),
            sure: sum(self.sure, other.sure),
            grown: sum(self.grown, other.grown),
            alive: Reverse(self.alive.0.saturating_add(other.alive.0)),
        }
    }
}

/// A candidate.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What is allocated.
    pub class: Arc<str>,
    /// The sites that do it; one when sites are ranked.
    pub sites: Vec<Site>,
    /// What is alive, at [`Timeline::alive_at`].
    pub live: Live,
    /// Allocated in the window.
    pub allocated: Amount,
    /// Collected in it.
    pub collected: Amount,
    /// What the figures say.
    pub trending: Trending,
    /// Its place among the others.
    pub standing: Standing,
}

/// Candidates, the worst first.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// What is compared.
    pub points: Points,
    /// What is alive, at [`Timeline::alive_at`], of all sites.
    pub live: Live,
    /// Allocated in the window.
    pub allocated: Amount,
    /// Collected in it.
    pub collected: Amount,
    /// All that were alive or allocated in the window.
    pub candidates: Vec<Candidate>,
}

/// Ranks what a run's window shows, by [`Standing`].
///
/// Cost: the rows of the window are read once, with a look into an index for each site of the file; memory for
/// those of one candidate at a time and 64 figures of each.
///
/// # Errors
/// The file cannot be read.
pub fn rank(trace: &Trace, timeline: &Timeline, by: By) -> Result<Ranking, TraceError> {
    rank_groups(trace, timeline, |site| match by {
        By::Site => Some(site.id),
        By::Class => Some(0),
    })
}

/// As [`rank`], of groups of a class's sites: those of one number are one candidate, those without one are left out.
///
/// # Errors
/// The file cannot be read.
pub fn rank_groups(
    trace: &Trace,
    timeline: &Timeline,
    mut group: impl FnMut(&Site) -> Option<i64>,
) -> Result<Ranking, TraceError> {
    let points = Points::of(timeline);
    let mut groups: BTreeMap<(Arc<str>, i64), Vec<Site>> = BTreeMap::new();
    for site in trace.sites()? {
        let Some(number) = group(&site) else { continue };
        let key = (Arc::clone(&site.class), number);
        groups.entry(key).or_default().push(site);
    }
    let mut ranking = Ranking {
        points,
        live: Live::default(),
        allocated: Amount::default(),
        collected: Amount::default(),
        candidates: Vec::new(),
    };
    let mut gathered = Vec::new();
    for ((class, _), sites) in groups {
        let ids: Vec<i64> = sites.iter().map(|s| s.id).collect();
        let steps = Steps::of(trace, timeline, &ids)?;
        let live = steps.alive(timeline);
        if live.amount == Amount::default()
            && steps.allocated == Amount::default()
            && steps.collected == Amount::default()
        {
            continue;
        }
        ranking.live.amount = ranking.live.amount.plus(live.amount);
        ranking.live.variance += live.variance;
        ranking.allocated = ranking.allocated.plus(steps.allocated);
        ranking.collected = ranking.collected.plus(steps.collected);
        let evidence = Evidence::of(&steps, timeline, &ranking.points);
        gathered.push((class, sites, live, evidence));
    }
    let noise = ranking.live.amount.bytes / NOISE_PART;
    ranking.candidates = gathered
        .into_iter()
        .map(|(class, sites, live, evidence)| {
            let trending = evidence.trending(ranking.points.basis, noise);
            Candidate {
                class,
                sites,
                live,
                allocated: evidence.allocated,
                collected: evidence.collected,
                trending,
                standing: Standing::of(&trending, &live, ranking.points.len()),
            }
        })
        .collect();
    // Equals stay as they are: by the names of their classes, then by their sites' rows.
    ranking.candidates.sort_by_key(|c| c.standing);
    Ok(ranking)
}

/// A time in milliseconds (or the work done until then, in bytes), and what was alive then.
type Moment = (u64, Live);

/// The figures of a candidate at the points.
pub(crate) struct Evidence {
    points: Vec<Moment>,
    /// What all sites together had allocated at each of them; empty where that is not known.
    work: Vec<u64>,
    across: Option<[Live; 2]>,
    allocated: Amount,
    collected: Amount,
    survival_permille: Option<u64>,
}

impl Evidence {
    pub(crate) fn of(steps: &Steps, timeline: &Timeline, points: &Points) -> Self {
        Self {
            points: steps.points(timeline, points),
            work: Steps::work(timeline, points),
            across: points
                .across
                .map(|ends| ends.map(|range| steps.left(timeline, range))),
            allocated: steps.allocated,
            collected: steps.collected,
            survival_permille: steps.survival_permille(timeline),
        }
    }

    /// Growth up to `noise` bytes counts as no growth.
    pub(crate) fn trending(&self, basis: Basis, noise: u64) -> Trending {
        let (first, last) = match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => ((0, Live::default()), (0, Live::default())),
        };
        let sigma = self.sigma(&first.1, &last.1);
        let noise = noise.max((Z95 * sigma) as u64);
        let across_major = self
            .across
            .map(|[first, last]| last.amount.bytes > first.amount.bytes.saturating_add(noise));
        let known = Known {
            basis,
            noise,
            sigma,
            across_major,
        };
        let time = Axis {
            points: &self.points,
            unit: MS_PER_HOUR,
        };
        let by_time = time.told(&known);
        let objects = time.slope(|live| live.amount.objects, 0.0);
        let by_work = self.by_work().map(|points| {
            let axis = Axis {
                points: &points,
                unit: BYTES_PER_GIB,
            };
            axis.told(&known)
        });
        let verdict = match &by_work {
            None => by_time.verdict,
            Some(by_work) => self.of_both(by_time.verdict, by_work.verdict),
        };
        Trending {
            verdict,
            trend: by_time.trend,
            grown_objects: change(first.1.amount.objects, last.1.amount.objects),
            grown_bytes: change(first.1.amount.bytes, last.1.amount.bytes),
            bytes: by_time.bytes,
            objects,
            per_work: by_work.map(|told| PerWork {
                trend: told.trend,
                bytes: told.bytes,
            }),
            across_major,
            survival_permille: self.survival_permille,
        }
    }

    /// What is said where the load was uneven: growth is over if neither the clock nor the work done shows it. A level
    /// time that is short, but in which much of the work was done, is enough where the clock shows no growth in it.
    fn of_both(&self, by_time: Verdict, by_work: Verdict) -> Verdict {
        let acquits = |verdict| verdict > Verdict::Unclear;
        match (acquits(by_time), acquits(by_work)) {
            (true, false) => by_work.max(Verdict::Growth),
            (false, true) if self.work_end().is_some_and(end_is_shown) => by_work,
            (false, true) => by_time.max(Verdict::Growth),
            _ => by_time,
        }
    }

    /// The points in the last third of the work, and those before them with the first of these.
    fn work_end(&self) -> Option<[&[Moment]; 2]> {
        let (first, last) = (*self.work.first()?, *self.work.last()?);
        let from = last - last.checked_sub(first)? / 3;
        let at = self.work.partition_point(|w| *w < from);
        Some([self.points.get(..=at)?, self.points.get(at..)?])
    }

    /// What was alive by the work done instead of the time: the medians of equal parts of the work. `None` where that is
    /// not known, or was done evenly, so that it would say the same.
    fn by_work(&self) -> Option<Vec<Moment>> {
        let (first, last) = (self.points.first()?.0, self.points.last()?.0);
        let (begin, end) = (*self.work.first()?, *self.work.last()?);
        let (time, done) = (last.checked_sub(first)?, end.checked_sub(begin)?);
        if time == 0 || done == 0 || self.work.len() != self.points.len() {
            return None;
        }
        let both = || self.points.iter().zip(&self.work);
        let part = |some: u64, all: u64| some as f64 / all as f64;
        let is_uneven = both().any(|((t, _), w)| {
            let [by_time, by_work] = [
                part(t.saturating_sub(first), time),
                part(w.saturating_sub(begin), done),
            ];
            (by_time - by_work).abs() > UNEVEN_PART
        });
        if !is_uneven {
            return None;
        }
        let count = self.points.len().min(PARTS_OF_WORK) as u128;
        let bin = |w: u64| u128::from(w - begin) * count / (u128::from(done) + 1);
        let points: Vec<Moment> = both().map(|((_, live), w)| (*w, *live)).collect();
        let medians = points.chunk_by(|a, b| bin(a.0) == bin(b.0)).map(|part| {
            let mut figures: Vec<Live> = part.iter().map(|(_, live)| *live).collect();
            figures.sort_by_key(|live| live.amount.bytes);
            (part[part.len() / 2].0, figures[figures.len() / 2])
        });
        Some(medians.collect())
    }

    /// Standard error of the growth. Samples that were there at both ends cancel; the growth itself is
    /// of others, and so are at most as many of the first as were collected meanwhile, and what came in their place.
    fn sigma(&self, first: &Live, last: &Live) -> f64 {
        let ratio = [last, first]
            .iter()
            .find(|live| live.amount.bytes > 0)
            .map_or(0.0, |live| live.variance / live.amount.bytes as f64);
        let grown = last.amount.bytes.abs_diff(first.amount.bytes);
        let replaced = first.amount.bytes.min(self.collected.bytes);
        (ratio * (grown as f64 + 2.0 * replaced as f64)).sqrt()
    }
}

/// What is known besides the figures.
struct Known {
    basis: Basis,
    noise: u64,
    sigma: f64,
    across_major: Option<bool>,
}

/// What figures say on one axis.
struct Told {
    verdict: Verdict,
    trend: Trend,
    bytes: HourlySlope,
}

/// Figures by time, or by work: bytes allocated.
struct Axis<'a> {
    points: &'a [Moment],
    /// What slopes are counted by.
    unit: f64,
}

impl Axis<'_> {
    fn slope(&self, figure: fn(&Live) -> u64, sigma: f64) -> HourlySlope {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return HourlySlope::default();
        };
        let points: Vec<(f64, f64)> = self
            .points
            .iter()
            .map(|(t, live)| (*t as f64 / self.unit, figure(live) as f64))
            .collect();
        let units = last.0.saturating_sub(first.0) as f64 / self.unit;
        Slope::of(&points).map_or_else(HourlySlope::default, |s| widened(&s, sigma, units))
    }

    fn told(&self, known: &Known) -> Told {
        let noise = known.noise;
        let bytes = self.slope(|live| live.amount.bytes, known.sigma);
        let trend = Course::of(&self.figures(), noise).trend;
        let grown = match self.points {
            [first, .., last] => change(first.1.amount.bytes, last.1.amount.bytes),
            _ => 0,
        };
        let grows = if known.basis == Basis::Ticks || bytes.ci95.is_none() {
            Verdict::Unclear
        } else {
            Verdict::Growth
        };
        let verdict = match trend {
            Trend::Level | Trend::Sawtooth => Verdict::Level,
            // What rises for certain is not over because a few points of the last moments do not.
            Trend::WarmUp | Trend::Plateau | Trend::Jump
                if bytes.is_sure() && !self.split(3).is_some_and(end_is_shown) =>
            {
                grows
            }
            Trend::WarmUp => Verdict::Warmup,
            Trend::Plateau | Trend::Jump => Verdict::Plateau,
            // Larger than ever, but where it ends is where it began.
            _ if !bytes.is_sure() && grown <= i64::try_from(noise).unwrap_or(i64::MAX) => {
                Verdict::Level
            }
            Trend::Steady | Trend::Uneven | Trend::RisingSawtooth | Trend::Late
                if grows == Verdict::Growth
                    && bytes.is_sure()
                    && known.across_major == Some(true)
                    && known.basis != Basis::Survivors
                    && self.has_seen_enough()
                    && self.goes_on(noise) =>
            {
                Verdict::Leak
            }
            _ => grows,
        };
        Told {
            verdict,
            trend,
            bytes,
        }
    }

    /// Medians of parts of the points, each at the time of the point in its middle.
    fn figures(&self) -> Vec<(u64, u64)> {
        let parts = self.points.len().min(PARTS);
        (0..parts)
            .map(|i| {
                let range = i * self.points.len() / parts..(i + 1) * self.points.len() / parts;
                let part = &self.points[range];
                let mut bytes: Vec<u64> = part.iter().map(|(_, l)| l.amount.bytes).collect();
                bytes.sort_unstable();
                (part[part.len() / 2].0, bytes[bytes.len() / 2])
            })
            .collect()
    }

    /// The points of the last part of the time, and those before them with the first of these.
    fn split(&self, part: u64) -> Option<[&[Moment]; 2]> {
        let (first, last) = (self.points.first()?.0, self.points.last()?.0);
        let from = last - (last - first) / part;
        let at = self.points.partition_point(|p| p.0 < from);
        Some([self.points.get(..=at)?, &self.points[at..]])
    }

    /// Whether there are more moments than a program has that has just begun, or it had run for as long before.
    fn has_seen_enough(&self) -> bool {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return false;
        };
        self.points.len() >= FEW_POINTS || first.0 >= last.0 - first.0
    }

    /// Whether the later half of the time shows growth as well.
    fn goes_on(&self, noise: u64) -> bool {
        let grown = |points: &[Moment]| match points {
            [first, .., last] => {
                last.1.amount.bytes > first.1.amount.bytes.saturating_add(noise / 2)
            }
            _ => false,
        };
        self.split(2).is_some_and(|[_, since]| grown(since))
    }
}

/// Whether the slope of the second of two parts, at the upper end of its interval, is small against the growth in the
/// first.
fn end_is_shown([before, since]: [&[Moment]; 2]) -> bool {
    let (Some(first), Some(last)) = (before.first(), before.last()) else {
        return false;
    };
    let grown = last.1.amount.bytes as f64 - first.1.amount.bytes as f64;
    let rate = grown / last.0.saturating_sub(first.0).max(1) as f64;
    upper(since).is_some_and(|upper| upper <= rate / 4.0)
}

/// The upper end of a slope's 95 % interval, in bytes a millisecond; none with too few points.
fn upper(points: &[Moment]) -> Option<f64> {
    if points.len() < LEAST_POINTS {
        return None;
    }
    let points: Vec<(f64, f64)> = points
        .iter()
        .map(|(t, live)| (*t as f64, live.amount.bytes as f64))
        .collect();
    Some(Slope::of(&points)?.ci95?[1])
}

fn change(from: u64, to: u64) -> i64 {
    let change = i128::from(to) - i128::from(from);
    i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
}

/// The interval of the line and that of the estimates, which have nothing to do with each other.
fn widened(slope: &Slope, sigma: f64, hours: f64) -> HourlySlope {
    let sampling = if hours > 0.0 {
        Z95 * sigma / hours
    } else {
        0.0
    };
    HourlySlope {
        // `as` saturates.
        slope: slope.slope.round() as i64,
        ci95: slope.ci95.map(|[low, high]| {
            let below = (slope.slope - low).hypot(sampling);
            let above = (high - slope.slope).hypot(sampling);
            [
                (slope.slope - below).floor() as i64,
                (slope.slope + above).ceil() as i64,
            ]
        }),
    }
}

/// What some sites' figures say together, without a ranking.
#[must_use]
pub fn trending(steps: &Steps, timeline: &Timeline, points: &Points) -> Trending {
    Evidence::of(steps, timeline, points).trending(points.basis, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of figures in kilobytes at seconds, from collections of the whole heap.
    fn verdict(points: &[(u64, u64)]) -> Verdict {
        let live = |kb: u64| Live {
            amount: Amount {
                samples: kb,
                objects: kb,
                bytes: kb * 1000,
            },
            variance: 0.0,
        };
        let evidence = Evidence {
            points: points.iter().map(|&(s, kb)| (s * 1000, live(kb))).collect(),
            work: Vec::new(),
            across: Some([live(points[0].1), live(points[points.len() - 1].1)]),
            allocated: Amount::default(),
            collected: Amount::default(),
            survival_permille: None,
        };
        evidence.trending(Basis::Major, 10_000).verdict
    }

    fn series(times: &[u64], figure: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        times.iter().map(|&t| (t, figure(t))).collect()
    }

    #[test]
    fn a_slope_that_is_sure_is_no_plateau_for_the_last_moments() {
        // The last collections lie a second apart.
        let times = [0, 60, 120, 180, 240, 300, 301, 302];
        assert_eq!(verdict(&series(&times, |t| 100 + t * 10)), Verdict::Growth);
        let times: Vec<u64> = (0..20).map(|i| i * 60).chain(1141..1150).collect();
        assert_eq!(
            verdict(&series(&times, |t| 100 + t.min(1140) * 10)),
            Verdict::Leak
        );
        // It is one after a time that is not short, of which enough points are known.
        let times: Vec<u64> = (0..20).map(|i| i * 60).collect();
        assert_eq!(
            verdict(&series(&times, |t| 100 + t.min(300) * 10)),
            Verdict::Plateau
        );
    }

    #[test]
    fn a_few_moments_of_a_heap_are_no_leak() {
        let times: Vec<u64> = (0..20).map(|i| i * 60).collect();
        let leak = |n: usize| verdict(&series(&times[..n], |t| 100 + t * 10));
        assert_eq!((leak(9), leak(10)), (Verdict::Growth, Verdict::Leak));
        // A program that had run for as long before.
        let later: Vec<u64> = (9..18).map(|i| i * 60).collect();
        assert_eq!(verdict(&series(&later, |t| 100 + t * 10)), Verdict::Leak);
    }

    #[test]
    fn what_grew_in_the_first_half_only_is_no_leak() {
        let times: Vec<u64> = (0..20).map(|i| i * 60).collect();
        let wavering = |t: u64| 5000 + t.min(540) * 10 + t / 60 % 2 * 1500;
        assert_ne!(verdict(&series(&times, wavering)), Verdict::Leak);
    }
}
