//! What a series of figures does over time: one figure for each dump.
//!
//! A change that is small against the whole heap is no change. What is left is told apart by its steps,
//! the differences of neighbours, with integers only: a report is the same on every machine.

/// How a figure went from dump to dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trend {
    /// It is about what it was, or less.
    Level,
    /// It grew at every step; of two dumps, all that can be said.
    Steady,
    /// It grew at most steps, the last one among them.
    Uneven,
    /// It grew at every step, each time by less.
    Slowing,
    /// It was level and grew at the last step only.
    Late,
    /// It grew at several steps and then no more.
    Plateau,
    /// It grew at the first step and then no more.
    WarmUp,
    /// It was level, grew at one step, and is level since.
    Jump,
    /// It rose and fell, and is no larger than it has been before.
    Sawtooth,
    /// It rose and fell, and is larger than ever.
    RisingSawtooth,
}

/// A step is level if it is less than this part of the largest one.
const LEVEL_PART: u64 = 20;
/// Of a series that slows down, a last step of less than this part of all its growth is its end.
const LAST_PART: u64 = 10;
/// A fall counts if it is more than this part of the whole range.
const FALL_PART: u64 = 10;

impl Trend {
    /// Tells what a series does; changes up to `noise` are none.
    ///
    /// Cost: linear.
    #[must_use]
    pub fn of(figures: &[u64], noise: u64) -> Self {
        let (Some(&first), Some(&last)) = (figures.first(), figures.last()) else {
            return Self::Level;
        };
        let low = figures.iter().copied().min().unwrap_or(0);
        let high = figures.iter().copied().max().unwrap_or(0);
        let range = high - low;
        let fall = deepest_fall(figures);
        if fall > noise && fall > range / FALL_PART {
            let earlier = figures[..figures.len() - 1].iter().copied().max();
            return match earlier.is_some_and(|e| last > e.saturating_add(noise)) {
                true => Self::RisingSawtooth,
                false if last > first.saturating_add(noise) => Self::Sawtooth,
                false => Self::Level,
            };
        }
        if last <= first.saturating_add(noise) {
            return Self::Level;
        }
        // What is left does not fall by much.
        let steps: Vec<u64> = figures
            .windows(2)
            .map(|w| w[1].saturating_sub(w[0]))
            .collect();
        let largest = steps.iter().copied().max().unwrap_or(0);
        let share = noise / steps.len() as u64;
        if steps.iter().all(|&s| s > share) {
            return Self::of_rising(&steps, largest);
        }
        let level = |s: &&u64| **s <= share.max(largest / LEVEL_PART);
        let before = steps.iter().take_while(level).count();
        let after = steps.iter().rev().take_while(level).count();
        let rises = steps.iter().filter(|s| !level(s)).count();
        match (before, rises, after) {
            (_, 1, 0) => Self::Late,
            (_, _, 0) => Self::Uneven,
            (0, 1, _) => Self::WarmUp,
            (_, 1, _) => Self::Jump,
            _ => Self::Plateau,
        }
    }

    /// Of a series that grows at every step.
    fn of_rising(steps: &[u64], largest: u64) -> Self {
        let shrinks = |w: &[u64]| w[1] <= w[0] / 4 * 3;
        if steps.len() < 2 || !steps.windows(2).all(shrinks) {
            return Self::Steady;
        }
        let all: u64 = steps.iter().sum();
        match steps.last() {
            Some(&last) if last < all / LAST_PART => match largest > all / 5 * 4 {
                true => Self::WarmUp,
                false => Self::Plateau,
            },
            _ => Self::Slowing,
        }
    }

    /// Whether it grew at every step: what is to be looked at first.
    #[must_use]
    pub const fn is_steady(self) -> bool {
        matches!(self, Self::Steady)
    }

