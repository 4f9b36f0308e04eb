//! `heapdiff.trace-top/1`, `heapdiff.trace-info/1` and `heapdiff.trace-samples/1`: what a trace of a JVM over
//! time shows.

use serde::Serialize;

use super::Condition;

/// What a trace holds.
#[derive(Debug, Serialize)]
pub(crate) struct TraceInfoReport {
    pub(crate) schema: &'static str,
    pub(crate) trace: TraceFile,
    pub(crate) sites: u64,
    pub(crate) runs: Vec<RunRow>,
}

impl TraceInfoReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.trace-info/1";
}

/// The file.
#[derive(Debug, Serialize)]
pub(crate) struct TraceFile {
    pub(crate) path: String,
    /// What is written and not yet part of the file included.
    pub(crate) bytes: u64,
    pub(crate) warnings: Vec<String>,
}

impl TraceFile {
    pub(crate) fn condition(&self) -> Condition<'_> {
        Condition {
            path: &self.path,
            partial: false,
            warnings: &self.warnings,
        }
    }
}

/// A JVM that wrote.
#[derive(Debug, Serialize)]
pub(crate) struct RunInfo {
    /// From 1 on, as `--run` takes it.
    pub(crate) number: u64,
    pub(crate) uid: String,
    pub(crate) pid: u64,
    pub(crate) host: String,
    pub(crate) service: Option<String>,
    pub(crate) jvm: String,
    pub(crate) command: String,
    pub(crate) interval_bytes: u64,
    pub(crate) strategy: String,
    pub(crate) started_ms: u64,
    /// Null: it runs, or was killed.
    pub(crate) ended_ms: Option<u64>,
}

/// A run with what there is of it.
#[derive(Debug, Serialize)]
pub(crate) struct RunRow {
    pub(crate) run: RunInfo,
    pub(crate) flags: String,
    pub(crate) options: String,
    pub(crate) ticks: u64,
    /// Of the last tick.
    pub(crate) uptime_ms: u64,
    pub(crate) collections: Collections,
    pub(crate) samples: u64,
    pub(crate) lost_samples: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) dumps: Vec<DumpRow>,
    pub(crate) notes: Vec<NoteRow>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Collections {
    pub(crate) major: u64,
    pub(crate) all: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct DumpRow {
    pub(crate) time_ms: u64,
    pub(crate) path: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct NoteRow {
    pub(crate) time_ms: u64,
    pub(crate) text: String,
}

/// Candidates for leaks.
#[derive(Debug, Serialize)]
pub(crate) struct TraceTopReport {
    pub(crate) schema: &'static str,
    pub(crate) trace: TraceFile,
    pub(crate) run: RunInfo,
    pub(crate) window: WindowRow,
    /// `site` or `class`.
    pub(crate) by: &'static str,
    /// What is compared: `major`, `collections`, `ticks` or `survivors`.
    pub(crate) basis: &'static str,
    /// How many moments are.
    pub(crate) points: u64,
    pub(crate) collections: Collections,
    pub(crate) totals: TraceTotals,
    pub(crate) candidates: Vec<CandidateRow>,
    pub(crate) notes: Vec<NoteRow>,
    /// Whether text shows every frame, and what does not grow.
    #[serde(skip)]
    pub(crate) verbose: bool,
}

impl TraceTopReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.trace-top/1";
}

/// The part of the run that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct WindowRow {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    pub(crate) from_uptime_ms: u64,
    pub(crate) to_uptime_ms: u64,
    pub(crate) ticks: u64,
}

/// All sites together.
#[derive(Debug, Serialize)]
pub(crate) struct TraceTotals {
    pub(crate) candidates: u64,
    /// Of these, those that grow or seem to.
    pub(crate) growing: u64,
    pub(crate) live_bytes: u64,
    pub(crate) ci95: [u64; 2],
    pub(crate) live_objects: u64,
    pub(crate) live_samples: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) collected_bytes: u64,
    pub(crate) lost_samples: u64,
    pub(crate) lost_bytes: u64,
}

/// A class or a site.
#[derive(Debug, Serialize)]
pub(crate) struct CandidateRow {
    pub(crate) rank: u64,
    pub(crate) verdict: &'static str,
    pub(crate) trend: &'static str,
    pub(crate) class: String,
    pub(crate) sites: u64,
    /// Of a site; of a class, the site with most alive.
    pub(crate) frames: Vec<String>,
    pub(crate) live_bytes: u64,
    pub(crate) ci95: [u64; 2],
    pub(crate) live_objects: u64,
    pub(crate) live_samples: u64,
    pub(crate) growth: Growth,
    pub(crate) slope: SlopeRow,
    /// From the first major collection to the last.
    pub(crate) grew_across_major: Option<bool>,
    /// `None` where what was collected is not known.
    pub(crate) survival_permille: Option<u64>,
    pub(crate) allocated_bytes: u64,
    pub(crate) collected_bytes: u64,
    /// When what stays began to grow; the window's start when it did from there on.
    pub(crate) began_ms: Option<u64>,
    pub(crate) began_uptime_ms: Option<u64>,
    /// Whether it began within the window.
    pub(crate) began_within: Option<bool>,
    pub(crate) series: SeriesRow,
}

/// Single samples.
#[derive(Debug, Serialize)]
pub(crate) struct TraceSamplesReport {
    pub(crate) schema: &'static str,
    pub(crate) trace: TraceFile,
    pub(crate) run: RunInfo,
    /// `live`, `recent` or `chosen`.
    pub(crate) which: &'static str,
    /// `age` or `bytes`.
    pub(crate) by: &'static str,
    /// What `--focus` says.
    pub(crate) focus: Option<String>,
    /// What `--thread` says.
    pub(crate) thread: Option<String>,
    /// The run's last tick, at which the live ones lived.
    pub(crate) at_ms: u64,
    pub(crate) at_uptime_ms: u64,
    pub(crate) totals: SampleTotals,
    pub(crate) samples: Vec<SampleReportRow>,
    /// Whether text shows every frame.
    #[serde(skip)]
    pub(crate) verbose: bool,
}

impl TraceSamplesReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.trace-samples/1";
}

/// All samples that are asked for, those left out of the list included.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SampleTotals {
    pub(crate) samples: u64,
    /// Of the objects, not what they stand for.
    pub(crate) bytes: u64,
}

/// A sample.
#[derive(Debug, Serialize)]
pub(crate) struct SampleReportRow {
    pub(crate) uid: u64,
    pub(crate) class: String,
    pub(crate) bytes: u64,
    /// Null: not known.
    pub(crate) thread: Option<String>,
    pub(crate) allocated_ms: u64,
    pub(crate) allocated_uptime_ms: u64,
    /// Null while it lives.
    pub(crate) collected_ms: Option<u64>,
    pub(crate) collected_uptime_ms: Option<u64>,
    /// From its allocation until it was found to be collected, or until the last tick.
    pub(crate) age_ms: u64,
    pub(crate) frames: Vec<String>,
}

use heapdiff_diff::HistoryGrowth as Growth;
pub(crate) use heapdiff_diff::{HistorySeries as SeriesRow, HistorySlope as SlopeRow};
