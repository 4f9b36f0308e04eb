//! `heapdiff.recording/1`: a flight recording by allocation stack or class.

use serde::Serialize;

/// The allocation sites of a flight recording.
#[derive(Debug, Serialize)]
pub struct RecordingReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The file.
    pub recording: RecordingInfo,
    /// The event whose samples these are.
    pub event: &'static str,
    /// What figures are of: `sampled` (the samples themselves, alive at the end), `live` or `allocated`.
    pub measure: &'static str,
    /// What rows are: `stack` or `class`.
    pub by: &'static str,
    /// What `--focus` says.
    pub focus: Option<String>,
    /// All together, those that are not listed included.
    pub totals: RecordedTotals,
    /// The stacks, most bytes first; none by class.
    pub stacks: Vec<RecordedStack>,
    /// The classes, most bytes first; none by stack.
    pub classes: Vec<RecordedClass>,
}

/// The file, and what it holds.
#[derive(Debug, Serialize)]
pub struct RecordingInfo {
    /// The path as given.
    pub path: String,
    /// The file's size on disk.
    pub bytes: u64,
    /// The JVM's version; `None` where nothing tells it.
    pub jvm: Option<String>,
    /// The JVM's process id.
    pub pid: Option<u64>,
    /// When it begins, milliseconds since 1970.
    pub from_ms: u64,
    /// When it ends, milliseconds since 1970.
    pub to_ms: u64,
    /// Chunks of the recording.
    pub chunks: u64,
    /// Garbage collections.
    pub collections: u64,
    /// Mean bytes between samples, where these were drawn so.
    pub interval_bytes: Option<u64>,
    /// How many there are of each event that tells of objects.
    pub events: Vec<EventRow>,
    /// Whether damage keeps some of the content out of the figures.
    pub partial: bool,
    /// What was damaged or missing.
    pub warnings: Vec<String>,
}

/// An event and how often it is there.
#[derive(Debug, Serialize)]
pub struct EventRow {
    /// The event's name.
    pub name: &'static str,
    /// How often.
    pub count: u64,
}

/// All stacks together, those left out of the list included.
#[derive(Debug, Serialize)]
pub struct RecordedTotals {
    /// Stacks.
    pub stacks: u64,
    /// Samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// `None` where nothing is estimated.
    pub ci95: Option<[u64; 2]>,
}

/// What one stack allocated of one class.
#[derive(Debug, Serialize)]
pub struct RecordedStack {
    /// The frames, the leaf first.
    pub frames: Vec<String>,
    /// The class, as in Java source.
    pub class: String,
    /// Samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// The 95 % interval of the estimated bytes.
    pub ci95: Option<[u64; 2]>,
    /// `None` where the event does not tell.
    pub estimated_objects: Option<u64>,
    /// When the first and the last of the samples were allocated, since the recording began.
    pub first_ms: u64,
    /// The same of the last.
    pub last_ms: u64,
    /// Threads that allocated.
    pub threads: Vec<String>,
}

/// What was recorded of one class.
#[derive(Debug, Serialize)]
pub struct RecordedClass {
    /// The class, as in Java source.
    pub class: String,
    /// Samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// The 95 % interval of the estimated bytes.
    pub ci95: Option<[u64; 2]>,
    /// `None` where the event does not tell.
    pub estimated_objects: Option<u64>,
}

impl RecordingReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.recording/1";
}
