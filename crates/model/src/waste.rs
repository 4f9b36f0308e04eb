//! `heapdiff.waste/1`: memory that a program could do without.

use serde::Serialize;

use crate::snapshot::SnapshotInfo;

/// Waste in one dump, or in several side by side.
#[derive(Debug, Serialize)]
pub struct WasteReport {
    /// The schema's name.
    pub schema: &'static str,
    /// Oldest first.
    pub snapshots: Vec<SnapshotInfo>,
    /// The waste, one figure for each dump.
    #[serde(flatten)]
    pub waste: WasteGrowth,
}

impl WasteReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.waste/1";
}

/// Waste in one dump or several; figures are lists of one for each dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WasteGrowth {
    /// All kinds together; no byte is in two kinds.
    pub bytes_to_win: Vec<u64>,
    /// By kind, first those with most to be won, or where there are several dumps those that grew most.
    pub kinds: Vec<WasteRow>,
}

/// Waste of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WasteRow {
    /// The name of the kind.
    pub kind: &'static str,
    /// The wasteful objects; of duplicates all that are equal to another.
    pub objects: Vec<u64>,
    /// Their shallow sizes together.
    pub shallow_bytes: Vec<u64>,
    /// The part of these bytes that could be saved.
    pub bytes_to_win: Vec<u64>,
    /// The number of different contents, or classes.
    pub groups: Vec<u64>,
    /// The groups of the last dump with most to be won.
    pub examples: Vec<WasteExample>,
    /// The holders of what could be spared, in the same order.
    pub holders: Vec<WasteHolderRow>,
}

/// Objects of the same content, or of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WasteExample {
    /// The id of one object: the first of equal ones, else the one with most to be won.
    pub id: String,
    /// Its class.
    pub class: String,
    /// The length of an array.
    pub length: Option<u32>,
    /// The text or value of equal strings and boxes.
    pub text: Option<String>,
    /// The number of objects in the group.
    pub objects: u64,
    /// Their shallow sizes together.
    pub shallow_bytes: u64,
    /// The part of these bytes that could be saved.
    pub bytes_to_win: u64,
}

/// A field that holds wasteful objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WasteHolderRow {
    /// The field, as `com.acme.Foo.name`.
    pub holder: String,
    /// Objects that could be spared, or be smaller.
    pub objects: Vec<u64>,
    /// Bytes to be won of them.
    pub bytes_to_win: Vec<u64>,
}
