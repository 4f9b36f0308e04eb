//! The reports of all commands. A report is a struct of `heapdiff_model`. If the output of a report has options, they
//! are stored with the report in a view.

use heapdiff_model::ages::TraceAgesReport;
use heapdiff_model::count::CountReport;
use heapdiff_model::diff;
use heapdiff_model::export::ExportReport;
use heapdiff_model::find::FindReport;
use heapdiff_model::histo::HistoReport;
use heapdiff_model::owners::OwnersReport;
use heapdiff_model::paths::PathsReport;
use heapdiff_model::recording::RecordingReport;
use heapdiff_model::show::ShowReport;
use heapdiff_model::sites::{AllocatedReport, SitesReport};
use heapdiff_model::sizeof::SizeofReport;
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_model::threads::ThreadsReport;
use heapdiff_model::top::TopReport;
use heapdiff_model::trace::{FlameReport, TraceInfoReport, TraceSamplesReport, TraceTopReport};
use heapdiff_model::waste::WasteReport;
use serde::Serialize;

use crate::rows::PendingQuery;
use crate::view::{
    DiffReport, DumpReport, FlameView, OwnersView, RecordingView, SitesView, SizeofView,
    TraceTopView, Viewed, WasteView,
};

/// One report.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Report {
    /// Growth between dumps.
    Diff(Box<DiffReport>),
    /// The largest holders in one dump.
    Heap(Box<DumpReport>),
    /// Strings and arrays with a given content.
    Find(FindReport),
    /// Objects and bytes of each class.
    Histo(HistoReport),
    /// The objects that retain the most.
    Top(TopReport),
    /// Objects with their fields, content and referrers.
    Show(Viewed<ShowReport>),
    /// Paths from GC roots.
    Paths(Viewed<PathsReport>),
    /// Threads and the objects that they hold.
    Threads(ThreadsReport),
    /// Live bytes by allocation stack.
    Sites(Box<Viewed<SitesReport, SitesView>>),
    /// All allocations, of live and dead objects, by stack or class.
    Allocated(Box<Viewed<AllocatedReport>>),
    /// The objects and samples of a flight recording, grouped by allocation stack.
    Recording(Box<Viewed<RecordingReport, RecordingView>>),
    /// Sizes of objects.
    Sizeof(Box<Viewed<SizeofReport, SizeofView>>),
    /// Memory by owner.
    Owners(Box<Viewed<OwnersReport, OwnersView>>),
    /// Wasted memory.
    Waste(Box<Viewed<WasteReport, WasteView>>),
    /// Counted allocations of a running JVM.
    Count(CountReport),
    /// Rows of a query.
    Query(Box<PendingQuery>),
    /// Files with the tables of a dump.
    Export(ExportReport),
    /// The content of a trace.
    TraceInfo(TraceInfoReport),
    /// Possible leaks in a trace.
    TraceTop(Box<Viewed<TraceTopReport, TraceTopView>>),
    /// All stacks of a trace.
    Flame(Box<Viewed<FlameReport, FlameView>>),
    /// Ages of a trace's samples.
    TraceAges(Viewed<TraceAgesReport>),
    /// Single samples of a trace.
    TraceSamples(Viewed<TraceSamplesReport>),
}

/// The state of an input about which the user is warned: whether the input is damaged or incomplete.
#[derive(Debug)]
pub struct Condition<'a> {
    /// Path of the input as the user gave it.
    pub path: &'a str,
    /// True if the dump is damaged, so that some of its content is missing in the figures.
    pub partial: bool,
    /// True if the dump is complete, but lacks GC roots.
    pub lacks_roots: bool,
    /// Warnings about damaged or missing parts.
    pub warnings: &'a [String],
}

impl Report {
    /// Returns the state of each input.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition<'_>> {
        match self {
            Self::Diff(r) => r.data.snapshots.iter().map(compared).collect(),
            Self::Heap(r) => vec![compared(&r.data.snapshot)],
            Self::Find(r) => vec![of_dump(&r.snapshot)],
            Self::Histo(r) => vec![of_dump(&r.snapshot)],
            Self::Top(r) => vec![of_dump(&r.snapshot)],
            Self::Show(r) => vec![of_dump(&r.snapshot)],
            Self::Paths(r) => vec![of_dump(&r.snapshot)],
            Self::Threads(r) => vec![of_dump(&r.snapshot)],
            Self::Sites(r) => vec![of_dump(&r.snapshot)],
            Self::Allocated(r) => vec![of_dump(&r.snapshot)],
            Self::Recording(r) => {
                let info = &r.recording;
                vec![other_condition(&info.path, info.partial, &info.warnings)]
            }
            Self::Sizeof(r) => vec![of_dump(&r.snapshot)],
            Self::Owners(r) => r.snapshots.iter().map(of_dump).collect(),
            Self::Waste(r) => r.snapshots.iter().map(of_dump).collect(),
            Self::Count(r) => vec![other_condition(&r.process, false, &[])],
            Self::Query(r) => vec![of_dump(&r.head.snapshot)],
            Self::Export(r) => vec![of_dump(&r.snapshot)],
            Self::TraceInfo(r) => vec![other_condition(&r.trace.path, false, &r.trace.warnings)],
            Self::TraceTop(r) => vec![other_condition(&r.trace.path, false, &r.trace.warnings)],
            Self::Flame(r) => vec![other_condition(&r.path, false, &r.warnings)],
            Self::TraceAges(r) => vec![other_condition(&r.trace.path, false, &r.trace.warnings)],
            Self::TraceSamples(r) => vec![other_condition(&r.trace.path, false, &r.trace.warnings)],
        }
    }
}

/// Returns the state of one dump of a comparison.
fn compared(snapshot: &diff::SnapshotInfo) -> Condition<'_> {
    Condition {
        path: &snapshot.path,
        partial: snapshot.partial,
        lacks_roots: snapshot.assumed_roots.is_some(),
        warnings: &snapshot.warnings,
    }
}

/// Returns the state of a single dump.
fn of_dump(snapshot: &SnapshotInfo) -> Condition<'_> {
    Condition {
        path: &snapshot.path,
        partial: snapshot.partial,
        lacks_roots: snapshot.assumed_roots.is_some(),
        warnings: &snapshot.warnings,
    }
}

/// Returns the state of an input that is not a dump, such as another file or a process.
const fn other_condition<'a>(
    path: &'a str,
    partial: bool,
    warnings: &'a [String],
) -> Condition<'a> {
    Condition {
        path,
        partial,
        lacks_roots: false,
        warnings,
    }
}

/// Returns the last figure minus the first; 0 if there are no figures.
#[must_use]
pub fn growth(figures: &[u64]) -> i64 {
    match (figures.first(), figures.last()) {
        (Some(&first), Some(&last)) => last.wrapping_sub(first) as i64,
        _ => 0,
    }
}
