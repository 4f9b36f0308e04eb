//! Compares what samples estimate for a line of code with the exact count there.
//!
//! If both agree, the count is divided among the line's stacks in proportion to their samples. If they disagree, both
//! figures are reported, because both can be right:
//!
//! - The JIT compiler removes allocations. Removed allocations are counted, but never sampled.
//! - Some sampled allocations may not be counted.
//!
//! A JVM before 25 may take too few samples of large objects. The confidence interval of the estimate allows for this.

use std::collections::BTreeMap;

use heapdiff_sites::{Interval, whole};

use super::at_sites::{AtSites, OfLine};

/// The half-width of a 99 % interval divided by that of a 95 % interval.
const WIDER: f64 = 1.314;
/// The half-width of a 95 % interval, in standard errors.
const Z95: f64 = 1.96;

/// The estimate from the samples of one or more stacks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    pub(super) bytes: f64,
    pub(super) variance: f64,
    /// Factor by which the JVM may have taken too few samples.
    pub(super) shortfall: f64,
    /// Mean number of bytes that one sample represents.
    pub(super) each: f64,
    /// Number of samples that were taken after the agent copied the exact counts into the heap.
    pub(super) late: u64,
}

impl Sampled {
    fn add(&mut self, other: &Self) {
        let sum = self.bytes + other.bytes;
        if sum > 0.0 {
            let weighed = self.bytes * self.shortfall + other.bytes * other.shortfall;
            self.shortfall = weighed / sum;
            self.each = (self.bytes * self.each + other.bytes * other.each) / sum;
        }
        self.bytes = sum;
        self.variance += other.variance;
        self.late += other.late;
    }

    /// True if the exact count agrees with the samples: the counted bytes, plus an estimate of the bytes that were
    /// allocated after the agent copied the count, are within the 99 % interval. Returns `None` if the samples are
    /// exact.
    fn agrees_with_count(&self, counted: f64) -> Option<bool> {
        let (wide, after) = (self.interval_99(), self.after());
        let is_within = counted + after.high >= wide.low && counted + after.low <= wide.high;
        (self.variance > 0.0).then_some(is_within)
    }

    /// Returns an estimate of the bytes that were allocated after the agent copied the exact counts into the heap. The
    /// counts in the dump lack these bytes.
    fn after(&self) -> Interval {
        let late = float(self.late);
        let middle = late + Z95 * Z95 / 2.0;
        let half = Z95 * (late + Z95 * Z95 / 4.0).sqrt();
        Interval {
            value: late,
            low: (middle - half).clamp(0.0, late),
            high: middle + half,
        }
        .times(self.each)
    }

    /// Returns the 99 % confidence interval of the bytes. Its upper end includes the samples that the JVM may have
    /// failed to take.
    fn interval_99(&self) -> Interval {
        let interval = Interval::count(self.bytes, self.variance);
        Interval {
            value: self.bytes,
            low: self.bytes - WIDER * (self.bytes - interval.low),
            high: (self.bytes + WIDER * (interval.high - self.bytes)) * self.shortfall.max(1.0),
        }
    }
}

/// A line of code at which samples and count contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Class of the code.
    pub class: String,
    /// Method of the code.
    pub method: String,
    /// Line number.
    pub line: u32,
    /// Counted bytes.
    pub counted_bytes: u64,
    /// Bytes estimated from samples.
    pub estimated_bytes: u64,
    /// The 99 % interval of the estimate from samples.
    pub ci99: [u64; 2],
}

/// Lines of code, each with the estimate from the samples of all stacks whose innermost frame is at this line.
pub(super) struct Lines<'a> {
    counts: Option<&'a AtSites>,
    sampled: BTreeMap<u32, Sampled>,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(counts: Option<&'a AtSites>) -> Self {
        Self {
            counts,
            sampled: BTreeMap::new(),
        }
    }

    /// Returns the index of the line of code of a stack's innermost frame.
    fn line(&self, stack: usize) -> Option<u32> {
        self.counts?.lines_of_stacks.get(stack).copied().flatten()
    }

    fn of(&self, line: u32) -> Option<(&'a OfLine, &Sampled)> {
        let of = self.counts?.lines.get(line as usize)?;
        Some((of, self.sampled.get(&line)?))
    }

    /// Adds the estimate for a stack to the line of code of the stack's innermost frame.
    pub(super) fn add(&mut self, stack: usize, sampled: &Sampled) {
        if let Some(line) = self.line(stack) {
            self.sampled.entry(line).or_default().add(sampled);
        }
    }

    /// Returns the estimated bytes of a stack: its part of the exact count at its line of code, plus bytes allocated
    /// after that count. Returns `None` if the samples do not agree with the count.
    pub(super) fn share(&self, stack: usize, sampled: &Sampled) -> Option<Interval> {
        let (line, all) = self.of(self.line(stack)?)?;
        let counted = float(line.bytes?);
        if !all.agrees_with_count(counted)? {
            return None;
        }
        // The effective number of samples (Kish): the number of samples of equal weight that would have the same
        // relative variance.
        let samples = all.bytes * all.bytes / all.variance;
        let share = Interval::share(sampled.bytes / all.bytes, samples, 0.0);
        Some(Interval::sum([share.times(counted), sampled.after()]))
    }

    /// Returns the lines of code at which samples contradict the count, sorted by the difference in bytes, descending.
    pub(super) fn disagreements(&self) -> Vec<Disagreement> {
        let found = self.sampled.keys().filter_map(|&line| {
            let (of, all) = self.of(line)?;
            let (counted, wide) = (of.bytes?, all.interval_99());
            (!all.agrees_with_count(float(counted))?).then(|| Disagreement {
                class: of.class.clone(),
                method: of.method.clone(),
                line: of.line,
                counted_bytes: counted,
                estimated_bytes: whole(all.bytes),
                ci99: [whole(wide.low), whole(wide.high)],
            })
        });
        let mut found: Vec<Disagreement> = found.collect();
        found.sort_by_key(|d| std::cmp::Reverse(d.counted_bytes.abs_diff(d.estimated_bytes)));
        found
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
const fn float(bytes: u64) -> f64 {
    bytes as f64
}
