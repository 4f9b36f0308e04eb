//! Sizes at which the dominator computation switches algorithms. Small heaps never reach them, so tests lower them and
//! count how often each code path was taken.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The sizes at which the dominator computation switches algorithms, and the criteria for witnesses (see `core.rs`).
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    /// If a class object has at most this many referrers, all of them are witnesses (see `core.rs`) for the dominator
    /// of the class object.
    pub rare: u32,
    /// In each group of this many consecutive objects, the first referrer of a class object is a witness (see
    /// `core.rs`) for the dominator of the class object.
    pub every: usize,
    /// Number of witnesses (see `core.rs`) that are chosen because they are closest to GC roots. The reason: if a
    /// thread is using an instance of a class, the other instances of the class are often in another part of the heap.
    pub near: usize,
    /// Minimum length of a long adjacency list. An object with a long list is always in the core, the part of the graph
    /// for which dominators are computed (see `core.rs`), so that several tasks can follow its references.
    pub long: usize,
    /// An object with more referrers than this is always a merge node, even if only one reference to it is no back edge
    /// (see `ways_back.rs`).
    pub popular: u32,
    /// Maximum number of references that are recorded. There are two kinds: references to terminal merge nodes (see
    /// `core.rs`), for which the limit applies to each task, and references to leaves with several referrers. If there
    /// are more references, all adjacency lists are read again.
    pub noted: usize,
    /// Two numbers for objects that refer only to their class. In each piece of the file (about a megabyte), these
    /// objects are numbered separately for each class. The first `bare[0]` objects, and every `bare[1]`-th object, are
    /// not treated as leaves.
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
    /// Number of terminal merge nodes (merge nodes that lead to no other, see `core.rs`) that were reached.
    pub sinks: AtomicUsize,
    /// Number of terminal merge nodes that only weaker references reach.
    pub weak_sinks: AtomicUsize,
    /// Number of objects that have one referrer if back edges (references from an object to its only referrer) are
    /// ignored.
    pub settled: AtomicUsize,
    /// Number of objects with more than [`Thresholds::popular`] referrers.
    pub popular: AtomicUsize,
    /// How often all adjacency lists were read again to find references to terminal merge nodes.
    pub again: AtomicUsize,
    /// How often all adjacency lists were read again to find references to leaves (objects without references).
    pub leaves_again: AtomicUsize,
    /// Number of core members with a long adjacency list.
    pub long: AtomicUsize,
    /// How often the computation was repeated because there were not enough witnesses (see `core.rs`).
    pub wanting: AtomicUsize,
    /// Number of class objects to which bare leaves (objects that refer only to their class) refer.
    pub bare: AtomicUsize,
    /// How often the dump was read again because references from bare leaves (objects that refer only to their class)
    /// to their classes could change dominators.
    pub read_again: AtomicUsize,
}