    /// Whether it stopped growing.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(
            self,
            Self::Level | Self::Plateau | Self::WarmUp | Self::Jump | Self::Sawtooth
        )
    }

    /// As reports call it.
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

    /// The sentence that a reader can check against the figures; none for two dumps.
    #[must_use]
    pub fn sentence(self, figures: &[u64]) -> Option<String> {
        let steps = figures.len().saturating_sub(1);
        if steps < 2 {
            return None;
        }
        let rises = figures.windows(2).filter(|w| w[1] > w[0]).count();
        Some(match self {
            Self::Level => "it is about what it was".to_owned(),
            Self::Steady => format!("it grew in {rises} of {steps} steps between dumps"),
            Self::Uneven => {
                format!("it grew in {rises} of {steps} steps between dumps, not evenly")
            }
            Self::Slowing => {
                format!("it grew in {rises} of {steps} steps between dumps, each time by less")
            }
            Self::Late => "it was level and grew only before the last dump".to_owned(),
            Self::Plateau => "it grew and is level since: a plateau".to_owned(),
            Self::WarmUp => {
                "it grew before the second dump and is level since, as at a start".to_owned()
            }
            Self::Jump => "it was level, grew once, and is level since".to_owned(),
            Self::Sawtooth => {
                "it rises and falls, and has been as large before: a sawtooth".to_owned()
            }
            Self::RisingSawtooth => {
                "it rises and falls, but is larger than in every dump before".to_owned()
            }
        })
    }
}

