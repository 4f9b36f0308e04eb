//! Objects and bytes as a trace has them, and what is alive at a moment.

use heapdiff_sites::{Interval, whole};

/// Objects and bytes, estimated from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Samples behind the estimate.
    pub samples: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Amount {
    /// Adds; what is too much stays at the most there is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            samples: self.samples.saturating_add(other.samples),
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Subtracts; what would be below nothing is nothing.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self {
            samples: self.samples.saturating_sub(other.samples),
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// So many of so many parts.
    pub(crate) fn part(self, some: u64, all: u64) -> Self {
        let part = |n: u64| {
            let part = u128::from(n) * u128::from(some) / u128::from(all.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        Self {
            samples: part(self.samples),
            objects: part(self.objects),
            bytes: part(self.bytes),
        }
    }
}

/// What is alive at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Live {
    /// Samples, objects and bytes.
    pub amount: Amount,
    /// Variance of the estimate of the bytes.
    pub variance: f64,
}

impl Live {
    /// The interval in bytes that covers the truth in 95 of 100 cases.
    #[must_use]
    pub fn ci95(&self) -> [u64; 2] {
        let interval = Interval::count(self.amount.bytes as f64, self.variance);
        [whole(interval.low), whole(interval.high)]
    }
}
