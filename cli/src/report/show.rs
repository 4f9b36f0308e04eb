//! `heapdiff.show/1`: objects with what they hold.

use hprof::{ObjectIndex, Snapshot};
use serde::Serialize;

use super::SnapshotInfo;

/// The objects that a selector names, the largest in full.
#[derive(Debug, Serialize)]
pub(crate) struct ShowReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) selector: String,
    pub(crate) selected: SelectedTotals,
    /// Those that retain most.
    pub(crate) objects: Vec<ShownObject>,
}

/// All objects that a selector names.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SelectedTotals {
    pub(crate) objects: u64,
    pub(crate) shallow_bytes: u64,
}

impl SelectedTotals {
    pub(crate) fn of(snapshot: &Snapshot, objects: &[ObjectIndex]) -> Self {
        Self {
            objects: objects.len() as u64,
            shallow_bytes: objects.iter().map(|&o| snapshot.shallow_bytes(o)).sum(),
        }
    }
}

/// An object in full.
#[derive(Debug, Serialize)]
pub(crate) struct ShownObject {
    pub(crate) id: String,
    pub(crate) class: String,
    pub(crate) shallow_bytes: u64,
    /// `None` for garbage.
    pub(crate) retained_bytes: Option<u64>,
    pub(crate) retained_objects: Option<u64>,
    /// The kind of GC root that holds it directly.
    pub(crate) root: Option<&'static str>,
    /// What keeps it alive alone; `None` where that is more than one thing, a GC root, or nothing.
    pub(crate) dominator: Option<ObjectRef>,
    /// A class object's superclass.
    pub(crate) superclass: Option<ObjectRef>,
    /// A class object's defining loader; `None` for the boot loader.
    pub(crate) loader: Option<ObjectRef>,
    /// A string's text, a boxed value's value.
    pub(crate) text: Option<String>,
    /// An instance's fields, its own class's first; a class object's static fields.
    pub(crate) fields: Vec<ShownField>,
    /// `None` for what is no array.
    pub(crate) array: Option<ShownArray>,
    /// How many references lead to it, its own instances' to their class excepted.
    pub(crate) referrer_count: u64,
    /// The first of them.
    pub(crate) referrers: Vec<ShownReferrer>,
    /// What a collection or the like holds; `None` for other objects.
    pub(crate) contents: Option<ShownContents>,
}

/// A reference to an object.
#[derive(Debug, Serialize)]
pub(crate) struct ShownReferrer {
    /// The field, or `[index]`.
    pub(crate) via: String,
    /// `strong`, or the kind of `java.lang.ref` object whose referent it is.
    pub(crate) strength: &'static str,
    #[serde(flatten)]
    pub(crate) object: ObjectRef,
}

/// A field with its value.
#[derive(Debug, Serialize)]
pub(crate) struct ShownField {
    pub(crate) name: String,
    /// The class that declares it.
    pub(crate) class: String,
    #[serde(flatten)]
    pub(crate) value: ShownValue,
}

/// An array's elements, as many as are asked for.
#[derive(Debug, Serialize)]
pub(crate) struct ShownArray {
    pub(crate) length: u32,
    pub(crate) elements: Vec<ShownValue>,
    /// The place of the first of them.
    pub(crate) offset: u64,
}

/// What a collection of the JDK's holds, as its users see it.
#[derive(Debug, Serialize)]
pub(crate) struct ShownContents {
    /// `list`, `set`, `map`, `value`, `buffer` or `text`.
    pub(crate) kind: &'static str,
    pub(crate) size: Option<u64>,
    pub(crate) capacity: Option<u64>,
    /// Of buffers.
    pub(crate) position: Option<u64>,
    pub(crate) limit: Option<u64>,
    /// Of a `StringBuilder`.
    pub(crate) text: Option<String>,
    /// The place of the first entry.
    pub(crate) offset: u64,
    pub(crate) entries: Vec<ShownEntry>,
    /// Whether what was read fits together.
    pub(crate) whole: bool,
}

/// An element, or a key with its value.
#[derive(Debug, Serialize)]
pub(crate) struct ShownEntry {
    /// `None` but in maps.
    pub(crate) key: Option<ShownValue>,
    pub(crate) value: ShownValue,
}

/// A value: a number or such as text, or an object.
#[derive(Debug, Serialize)]
pub(crate) struct ShownValue {
    /// `int`, ... or `Object` for references.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// As in Java source, without a suffix; `None` for references and where the record ends early.
    pub(crate) value: Option<String>,
    /// `None` for the null reference and for what is no reference.
    pub(crate) object: Option<ObjectRef>,
}

/// A mention of an object.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ObjectRef {
    pub(crate) id: String,
    /// `None` where the dump has no object with this id.
    pub(crate) class: Option<String>,
    /// An array's length.
    pub(crate) length: Option<u32>,
    /// The beginning of a string's text, a boxed value's value.
    pub(crate) text: Option<String>,
}

impl ShowReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.show/1";
}
