//! 95 % confidence intervals of proportions, of counts, and of sums of proportions or counts. They are valid even for
//! few samples, for which a normal distribution does not apply.
//!
//! The interval of a proportion is Wilson's score interval. The interval of a count is the score interval of a Poisson
//! distribution. These intervals may be asymmetric, above all with few samples. Sums keep the asymmetry by the method
//! of variance estimates recovery (Zou and Donner, Statistics in Medicine 27, 2008).

use heapdiff_trend::Z95;

/// An estimate and its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end, at most `value`.
    pub low: f64,
    /// The upper end, at least `value`.
    pub high: f64,
}

impl Interval {
    /// Returns the interval of an exact value: both ends are the value itself.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
        }
    }

    /// Returns the interval of a proportion of a population. `share` is the proportion in a sample of `samples` items.
    /// `drawn` is the part of the population that is in the sample. The larger `drawn` is, the narrower is the interval
    /// (finite population correction).
    #[must_use]
    pub fn share(share: f64, samples: f64, drawn: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        if samples <= 0.0 {
            let (low, high) = (0.0, 1.0);
            return Self {
                value: share,
                low,
                high,
            };
        }
        let square = Z95 * Z95 * (1.0 - drawn.clamp(0.0, 1.0));
        let scale = 1.0 + square / samples;
        let middle = (share + square / (2.0 * samples)) / scale;
        let spread = share * (1.0 - share) / samples + square / (4.0 * samples * samples);
        let half = (square * spread).sqrt() / scale;
        Self {
            value: share,
            low: (middle - half).clamp(0.0, share),
            high: (middle + half).clamp(share, 1.0),
        }
    }

    /// Returns the 95 % confidence interval of a sum of independent samples with a known variance. The sum is treated
    /// as a Poisson count of units of size `variance / value`. The result is the score interval of this count.
    #[must_use]
    pub fn count(value: f64, variance: f64) -> Self {
        if value <= 0.0 || variance <= 0.0 {
            return Self::exact(value);
        }
        let unit = variance / value;
        let shift = Z95 * Z95 * unit / 2.0;
        let half = (Z95 * Z95 * variance + shift * shift).sqrt();
        Self {
            value,
            low: (value + shift - half).clamp(0.0, value),
            high: value + shift + half,
        }
    }

    /// Multiplies the interval by a number. A negative number swaps the ends.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let (low, high) = if factor < 0.0 {
            (self.high, self.low)
        } else {
            (self.low, self.high)
        };
        Self {
            value: self.value * factor,
            low: low * factor,
            high: high * factor,
        }
    }

    /// Returns the sum of independent estimates.
    #[must_use]
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let (mut value, mut below, mut above) = (0.0, 0.0, 0.0);
        for part in parts {
            value += part.value;
            below += (part.value - part.low).powi(2);
            above += (part.high - part.value).powi(2);
        }
        Self {
            value,
            low: value - below.sqrt(),
            high: value + above.sqrt(),
        }
    }

    /// Limits the estimate and both ends of its interval to the range from `least` to `most`.
    #[must_use]
    pub fn within(self, least: f64, most: f64) -> Self {
        let most = most.max(least);
        Self {
            value: self.value.clamp(least, most),
            low: self.low.clamp(least, most),
            high: self.high.clamp(least, most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Interval, [value, low, high]: [f64; 3]) {
        for (found, expected) in [(found.value, value), (found.low, low), (found.high, high)] {
            assert!((found - expected).abs() < 5e-4, "{found} is not {expected}");
        }
    }

    #[test]
    fn shares_have_wilsons_interval() {
        // These shares are in table I of Newcombe 1998: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        near(
            Interval::share(81.0 / 263.0, 263.0, 0.0),
            [0.3080, 0.2553, 0.3662],
        );
        near(
            Interval::share(15.0 / 148.0, 148.0, 0.0),
            [0.1014, 0.0624, 0.1605],
        );
        near(Interval::share(0.0, 20.0, 0.0), [0.0, 0.0, 0.1611]);
        near(
            Interval::share(1.0 / 29.0, 29.0, 0.0),
            [0.0345, 0.0061, 0.1718],
        );
        // The interval for 20 of 20 is the mirror image of the interval for 0 of 20.
        near(Interval::share(1.0, 20.0, 0.0), [1.0, 0.8389, 1.0]);
    }

    #[test]
    fn a_complete_sample_has_no_uncertainty() {
        near(Interval::share(0.3, 50.0, 1.0), [0.3, 0.3, 0.3]);
        let (half, none) = (
            Interval::share(0.3, 50.0, 0.75),
            Interval::share(0.3, 50.0, 0.0),
        );
        let width = |i: Interval| i.high - i.low;
        // A quarter of the variance remains, so about half of the interval's width remains.
        assert!((width(half) / width(none) - 0.5).abs() < 0.03);
        near(Interval::share(0.4, 0.0, 0.0), [0.4, 0.0, 1.0]);
    }

    #[test]
    fn counts_have_the_score_interval_of_poissons_distribution() {
        // The 95 % score interval for a Poisson count of 10 is 10 + z²/2 ± z √(10 + z²/4), with z = 1.96.
        near(Interval::count(10.0, 10.0), [10.0, 5.4320, 18.4095]);
        near(
            Interval::count(1000.0, 100_000.0),
            [1000.0, 543.1986, 1840.9473],
        );
        near(Interval::count(7.0, 0.0), [7.0, 7.0, 7.0]);
        near(Interval::count(-7.0, 3.0), [-7.0, -7.0, -7.0]);
    }

    #[test]
    fn sums_of_intervals_keep_their_asymmetry() {
        let part = |value, low, high| Interval { value, low, high };
        let sum = Interval::sum([part(10.0, 7.0, 16.0), part(5.0, 1.0, 13.0)]);
        // The squares of the distances from value to end are added. The distance to the lower end is √(3² + 4²) = 5,
        // and the distance to the upper end is √(6² + 8²) = 10.
        near(sum, [15.0, 10.0, 25.0]);
        let less = Interval::sum([part(10.0, 7.0, 16.0), part(5.0, 1.0, 13.0).times(-1.0)]);
        near(less, [5.0, 5.0 - 73_f64.sqrt(), 5.0 + 52_f64.sqrt()]);
        near(Interval::sum([]), [0.0; 3]);
        near(sum.within(0.0, 20.0), [15.0, 10.0, 20.0]);
        near(sum.within(0.0, 12.0), [12.0, 10.0, 12.0]);
        near(sum.within(20.0, 12.0), [20.0, 20.0, 20.0]);
    }
}
