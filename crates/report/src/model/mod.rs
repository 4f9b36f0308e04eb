//! What the commands report, as data: the JSON formats are these structs, and every renderer reads
//! them. Keys keep the order of the fields.

mod count;
mod flame;
mod heap;
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
use regex::Regex;
use serde::Serialize;

use crate::collapsed::Columns;
use crate::junit::Gate;

pub use count::{
    CountMissed, CountReport, CountSite, CountTotals, CountedInDump, CountedMissed,
    LineDisagreement,
};
pub use flame::{FlameReport, Graph};
pub use heap::HeapReport;
pub use histo::{ClassRow, HistoReport, HistoTotals};
pub use paths::{Hidden, PathLine, PathsReport};
pub use query::{ExportReport, ExportedFile, QueriedDump, QueryReport};
pub use recording::{
    EventRow, RecordedClass, RecordedStack, RecordedTotals, RecordingInfo, RecordingReport,
};
pub use show::{
    ObjectRef, SelectedTotals, ShowReport, ShownArray, ShownContents, ShownEntry, ShownField,
    ShownObject, ShownReferrer, ShownValue, ThreadLocalValues,
};
pub use sites::{
    AgentReport, AllocatedReport, AllocatedStackRow, AllocatedTotals, CollectedReport, CostReport,
    CountRow, CountedClassRow, CounterRow, LiveClassRow, SiteTotals, SitesReport,
};
pub use sizeof::{
    SizeofClass, SizeofFinals, SizeofFlyweights, SizeofLine, SizeofObject, SizeofOptions,
    SizeofReport, SizeofSet,
};
pub use snapshot::SnapshotInfo;
pub use threads::{FrameRow, LocalRow, Locals, ThreadRow, ThreadTotals, ThreadsReport};
pub use top::{TopObject, TopReport, Under};
pub use trace::{
    CandidateRow, Collections, CountedClasses, CountedLineRow, CountedLines, CountingRow, DumpRow,
    NoteRow, PathRow, PerWorkRow, RunInfo, RunRow, SampleReportRow, SampleTotals, SampledLineRow,
    SeriesRow, SlopeRow, TraceFile, TraceInfoReport, TraceSamplesReport, TraceTopReport,
    TraceTotals, WindowRow,
};
pub use waste::WasteReport;

/// One report.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Report {
    /// What grew between dumps.
    Diff(Box<DiffReport>),
    /// What keeps most of one dump.
    Heap(Box<HeapReport>),
    /// Objects and bytes of each class.
    Histo(HistoReport),
    /// The objects that retain most.
    Top(TopReport),
    /// Objects with what they hold.
    Show(ShowReport),
    /// Paths from GC roots.
    Paths(PathsReport),
    /// Threads and what they hold.
    Threads(ThreadsReport),
    /// Live bytes by allocation stack.
    Sites(Box<SitesReport>),
    /// What was allocated, dead or alive, by stack or class.
    Allocated(Box<AllocatedReport>),
    /// A flight recording by allocation stack.
    Recording(Box<RecordingReport>),
    /// What objects cost.
    Sizeof(Box<SizeofReport>),
    /// Memory that a program could do without.
    Waste(Box<WasteReport>),
    /// Allocations of a running JVM, counted.
    Count(CountReport),
    /// Rows of a query.
    Query(Box<QueryReport>),
    /// Files with the tables of a dump.
    Export(ExportReport),
    /// What a trace holds.
    TraceInfo(TraceInfoReport),
    /// What leaks, by a trace.
    TraceTop(Box<TraceTopReport>),
    /// All stacks of a trace.
    Flame(Box<FlameReport>),
    /// Single samples of a trace.
    TraceSamples(TraceSamplesReport),
}

