//! `heapdiff.sizeof/1`: what objects cost, alone and together.

use serde::Serialize;

use crate::show::ThreadLocalValues;
use crate::snapshot::SnapshotInfo;

/// Shallow, deep and retained sizes of the selected objects.
#[derive(Debug, Serialize)]
pub struct SizeofReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The selectors, as given.
    pub selectors: Vec<String>,
    /// What deep sizes count and follow.
    pub options: SizeofOptions,
    /// The deepest first.
    pub objects: Vec<SizeofObject>,
    /// All selected objects, taken as one set.
    pub set: SizeofSet,
    /// The values of the thread locals among the selected objects; `None` if there is no thread local.
    pub thread_local: Option<ThreadLocalValues>,
    /// What the set's deep size is made of, most bytes first.
    pub by_class: Vec<SizeofClass>,
    /// What `--skip-flyweights` leaves out; `None` without it.
    pub flyweights: Option<SizeofFlyweights>,
    /// Of which classes `--skip-final` does not know the fields' flags; `None` without it.
    pub finals: Option<SizeofFinals>,
    /// Where the bytes are, with `--tree`: lines, each followed by those below it.
    pub tree: Option<Vec<SizeofLine>>,
}

/// What deep sizes count and follow.
#[derive(Debug, Serialize)]
pub struct SizeofOptions {
    /// Whether shared values are left out.
    pub skip_flyweights: bool,
    /// Whether static fields are not followed.
    pub skip_static: bool,
    /// True if final fields are skipped.
    pub skip_final: bool,
    /// Regular expressions on names of classes.
    pub exclude: Vec<String>,
    /// As `exclude`: classes whose references are not followed.
    pub stop_at: Vec<String>,
    /// Which reference objects retain their referent: `strong`, `soft` or `all`.
    pub refs: &'static str,
}

/// One selected object.
#[derive(Debug, Serialize)]
pub struct SizeofObject {
    /// The id, `0x7f0012345678`.
    pub id: String,
    /// The class, as in Java source.
    pub class: String,
    /// Its own size in bytes.
    pub shallow_bytes: u64,
    /// Shallow bytes of all that it reaches, itself included.
    pub deep_bytes: u64,
    /// How many objects that is.
    pub deep_objects: u64,
    /// `None` for garbage.
    pub retained_bytes: Option<u64>,
    /// Objects that would be gone without it.
    pub retained_objects: Option<u64>,
}

/// All selected objects, taken as one set.
#[derive(Debug, Serialize)]
pub struct SizeofSet {
    /// Objects.
    pub objects: u64,
    /// Their shallow sizes together, in bytes.
    pub shallow_bytes: u64,
    /// What any of them reaches, each object once.
    pub deep_bytes: u64,
    /// How many objects that is.
    pub deep_objects: u64,
    /// What would be free if all of them were; `None` when all are garbage.
    pub retained_bytes: Option<u64>,
    /// Objects that would be gone without it.
    pub retained_objects: Option<u64>,
    /// Selected objects whose own deep size was measured: those that retain most.
    pub measured: u64,
    /// The deep sizes of the members added up; `None` where not all were measured.
    pub sum_deep_bytes: Option<u64>,
    /// The retained sizes of the members added up.
    pub sum_retained_bytes: u64,
    /// What class tables of reports show if the objects are all instances of one class: the sum over those instances that
    /// no other instance retains.
    pub class_table_bytes: Option<u64>,
}

/// A class's part in a deep size.
#[derive(Debug, Serialize)]
pub struct SizeofClass {
    /// The class, as in Java source.
    pub class: String,
    /// Objects.
    pub objects: u64,
    /// Their shallow sizes together, in bytes.
    pub shallow_bytes: u64,
}

/// Objects that are reached by the same fields, each object at the first place where a walk comes upon it.
#[derive(Debug, Serialize)]
pub struct SizeofLine {
    /// Lines above it that it hangs below.
    pub depth: u32,
    /// How the objects of the line above refer to these; `None` for the selected objects.
    pub via: Option<String>,
    /// `None` where they are of several classes.
    pub class: Option<String>,
    /// The objects at this place.
    pub objects: u64,
    /// Their shallow sizes together, in bytes.
    pub shallow_bytes: u64,
    /// The same with all that lies below.
    pub deep_objects: u64,
    /// Shallow bytes of all that it reaches, itself included.
    pub deep_bytes: u64,
    /// Lines right below that are not listed, and their deep bytes.
    pub hidden_lines: u64,
    /// Their deep bytes.
    pub hidden_bytes: u64,
}

/// Shared values in the dump.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SizeofFlyweights {
    /// Enum constants.
    pub enum_constants: u64,
    /// Boxes that `valueOf` caches.
    pub cached_boxes: u64,
    /// Those that can be told.
    pub interned_strings: u64,
}

/// Classes in the deep size whose final fields are followed, because it is not known which these are.
#[derive(Debug, Serialize)]
pub struct SizeofFinals {
    /// How many names of classes.
    pub unknown_classes: u64,
    /// The first few, in the order of names.
    pub unknown: Vec<String>,
}

impl SizeofReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.sizeof/1";
}
