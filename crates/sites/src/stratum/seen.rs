//! Corrects estimates of stacks with few samples, which are too high on average.
//!
//! A stack without a sample does not appear in a report. So a stack with one or two samples may appear only because of
//! random variation. On average, the share of such stacks in the samples is larger than their share in the objects.
//!
//! A single sample is the only sample of its stack. The fraction of single samples is an estimate for the fraction of
//! the objects that stacks without a sample allocated (Good, Biometrika 40, 1953). This fraction is subtracted from the
//! stacks with few samples. If a stratum (objects of one class and size) has only one sample, this estimate would
//! always be 1. Then the estimate is the probability that two samples are of different stacks, which is estimated from
//! all strata with at least two samples.
//!
//! The lower end of an interval follows a zero-truncated Poisson distribution.

use std::collections::BTreeMap;

use super::{Stratum, float, total};
use crate::{Estimate, Interval};

/// If a stack has at least this number of samples, its share in the samples is not reduced. It is very unlikely that
/// such a stack has no sample at all.
const MANY: u64 = 10;
/// The lower end of a stack's interval is corrected if the stack has fewer samples than this.
const SOME: u64 = 40;
/// Probability that the true value is below the lower end.
const TAIL: f64 = 0.025;
/// Number of bisection steps in the computation of the lower end.
const HALVINGS: u32 = 40;

/// Returns the estimated probability that two samples of a stratum are of the same stack. Returns 0.5 if no stratum has
/// at least two samples.
pub(super) fn same_stack_probability<'a, K: 'a>(
    strata: impl Iterator<Item = &'a Stratum<K>>,
) -> f64 {
    let (mut agreed, mut all) = (0.5, 1.0);
    for stratum in strata {
        let samples = float(total(&stratum.came).samples);
        if samples < 2.0 {
            continue;
        }
        let pairs = |n: f64| n * (n - 1.0);
        let same: f64 = stratum.came.values().map(|e| pairs(float(e.samples))).sum();
        agreed += same / pairs(samples);
        all += 1.0;
    }
    agreed / all
}

/// The number of samples of each stack, for one class, in all its strata (groups of objects of about one size)
/// together.
#[derive(Debug)]
pub(super) struct Seen<K> {
    samples: BTreeMap<K, u64>,
    agreement: f64,
}

impl<K: Ord + Copy> Seen<K> {
    pub(super) fn new<'a>(strata: impl Iterator<Item = &'a Stratum<K>>, agreement: f64) -> Self
    where
        K: 'a,
    {
        let mut samples = BTreeMap::new();
        for (&key, estimate) in strata.flat_map(|stratum| &stratum.came) {
            *samples.entry(key).or_default() += estimate.samples;
        }
        Self { samples, agreement }
    }

    fn of(&self, key: &K) -> u64 {
        self.samples.get(key).copied().unwrap_or(0)
    }

    /// Returns the factor (at most 1) by which to multiply the shares of stacks with fewer than [`MANY`] samples.
    /// Without this factor, the shares are too large, because stacks without samples have a share, too.
    fn share_reduction(&self, came: &BTreeMap<K, Estimate>, drawn: f64) -> f64 {
        let all = total(came);
        let bytes_of = |most: u64| -> f64 {
            let few = came.iter().filter(|(key, _)| self.of(key) <= most);
            few.map(|(_, estimate)| estimate.net_bytes()).sum()
        };
        let (single, few) = (bytes_of(1), bytes_of(MANY - 1));
        if few <= 0.0 || single <= 0.0 {
            return 1.0;
        }
        let without = match all.samples {
            1 => single * (1.0 - self.agreement),
            _ => single,
        };
        (1.0 - without * (1.0 - drawn) / few).max(0.0)
    }

    /// Returns a function that corrects the share of a stack in the samples `came`. `came` contains the samples of each
    /// stack in one stratum. `drawn` is the fraction of the stratum's new objects that was sampled. `floor` returns the
    /// minimum share of a stack.
    pub(super) fn correct(
        &self,
        came: &BTreeMap<K, Estimate>,
        drawn: f64,
        floor: impl Fn(&Estimate) -> f64,
    ) -> impl Fn(K, Interval) -> Interval {
        let drawn = drawn.clamp(0.0, 1.0);
        let kept = self.share_reduction(came, drawn);
        let few: BTreeMap<K, (u64, u64, f64)> = came
            .iter()
            .map(|(&key, own)| (key, (own.samples, self.of(&key), floor(own))))
            .filter(|(_, (_, all, _))| *all < SOME)
            .collect();
        move |key, share| {
            let Some(&(samples, all, floor)) = few.get(&key) else {
                return share;
            };
            let floor = floor.min(share.value);
            // If a stack also has samples in other strata, a report lists it even if it had no samples in this stratum.
            // So the lower end of its interval needs no correction.
            let part = 1.0 - lower_mean_bound(samples) / float(samples);
            let exact = share.value * (1.0 - part * (1.0 - drawn).sqrt());
            let low = match all {
                _ if samples < all => share.low,
                ..MANY => exact,
                _ => f64::midpoint(exact, share.low),
            };
            let low = low.min(share.low).max(floor);
            let kept = if all < MANY { kept } else { 1.0 };
            Interval {
                value: (share.value * kept).max(low),
                low,
                high: share.high,
            }
        }
    }
}

/// Returns the intervals of stacks. They are corrected, because stacks without samples are missing in a report. Each
/// element of `groups` contains the stacks that allocated objects of one class and of about one size.
#[must_use]
pub fn corrected_intervals<K: Ord + Copy>(
    groups: Vec<BTreeMap<K, Estimate>>,
) -> BTreeMap<K, Interval> {
    let strata = groups.into_iter().map(|came| Stratum {
        came,
        ..Stratum::default()
    });
    let strata: Vec<Stratum<K>> = strata.collect();
    let agreement = same_stack_probability(strata.iter());
    let mut intervals = BTreeMap::new();
    for stratum in &strata {
        let seen = Seen::new(std::iter::once(stratum), agreement);
        let floor = |own: &Estimate| float(own.sampled_bytes());
        let correct = seen.correct(&stratum.came, 0.0, floor);
        let corrected = stratum.came.iter();
        let corrected = corrected.map(|(&key, own)| (key, correct(key, own.interval())));
        intervals.extend(corrected);
    }
    intervals
}

/// Returns the mean of a zero-truncated Poisson distribution for which a value of at least `samples` has the
/// probability [`TAIL`].
fn lower_mean_bound(samples: u64) -> f64 {
    if samples < 2 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, float(samples));
    for _ in 0..HALVINGS {
        let mean = f64::midpoint(low, high);
        let (mut term, mut below) = ((-mean).exp(), 0.0);
        let none = term;
        for n in 1..samples {
            term *= mean / float(n);
            below += term;
        }
        if 1.0 - below / (1.0 - none) < TAIL {
            low = mean
        } else {
            high = mean
        }
    }
    low
}
