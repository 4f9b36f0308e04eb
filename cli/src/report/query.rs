//! `heapdiff.query/1`: the rows of a SELECT; and what an export wrote.

use std::path::PathBuf;
use std::sync::Arc;

use heapdiff_query::{Heap, Limits};
use serde::Serialize;

use super::SnapshotInfo;

/// A query whose rows are still to be found: they are written as they are.
#[derive(Debug, Serialize)]
pub(crate) struct QueryReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) sql: String,
    #[serde(skip)]
    pub(crate) heap: Arc<Heap>,
    #[serde(skip)]
    pub(crate) limits: Limits,
    #[serde(skip)]
    pub(crate) dump: PathBuf,
}

impl QueryReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.query/1";
}

/// Files with a dump's tables.
#[derive(Debug, Serialize)]
pub(crate) struct ExportReport {
    pub(crate) snapshot: SnapshotInfo,
    pub(crate) files: Vec<ExportedFile>,
}

/// One of them.
#[derive(Debug, Serialize)]
pub(crate) struct ExportedFile {
    pub(crate) table: &'static str,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) path: String,
}
