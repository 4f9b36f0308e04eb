//! Totals estimated from samples, with their intervals.
//!
//! A sample represents several objects and bytes. Their numbers are the sample's [`Weight`] (Horvitz-Thompson
//! estimator). The weights of samples are added, and so are the variances. The interval is a score interval
//! ([`Interval::count`]). Its lower end is at least the bytes of the samples.

use crate::{Interval, Weight};

/// An estimated total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Number of samples.
    pub samples: u64,
    /// Estimated number of objects.
    objects: f64,
    /// Estimated bytes that [`Estimate::add`] and [`Estimate::merge`] added.
    added: Sum,
    /// Estimated bytes that [`Estimate::take`] subtracted.
    taken: Sum,
    /// Bytes of the sampled objects themselves.
    seen: f64,
}

/// A sum of estimated bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    bytes: f64,
    variance: f64,
    /// Sum of the squares of the samples' weights in bytes.
    squares: f64,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.variance += other.variance;
        self.squares += other.squares;
    }
}

/// Upper bounds for the bytes of objects whose samples the agent could not store. It is unknown which stacks allocated
/// these objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Upper bound for the bytes of objects in the last dump whose samples the agent could not store.
    pub there: u64,
    /// Upper bound for the bytes of objects in the first dump whose samples the agent could not store.
    pub gone: u64,
}

/// Rounds an estimate to a whole number, at least 0.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, as intended"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

impl Estimate {
    /// Returns an estimate of `bytes` bytes from `samples` samples. `seen` is the sum of the sizes of the sampled
    /// objects, in bytes.
    #[must_use]
    pub fn from_bytes(samples: u64, bytes: f64, variance: f64, seen: f64) -> Self {
        let added = Sum {
            bytes,
            variance,
            ..Sum::default()
        };
        Self {
            samples,
            added,
            seen,
            ..Self::default()
        }
    }

    /// Adds a sample of an object of `size` bytes.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn add(&mut self, weight: &Weight, size: u64) {
        self.samples += 1;
        self.objects += weight.objects;
        self.added.add(&Sum {
            bytes: weight.bytes,
            variance: weight.bytes_variance,
            squares: weight.bytes * weight.bytes,
        });
        self.seen += size as f64;
    }

    /// Adds another estimate.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.objects += other.objects;
        self.added.add(&other.added);
        self.taken.add(&other.taken);
        self.seen += other.seen;
    }

    /// Subtracts another estimate. The variances are added, and the number of samples stays the same.
    pub fn take(&mut self, other: &Self) {
        self.objects -= other.objects;
        self.taken.add(&other.added);
        self.added.add(&other.taken);
        self.seen = (self.seen - other.seen).max(0.0);
    }

    /// Returns the estimated number of objects.
    #[must_use]
    pub fn objects(&self) -> u64 {
        whole(self.objects)
    }

    /// Returns the estimated number of objects, not rounded. It is negative if more objects were subtracted than added.
    #[must_use]
    pub(crate) fn net_objects(&self) -> f64 {
        self.objects
    }

    /// Returns the estimated bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        whole(self.net_bytes())
    }

    /// Returns the estimated number of bytes, not rounded. It is negative if more bytes were subtracted than added.
    #[must_use]
    pub fn net_bytes(&self) -> f64 {
        self.added.bytes - self.taken.bytes
    }

    /// Returns the estimated number of objects per byte, from the sizes of the samples.
    pub(crate) fn objects_per_byte(&self) -> f64 {
        if self.added.bytes > 0.0 {
            self.objects / self.added.bytes
        } else {
            0.0
        }
    }

    /// Returns the sum of the sizes of the sampled objects, in bytes.
    pub(crate) fn sampled_bytes(&self) -> u64 {
        whole(self.seen)
    }

    /// Returns the effective number of samples (Kish): the number of samples of equal weight that would give the same
    /// precision.
    pub(crate) fn effective_samples(&self) -> f64 {
        if self.added.squares > 0.0 {
            self.added.bytes * self.added.bytes / self.added.squares
        } else {
            0.0
        }
    }

    /// Returns the bytes with their interval.
    #[must_use]
    pub fn interval(&self) -> Interval {
        let [added, taken] =
            [self.added, self.taken].map(|sum| Interval::count(sum.bytes, sum.variance));
        let net = Interval::sum([added, taken.times(-1.0)]);
        let low = net.low.max(self.seen.min(net.value));
        Interval { low, ..net }
    }

    /// Returns the 95 % confidence interval in bytes, widened by the bytes of objects that may have no sample.
    #[must_use]
    pub fn ci95(&self, unseen: Unseen) -> [u64; 2] {
        unseen.widen_to_bytes(self.interval())
    }
}

