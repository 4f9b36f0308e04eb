//! Samples set against what a dump knows exactly (post-stratification).
//!
//! A dump knows how many objects of each class and size are alive, but not who allocated them. The samples of one
//! class and size, a *stratum*, were all drawn with the same probability. So they say which *share* of the stratum
//! each stack allocated, whatever that probability was: before JDK 25 a thread forgets part of what it allocated
//! since the last sample, differently for small and large objects, and the share does not mind. The share times the
//! exact total is the stack's estimate, and all stacks together are the total.
//!
//! In two dumps the total that is shared out is what was born between them: what is there in the last less the
//! survivors of the first, whose part the samples tell that are in both.

mod seen;

use std::collections::BTreeMap;

use self::seen::Seen;
pub use self::seen::corrected;
use crate::births::Counts;
use crate::{Estimate, Interval, Sampling};

/// Strata with fewer samples are joined with their neighbours.
const FEW: u64 = 5;
/// Where so many samples were to be expected and there is none, the objects are older than the sampling.
const EXPECTED: f64 = 4.0;
/// Strata are neighbours up to so many size classes from each other: a doubling of the size.
const NEAR: u32 = 4;
/// Samples drawn with at least this probability are taken for all there are.
const ALL: f64 = 0.999;

/// The class of a size: powers of two, split in four.
#[must_use]
pub fn size_class(bytes: u64) -> u32 {
    let bytes = bytes.max(8);
    let power = bytes.ilog2();
    let quarter = (bytes >> (power - 2)) & 3;
    power * 4 + u32::try_from(quarter).unwrap_or(0)
}

/// Objects that were counted, not estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// How many.
    pub objects: u64,
    /// Their shallow bytes.
    pub bytes: u64,
}

impl Known {
    /// Adds.
    pub fn add(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What the totals of a stratum say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Totals {
    /// All that is in them and came was under the eyes of the sampling: samples share it out.
    Shared,
    /// Part of it may be older than the sampling: they are the most that samples can stand for.
    Most,
    /// So they are, and the JVM is one before 25: of large objects there may be more than samples say
    /// ([`Sampling::shortfall`]).
    MostOfMore,
}

/// Whether survivors of the first dump can be told in the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Both are of one JVM: samples keep their uid.
    Uids,
    /// Nothing survives from one JVM to another, or there is one dump only.
    Nothing,
}

/// The kind of key that samples are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Allocating stacks. A report lists only those that have samples.
    Stacks,
    /// A few groups of samples, none of which is left out of a report.
    Groups,
}

/// Objects of one class and size, and the samples among them by whatever they are told apart by.
#[derive(Clone, Debug)]
pub struct Stratum<K> {
    /// What there was in the first dump; nothing where there is one dump.
    pub before: Known,
    /// What there is in the last dump.
    pub after: Known,
    /// Samples in both dumps.
    pub kept: BTreeMap<K, Estimate>,
    /// Samples in the last dump only.
    pub came: BTreeMap<K, Estimate>,
    /// Samples in the first dump only.
    pub went: BTreeMap<K, Estimate>,
    /// Those of `came` beside what was counted of the class, if it was.
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

/// What one stack has of a stratum, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Objects.
    pub objects: f64,
    /// Bytes with their interval.
    pub bytes: Interval,
    /// The same as samples alone say it, where counted allocations say more.
    pub sampled: Option<Interval>,
}

impl Part {
    /// Times a number above 0.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            objects: self.objects * factor,
            bytes: self.bytes.times(factor),
            sampled: self.sampled.map(|sampled| sampled.times(factor)),
        }
    }

    /// Adds an independent one.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        if self.sampled.is_some() || other.sampled.is_some() {
            let sampled = [&*self, &other].map(|part| part.sampled.unwrap_or(part.bytes));
            self.sampled = Some(Interval::sum(sampled));
        }
        self.bytes = Interval::sum([self.bytes, other.bytes]);
    }
}

/// The strata of one class, shared out.
#[derive(Clone, Debug)]
pub struct Division<K> {
    /// What each stack has; below 0 where more went than came.
    pub parts: BTreeMap<K, Part>,
    /// Bytes of growth in strata in which there is no sample.
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

