//! From what sizes on the dominator computation takes its other ways. No small heap comes by them, so tests set
//! the thresholds lower, and count how often they came by.

use std::sync::atomic::{AtomicUsize, Ordering};

/// When what is done, and which witnesses are chosen (see `core.rs`).
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// All objects are witnesses that refer to a class object to which no more do than this.
    pub rare: u32,
    /// Of this many neighbours, the first that refers to each class object is a witness.
    pub every: usize,
    /// This many objects that are near to GC roots are witnesses: what threads are working on is often of classes
    /// whose other instances are elsewhere.
    pub near: usize,
    /// Objects with rows as long as this are taken into the core, so that the work below them can be split.
    pub long: usize,
    /// Objects with as many referrers are joins, whatever leads back to them.
    pub popular: u32,
    /// References to sinks that a task notes, and references to leaves that have several; where there are more, all rows are
    /// read once more for them.
    pub noted: usize,
    /// So many objects of each class that refer to nothing but their class are no leaves in each piece of the file, and
    /// then one of so many.
    pub bare: [u32; 2],
    /// Where is counted what was done.
    pub tally: Option<&'static Tally>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Thresholds {
    /// Those for heaps of all sizes.
    pub const USUAL: Self = Self {
        rare: 1 << 10,
        every: 1 << 10,
        near: 1 << 14,
        long: 1 << 10,
        popular: 1 << 16,
        noted: 1 << 16,
        bare: [64, 256],
        tally: None,
    };
    /// Those by which small heaps, too, come by all that is done in large ones.
    #[cfg(any(test, feature = "fuzzing"))]
    pub const LOW: Self = Self {
        rare: 0,
        every: 1 << 6,
        near: 3,
        long: 4,
        popular: 3,
        noted: 1,
        bare: [0, u32::MAX],
        tally: None,
    };

    pub(crate) fn count(&self, counter: impl Fn(&Tally) -> &AtomicUsize, more: usize) {
        if let Some(tally) = self.tally {
            counter(tally).fetch_add(more, Ordering::Relaxed);
        }
    }
}

/// How often which way was taken.
#[derive(Debug, Default)]
pub struct Tally {
    /// Sinks that were reached.
    pub sinks: AtomicUsize,
    /// Of these, sinks that only weaker references reach.
    pub weak_sinks: AtomicUsize,
    /// Objects that have one referrer but for references that lead back.
    pub settled: AtomicUsize,
    /// Objects with more referrers than are counted.
    pub popular: AtomicUsize,
    /// Times that all rows were read once more for references to sinks.
    pub again: AtomicUsize,
    /// Times that all rows were read once more for references to leaves.
    pub leaves_again: AtomicUsize,
    /// Members with long rows.
    pub long: AtomicUsize,
    /// Times that the first witnesses were not enough.
    pub wanting: AtomicUsize,
    /// Classes of leaves that refer to them.
    pub bare: AtomicUsize,
    /// Times that the dump was read again without such leaves.
    pub read_again: AtomicUsize,
}
