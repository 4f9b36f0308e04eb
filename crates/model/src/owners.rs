//! `heapdiff.owners/1`: memory by owner.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::snapshot::SnapshotInfo;

/// The report of `heapdiff owners --format json`: memory by owner, in one dump or several. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct OwnersReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dumps, oldest first.
    pub snapshots: Vec<SnapshotInfo>,
    /// The figures.
    #[serde(flatten)]
    pub figures: OwnerFigures,
}

/// Memory by owner. Each reachable byte is counted once: the bytes of all owners and the shared bytes add up to the
/// reachable heap. Lists of figures have one figure for each dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnerFigures {
    /// The kind of owners: package, jar, loader, thread, bean or field.
    pub by: Cow<'static, str>,
    /// The owners. For one dump, those with the most bytes come first; for several dumps, those that grew most.
    pub owners: Vec<OwnerRow>,
    /// Bytes that several owners share.
    pub shared_bytes: Vec<u64>,
    /// The groups of owners that share the most bytes, sorted in the same way as `owners`.
    pub shared: Vec<SharedRow>,
}

impl OwnersReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.owners/1";
}

/// An owner and its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnerRow {
    /// Name of the owner. "JVM" owns the objects that only GC roots and JDK classes hold.
    pub owner: String,
    /// Kind of the owner. jvm for "JVM"; other for the owners that are not listed.
    #[schemars(extend("enum" = ["package", "jar", "loader", "thread", "bean", "field", "jvm", "other"]))]
    pub kind: Cow<'static, str>,
    /// Sum of the shallow sizes of the objects that only this owner holds.
    pub bytes: Vec<u64>,
    /// Number of these objects.
    pub objects: Vec<u64>,
    /// The classes with the most of the owner's bytes in the last dump, at most 3.
    pub classes: Vec<OwnedClass>,
}

/// Memory that several owners share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedRow {
    /// Names of the two owners that hold the objects. Empty if three or more owners hold the objects.
    pub owners: Vec<String>,
    /// Sum of the shallow sizes of these objects.
    pub bytes: Vec<u64>,
    /// Number of these objects.
    pub objects: Vec<u64>,
    /// The classes with the most of the shared bytes in the last dump, at most 3.
    pub classes: Vec<OwnedClass>,
}

/// A class with the memory of its instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnedClass {
    /// Name of the class.
    pub class: String,
    /// Number of instances.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub bytes: u64,
}
