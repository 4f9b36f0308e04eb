//! Weights: how many objects and bytes a sample represents.
//!
//! A sample is taken with a known probability `p`, so it represents `1 / p` objects (Horvitz-Thompson estimator).
//! HotSpot draws the number of bytes between samples from an exponential distribution with mean `interval`: an object
//! of `size` bytes is sampled with probability `1 - exp(-size / interval)`.

/// The rule by which the agent chooses which allocations to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Samples are chosen by allocated bytes, by the sampler of the JVM.
    #[default]
    Bytes,
    /// One sample in `rate` allocations on average. The distances vary at random (jitter).
    Count,
    /// One sample in `rate` milliseconds on average. The distances vary at random (jitter). The weight of such a sample
    /// is unknown.
    Time,
    /// One sample in `rate` allocations of each class on average. The distances vary at random (jitter). All
    /// allocations are counted.
    Class,
}

impl Strategy {
    /// Returns the number in the static field `strategy`.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Bytes => 0,
            Self::Count => 1,
            Self::Time => 2,
            Self::Class => 3,
        }
    }

    /// Returns the strategy with this number.
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Self::Bytes),
            1 => Some(Self::Count),
            2 => Some(Self::Time),
            3 => Some(Self::Class),
            _ => None,
        }
    }
}

/// The parameters of sampling, as in the static fields `strategy`, `interval` and `rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sampling {
    /// The strategy.
    pub strategy: Strategy,
    /// Mean bytes between samples; 0 samples every allocation.
    pub interval: u64,
    /// Mean number of allocations, or of milliseconds, between samples. With 0 or 1, every allocation is sampled.
    pub rate: u64,
}

/// The estimates made from one sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// Estimated number of objects.
    pub objects: f64,
    /// Estimated bytes.
    pub bytes: f64,
    /// Variance of `objects`. The variances of samples add up.
    pub objects_variance: f64,
    /// Variance of `bytes`.
    pub bytes_variance: f64,
}

impl Weight {
    /// Returns the weight of an exactly known number of objects and bytes. Its variance is 0.
    #[must_use]
    pub const fn exact(objects: f64, bytes: f64) -> Self {
        Self {
            objects,
            bytes,
            objects_variance: 0.0,
            bytes_variance: 0.0,
        }
    }

    /// Returns the weight of a sample whose sampling probability is unknown. Such samples are treated as independent,
    /// and their number as Poisson-distributed. So the variance of a sum is the sum of the squared weights.
    #[must_use]
    pub const fn poisson(objects: f64, bytes: f64) -> Self {
        Self {
            objects,
            bytes,
            objects_variance: objects * objects,
            bytes_variance: bytes * bytes,
        }
    }
}

/// Minimum size of objects that a JVM before JDK 25 may allocate outside of the thread's TLAB: 1/64
/// (`TLABRefillWasteFraction`) of a TLAB of 512 KiB.
const OUTSIDE: u64 = 8 << 10;
/// Maximum factor by which a JVM before JDK 25 takes too few samples of objects of at least [`OUTSIDE`] bytes. In
/// measurements, G1 took a quarter too few samples, and ZGC a third too few (`docs/measurements.md`).
const SHORT: f64 = 1.5;

