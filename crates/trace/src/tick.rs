//! The input of a trace writer: a run, and its ticks (the data of one period each).

use std::time::Duration;

use crate::counted::Counting;

/// Maximum time from the request for a dump to the end of the GC before the dump, excluding the GC's pause. The JVM may
/// be busy when it receives the request. Also, two processes read the clock: the requesting process and the JVM.
pub(crate) const APART_MS: i64 = 5000;

/// The data of a JVM, stored as a row of the table `run`.
#[derive(Clone, Debug, Default)]
#[allow(
    missing_docs,
    reason = "the fields are named after the columns of the table"
)]
pub struct NewRun {
    pub uid: String,
    pub pid: u32,
    pub host: String,
    pub service: Option<String>,
    pub started_ms: i64,
    pub jvm: String,
    pub command: String,
    pub flags: String,
    pub options: String,
    pub interval_bytes: u64,
    pub strategy: String,
    /// Maximum size of the heap in bytes, if known.
    pub heap_limit: Option<u64>,
    /// Memory limit of the process's container in bytes, if it has one.
    pub container_limit: Option<u64>,
}

/// Limits of the data that a trace keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum age of data.
    pub retain: Duration,
    /// Maximum size of the file in bytes; the oldest data is deleted first. The write-ahead log beside the file has a
    /// separate limit.
    pub max_bytes: u64,
}

impl Default for Limits {
    /// Returns the default limits: a week and 256 MiB.
    fn default() -> Self {
        Self {
            retain: Duration::from_secs(7 * 24 * 3600),
            max_bytes: 256 << 20,
        }
    }
}

/// A number of samples, and the objects and bytes that they represent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EstimatedAmount {
    /// Number of samples.
    pub samples: u64,
    /// Estimated objects.
    pub objects: f64,
    /// Estimated bytes.
    pub bytes: f64,
}

/// Amounts allocated and found dead at a site in one period, and the site's live amount at the end of the period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// The class's number, to look up in [`crate::Names`].
    pub class: u32,
    /// The stack's number, to look up in [`crate::Names`]; 0 for none.
    pub stack: u32,
    /// Amount allocated in the recorded period.
    pub allocated: EstimatedAmount,
    /// Amount of the objects that were found dead in the recorded period.
    pub collected: EstimatedAmount,
    /// Live amount at the end of the recorded period.
    pub live: EstimatedAmount,
    /// Variance of `live.bytes`.
    pub live_variance: f64,
}

/// A garbage collection, stored as a row of the table `collection`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(
    missing_docs,
    reason = "the fields are named after the columns of the table"
)]
pub struct NewCollection {
    pub time_ms: i64,
    pub uptime_ms: i64,
    pub collector: String,
    pub major: bool,
    pub cause: String,
    pub pause_us: u64,
    pub before_bytes: u64,
    pub after_bytes: u64,
}

/// Number of classes with the same name that were loaded and unloaded in one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields are named after the columns of the table"
)]
pub struct ClassChange {
    /// The class's number, to look up in [`crate::Names`].
    pub class: u32,
    pub loaded: u64,
    pub unloaded: u64,
}

/// Exact number of allocations of a class in one period, or since the run began (see `Writer::tick`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the fields are named after the columns of the table"
)]
pub struct ClassTotal {
    /// The class's number, to look up in [`crate::Names`].
    pub class: u32,
    pub objects: u64,
    pub bytes: u64,
}

/// The data of one period. It is stored as a row of the table `tick` and rows of other tables that refer to it.
#[derive(Clone, Debug, Default)]
#[allow(
    missing_docs,
    reason = "the fields are named after the columns of the table"
)]
pub struct NewTick {
    pub time_ms: i64,
    pub uptime_ms: i64,
    pub span_ms: i64,
    pub heap_used: u64,
    pub heap_committed: u64,
    pub metaspace_used: u64,
    pub metaspace_committed: u64,
    pub loaded_classes: u64,
    pub samples: u64,
    pub lost_samples: u64,
    pub lost_bytes: u64,
    pub newest_collected_ms: Option<i64>,
    pub sites: Vec<Activity>,
    pub classes: Vec<ClassChange>,
    /// Exact counts by class; empty unless the agent counts them.
    pub class_totals: Vec<ClassTotal>,
    /// Exact counts by line of code, if the agent counts them and has read its counters.
    pub counting: Option<Counting>,
    pub collections: Vec<NewCollection>,
    /// The heap dumps of the period. Each has the time and uptime of the GC before the dump, and the dump's path if it
    /// is known.
    pub dumps: Vec<(i64, i64, Option<String>)>,
    pub notes: Vec<String>,
}

/// The result of writing the data of one period to a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The data was written to the trace file.
    Done,
    /// Nothing was written, because another process uses the file. The caller's function that returns the data was not
    /// called. The caller keeps its data, so that its next write covers a longer period.
    Busy,
}
