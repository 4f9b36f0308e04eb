//! Allocations at each stack since the agent's start, dead or alive.
//!
//! For each stack, the agent adds up the number of samples, their bytes, and the bytes that they represented when they
//! were taken. Classes and estimated object counts are known only for samples that are still remembered: the live ones,
//! the most recently collected ones, and a random choice of all.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use heapdiff_model::diff::SampledBytes;
use heapdiff_sites::{
    Counter, Estimate, Interval, Sampling, Strategy, corrected_intervals, size_class, whole,
};

use super::counting::ROUNDED_MS;
use super::lines::{Disagreement, Lines, Sampled};
use super::{Collected, Samples, SiteId};

/// Allocations at one stack.
#[derive(Clone, Debug)]
pub struct StackAllocations {
    /// Number of the stack.
    pub site: SiteId,
    /// Classes of the stack's remembered samples, the class with most samples first. If no sample is remembered, this
    /// is only the class of the stack's last sample, or nothing if the agent does not report it.
    pub classes: Vec<String>,
    /// Number of samples.
    pub samples: u64,
    /// Estimated bytes.
    pub bytes: u64,
    /// The 95 % confidence interval of the bytes. `None` if the weight of a sample is unknown ([`Strategy::Time`]).
    pub ci95: Option<[u64; 2]>,
    /// The bytes estimated from samples alone. Set if `bytes` is not this estimate, but a part of the bytes that were
    /// counted exactly at the stack's line of code.
    pub sampled: Option<SampledBytes>,
    /// Estimated objects.
    pub objects: u64,
    /// The part of the bytes that is alive, in thousandths. `None` if too few samples of the stack are tracked.
    pub survival_permille: Option<u64>,
}

/// Allocations since the agent's start.
#[derive(Clone, Debug)]
pub struct Allocations {
    /// Allocations by stack, sorted by bytes, descending.
    pub stacks: Vec<StackAllocations>,
    /// Samples of all stacks.
    pub samples: u64,
    /// Estimated bytes of all stacks.
    pub bytes: u64,
    /// The 95 % confidence interval of the bytes.
    pub ci95: Option<[u64; 2]>,
    /// Estimated bytes of the stacks that have no sample. They are included in `bytes`. The estimate is computed from
    /// the stacks with very few samples.
    pub other_stacks_bytes: u64,
    /// Estimated objects of all stacks.
    pub objects: u64,
    /// Bytes that the agent's lost samples represent. They may belong to any stack.
    pub unseen_bytes: u64,
    /// Bytes of stacks that allocate large objects, of which the JVM takes too few samples ([`Sampling::shortfall`]).
    pub undersampled_bytes: u64,
    /// Lines of code at which the estimates from samples contradict the exact counts.
    pub disagreements: Vec<Disagreement>,
}

/// The reason why a dump has no data about all allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCounted {
    /// The dump records the allocation stack of each object in it, but nothing about freed objects.
    Traces,
    /// The sampling rate changed, and the agent is an older version that did not add up the bytes that its samples
    /// represented.
    OldAgent,
}

/// The remembered samples of one stack. For these, the class and the size of the object are known.
#[derive(Clone, Debug, Default)]
struct Remembered {
    classes: BTreeMap<u32, u64>,
    samples: f64,
    /// Objects and bytes, estimated with the current sampling rate.
    objects: f64,
    bytes: f64,
    /// Sum, sum of squares, and maximum of the sizes of the sampled objects.
    sizes: f64,
    squares: f64,
    largest: f64,
}

impl Remembered {
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn add(&mut self, class: u32, size: u64, sampling: &Sampling) {
        *self.classes.entry(class).or_default() += 1;
        let p = sampling.probability(size).unwrap_or(1.0);
        let size = size as f64;
        self.samples += 1.0;
        self.objects += 1.0 / p;
        self.bytes += size / p;
        self.sizes += size;
        self.squares += size * size;
        self.largest = self.largest.max(size);
    }
}

