//! Newtype ids. A dump names things by 32- or 64-bit ids; the analysis numbers them densely.

use std::collections::HashMap;
use std::fmt;

/// A map from ids of a dump. The hash has a random seed: whoever wrote the dump may have chosen the ids.
pub(crate) type IdMap<V> = HashMap<u64, V, foldhash::fast::RandomState>;

/// An object's id as the dump writes it: in HotSpot dumps its address. Zero is `null`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The null reference.
    pub const NULL: Self = Self(0);

    /// Whether this is the null reference.
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

/// A dense object number.
///
/// Three runs share the number space: class objects first (an object's number is then its class's
/// [`ClassIndex`]), then objects that hold references, in file order, then objects that hold none
/// ("leaves"), in file order. The graph search touches only the first two runs, so telling a leaf
/// is one comparison and costs no memory access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectIndex(pub u32);

/// "No object": the target of a dangling reference.
pub(crate) const NONE: u32 = u32::MAX;

impl ObjectIndex {
    /// As a `usize`, for indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A dense class number, in the order of the dump's class records. Classes that objects name but
/// that have no record of their own come after those.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassIndex(pub u32);

impl ClassIndex {
    /// As a `usize`, for indexing.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