    /// Adds samples of which each stands for what its weight says.
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
    /// Shares the strata of several classes out, by size class. If `keys` are stacks, those with few samples are
    /// corrected for the stacks that have none.
    #[must_use]
    pub fn divide<C>(
        strata: BTreeMap<C, BTreeMap<u32, Self>>,
        sampling: &Sampling,
        totals: Totals,
        follow: Follow,
        keys: Keys,
    ) -> Division<K> {
        let strata = strata.into_values();
        let classes: Vec<Vec<Self>> = strata.map(|of| joined(of, sampling)).collect();
        let agreement = match keys {
            Keys::Stacks => Some(seen::agreement(classes.iter().flatten())),
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

    /// The samples that chance should give, of what came.
    fn expected(&self, sampling: &Sampling) -> f64 {
        let size = self.after.bytes.checked_div(self.after.objects);
        let born = self.after.objects.saturating_sub(self.before.objects);
        let probability = size.and_then(|size| sampling.probability(size));
        probability.unwrap_or(0.0) * float(born)
    }

    /// Whether every object was sampled when it was allocated, so that nothing needs to be estimated; or what a
    /// sample stands for is not known at all.
    fn is_all(&self, sampling: &Sampling) -> bool {
        let probability = sampling.probability(self.mean_size());
        probability.is_none_or(|p| p >= ALL)
    }

    /// Of the samples.
    fn mean_size(&self) -> u64 {
        let (came, went) = (total(&self.came), total(&self.went));
        (came.seen_bytes() + went.seen_bytes())
            .checked_div(came.samples + went.samples)
            .unwrap_or(0)
    }

    /// Whether there are as many objects as samples of them: in a damaged dump anything can be.
    fn is_consistent(&self) -> bool {
        let (kept, came, went) = (total(&self.kept), total(&self.came), total(&self.went));
        self.after.objects >= came.samples + kept.samples && self.before.objects >= went.samples
    }

    fn most(&self) -> u64 {
        self.after.bytes.saturating_sub(self.before.bytes)
    }

    /// Each sample stands for what its probability says, or for `shortfall` times as much; all together for no more
    /// than `most`.
    fn direct(
        &self,
        most: Option<u64>,
        shortfall: f64,
        seen: Option<&Seen<K>>,
    ) -> BTreeMap<K, Part> {
        let floor = |own: &Estimate| float(own.seen_bytes());
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

    /// Each stack has the part of the total that it has of the samples.
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
        let floor = |own: &Estimate| float(own.seen_bytes()) / bytes.born.max(f64::MIN_POSITIVE);
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
            // Without samples among what went, those of what stayed say whose it may be.
            let (lost, gone) = match (went.samples, kept.samples) {
                (0, 0) => (own_came, Interval::exact(born.value)),
                (0, _) => {
                    let kept = share(&own_kept, &kept, 1.0);
                    (own_kept, Interval::exact(kept.value))
                }
                _ => (own_went, share(&own_went, &went, objects.gone.value)),
            };
            // As many as the bytes are at the sizes that were sampled, and no more than there are: those of other sizes
            // that were joined are no objects of these.
            let net = bytes.born * born.value * own_came.objects_per_byte()
                - bytes.gone.value * gone.value * lost.objects_per_byte();
            let net = net.clamp(-objects.before, objects.after);
            // Nobody has fewer than the samples that are seen there.
            let seen = float(own_came.seen_bytes()) - bytes.gone.high;
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

/// What came and what went of a total between two dumps.
struct Flow {
    before: f64,
    after: f64,
    born: f64,
    gone: Interval,
}

impl Flow {
    fn new(before: f64, after: f64, survival: Interval) -> Self {
        // No more can have stayed than there is.
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

    /// What came of a stack's share of the born, less what went of its share of the gone.
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

/// The part of the first dump's samples that are in the last. Without any, all may have stayed or none.
fn survival(kept: &Estimate, went: &Estimate) -> Interval {
    let (stayed, samples) = (float(kept.samples), float(kept.samples + went.samples));
    if samples > 0.0 {
        Interval::share(stayed / samples, samples, 0.0)
    } else {
        Interval::share(1.0, 0.0, 0.0)
    }
}

/// The share that one has of all samples' bytes, of a population of so many objects.
fn share(own: &Estimate, all: &Estimate, population: f64) -> Interval {
    // Samples that weigh unequally say less: Kish's number of equal ones.
    let samples = all.equal_samples();
    let drawn = float(all.samples) / population.max(1.0);
    let share = own.net_bytes() / all.net_bytes().max(f64::MIN_POSITIVE);
    Interval::share(share, samples, drawn)
}

/// Joins strata with few samples with their neighbours in size, and strata without any where chance explains that.
///
/// What is joined is a chain that can reach far: cut at a doubling of the size, groups without a sample would be many, and
/// stacks of arrays of all sizes would be told too few bytes.
fn joined<K: Ord + Copy>(
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
