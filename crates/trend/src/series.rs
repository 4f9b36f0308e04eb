//! Classifies a series of figures: one figure per dump, with the time of the dump.
//!
//! Changes of at most `noise` are ignored. The trend depends on how much and how fast the figure grew in each step. A
//! step is the interval between two neighbouring dumps. All calculations use integers, so reports are equal on all
//! machines.
//!
//! Growth has ended only if the level period after it is at least 1/[`END_PART`] as long as the time of growth. A level
//! step that is shorter than 1/[`SHORT_PART`] of the mean step is ignored.

/// How a figure developed over several dumps. Each example lists the figures of dumps with equal intervals between
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trend {
    /// No significant growth: 1000, 1005, 1010.
    Level,
    /// Grew from each dump to the next: 100, 200, 300. With more than two dumps, intervals that are too short to show
    /// growth are ignored. With two dumps, any growth counts.
    Steady,
    /// Grew in most intervals between two dumps, including the last: 100, 200, 200, 300. A figure that grew over
    /// several dumps and is level at the end has this trend, too, if it was not level for long enough to be a
    /// [`Self::Plateau`].
    Uneven,
    /// Grew from each dump to the next, each time by less: 0, 500, 800.
    Slowing,
    /// Was level and grew only between the last two dumps: 100, 100, 100, 900.
    Late,
    /// Grew over several dumps and then stopped: 0, 400, 800, 1000, 1000.
    Plateau,
    /// Grew between the first two dumps and then stopped: 0, 900, 900.
    WarmUp,
    /// Was level, grew between two dumps, and has been level since: 100, 100, 900, 900.
    Jump,
    /// Rose and fell, and the last value is not the highest: 100, 900, 200, 880.
    Sawtooth,
    /// Rose and fell, and ends higher than ever: 100, 300, 200, 600, 400, 1000.
    RisingSawtooth,
}

/// The trend of a series, with the evidence for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Course {
    /// The trend.
    pub trend: Trend,
    /// Number of figures on which the trend is based. If the interval between two dumps is too short to show growth,
    /// the figures of the two dumps count as one.
    pub telling: usize,
    /// Length of the level period at the end, if this period is too short to conclude that growth has ended. 0 if times
    /// are unknown.
    pub short_end: Option<u64>,
    /// True if the figure was level at the end, but the program did almost no work in this time.
    pub idle_end: bool,
}

/// A step (the interval between two neighbouring dumps) counts as level (without growth) if both are true:
///
/// - Its growth is at most 1/20 of the largest growth of any step.
/// - Its rate is at most 1/20 of the fastest rate of any step.
const LEVEL_PART: u64 = 20;
/// A step (the interval between two neighbouring dumps) in which the figure grew by more than 16 times the noise is
/// never level. This is true even if the growth in the first step is far larger.
const SIGNIFICANT: u64 = 16;
/// A step also counts as level if its growth is at most `noise / number of steps`, and its rate is at most 1/4 of the
/// fastest rate of any step.
const SLOWER: u64 = 4;
/// Growth that slows down has ended if the last steps together contribute less than 1/10 of all growth, and take long
/// enough ([`END_PART`]).
const LAST_PART: u64 = 10;
/// A fall counts if it is more than 1/10 of the difference between the largest and the smallest figure.
const FALL_PART: u64 = 10;
/// A step without growth (a level step) is ignored if it is shorter than 1/4 of the mean time between two dumps.
const SHORT_PART: u64 = 4;
/// Growth has ended if the level period after it is at least 1/3 as long as the time of growth.
const END_PART: u64 = 3;

/// A program is idle while it does less than 1/100 of its mean work per unit of time.
const IDLE_PART: u64 = 100;

/// The time and the growth between two neighbouring dumps.
#[derive(Clone, Copy)]
struct Step {
    time: u64,
    growth: u64,
}

impl Step {
    /// Returns true if the rate of growth in this step is at most 1/`times` of the rate in the step `than`.
    fn is_slower(&self, times: u64, than: &Self) -> bool {
        let (own, other) = (u128::from(self.growth), u128::from(than.growth));
        let own = own.saturating_mul(u128::from(than.time) * u128::from(times));
        own <= other.saturating_mul(u128::from(self.time))
    }
}

