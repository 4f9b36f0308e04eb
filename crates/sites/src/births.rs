//! What counted allocations say of samples.
//!
//! The agent can count every executed allocation of a place in the code ([`crate::Counted`]). No more can be alive of a
//! place than was allocated there, whatever the samples are; nor less than there is altogether, less what the other
//! places can have. Where samples also tell how many of a place's allocations were sampled when they were made, no more is
//! alive than that part of its count which the samples say at most. All of these are limits to one side: a compiler that
//! removes allocations makes a count too large, and such a limit wider, never wrong.
//!
//! What is counted nowhere (what was allocated without bytecode, or after the count was copied) is a part of its own, for which
//! samples speak.

use std::collections::BTreeMap;

use crate::{Interval, Part};

/// What was counted at one place in the code, of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Births {
    /// Allocations that were executed.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Samples that were taken of them, whatever became of these; `None` where that is not known.
    pub samples: Option<u64>,
}

/// The samples of one stack, and where it allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfStack {
    /// Its place; `None` where nothing is counted.
    pub place: Option<u32>,
    /// Samples of allocations that are in the count of its place.
    pub counted: u64,
    /// Samples of allocations that are in no count.
    pub other: u64,
}

/// Samples of one class, by stack, beside what was counted of it.
#[derive(Clone, Debug)]
pub struct Counts<K> {
    /// The samples in question by stack.
    pub stacks: BTreeMap<K, OfStack>,
    /// All places where the class was counted.
    pub places: BTreeMap<u32, Births>,
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self {
            stacks: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Copy> Counts<K> {
    /// Adds those of another size of the same class.
    pub(crate) fn merge(&mut self, other: Self) {
        for (key, of) in other.stacks {
            let own = self.stacks.entry(key).or_default();
            own.place = own.place.or(of.place);
            own.counted += of.counted;
            own.other += of.other;
        }
        for (place, births) in other.places {
            let own = self.places.entry(place).or_insert(births);
            own.samples = own.samples.and(births.samples);
        }
    }

    /// Narrows what stacks have of `total` bytes, of which `born` came.
    pub(crate) fn narrow(&self, parts: &mut BTreeMap<K, Part>, total: f64, born: f64) {
        let limits = Limits::new(self, total, born);
        let shares: Vec<Interval> = parts.values().map(|part| part.bytes).collect();
        let sum = shares.iter().map(|share| share.value).sum();
        let narrowed = parts.iter().map(|(key, part)| {
            let stack = self.stacks.get(key).copied().unwrap_or_default();
            limits.narrowed(stack, part.bytes)
        });
        let narrowed: Vec<Interval> = narrowed.collect();
        let fitted = fitted(&narrowed, sum);
        for ((part, bytes), share) in parts.values_mut().zip(fitted).zip(shares) {
            if share.value != 0.0 {
                part.objects *= bytes.value / share.value;
            }
            part.sampled = (bytes != share).then_some(share);
            part.bytes = bytes;
        }
    }
}

/// What each place can have at most: intervals, of which the upper ends hold whatever the compiler removed.
struct Limits {
    total: f64,
    born: f64,
    /// Samples, and those of them that are in a count.
    samples: u64,
    counted: u64,
    all: BTreeMap<u32, Births>,
    /// Places with samples here: the most, and the samples.
    places: BTreeMap<u32, (Interval, u64)>,
    /// The most of all places without.
    rest: Interval,
}

impl Limits {
    fn new<K>(counts: &Counts<K>, total: f64, born: f64) -> Self {
        let mut here: BTreeMap<u32, u64> = BTreeMap::new();
        let mut samples = 0;
        for stack in counts.stacks.values() {
            samples += stack.counted + stack.other;
            let place = stack.place.filter(|p| counts.places.contains_key(p));
            if let Some(place) = place.filter(|_| stack.counted > 0) {
                *here.entry(place).or_default() += stack.counted;
            }
        }
        let mut rest = Births {
            samples: Some(0),
            ..Births::default()
        };
        let mut places = BTreeMap::new();
        for (&place, births) in &counts.places {
            if let Some(&samples) = here.get(&place) {
                places.insert(place, (most(births, samples), samples));
                continue;
            }
            rest.objects = rest.objects.saturating_add(births.objects);
            rest.bytes = rest.bytes.saturating_add(births.bytes);
            rest.samples = rest.samples.map(|sum| sum + births.samples.unwrap_or(0));
        }
        Self {
            total,
            born,
            samples,
            counted: here.values().sum(),
            all: counts.places.clone(),
            rest: most(&rest, 0),
            places,
        }
    }

    /// What shares say of a stack, with the ends that counts say better.
    fn narrowed(&self, stack: OfStack, share: Interval) -> Interval {
        let Some((place, births)) = stack.place.and_then(|p| Some((p, self.all.get(&p)?))) else {
            return share;
        };
        let most = Interval::sum([most(births, stack.counted), self.share(stack.other)]);
        // Other stacks of the place, and what is not counted, are a share.
        let here = self.places.get(&place).map_or(0, |of| of.1);
        let elsewhere = self.counted.saturating_sub(here);
        let known = stack.counted + stack.other + elsewhere;
        let strangers = self.samples.saturating_sub(known);
        let places = self.places.iter().filter(|of| *of.0 != place);
        let others = places.map(|(_, of)| of.0);
        let others = Interval::sum(others.chain([self.rest, self.share(strangers)]));
        let least = Interval::sum([Interval::exact(self.total), others.times(-1.0)]);
        let is_high = is_better(
            [most.value - share.value, most.high - most.value],
            share.high - share.value,
        );
        let is_low = is_better(
            [share.value - least.value, least.value - least.low],
            share.value - share.low,
        );
        let low = if is_low {
            least.low.max(share.low.min(0.0))
        } else {
            share.low
        };
        let high = if is_high { most.high } else { share.high };
        let most = if is_high { most.value } else { f64::INFINITY };
        let least = if is_low {
            least.value
        } else {
            f64::NEG_INFINITY
        };
        let value = if least <= most {
            share.value.clamp(least, most)
        } else {
            f64::midpoint(least, most)
        };
        match low <= high {
            true => Interval { value, low, high }.within(low, high),
            // They contradict each other.
            false => share,
        }
    }

    fn share(&self, samples: u64) -> Interval {
        let all = float(self.samples);
        Interval::share(float(samples) / all.max(1.0), all, 0.0).times(self.born)
    }
}

/// Halvings until no more than rounding is left.
const HALVINGS: u32 = 60;
/// How far out a limit's value is, in standard errors of the difference, that chance does not explain: the compiler removed
/// allocations. There the share is better.
const FAR: f64 = 2.5;
/// Of 95 %.
const ERRORS: f64 = 1.96;

/// Whether a limit, whose value is so far out and its end so far from that, says more than the end of a share that is so far
/// from its value. Only widths decide, not which end is nearer: of two ends the nearer one errs more often than either.
fn is_better([out, width]: [f64; 2], share: f64) -> bool {
    width < share && out <= FAR / ERRORS * width.hypot(share)
}

/// The most bytes that so many samples, of those taken at a place, say of its count.
fn most(births: &Births, alive: u64) -> Interval {
    let bytes = float(births.bytes);
    match births.samples {
        Some(taken) if taken >= alive && taken > 0 => {
            let drawn = float(taken) / float(births.objects.max(1));
            Interval::share(float(alive) / float(taken), float(taken), drawn).times(bytes)
        }
        _ => Interval::exact(bytes),
    }
}

/// Values within their intervals that add up to `sum`, each moved by a part of its interval's width.
fn fitted(intervals: &[Interval], sum: f64) -> Vec<Interval> {
    let moved = |by: f64| -> Vec<Interval> {
        let moved = intervals.iter().map(|interval| {
            let value = interval.value + by * (interval.high - interval.low);
            Interval { value, ..*interval }.within(interval.low, interval.high)
        });
        moved.collect()
    };
    let added = |intervals: &[Interval]| intervals.iter().map(|i| i.value).sum::<f64>();
    if added(intervals) == sum {
        return intervals.to_vec();
    }
    let (mut low, mut high) = (-1.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if added(&moved(middle)) < sum {
            low = middle
        } else {
            high = middle
        }
    }
    moved(f64::midpoint(low, high))
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
