//! Shallow sizes of objects, measured from the distances between objects. If the distances do not show the size of a
//! class's objects, a model of HotSpot's field layout predicts it.

pub(crate) mod agent;
pub(crate) mod fields;
pub(crate) mod gaps;
pub(crate) mod layout;
mod mirrors;
pub(crate) mod shape;
pub(crate) mod stats;
pub(crate) mod totals;

pub use layout::{Layout, LayoutSource};
pub use totals::{ClassTotal, Total};