/// Returns true if the growth in a step is more than [`SIGNIFICANT`] times the noise. Such a step is never level,
/// however much the figure grew in other steps.
fn is_significant(step: &Step, noise: u64) -> bool {
    noise > 0 && step.growth > noise.saturating_mul(SIGNIFICANT)
}

fn sum(steps: &[Step], figure: impl Fn(&Step) -> u64) -> u64 {
    steps.iter().map(figure).fold(0, u64::saturating_add)
}

impl Course {
    /// Classifies a series of (time, figure). Changes of at most `noise` are ignored. If the times do not ascend, they
    /// are ignored, and all intervals between two dumps count as equally long.
    ///
    /// Cost: quadratic in the number of points.
    #[must_use]
    pub fn from_points(points: &[(u64, u64)], noise: u64) -> Self {
        let timed = points.windows(2).all(|w| w[1].0 > w[0].0);
        let points: Vec<(u64, u64)> = if timed {
            points.to_vec()
        } else {
            (0..).zip(points).map(|(i, p)| (i, p.1)).collect()
        };
        let mut course = Self::from_timed(&points, noise);
        if !timed {
            course.short_end = course.short_end.map(|_| 0);
        }
        course
    }

    /// Classifies a series of (time, work done by then, figure) as [`Course::from_points`] does, but also considers the
    /// work. A level period in which the program did almost no work is not evidence that growth has ended. If the times
    /// or the amounts of work do not ascend, the work is ignored.
    ///
    /// Cost: quadratic in the number of points.
    #[must_use]
    pub fn from_work(points: &[(u64, u64, u64)], noise: u64) -> Self {
        let timed: Vec<(u64, u64)> = points.iter().map(|p| (p.0, p.2)).collect();
        let by_time = Self::from_points(&timed, noise);
        let ascends = points
            .windows(2)
            .all(|w| w[1].0 > w[0].0 && w[1].1 >= w[0].1);
        let (Some(first), Some(last), true) = (points.first(), points.last(), ascends) else {
            return by_time;
        };
        let all = [last.0 - first.0, last.1 - first.1].map(u128::from);
        let least = noise / (points.len() as u64 - 1).max(1);
        let mut clock = 0;
        let mut busy = vec![(clock, first.2)];
        for w in points.windows(2) {
            let [time, work] = [w[1].0 - w[0].0, w[1].1 - w[0].1];
            let is_idle =
                u128::from(work) * all[0] * u128::from(IDLE_PART) < all[1] * u128::from(time);
            let is_level = w[1].2.abs_diff(w[0].2) <= least;
            clock += if is_idle && is_level { 1 } else { time };
            busy.push((clock, w[1].2));
        }
        let by_work = Self::from_points(&busy, noise);
        if by_time.trend.has_stopped_growing() && !by_work.trend.has_stopped_growing() {
            Self {
                short_end: None,
                idle_end: true,
                ..by_work
            }
        } else {
            by_time
        }
    }

