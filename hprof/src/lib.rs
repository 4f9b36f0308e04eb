//! Reads one JVM heap dump (HPROF): records, heap graph, sizes, dominators.
//!
//! The layers can be used one without the other: [`Source`] is a dump's bytes, [`HeapGraph`] its
//! objects and references. The crate knows nothing of agents or of diffs.
//!
//! Any input gives an [`Error`] or a result, with [`Warning`]s where it is damaged: no input makes
//! it panic, recurse over the heap, or allocate out of proportion to the file.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answers;
mod bytes;
mod dominators;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod ids;
mod index;
mod options;
mod progress;
mod records;
mod sizes;
mod snapshot;

pub use answers::contents::{Bounds, Contents, ContentsKind, Entry};
pub use answers::deep::final_fields::{DeclaredField, FinalFields};
pub use answers::deep::flyweights::Flyweights;
pub use answers::deep::tree::DeepLine;
pub use answers::deep::{Deep, DeepOptions, DeepSize};
pub use answers::histogram::Histogram;
pub use answers::objects::object::{ArrayView, ClassObject, Content, FieldValue, Record, Value};
pub use answers::objects::reference::Via;
pub use answers::objects::selector::{ParseSelectorError, SelectError, Selected, Selector};
pub use answers::paths::forest::Step;
pub use answers::paths::merged::{Merge, PathNode, PathTree};
pub use answers::paths::{Path, PathOptions, Paths};
pub use answers::stream::{Ids, Link, Links, Numbers, Place};
pub use answers::threads::{Frame, Line, Local, StackFrame, Thread, Traces};
pub use answers::waste::{
    Waste, WasteGroup, WasteHolder, WasteKind, WasteOf, WasteOptions, WasteTotal,
};
pub use bytes::source::Source;
pub use dominators::holders::{Dominated, Hold, Holders};
pub use dominators::tree::{DominatorTree, Node};
pub use error::{Error, Result, Warning};
pub use graph::heap_graph::HeapGraph;
#[cfg(feature = "petgraph")]
pub use graph::petgraph_impl::{AllEdges, Edges, GraphEdge, GraphNode, Neighbors, Nodes, Visited};
pub use graph::referrers::{Referrer, Referrers};
pub use ids::{ClassIndex, ObjectId, ObjectIndex};
pub use index::{IndexFault, has_room, is_index};
pub use options::{Options, Refs};
pub use progress::{Progress, Silent};
pub use records::classes::{Class, Classes, Field, Reference, Static};
pub use records::record::{Header, Kind};
pub use records::walk::{Root, RootKind};
pub use sizes::layout::{Layout, LayoutSource};
pub use sizes::totals::{ClassTotal, Total};
pub use snapshot::Snapshot;
