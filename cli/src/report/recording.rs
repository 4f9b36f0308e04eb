//! `heapdiff.recording/1`: a flight recording by allocation stack.

use heapdiff_diff::Allocated;
use regex::Regex;
use serde::Serialize;

use super::Condition;

/// The allocation sites of a flight recording.
#[derive(Debug, Serialize)]
pub(crate) struct RecordingReport {
    pub(crate) schema: &'static str,
    pub(crate) recording: RecordingInfo,
    /// The event whose samples these are.
    pub(crate) event: &'static str,
    /// What figures are of: `sampled` (the samples themselves, alive at the end), `live` or `allocated`.
    pub(crate) measure: &'static str,
    /// What `--focus` says.
    pub(crate) focus: Option<String>,
    pub(crate) totals: RecordedTotals,
    pub(crate) stacks: Vec<RecordedStack>,
    /// Whether text shows every frame.
    #[serde(skip)]
    pub(crate) verbose: bool,
    /// All stacks, where the format shows them.
    #[serde(skip)]
    pub(crate) allocated: Option<Allocated>,
    /// As `focus`, to match with.
    #[serde(skip)]
    pub(crate) only: Option<Regex>,
}

/// The file, and what it holds.
#[derive(Debug, Serialize)]
pub(crate) struct RecordingInfo {
    pub(crate) path: String,
    /// The file's size on disk.
    pub(crate) bytes: u64,
    pub(crate) jvm: Option<String>,
    pub(crate) pid: Option<u64>,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    pub(crate) chunks: u64,
    pub(crate) collections: u64,
    /// Mean bytes between samples, where these were drawn so.
    pub(crate) interval_bytes: Option<u64>,
    /// How many there are of each event that tells of objects.
    pub(crate) events: Vec<EventRow>,
    pub(crate) partial: bool,
    pub(crate) warnings: Vec<String>,
}

/// An event and how often it is there.
#[derive(Debug, Serialize)]
pub(crate) struct EventRow {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
}

/// All stacks together, those left out of the list included.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedTotals {
    pub(crate) stacks: u64,
    pub(crate) samples: u64,
    pub(crate) estimated_bytes: u64,
    /// `None` where nothing is estimated.
    pub(crate) ci95: Option<[u64; 2]>,
}

/// What one stack allocated of one class.
#[derive(Debug, Serialize)]
pub(crate) struct RecordedStack {
    pub(crate) frames: Vec<String>,
    pub(crate) class: String,
    pub(crate) samples: u64,
    pub(crate) estimated_bytes: u64,
    pub(crate) ci95: Option<[u64; 2]>,
    /// `None` where the event does not tell.
    pub(crate) estimated_objects: Option<u64>,
    /// When the first and the last of the samples were allocated, since the recording began.
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    pub(crate) threads: Vec<String>,
}

impl RecordingReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.recording/1";

    pub(crate) fn condition(&self) -> Condition<'_> {
        Condition {
            path: &self.recording.path,
            partial: self.recording.partial,
            warnings: &self.recording.warnings,
        }
    }
}
