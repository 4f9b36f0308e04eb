//! Extrapolates a rising series to a limit.
//!
//! The series is the used heap after each full GC, or the reachable bytes of each dump. The limit is the maximum heap.

use crate::series::Course;
use crate::slope::{LEAST_POINTS, Slope, Z95};

/// Maximum number of points used. A longer series is divided into this number of groups of neighbouring points. Each
/// group is replaced by one point, its median.
const MOST_POINTS: usize = 128;
/// Maximum number of groups into which the points are divided to measure how much the rate varies.
const GROUPS: usize = 9;
/// 97.5 % quantiles of Student's t distribution, for 1 to 7 degrees of freedom.
const T95: [f64; 7] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365];
/// The rates of two parts of a series count as different only if they differ by more than 1/`RATE_PART` of the larger
/// rate.
const RATE_PART: f64 = 8.0;
/// A series counts as growing only if it grew by at least the limit divided by this number.
const LIMIT_PART: f64 = 1000.0;
/// Part of the maximum heap that may stay unavailable to live objects. Examples are the survivor spaces of the Serial
/// and Parallel collectors.
const KEPT_PART: f64 = 0.05;
/// Part of the maximum heap by which a figure may be too high. After a concurrent GC, the figure still includes objects
/// that died during the GC.
const DEAD_PART: f64 = 0.03;
/// The variance of the growth between groups has two causes: variation of the rate, and noise of single points. At
/// least 1/`NOISE_PART` of this variance counts as variation of the rate.
const NOISE_PART: f64 = 4.0;
/// The last quarter of a rising series must be higher than each earlier quarter by more than 1/`HIGH_PART` of the
/// growth.
const HIGH_PART: f64 = 32.0;
/// Number of parts into which a series is divided to compare the lowest and the highest figures of the parts. The parts
/// have about the same number of points.
const QUARTERS: usize = 4;
/// To classify a series, its points are divided into this number of groups, as in the ranking of a trace. The median of
/// each group is used.
const PARTS: usize = 8;
/// In a normal distribution, the standard deviation is the median of the absolute deviations multiplied by this factor.
const MAD: f64 = 1.4826;

/// The state of a series at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rising {
    /// The series still rises: the 95 % interval of its slope is above zero.
    Yes,
    /// The 95 % interval of the slope is above zero, but the last quarter is not higher than all earlier quarters. The
    /// series may be a sawtooth.
    Unclear,
    /// The series does not rise, or its slope may be zero, or the series rose and then stayed level.
    No,
}

/// A rise at the end of a series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rise {
    /// The state at the end of the series.
    pub rising: Rising,
    /// Time of the first point used. Earlier points were discarded because of their different slope, for example during
    /// a warm-up.
    pub since: f64,
    /// Slope from the time `since` on.
    pub slope: Slope,
    /// Level at the end of the series, without noise.
    pub level: f64,
    /// Time of the last point.
    end: f64,
    /// Standard deviation of the distance between the points and the fitted line.
    scatter: f64,
    /// Standard deviation of the growth in one unit of time. `quantile` is the quantile of Student's t distribution for
    /// its degrees of freedom.
    drift: f64,
    quantile: f64,
    span: f64,
    /// Slope of the second half of the points minus the slope of the first half.
    bend: f64,
}

/// The time at which a series reaches a limit, in units of time after the last point of the series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reach {
    /// The estimate.
    pub at: f64,
    /// The 95 % interval.
    pub ci95: [f64; 2],
}

/// The result of an extrapolation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outlook {
    /// The series does not reach the limit at the measured rate.
    NoEnd,
    /// The series rises, but its rate varies too much: the 95 % interval of the time to the limit has no upper end.
    /// Also used for a series that may be a sawtooth.
    Irregular,
    /// The series reaches the limit.
    Reaches(Reach),
}

