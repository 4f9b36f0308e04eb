//! Reads one JVM heap dump (HPROF): records, heap graph, sizes, dominators.
//!
//! The layers can be used one without the other: [`Source`] is a dump's bytes, [`HeapGraph`] its
//! objects and references. The crate knows nothing of agents or of diffs.
//!
//! Any input gives an [`Error`] or a result, with [`Warning`]s where it is damaged: no input makes
//! it panic, recurse over the heap, or allocate out of proportion to the file.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod build;
mod classes;
mod columns;
mod contents;
mod deep;
mod deep_tree;
mod dominators;
mod error;
mod fields;
mod finals;
mod flyweights;
#[doc(hidden)]
pub mod fuzz;
mod gaps;
mod graph;
mod gzip;
mod histogram;
mod holders;
mod holding;
mod ids;
mod inbound;
mod index;
mod jvm;
mod layout;
mod meet;
mod mem;
mod merged;
mod object;
mod outline;
mod parts;
mod paths;
mod petgraph_impl;
mod positions;
mod progress;
mod record;
mod reference;
mod referrers;
mod regraph;
mod retained_set;
mod rows;
mod scan;
mod search;
mod selector;
mod shape;
mod snapshot;
mod source;
mod stats;
mod strings;
mod threads;
mod tree;
mod walk;
mod waste;

pub use classes::{Class, Classes, Field, Reference, Static};
pub use contents::{Bounds, Contents, ContentsKind, Entry};
pub use deep::{Deep, DeepOptions, DeepSize};
pub use deep_tree::DeepLine;
pub use error::{Error, Result, Warning};
pub use finals::{DeclaredField, FinalFields};
pub use flyweights::Flyweights;
pub use graph::HeapGraph;
pub use histogram::{ClassTotal, Histogram, Total};
pub use holders::{Dominated, Hold, Holders};
pub use ids::{ClassIndex, ObjectId, ObjectIndex};
pub use index::{IndexFault, has_room, is_index};
pub use layout::{Layout, LayoutSource};
pub use merged::{Merge, PathNode, PathTree};
pub use object::{ArrayView, ClassObject, Content, FieldValue, Record, Value};
pub use parts::{Ids, Link, Links, Numbers, Place};
pub use paths::{Path, PathOptions, Paths, Step};
pub use petgraph_impl::{AllEdges, Edges, GraphEdge, GraphNode, Neighbors, Nodes, Visited};
pub use progress::{Progress, Silent};
pub use record::{Header, Kind};
pub use reference::Via;
pub use referrers::{Referrer, Referrers};
pub use selector::{ParseSelectorError, SelectError, Selected, Selector};
pub use snapshot::Snapshot;
pub use source::Source;
pub use threads::{Frame, Line, Local, StackFrame, Thread, Traces};
pub use tree::{DominatorTree, Node};
pub use walk::{Root, RootKind};
pub use waste::{Waste, WasteGroup, WasteHolder, WasteKind, WasteOf, WasteOptions, WasteTotal};

/// Which reference objects (`java.lang.ref`) retain their referent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Refs {
    /// None of them.
    Strong,
    /// Soft references, then finalizers, for what no stronger path reaches; weak and phantom
    /// references never.
    #[default]
    Soft,
    /// All of them, like ordinary fields.
    All,
}

/// How to analyse a dump.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which reference objects retain their referent.
    pub refs: Refs,
    /// Bytes of anonymous memory for the large arrays; beyond it they live in temporary files.
    pub max_memory: Option<u64>,
}