/// The most that a later figure is below an earlier one.
fn deepest_fall(figures: &[u64]) -> u64 {
    let mut high = 0;
    let falls = figures.iter().map(|&f| {
        high = high.max(f);
        high - f
    });
    falls.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(figures: &[u64]) -> Trend {
        Trend::of(figures, 10)
    }

    #[test]
    fn growth_at_every_step_is_steady() {
        assert_eq!(trend(&[100, 200]), Trend::Steady);
        assert_eq!(trend(&[100, 200, 300, 400]), Trend::Steady);
        // Work is never quite even.
        assert_eq!(trend(&[100, 190, 310, 395, 520]), Trend::Steady);
        // Ever faster.
        assert_eq!(trend(&[0, 20, 100, 500]), Trend::Steady);
    }

    #[test]
    fn a_slow_leak_after_a_warm_up_is_steady() {
        assert_eq!(trend(&[0, 1000, 1010, 1020, 1030]), Trend::Steady);
        // But not if what follows is noise.
        assert_eq!(trend(&[0, 1000, 1001, 1000, 1002]), Trend::WarmUp);
    }

    #[test]
    fn small_changes_are_level() {
        assert_eq!(trend(&[1000, 1005, 1010]), Trend::Level);
        assert_eq!(trend(&[1000, 995, 1008, 1001]), Trend::Level);
        assert_eq!(trend(&[1000, 400, 300]), Trend::Level);
        assert_eq!(trend(&[5]), Trend::Level);
        assert_eq!(trend(&[]), Trend::Level);
        // The same changes in a smaller heap are growth.
        assert_eq!(Trend::of(&[1000, 1005, 1010], 2), Trend::Steady);
    }

    #[test]
    fn what_fills_and_stays_full_is_a_plateau() {
        assert_eq!(trend(&[0, 400, 800, 1000, 1000]), Trend::Plateau);
        assert_eq!(trend(&[0, 500, 1000, 1003, 998]), Trend::Plateau);
        // Ever nearer to a bound.
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
    fn growth_in_the_midst_is_a_jump() {
        assert_eq!(trend(&[100, 100, 900, 900]), Trend::Jump);
        assert_eq!(trend(&[100, 103, 900, 898, 904]), Trend::Jump);
        assert_eq!(trend(&[100, 100, 100, 900]), Trend::Late);
    }

    #[test]
    fn idle_times_do_not_excuse() {
        assert_eq!(trend(&[100, 200, 200, 300]), Trend::Uneven);
        assert_eq!(trend(&[100, 200, 195, 300, 400]), Trend::Uneven);
    }

    #[test]
    fn what_falls_again_is_a_sawtooth() {
        assert_eq!(trend(&[100, 900, 200, 880]), Trend::Sawtooth);
        assert_eq!(trend(&[100, 900, 300]), Trend::Sawtooth);
        // Back where it began.
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
    fn noise_is_shared_out_among_the_steps() {
        // A quarter of the noise in each of four steps.
        assert_eq!(Trend::of(&[0, 25, 50, 75, 200], 100), Trend::Late);
        assert_eq!(Trend::of(&[0, 20, 40, 60, 200], 100), Trend::Late);
        assert_eq!(Trend::of(&[0, 26, 52, 78, 200], 100), Trend::Steady);
    }

    #[test]
    fn a_fall_counts_above_the_noise_and_a_tenth_of_the_range() {
        assert_eq!(trend(&[0, 500, 480, 1000]), Trend::Uneven);
        assert_eq!(trend(&[0, 500, 400, 1000]), Trend::Uneven);
        assert_eq!(trend(&[0, 500, 399, 1000]), Trend::RisingSawtooth);
        // The range is what counts, not how large the figures are.
        assert_eq!(trend(&[1000, 1100, 1060, 1150]), Trend::RisingSawtooth);
        assert_eq!(Trend::of(&[0, 100, 50, 200], 50), Trend::Uneven);
        assert_eq!(Trend::of(&[0, 100, 50, 200], 49), Trend::RisingSawtooth);
        assert_eq!(Trend::of(&[0, 90, 0, 150], 100), Trend::Uneven);
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
        // Each step is at most three quarters of the one before.
        assert_eq!(trend(&[0, 400, 700]), Trend::Slowing);
        assert_eq!(trend(&[0, 400, 701]), Trend::Steady);
        assert_eq!(trend(&[0, 600, 900, 1000]), Trend::Slowing);
        assert_eq!(trend(&[0, 601, 901, 1000]), Trend::Plateau);
        // More than four fifths of it at once is how programs start.
        assert_eq!(trend(&[0, 800, 950, 1000]), Trend::Plateau);
        assert_eq!(trend(&[0, 801, 951, 1000]), Trend::WarmUp);
    }

    #[test]
    fn names_and_sentences_say_what_it_does() {
        let figures = [0, 5, 5, 9];
        for (trend, name, is_over, sentence) in [
            (Trend::Level, "level", true, "it is about what it was"),
            (Trend::Steady, "steady", false, "it grew in 2 of 3 steps"),
            (Trend::Uneven, "uneven", false, "not evenly"),
            (Trend::Slowing, "slowing", false, "each time by less"),
            (Trend::Late, "late", false, "only before the last dump"),
            (Trend::Plateau, "plateau", true, "a plateau"),
            (Trend::WarmUp, "warm-up", true, "as at a start"),
            (Trend::Jump, "jump", true, "grew once"),
            (Trend::Sawtooth, "sawtooth", true, "as large before"),
            (
                Trend::RisingSawtooth,
                "rising-sawtooth",
                false,
                "larger than in every dump before",
            ),
        ] {
            assert_eq!(trend.name(), name);
            assert_eq!(trend.is_over(), is_over, "{name}");
            assert_eq!(trend.is_steady(), trend == Trend::Steady);
            let told = trend.sentence(&figures).unwrap();
            assert!(told.contains(sentence), "{told}");
            // Two dumps have one step, of which there is nothing to tell.
            assert_eq!(trend.sentence(&figures[..2]), None);
            assert!(trend.sentence(&figures[..3]).is_some());
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        assert_eq!(Trend::of(&[0, u64::MAX], u64::MAX - 1), Trend::Steady);
        assert_eq!(Trend::of(&[u64::MAX, 0, u64::MAX], 0), Trend::Level);
    }
}
