//! `heapdiff.waste/1`: wasted memory.

use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::SnapshotInfo;
use crate::words::ID;

/// The report of `heapdiff waste --format json`: wasted memory in one dump or several. Lists of figures have one figure
/// for each dump. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WasteReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dumps, oldest first.
    pub snapshots: Vec<SnapshotInfo>,
    /// Wasted memory.
    #[serde(flatten)]
    pub waste: WasteGrowth,
}

impl WasteReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.waste/1";
}

/// Wasted memory in one dump or several. Lists of figures have one figure for each dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WasteGrowth {
    /// Savings of all kinds together. No byte is counted in two kinds.
    pub bytes_to_win: Vec<u64>,
    /// Waste by kind. For one dump, the largest savings first; for several dumps, the largest growth first.
    pub kinds: Vec<WasteRow>,
}

/// Waste of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WasteRow {
    /// duplicate_strings: strings of equal text; duplicate_arrays: arrays of primitives of equal content that belong to
    /// no string or collection; duplicate_boxes: equal boxed values of one class; boxed_values: other boxes that only
    /// an array or a collection holds; empty_collections: collections, maps and text builders without an element;
    /// sparse_collections: collections that need at most half of their array; zero_arrays: arrays of 32 bytes and more
    /// that are all zero or null; long_arrays: arrays whose second half, 32 bytes or more, is zero or null.
    #[schemars(extend("enum" = ["duplicate_strings", "duplicate_arrays", "duplicate_boxes", "boxed_values", "empty_collections", "sparse_collections", "zero_arrays", "long_arrays"]))]
    pub kind: &'static str,
    /// Number of objects. For duplicates, all objects that equal at least one other object, including the one that has
    /// to stay.
    pub objects: Vec<u64>,
    /// Sum of the sizes of these objects, including arrays that belong only to them.
    pub shallow_bytes: Vec<u64>,
    /// Savings in bytes. For duplicates, the bytes of all equal objects but one; for empty collections, the bytes of
    /// the collections and their arrays; for other kinds, the bytes that shorter arrays would save.
    pub bytes_to_win: Vec<u64>,
    /// Number of distinct contents. For kinds that are not about duplicates, number of classes.
    pub groups: Vec<u64>,
    /// The groups of the last dump that have the largest savings; at most 5 unless --top sets another limit.
    pub examples: Vec<WasteExample>,
    /// The fields that hold the wasteful objects. For each object, this is the nearest field above it that is not
    /// declared by a JDK class or by a class of a collection library. At most 5 unless --top sets another limit.
    pub holders: Vec<WasteHolderRow>,
}

/// A group of objects with the same content, or of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WasteExample {
    /// Id of one object of the group. For duplicates, it is the first of the equal objects; for other kinds, the object
    /// with the largest savings.
    #[schemars(extend("pattern" = ID))]
    pub id: String,
    /// Class of the objects.
    pub class: String,
    /// Length of duplicate arrays; null for other kinds.
    pub length: Option<u32>,
    /// Text or value of duplicate strings and boxes, cut after 80 characters; null for other kinds.
    pub text: Option<String>,
    /// Number of objects of the group.
    pub objects: u64,
    /// Sum of the sizes of these objects, in bytes.
    pub shallow_bytes: u64,
    /// Savings of the group.
    pub bytes_to_win: u64,
}

/// A field that holds wasteful objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WasteHolderRow {
    /// The field, in the form com.acme.Foo.name. `GC roots` if only GC roots hold the objects; `(several paths)` if
    /// several fields of the named class lead to them.
    pub holder: String,
    /// Number of objects that could be removed or made smaller.
    pub objects: Vec<u64>,
    /// Savings of these objects.
    pub bytes_to_win: Vec<u64>,
}
