//! `heapdiff.trace-ages/1`: how many GCs objects survive, and how long they live.

use schemars::JsonSchema;
use serde::Serialize;

use crate::trace::{Collections, RunInfo, TraceFile};

/// The report of `heapdiff trace ages --format json`: how many GCs the objects of each allocation site survive. Later
/// versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TraceAgesReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The file.
    pub trace: TraceFile,
    /// The run.
    pub run: RunInfo,
    /// Kind of the rows: application frames that allocate (frame, the default), stacks (site), or classes (class).
    #[schemars(extend("enum" = ["frame", "site", "class"]))]
    pub by: &'static str,
    /// Order of the rows. generations: rows whose live objects have the largest number of different ages come first.
    /// temporary: rows with the most temporary bytes come first.
    #[schemars(extend("enum" = ["generations", "temporary"]))]
    pub sort: &'static str,
    /// The regular expression of --focus; null without it.
    pub focus: Option<String>,
    /// Number of GCs of the run that are recorded in the trace.
    pub collections: Collections,
    /// True if only full GCs find dead samples, as in generational ZGC. Then the figures of freed objects are upper
    /// bounds.
    pub freed_by_full_gcs_only: bool,
    /// Number of live samples of all rows, listed or not.
    pub live_samples: u64,
    /// Number of randomly chosen freed samples of all rows, listed or not.
    pub freed_samples: u64,
    /// Number of rows, listed or not.
    pub sites: u64,
    /// Rows; at most 100 unless --top sets another limit.
    pub rows: Vec<AgeRow>,
}

impl TraceAgesReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.trace-ages/1";
}

/// Ages of the objects that one frame, stack or class allocated.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AgeRow {
    /// Rank of the row.
    pub rank: u64,
    /// The allocated class.
    pub class: String,
    /// The innermost application frame if the rows are frames; null otherwise.
    pub frame: Option<String>,
    /// The stack, the leaf first. If the row has several stacks, this is the stack with the most samples.
    pub frames: Vec<String>,
    /// Number of allocation sites of the row.
    pub sites: u64,
    /// Estimated bytes that were allocated in the run.
    pub allocated_bytes: u64,
    /// Estimated live bytes at the end of the run.
    pub live_bytes: u64,
    /// Estimated bytes that GCs freed in the run.
    pub freed_bytes: u64,
    /// Estimated bytes that the first GC after their allocation freed. Null if the random selection of freed samples
    /// has none of this row.
    pub temporary_bytes: Option<u64>,
    /// Ages of the live objects at the end of the run; null if the row has no live sample.
    pub live: Option<Ages>,
    /// Ages that the freed objects reached. Null if the random selection of freed samples has none of this row.
    pub freed: Option<Ages>,
    /// Distribution of the ages that the freed objects reached; empty if the random selection of freed samples has none
    /// of this row.
    pub survived: Vec<SurvivedRow>,
}

/// Ages of some objects. Medians and percentiles are weighted by bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ages {
    /// Number of samples.
    pub samples: u64,
    /// Number of different ages, counted in GCs of any kind. It is at most the number of samples.
    pub generations: u64,
    /// Median of the GCs that the objects survived.
    pub median_gcs: Collections,
    /// GCs that the oldest object survived.
    pub most_gcs: Collections,
    /// Median of the ages in milliseconds.
    pub median_ms: u64,
    /// 95th percentile of the ages in milliseconds.
    pub p95_ms: u64,
    /// The largest age in milliseconds.
    pub most_ms: u64,
}

/// A part of the freed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SurvivedRow {
    /// Minimum number of GCs that the objects survived.
    pub from_gcs: u64,
    /// Maximum number of GCs that the objects survived; null without a maximum.
    pub to_gcs: Option<u64>,
    /// Share of the row's freed bytes, in thousandths.
    pub permille: u64,
}