    fn from_timed(points: &[(u64, u64)], noise: u64) -> Self {
        let told = |trend| Self {
            trend,
            telling: points.len(),
            short_end: None,
            idle_end: false,
        };
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return told(Trend::Level);
        };
        let figures = || points.iter().map(|p| p.1);
        let range = figures().max().unwrap_or(0) - figures().min().unwrap_or(0);
        let fall = max_drop(figures());
        if fall > noise && fall > range / FALL_PART {
            let earlier = figures().take(points.len() - 1).max();
            return told(match earlier {
                Some(e) if last.1 > e.saturating_add(noise) => Trend::RisingSawtooth,
                _ if last.1 > first.1.saturating_add(noise) => Trend::Sawtooth,
                _ => Trend::Level,
            });
        }
        if last.1 <= first.1.saturating_add(noise) {
            return told(Trend::Level);
        }
        // Series that fall significantly do not get here: the checks above have handled them.
        let steps: Vec<Step> = points
            .windows(2)
            .map(|w| Step {
                time: w[1].0 - w[0].0,
                growth: w[1].1.saturating_sub(w[0].1),
            })
            .collect();
        let share = noise / steps.len() as u64;
        let largest = steps.iter().map(|s| s.growth).max().unwrap_or(0);
        let slowest_last = |a: &&Step, b: &&Step| {
            if a.is_slower(1, b) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            }
        };
        let Some(&fastest) = steps.iter().max_by(slowest_last) else {
            return told(Trend::Level);
        };
        let is_noise = |s: &Step| s.growth <= share && s.is_slower(SLOWER, &fastest);
        let rises_always = !steps.iter().any(is_noise);
        let level = |s: &Step| {
            let is_small = s.growth <= largest / LEVEL_PART && !is_significant(s, noise);
            is_noise(s) || (!rises_always && is_small && s.is_slower(LEVEL_PART, &fastest))
        };
        let all_time = sum(&steps, |s| s.time);
        let mean = all_time / steps.len() as u64;
        if let Some(at) = (0..steps.len())
            .find(|&i| level(&steps[i]) && steps[i].time.saturating_mul(SHORT_PART) < mean)
        {
            return Self::without_step(points, at, noise);
        }
        let telling = 1 + steps
            .iter()
            .filter(|s| s.growth > share || level(s))
            .count();
        let told = |trend| Self {
            trend,
            telling,
            short_end: None,
            idle_end: false,
        };
        if rises_always {
            return told(classify_rising(&steps, noise));
        }
        let before = steps.iter().take_while(|s| level(s)).count();
        let after = steps.iter().rev().take_while(|s| level(s)).count();
        let rises = steps.iter().filter(|s| !level(s)).count();
        let since = sum(&steps[steps.len() - after..], |s| s.time);
        let grew = sum(&steps[before..steps.len() - after], |s| s.time);
        if after > 0 && since.saturating_mul(END_PART) < grew {
            return Self {
                short_end: Some(since),
                ..told(Trend::Uneven)
            };
        }
        told(match (before, rises, after) {
            (_, 1, 0) => Trend::Late,
            (_, _, 0) => Trend::Uneven,
            (0, 1, _) => Trend::WarmUp,
            (_, 1, _) => Trend::Jump,
            _ => Trend::Plateau,
        })
    }

    /// Merges a step (the interval between two neighbouring dumps) that is too short with its neighbour. Classifies the
    /// resulting series.
    fn without_step(points: &[(u64, u64)], step: usize, noise: u64) -> Self {
        let is_last = step + 2 == points.len();
        let mut less = points.to_vec();
        let taken = less.remove(if is_last { step } else { step + 1 });
        let mut course = Self::from_timed(&less, noise);
        if is_last {
            let end = points[step + 1].0 - taken.0;
            course.short_end = Some(course.short_end.map_or(end, |e| e.max(end)));
        }
        // Without the first interval, the growth seems to begin with the first dump (`WarmUp`). But the figure was
        // level in that interval and grew only after it (`Jump`).
        if step == 0 && course.trend == Trend::WarmUp {
            course.trend = Trend::Jump;
        }
        course
    }
}

/// Classifies a series that grows from each dump to the next.
fn classify_rising(steps: &[Step], noise: u64) -> Trend {
    // Growth slows down from one step to the next if the growth and the rate of the later step are both at most 3/4 of
    // the growth and the rate of the earlier step. Both are compared, because steps may differ in length.
    let shrinks = |w: &[Step]| {
        let [before, after] = [w[0], w[1]];
        let (own, other) = (u128::from(after.growth), u128::from(before.growth));
        after.growth <= before.growth / 4 * 3
            && own * u128::from(before.time) <= other * u128::from(after.time) / 4 * 3
    };
    if steps.len() < 2 || !steps.windows(2).all(shrinks) {
        return Trend::Steady;
    }
    let all = sum(steps, |s| s.growth);
    // `end` is the number of steps at the end that together contribute less than 1/[`LAST_PART`] of all growth.
    let mut little = 0;
    let end = steps.iter().rev().take_while(|s| {
        little += s.growth;
        little < all / LAST_PART && !is_significant(s, noise)
    });
    let end = end.count();
    let (grew, since) = steps.split_at(steps.len() - end);
    let is_over =
        end > 0 && sum(since, |s| s.time).saturating_mul(END_PART) >= sum(grew, |s| s.time);
    match (is_over, steps.first()) {
        (true, Some(first)) if first.growth > all / 5 * 4 => Trend::WarmUp,
        (true, _) => Trend::Plateau,
        _ => Trend::Slowing,
    }
}

