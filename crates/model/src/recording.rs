//! `heapdiff.recording/1`: a flight recording by allocation stack or class.

use schemars::JsonSchema;
use serde::Serialize;

use crate::words::EVENTS;

/// The report of `heapdiff sites --format json` on a flight recording: live or allocated bytes, by stack or class.
/// Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RecordingReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The file and its content.
    pub recording: RecordingInfo,
    /// The event whose samples the figures are based on. Samples of jdk.ObjectAllocationInNewTLAB and
    /// jdk.ObjectAllocationOutsideTLAB are added up.
    #[schemars(extend("enum" = EVENTS))]
    pub event: &'static str,
    /// Meaning of the figures. `sampled`: the objects in the JVM's list of old objects that were alive at its last
    /// dump; their figures are not extrapolated. `live`: an estimate of live objects. `allocated`: an estimate of
    /// allocated objects, dead or alive.
    #[schemars(extend("enum" = ["sampled", "live", "allocated"]))]
    pub measure: &'static str,
    /// Kind of the rows: stacks (the default), or classes with --by class. Reports of earlier versions lack the
    /// key.
    #[schemars(extend("enum" = ["stack", "class"], "optional" = true))]
    pub by: &'static str,
    /// The regular expression of --focus; null without it.
    pub focus: Option<String>,
    /// Totals of all matching stacks, listed or not.
    pub totals: RecordedTotals,
    /// Stacks, the most bytes first (with `sampled`, the most samples). All of them unless --top limits them;
    /// empty with --by class.
    pub stacks: Vec<RecordedStack>,
    /// With --by class: classes, the most bytes first (with `sampled`, the most samples). All of them unless
    /// --top limits them; otherwise empty. Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub classes: Vec<RecordedClass>,
}

/// The file and its content.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RecordingInfo {
    /// Path of the recording as given on the command line.
    pub path: String,
    /// Size of the file on disk in bytes. For a compressed file, this is the compressed size.
    pub bytes: u64,
    /// Name and version of the JVM; null if the recording does not have them.
    pub jvm: Option<String>,
    /// The JVM's process id.
    pub pid: Option<u64>,
    /// When the recording began, in milliseconds since 1970, UTC.
    pub from_ms: u64,
    /// When the recording ended, in milliseconds since 1970, UTC.
    pub to_ms: u64,
    /// Number of chunks that were read.
    pub chunks: u64,
    /// Number of recorded GCs.
    pub collections: u64,
    /// Mean bytes between samples of async-profiler; null for other recordings.
    pub interval_bytes: Option<u64>,
    /// The kinds of events that sample objects, each with the number of its events.
    pub events: Vec<EventRow>,
    /// True if the figures lack some of the recording because of damage.
    pub partial: bool,
    /// Damage and missing data of the recording, one sentence each.
    pub warnings: Vec<String>,
}

/// A kind of event and the number of its events.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct EventRow {
    /// The event's name.
    #[schemars(extend("enum" = EVENTS))]
    pub name: &'static str,
    /// Number of these events.
    pub count: u64,
}

/// Totals of all stacks, listed or not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RecordedTotals {
    /// Number of pairs of stack and class.
    pub stacks: u64,
    /// Number of samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate; null if nothing is estimated (measure `sampled`).
    pub ci95: Option<[u64; 2]>,
}

/// Objects of one class that one stack allocated.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RecordedStack {
    /// Frames, the leaf first. A frame has the form com.acme.Foo.add(line 42), because recordings contain no names of
    /// source files. Empty if there is no stack; `...` at the end if the stack was cut off.
    pub frames: Vec<String>,
    /// The allocated class.
    pub class: String,
    /// Number of samples.
    pub samples: u64,
    /// Estimated bytes of the objects that the samples represent. If the measure is `sampled`, bytes of the sampled
    /// objects alone.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate; null if nothing is estimated (measure `sampled`).
    pub ci95: Option<[u64; 2]>,
    /// Estimated number of objects. Null with `sampled`, and if the event does not record object sizes.
    pub estimated_objects: Option<u64>,
    /// When the first of the samples was allocated, in milliseconds since the recording began.
    pub first_ms: u64,
    /// When the last of the samples was allocated, in milliseconds since the recording began.
    pub last_ms: u64,
    /// Names of the threads that allocated, the most samples first, at most 8.
    #[schemars(extend("maxItems" = 8))]
    pub threads: Vec<String>,
}

/// Recorded objects of one class.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RecordedClass {
    /// The allocated class.
    pub class: String,
    /// Number of samples.
    pub samples: u64,
    /// Estimated bytes; with `sampled`, bytes of the samples themselves.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate; null if nothing is estimated (measure `sampled`).
    pub ci95: Option<[u64; 2]>,
    /// Estimated number of objects. Null with `sampled`, and if the event does not record object sizes.
    pub estimated_objects: Option<u64>,
}

impl RecordingReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.recording/1";
}
