//! Ranks sites or classes by how they grow, to find leaks.
//!
//! Garbage that is not yet collected counts as live, so the live amounts are compared only at times after GCs
//! ([`Points`]). The slope is a robust estimate (Theil-Sen) whose confidence interval includes the error of the
//! samples. The trend distinguishes amounts that still grow from amounts that grew and then stayed level.

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
/// Work is the number of bytes that all sites allocated. It counts as uneven if, at some point, two fractions differ by
/// more than this: the fraction of the work that was done, and the fraction of the time that has passed. Example: after
/// half of the time, three quarters of the work are done.
const UNEVEN_PART: f64 = 0.125;
/// Maximum number of points of a trend of live bytes over the work done (bytes allocated). Other trends are over time.
const PARTS_OF_WORK: usize = 64;
/// Number of groups into which points are divided to compute a trend. The trend is computed from the medians of the
/// groups.
const PARTS: usize = 8;
/// Growth counts as noise if it is at most the live bytes of all sites divided by this.
const NOISE_PART: u64 = 1000;

/// The kind of candidates that are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// Allocation sites. A site is one class and one stack.
    #[default]
    Site,
    /// Classes. All sites of a class are added up.
    Class,
}

/// A verdict on a candidate. The worst verdict comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The live amount certainly grows from one full GC to the next, and the growth continues.
    Leak,
    /// The live amount grows. But the growth is less certain, or slows down, or was not confirmed by a full GC.
    Growth,
    /// The live amount seems to grow, but there are too few GCs to be sure.
    Unclear,
    /// The live amount grew and then stayed level.
    Plateau,
    /// The live amount grew only at the start.
    Warmup,
    /// The live amount does not grow.
    Level,
}

impl Verdict {
    /// Returns the name used in reports.
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

/// A slope in whole units per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourlySlope {
    /// The Theil-Sen estimate.
    pub slope: i64,
    /// 95 % confidence interval of the slope, including the error of the samples. `None` with fewer than five points.
    pub ci95: Option<[i64; 2]>,
}

impl HourlySlope {
    /// Returns true if the whole 95 % confidence interval of the slope is positive.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.ci95.is_some_and(|[low, _]| low > 0)
    }
}

/// The trend over the work done (bytes allocated by all sites together) instead of over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerWork {
    /// How the live amount changes with the work done, such as steady growth or a plateau.
    pub trend: Trend,
    /// Growth in bytes per GiB allocated.
    pub bytes: HourlySlope,
}

/// The trend of the summed live amounts of several sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trending {
    /// The verdict.
    pub verdict: Verdict,
    /// How the live amount changes over time, such as steady growth or a plateau. Reports on dumps use the same names.
    pub trend: Trend,
    /// Live objects at the last point minus live objects at the first point.
    pub grown_objects: i64,
    /// Live bytes at the last point minus live bytes at the first point.
    pub grown_bytes: i64,
    /// Slope in bytes per hour.
    pub bytes: HourlySlope,
    /// Slope in objects per hour. Its confidence interval does not include the error of the samples.
    pub objects: HourlySlope,
    /// The trend per unit of work done instead of per hour. Set only if the work was uneven over time.
    pub per_work: Option<PerWork>,
    /// True if the live bytes grew from the first full GC to the last by more than the noise. The noise includes the
    /// error of the samples. `None` with fewer than two full GCs.
    pub across_major: Option<bool>,
    /// Fraction of the bytes allocated in the window that were not collected in it, in thousandths. `None` if no GC
    /// could find dead samples.
    pub survival_permille: Option<u64>,
}

/// If there are fewer points than this, slopes have no influence on the order of candidates.
const FEW_POINTS: usize = 10;

/// Sort key of a candidate. The worst candidate comes first. The candidates of one run, and those of several runs
/// together, are sorted only by this key.
///
/// Two candidates are compared by these figures, in this order:
///
/// 1. The verdict.
/// 2. If the candidate grows: the certain growth. This is the lower end of the slope's confidence interval, if that is
///    above zero. It is not used if the trace has fewer than ten points, because such a trace covers only the first
///    seconds of a JVM.
/// 3. If the candidate grows: the bytes grown.
/// 4. The live bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    /// The verdict.
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

    /// Combines the sort keys that a candidate has in two runs: takes the worse verdict, and adds up the numbers.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        let sum = |a: Reverse<i64>, b: Reverse<i64>| Reverse(a.0.saturating_add(b.0));
        Self {
            verdict: self.verdict.min(other.verdict),
            sure: sum(self.sure, other.sure),
            grown: sum(self.grown, other.grown),
            alive: Reverse(self.alive.0.saturating_add(other.alive.0)),
        }
    }
}

