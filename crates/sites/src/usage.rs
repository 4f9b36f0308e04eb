//! How collections were used, as the agent leaves it in the heap with `usage=on`.
//!
//! Each collection that is watched has an object of the class [`CLASS`], a weak reference to it, of whose fields [`fields`] are the
//! names. A collection may have several: all count. One more object, which refers to nothing and has the size [`CROWDED`], tells of
//! collections that were not watched for want of room.

/// The class of these objects, of the boot loader.
pub const CLASS: &str = "java.lang.HeapdiffUsage";

/// Instance fields.
pub mod fields {
    /// A `long[]`: in each stripe of [`super::STRIPE`] what was done to elements, at [`super::Kind::code`]. Stripes add up.
    pub const COUNTS: &str = "counts";
    /// A `long`: when it began, in milliseconds since the epoch.
    pub const SINCE: &str = "since";
    /// An `int`: how many elements there were before the first that was put; negative where that is not known.
    pub const SIZE: &str = "size";
}

/// Numbers of a stripe in `counts`.
pub const STRIPE: usize = 8;

/// Where a stripe has the time of the last put or one of the 63 before it, in milliseconds since the epoch; 0 where there was none.
pub const LAST: usize = 3;

/// Where a stripe has a time and how many elements had been put then; it is moved whenever twice the time has passed.
pub const MARK: usize = 4;

/// Where a stripe has what was at [`MARK`] before: half of the time or more lies behind it.
pub const BEFORE: usize = 6;

/// The size in the object that tells of collections without room. Each bit of its `counts` that is set is at least one of them: bit
/// `hash % 64` of the number at `hash / 64`, by as many low bits of its identity hash as there are.
pub const CROWDED: i32 = -2;

/// Numbers in `counts` of that object; a power of two. Collections of which one bit tells are told as one: 10,000 as some 9,950.
pub const CROWDED_LONGS: u16 = 1 << 14;

/// What is done to elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Elements came.
    Put,
    /// Elements went.
    Removed,
    /// Elements were asked for, or all of them were gone through once.
    Read,
}

impl Kind {
    /// Its place in a stripe.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Put => 0,
            Self::Removed => 1,
            Self::Read => 2,
        }
    }
}
