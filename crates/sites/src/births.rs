//! Narrows estimates from samples, with bounds from exact allocation counts.
//!
//! The agent can count every executed allocation at a line of code ([`crate::Counted`]). The counts give bounds for the
//! live bytes of each line:
//!
//! - The live bytes of a line are at most the bytes that were allocated there.
//! - The live bytes of a line are at least the total minus the upper bounds of all other lines.
//! - If 100 samples were taken at a line and 20 of them are alive, about 20 % of the allocations counted there are
//!   alive. The upper end of the interval of this percentage is also an upper bound.
//!
//! If the compiler removes allocations, a count is too large. Then the upper bounds are too high and the lower bounds
//! too low, but none of them is wrong.
//!
//! Some objects are not counted: they were allocated without bytecode, or after the counts were copied. They are
//! estimated from samples.

use std::collections::BTreeMap;

use crate::{Interval, Part};

/// The exact allocation count of one class at one line of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Births {
    /// Number of executed allocations.
    pub objects: u64,
    /// Bytes of these allocations.
    pub bytes: u64,
    /// Number of samples of these allocations, alive or dead; `None` if unknown.
    pub samples: Option<u64>,
}

/// The number of samples of one stack, and the line of code at which the stack allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfStack {
    /// The line of code at which the stack allocates; `None` if allocations are not counted there.
    pub place: Option<u32>,
    /// Number of the stack's samples whose allocations were counted at `place`.
    pub counted: u64,
    /// Number of the stack's samples whose allocations were not counted.
    pub other: u64,
}

/// For one class: the samples by stack, and the exact allocation counts by line of code.
#[derive(Clone, Debug)]
pub struct Counts<K> {
    /// The samples by stack.
    pub stacks: BTreeMap<K, OfStack>,
    /// All lines of code at which allocations of the class were counted.
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
    /// Adds the samples of another size class of the same Java class.
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

    /// Narrows the interval of each stack's part of the net growth, by the exact counts. `total` is the net growth in
    /// bytes, and `born` is the bytes allocated in the same time.
    pub(crate) fn narrow(&self, parts: &mut BTreeMap<K, Part>, total: f64, born: f64) {
        let limits = Limits::new(self, total, born);
        let shares: Vec<Interval> = parts.values().map(|part| part.bytes).collect();
        let sum = shares.iter().map(|share| share.value).sum();
        let narrowed = parts.iter().map(|(key, part)| {
            let stack = self.stacks.get(key).copied().unwrap_or_default();
            limits.narrow_interval(stack, part.bytes)
        });
        let narrowed: Vec<Interval> = narrowed.collect();
        let fitted = scale_to_sum(&narrowed, sum);
        for ((part, bytes), share) in parts.values_mut().zip(fitted).zip(shares) {
            if share.value != 0.0 {
                part.objects *= bytes.value / share.value;
            }
            part.sampled = (bytes != share).then_some(share);
            part.bytes = bytes;
        }
    }
}

/// Upper bounds for the live bytes at each line of code. A bound is an interval, because it may depend on samples. The
/// upper end of the interval is valid even if the compiler removed allocations.
struct Limits {
    total: f64,
    born: f64,
    /// Number of all samples. `counted` is the number of samples whose allocations were counted.
    samples: u64,
    counted: u64,
    all: BTreeMap<u32, Births>,
    /// The lines of code that have samples in the stratum (objects of one class and size). Each has the upper bound of
    /// its live bytes, and its number of samples.
    places: BTreeMap<u32, (Interval, u64)>,
    /// The upper bound for the lines of code without samples. It limits the sum of their live bytes.
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
                places.insert(place, (upper_live_bound(births, samples), samples));
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
            rest: upper_live_bound(&rest, 0),
            places,
        }
    }

    /// Returns the interval of a stack's bytes, narrowed by the bounds. `share` is the interval estimated from samples.
    /// A bound replaces the upper or lower end of this interval if the bound is better ([`is_tighter_bound`]).
    fn narrow_interval(&self, stack: OfStack, share: Interval) -> Interval {
        let Some((place, births)) = stack.place.and_then(|p| Some((p, self.all.get(&p)?))) else {
            return share;
        };
        let most = Interval::sum([
            upper_live_bound(births, stack.counted),
            self.share(stack.other),
        ]);
        // Exact counts exist only for lines of code. They exist neither for other stacks that allocate at the same line
        // nor for objects that are not counted. The bytes of both are estimated from their part of all samples.
        // `strangers` is the number of samples of both.
        let here = self.places.get(&place).map_or(0, |of| of.1);
        let elsewhere = self.counted.saturating_sub(here);
        let known = stack.counted + stack.other + elsewhere;
        let strangers = self.samples.saturating_sub(known);
        let places = self.places.iter().filter(|of| *of.0 != place);
        let others = places.map(|(_, of)| of.0);
        let others = Interval::sum(others.chain([self.rest, self.share(strangers)]));
        let least = Interval::sum([Interval::exact(self.total), others.times(-1.0)]);
        let is_high = is_tighter_bound(
            [most.value - share.value, most.high - most.value],
            share.high - share.value,
        );
        let is_low = is_tighter_bound(
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
            // The lower bound is above the upper bound, so use the interval estimated from samples alone.
            false => share,
        }
    }

    fn share(&self, samples: u64) -> Interval {
        let all = float(self.samples);
        Interval::share(float(samples) / all.max(1.0), all, 0.0).times(self.born)
    }
}

/// Number of bisection steps. After these, only rounding errors are left.
const HALVINGS: u32 = 60;
/// Maximum difference, in standard errors, between a bound and the estimate from samples. A larger difference is not
/// random variation: it shows that the compiler has removed allocations. The estimate is then better than the bound.
const FAR: f64 = 2.5;
/// Distance from the estimate to an end of its 95 % interval, in standard errors.
const ERRORS: f64 = 1.96;

/// Returns true if a bound should replace the upper or the lower end of a stack's interval. The interval was estimated
/// from samples. The bound may depend on samples, too, so it consists of a value and an interval around it.
///
/// `out` is the distance from the estimate to the bound's value. `share` is the distance from the estimate to the end
/// that may be replaced. `width` is the distance from the bound's value to the same end (upper or lower) of the bound's
/// interval.
///
/// The bound replaces the end only if the interval of the bound is narrower (`width < share`) and the bound is not
/// implausibly far from the estimate ([`FAR`]). Choosing the end that is nearer to the estimate would be wrong more
/// often than using either end alone.
fn is_tighter_bound([out, width]: [f64; 2], share: f64) -> bool {
    width < share && out <= FAR / ERRORS * width.hypot(share)
}

/// Returns an upper bound for the live bytes that were allocated at one line of code. `births` are the allocation
/// counts of the line. `alive` is the number of the line's samples that are alive.
fn upper_live_bound(births: &Births, alive: u64) -> Interval {
    let bytes = float(births.bytes);
    match births.samples {
        Some(taken) if taken >= alive && taken > 0 => {
            let drawn = float(taken) / float(births.objects.max(1));
            Interval::share(float(alive) / float(taken), float(taken), drawn).times(bytes)
        }
        _ => Interval::exact(bytes),
    }
}

/// Changes the values within their intervals so that they add up to `sum`. Each value changes by the same fraction of
/// the width of its interval.
fn scale_to_sum(intervals: &[Interval], sum: f64) -> Vec<Interval> {
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
