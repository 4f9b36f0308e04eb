//! `heapdiff.find/1`: strings and arrays that contain a text or bytes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::SnapshotInfo;
use crate::words::ID;

/// The report of `heapdiff find --format json`: strings and arrays that contain a text or bytes. Later versions may add
/// keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FindReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The pattern that the user gave.
    pub pattern: String,
    /// Number of strings and arrays that match. An array that belongs to a string is not counted.
    pub objects: u64,
    /// Sum of their shallow sizes, in bytes.
    pub shallow_bytes: u64,
    /// Number of matching objects that are unreachable.
    pub unreachable: u64,
    /// The fields that hold the objects, the most objects first. At most 20 unless --top sets another limit.
    pub holders: Vec<FoundHolder>,
    /// Number of all fields that hold such objects.
    pub holder_count: u64,
    /// The matching objects: strings in the order of the dump, then arrays. At most 20 unless --top sets another limit.
    pub matches: Vec<FoundObject>,
}

/// A field that holds matching objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundHolder {
    /// The last field of an application class on the shortest path to the objects, such as com.acme.User.name. If the
    /// path has no such field, its last field. Null if the objects are unreachable, or if GC roots hold them.
    pub field: Option<String>,
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes, in bytes.
    pub shallow_bytes: u64,
}

/// A string or an array that matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundObject {
    /// The id.
    #[schemars(extend("pattern" = ID))]
    pub id: String,
    /// `java.lang.String`, `byte[]` or `char[]`.
    pub class: String,
    /// Shallow size of the object, in bytes.
    pub shallow_bytes: u64,
    /// Index of the first match: in characters for strings and char[], in bytes for byte[].
    pub offset: u64,
    /// The content around the first match: text, or bytes in hexadecimal for a pattern of bytes.
    pub excerpt: String,
    /// The field that holds the object, as in `holders`.
    pub field: Option<String>,
}

impl FindReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.find/1";
}
