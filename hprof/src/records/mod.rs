//! The records of a dump: parsers for the header and rare records, the outline of the file (offsets of segments and
//! records outside the heap), classes, and the walk over object records.
//!
//! [`Records`] reads a [`Source`](crate::Source) record by record, and does not number or link objects:
//!
//! ```
//! use hprof::Source;
//! use hprof::records::{HeapRecord, Records};
//!
//! # fn main() -> hprof::Result<()> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hprof");
//! let source = Source::open(path.as_ref())?;
//! let records = Records::read(&source)?;
//! assert_eq!(records.header().id_size, 8);
//! let classes = records.classes();
//! let class = &classes[classes.by_name("com.acme.Order")[0]];
//! let fields: Vec<&str> = class.fields.iter().map(|field| &*field.name).collect();
//! assert_eq!(fields, ["id", "customer", "invoice"]);
//! let mut bytes = 0;
//! let warnings = records.for_each(|record| {
//!     if let HeapRecord::PrimitiveArray { kind, len, .. } = record {
//!         bytes += u64::from(len) * kind.size(8) as u64;
//!     }
//! });
//! assert!(warnings.is_empty() && bytes > 40 * 200);
//! # Ok(())
//! # }
//! ```

pub(crate) mod classes;
pub(crate) mod forked;
pub(crate) mod id_table;
pub(crate) mod missing_length;
mod modified_utf8;
pub(crate) mod outline;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod repaired;
pub(crate) mod walk;

pub use classes::{Class, Classes, Field, Reference, Static};
pub use reader::{HeapRecord, Records};
pub use record::{Header, Kind};
pub use walk::{Root, RootKind};
