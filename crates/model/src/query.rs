//! `heapdiff.query/1`: the rows of a SELECT.

use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::SnapshotInfo;

/// The keys of a query's report before its rows.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct QueryHead {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump. If there are several, the first one.
    pub snapshot: SnapshotInfo,
    /// All dumps, with the names by which the statement refers to them. Left out if the dumps have no names. `snapshot`
    /// is the first dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dumps: Vec<QueriedDump>,
    /// The statement that the user gave.
    pub sql: String,
}

/// The report of `heapdiff query --format json`: the rows of one SELECT. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct QueryReport {
    /// The keys before the rows.
    #[serde(flatten)]
    pub head: QueryHead,
    /// The columns, in the order of the values of a row.
    pub columns: Vec<QueryColumn>,
    /// One array for each row, with a value for each column. At most 10,000 rows unless --max-rows sets another limit.
    pub rows: Vec<Vec<QueryValue>>,
    /// Number of rows.
    pub row_count: u64,
    /// True if there are more rows than the limit.
    pub more_rows: bool,
}

/// A column of a query's rows.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct QueryColumn {
    /// Name of the column.
    pub name: String,
    /// The type of a table's column; null for a computed column.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["id", "integer", "double", "text", "boolean", null]))]
    pub kind: Option<&'static str>,
}

/// A value of a row. Ids are strings such as 0x7f0012345678.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum QueryValue {
    /// A string or an id.
    Text(String),
    /// A number.
    Number(f64),
    /// A boolean.
    Bool(bool),
    /// No value.
    Null,
}

/// A dump with the name by which the statement refers to it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct QueriedDump {
    /// Name of the dump in the statement.
    pub name: String,
    /// The dump.
    pub snapshot: SnapshotInfo,
}

impl QueryHead {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.query/1";
}
