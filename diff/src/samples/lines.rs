//! What samples say was allocated at a line of code, set against what was counted there.
//!
//! Where both agree, the count is what the line's stacks share out by their samples. Where they do not, neither is taken for the other: a
//! compiler removes allocations, which are executed and so counted, and are never sampled; and not all of what is sampled need be counted. What a JVM before 25 may have left out of
//! large objects is in the interval.

use std::collections::BTreeMap;

use heapdiff_sites::{Interval, whole};

use super::at_sites::{AtSites, OfLine};

/// Half of a 99 % interval over half of one of 95 %.
const WIDER: f64 = 1.314;
/// Standard errors of 95 %.
const Z95: f64 = 1.96;

/// What samples say of a stack or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    pub(super) bytes: f64,
    pub(super) variance: f64,
    /// How many times as much there may be, since the JVM samples too few.
    pub(super) shortfall: f64,
    /// Bytes that one sample stands for on the average, and samples of what was allocated after the count was copied.
    pub(super) each: f64,
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

    /// Whether so many bytes, and what came after the count, are what samples say; `None` where these are exact.
    fn agrees(&self, counted: f64) -> Option<bool> {
        let (wide, after) = (self.wide(), self.after());
        let is_within = counted + after.high >= wide.low && counted + after.low <= wide.high;
        (self.variance > 0.0).then_some(is_within)
    }

    /// What was allocated after the count was copied.
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

    /// The interval of 99 %.
    fn wide(&self) -> Interval {
        let interval = Interval::count(self.bytes, self.variance);
        Interval {
            value: self.bytes,
            low: self.bytes - WIDER * (self.bytes - interval.low),
            high: (self.bytes + WIDER * (interval.high - self.bytes)) * self.shortfall.max(1.0),
        }
    }
}

/// A line whose samples and whose count contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The class whose code it is.
    pub class: String,
    /// Its method.
    pub method: String,
    /// The line.
    pub line: u32,
    /// Bytes that were counted.
    pub counted_bytes: u64,
    /// Bytes that samples say.
    pub estimated_bytes: u64,
    /// Their interval of 99 %.
    pub ci99: [u64; 2],
}

/// Lines with what samples say of them.
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

    /// The number of a stack's line.
    fn line(&self, stack: usize) -> Option<u32> {
        self.counts?.lines_of_stacks.get(stack).copied().flatten()
    }

    fn of(&self, line: u32) -> Option<(&'a OfLine, &Sampled)> {
        let of = self.counts?.lines.get(line as usize)?;
        Some((of, self.sampled.get(&line)?))
    }

    /// Adds a stack.
    pub(super) fn add(&mut self, stack: usize, sampled: &Sampled) {
        if let Some(line) = self.line(stack) {
            self.sampled.entry(line).or_default().add(sampled);
        }
    }

    /// What a stack has of the count of its line, if samples agree with that.
    pub(super) fn share(&self, stack: usize, sampled: &Sampled) -> Option<Interval> {
        let (line, all) = self.of(self.line(stack)?)?;
        let counted = float(line.bytes?);
        if !all.agrees(counted)? {
            return None;
        }
        // As many samples of equal weight say as much.
        let samples = all.bytes * all.bytes / all.variance;
        let share = Interval::share(sampled.bytes / all.bytes, samples, 0.0);
        Some(Interval::sum([share.times(counted), sampled.after()]))
    }

    /// Lines whose count samples contradict, those first where they do so by most bytes.
    pub(super) fn disagreements(&self) -> Vec<Disagreement> {
        let found = self.sampled.keys().filter_map(|&line| {
            let (of, all) = self.of(line)?;
            let (counted, wide) = (of.bytes?, all.wide());
            (!all.agrees(float(counted))?).then(|| Disagreement {
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