impl Rise {
    /// Fits a line to the end of a series of (time, figure), in order of time. Returns `None` for fewer than
    /// [`LEAST_POINTS`] different times.
    ///
    /// The line is fitted to the end of the series, where the slope is the same everywhere. If the first half or the
    /// first quarter has a significantly different slope from the points after it, the first quarter of the points is
    /// discarded. This step is repeated. This removes a warm-up, and the time before a leak began.
    ///
    /// Cost: `n² log n` for at most 128 points.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let all = reduced(points);
        if all.len() < LEAST_POINTS || !all.windows(2).all(|w| w[1].0 > w[0].0) {
            return None;
        }
        let used = even_part(&all);
        let slope = Slope::fit(used)?;
        let [low, _] = slope.ci95?;
        let (first, last) = (used.first()?, used.last()?);
        let offsets: Vec<f64> = used.iter().map(|p| p.1 - slope.slope * p.0).collect();
        let middle = median(&offsets);
        let scatter = MAD * median_of(offsets.iter().map(|o| (o - middle).abs()));
        // Fit the level at the end to the points of the last quarter, because the slope may still vary a little over
        // the series.
        let tail = (used.len() / 4).max(3).min(used.len());
        let level = median(&offsets[used.len() - tail..]) + slope.slope * last.0;
        let (drift, quantile) = variation(used, slope.slope);
        let growth = slope.slope * (last.0 - first.0);
        let rising = if low <= 0.0 || has_ended(used, slope.slope) {
            Rising::No
        } else if !has_new_high(&all, growth) {
            Rising::Unclear
        } else {
            Rising::Yes
        };
        Some(Self {
            rising,
            since: first.0,
            slope,
            level,
            end: last.0,
            scatter,
            drift,
            quantile,
            span: last.0 - first.0,
            bend: bend(used),
        })
    }

    /// Returns the time at which the series reaches a limit at the measured rate.
    ///
    /// The interval covers the error of the slope, the noise of the points, and the variation of the rate. The start of
    /// the interval is earlier than the time at which the limit is used completely, because some memory cannot be
    /// filled with objects. The end of the interval is later than the time at which the line reaches the limit, because
    /// figures may include dead objects.
    #[must_use]
    pub fn reach(&self, limit: f64) -> Outlook {
        let rate = self.slope.slope;
        if self.rising == Rising::Unclear {
            return Outlook::Irregular;
        }
        if self.rising == Rising::No || rate * self.span < limit / LIMIT_PART {
            return Outlook::NoEnd;
        }
        let left = (limit - self.level).max(0.0);
        let at = left / rate;
        let varied = self.drift * self.quantile * (1.0 / self.span + 1.0 / at.max(1.0)).sqrt();
        let [low, high] = self.slope.ci95.unwrap_or([rate, rate]);
        // The measured rate is about the mean rate over the points. The mean rate from the last point to the limit may
        // differ by `bend`. `bend` assumes that the rate continues to change as from the first to the second half.
        let bend = self.bend * (1.0 + (at / self.span).min(2.0));
        let slowest = rate - varied.max(rate - low) + bend.min(0.0);
        let fastest = rate + varied.max(high - rate) + bend.max(0.0);
        let noise = Z95 * self.scatter;
        let usable = (left - limit * KEPT_PART).max(0.0);
        if slowest <= 0.0 {
            return Outlook::Irregular;
        }
        Outlook::Reaches(Reach {
            at,
            ci95: [
                ((usable - noise) / fastest).max(0.0),
                (left + limit * DEAD_PART + noise) / slowest,
            ],
        })
    }

    /// Returns the time of the last point.
    #[must_use]
    pub const fn end(&self) -> f64 {
        self.end
    }
}

/// Returns at most [`MOST_POINTS`] finite points. More points are divided into groups. The time and the figure of a
/// group are the medians of its times and figures.
fn reduced(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
    let mut all: Vec<(f64, f64)> = points.iter().filter(finite).copied().collect();
    all.dedup_by(|later, earlier| later.0 <= earlier.0);
    if all.len() <= MOST_POINTS {
        return all;
    }
    grouped(&all, MOST_POINTS)
}

fn grouped(points: &[(f64, f64)], groups: usize) -> Vec<(f64, f64)> {
    let n = points.len();
    (0..groups.min(n))
        .map(|i| {
            let part = &points[i * n / groups.min(n)..(i + 1) * n / groups.min(n)];
            (
                median_of(part.iter().map(|p| p.0)),
                median_of(part.iter().map(|p| p.1)),
            )
        })
        .collect()
}

/// Returns the points at the end of the series that have the same slope everywhere. Repeats this step: if the first
/// half or the first quarter has a different slope than the points after it, discards the first quarter. Stops at the
/// latest when fewer than `2 * LEAST_POINTS` points are left.
fn even_part(points: &[(f64, f64)]) -> &[(f64, f64)] {
    let mut part = points;
    while part.len() >= 2 * LEAST_POINTS {
        let n = part.len();
        let is_even = [n / 2, n / 4].into_iter().all(|at| {
            let (early, late) = part.split_at(at);
            early.len() < LEAST_POINTS || !differ(early, late)
        });
        if is_even {
            break;
        }
        part = &part[n.div_ceil(4).min(n - LEAST_POINTS)..];
    }
    part
}