/// Returns the variance of the estimate that `samples` samples represent `bytes` bytes. `seen` is the total size of the
/// sampled objects.
///
/// With [`Strategy::Bytes`], the sample of an object of `s` bytes represents `w` bytes. Its variance is `w (w - s)`,
/// and `w - s` is at most the interval. If the interval never changed, `w - s` falls as `w` rises. By Chebyshev's sum
/// inequality, the sum of the variances is therefore at most that of the same number of equal samples.
fn variance(
    sampling: &Sampling,
    is_first: bool,
    [samples, seen, bytes]: [f64; 3],
    remembered: &Remembered,
) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let (interval, rate) = (sampling.interval as f64, sampling.rate.max(1) as f64);
    if samples <= 0.0 {
        return Some(0.0);
    }
    match sampling.strategy {
        Strategy::Time => None,
        Strategy::Bytes => {
            let most = bytes * interval;
            let equal = bytes * (bytes - seen).max(0.0) / samples;
            Some(if is_first { most.min(equal) } else { most })
        }
        Strategy::Count | Strategy::Class => {
            let mean = seen / samples;
            // The mean of the squares of the remembered samples' sizes, divided by the square of their mean. It is 1 if
            // all sizes are equal.
            let spread = if remembered.sizes > 0.0 {
                remembered.samples * remembered.squares / remembered.sizes.powi(2)
            } else {
                1.0
            };
            let missed = 1.0 - 1.0 / rate;
            Some(if is_first {
                missed * spread * bytes * bytes / samples
            } else {
                missed * bytes * rate * remembered.largest.max(mean)
            })
        }
    }
}

/// Returns the upper end of the interval, multiplied by `shortfall`. `shortfall` is the factor by which the JVM may
/// have taken too few samples. The factor is applied to the upper end rather than to the estimate, so the result covers
/// random variation as well as the missing samples.
fn scaled_upper_end(interval: &Interval, shortfall: f64) -> f64 {
    interval.high * shortfall
}

/// Minimum expected number of tracked samples of a stack. With fewer, it is unknown how much of the stack's allocations
/// is alive.
const FOLLOWED: f64 = 16.0;

/// True if enough samples of a stack are tracked at the current rate. The stack has `samples` samples in total, which
/// represent `bytes` bytes.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn is_tracked_enough(sampling: &Sampling, first: &Sampling, [samples, bytes]: [f64; 2]) -> bool {
    if sampling == first {
        return true;
    }
    match sampling.strategy {
        Strategy::Bytes => bytes >= FOLLOWED * sampling.interval as f64,
        _ => samples * first.rate.max(1) as f64 >= FOLLOWED * sampling.rate.max(1) as f64,
    }
}

