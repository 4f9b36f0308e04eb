//! The format in which the agent stores the use of Java collections in the heap with `usage=on`.
//!
//! Each watched collection has an object of the class [`CLASS`], with a weak reference to the collection and the fields
//! named in [`fields`]. A collection may have several such objects; their counts add up. One more object has no
//! referent and the size [`CROWDED`]. It counts the collections that are not watched because there was no room for more
//! objects.

/// The class of these objects, loaded by the boot loader.
pub const CLASS: &str = "java.lang.HeapdiffUsage";

/// Names of instance fields.
pub mod fields {
    /// A `long[]` that is divided into stripes of [`super::STRIPE`] numbers each: one stripe for each group of threads.
    /// In a stripe, the number at index [`super::Kind::code`] counts the operations of that kind. The total of a kind
    /// is the sum over all stripes.
    pub const COUNTS: &str = "counts";
    /// A `long`: the start of the watching, in milliseconds since 1970.
    pub const SINCE: &str = "since";
    /// An `int`: the number of elements before the first put; negative if unknown.
    pub const SIZE: &str = "size";
}

/// Number of `long`s in a stripe (the counters of one group of threads) of `counts`.
pub const STRIPE: usize = 8;

/// Index in a stripe of the time of the last put, in milliseconds since 1970; 0 if there was no put. The clock is read
/// only if the number of elements put before is a multiple of 64. So the time may be that of an earlier put.
pub const LAST: usize = 3;

/// Index of the mark in a stripe. The mark consists of a time and the number of elements that were put until then. The
/// mark is moved to the current time when the time since the start is at least twice as long as it was at the mark.
pub const MARK: usize = 4;

/// Index of the previous mark in a stripe: the two values that the mark ([`MARK`]) had before it was last moved. The
/// time of the previous mark is in the first half of the time since the start.
pub const BEFORE: usize = 6;

/// The value of `size` in one special object, which counts the collections that are not watched because there was no
/// room. The `counts` of the object are a bit set. Each unwatched collection sets one bit, chosen by the low bits of
/// its identity hash: bit `hash % 64` of the number at index `hash / 64`.
pub const CROWDED: i32 = -2;

/// Number of `long`s in `counts` of the special object that counts unwatched collections, a power of two. Collections
/// whose hashes select the same bit are counted as one. So the result for 10,000 collections is about 9,950.
pub const CROWDED_LONGS: u16 = 1 << 14;

/// A kind of operation on elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Elements were added.
    Put,
    /// Elements were removed.
    Removed,
    /// Elements were looked up, or the program iterated over all elements once.
    Read,
}

impl Kind {
    /// Returns the index in a stripe at which operations of this kind are counted.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Put => 0,
            Self::Removed => 1,
            Self::Read => 2,
        }
    }
}