impl Sampling {
    /// Returns the factor by which a JVM before JDK 25 may take too few samples of objects of this size (JDK-8356372).
    ///
    /// When such a JVM allocates an object outside of the TLAB, it checks whether the next sample is due. This check
    /// ignores the bytes that were allocated in the TLAB since the last sample. So the object is sampled only if at
    /// least two random sample points fall into one range: the ignored bytes, followed by the object. Let `x` be the
    /// size divided by the interval. The probability of a sample is then:
    ///
    /// ```text
    /// inside the TLAB:  1 - exp(-x)
    /// outside:          at least 1 - (1 + x) exp(-x)
    /// ```
    ///
    /// How many objects are allocated outside of TLABs depends on the unknown size of the TLABs. So the factor is
    /// limited to the measured maximum.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn shortfall(&self, size: u64) -> f64 {
        match self.strategy {
            Strategy::Bytes if self.interval > 0 && size >= OUTSIDE => {
                let x = size as f64 / self.interval as f64;
                let (inside, outside) = (-f64::exp_m1(-x), 1.0 - (1.0 + x) * f64::exp(-x));
                (inside / outside.max(f64::MIN_POSITIVE)).clamp(1.0, SHORT)
            }
            _ => 1.0,
        }
    }

    /// Returns the probability that an object of this size is sampled, or `None` if it is unknown ([`Strategy::Time`]).
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn probability(&self, size: u64) -> Option<f64> {
        match self.strategy {
            Strategy::Bytes if self.interval == 0 => Some(1.0),
            // No object has 0 bytes. If a size is 0, use the size of the smallest object.
            Strategy::Bytes => Some(-f64::exp_m1(-(size.max(8) as f64) / self.interval as f64)),
            Strategy::Count | Strategy::Class => Some(1.0 / self.rate.max(1) as f64),
            Strategy::Time => None,
        }
    }

    /// Returns the weight of a sample of this size: `size / p` bytes, with variance `size² (1 - p) / p²`. Returns
    /// `None` if `p` is unknown ([`Strategy::Time`]).
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn weight(&self, size: u64) -> Option<Weight> {
        let p = self.probability(size)?;
        let variance = (1.0 - p) / (p * p);
        let bytes = size as f64;
        Some(Weight {
            objects: 1.0 / p,
            bytes: bytes / p,
            objects_variance: variance,
            bytes_variance: bytes * bytes * variance,
        })
    }

    /// Returns the bytes that a sample represents. The results stay comparable if the agent takes fewer samples later
    /// in a run. `first` is the sampling with which the agent started.
    ///
    /// The result is the bytes of [`Self::weight`]. If the weight is unknown, the result is the size, multiplied by
    /// `self.rate` and divided by `first.rate`.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn relative_bytes(&self, first: &Sampling, size: u64) -> f64 {
        self.weight(size).map_or_else(
            || size as f64 * (self.rate.max(1) as f64 / first.rate.max(1) as f64),
            |weight| weight.bytes,
        )
    }

    /// Returns a sampling that takes about half as many samples: with twice the interval (bytes per sample), or twice
    /// the `rate` (allocations or milliseconds per sample). An interval of 0 becomes 512 bytes. The agent uses the
    /// result once its table of samples is full.
    #[must_use]
    pub fn doubled(&self) -> Self {
        let mut next = *self;
        match self.strategy {
            Strategy::Bytes if self.interval == 0 => next.interval = 512,
            Strategy::Bytes => next.interval = self.interval.saturating_mul(2),
            _ => next.rate = self.rate.max(1).saturating_mul(2),
        }
        next
    }

    /// Returns true if a sample that was taken with the finer sampling `first` would also be taken with this sampling.
    ///
    /// The uid is hashed to a number between 0 and 1. The sample is kept if this number is below the ratio of the two
    /// sampling probabilities. So a sample that a coarse sampling keeps is also kept by all finer samplings, and a
    /// reader of a dump can repeat the choice.
    #[must_use]
    pub fn would_take(&self, first: &Sampling, uid: u64, size: u64) -> bool {
        let ratio = match (self.probability(size), first.probability(size)) {
            (Some(now), Some(before)) => now / before,
            #[allow(clippy::cast_precision_loss, reason = "a ratio")]
            _ => first.rate.max(1) as f64 / self.rate.max(1) as f64,
        };
        uniform(uid) < ratio
    }
}

