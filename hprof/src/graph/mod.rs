//! The heap graph: one pass over all objects, addresses to object numbers, references in rows.

pub(crate) mod address;
pub(crate) mod bits;
pub(crate) mod build;
pub(crate) mod heap_graph;
pub(crate) mod implicit_refs;
#[cfg(feature = "petgraph")]
pub(crate) mod petgraph_impl;
pub(crate) mod rebuild;
pub(crate) mod referrers;
pub(crate) mod rows;
pub(crate) mod scan;