impl Samples {
    /// True if enough of a stack's samples are tracked to show how much of its allocations is alive. Always false for a
    /// dump without the agent. If such a dump names the stack of each object, it has stacks of live objects only.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn can_show_survival(&self, site: SiteId) -> bool {
        let Some(agent) = self.agent() else {
            return false;
        };
        let at = site.0 as usize;
        let samples = self.totals.get(at).map_or(0, |t| t.0) as f64;
        // If the agent did not add up the bytes, each sample counts as one interval, which is the least that it can
        // represent.
        let least = samples * agent.first.interval as f64;
        let bytes = self.allocated.get(at).map_or(least, |&b| b as f64);
        is_tracked_enough(&agent.sampling, &agent.first, [samples, bytes])
    }

    /// Returns, for each stack, the number of samples taken after the agent copied the exact counts. Returns `None` if
    /// the agent does not remember all of these samples.
    fn samples_after_copy(&self) -> Option<Vec<u64>> {
        let agent = self.agent().filter(|a| a.sampling == a.first)?;
        let at_ms = self
            .at_sites
            .as_ref()?
            .at_ms
            .checked_sub(agent.started_ms)?;
        let is_late = |time_ms: u32| u64::from(time_ms) + ROUNDED_MS > at_ms;
        let forgets = agent.counter(Counter::Collected) > self.collected.len() as u64;
        let reaches = |one: &Collected| one.recent && !is_late(one.died_ms);
        if forgets && !self.collected.iter().any(reaches) {
            return None;
        }
        let mut late = vec![0; self.totals.len()];
        let live = self.live.iter().map(|s| (s.site, s.time_ms));
        let dead = self.collected.iter().map(|s| (s.site, s.time_ms));
        for (site, _) in live.chain(dead).filter(|of| is_late(of.1)) {
            if let Some(late) = late.get_mut(site.0 as usize) {
                *late += 1;
            }
        }
        Some(late)
    }

    /// Returns the classes that a stack is known to have allocated. The class with the most samples is first.
    fn classes_of(&self, site: SiteId, remembered: &Remembered) -> Vec<&str> {
        let mut classes: Vec<(u32, u64)> =
            remembered.classes.iter().map(|(&c, &n)| (c, n)).collect();
        classes.sort_by_key(|&(class, count)| (Reverse(count), self.name(class)));
        // If the agent tracks only a part of the samples, it also reports the class of a stack's last sample. This
        // class is known even if none of the stack's samples is left.
        let last = self.site_classes.get(site.0 as usize).copied();
        if let Some(last) = last.filter(|&of| of != 0 && classes.is_empty()) {
            classes.push((last, 0));
        }
        classes.iter().map(|c| self.name(c.0)).collect()
    }

    /// Corrects the estimates and confidence intervals in `figures`. The correction is necessary because stacks that
    /// allocated but have no sample are missing in `figures`. Stacks that allocate the same class in about the same
    /// size are corrected as a group.
    fn correct_intervals(&self, figures: &mut [Figures], remembered: &[Remembered]) {
        let mut groups: BTreeMap<(Option<&str>, u32), BTreeMap<usize, Estimate>> = BTreeMap::new();
        for of in figures.iter() {
            let Some(sampled) = of.sampled else {
                continue;
            };
            let site = SiteId(u32::try_from(of.at).unwrap_or(u32::MAX));
            let class = self.classes_of(site, &remembered[of.at]).first().copied();
            let size = size_class(whole(of.seen).checked_div(of.samples).unwrap_or(0));
            let estimate = Estimate::from_bytes(of.samples, of.bytes, sampled.variance, of.seen);
            groups
                .entry((class, size))
                .or_default()
                .insert(of.at, estimate);
        }
        let mut corrected = corrected_intervals(groups.into_values().collect());
        for of in figures {
            of.corrected = corrected.remove(&of.at).unwrap_or(of.corrected);
        }
    }

    /// Returns the allocations at each stack for which `wanted` returns true. `wanted` gets the frames, innermost
    /// first, and the classes. All stacks have to be read first ([`Self::with_all_sites`]).
    ///
    /// # Errors
    /// Returns an error if the dump does not show what was allocated.
    #[allow(clippy::cast_precision_loss, reason = "estimates")]
    pub fn allocations(
        &self,
        wanted: &dyn Fn(&[&str], &[&str]) -> bool,
    ) -> Result<Allocations, NotCounted> {
        let agent = self.agent().ok_or(NotCounted::Traces)?;
        let (followed, sampling) = (agent.sampling, agent.counted());
        let is_first = sampling == agent.first;
        let counts_all = is_first && sampling.strategy == Strategy::Bytes && sampling.interval == 0;
        let adds_up = self.allocated.len() >= self.totals.len();
        // If the rate never changed, the bytes that the samples represent can be computed from their mean size.
        let one_rate = is_first && sampling.strategy != Strategy::Time;
        if !(adds_up || one_rate) {
            return Err(NotCounted::OldAgent);
        }
        let mut remembered = vec![Remembered::default(); self.totals.len()];
        let live = self.live.iter().filter(|s| !s.is_definition);
        let live = live.map(|s| (s.site, s.class, s.size));
        let dead = self.collected.iter().filter(|s| !s.is_definition);
        for (site, class, size) in live.chain(dead.map(|s| (s.site, s.class, s.size))) {
            if let Some(remembered) = remembered.get_mut(site.0 as usize) {
                remembered.add(class, size, &followed);
            }
        }
        let late = self.samples_after_copy();
        let figures = |(at, remembered): (usize, &Remembered)| {
            let (samples, seen) = self.totals.get(at).copied().filter(|of| of.0 > 0)?;
            let bytes = match (counts_all, adds_up) {
                (true, _) => seen as f64,
                (_, true) => self.allocated[at] as f64,
                _ => sampling
                    .weight(seen / samples)
                    .map_or(0.0, |weight| weight.bytes * samples as f64),
            };
            let objects = match (counts_all, remembered.bytes > 0.0) {
                (true, _) => samples as f64,
                (_, true) => bytes * remembered.objects / remembered.bytes,
                _ => bytes * samples as f64 / (seen as f64).max(1.0),
            };
            let of = [samples as f64, seen as f64, bytes];
            let variance = variance(&sampling, is_first, of, remembered);
            let shortfall = if agent.is_before_25 {
                sampling.shortfall(seen / samples)
            } else {
                1.0
            };
            let sampled = variance.map(|variance| Sampled {
                bytes,
                variance,
                shortfall,
                each: bytes / samples as f64,
                late: late.as_ref().map_or(0, |late| late[at]),
            });
            let seen = (seen as f64).min(bytes);
            let interval = sampled.map_or(Interval::exact(bytes), |sampled| {
                Interval::count(bytes, sampled.variance).within(seen, f64::MAX)
            });
            Some(Figures {
                at,
                samples,
                seen,
                bytes,
                corrected: interval,
                objects,
                shortfall,
                sampled,
            })
        };
        let mut figures: Vec<Figures> = (0..).zip(&remembered).filter_map(figures).collect();
        if sampling.strategy == Strategy::Bytes && !counts_all {
            self.correct_intervals(&mut figures, &remembered);
        }
        let counts = self.at_sites.as_ref().filter(|_| late.is_some());
        let mut lines = Lines::new(counts);
        for of in &figures {
            if let Some(sampled) = &of.sampled {
                lines.add(of.at, sampled);
            }
        }
        let survival = self.survival();
        let unseen = agent.uncounted_bytes();
        let mut all = Sum::default();
        for of in &figures {
            let site = SiteId(u32::try_from(of.at).unwrap_or(u32::MAX));
            let names = self.classes_of(site, &remembered[of.at]);
            let frames: Vec<&str> = self.sites.frames(site).collect();
            if !wanted(&frames, &names) {
                continue;
            }
            let counted = of.sampled.and_then(|s| lines.share(of.at, &s));
            all.add(of, counted);
            let sampled = SampledBytes {
                estimated_bytes: whole(of.corrected.value),
                ci95: of.ci95(unseen).unwrap_or_default(),
            };
            let objects = match counted {
                Some(counted) if of.bytes > 0.0 => of.objects * counted.value / of.bytes,
                None if of.bytes > 0.0 => of.objects * of.corrected.value / of.bytes,
                _ => of.objects,
            };
            let followed = [of.samples as f64, of.bytes];
            all.stacks.push(StackAllocations {
                site,
                classes: names.into_iter().map(str::to_owned).collect(),
                samples: of.samples,
                bytes: counted.map_or(sampled.estimated_bytes, |c| whole(c.value)),
                ci95: match counted {
                    Some(counted) => Some([whole(counted.low), whole(counted.high)]),
                    None => of.ci95(unseen),
                },
                sampled: counted.map(|_| sampled),
                objects: whole(objects),
                survival_permille: is_tracked_enough(&agent.sampling, &agent.first, followed)
                    .then(|| survival.get(of.at).copied().unwrap_or(0)),
            });
        }
        let mut all = all.allocations(unseen);
        all.disagreements = lines.disagreements();
        all.stacks.sort_by(|a, b| {
            let frames = |s: &StackAllocations| self.sites.frames(s.site).collect::<Vec<_>>();
            let order = b.bytes.cmp(&a.bytes);
            order.then_with(|| frames(a).cmp(&frames(b)))
        });
        Ok(all)
    }
}

