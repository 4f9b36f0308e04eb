//! The bytes of a dump and the memory of its analysis: files, gzip streams, mapped arrays, disks.
//!
//! [`Source`](crate::Source) has the bytes of a dump, independent of their origin. A file is mapped. A gzip file is
//! decompressed, in parallel if it consists of blocks. A source can be used without the other layers, as in this
//! example:
//!
//! ```
//! use hprof::Source;
//!
//! # fn main() -> hprof::Result<()> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hprof");
//! let source = Source::open(path.as_ref())?;
//! assert!(source.starts_with(b"JAVA PROFILE 1.0"));
//! assert_eq!(source.file_bytes(), source.len() as u64);
//! # Ok(())
//! # }
//! ```

pub(crate) mod array;
pub(crate) mod disk;
pub(crate) mod gzip;
pub(crate) mod list;
pub(crate) mod mapped;
pub(crate) mod mem;
pub mod piped;
pub(crate) mod segments;
pub(crate) mod source;
pub(crate) mod stamp;

pub use disk::TEMPORARY_FOLDER;
pub use gzip::GzipBlocks;
pub use mapped::changed_file;
pub use mem::faults::set_read_error_handler;
pub use segments::{dump_of, has_segments};
pub use source::STDIN;
// This function is public because other crates of the project use the same hash.
#[doc(hidden)]
pub use stamp::hash;
