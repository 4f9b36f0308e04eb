//! Files that `heapdiff export` wrote.

use serde::Serialize;

use crate::snapshot::SnapshotInfo;

/// Files with the tables of a dump.
#[derive(Debug, Default, Serialize)]
pub struct ExportReport {
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The files, in the order of the tables.
    pub files: Vec<ExportedFile>,
}

/// One of the files.
#[derive(Debug, Default, Serialize)]
pub struct ExportedFile {
    /// Name of the table.
    pub table: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Path of the file.
    pub path: String,
}
