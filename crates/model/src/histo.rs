//! `heapdiff.histo/1`: objects and bytes of each class.

use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::SnapshotInfo;
use crate::words::ID;

/// The report of `heapdiff histo --format json`: objects and bytes of each class. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct HistoReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// Totals of all classes that have objects in the dump, listed or not.
    pub totals: HistoTotals,
    /// One entry for each class. With --retained, the classes with the most retained bytes come first, otherwise those
    /// with the most shallow bytes. Classes with equally many bytes are sorted by name. Contains all classes unless
    /// --top limits them.
    pub classes: Vec<ClassRow>,
}

/// Totals of all classes, listed or not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct HistoTotals {
    /// Number of classes.
    pub classes: u64,
    /// Number of objects.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects, in bytes.
    pub shallow_bytes: u64,
}

/// One class that has instances in the dump.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ClassRow {
    /// Name of the class, in the form com.acme.Foo$Bar or byte[].
    pub class: String,
    /// Id of the class loader that defined the class; null for the boot loader. Two classes may have one name
    /// if their loaders differ.
    #[schemars(extend("pattern" = ID))]
    pub loader: Option<String>,
    /// Number of instances in the dump, reachable or not. Class objects are instances of java.lang.Class.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects, in bytes.
    pub shallow_bytes: u64,
    /// Number of flattened values among these objects: values of a value class that are part of the object or array
    /// that contains them. Their own shallow size is 0. Missing for other classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub flattened: Option<u64>,
    /// Bytes that would be freed if all reachable instances were removed; null without --retained.
    pub retained_bytes: Option<u64>,
    /// Number of instances that a GC root reaches; null without --retained.
    pub reachable_objects: Option<u64>,
    /// Shallow bytes of the reachable instances; null without --retained.
    pub reachable_bytes: Option<u64>,
    /// Has the same value as reachable_bytes. It is at most retained_bytes.
    pub reachable_shallow_bytes: Option<u64>,
    /// True if retained_bytes is only a lower bound: the sum over the instances that no other instance of the class
    /// dominates. This is the case for the smaller classes of dumps with many objects and classes.
    #[serde(rename = "retained_is_lower_bound")]
    pub is_lower_bound: Option<bool>,
}

impl HistoReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.histo/1";
}
