//! Totals that are estimated from samples, and how far they may be off.
//!
//! A sample stands for several objects and bytes, its [`Weight`] (Horvitz and Thompson's estimator). Weights and
//! variances of samples add up. The interval is that of a normal distribution, but never below the bytes of the
//! samples themselves.

use heapdiff_trend::Z95;

use crate::Weight;

/// An estimated total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The number of samples.
    pub samples: u64,
    /// Estimated objects.
    objects: f64,
    /// Estimated bytes.
    bytes: f64,
    /// Variance of `bytes`.
    variance: f64,
    /// Bytes of the samples themselves.
    seen: f64,
}

/// The most bytes that objects without a sample can have, because the agent could not keep it. Their stacks
/// are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Of objects in the last dump.
    pub there: u64,
    /// Of objects in the first dump.
    pub gone: u64,
}

/// An estimate as a whole number, at least 0.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, as it should"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Half of the interval that covers the truth in 95 % of cases, of an estimate of this variance.
#[must_use]
pub fn half_width(variance: f64) -> f64 {
    Z95 * variance.sqrt()
}

impl Estimate {
    /// Adds a sample of an object of `size` bytes.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn add(&mut self, weight: &Weight, size: u64) {
        self.samples += 1;
        self.objects += weight.objects;
        self.bytes += weight.bytes;
        self.variance += weight.bytes_variance;
        self.seen += size as f64;
    }

    /// Adds another estimate.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.variance += other.variance;
        self.seen += other.seen;
    }

    /// Subtracts another estimate; the variances add up, and the number of samples stays.
    pub fn take(&mut self, other: &Self) {
        self.bytes -= other.bytes;
        self.objects = (self.objects - other.objects).max(0.0);
        self.variance += other.variance;
        self.seen = (self.seen - other.seen).max(0.0);
    }

    /// Estimated objects.
    #[must_use]
    pub fn objects(&self) -> u64 {
        whole(self.objects)
    }

    /// Estimated bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        whole(self.bytes)
    }

    /// Estimated bytes, not rounded: below 0 where more was taken than added.
    #[must_use]
    pub fn net_bytes(&self) -> f64 {
        self.bytes
    }

    /// The interval in bytes that covers the truth in 95 % of cases, wider by what may have no sample.
    #[must_use]
    pub fn ci95(&self, unseen: Unseen) -> [u64; 2] {
        let half = half_width(self.variance);
        let low = (self.bytes - half).max(self.seen.min(self.bytes)).max(0.0);
        [
            whole(low).saturating_sub(unseen.gone),
            whole(self.bytes + half).saturating_add(unseen.there),
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
    fn estimates_add_up_and_are_subtracted_part_by_part() {
        let one = |bytes, variance, size| {
            let mut one = Estimate::default();
            one.add(&weight(bytes, variance), size);
            one
        };
        let none = Unseen::default();
        // Standard errors of 50 and 87 make one of 100.
        let mut sum = one(1000.0, 2500.0, 100);
        sum.merge(&one(500.0, 7500.0, 300));
        assert_eq!((sum.objects(), sum.bytes()), (4, 1500));
        assert_eq!(sum.ci95(none), [1304, 1696]);
        sum.merge(&one(1.0, 0.0, 0));
        assert_eq!((sum.samples, sum.objects()), (3, 6));
        // What was subtracted is as uncertain as what was added.
        let mut net = one(1000.0, 2500.0, 100);
        net.take(&one(500.0, 7500.0, 30));
        assert_eq!((net.objects(), net.bytes()), (0, 500));
        assert_eq!(net.ci95(none), [304, 696]);
        // However uncertain, it is no less than the bytes of the samples.
        let mut wide = one(1000.0, 1e8, 700);
        wide.merge(&one(1000.0, 1e8, 200));
        assert_eq!(wide.ci95(none)[0], 900);
        wide.take(&one(100.0, 1e8, 250));
        assert_eq!((wide.objects(), wide.ci95(none)[0]), (2, 650));
    }

    #[test]
    fn samples_add_up_and_the_interval_is_theirs() {
        let mut sum = Estimate::default();
        assert_eq!(sum.ci95(Unseen::default()), [0, 0]);
        for _ in 0..4 {
            sum.add(&weight(1000.0, 2500.0), 100);
        }
        assert_eq!((sum.samples, sum.objects(), sum.bytes()), (4, 8, 4000));
        // Four variances: a standard error of 100.
        assert_eq!(sum.ci95(Unseen::default()), [3804, 4196]);
        let unseen = Unseen { there: 7, gone: 4 };
        assert_eq!(sum.ci95(unseen), [3800, 4203]);
        let mut twice = sum;
        twice.merge(&sum);
        assert_eq!((twice.samples, twice.bytes()), (8, 8000));
        twice.take(&sum);
        assert_eq!((twice.samples, twice.bytes()), (8, 4000));
        assert_eq!(
            half_width(12.0 * 2500.0),
            half_width(1.0) * 30_000_f64.sqrt()
        );
    }

    #[test]
    fn no_interval_goes_below_what_was_seen_or_below_nothing() {
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
