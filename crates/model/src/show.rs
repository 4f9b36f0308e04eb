//! `heapdiff.show/1`: objects with what they hold.

use serde::Serialize;

use crate::sizeof::SizeofClass;
use crate::snapshot::SnapshotInfo;

/// The objects that a selector names, the largest in full.
#[derive(Debug, Serialize)]
pub struct ShowReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The selector, as given.
    pub selector: String,
    /// All objects that the selector names.
    pub selected: SelectedTotals,
    /// Those that retain most.
    pub objects: Vec<ShownObject>,
}

/// All objects that a selector names.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SelectedTotals {
    /// Objects.
    pub objects: u64,
    /// Their shallow sizes together, in bytes.
    pub shallow_bytes: u64,
}

/// An object in full.
#[derive(Debug, Serialize)]
pub struct ShownObject {
    /// The id, `0x7f0012345678`.
    pub id: String,
    /// The class, as in Java source.
    pub class: String,
    /// Its own size in bytes.
    pub shallow_bytes: u64,
    /// `None` for garbage.
    pub retained_bytes: Option<u64>,
    /// Objects that would be gone without it.
    pub retained_objects: Option<u64>,
    /// The kind of GC root that holds it directly.
    pub root: Option<&'static str>,
    /// What keeps it alive alone; `None` where that is more than one thing, a GC root, or nothing.
    pub dominator: Option<ObjectRef>,
    /// A class object's superclass.
    pub superclass: Option<ObjectRef>,
    /// A class object's defining loader; `None` for the boot loader.
    pub loader: Option<ObjectRef>,
    /// A string's text, a boxed value's value.
    pub text: Option<String>,
    /// An instance's fields, its own class's first; a class object's static fields.
    pub fields: Vec<ShownField>,
    /// `None` for what is no array.
    pub array: Option<ShownArray>,
    /// How many references lead to it, its own instances' to their class excepted.
    pub referrer_count: u64,
    /// The first of them.
    pub referrers: Vec<ShownReferrer>,
    /// What a collection or the like holds; `None` for other objects.
    pub contents: Option<ShownContents>,
    /// The values of a thread local; `None` for other objects.
    pub thread_local: Option<ThreadLocalValues>,
}

/// The values of thread locals. They are in the maps of the threads.
#[derive(Debug, Serialize)]
pub struct ThreadLocalValues {
    /// Number of threads that have a value.
    pub threads: u64,
    /// Number of values, each counted once.
    pub objects: u64,
    /// What all values retain together, in bytes.
    pub retained_bytes: u64,
    /// The classes with the most values.
    pub classes: Vec<SizeofClass>,
    /// The value that retains most.
    pub largest: Option<ObjectRef>,
    /// What it retains, in bytes.
    pub largest_retained_bytes: Option<u64>,
    /// The name of a thread that has it.
    pub largest_thread: Option<String>,
    /// The command that shows the values.
    pub next: Option<String>,
}

/// A reference to an object.
#[derive(Debug, Serialize)]
pub struct ShownReferrer {
    /// The field, or `[index]`.
    pub via: String,
    /// `strong`, or the kind of `java.lang.ref` object whose referent it is.
    pub strength: &'static str,
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
}

/// A field with its value.
#[derive(Debug, Serialize)]
pub struct ShownField {
    /// The field's name.
    pub name: String,
    /// The class that declares it.
    pub class: String,
    /// The value.
    #[serde(flatten)]
    pub value: ShownValue,
}

/// An array's elements, as many as are asked for.
#[derive(Debug, Serialize)]
pub struct ShownArray {
    /// How many elements it has.
    pub length: u32,
    /// The elements that are listed.
    pub elements: Vec<ShownValue>,
    /// The place of the first of them.
    pub offset: u64,
}

/// What a collection of the JDK's holds, as its users see it.
#[derive(Debug, Serialize)]
pub struct ShownContents {
    /// `list`, `set`, `map`, `value`, `buffer` or `text`.
    pub kind: &'static str,
    /// Elements, or keys of a map.
    pub size: Option<u64>,
    /// Elements for which there is room.
    pub capacity: Option<u64>,
    /// Of buffers.
    pub position: Option<u64>,
    /// As `position`.
    pub limit: Option<u64>,
    /// Of a `StringBuilder`.
    pub text: Option<String>,
    /// The place of the first entry.
    pub offset: u64,
    /// The entries that are listed.
    pub entries: Vec<ShownEntry>,
    /// Whether what was read fits together.
    pub whole: bool,
}

/// An element, or a key with its value.
#[derive(Debug, Serialize)]
pub struct ShownEntry {
    /// `None` but in maps.
    pub key: Option<ShownValue>,
    /// The element or the value.
    pub value: ShownValue,
}

/// A value: a number or such as text, or an object.
#[derive(Debug, Serialize)]
pub struct ShownValue {
    /// `int`, ... or `Object` for references.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// As in Java source, without a suffix; `None` for references and where the record ends early.
    pub value: Option<String>,
    /// `None` for the null reference and for what is no reference.
    pub object: Option<ObjectRef>,
}

/// A mention of an object.
#[derive(Clone, Debug, Serialize)]
pub struct ObjectRef {
    /// The id, `0x7f0012345678`.
    pub id: String,
    /// `None` where the dump has no object with this id.
    pub class: Option<String>,
    /// An array's length.
    pub length: Option<u32>,
    /// The beginning of a string's text, a boxed value's value.
    pub text: Option<String>,
}

impl ShowReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.show/1";
}
