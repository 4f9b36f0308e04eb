//! Estimates from samples combined with the exact totals of a dump (post-stratification).
//!
//! A dump shows how many objects of each class and size are alive, but not which stacks allocated them. All samples of
//! one class and size, a *stratum*, were taken with the same probability. So they show which *share* of the stratum
//! each stack allocated, even if the probability is unknown. This matters because JVMs before JDK 25 ignore part of the
//! bytes that a thread allocated since its last sample. The ignored part differs between small and large objects. The
//! estimate of a stack is its share times the exact total:
//!
//! ```text
//! stratum: byte[] of 1 KiB, 1000 alive    samples: 3 of stack A, 1 of stack B
//! estimate: A 750 objects, B 250 objects
//! ```
//!
//! The estimates of all stacks add up to the total.
//!
//! With two dumps, the total consists of the objects that were allocated between the dumps: the objects in the last
//! dump minus the objects that survived from the first dump. The number of survivors is estimated from the samples that
//! are in both dumps.

mod seen;

use std::collections::BTreeMap;

use self::seen::Seen;
pub use self::seen::corrected_intervals;
use crate::births::Counts;
use crate::{Estimate, Interval, Sampling};

/// A stratum (a group of objects of about one size) with fewer samples than this is merged with the strata of
/// neighbouring sizes.
const FEW: u64 = 5;
/// If at least this number of samples is expected but there is no sample, the objects must have been allocated before
/// sampling began.
const EXPECTED: f64 = 4.0;
/// Maximum distance, in size classes, between two neighbouring strata that are merged. A distance of 4 is a doubling of
/// the size.
const NEAR: u32 = 4;
/// A sampling probability of at least this value is treated as 1.
const ALL: f64 = 0.999;

/// Returns the size class of a size in bytes. There are four size classes between a power of two and the next.
#[must_use]
pub fn size_class(bytes: u64) -> u32 {
    let bytes = bytes.max(8);
    let power = bytes.ilog2();
    let quarter = (bytes >> (power - 2)) & 3;
    power * 4 + u32::try_from(quarter).unwrap_or(0)
}

/// A number of objects and their bytes, which are exact and not estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Number of objects.
    pub objects: u64,
    /// Their shallow bytes.
    pub bytes: u64,
}

impl Known {
    /// Adds a number of objects.
    pub fn add(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// How the exact totals of a stratum (objects of one class and size) are used to estimate the parts of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Totals {
    /// All new objects were allocated while sampling was active. So the totals are divided in proportion to the
    /// samples.
    Shared,
    /// Some objects may have been allocated before sampling began, so the totals are only upper bounds.
    Most,
    /// The totals are only upper bounds, as in [`Self::Most`], and the JVM is older than JDK 25. So there may be more
    /// large objects than the samples show ([`Sampling::shortfall`]).
    MostOfMore,
}

/// How to find the objects of the first dump that survived until the last dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Survivors are identified by uid: both dumps are of one JVM, where samples keep their uids.
    Uids,
    /// There are no survivors: the dumps are of two JVMs, or there is only one dump.
    Nothing,
}

/// The keys by which samples are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Allocation stacks. A report lists only stacks with samples, so estimates are corrected for stacks without
    /// samples.
    Stacks,
    /// Groups other than stacks. A report lists all groups, even groups without samples. So no correction for missing
    /// groups is needed.
    Groups,
}

/// Objects of one class and size, with their samples grouped by key.
#[derive(Clone, Debug)]
pub struct Stratum<K> {
    /// Objects in the first dump; none if there is only one dump.
    pub before: Known,
    /// Objects in the last dump.
    pub after: Known,
    /// Samples in both dumps.
    pub kept: BTreeMap<K, Estimate>,
    /// Samples in the last dump only.
    pub came: BTreeMap<K, Estimate>,
    /// Samples in the first dump only.
    pub went: BTreeMap<K, Estimate>,
    /// The stacks of the samples that are only in the last dump ([`Self::came`]), with the exact allocation counts of
    /// the class. `None` if allocations of the class were not counted.
    pub counts: Option<Counts<K>>,
}

impl<K> Default for Stratum<K> {
    fn default() -> Self {
        Self {
            before: Known::default(),
            after: Known::default(),
            kept: BTreeMap::new(),
            came: BTreeMap::new(),
            went: BTreeMap::new(),
            counts: None,
        }
    }
}

/// The objects that one stack allocated, in one or several strata (groups of objects of about one size).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Number of objects.
    pub objects: f64,
    /// Bytes with their interval.
    pub bytes: Interval,
    /// The bytes as estimated from samples alone, if exact counts narrowed the interval of `bytes`; otherwise `None`.
    pub sampled: Option<Interval>,
}

