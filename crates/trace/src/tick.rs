//! What a writer puts into a trace: a run, and what is known of each of its ticks.

use std::time::Duration;

use crate::counted::Counting;

/// How far from its request, besides the pause, a dump's collection is: the JVM may be busy, and clocks are read
/// one after the other.
pub(crate) const APART_MS: i64 = 5000;

/// A JVM: a row of the table `run`.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "named after the columns")]
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
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What is older goes.
    pub retain: Duration,
    /// The most bytes of the file; the oldest goes first. The write-ahead log beside it has a limit of its own.
    pub max_bytes: u64,
}

impl Default for Limits {
    /// A week, 256 MiB.
    fn default() -> Self {
        Self {
            retain: Duration::from_secs(7 * 24 * 3600),
            max_bytes: 256 << 20,
        }
    }
}

/// Samples and what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EstimatedAmount {
    /// Samples.
    pub samples: u64,
    /// Estimated objects.
    pub objects: f64,
    /// Estimated bytes.
    pub bytes: f64,
}

/// What happened at a site since the last tick, and what is live there now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// The class's number, for [`crate::Names`].
    pub class: u32,
    /// The stack's number, for [`crate::Names`]; 0: none.
    pub stack: u32,
    /// Since the last tick.
    pub allocated: EstimatedAmount,
    /// Since the last tick.
    pub collected: EstimatedAmount,
    /// At the end of this one.
    pub live: EstimatedAmount,
    /// Of `live.bytes`.
    pub live_variance: f64,
}

/// A collection: a row of the table `collection`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "named after the columns")]
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

/// Classes of one name, loaded and unloaded since the last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the columns")]
pub struct ClassChange {
    /// The class's number, for [`crate::Names`].
    pub class: u32,
    pub loaded: u64,
    pub unloaded: u64,
}

/// Allocations of a class since the last tick, each one counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the columns")]
pub struct ClassTotal {
    /// The class's number, for [`crate::Names`].
    pub class: u32,
    pub objects: u64,
    pub bytes: u64,
}

/// What is known of a period: a row of the table `tick`, and rows of the tables that refer to it.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "named after the columns")]
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
    /// Where the agent counts classes.
    pub class_totals: Vec<ClassTotal>,
    /// Where the agent counts lines of code, and has read its counters.
    pub counting: Option<Counting>,
    pub collections: Vec<NewCollection>,
    /// Times and uptimes of heap dumps, those of their collections, and their files where these are known.
    pub dumps: Vec<(i64, i64, Option<String>)>,
    pub notes: Vec<String>,
}

/// What became of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is in the file.
    Done,
    /// Somebody else holds the file. Nothing was asked of the caller: it keeps what it has and
    /// makes a longer tick of it the next time.
    Busy,
}
