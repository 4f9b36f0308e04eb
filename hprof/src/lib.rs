//! Reads a JVM heap dump (HPROF): records, heap graph, dominator tree, retained sizes, and answers to questions about
//! them.
//!
//! [`Snapshot`] is the entry point: an analysed dump.
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
//! Each layer is a module with an example. It can be used without the layers that are built on it:
//!
//! | module | result | input |
//! |---|---|---|
//! | [`bytes`] | [`Source`]: the bytes of a file, plain or gzip | a path, or bytes |
//! | [`records`] | [`records::Records`]: header, classes, object records one by one | a `Source` |
//! | [`graph`] | [`graph::HeapGraph`]: numbered objects, their references, GC roots | a `Source`, or references |
//! | [`dominators`] | [`dominators::DominatorTree`]: retained sizes | a `HeapGraph` |
//! | [`sizes`] | [`sizes::Layout`], [`sizes::Total`]: shallow sizes in this JVM | a `Snapshot` |
//! | [`answers`] | histograms, objects, selectors, paths, deep sizes, threads, collections, waste | a `Snapshot` |
//! | [`index`] | a snapshot in a file, which can be mapped in milliseconds | a `Snapshot` |
//!
//! # Conventions
//!
//! - Sizes are in bytes, times in milliseconds since 1970. A *shallow* size is that of the object itself. A *retained*
//!   size is the memory that would become free if the object were removed. A *deep* size is the memory of everything
//!   that can be reached from the object.
//! - Objects are dense numbers, [`ObjectIndex`], from 0 to [`Snapshot::object_count`]. An [`ObjectId`] is the address
//!   in the dump.
//! - Any input gives an [`Error`] or a result, which has [`Warning`]s if the input is damaged. No input causes a panic,
//!   recursion over the heap, or allocations out of proportion to the file.
//! - The analysis uses all threads of the current [rayon](https://docs.rs/rayon) pool. It reports its progress to a
//!   [`Progress`]. The crate prints nothing.
//! - The arrays of a snapshot take about 25 bytes for each object. If they exceed [`Options::max_memory`], they are in
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
pub mod repair;
pub mod sizes;
mod snapshot;

pub use bytes::source::Source;
pub use error::{Error, Result, Warning};
pub use ids::{ClassIndex, ObjectId, ObjectIndex};
pub use name_mapping::NameMapping;
pub use options::{Options, Refs};
pub use progress::{Progress, Silent};
pub use snapshot::Snapshot;

/// Tests the code in the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