impl Part {
    /// Multiplies objects and bytes by a number above 0.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            objects: self.objects * factor,
            bytes: self.bytes.times(factor),
            sampled: self.sampled.map(|sampled| sampled.times(factor)),
        }
    }

    /// Adds an independent part.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        if self.sampled.is_some() || other.sampled.is_some() {
            let sampled = [&*self, &other].map(|part| part.sampled.unwrap_or(part.bytes));
            self.sampled = Some(Interval::sum(sampled));
        }
        self.bytes = Interval::sum([self.bytes, other.bytes]);
    }
}

/// Objects divided among keys such as stacks. The objects of each class and size (stratum) are divided separately.
#[derive(Clone, Debug)]
pub struct Division<K> {
    /// Each key's part of the objects and bytes. A part is negative if more objects were freed than allocated.
    pub parts: BTreeMap<K, Part>,
    /// Bytes of growth in strata without samples.
    pub unsampled: u64,
}

impl<K> Default for Division<K> {
    fn default() -> Self {
        Self {
            parts: BTreeMap::new(),
            unsampled: 0,
        }
    }
}

impl<K: Ord + Copy> Division<K> {
    fn add_stratum(
        &mut self,
        stratum: &Stratum<K>,
        sampling: &Sampling,
        totals: Totals,
        follow: Follow,
        seen: Option<&Seen<K>>,
    ) {
        if stratum.samples() == 0 {
            let growth = stratum.after.bytes.saturating_sub(stratum.before.bytes);
            self.unsampled = self.unsampled.saturating_add(growth);
            return;
        }
        let most = Some(stratum.most());
        let parts = match totals {
            _ if stratum.is_all(sampling) || !stratum.is_consistent() => {
                stratum.direct(None, 1.0, None)
            }
            Totals::Shared => stratum.shared(follow, seen),
            Totals::Most => stratum.direct(most, 1.0, seen),
            Totals::MostOfMore => {
                stratum.direct(most, sampling.shortfall(stratum.mean_size()), seen)
            }
        };
        for (key, part) in parts {
            self.parts.entry(key).or_default().add(part);
        }
    }

    /// Adds samples that belong to no stratum. Objects and bytes are estimated from the weights of the samples alone.
    pub fn add_direct(&mut self, samples: BTreeMap<K, Estimate>) {
        for (key, estimate) in samples {
            let part = Part {
                objects: estimate.net_objects(),
                bytes: estimate.interval(),
                sampled: None,
            };
            self.parts.entry(key).or_default().add(part);
        }
    }
}

impl<K: Ord + Copy> Stratum<K> {
    /// Divides the objects of several classes among keys, such as allocating stacks. `strata` maps each class and size
    /// class to its stratum. If `keys` is [`Keys::Stacks`], the parts of stacks with few samples are reduced, because
    /// stacks without samples have a part, too.
    #[must_use]
    pub fn divide<C>(
        strata: BTreeMap<C, BTreeMap<u32, Self>>,
        sampling: &Sampling,
        totals: Totals,
        follow: Follow,
        keys: Keys,
    ) -> Division<K> {
        let strata = strata.into_values();
        let classes: Vec<Vec<Self>> = strata.map(|of| merge_small_strata(of, sampling)).collect();
        let agreement = match keys {
            Keys::Stacks => Some(seen::same_stack_probability(classes.iter().flatten())),
            Keys::Groups => None,
        };
        let mut division = Division::default();
        for class in classes {
            let seen = agreement.map(|agreement| Seen::new(class.iter(), agreement));
            for stratum in class {
                division.add_stratum(&stratum, sampling, totals, follow, seen.as_ref());
            }
        }
        division
    }

    fn samples(&self) -> u64 {
        total(&self.came).samples + total(&self.went).samples
    }

    fn merge(&mut self, other: Self) {
        self.before.add(other.before);
        self.after.add(other.after);
        for (own, others) in [
            (&mut self.kept, other.kept),
            (&mut self.came, other.came),
            (&mut self.went, other.went),
        ] {
            for (key, estimate) in others {
                own.entry(key).or_default().merge(&estimate);
            }
        }
        match (&mut self.counts, other.counts) {
            (Some(own), Some(other)) => own.merge(other),
            (own, other) => *own = own.take().or(other),
        }
    }

    /// Returns the number of samples to expect among the new objects.
    fn expected(&self, sampling: &Sampling) -> f64 {
        let size = self.after.bytes.checked_div(self.after.objects);
        let born = self.after.objects.saturating_sub(self.before.objects);
        let probability = size.and_then(|size| sampling.probability(size));
        probability.unwrap_or(0.0) * float(born)
    }