/// A diff, with what it leaves out.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct DiffReport {
    /// The comparison, as JSON has it.
    pub diff: heapdiff_diff::Report,
    /// Suspects that are not listed: all of them for gates, else at most one.
    #[serde(skip)]
    pub more_suspects: Vec<heapdiff_diff::Suspect>,
    /// Classes that changed and are not listed.
    #[serde(skip)]
    pub more_classes: usize,
    /// Whether text shows every frame.
    #[serde(skip)]
    pub verbose: bool,
    /// Suspects that are known growth, with the rule that says so.
    #[serde(skip)]
    pub known: Vec<(heapdiff_diff::Suspect, String)>,
    /// All stacks, where the format shows them and the dumps name them.
    #[serde(skip)]
    pub allocated: Option<heapdiff_diff::Allocated>,
    /// Where stacks begin.
    #[serde(skip)]
    pub focus: Option<Regex>,
    /// The figures of collapsed stacks.
    #[serde(skip)]
    pub columns: Columns,
    /// Gates that were asked for.
    #[serde(skip)]
    pub gates: Gates,
    /// What became of each of them.
    #[serde(skip)]
    pub outcomes: Vec<Gate>,
    /// Whether gates decide on dumps that cannot be compared.
    #[serde(skip)]
    pub allow_partial: bool,
    /// Labels of each metric.
    #[serde(skip)]
    pub labels: Vec<(String, String)>,
    /// The folder of the repository with the sources.
    #[serde(skip)]
    pub source_root: Option<String>,
}

impl DiffReport {
    /// Why gates that were asked for do not decide: the dumps cannot be compared, and nobody said to compare them all
    /// the same.
    #[must_use]
    pub fn undecided(&self) -> Option<&str> {
        let undecided = self.gates.any() && !self.diff.comparable && !self.allow_partial;
        let why = self.diff.warnings.first().map_or("", |w| w);
        undecided.then_some(why)
    }
}

/// A dump's part in a report that whoever ran the command has to hear of.
#[derive(Debug)]
pub struct Condition<'a> {
    /// The path as given.
    pub path: &'a str,
    /// Whether damage keeps some of the content out of the figures.
    pub partial: bool,
    /// True if the dump is whole and lacks GC roots.
    pub lacks_roots: bool,
    /// What was damaged or missing.
    pub warnings: &'a [String],
}

impl Report {
    /// The state of each dump that was read.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition<'_>> {
        match self {
            Self::Diff(r) => r.diff.snapshots.iter().map(condition).collect(),
            Self::Heap(r) => vec![condition(&r.heap.snapshot)],
            Self::Histo(r) => vec![r.snapshot.condition()],
            Self::Top(r) => vec![r.snapshot.condition()],
            Self::Show(r) => vec![r.snapshot.condition()],
            Self::Paths(r) => vec![r.snapshot.condition()],
            Self::Threads(r) => vec![r.snapshot.condition()],
            Self::Sites(r) => vec![r.snapshot.condition()],
            Self::Allocated(r) => vec![r.snapshot.condition()],
            Self::Recording(r) => vec![r.condition()],
            Self::Sizeof(r) => vec![r.snapshot.condition()],
            Self::Waste(r) => r.snapshots.iter().map(SnapshotInfo::condition).collect(),
            Self::Count(r) => vec![r.condition()],
            Self::Query(r) => vec![r.snapshot.condition()],
            Self::Export(r) => vec![r.snapshot.condition()],
            Self::TraceInfo(r) => vec![r.trace.condition()],
            Self::TraceTop(r) => vec![r.trace.condition()],
            Self::Flame(r) => vec![r.condition()],
            Self::TraceSamples(r) => vec![r.trace.condition()],
        }
    }
}

fn condition(snapshot: &heapdiff_diff::SnapshotInfo) -> Condition<'_> {
    Condition {
        path: &snapshot.path,
        partial: snapshot.partial,
        lacks_roots: snapshot.assumed_roots.is_some(),
        warnings: &snapshot.warnings,
    }
}

/// The last figure less the first.
#[must_use]
pub fn growth(figures: &[u64]) -> i64 {
    match (figures.first(), figures.last()) {
        (Some(&first), Some(&last)) => last.wrapping_sub(first) as i64,
        _ => 0,
    }
}
