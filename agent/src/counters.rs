//! Counters of the agent.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdiff_sites::Counter;

const COUNT: usize = Counter::ALL.len();

/// All counters.
#[derive(Debug)]
pub(crate) struct Counters([AtomicU64; COUNT]);

impl Counters {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; COUNT])
    }

    /// Resets all counters to 0.
    pub(crate) fn reset(&self) {
        for counter in &self.0 {
            counter.store(0, Relaxed);
        }
    }

    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        self.0[counter.index()].fetch_add(amount, Relaxed);
    }

    pub(crate) fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    pub(crate) fn raise(&self, counter: Counter, value: u64) {
        self.0[counter.index()].fetch_max(value, Relaxed);
    }

    pub(crate) fn get(&self, counter: Counter) -> u64 {
        self.0[counter.index()].load(Relaxed)
    }

    /// Returns the values of all counters as elements of a Java `long[]`.
    pub(crate) fn values(&self) -> [i64; COUNT] {
        std::array::from_fn(|i| self.0[i].load(Relaxed).cast_signed())
    }
}
