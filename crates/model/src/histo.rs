//! `heapdiff.histo/1`: objects and bytes of each class.

use serde::Serialize;

use crate::snapshot::SnapshotInfo;

/// A class histogram.
#[derive(Debug, Serialize)]
pub struct HistoReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// All together, those that are not listed included.
    pub totals: HistoTotals,
    /// Classes by what they take, most bytes first.
    pub classes: Vec<ClassRow>,
}

/// All classes together, those left out of the list included.
#[derive(Debug, Serialize)]
pub struct HistoTotals {
    /// Classes.
    pub classes: u64,
    /// Objects.
    pub objects: u64,
    /// Their shallow sizes together, in bytes.
    pub shallow_bytes: u64,
}

/// One class that has instances in the dump.
#[derive(Debug, Serialize)]
pub struct ClassRow {
    /// The class, as in Java source.
    pub class: String,
    /// The defining loader's id; `None` for the boot loader.
    pub loader: Option<String>,
    /// Objects.
    pub objects: u64,
    /// Their shallow sizes together, in bytes.
    pub shallow_bytes: u64,
    /// Bytes that would be free if all its reachable instances were; `None` if no graph was built.
    pub retained_bytes: Option<u64>,
    /// Objects that GC roots reach; `None` where no graph was built.
    pub reachable_objects: Option<u64>,
    /// Shallow bytes of the objects that GC roots reach; `None` where no graph was built.
    pub reachable_bytes: Option<u64>,
    /// The same as `reachable_bytes`.
    pub reachable_shallow_bytes: Option<u64>,
    /// True if `retained_bytes` is the sum over the topmost instances, which is a lower bound; `None` if no graph was built.
    #[serde(rename = "retained_is_lower_bound")]
    pub is_lower_bound: Option<bool>,
}

impl HistoReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.histo/1";
}