/// A site or class that is ranked.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The allocated class.
    pub class: Arc<str>,
    /// The sites that allocated the candidate's objects. If sites are ranked, there is exactly one. If classes are
    /// ranked, these are the sites of the class.
    pub sites: Vec<Site>,
    /// The live amount at the time [`Timeline::alive_at`].
    pub live: Live,
    /// Amount allocated in the window.
    pub allocated: Amount,
    /// Amount of the objects that were found dead in the window.
    pub collected: Amount,
    /// The trend of the live amount.
    pub trending: Trending,
    /// The sort key of the candidate.
    pub standing: Standing,
}

/// Ranked candidates, worst first.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The points in time that are compared.
    pub points: Points,
    /// The live amount of all sites at the time [`Timeline::alive_at`].
    pub live: Live,
    /// Amount allocated in the window.
    pub allocated: Amount,
    /// Amount of the objects that were found dead in the window.
    pub collected: Amount,
    /// All candidates (sites or classes) with objects that were live, allocated or collected in the window.
    pub candidates: Vec<Candidate>,
}

/// Ranks the sites or classes of a run's window, by [`Standing`].
///
/// Cost: the rows of the window are read once, with one index lookup per site in the file. Memory contains the rows of
/// one candidate at a time, and at most 64 figures of each candidate.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn rank(trace: &Trace, timeline: &Timeline, by: By) -> Result<Ranking, TraceError> {
    rank_groups(trace, timeline, |site| match by {
        By::Site => Some(site.id),
        By::Class => Some(0),
    })
}

/// Ranks groups of sites as [`rank`] does. Sites of one class for which `group` returns the same number are one
/// candidate. Sites for which `group` returns `None` are left out.
///
/// # Errors
/// Returns an error if the file cannot be read.
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
        ranking.live.amount = ranking.live.amount.saturating_add(live.amount);
        ranking.live.variance += live.variance;
        ranking.allocated = ranking.allocated.saturating_add(steps.allocated);
        ranking.collected = ranking.collected.saturating_add(steps.collected);
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
    // The sort is stable, so equal candidates stay in the order of class names and then of site ids.
    ranking.candidates.sort_by_key(|c| c.standing);
    Ok(ranking)
}

/// A point of a trend: its time in milliseconds, and the live amount at this time. In a trend by work, the first number
/// is the work done, in bytes.
type Moment = (u64, Live);

