//! Sums and medians of measured figures.

use super::collections::Collections;

/// Resources that a JVM used for its slices of the work. The JVMs that are compared process slices of the same work in
/// turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    /// Number of slices done.
    pub(super) slices: u32,
    /// Number of operations done.
    pub(super) operations: u64,
    /// Processor time of the whole process in nanoseconds.
    pub(super) cpu: u64,
    /// Bytes that the program's thread allocated.
    pub(super) allocated: u64,
    /// Maximum resident memory during the JVM's whole life, as the kernel measured it.
    pub(super) peak_bytes: u64,
    /// Number of GCs during the JVM's whole life.
    pub(super) collections: Collections,
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the figures are shown but not checked"
)]
impl Figures {
    pub(super) fn add(&mut self, other: &Self) {
        self.slices += other.slices;
        self.operations += other.operations;
        self.cpu += other.cpu;
        self.allocated += other.allocated;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }

    /// Returns the processor time per operation, in microseconds.
    pub(super) fn cpu_micros(&self) -> f64 {
        self.cpu as f64 / 1e3 / self.operations.max(1) as f64
    }

    /// Returns the allocated bytes per operation.
    pub(super) fn bytes(&self) -> f64 {
        self.allocated as f64 / self.operations.max(1) as f64
    }

    pub(super) fn peak_megabytes(&self) -> f64 {
        self.peak_bytes as f64 / 1e6
    }
}

/// Returns the median: the middle value, or the mean of the two middle values. Returns `None` if there are no values.
pub(super) fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let upper = *figures.get(figures.len() / 2)?;
    let lower = figures[(figures.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median([].into_iter()), None);
    }

    #[test]
    fn figures_are_summed_before_they_are_divided() {
        let mut sum = Figures::default();
        for (operations, cpu) in [(10, 20_000), (30, 100_000)] {
            sum.add(&Figures {
                slices: 1,
                operations,
                cpu,
                allocated: 100,
                ..Figures::default()
            });
        }
        assert_eq!((sum.slices, sum.cpu_micros(), sum.bytes()), (2, 3.0, 5.0));
    }
}
