//! `heapdiff.paths/1`: what leads from GC roots to objects.

use serde::Serialize;

use super::{SelectedTotals, SnapshotInfo};

/// Shortest paths to the selected objects, merged into one tree.
#[derive(Debug, Serialize)]
pub(crate) struct PathsReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) selector: String,
    pub(crate) selected: SelectedTotals,
    /// Selected objects that no path leads to: garbage, or only weakly reachable.
    pub(crate) without_path: u64,
    /// The tree's lines, each followed by those below it.
    pub(crate) tree: Vec<PathLine>,
    /// What the limit left out beside the lines of depth 0.
    pub(crate) hidden: Hidden,
}

/// Objects on the way that are reached alike.
#[derive(Debug, Serialize)]
pub(crate) struct PathLine {
    pub(crate) depth: u32,
    /// At depth 0, `static` for a class whose static field the path goes through, or the kind of
    /// GC root.
    pub(crate) root: Option<&'static str>,
    /// How the objects of the line above refer to these.
    pub(crate) via: Option<String>,
    /// `strong`, or the kind of reference object that refers to these.
    pub(crate) strength: &'static str,
    pub(crate) class: String,
    /// The object, where the line is one.
    pub(crate) id: Option<String>,
    pub(crate) objects: u64,
    /// Whether some lie below others of this line, as in a linked list.
    pub(crate) folded: bool,
    /// Selected objects that this line leads to, and how many of them are its own.
    pub(crate) selected: u64,
    pub(crate) selected_here: u64,
    pub(crate) selected_bytes: u64,
    pub(crate) hidden: Hidden,
}

/// Lines that the limit left out.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Hidden {
    pub(crate) lines: u64,
    /// Selected objects that they lead to.
    pub(crate) selected: u64,
}

impl PathsReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.paths/1";
}