/// The live amounts of a candidate at the compared points in time.
pub(crate) struct Evidence {
    points: Vec<Moment>,
    /// Bytes that all sites together had allocated at each point. Empty if unknown.
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
                .map(|ends| ends.map(|range| steps.live_at_point(timeline, range))),
            allocated: steps.allocated,
            collected: steps.collected,
            survival_permille: steps.survival_permille(timeline),
        }
    }

    /// Returns the trend of the live amounts. Growth of at most `noise` bytes counts as no growth.
    pub(crate) fn trending(&self, basis: Basis, noise: u64) -> Trending {
        let (first, last) = match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => ((0, Live::default()), (0, Live::default())),
        };
        let sigma = self.growth_std_error(&first.1, &last.1);
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
        let by_time = time.judge(&known);
        let objects = time.slope(|live| live.amount.objects, 0.0);
        let by_work = self.live_by_work().map(|points| {
            let axis = Axis {
                points: &points,
                unit: BYTES_PER_GIB,
            };
            axis.judge(&known)
        });
        let verdict = match &by_work {
            None => by_time.verdict,
            Some(by_work) => self.combine_verdicts(by_time.verdict, by_work.verdict),
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

    /// Returns the verdict for a program that does not work evenly over time. `by_time` is the verdict on the live
    /// amounts over time. `by_work` is the verdict on the live amounts over the work done.
    ///
    /// The verdicts plateau, warm-up and level rule out growth. There are three cases:
    ///
    /// - Both verdicts rule out growth, or neither does: returns `by_time`.
    /// - Only `by_work` rules out growth, and the slope in the last third of the work is certainly small: returns
    ///   `by_work`.
    /// - Otherwise: returns the verdict that does not rule out growth. [`Verdict::Leak`] is weakened to
    ///   [`Verdict::Growth`].
    fn combine_verdicts(&self, by_time: Verdict, by_work: Verdict) -> Verdict {
        let acquits = |verdict| verdict > Verdict::Unclear;
        match (acquits(by_time), acquits(by_work)) {
            (true, false) => by_work.max(Verdict::Growth),
            (false, true) if self.work_end().is_some_and(has_slope_ended) => by_work,
            (false, true) => by_time.max(Verdict::Growth),
            _ => by_time,
        }
    }

    /// Splits the points into an earlier and a later list. The later list covers the last third of the work. The point
    /// at which it begins is in both lists.
    fn work_end(&self) -> Option<[&[Moment]; 2]> {
        let (first, last) = (*self.work.first()?, *self.work.last()?);
        let from = last - last.checked_sub(first)? / 3;
        let at = self.work.partition_point(|w| *w < from);
        Some([self.points.get(..=at)?, self.points.get(at..)?])
    }

    /// Returns the live amounts over the work done instead of over time. The work (bytes allocated) is divided into
    /// equal parts, and each part becomes one point with its median live amount. `None` if the work is unknown. Also
    /// `None` if the work was even over time, because then both trends would be the same.
    fn live_by_work(&self) -> Option<Vec<Moment>> {
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

    /// Returns the standard error of the growth from `first` to `last`. Samples that are alive at both points do not
    /// contribute. Three groups of samples contribute: the samples by which the amount grew, the samples collected
    /// between the two points, and the samples that replaced the collected ones. If more bytes were collected than were
    /// live at `first`, only the number of bytes live at `first` counts as collected.
    fn growth_std_error(&self, first: &Live, last: &Live) -> f64 {
        let ratio = [last, first]
            .iter()
            .find(|live| live.amount.bytes > 0)
            .map_or(0.0, |live| live.variance / live.amount.bytes as f64);
        let grown = last.amount.bytes.abs_diff(first.amount.bytes);
        let replaced = first.amount.bytes.min(self.collected.bytes);
        (ratio * (grown as f64 + 2.0 * replaced as f64)).sqrt()
    }
}

/// Values on which the verdict on a site or class depends, in addition to its live amounts.
struct Known {
    basis: Basis,
    noise: u64,
    sigma: f64,
    across_major: Option<bool>,
}

/// The result of a trend analysis, either over time or over work (bytes allocated).
struct Told {
    verdict: Verdict,
    trend: Trend,
    bytes: HourlySlope,
}

/// Live amounts along an axis. The axis is time, or work (bytes allocated).
struct Axis<'a> {
    points: &'a [Moment],
    /// Length of one unit of the slope: an hour in milliseconds (time), or a GiB in bytes (work).
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
        Slope::fit(&points).map_or_else(HourlySlope::default, |s| widen_interval(&s, sigma, units))
    }

    fn judge(&self, known: &Known) -> Told {
        let noise = known.noise;
        let bytes = self.slope(|live| live.amount.bytes, known.sigma);
        let trend = Course::from_points(&self.figures(), noise).trend;
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
            // If the rise is certain, a few level points at the end do not show that growth has ended.
            Trend::WarmUp | Trend::Plateau | Trend::Jump
                if bytes.is_sure() && !self.split(3).is_some_and(has_slope_ended) =>
            {
                grows
            }
            Trend::WarmUp => Verdict::Warmup,
            Trend::Plateau | Trend::Jump => Verdict::Plateau,
            // The curve of the live amount looks like growth, but the amount grew by no more than the noise, and the
            // slope is not certainly positive.
            _ if !bytes.is_sure() && grown <= i64::try_from(noise).unwrap_or(i64::MAX) => {
                Verdict::Level
            }
            Trend::Steady | Trend::Uneven | Trend::RisingSawtooth | Trend::Late
                if grows == Verdict::Growth
                    && bytes.is_sure()
                    && known.across_major == Some(true)
                    && known.basis != Basis::Survivors
                    && self.has_seen_enough()
                    && self.grows_in_second_half(noise) =>
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

    /// Divides the points into at most [`PARTS`] groups. Returns for each group the time of its middle point, and the
    /// median of its live bytes.
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

    /// Splits the points into an earlier and a later list. The later list covers the last `1 / part` of the time. The
    /// point at which it begins is in both lists.
    fn split(&self, part: u64) -> Option<[&[Moment]; 2]> {
        let (first, last) = (self.points.first()?.0, self.points.last()?.0);
        let from = last - (last - first) / part;
        let at = self.points.partition_point(|p| p.0 < from);
        Some([self.points.get(..=at)?, &self.points[at..]])
    }

    /// Returns true if the points suffice for the verdict leak: there are at least [`FEW_POINTS`] points, or the
    /// program had run before the first point for as long as the points span. Otherwise the growth may only be the
    /// start-up of the program.
    fn has_seen_enough(&self) -> bool {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return false;
        };
        self.points.len() >= FEW_POINTS || first.0 >= last.0 - first.0
    }

    /// Returns true if the second half of the time shows growth, too.
    fn grows_in_second_half(&self, noise: u64) -> bool {
        let grown = |points: &[Moment]| match points {
            [first, .., last] => {
                last.1.amount.bytes > first.1.amount.bytes.saturating_add(noise / 2)
            }
            _ => false,
        };
        self.split(2).is_some_and(|[_, since]| grown(since))
    }
}

