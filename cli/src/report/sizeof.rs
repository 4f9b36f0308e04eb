//! `heapdiff.sizeof/1`: what objects cost, alone and together.

use serde::Serialize;

use super::SnapshotInfo;

/// Shallow, deep and retained sizes of the selected objects.
#[derive(Debug, Serialize)]
pub(crate) struct SizeofReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) selectors: Vec<String>,
    pub(crate) options: SizeofOptions,
    /// The deepest first.
    pub(crate) objects: Vec<SizeofObject>,
    pub(crate) set: SizeofSet,
    /// What the set's deep size is made of, most bytes first.
    pub(crate) by_class: Vec<SizeofClass>,
    /// What `--skip-flyweights` leaves out; `None` without it.
    pub(crate) flyweights: Option<SizeofFlyweights>,
    /// Of which classes `--skip-final` does not know the fields' flags; `None` without it.
    pub(crate) finals: Option<SizeofFinals>,
    /// Where the bytes are, with `--tree`: lines, each followed by those below it.
    pub(crate) tree: Option<Vec<SizeofLine>>,
    /// Whether text shows the classes.
    #[serde(skip)]
    pub(crate) shows_classes: bool,
    /// Classes that are not listed: how many, their objects and bytes.
    #[serde(skip)]
    pub(crate) more_classes: (u64, u64, u64),
}

/// What deep sizes count and follow.
#[derive(Debug, Serialize)]
pub(crate) struct SizeofOptions {
    pub(crate) skip_flyweights: bool,
    pub(crate) skip_static: bool,
    pub(crate) skip_final: bool,
    /// Regular expressions on names of classes.
    pub(crate) exclude: Vec<String>,
    pub(crate) stop_at: Vec<String>,
    pub(crate) refs: &'static str,
}

/// One selected object.
#[derive(Debug, Serialize)]
pub(crate) struct SizeofObject {
    pub(crate) id: String,
    pub(crate) class: String,
    pub(crate) shallow_bytes: u64,
    pub(crate) deep_bytes: u64,
    pub(crate) deep_objects: u64,
    /// `None` for garbage.
    pub(crate) retained_bytes: Option<u64>,
    pub(crate) retained_objects: Option<u64>,
}

/// All selected objects, taken as one set.
#[derive(Debug, Serialize)]
pub(crate) struct SizeofSet {
    pub(crate) objects: u64,
    pub(crate) shallow_bytes: u64,
    /// What any of them reaches, each object once.
    pub(crate) deep_bytes: u64,
    pub(crate) deep_objects: u64,
    /// What would be free if all of them were; `None` when all are garbage.
    pub(crate) retained_bytes: Option<u64>,
    pub(crate) retained_objects: Option<u64>,
    /// Selected objects whose own deep size was measured: those that retain most.
    pub(crate) measured: u64,
    /// The deep sizes of the members added up; `None` where not all were measured.
    pub(crate) sum_deep_bytes: Option<u64>,
    /// The retained sizes of the members added up.
    pub(crate) sum_retained_bytes: u64,
}

/// A class's part in a deep size.
#[derive(Debug, Serialize)]
pub(crate) struct SizeofClass {
    pub(crate) class: String,
    pub(crate) objects: u64,
    pub(crate) shallow_bytes: u64,
}

/// Objects that are reached by the same fields, each object at the first place where a walk comes upon it.
#[derive(Debug, Serialize)]
pub(crate) struct SizeofLine {
    pub(crate) depth: u32,
    /// How the objects of the line above refer to these; `None` for the selected objects.
    pub(crate) via: Option<String>,
    /// `None` where they are of several classes.
    pub(crate) class: Option<String>,
    /// The objects at this place.
    pub(crate) objects: u64,
    pub(crate) shallow_bytes: u64,
    /// The same with all that lies below.
    pub(crate) deep_objects: u64,
    pub(crate) deep_bytes: u64,
    /// Lines right below that are not listed, and their deep bytes.
    pub(crate) hidden_lines: u64,
    pub(crate) hidden_bytes: u64,
}

/// Shared values in the dump.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SizeofFlyweights {
    pub(crate) enum_constants: u64,
    pub(crate) cached_boxes: u64,
    /// Those that can be told.
    pub(crate) interned_strings: u64,
}

/// Classes in the deep size whose final fields are followed, because it is not known which these are.
#[derive(Debug, Serialize)]
pub(crate) struct SizeofFinals {
    /// How many names of classes.
    pub(crate) unknown_classes: u64,
    /// The first few, in the order of names.
    pub(crate) unknown: Vec<String>,
}

impl SizeofReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.sizeof/1";
}
