//! `heapdiff.histo/1`: objects and bytes of each class.

use serde::Serialize;

use super::SnapshotInfo;

/// A class histogram.
#[derive(Debug, Serialize)]
pub(crate) struct HistoReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) totals: HistoTotals,
    pub(crate) classes: Vec<ClassRow>,
}

/// All classes together, those left out of the list included.
#[derive(Debug, Serialize)]
pub(crate) struct HistoTotals {
    pub(crate) classes: u64,
    pub(crate) objects: u64,
    pub(crate) shallow_bytes: u64,
}

/// One class that has instances in the dump.
#[derive(Debug, Serialize)]
pub(crate) struct ClassRow {
    pub(crate) class: String,
    /// The defining loader's id; `None` for the boot loader.
    pub(crate) loader: Option<String>,
    pub(crate) objects: u64,
    pub(crate) shallow_bytes: u64,
    /// What its instances retain as a set; `None` where no graph was built.
    pub(crate) retained_bytes: Option<u64>,
    pub(crate) reachable_objects: Option<u64>,
    pub(crate) reachable_bytes: Option<u64>,
}

impl HistoReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.histo/1";
}