/// Returns true if the slope after the split is certainly small: the upper end of its confidence interval is at most a
/// quarter of the growth rate before the split.
fn has_slope_ended([before, since]: [&[Moment]; 2]) -> bool {
    let (Some(first), Some(last)) = (before.first(), before.last()) else {
        return false;
    };
    let grown = last.1.amount.bytes as f64 - first.1.amount.bytes as f64;
    let rate = grown / last.0.saturating_sub(first.0).max(1) as f64;
    slope_upper_end(since).is_some_and(|upper| upper <= rate / 4.0)
}

/// Returns the upper end of the slope's 95 % confidence interval, in bytes per millisecond (or per byte of work).
/// `None` with fewer than `LEAST_POINTS` points.
fn slope_upper_end(points: &[Moment]) -> Option<f64> {
    if points.len() < LEAST_POINTS {
        return None;
    }
    let points: Vec<(f64, f64)> = points
        .iter()
        .map(|(t, live)| (*t as f64, live.amount.bytes as f64))
        .collect();
    Some(Slope::fit(&points)?.ci95?[1])
}

fn change(from: u64, to: u64) -> i64 {
    let change = i128::from(to) - i128::from(from);
    i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
}

/// Widens the confidence interval of the fitted line by the error of the samples. The two errors are independent.
fn widen_interval(slope: &Slope, sigma: f64, hours: f64) -> HourlySlope {
    let sampling = if hours > 0.0 {
        Z95 * sigma / hours
    } else {
        0.0
    };
    HourlySlope {
        // A cast with `as` saturates: it never overflows.
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

/// Returns one trend for the sites in `steps`: the trend of the sum of their live amounts.
#[must_use]
pub fn trending(steps: &Steps, timeline: &Timeline, points: &Points) -> Trending {
    Evidence::of(steps, timeline, points).trending(points.basis, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the verdict on live amounts after full GCs. Each point is a time in seconds and an amount in kilobytes.
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
    fn a_certain_slope_is_not_a_plateau_for_a_short_level_end() {
        // In this test, the last GCs are one second apart, and the others one minute.
        let times = [0, 60, 120, 180, 240, 300, 301, 302];
        assert_eq!(verdict(&series(&times, |t| 100 + t * 10)), Verdict::Growth);
        let times: Vec<u64> = (0..20).map(|i| i * 60).chain(1141..1150).collect();
        assert_eq!(
            verdict(&series(&times, |t| 100 + t.min(1140) * 10)),
            Verdict::Leak
        );
        // The verdict becomes plateau only if the level period is long and has many points.
        let times: Vec<u64> = (0..20).map(|i| i * 60).collect();
        assert_eq!(
            verdict(&series(&times, |t| 100 + t.min(300) * 10)),
            Verdict::Plateau
        );
    }

    #[test]
    fn a_few_points_of_a_heap_are_not_a_leak() {
        let times: Vec<u64> = (0..20).map(|i| i * 60).collect();
        let leak = |n: usize| verdict(&series(&times[..n], |t| 100 + t * 10));
        assert_eq!((leak(9), leak(10)), (Verdict::Growth, Verdict::Leak));
        // The program ran for longer before the first point (540) than from the first point to the last (480), so nine
        // points suffice.
        let later: Vec<u64> = (9..18).map(|i| i * 60).collect();
        assert_eq!(verdict(&series(&later, |t| 100 + t * 10)), Verdict::Leak);
    }

    #[test]
    fn growth_in_the_first_half_only_is_not_a_leak() {
        let times: Vec<u64> = (0..20).map(|i| i * 60).collect();
        let wavering = |t: u64| 5000 + t.min(540) * 10 + t / 60 % 2 * 1500;
        assert_ne!(verdict(&series(&times, wavering)), Verdict::Leak);
    }
}
