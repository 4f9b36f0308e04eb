//! `heapdiff.waste/1`: memory that a program could do without.

use heapdiff_diff::WasteGrowth;
use serde::Serialize;

use super::SnapshotInfo;

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
