//! The heap graph: one pass over all objects, the map from addresses to object numbers, and the references of each
//! object.
//!
//! [`HeapGraph`] has objects by number, their references and the GC roots. It is built from a dump or from any list of
//! references. This example builds one graph in each way:
//!
//! ```
//! use hprof::graph::HeapGraph;
//! use hprof::{ObjectIndex, Options, Silent, Source};
//!
//! # fn main() -> hprof::Result<()> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/small.hprof");
//! let source = Source::open(path.as_ref())?;
//! let graph = HeapGraph::build(&source, &Options::default(), &Silent)?;
//! assert!(graph.reference_count() > 40 * 2);
//!
//! let drawn = HeapGraph::from_edges(3, &[(0, 1), (1, 2)], &[0])?;
//! assert!(drawn.references(ObjectIndex(1)).eq([ObjectIndex(2)]));
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `petgraph`, `&HeapGraph` implements petgraph's visit traits, so petgraph's algorithms run on it.

pub(crate) mod address;
pub(crate) mod bare;
pub(crate) mod bits;
pub(crate) mod blocks;
pub(crate) mod build;
pub(crate) mod cut_arrays;
pub(crate) mod heap_graph;
pub(crate) mod implicit_refs;
pub(crate) mod jvm_version;
pub(crate) mod missing_roots;
pub(crate) mod permute;
#[cfg(feature = "petgraph")]
pub(crate) mod petgraph_impl;
pub(crate) mod plan;
#[cfg(test)]
mod plan_tests;
pub(crate) mod reach;
pub(crate) mod runs;
pub(crate) mod scan;
pub(crate) mod targets;
pub(crate) mod waypoints;

pub use heap_graph::HeapGraph;
pub use missing_roots::MissingRoots;
#[cfg(feature = "petgraph")]
pub use petgraph_impl::{
    AllEdges, Edges, GraphEdge, GraphNode, Neighbors, NodeReferences, Nodes, Visited,
};
