//! Random numbers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A fast random number generator (splitmix64) for the choice of samples. It is not cryptographically secure.
#[derive(Debug)]
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Returns a random number less than `limit`, or 0 if `limit` is 0. Scales a splitmix64 output by multiplication.
    pub(crate) fn random_below(&self, limit: u64) -> u64 {
        let mut z = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "only the upper 64 bits of the 128-bit product are used"
        )]
        let high = ((u128::from(z) * u128::from(limit)) >> 64) as u64;
        high
    }

    /// Returns a random number from `rate / 2` to `rate * 3 / 2`, but at least 1. The mean is `rate`.
    pub(crate) fn random_near(&self, rate: u64) -> u64 {
        let half = rate / 2;
        (rate - half + self.random_below(2 * half + 1)).max(1)
    }
}
