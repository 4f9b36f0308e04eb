//! `heapdiff.query/1`: the rows of a SELECT; and what an export wrote.

use serde::Serialize;

use super::SnapshotInfo;
use crate::rows::RowSource;

/// A query whose rows are still to be found: they are written as they are.
#[derive(Debug, Serialize)]
pub struct QueryReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump; the first of several.
    pub snapshot: SnapshotInfo,
    /// The dumps that have names, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dumps: Vec<QueriedDump>,
    /// The statement.
    pub sql: String,
    /// What gives the rows.
    #[serde(skip)]
    pub rows: Box<dyn RowSource>,
    /// Rows that are given at most; `None` for all.
    #[serde(skip)]
    pub max_rows: Option<u64>,
}

/// A dump with its name in the statement.
#[derive(Debug, Serialize)]
pub struct QueriedDump {
    /// The name.
    pub name: String,
    /// The dump.
    pub snapshot: SnapshotInfo,
}

impl QueryReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.query/1";
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
