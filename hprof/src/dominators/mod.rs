//! The dominator tree of the heap graph: which objects need a search, the search, Lengauer and Tarjan's
//! algorithm, the tree in preorder, and the field that each dominator holds an object through.

pub(crate) mod annotated;
pub(crate) mod core;
pub(crate) mod holders;
pub(crate) mod lengauer_tarjan;
pub(crate) mod preorder;
pub(crate) mod ranges;
pub(crate) mod search;
pub(crate) mod tree;
