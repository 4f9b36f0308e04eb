//! `heapdiff.top/1`: the objects that retain most.

use serde::Serialize;

use super::SnapshotInfo;

/// The biggest objects of a dump, or of what some objects dominate directly.
#[derive(Debug, Serialize)]
pub(crate) struct TopReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) objects: Vec<TopObject>,
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
