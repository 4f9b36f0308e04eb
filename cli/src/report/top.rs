//! `heapdiff.top/1`: the objects that retain most.

use serde::Serialize;

use super::SnapshotInfo;

/// The biggest objects of a dump, or of what some objects dominate directly.
#[derive(Debug, Serialize)]
pub(crate) struct TopReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    /// What `--under` selects; `None` without it.
    pub(crate) under: Option<Under>,
    pub(crate) objects: Vec<TopObject>,
}

/// Objects whose part of the dominator tree a report is of.
#[derive(Debug, Serialize)]
pub(crate) struct Under {
    pub(crate) selector: String,
    pub(crate) objects: u64,
    /// What they retain together, nothing counted twice.
    pub(crate) retained_bytes: u64,
}

/// One object.
#[derive(Debug, Serialize)]
pub(crate) struct TopObject {
    pub(crate) id: String,
    pub(crate) class: String,
    pub(crate) shallow_bytes: u64,
    pub(crate) retained_bytes: u64,
    pub(crate) retained_objects: u64,
}

impl TopReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.top/1";
}