    /// Returns true if totals must not be divided in proportion to the samples: either every object was sampled, or
    /// the sampling probability is unknown.
    fn is_all(&self, sampling: &Sampling) -> bool {
        let probability = sampling.probability(self.mean_size());
        probability.is_none_or(|p| p >= ALL)
    }

    /// Returns the mean size of the samples.
    fn mean_size(&self) -> u64 {
        let (came, went) = (total(&self.came), total(&self.went));
        (came.sampled_bytes() + went.sampled_bytes())
            .checked_div(came.samples + went.samples)
            .unwrap_or(0)
    }

    /// Returns true if there are at least as many objects as samples. This is false only in a damaged dump.
    fn is_consistent(&self) -> bool {
        let (kept, came, went) = (total(&self.kept), total(&self.came), total(&self.went));
        self.after.objects >= came.samples + kept.samples && self.before.objects >= went.samples
    }

    fn most(&self) -> u64 {
        self.after.bytes.saturating_sub(self.before.bytes)
    }

    /// Estimates the objects of each key by the weights of the key's samples. Multiplies the upper ends of the
    /// intervals by `shortfall`, the factor by which the JVM may have taken too few samples. Scales the estimates down
    /// if their sum exceeds `most` bytes.
    fn direct(
        &self,
        most: Option<u64>,
        shortfall: f64,
        seen: Option<&Seen<K>>,
    ) -> BTreeMap<K, Part> {
        let floor = |own: &Estimate| float(own.sampled_bytes());
        let correct = seen.map(|seen| seen.correct(&self.came, 0.0, floor));
        let mut net: BTreeMap<K, Estimate> = self.came.clone();
        for (&key, went) in &self.went {
            net.entry(key).or_default().take(went);
        }
        let sum: f64 = net.values().map(|e| e.net_bytes().max(0.0)).sum();
        let most = most.map_or(f64::INFINITY, float);
        let factor = if sum > most { most / sum } else { 1.0 };
        let part = |(key, estimate): (K, Estimate)| {
            let bytes = estimate.interval();
            let bytes = Interval {
                value: bytes.value * factor,
                low: bytes.low * factor,
                high: (bytes.high * shortfall).min(most).max(bytes.value * factor),
            };
            let corrected = match &correct {
                Some(correct) if !self.went.contains_key(&key) => correct(key, bytes),
                _ => bytes,
            };
            let kept = if bytes.value == 0.0 {
                1.0
            } else {
                corrected.value / bytes.value
            };
            let bytes = corrected;
            let objects = estimate.net_objects() * factor * kept;
            let part = Part {
                objects,
                bytes,
                sampled: None,
            };
            (key, part)
        };
        net.into_iter().map(part).collect()
    }

    /// Divides the total among the keys, in proportion to their samples.
    fn shared(&self, follow: Follow, seen: Option<&Seen<K>>) -> BTreeMap<K, Part> {
        let (kept, came, went) = (total(&self.kept), total(&self.came), total(&self.went));
        let survival = match follow {
            Follow::Nothing => Interval::exact(0.0),
            Follow::Uids => survival(&kept, &went),
        };
        let [objects, bytes] = [
            (self.before.objects, self.after.objects),
            (self.before.bytes, self.after.bytes),
        ]
        .map(|(before, after)| Flow::new(float(before), float(after), survival));
        let mut keys: Vec<K> = self.came.keys().chain(self.went.keys()).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let floor = |own: &Estimate| float(own.sampled_bytes()) / bytes.born.max(f64::MIN_POSITIVE);
        let drawn = float(came.samples) / objects.born.max(1.0);
        let correct = seen.map(|seen| seen.correct(&self.came, drawn, floor));
        let part = |key: K| {
            let of = |by: &BTreeMap<K, Estimate>| by.get(&key).copied().unwrap_or_default();
            let (own_kept, own_came, own_went) = (of(&self.kept), of(&self.came), of(&self.went));
            let born = share(&own_came, &came, objects.born);
            let born = match &correct {
                Some(correct) => correct(key, born),
                None => born,
            };
            // Without samples of freed objects, use the samples of surviving objects. These show to which keys (such as
            // stacks) the freed objects may belong.
            let (lost, gone) = match (went.samples, kept.samples) {
                (0, 0) => (own_came, Interval::exact(born.value)),
                (0, _) => {
                    let kept = share(&own_kept, &kept, 1.0);
                    (own_kept, Interval::exact(kept.value))
                }
                _ => (own_went, share(&own_went, &went, objects.gone.value)),
            };
            // The number of objects is the bytes divided by the mean size of the key's samples, limited to the number
            // of all objects. The mean size of the stratum would be wrong, because the stratum may be merged from
            // several sizes.
            let net = bytes.born * born.value * own_came.objects_per_byte()
                - bytes.gone.value * gone.value * lost.objects_per_byte();
            let net = net.clamp(-objects.before, objects.after);
            // The estimated bytes of a key are at least the bytes of the key's samples.
            let seen = float(own_came.sampled_bytes()) - bytes.gone.high;
            let net_bytes = bytes.net(born, gone);
            let low = net_bytes.low.max(seen.min(net_bytes.value));
            let high = net_bytes.high.min(bytes.after.max(net_bytes.value));
            (
                key,
                Part {
                    objects: net,
                    bytes: Interval {
                        low,
                        high,
                        ..net_bytes
                    },
                    sampled: None,
                },
            )
        };
        let mut parts: BTreeMap<K, Part> = keys.into_iter().map(part).collect();
        if let Some(counts) = &self.counts {
            counts.narrow(&mut parts, bytes.after - bytes.before, bytes.born);
        }
        parts
    }
}