/// The estimates from the samples of one stack.
struct Figures {
    /// Number of the stack.
    at: usize,
    samples: u64,
    /// Total size of the sampled objects, without an estimate for other objects.
    seen: f64,
    bytes: f64,
    /// The estimated bytes with their confidence interval. [`Samples::correct_intervals`] may correct both.
    corrected: Interval,
    objects: f64,
    /// Factor by which the number of samples may be too low, because the JVM took too few.
    shortfall: f64,
    /// The estimate with its variance. `None` if the weight of a sample is unknown.
    sampled: Option<Sampled>,
}

impl Figures {
    fn ci95(&self, unseen: u64) -> Option<[u64; 2]> {
        let interval = self.sampled.map(|_| self.corrected)?;
        let high = scaled_upper_end(&interval, self.shortfall);
        Some([whole(interval.low), whole(high).saturating_add(unseen)])
    }
}

/// Sums over stacks.
#[derive(Default)]
struct Sum {
    stacks: Vec<StackAllocations>,
    samples: u64,
    undersampled: u64,
    /// Confidence intervals of the stacks whose estimate is a part of the exact count of a line of code.
    counted: Vec<Interval>,
    objects: f64,
    /// Sums over the stacks that are not in `counted`: their estimated bytes, the sizes of their samples, the bytes
    /// that may be missing, and the variances.
    bytes: f64,
    seen: f64,
    short: f64,
    variance: f64,
    is_unknown: bool,
}

