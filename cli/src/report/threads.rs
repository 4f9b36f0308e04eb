//! `heapdiff.threads/1`: threads, their stacks, and what those hold.

use serde::Serialize;

use super::{ObjectRef, SnapshotInfo};

/// The threads of a dump.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadsReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) totals: ThreadTotals,
    /// Those that retain most.
    pub(crate) threads: Vec<ThreadRow>,
}

/// All threads, those left out of the list included.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ThreadTotals {
    pub(crate) threads: u64,
    pub(crate) virtual_threads: u64,
}

/// One thread.
#[derive(Debug, Serialize)]
pub(crate) struct ThreadRow {
    pub(crate) name: Option<String>,
    /// `None` where the dump lacks the thread's object.
    pub(crate) id: Option<String>,
    pub(crate) class: Option<String>,
    pub(crate) daemon: Option<bool>,
    #[serde(rename = "virtual")]
    pub(crate) is_virtual: bool,
    pub(crate) retained_bytes: Option<u64>,
    pub(crate) retained_objects: Option<u64>,
    /// The innermost first.
    pub(crate) frames: Vec<FrameRow>,
    /// What the stack holds outside these frames.
    pub(crate) other_locals: Locals,
}

/// One frame.
#[derive(Debug, Serialize)]
pub(crate) struct FrameRow {
    pub(crate) frame: String,
    #[serde(flatten)]
    pub(crate) locals: Locals,
}

/// What local variables hold.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Locals {
    /// How many objects.
    #[serde(rename = "locals")]
    pub(crate) count: u64,
    /// Those that retain most.
    pub(crate) largest: Vec<LocalRow>,
}

/// An object that a local variable holds.
#[derive(Debug, Serialize)]
pub(crate) struct LocalRow {
    /// The kind of GC root.
    pub(crate) kind: &'static str,
    pub(crate) object: Option<ObjectRef>,
    pub(crate) retained_bytes: u64,
}

impl ThreadsReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.threads/1";
}