/// The objects, or bytes, that were allocated and freed between two dumps.
struct Flow {
    before: f64,
    after: f64,
    born: f64,
    gone: Interval,
}

impl Flow {
    fn new(before: f64, after: f64, survival: Interval) -> Self {
        // The objects that survived from the first dump are in the last dump, too. So their number is at most the
        // number of objects in that dump.
        let most = if before > after { after / before } else { 1.0 };
        let survival = survival.within(0.0, most);
        let gone = Interval {
            value: before * (1.0 - survival.value),
            low: before * (1.0 - survival.high),
            high: before * (1.0 - survival.low),
        };
        Self {
            before,
            after,
            born: after - before + gone.value,
            gone,
        }
    }

    /// Returns the growth of one key, such as a stack: its part of the allocated objects or bytes minus its part of the
    /// freed objects or bytes. `born` is the key's fraction of the allocated objects or bytes. `gone` is the key's
    /// fraction of the freed objects or bytes.
    fn net(&self, born: Interval, gone: Interval) -> Interval {
        let around = |i: Interval| Interval {
            value: 0.0,
            low: i.low - i.value,
            high: i.high - i.value,
        };
        let value = self.born * born.value - self.gone.value * gone.value;
        Interval::sum([
            Interval::exact(value),
            around(born).times(self.born),
            around(gone).times(-self.gone.value),
            around(self.gone).times(born.value - gone.value),
        ])
        .within(-self.before, self.after)
    }
}

fn total<K>(by: &BTreeMap<K, Estimate>) -> Estimate {
    let mut all = Estimate::default();
    for estimate in by.values() {
        all.merge(estimate);
    }
    all
}

/// Returns the fraction of the first dump's samples that survived. Without samples, the interval is 0 to 1.
fn survival(kept: &Estimate, went: &Estimate) -> Interval {
    let (stayed, samples) = (float(kept.samples), float(kept.samples + went.samples));
    if samples > 0.0 {
        Interval::share(stayed / samples, samples, 0.0)
    } else {
        Interval::share(1.0, 0.0, 0.0)
    }
}

/// Returns the estimated bytes of the samples `own` as a fraction of the estimated bytes of the samples `all`.
/// `population` is the number of objects from which the samples `all` were taken.
fn share(own: &Estimate, all: &Estimate, population: f64) -> Interval {
    // Samples of unequal weight carry less information, so use Kish's effective number of samples.
    let samples = all.effective_samples();
    let drawn = float(all.samples) / population.max(1.0);
    let share = own.net_bytes() / all.net_bytes().max(f64::MIN_POSITIVE);
    Interval::share(share, samples, drawn)
}

/// Merges strata with fewer than [`FEW`] samples with strata of neighbouring sizes. A stratum without samples is merged
/// only if random variation explains why it has none ([`EXPECTED`]).
///
/// A merged stratum may span a wide range of sizes. If it were limited to a doubling of the size, many strata would
/// have no sample. Then the estimates of stacks that allocate arrays of all sizes would be too low.
fn merge_small_strata<K: Ord + Copy>(
    strata: BTreeMap<u32, Stratum<K>>,
    sampling: &Sampling,
) -> Vec<Stratum<K>> {
    let mut groups: Vec<(u32, Stratum<K>)> = Vec::new();
    for (class, stratum) in strata {
        let needs = |s: &Stratum<K>| match s.samples() {
            0 => s.expected(sampling) < EXPECTED,
            samples => samples < FEW,
        };
        let alone = |s: &Stratum<K>| s.samples() == 0 && s.expected(sampling) >= EXPECTED;
        match groups.last_mut() {
            Some((last, group))
                if class - *last <= NEAR
                    && !alone(group)
                    && !alone(&stratum)
                    && (needs(group) || needs(&stratum)) =>
            {
                *last = class;
                group.merge(stratum);
            }
            _ => groups.push((class, stratum)),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