impl Sum {
    fn add(&mut self, of: &Figures, counted: Option<Interval>) {
        self.samples = self.samples.saturating_add(of.samples);
        let share = counted.filter(|_| of.bytes > 0.0);
        self.objects += share.map_or(of.objects, |counted| of.objects * counted.value / of.bytes);
        if let Some(counted) = counted {
            self.counted.push(counted);
            return;
        }
        self.bytes += of.bytes;
        self.seen += of.seen;
        self.short += of.bytes * (of.shortfall - 1.0);
        match of.sampled {
            Some(sampled) => self.variance += sampled.variance,
            None => self.is_unknown = true,
        }
        if of.shortfall > 1.0 {
            self.undersampled = self.undersampled.saturating_add(whole(of.bytes));
        }
    }

    fn allocations(mut self, unseen: u64) -> Allocations {
        let interval = Interval::count(self.bytes, self.variance);
        let mut sampled = interval.within(self.seen.min(self.bytes), f64::MAX);
        sampled.high = scaled_upper_end(&sampled, 1.0 + self.short / self.bytes.max(1.0));
        self.counted.push(sampled);
        let sum = Interval::sum(self.counted);
        let listed = self.stacks.iter().map(|stack| stack.bytes);
        let listed = listed.fold(0, u64::saturating_add);
        Allocations {
            samples: self.samples,
            bytes: whole(sum.value),
            ci95: (!self.is_unknown)
                .then(|| [whole(sum.low), whole(sum.high).saturating_add(unseen)]),
            other_stacks_bytes: whole(sum.value).saturating_sub(listed),
            objects: whole(self.objects),
            unseen_bytes: unseen,
            undersampled_bytes: self.undersampled,
            disagreements: Vec::new(),
            stacks: self.stacks,
        }
    }
}

/// Text that replaces the class of a stack, if the stack is known to have allocated several classes.
const SEVERAL: &str = "(several classes)";
/// Text that replaces the class of a stack, if no allocated class is known.
pub const FORGOTTEN: &str = "(class not remembered)";

impl StackAllocations {
    /// Returns the allocated class. If there are several classes, or if no class is known, returns a text that says so.
    #[must_use]
    pub fn class(&self) -> &str {
        match &self.classes[..] {
            [] => FORGOTTEN,
            [one] => one,
            _ => SEVERAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_random_variation_widen_an_interval() {
        // The JVM missed a fifth of the samples. In addition, the number of samples is a tenth too low because of
        // random variation.
        let (truth, found) = (1000.0, 720.0);
        let interval = Interval::count(found, 10.0 * found);
        assert!(interval.high < truth && found * 1.25 < truth);
        assert!(scaled_upper_end(&interval, 1.25) > truth);
        assert!((scaled_upper_end(&interval, 1.0) - interval.high).abs() < 1e-9);
    }
}
