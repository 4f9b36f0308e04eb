//! Queries on an analysed dump: methods of [`Snapshot`](crate::Snapshot), and the types of their results.
//!
//! ```
//! use hprof::answers::{DeepOptions, Histogram, PathOptions, Selector};
//! use hprof::{Options, Silent, Snapshot};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hprof"));
//! let snapshot = Snapshot::open(path, &Options::default(), &Silent)?;
//!
//! // A selector names objects: an address, a class, a static field, or a pattern of classes.
//! let orders = snapshot.select(&"com.acme.Order".parse::<Selector>()?)?;
//! let list = snapshot.select(&"com.acme.Shop.orders".parse::<Selector>()?)?[0];
//! assert_eq!((orders.len(), snapshot.name(list).as_str()), (40, "java.util.ArrayList"));
//!
//! // A shortest path from a GC root, or from a static field of the application.
//! let paths = snapshot.paths(&orders[..1], &PathOptions::default(), &Silent)?;
//! let shortest = paths.path(&snapshot, orders[0]).ok_or("unreachable")?;
//! let classes: Vec<String> = shortest.steps[shortest.begin..].iter().map(|s| snapshot.name(s.object)).collect();
//! assert_eq!(
//!     classes,
//!     ["class com.acme.Shop", "java.util.ArrayList", "java.lang.Object[]", "com.acme.Order"]
//! );
//!
//! // The objects that an object reaches, and the bytes that would be freed without the object.
//! let reached = snapshot.deep(&DeepOptions::default(), &Silent)?.of_set(&[list]).total;
//! let retained = snapshot.retained_bytes(list).ok_or("unreachable")?;
//! assert!(reached.bytes > retained && retained > 39 * 200);
//!
//! // The number of objects and shallow bytes of each class, in one pass and without a graph.
//! let histogram = Histogram::open(path, &Options::default(), &Silent)?;
//! let class = snapshot.class_of(orders[0]).ok_or("a class object")?;
//! assert_eq!(histogram.totals()[class.index()].all.objects, 40);
//! # Ok(())
//! # }
//! ```

pub(crate) mod contents;
pub(crate) mod deep;
pub(crate) mod histogram;
pub(crate) mod holders;
pub(crate) mod jvm;
pub(crate) mod objects;
pub(crate) mod owners;
pub(crate) mod paths;
pub(crate) mod rebuild;
pub(crate) mod referrers;
pub(crate) mod retained_set;
pub(crate) mod rows;
pub(crate) mod stream;
pub(crate) mod threads;
pub(crate) mod unreachable;
pub(crate) mod waste;

pub use contents::{Bounds, Contents, ContentsKind, Entry};
pub use deep::final_fields::{DeclaredField, FinalFields, SkippedModifiers};
pub use deep::flyweights::Flyweights;
pub use deep::tree::DeepLine;
pub use deep::{Deep, DeepOptions, DeepSize};
pub use histogram::Histogram;
pub use holders::{Dominated, Hold, Holders};
pub use objects::object::{ArrayView, ClassObject, Content, FieldValue, Record, Value};
pub use objects::reference::Via;
pub use objects::select_error::SelectError;
pub use objects::selector::{ParseSelectorError, Selected, Selector};
pub use objects::thread_locals::ThreadLocalValue;
pub use owners::{Anchors, Belongs, Owned, Owner};
pub use paths::disjoint::{CutReference, DisjointPaths, MAX_CUT};
pub use paths::forest::Step;
pub use paths::merged::{Merge, PathNode, PathTree};
pub use paths::{Path, PathOptions, Paths};
pub use referrers::{Referrer, Referrers};
#[doc(hidden)]
pub use stream::{Ids, Link, Links, Numbers, Parts, Place};
pub use threads::{Frame, Line, Local, StackFrame, Thread, ThreadState, Traces};
pub use unreachable::{EntryClass, Unreachable, UnreachableObject, UnreachableTree};
pub use waste::{Waste, WasteGroup, WasteHolder, WasteKind, WasteOf, WasteOptions, WasteTotal};