impl Trend {
    /// Returns true if the figure grew from each dump to the next. Figures with this trend are reported first.
    #[must_use]
    pub const fn is_steady(self) -> bool {
        matches!(self, Self::Steady)
    }

    /// Returns true if the figure stopped growing.
    #[must_use]
    pub const fn has_stopped_growing(self) -> bool {
        matches!(
            self,
            Self::Level | Self::Plateau | Self::WarmUp | Self::Jump | Self::Sawtooth
        )
    }

    /// Returns the name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Steady => "steady",
            Self::Uneven => "uneven",
            Self::Slowing => "slowing",
            Self::Late => "late",
            Self::Plateau => "plateau",
            Self::WarmUp => "warm-up",
            Self::Jump => "jump",
            Self::Sawtooth => "sawtooth",
            Self::RisingSawtooth => "rising-sawtooth",
        }
    }
}

/// Returns the growth between the last two dumps as a part of all growth, in whole per cent. `None` if the figure
/// counts as level between these dumps.
#[must_use]
pub fn last_step_percent(figures: &[u64]) -> Option<u64> {
    let [first, .., before, last] = figures else {
        return None;
    };
    let (all, end) = (last.saturating_sub(*first), last.saturating_sub(*before));
    let percent = u128::from(end) * 100 / u128::from(all.max(1));
    (end > all / LEVEL_PART).then(|| u64::try_from(percent).unwrap_or(100))
}

