//! `heapdiff.query/1`: the rows of a SELECT.

use serde::Serialize;

use crate::snapshot::SnapshotInfo;

/// The keys of a query's report before its rows.
#[derive(Debug, Serialize)]
pub struct QueryHead {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump; the first of several.
    pub snapshot: SnapshotInfo,
    /// The dumps that have names, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dumps: Vec<QueriedDump>,
    /// The statement.
    pub sql: String,
}

/// A dump with its name in the statement.
#[derive(Debug, Serialize)]
pub struct QueriedDump {
    /// The name.
    pub name: String,
    /// The dump.
    pub snapshot: SnapshotInfo,
}

impl QueryHead {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.query/1";
}
