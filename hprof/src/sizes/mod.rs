//! Shallow sizes, measured from the distances between objects. A model gives the sizes of classes with few objects.

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