/// Returns the largest fall: the maximum difference between a figure and a lower figure after it.
fn max_drop(figures: impl Iterator<Item = u64>) -> u64 {
    let mut high = 0;
    let falls = figures.map(|f| {
        high = high.max(f);
        high - f
    });
    falls.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_period_without_work_is_not_evidence() {
        const MB: u64 = 1 << 20;
        let of = |work: [u64; 3], figures: [u64; 3]| {
            let points: Vec<_> = (0..3)
                .map(|i| ([0, 60, 3600][i], work[i], figures[i]))
                .collect();
            Course::from_work(&points, 10)
        };
        let leaked = [100, 200, 200];
        // After the figure has stopped growing, the program still works, at the same speed or more slowly. So the
        // figure is not level because the program is idle: its growth has ended.
        for after in [5000 * MB, 500 * MB] {
            let course = of([0, 100 * MB, after], leaked);
            assert_eq!((course.trend, course.idle_end), (Trend::WarmUp, false));
        }
        let idle = of([0, 1000 * MB, 1001 * MB], leaked);
        assert!(
            idle.idle_end && !idle.trend.has_stopped_growing(),
            "{idle:?}"
        );
        assert_eq!((idle.telling, idle.short_end), (2, None));
        // If the figure grew between the last two dumps, growth has not ended. The amount of work in that time makes no
        // difference.
        let both = [
            of([0, 1000 * MB, 1001 * MB], [100, 200, 300]),
            of([0, 100, 6000], [100, 200, 300]),
        ];
        assert!(
            both.iter()
                .all(|c| !c.idle_end && !c.trend.has_stopped_growing()),
            "{both:?}"
        );
        // The work of one JVM (the first list) never decreases. If the work decreases, the later dump is of another
        // JVM, and the work is ignored.
        assert_eq!(of([0, 100, 50], leaked).trend, Trend::WarmUp);
        assert_eq!(of([5, 5, 5], leaked).trend, Trend::WarmUp);
    }

    /// Classifies the figures of dumps whose times are unknown. All intervals between two dumps count as equally long.
    fn from_points(figures: &[u64], noise: u64) -> Trend {
        let points: Vec<(u64, u64)> = figures.iter().map(|&f| (0, f)).collect();
        Course::from_points(&points, noise).trend
    }

    fn trend(figures: &[u64]) -> Trend {
        from_points(figures, 10)
    }

    /// Returns the fields `trend`, `telling` and `short_end` of the [`Course`] of figures that each have a time.
    fn timed(points: &[(u64, u64)]) -> (Trend, usize, Option<u64>) {
        let course = Course::from_points(points, 10);
        (course.trend, course.telling, course.short_end)
    }

    #[test]
    fn a_short_step_does_not_rule_out_a_leak() {
        // Dumps at 0, 75 and 77 s. In the last two seconds, the growth is at most 1/37 of the growth before.
        assert_eq!(
            timed(&[(0, 0), (75, 1000), (77, 1027)]),
            (Trend::Steady, 3, None)
        );
        for last in [1000, 1004] {
            let short = timed(&[(0, 0), (75, 1000), (77, last)]);
            assert_eq!(short, (Trend::Steady, 2, Some(2)), "{last}");
        }
        // If the last dump follows after 75 s instead of 2 s, and the figure has hardly grown, the trend is a warm-up.
        assert_eq!(
            timed(&[(0, 0), (75, 1000), (150, 1004)]),
            (Trend::WarmUp, 3, None)
        );
        // An interval between dumps that is too short is also ignored at the start and in the middle of the series.
        assert_eq!(
            timed(&[(0, 0), (2, 0), (77, 1000), (150, 2000)]),
            (Trend::Steady, 3, None)
        );
        assert_eq!(
            timed(&[(0, 0), (75, 1000), (77, 1000), (150, 2000)]),
            (Trend::Steady, 3, None)
        );
    }

    #[test]
    fn growth_ends_with_a_sufficiently_long_level_period() {
        let grew = [(0, 0), (30, 300), (60, 600), (90, 900)];
        let then = |time| timed(&[&grew[..], &[(time, 900)]].concat());
        assert_eq!(then(120), (Trend::Plateau, 5, None));
        assert_eq!(then(115), (Trend::Uneven, 5, Some(25)));
        // All dumps have the same time (7), so their real times are unknown. Then the periods of growth and of level
        // figures are measured in intervals between dumps.
        let short = [0, 100, 200, 300, 400, 500, 500].map(|f| (7, f));
        assert_eq!(timed(&short), (Trend::Uneven, 7, Some(0)));
        // A burst of growth that lasts two seconds has ended after a minute. Slow growth that follows such a burst has
        // not ended.
        assert_eq!(
            timed(&[(0, 0), (2, 1000), (75, 1000)]),
            (Trend::WarmUp, 3, None)
        );
        assert_eq!(timed(&[(0, 0), (1, 200), (1000, 800)]).0, Trend::Steady);
    }

    #[test]
    fn slowing_down_compares_rates() {
        // The last interval takes a tenth of the time and has a tenth of the growth.
        assert_eq!(
            timed(&[(0, 0), (75, 1000), (85, 1090)]),
            (Trend::Slowing, 3, None)
        );
        assert_eq!(
            timed(&[(0, 0), (75, 1000), (150, 1090)]),
            (Trend::WarmUp, 3, None)
        );
        // Growth slows down only if both the growth and the rate fall to at most 3/4. Here the rate falls to 0.72 times
        // the first rate, but the growth is equal in both intervals. In the next case, both rates are equal.
        assert_eq!(timed(&[(0, 0), (26, 1000), (62, 2000)]).0, Trend::Steady);
        assert_eq!(timed(&[(0, 0), (60, 600), (90, 900)]).0, Trend::Steady);
    }

    #[test]
    fn the_last_step_has_a_share_of_growth_unless_level() {
        for (figures, percent) in [
            ([0, 600, 900, 900], None),
            ([0, 600, 900, 990], Some(9)),
            ([0, 990, 995, 1000], None),
            ([0, 820, 930, 1000], Some(7)),
        ] {
            assert_eq!(last_step_percent(&figures), percent, "{figures:?}");
        }
    }

    #[test]
    fn growth_at_every_step_is_steady() {
        assert_eq!(trend(&[100, 200]), Trend::Steady);
        assert_eq!(trend(&[100, 200, 300, 400]), Trend::Steady);
        // The program does not do exactly the same work in each interval.
        assert_eq!(trend(&[100, 190, 310, 395, 520]), Trend::Steady);
        // The growth accelerates.
        assert_eq!(trend(&[0, 20, 100, 500]), Trend::Steady);
    }

    #[test]
    fn a_slow_leak_after_a_warm_up_is_steady() {
        assert_eq!(trend(&[0, 1000, 1010, 1020, 1030]), Trend::Steady);
        // If only noise follows the growth, the trend is a warm-up.
        assert_eq!(trend(&[0, 1000, 1001, 1000, 1002]), Trend::WarmUp);
    }

    #[test]
    fn small_changes_are_level() {
        assert_eq!(trend(&[1000, 1005, 1010]), Trend::Level);
        assert_eq!(trend(&[1000, 995, 1008, 1001]), Trend::Level);
        assert_eq!(trend(&[1000, 400, 300]), Trend::Level);
        assert_eq!(trend(&[5]), Trend::Level);
        assert_eq!(trend(&[]), Trend::Level);
        // In a smaller heap, the noise is smaller, and the same changes are growth.
        assert_eq!(from_points(&[1000, 1005, 1010], 2), Trend::Steady);
    }

    #[test]
    fn a_series_that_fills_and_stays_full_is_a_plateau() {
        assert_eq!(trend(&[0, 400, 800, 1000, 1000]), Trend::Plateau);
        assert_eq!(trend(&[0, 500, 1000, 1003, 998]), Trend::Plateau);
        // The figures approach a bound.
        assert_eq!(trend(&[0, 600, 850, 950, 990]), Trend::Plateau);
        assert_eq!(trend(&[0, 500, 800]), Trend::Slowing);
    }

    #[test]
    fn growth_at_the_start_is_warm_up() {
        assert_eq!(trend(&[0, 900, 900]), Trend::WarmUp);
        assert_eq!(trend(&[100, 900, 905, 903]), Trend::WarmUp);
        assert_eq!(trend(&[100, 900, 930, 931]), Trend::WarmUp);
    }

    #[test]
    fn growth_that_is_significant_by_itself_is_not_over() {
        // The dumps have 200, 84,200 and 88,200 objects of 100 bytes. Changes of at most 10,000 bytes are noise.
        let of = |figures: [u64; 3]| {
            let points: Vec<(u64, u64)> = (0..).zip(figures).collect();
            Course::from_points(&points, 10_000).trend
        };
        assert_eq!(of([20_000, 8_420_000, 8_820_000]), Trend::Slowing);
        // Growth of 100,000 bytes may still belong to the start of the program.
        assert_eq!(of([20_000, 8_420_000, 8_520_000]), Trend::WarmUp);
    }

    #[test]
    fn growth_in_the_midst_is_a_jump() {
        assert_eq!(trend(&[100, 100, 900, 900]), Trend::Jump);
        assert_eq!(trend(&[100, 103, 900, 898, 904]), Trend::Jump);
        assert_eq!(trend(&[100, 100, 100, 900]), Trend::Late);
    }

    #[test]
    fn growth_with_level_periods_is_uneven() {
        assert_eq!(trend(&[100, 200, 200, 300]), Trend::Uneven);
        assert_eq!(trend(&[100, 200, 195, 300, 400]), Trend::Uneven);
    }

    #[test]
    fn a_series_that_falls_again_is_a_sawtooth() {
        assert_eq!(trend(&[100, 900, 200, 880]), Trend::Sawtooth);
        assert_eq!(trend(&[100, 900, 300]), Trend::Sawtooth);
        // The last figure equals the first one.
        assert_eq!(trend(&[100, 900, 100]), Trend::Level);
        assert_eq!(
            trend(&[100, 300, 200, 600, 400, 1000]),
            Trend::RisingSawtooth
        );
    }

    #[test]
    fn a_step_of_one_twentieth_of_the_largest_is_level() {
        assert_eq!(trend(&[0, 1000, 1050, 1050]), Trend::WarmUp);
        assert_eq!(trend(&[0, 1000, 1051, 1051]), Trend::Plateau);
    }

    #[test]
    fn noise_is_divided_among_the_steps() {
        // The noise is divided among the four steps (the intervals between two dumps). So a step is level if it grew by
        // at most a quarter of the noise.
        assert_eq!(from_points(&[0, 25, 50, 75, 200], 100), Trend::Late);
        assert_eq!(from_points(&[0, 20, 40, 60, 200], 100), Trend::Late);
        assert_eq!(from_points(&[0, 26, 52, 78, 200], 100), Trend::Steady);
    }

    #[test]
    fn a_fall_must_exceed_the_noise_and_a_tenth_of_the_range() {
        assert_eq!(trend(&[0, 500, 480, 1000]), Trend::Uneven);
        assert_eq!(trend(&[0, 500, 400, 1000]), Trend::Uneven);
        assert_eq!(trend(&[0, 500, 399, 1000]), Trend::RisingSawtooth);
        // A fall is compared with the difference between the largest and the smallest figure. Here the fall is 40, and
        // the difference is 150. A comparison with the figures themselves would ignore this fall.
        assert_eq!(trend(&[1000, 1100, 1060, 1150]), Trend::RisingSawtooth);
        assert_eq!(from_points(&[0, 100, 50, 200], 50), Trend::Uneven);
        assert_eq!(from_points(&[0, 100, 50, 200], 49), Trend::RisingSawtooth);
        assert_eq!(from_points(&[0, 90, 0, 150], 100), Trend::Uneven);
    }

    #[test]
    fn a_sawtooth_rises_only_by_more_than_the_noise() {
        assert_eq!(trend(&[100, 600, 300, 610]), Trend::Sawtooth);
        assert_eq!(trend(&[100, 600, 300, 611]), Trend::RisingSawtooth);
        assert_eq!(trend(&[100, 600, 110]), Trend::Level);
        assert_eq!(trend(&[100, 600, 111]), Trend::Sawtooth);
    }

    #[test]
    fn slowing_down_ends_below_a_tenth_of_the_growth() {
        // Growth slows down if each interval has at most three quarters of the growth of the interval before.
        assert_eq!(trend(&[0, 400, 700]), Trend::Slowing);
        assert_eq!(trend(&[0, 400, 701]), Trend::Steady);
        assert_eq!(trend(&[0, 600, 900, 1000]), Trend::Slowing);
        assert_eq!(trend(&[0, 601, 901, 1000]), Trend::Plateau);
        // If the first interval has more than four fifths of the growth, the trend is a warm-up.
        assert_eq!(trend(&[0, 800, 950, 1000]), Trend::Plateau);
        assert_eq!(trend(&[0, 801, 951, 1000]), Trend::WarmUp);
    }

    #[test]
    fn each_trend_has_a_name() {
        for (trend, name, is_over) in [
            (Trend::Level, "level", true),
            (Trend::Steady, "steady", false),
            (Trend::Uneven, "uneven", false),
            (Trend::Slowing, "slowing", false),
            (Trend::Late, "late", false),
            (Trend::Plateau, "plateau", true),
            (Trend::WarmUp, "warm-up", true),
            (Trend::Jump, "jump", true),
            (Trend::Sawtooth, "sawtooth", true),
            (Trend::RisingSawtooth, "rising-sawtooth", false),
        ] {
            assert_eq!(trend.name(), name);
            assert_eq!(trend.has_stopped_growing(), is_over, "{name}");
            assert_eq!(trend.is_steady(), trend == Trend::Steady);
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        assert_eq!(from_points(&[0, u64::MAX], u64::MAX - 1), Trend::Steady);
        assert_eq!(from_points(&[u64::MAX, 0, u64::MAX], 0), Trend::Level);
    }
}
