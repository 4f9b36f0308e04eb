//! `heapdiff.paths/1`: what leads from GC roots to objects.

use serde::Serialize;

use crate::show::SelectedTotals;
use crate::snapshot::SnapshotInfo;

/// Shortest paths to the selected objects, merged into one tree.
#[derive(Debug, Serialize)]
pub struct PathsReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The selector, as given.
    pub selector: String,
    /// All objects that the selector names.
    pub selected: SelectedTotals,
    /// Selected objects that no path leads to: garbage, or only weakly reachable.
    pub without_path: u64,
    /// The tree's lines, each followed by those below it.
    pub tree: Vec<PathLine>,
    /// Lines of depth 0 that the limit left out.
    pub hidden: Hidden,
}

/// Objects on the way that are reached alike.
#[derive(Debug, Serialize)]
pub struct PathLine {
    /// Lines above it that it hangs below.
    pub depth: u32,
    /// At depth 0, `static` for a class whose static field the path goes through, or the kind of
    /// GC root.
    pub root: Option<&'static str>,
    /// How the objects of the line above refer to these.
    pub via: Option<String>,
    /// `strong`, or the kind of reference object that refers to these.
    pub strength: &'static str,
    /// The class, as in Java source.
    pub class: String,
    /// The object, where the line is one.
    pub id: Option<String>,
    /// Objects.
    pub objects: u64,
    /// Whether some lie below others of this line, as in a linked list.
    pub folded: bool,
    /// Selected objects that this line leads to, and how many of them are its own.
    pub selected: u64,
    /// Selected objects on this line.
    pub selected_here: u64,
    /// Shallow bytes of the selected objects that this line leads to.
    pub selected_bytes: u64,
    /// Lines below this line, at any depth, that the limit left out.
    pub hidden: Hidden,
}

/// Lines that the limit left out.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Hidden {
    /// How many.
    pub lines: u64,
    /// Selected objects that they lead to.
    pub selected: u64,
}

impl PathsReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.paths/1";
}
