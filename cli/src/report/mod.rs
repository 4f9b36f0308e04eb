//! What the commands report, as data: the JSON formats are these structs, and every renderer reads
//! them. Keys keep the order of the fields.

mod histo;
mod paths;
mod query;
mod recording;
mod show;
mod sites;
mod sizeof;
mod snapshot;
mod threads;
mod top;
mod trace;
mod waste;

use heapdiff_diff::Gates;
use heapdiff_report::collapsed::Columns;
use regex::Regex;
use serde::Serialize;

pub(crate) use histo::{ClassRow, HistoReport, HistoTotals};
pub(crate) use paths::{Hidden, PathLine, PathsReport};
pub(crate) use query::{ExportReport, ExportedFile, QueryReport};
pub(crate) use recording::{
    EventRow, RecordedStack, RecordedTotals, RecordingInfo, RecordingReport,
};
pub(crate) use show::{
    ObjectRef, SelectedTotals, ShowReport, ShownArray, ShownContents, ShownEntry, ShownField,
    ShownObject, ShownReferrer, ShownValue,
};
pub(crate) use sites::{
    AgentReport, CollectedReport, CostReport, CounterRow, SiteTotals, SitesReport,
};
pub(crate) use sizeof::{
    SizeofClass, SizeofFinals, SizeofFlyweights, SizeofLine, SizeofObject, SizeofOptions,
    SizeofReport, SizeofSet,
};
pub(crate) use snapshot::SnapshotInfo;
pub(crate) use threads::{FrameRow, LocalRow, Locals, ThreadRow, ThreadTotals, ThreadsReport};
pub(crate) use top::{TopObject, TopReport, Under};
pub(crate) use trace::{
    CandidateRow, Collections, DumpRow, NoteRow, RunInfo, RunRow, SampleReportRow, SampleTotals,
    SeriesRow, SlopeRow, TraceFile, TraceInfoReport, TraceSamplesReport, TraceTopReport,
    TraceTotals, WindowRow,
};
pub(crate) use waste::WasteReport;

/// One report.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Report {
    Diff(Box<DiffReport>),
    Histo(HistoReport),
    Top(TopReport),
    Show(ShowReport),
    Paths(PathsReport),
    Threads(ThreadsReport),
    Sites(Box<SitesReport>),
    Recording(Box<RecordingReport>),
    Sizeof(Box<SizeofReport>),
    Waste(Box<WasteReport>),
    Query(Box<QueryReport>),
    Export(ExportReport),
    TraceInfo(TraceInfoReport),
    TraceTop(Box<TraceTopReport>),
    TraceSamples(TraceSamplesReport),
}

/// A diff, with what it leaves out.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct DiffReport {
    pub(crate) diff: heapdiff_diff::Report,
    /// Suspects that are not listed: all of them for gates, else at most one.
    #[serde(skip)]
    pub(crate) more_suspects: Vec<heapdiff_diff::Suspect>,
    /// Classes that changed and are not listed.
    #[serde(skip)]
    pub(crate) more_classes: usize,
    /// Whether text shows every frame.
    #[serde(skip)]
    pub(crate) verbose: bool,
    /// Suspects that are known growth, with the rule that says so.
    #[serde(skip)]
    pub(crate) known: Vec<(heapdiff_diff::Suspect, String)>,
    /// Rules of known growth that fit nothing.
    #[serde(skip)]
    pub(crate) unused_rules: Vec<String>,
    /// Why a trace that was given tells nothing.
    #[serde(skip)]
    pub(crate) strange_trace: Option<String>,
    /// All stacks, where the format shows them and the dumps name them.
    #[serde(skip)]
    pub(crate) allocated: Option<heapdiff_diff::Allocated>,
    /// Where stacks begin.
    #[serde(skip)]
    pub(crate) focus: Option<Regex>,
    /// The figures of collapsed stacks.
    #[serde(skip)]
    pub(crate) columns: Columns,
    /// Gates that were asked for.
    #[serde(skip)]
    pub(crate) gates: Gates,
}

/// A dump's part in a report that whoever ran the command has to hear of.
#[derive(Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) path: &'a str,
    pub(crate) partial: bool,
    pub(crate) warnings: &'a [String],
}

impl Report {
    /// The state of each dump that was read.
    pub(crate) fn conditions(&self) -> Vec<Condition<'_>> {
        match self {
            Self::Diff(r) => r.diff.snapshots.iter().map(condition).collect(),
            Self::Histo(r) => vec![r.snapshot.condition()],
            Self::Top(r) => vec![r.snapshot.condition()],
            Self::Show(r) => vec![r.snapshot.condition()],
            Self::Paths(r) => vec![r.snapshot.condition()],
            Self::Threads(r) => vec![r.snapshot.condition()],
            Self::Sites(r) => vec![r.snapshot.condition()],
            Self::Recording(r) => vec![r.condition()],
            Self::Sizeof(r) => vec![r.snapshot.condition()],
            Self::Waste(r) => r.snapshots.iter().map(SnapshotInfo::condition).collect(),
            Self::Query(r) => vec![r.snapshot.condition()],
            Self::Export(r) => vec![r.snapshot.condition()],
            Self::TraceInfo(r) => vec![r.trace.condition()],
            Self::TraceTop(r) => vec![r.trace.condition()],
            Self::TraceSamples(r) => vec![r.trace.condition()],
        }
    }
}

fn condition(snapshot: &heapdiff_diff::SnapshotInfo) -> Condition<'_> {
    Condition {
        path: &snapshot.path,
        partial: snapshot.partial,
        warnings: &snapshot.warnings,
    }
}