impl Unseen {
    /// Rounds an interval to whole bytes, and widens it by the bytes of objects that may have no sample.
    #[must_use]
    pub fn widen_to_bytes(&self, interval: Interval) -> [u64; 2] {
        [
            whole(interval.low).saturating_sub(self.gone),
            whole(interval.high).saturating_add(self.there),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(bytes: f64, variance: f64) -> Weight {
        Weight {
            objects: 2.0,
            bytes,
            objects_variance: 0.0,
            bytes_variance: variance,
        }
    }

    #[test]
    fn estimates_are_added_and_subtracted() {
        let one = |bytes, variance, size| {
            let mut one = Estimate::default();
            one.add(&weight(bytes, variance), size);
            one
        };
        let none = Unseen::default();
        // Standard errors add up as squares: 50 and 87 give 100.
        let mut sum = one(1000.0, 2500.0, 100);
        sum.merge(&one(500.0, 7500.0, 300));
        assert_eq!((sum.objects(), sum.bytes()), (4, 1500));
        assert_eq!(sum.ci95(none), [1316, 1709]);
        sum.merge(&one(1.0, 0.0, 0));
        assert_eq!((sum.samples, sum.objects()), (3, 6));
        // Subtracting an estimate increases the uncertainty as much as adding one.
        let mut net = one(1000.0, 2500.0, 100);
        net.take(&one(500.0, 7500.0, 30));
        assert_eq!((net.objects(), net.bytes()), (0, 500));
        assert_eq!(net.ci95(none), [278, 676]);
        // The sampled objects exist, so the lower end is at least their bytes, even if the estimate is very uncertain.
        let mut wide = one(1000.0, 1e8, 700);
        wide.merge(&one(1000.0, 1e8, 200));
        assert_eq!(wide.ci95(none)[0], 900);
        wide.take(&one(100.0, 1e8, 250));
        assert_eq!((wide.objects(), wide.ci95(none)[0]), (2, 650));
    }

    #[test]
    fn samples_and_their_variances_add_up() {
        let mut sum = Estimate::default();
        assert_eq!(sum.ci95(Unseen::default()), [0, 0]);
        for _ in 0..4 {
            sum.add(&weight(1000.0, 2500.0), 100);
        }
        assert_eq!((sum.samples, sum.objects(), sum.bytes()), (4, 8, 4000));
        // The four variances of 2500 add up to 10,000, so the standard error is 100.
        assert_eq!(sum.ci95(Unseen::default()), [3809, 4201]);
        let unseen = Unseen { there: 7, gone: 4 };
        assert_eq!(sum.ci95(unseen), [3805, 4208]);
        let mut twice = sum;
        twice.merge(&sum);
        assert_eq!((twice.samples, twice.bytes()), (8, 8000));
        twice.take(&sum);
        assert_eq!((twice.samples, twice.bytes()), (8, 4000));
        sum.take(&twice);
        sum.take(&twice);
        assert_eq!((sum.objects(), sum.net_objects()), (0, -8.0));
    }

    #[test]
    fn no_interval_goes_below_the_samples_or_zero() {
        let mut one = Estimate::default();
        one.add(&weight(1000.0, 1e9), 600);
        assert_eq!(one.ci95(Unseen::default())[0], 600);
        one.take(&one.clone());
        one.take(&one.clone());
        let mut other = Estimate::default();
        other.add(&weight(50.0, 0.0), 0);
        one.take(&other);
        assert_eq!((one.bytes(), one.net_bytes()), (0, -50.0));
        assert_eq!(one.ci95(Unseen::default())[0], 0);
        assert_eq!((whole(-0.6), whole(1e30)), (0, u64::MAX));
    }
}