/// Returns true if two neighbouring parts have different slopes: the 95 % intervals of the slopes do not overlap, and
/// the difference exceeds the variation of the rate. Without the second condition, random bursts would look like a
/// change.
fn differ(early: &[(f64, f64)], late: &[(f64, f64)]) -> bool {
    let fit = |part: &[(f64, f64)]| Slope::fit(part).and_then(|s| Some((s.slope, s.ci95?)));
    let (Some((a, [a_low, a_high])), Some((b, [b_low, b_high]))) = (fit(early), fit(late)) else {
        return false;
    };
    let (drift, quantile) = variation(late, b);
    let span = |part: &[(f64, f64)]| part[part.len() - 1].0 - part[0].0;
    let varied = drift * quantile * (1.0 / span(early) + 1.0 / span(late)).sqrt();
    // Also compare the mean growth of the early part. A few steep points at the start of this part increase its mean
    // growth, but hardly change its slope, which is a median.
    let mean = (early[early.len() - 1].1 - early[0].1) / span(early);
    let is_steep = (mean - b).abs() > varied.max(b.abs()) && mean > a_high.max(b_high);
    let is_apart = a_high < b_low || b_high < a_low;
    is_steep || is_apart && (a - b).abs() > varied.max(a.abs().max(b.abs()) / RATE_PART)
}

/// Returns the slope of the second half of the points minus the slope of the first half.
fn bend(points: &[(f64, f64)]) -> f64 {
    let (early, late) = points.split_at(points.len() / 2);
    match [early, late].map(Slope::fit) {
        [Some(early), Some(late)] => late.slope - early.slope,
        _ => 0.0,
    }
}

/// Returns the standard deviation of the growth in one unit of time, and the quantile of Student's t distribution for
/// its degrees of freedom.
///
/// The points are divided into at most [`GROUPS`] groups, and the growth from each group to the next is compared with
/// the line. If a leak depends on the load, its growth varies, and its deviations from the line add up over time. Noise
/// of single points does not add up: if a group is too high, the growth after it is too low. Adding the covariance of
/// neighbouring deviations removes this noise from the variance.
fn variation(points: &[(f64, f64)], slope: f64) -> (f64, f64) {
    let groups = grouped(points, GROUPS);
    let steps: Vec<f64> = groups
        .windows(2)
        .map(|w| {
            let time = w[1].0 - w[0].0;
            (w[1].1 - w[0].1 - slope * time) / time.sqrt()
        })
        .collect();
    let Some(free) = steps.len().checked_sub(1).filter(|free| *free > 0) else {
        return (f64::INFINITY, T95[0]);
    };
    let variance = steps.iter().map(|s| s * s).sum::<f64>() / free as f64;
    let common = steps.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / free as f64;
    let adding = (variance + 2.0 * common).max(variance / NOISE_PART);
    (adding.sqrt(), T95[free.min(T95.len()) - 1])
}

/// Returns true if the lowest figures of the quarters rise, and the last quarter is higher than all earlier quarters.
/// Both the lowest and the highest figure of the last quarter must be higher. A series that only returns to an earlier
/// level, such as a sawtooth, may never reach the maximum heap.
fn has_new_high(points: &[(f64, f64)], growth: f64) -> bool {
    let margin = growth / HIGH_PART;
    let rises = |figure: fn(&[(f64, f64)]) -> f64| {
        let quarters: Vec<f64> = points
            .chunks(points.len().div_ceil(QUARTERS))
            .map(figure)
            .collect();
        let (last, before) = quarters.split_last()?;
        let ok = before.iter().all(|earlier| earlier + margin < *last);
        ok.then_some(quarters)
    };
    let lowest = |part: &[(f64, f64)]| part.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let highest = |part: &[(f64, f64)]| part.iter().map(|p| p.1).fold(0.0, f64::max);
    let is_rising = |floor: Vec<f64>| floor.windows(2).all(|w| w[0] <= w[1]);
    rises(lowest).is_some_and(is_rising) && rises(highest).is_some()
}

/// Returns true if the series rose and then stayed level.
fn has_ended(points: &[(f64, f64)], rate: f64) -> bool {
    let n = points.len();
    let ends = |tail: &[(f64, f64)]| Slope::fit(tail)?.ci95;
    let recent = (n / PARTS).max(LEAST_POINTS);
    // The last points are level if their slope is certainly between `-rate / 2` and `rate / 2`. A fall does not count,
    // because it may be part of a sawtooth.
    let is_level = |[low, high]: [f64; 2]| high < rate / 2.0 && low > -rate / 2.0;
    if n >= 2 * LEAST_POINTS && ends(&points[n - recent..]).is_some_and(is_level) {
        return true;
    }
    let figures: Vec<(u64, u64)> = grouped(points, PARTS)
        .iter()
        .map(|p| (p.0.max(0.0) as u64, p.1.max(0.0) as u64))
        .collect();
    // A few level points at the end do not show that growth has ended if the last third still rises.
    Course::from_points(&figures, 0).trend.has_stopped_growing()
        && ends(&points[n - n / 3..]).is_none_or(|[_, high]| high <= rate / 4.0)
}

fn median_of(figures: impl Iterator<Item = f64>) -> f64 {
    median(&figures.collect::<Vec<_>>())
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => 0.0,
        (half, 1) => sorted[half],
        (half, _) => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

#[cfg(test)]
mod tests;