/// Hashes the uid to a number in [0, 1), with 53 bits of the finalizer of splitmix64.
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
fn uniform(uid: u64) -> f64 {
    let mut z = uid.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(interval: u64) -> Sampling {
        Sampling {
            strategy: Strategy::Bytes,
            interval,
            rate: 0,
        }
    }

    fn every(rate: u64) -> Sampling {
        Sampling {
            strategy: Strategy::Count,
            interval: 0,
            rate,
        }
    }

    #[test]
    fn at_interval_zero_each_allocation_counts_once() {
        let weight = bytes(0).weight(24).unwrap();
        assert_eq!((weight.objects, weight.bytes), (1.0, 24.0));
        assert_eq!((weight.objects_variance, weight.bytes_variance), (0.0, 0.0));
    }

    #[test]
    fn variances_match_those_of_the_estimator() {
        let count = Sampling {
            strategy: Strategy::Count,
            interval: 0,
            rate: 4,
        };
        // The variance is (1 - p) / p² with p = 1/4.
        let weight = count.weight(10).unwrap();
        assert_eq!((weight.objects, weight.bytes), (4.0, 40.0));
        assert_eq!(weight.objects_variance, 12.0);
        assert_eq!(weight.bytes_variance, 1200.0);
        // If the probability is unknown, the variance is the square of the estimate.
        let weight = Weight::poisson(3.0, 50.0);
        assert_eq!((weight.objects, weight.bytes), (3.0, 50.0));
        assert_eq!(weight.objects_variance, 9.0);
        assert_eq!(weight.bytes_variance, 2500.0);
    }

    #[test]
    fn the_choice_is_the_same_in_every_version() {
        // Agents and readers of different versions must agree on the hash. The first value is the first output of
        // splitmix64.
        for (uid, bits) in [
            (0, 0xe220_a839_7b1d_cdaf_u64),
            (1, 0x910a_2dec_8902_5cc1),
            (2, 0x9758_35de_1c97_56ce),
            (3, 0x1d0b_14e4_db01_8fed),
        ] {
            let expected = (bits >> 11) as f64 / (1_u64 << 53) as f64;
            assert_eq!(uniform(uid), expected);
        }
    }

    #[test]
    fn small_objects_weigh_an_interval_and_large_ones_their_size() {
        let s = bytes(524_288);
        let small = s.weight(16).unwrap();
        assert!((small.bytes / 524_296.0 - 1.0).abs() < 1e-6, "{small:?}");
        let large = s.weight(100 << 20).unwrap();
        assert!((large.bytes / f64::from(100 << 20) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn large_objects_before_jdk_25_may_be_underestimated() {
        let s = bytes(65_536);
        assert_eq!((s.shortfall(24), s.shortfall(OUTSIDE - 1)), (1.0, 1.0));
        assert_eq!((s.shortfall(OUTSIDE), s.shortfall(40_000)), (SHORT, SHORT));
        // The size divided by the interval is 3.05, so the factor is 0.953 / 0.808 (see `shortfall`).
        assert!((s.shortfall(200_000) - 1.179).abs() < 1e-3);
        assert!(s.shortfall(1 << 20) < 1.00001 && s.shortfall(u64::MAX) == 1.0);
        // If the JVM reports every allocation to the agent, no sample is missing, so the factor is 1.
        assert_eq!(bytes(0).shortfall(200_000), 1.0);
        assert_eq!(every(7).shortfall(200_000), 1.0);
    }

    #[test]
    fn a_simulation_shows_that_weights_are_unbiased() {
        // Each object is sampled with its probability. The mean of the estimates must be the true value.
        let s = bytes(4096);
        for size in [16_u64, 1000, 4096, 20_000] {
            let (mut sum, mut var, n) = (0.0, 0.0, 200_000_u64);
            for i in 0..n {
                if uniform(i) < s.probability(size).unwrap() {
                    let w = s.weight(size).unwrap();
                    sum += w.bytes;
                    var += w.bytes_variance;
                }
            }
            let truth = (n * size) as f64;
            assert!((sum - truth).abs() < 4.0 * var.sqrt(), "{size}: {sum}");
        }
    }

    #[test]
    fn downsampling_is_nested_and_gives_the_new_probability() {
        let first = bytes(1000);
        let (second, third) = (first.doubled(), first.doubled().doubled());
        assert_eq!(third.interval, 4000);
        let size = 3000;
        let n = 100_000_u32;
        let mut kept = 0;
        for uid in 1..=n {
            let uid = u64::from(uid);
            let (a, b) = (
                second.would_take(&first, uid, size),
                third.would_take(&first, uid, size),
            );
            assert!(a || !b, "uid {uid} is kept by the coarser sampling only");
            kept += u32::from(b);
        }
        let expected = third.probability(size).unwrap() / first.probability(size).unwrap();
        assert!((f64::from(kept) / f64::from(n) - expected).abs() < 0.005);
        assert!(bytes(0).doubled().interval > 0);
    }

    #[test]
    fn weights_of_other_strategies() {
        let count = Sampling {
            strategy: Strategy::Count,
            interval: 0,
            rate: 100,
        };
        assert_eq!(count.weight(24).unwrap().bytes, 2400.0);
        assert_eq!(count.doubled().rate, 200);
        let time = Sampling {
            strategy: Strategy::Time,
            interval: 0,
            rate: 10,
        };
        assert_eq!(time.weight(24), None);
        assert_eq!(time.relative_bytes(&time, 24), 24.0);
        assert_eq!(time.doubled().doubled().relative_bytes(&time, 24), 96.0);
        assert_eq!(count.relative_bytes(&count, 24), 2400.0);
        let kept = (1..=10_000)
            .filter(|&uid| time.doubled().would_take(&time, uid, 24))
            .count();
        assert!((4700..5300).contains(&kept), "{kept}");
        for code in -1..6 {
            assert_eq!(
                Strategy::from_code(code).map(Strategy::code),
                Some(code).filter(|c| (0..4).contains(c))
            );
        }
    }
}
