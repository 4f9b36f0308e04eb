//! Sizes at which the dominator computation switches algorithms. Small heaps never reach them, so tests lower them and
//! count how often each code path was taken.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The sizes at which the dominator computation switches algorithms. Also the criteria for witnesses: objects whose
/// references to class objects the computation follows (see `core.rs`).
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// If a class object has at most this many referrers, all of them are witnesses: the computation follows their
    /// references to the class object (see `core.rs`).
    pub rare: u32,
    /// In each group of this many consecutive objects, the first referrer of a class object is a witness: the
    /// computation follows its reference to the class object (see `core.rs`).
    pub every: usize,
    /// Number of objects closest to GC roots that are witnesses: the computation follows their references to class
    /// objects. If a thread is using an instance of a class, the other instances are often in another part of the heap.
    /// The dominator of the class depends on both.
    pub near: usize,
    /// Minimum length of a long adjacency list. An object with a long list is always in the core, the part of the graph
    /// for which dominators are computed (see `core.rs`), so that several tasks can follow its references.
    pub long: usize,
    /// An object with more referrers than this is always a merge node (an object with several referrers). This is so
    /// even if all references to it except one are back edges (see `ways_back.rs`).
    pub popular: u32,
    /// Maximum number of references that are recorded. If there are more, all adjacency lists are read again. For
    /// references to terminal merge nodes (see `core.rs`), the limit applies to each task. For references to leaves
    /// (objects without references) with several referrers, it is a part of the limit for all tasks together.
    pub noted: usize,
    /// Two numbers that select some of the objects that refer only to their class. The selected objects are treated as
    /// objects with references, the others usually as objects without references. In each piece of the file (usually
    /// about a megabyte), objects that refer only to their class are numbered separately for each class, from 1. The
    /// first `bare[0]` objects and every `bare[1]`-th object are selected.
    pub bare: [u32; 2],
    /// Counters of how often each code path was taken.
    pub tally: Option<&'static Tally>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Thresholds {
    /// The default thresholds.
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
    /// Thresholds with which even small heaps take all code paths.
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

/// Counts how often each code path was taken.
#[derive(Debug, Default)]
pub struct Tally {
    /// Number of reached terminal merge nodes (objects with several referrers that lead to no such object).
    pub sinks: AtomicUsize,
    /// Number of terminal merge nodes (see `sinks`) that only soft or final references reach.
    pub weak_sinks: AtomicUsize,
    /// Number of objects that have one referrer if back edges (references from an object to its only referrer) are
    /// ignored.
    pub settled: AtomicUsize,
    /// Number of objects with more than [`Thresholds::popular`] referrers.
    pub popular: AtomicUsize,
    /// How often all adjacency lists were read again to find references to terminal merge nodes (see `sinks`).
    pub again: AtomicUsize,
    /// How often all adjacency lists were read again to find references to leaves (objects without references).
    pub leaves_again: AtomicUsize,
    /// Number of objects with a long adjacency list (see [`Thresholds::long`]).
    pub long: AtomicUsize,
    /// How often the computation was repeated because it had followed too few references to class objects (see
    /// `core.rs`).
    pub wanting: AtomicUsize,
    /// Number of class objects to which bare leaves (objects that refer only to their class) refer.
    pub bare: AtomicUsize,
    /// How often the dump was read again because the references from bare leaves to their classes could change
    /// dominators. A bare leaf is an object that refers only to its class.
    pub read_again: AtomicUsize,
}
