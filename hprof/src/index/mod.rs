//! The index beside a dump: the results of the analysis in a file, so that the next command can map them.
//!
//! An index consists of a header, a table of sections, and the sections. Most sections are flat arrays of a
//! [`Snapshot`](crate::Snapshot) as they are in memory, little-endian and aligned. One section has all small data.
//! Names, classes and stack traces are not in the index. They are read from the records of the dump, which takes
//! milliseconds.
//!
//! # What is checked
//!
//! - The index belongs to this dump: its size, its modification time to the nanosecond, and a hash of its first
//!   and last 64 KiB. If a file is changed in the middle and its modification time is set back, the change is not
//!   detected.
//! - The index has this format, this program's version and the same [`Refs`](crate::Refs).
//! - The content is not damaged. The header with the table has a checksum, and so has each section: a hash of the
//!   hashes (XXH3, 64 bits) of its blocks. All sections that are used are verified first, in parallel, at about the
//!   speed of memory. The lists of referrers are an exception, because they are large and most queries read only a
//!   small part of them. Their block hashes are stored, and each block is verified right before it is used first. If a
//!   block is damaged, the answer is computed from the dump, and [`is_damaged`] returns true.
//! - The numbers fit together: no number leads outside its array, parents come before their children, runs ascend.
//!   So an index with forged checksums can cause wrong figures, but nothing worse. An index is not signed. Anyone who
//!   can write it can change the figures, so check first who owns the file.
//!
//! Mapped data is assumed to stay unchanged after it is verified, like the dump itself.
//! [`changed_file`](crate::bytes::changed_file) reports if it changed.
//!
//! A second, small kind of file may be beside the dump as well. Its content comes from the caller: see `kept.rs`.

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
// These items are public because summary files use them.
#[doc(hidden)]
pub use {
    encode::{Decoder, Encoder},
    kept::{FileStamp, Kept},
};

/// Returns true if a file that starts with these bytes is an index, or a summary file (see `kept.rs`).
#[must_use]
pub fn is_index(first: &[u8]) -> bool {
    first.starts_with(format::MAGIC) || first.starts_with(kept::MAGIC)
}

/// Returns true if a file's disk still has enough free space after `bytes` more bytes are written. Enough is 1 GiB, or
/// a 20th of the disk if that is less. Also returns true if the system does not report the free space.
#[doc(hidden)]
#[must_use]
pub fn has_room(file: &std::fs::File, bytes: u64) -> bool {
    crate::bytes::disk::leaves_reserve(file, bytes)
}
