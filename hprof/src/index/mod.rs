//! The index beside a dump: what the analysis found, written so that the next command maps it back.
//!
//! An index is a header, a table of sections, and the sections: the flat arrays of a [`Snapshot`](crate::Snapshot) as
//! they are in memory, little-endian and aligned, and one section with all that is small. Names, classes and stack
//! traces are not in it; they are read from the dump's own records, which takes milliseconds.
//!
//! # What is checked
//!
//! - That the index is of this dump: its size, its time of change to the nanosecond, and a hash of its first
//!   and last 64 KiB. A file that was changed in place in between, and had its time set back, is not told
//!   apart.
//! - That the index is of this format, this program's version and the same [`Refs`](crate::Refs).
//! - That nothing in it is damaged: header and table have a checksum, and so has each section, made of the
//!   hashes (XXH3, 64 bits) of its blocks. All sections that are used are verified before anything is
//!   taken from them, in parallel, at about the speed of memory; but of who refers to what, which is large and
//!   of which most questions need little, the hash of each block is kept, and a block is verified
//!   before the first thing is taken from it. Where one turns out to be damaged the answer comes from the dump,
//!   and [`is_damaged`] tells.
//! - That its numbers fit together: no number leads outside its array, trees lead down, runs ascend. So not
//!   even an index whose checksums were made to fit can cause more than wrong figures. An index is not
//!   signed: whoever may write it may make it say anything, so whose file it is should be looked at first.
//!
//! What is mapped is assumed to stay as it was verified, as with the dump itself; whether it did is told by
//! [`changed_file`](crate::bytes::changed_file).
//!
//! A second, small kind of file may lie there as well, whose content the caller makes: `kept.rs`.

mod check;
mod codes;
pub(crate) mod encode;
mod fault;
pub(crate) mod format;
mod gather;
pub(crate) mod inbound;
pub(crate) mod kept;
pub(crate) mod positions;
mod read;
mod write;

pub use fault::IndexFault;
pub use read::is_damaged;
pub use write::{can_be_written, max_bytes, write};
// For summaries.
#[doc(hidden)]
pub use {
    encode::{Decoder, Encoder},
    kept::{FileStamp, Kept},
};

/// Whether a file that begins with these bytes is an index, or what was kept of a dump beside it.
#[must_use]
pub fn is_index(first: &[u8]) -> bool {
    first.starts_with(format::MAGIC) || first.starts_with(kept::MAGIC)
}

/// Whether so many bytes more leave the disk of a file a gigabyte, or a twentieth of it where that is less;
/// where the system does not tell, they do.
#[doc(hidden)]
#[must_use]
pub fn has_room(file: &std::fs::File, bytes: u64) -> bool {
    crate::bytes::disk::leaves_room(file, bytes)
}
