//! The dominator tree of the heap graph. This module has the selection of objects that need a search, the search, and
//! Lengauer and Tarjan's algorithm. It also has the tree in preorder, and the field through which each dominator holds
//! an object.
//!
//! An object dominates another object if every path from a GC root to the other object leads through it. If it were
//! removed, the other object would become unreachable. An object retains the objects that it dominates, including
//! itself. [`DominatorTree`] is built from a [`HeapGraph`](crate::graph::HeapGraph). The graph is that of a dump, or
//! its edges are listed by hand as in this example:
//!
//! ```
//! use hprof::dominators::{DominatorTree, Node};
//! use hprof::graph::HeapGraph;
//! use hprof::{ObjectIndex, Silent};
//!
//! # fn main() -> hprof::Result<()> {
//! // Two ways lead from 0 to 3, one by 1 and one by 2, and from 3 to 4.
//! let graph = HeapGraph::from_edges(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], &[0])?;
//! let tree = DominatorTree::build(graph, |_| 16, &Silent)?;
//! let dominator = |n| tree.dominator(ObjectIndex(n)).and_then(|node| tree.object(node));
//! assert_eq!(dominator(3), Some(ObjectIndex(0)));
//! assert_eq!(dominator(4), Some(ObjectIndex(3)));
//! let three = tree.node(ObjectIndex(3)).map(|node| tree.retained_bytes(node));
//! assert_eq!(three, Some(2 * 16));
//! assert_eq!(tree.retained_bytes(Node::ROOT), 5 * 16);
//! # Ok(())
//! # }
//! ```

pub(crate) mod annotated;
mod bare;
pub(crate) mod core;
pub(crate) mod held;
mod leaves;
pub(crate) mod lengauer_tarjan;
pub(crate) mod preorder;
pub(crate) mod ranges;
pub(crate) mod search;
mod sinks;
mod tasks;
#[cfg_attr(
    not(feature = "fuzzing"),
    allow(
        unreachable_pub,
        reason = "other crates see these types only with the feature `fuzzing`"
    )
)]
pub(crate) mod thresholds;
pub(crate) mod tree;
mod ways_back;

// Public for tests only.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use thresholds::{Tally, Thresholds};
pub use tree::{DominatorTree, Node};
