//! A query with the source of its rows; and what an export wrote.

use heapdiff_model::query::QueryHead;
use heapdiff_model::snapshot::SnapshotInfo;
use serde::Serialize;

use crate::rows::RowSource;

/// A query whose rows are still to be found: they are written as they are.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct PendingQuery {
    /// The keys before the rows.
    pub head: QueryHead,
    /// The source of the rows.
    #[serde(skip)]
    pub rows: Box<dyn RowSource>,
    /// Maximum number of rows; `None` for all.
    #[serde(skip)]
    pub max_rows: Option<u64>,
}

/// Files with a dump's tables.
#[derive(Debug, Serialize)]
pub struct ExportReport {
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// The files, in the order of the tables.
    pub files: Vec<ExportedFile>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub struct ExportedFile {
    /// The table's name.
    pub table: &'static str,
    /// Rows in it.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
    /// Where it is.
    pub path: String,
}
