//! Reads one JVM heap dump (HPROF): records, heap graph, dominator tree, retained sizes, and what can be asked
//! of them.
//!
//! [`Snapshot`] is all of it in one: a dump, analysed.
//!
//! ```
//! use hprof::answers::Selector;
//! use hprof::{Options, Silent, Snapshot};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hprof");
//! let snapshot = Snapshot::open(path.as_ref(), &Options::default(), &Silent)?;
//! let selector: Selector = "com.acme.Shop.orders".parse()?;
//! for object in snapshot.select(&selector)? {
//!     assert_eq!(snapshot.name(object), "java.util.ArrayList");
//!     assert!(snapshot.retained_bytes(object) > Some(39 * 200));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Layers
//!
//! Each layer is a module with an example, and can be used without those above it:
//!
//! | module | what it gives | from | |---|---|---| | [`bytes`] | [`Source`]: the bytes of a file, plain or gzip | a
//! path, or bytes | | [`records`] | [`Records`]: header, classes, object records one by one | a `Source` | | [`graph`]
//! | [`HeapGraph`]: numbered objects, their references, GC roots | a `Source`, or a list of references | |
//! [`dominators`] | [`DominatorTree`]: who retains what | a `HeapGraph` | | [`sizes`] | [`Layout`], [`Total`]: shallow
//! sizes as this JVM has them | a `Snapshot` | | [`answers`] | histograms, single objects, selectors, paths, deep
//! sizes, threads, collections, waste | a `Snapshot` | | [`index`] | a snapshot kept in a file, mapped back in
//! milliseconds | a `Snapshot` |
//!
//! # What holds everywhere
//!
//! - Sizes are whole bytes, times milliseconds since 1970. A *shallow* size is an object's own; its *retained* size
//!   is what would be free without it; its *deep* size all that can be reached from it.
//! - Objects are dense numbers, [`ObjectIndex`], from 0 to [`Snapshot::object_count`]; an [`ObjectId`] is the
//!   address in the dump.
//! - Any input gives an [`Error`] or a result, with [`Warning`]s where it is damaged: no input makes
//!   it panic, recurse over the heap, or allocate out of proportion to the file.
//! - Work is done on all threads of the current [rayon](https://docs.rs/rayon) pool, and tells a [`Progress`] how far
//!   it is. Nothing is printed.
//! - The arrays of a snapshot take about 25 bytes for each object; beyond [`Options::max_memory`] they are in
//!   temporary files.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod answers;
pub mod bytes;
pub mod dominators;
mod error;
#[doc(hidden)]
pub mod flaw;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod graph;
mod ids;
pub mod index;
mod name_mapping;
mod options;
mod progress;
pub mod records;
pub mod redaction;
pub mod sizes;
mod snapshot;

pub use bytes::source::Source;
pub use error::{Error, Result, Warning};
pub use ids::{ClassIndex, ObjectId, ObjectIndex};
pub use name_mapping::NameMapping;
pub use options::{Options, Refs};
pub use progress::{Progress, Silent};
pub use snapshot::Snapshot;

/// The code in the readme, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
