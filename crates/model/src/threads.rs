//! `heapdiff.threads/1`: threads, their stacks, and what those hold.

use serde::Serialize;

use crate::show::ObjectRef;
use crate::snapshot::SnapshotInfo;

/// The threads of a dump.
#[derive(Debug, Serialize)]
pub struct ThreadsReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// All together, those that are not listed included.
    pub totals: ThreadTotals,
    /// Those that retain most.
    pub threads: Vec<ThreadRow>,
}

/// All threads, those left out of the list included.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ThreadTotals {
    /// Threads.
    pub threads: u64,
    /// Those of them that are virtual.
    pub virtual_threads: u64,
}

/// One thread.
#[derive(Debug, Serialize)]
pub struct ThreadRow {
    /// Its name; `None` where the dump does not tell.
    pub name: Option<String>,
    /// `None` where the dump lacks the thread's object.
    pub id: Option<String>,
    /// The class, as in Java source.
    pub class: Option<String>,
    /// Whether it is a daemon; `None` where the dump does not tell.
    pub daemon: Option<bool>,
    /// Whether it is a virtual thread.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// Bytes that would be free without it.
    pub retained_bytes: Option<u64>,
    /// Objects that would be gone without it.
    pub retained_objects: Option<u64>,
    /// The innermost first.
    pub frames: Vec<FrameRow>,
    /// What the stack holds outside these frames.
    pub other_locals: Locals,
}

/// One frame.
#[derive(Debug, Serialize)]
pub struct FrameRow {
    /// The frame, as reports show it.
    pub frame: String,
    /// What its local variables hold.
    #[serde(flatten)]
    pub locals: Locals,
}

/// What local variables hold.
#[derive(Debug, Default, Serialize)]
pub struct Locals {
    /// How many objects.
    #[serde(rename = "locals")]
    pub count: u64,
    /// Those that retain most.
    pub largest: Vec<LocalRow>,
}

/// An object that a local variable holds.
#[derive(Debug, Serialize)]
pub struct LocalRow {
    /// The kind of GC root.
    pub kind: &'static str,
    /// The object; `None` where the dump lacks it.
    pub object: Option<ObjectRef>,
    /// Bytes that would be free without it.
    pub retained_bytes: u64,
}

impl ThreadsReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.threads/1";
}
