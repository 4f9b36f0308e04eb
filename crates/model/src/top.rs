//! `heapdiff.top/1`: the objects that retain most.

use serde::Serialize;

use crate::snapshot::SnapshotInfo;

/// The biggest objects of a dump, or of what some objects dominate directly.
#[derive(Debug, Serialize)]
pub struct TopReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// What `--under` selects; `None` without it.
    pub under: Option<Under>,
    /// The objects that retain most.
    pub objects: Vec<TopObject>,
}

/// Objects whose part of the dominator tree a report is of.
#[derive(Debug, Serialize)]
pub struct Under {
    /// The selector, as given.
    pub selector: String,
    /// Objects.
    pub objects: u64,
    /// What they retain together, nothing counted twice.
    pub retained_bytes: u64,
}

/// One object.
#[derive(Debug, Serialize)]
pub struct TopObject {
    /// The id, `0x7f0012345678`.
    pub id: String,
    /// The class, as in Java source.
    pub class: String,
    /// Its own size in bytes.
    pub shallow_bytes: u64,
    /// Bytes that would be free without it.
    pub retained_bytes: u64,
    /// Objects that would be gone without it.
    pub retained_objects: u64,
}

impl TopReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.top/1";
}
