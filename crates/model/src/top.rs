//! `heapdiff.top/1`: the objects that retain the most.

use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::SnapshotInfo;
use crate::unreachable::UnreachableSummary;
use crate::words::ID;

/// The report of `heapdiff top --format json`: the objects that retain the most. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TopReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The objects that --under selects; null without it.
    pub under: Option<Under>,
    /// Totals of the unreachable objects, only with --unreachable. The report then lists unreachable objects, and what
    /// each of them would hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UnreachableSummary")]
    pub unreachable: Option<UnreachableSummary>,
    /// Objects, the largest first, at any depth of the dominator tree; with --under, only objects that the
    /// selected objects dominate directly. At most 20 unless --top sets another limit.
    pub objects: Vec<TopObject>,
}

/// Objects whose children in the dominator tree are reported.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Under {
    /// The selector that the user gave.
    pub selector: String,
    /// Number of selected objects.
    pub objects: u64,
    /// Bytes that would be freed if all selected objects were removed.
    pub retained_bytes: u64,
}

/// One object.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TopObject {
    /// The object's id in this dump.
    #[schemars(extend("pattern" = ID))]
    pub id: String,
    /// Class of the object; `class com.acme.Foo` for the class object of com.acme.Foo.
    pub class: String,
    /// Shallow size of the object, in bytes.
    pub shallow_bytes: u64,
    /// Bytes that would be freed if the object were removed.
    pub retained_bytes: u64,
    /// Number of objects that would be freed with it, itself included.
    pub retained_objects: u64,
}

impl TopReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.top/1";
}
