//! Types of ids and numbers. A dump identifies objects by 32- or 64-bit ids. The analysis gives objects and classes
//! dense numbers.

use std::collections::HashMap;
use std::fmt;

/// A map from ids of a dump. The hash has a random seed, because the author of the dump may have chosen the ids to
/// collide.
pub(crate) type IdMap<V> = HashMap<u64, V, foldhash::fast::RandomState>;

/// An object's id in the dump. In HotSpot dumps, it is the object's address. Zero is `null`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The null reference.
    pub const NULL: Self = Self(0);

    /// Returns true if this is the null reference.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A dense object number. Class objects have the lowest numbers, then come objects with references, then objects
/// without references:
///
/// ```text
/// class objects | objects with references, in file order | objects without references ("leaves"), in file order
/// ```
///
/// The number of a class object is the [`ClassIndex`] of its class. A search of the graph skips objects without
/// references (leaves). To detect a leaf, it compares the number with the first number of a leaf, and reads no memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectIndex(pub u32);

/// No object, for example as the target of a dangling reference.
pub(crate) const NONE: u32 = u32::MAX;

impl ObjectIndex {
    /// Returns the number as a `usize`, for indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A dense class number, in the order of the dump's class records. After these come the classes that objects refer to
/// but that have no class record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassIndex(pub u32);

impl ClassIndex {
    /// Returns the number as a `usize`, for indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
