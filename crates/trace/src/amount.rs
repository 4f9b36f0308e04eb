//! Estimated numbers of objects and bytes, allocated or live.

use heapdiff_sites::{Interval, whole};

/// Objects and bytes, estimated from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of samples that the estimate is based on.
    pub samples: u64,
    /// Number of objects.
    pub objects: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Amount {
    /// Returns the sum of two amounts. Fields that overflow become the maximum.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self {
            samples: self.samples.saturating_add(other.samples),
            objects: self.objects.saturating_add(other.objects),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Returns the difference of two amounts. Negative differences become 0.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self {
            samples: self.samples.saturating_sub(other.samples),
            objects: self.objects.saturating_sub(other.objects),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// Returns this amount multiplied by `some / all`.
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

/// The estimated live samples, objects and bytes at one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Live {
    /// Samples, objects and bytes.
    pub amount: Amount,
    /// Variance of the estimated bytes.
    pub variance: f64,
}

impl Live {
    /// Returns the 95 % confidence interval of the bytes.
    #[must_use]
    pub fn ci95(&self) -> [u64; 2] {
        let interval = Interval::count(self.amount.bytes as f64, self.variance);
        [whole(interval.low), whole(interval.high)]
    }
}
