//! `heapdiff.waste/1`: memory that a program could do without.

use heapdiff_diff::WasteGrowth;
use serde::Serialize;

use super::SnapshotInfo;

/// Waste in one dump, or in several side by side.
#[derive(Debug, Serialize)]
pub(crate) struct WasteReport {
    pub(crate) schema: &'static str,
    /// Oldest first.
    pub(crate) snapshots: Vec<SnapshotInfo>,
    #[serde(flatten)]
    pub(crate) waste: WasteGrowth,
}

impl WasteReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.waste/1";
}
