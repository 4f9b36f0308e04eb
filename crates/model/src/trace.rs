//! `heapdiff.trace-top/1`, `heapdiff.trace-info/1` and `heapdiff.trace-samples/1`: what a trace of a JVM over
//! time shows.

use serde::Serialize;

use crate::count::{CountSite, CountTotals, CountedMissed};
use crate::diff::{HistoryGrowth, HistorySeries, HistorySlope};
use crate::sites::{CountRow, CountedClassRow};

/// What a trace holds.
#[derive(Debug, Serialize)]
pub struct TraceInfoReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The file.
    pub trace: TraceFile,
    /// Allocation sites.
    pub sites: u64,
    /// The runs, oldest first.
    pub runs: Vec<RunRow>,
}

impl TraceInfoReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.trace-info/1";
}

/// The file.
#[derive(Debug, Serialize)]
pub struct TraceFile {
    /// The path as given.
    pub path: String,
    /// What is written and not yet part of the file included.
    pub bytes: u64,
    /// What was damaged or missing.
    pub warnings: Vec<String>,
}

/// A JVM that wrote.
#[derive(Debug, Serialize)]
pub struct RunInfo {
    /// From 1 on, as `--run` takes it.
    pub number: u64,
    /// The same in all files of this run.
    pub uid: String,
    /// The JVM's process id.
    pub pid: u64,
    /// The machine.
    pub host: String,
    /// The program's name, where it was given.
    pub service: Option<String>,
    /// The JVM's version.
    pub jvm: String,
    /// The main class or jar, with its arguments.
    pub command: String,
    /// Mean bytes between samples.
    pub interval_bytes: u64,
    /// How samples are drawn; `recording` for a trace that was made of a recording.
    pub strategy: String,
    /// When it began, milliseconds since 1970.
    pub started_ms: u64,
    /// Null: it runs, or was killed.
    pub ended_ms: Option<u64>,
}

/// A run with what there is of it.
#[derive(Debug, Serialize)]
pub struct RunRow {
    /// The run.
    pub run: RunInfo,
    /// The JVM's options.
    pub flags: String,
    /// The agent's options.
    pub options: String,
    /// Ticks: the moments at which the agent wrote.
    pub ticks: u64,
    /// Of the last tick.
    pub uptime_ms: u64,
    /// Garbage collections.
    pub collections: Collections,
    /// Samples.
    pub samples: u64,
    /// Samples that the agent could not keep.
    pub lost_samples: u64,
    /// Bytes, at most, that have no sample because the agent could not keep it.
    pub lost_bytes: u64,
    /// How it counted by line of code (`count=on`); `None` where it did not.
    pub counting: Option<CountingRow>,
    /// Heap dumps that were taken of it.
    pub dumps: Vec<DumpRow>,
    /// Whether the table of live samples was full once: samples were drawn more rarely from there on.
    pub thinned: bool,
    /// What was noted, oldest first.
    pub notes: Vec<NoteRow>,
}

/// How a run counted by line of code.
#[derive(Debug, Serialize)]
pub struct CountingRow {
    /// When it began to, in milliseconds since the run began.
    pub from_uptime_ms: u64,
    /// Up to when all is counted.
    pub to_uptime_ms: u64,
    /// Whether classes of the JDK's are counted, too.
    pub jdk: bool,
    /// Class files that got counters.
    pub classes: u64,
    /// What was not counted.
    pub missed: CountedMissed,
}

/// Garbage collections.
#[derive(Debug, Serialize)]
pub struct Collections {
    /// Major collections.
    pub major: u64,
    /// Collections of any kind.
    pub all: u64,
}

/// A heap dump that was taken while the trace was written.
#[derive(Debug, Serialize)]
pub struct DumpRow {
    /// When it was taken, milliseconds since 1970.
    pub time_ms: u64,
    /// Where it is; `None` where that is not known.
    pub path: Option<String>,
}

/// A note in the trace.
#[derive(Debug, Serialize)]
pub struct NoteRow {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The note.
    pub text: String,
}

/// Candidates for leaks.
#[derive(Debug, Serialize)]
pub struct TraceTopReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The file.
    pub trace: TraceFile,
    /// The run.
    pub run: RunInfo,
    /// The part of the run that was looked at.
    pub window: WindowRow,
    /// `frame`, `class`, `site` for stacks, or `line`: then nothing is ranked by what stays alive.
    pub by: &'static str,
    /// What `--focus` says.
    pub focus: Option<String>,
    /// What is compared: `major`, `collections`, `ticks` or `survivors`.
    pub basis: &'static str,
    /// How many moments are.
    pub points: u64,
    /// What figures of what is alive are of: the window's `end`, or under generational ZGC the last `major`
    /// collection; `unknown`: none was seen there, and garbage is among them.
    pub alive_at: &'static str,
    /// When that major collection ended, since the run began.
    pub alive_at_uptime_ms: Option<u64>,
    /// Figures of what is alive are of what was allocated by then and has outlived that major collection; with none
    /// they are the most that may be alive.
    pub alive_of_uptime_ms: Option<u64>,
    /// Garbage collections.
    pub collections: Collections,
    /// All together, those that are not listed included.
    pub totals: TraceTotals,
    /// The worst first.
    pub candidates: Vec<CandidateRow>,
    /// What the agent counted of each class, where classes of the whole run are ranked and it did so.
    pub counted: Option<CountedClasses>,
    /// What it counted of each line of code, where it did so (`count=on`), in spans that end in the window.
    pub lines: Option<CountedLines>,
    /// What was noted, oldest first.
    pub notes: Vec<NoteRow>,
}

impl TraceTopReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.trace-top/1";
}

/// The part of the run that was looked at.
#[derive(Debug, Serialize)]
pub struct WindowRow {
    /// When it begins, milliseconds since 1970.
    pub from_ms: u64,
    /// When it ends, milliseconds since 1970.
    pub to_ms: u64,
    /// The same since the run began.
    pub from_uptime_ms: u64,
    /// The same since the run began.
    pub to_uptime_ms: u64,
    /// Ticks: the moments at which the agent wrote.
    pub ticks: u64,
}

/// All sites together.
#[derive(Debug, Serialize)]
pub struct TraceTotals {
    /// How many there are.
    pub candidates: u64,
    /// Of these, those that grow or seem to.
    pub growing: u64,
    /// Estimated bytes that are alive.
    pub live_bytes: u64,
    /// The 95 % interval of the estimated bytes.
    pub ci95: [u64; 2],
    /// Estimated objects that are alive.
    pub live_objects: u64,
    /// Samples that are alive.
    pub live_samples: u64,
    /// Estimated bytes that were allocated.
    pub allocated_bytes: u64,
    /// Estimated bytes that were collected.
    pub collected_bytes: u64,
    /// Samples that the agent could not keep.
    pub lost_samples: u64,
    /// Bytes, at most, that have no sample because the agent could not keep it.
    pub lost_bytes: u64,
}

/// A class or a site.
#[derive(Debug, Serialize)]
pub struct CandidateRow {
    /// 1 for the worst.
    pub rank: u64,
    /// What it is taken for.
    pub verdict: &'static str,
    /// How what stays went, as `trend` of a suspect.
    pub trend: &'static str,
    /// The class, as in Java source.
    pub class: String,
    /// Allocation sites.
    pub sites: u64,
    /// The frame of the program that allocates, where frames are ranked.
    pub frame: Option<String>,
    /// Of a site; where several are one candidate, of the stack with most alive.
    pub frames: Vec<String>,
    /// Different stacks of these sites.
    pub stacks: u64,
    /// Where there are several: the stacks with the most live bytes.
    pub paths: Vec<PathRow>,
    /// Estimated bytes that are alive.
    pub live_bytes: u64,
    /// The 95 % interval of the estimated bytes.
    pub ci95: [u64; 2],
    /// Estimated objects that are alive.
    pub live_objects: u64,
    /// Samples that are alive.
    pub live_samples: u64,
    /// Last moment less first.
    pub growth: HistoryGrowth,
    /// Growth an hour.
    pub slope: HistorySlope,
    /// The same by the work done; `None` where that was done evenly, or is not known.
    pub per_work: Option<PerWorkRow>,
    /// From the first major collection to the last.
    pub grew_across_major: Option<bool>,
    /// `None` where what was collected is not known.
    pub survival_permille: Option<u64>,
    /// Estimated bytes that were allocated.
    pub allocated_bytes: u64,
    /// All that was allocated of the class since the agent's start, counted; `None` where that was not asked for, or the
    /// agent did not count it.
    pub counted: Option<CountRow>,
    /// Estimated bytes that were collected.
    pub collected_bytes: u64,
    /// When what stays began to grow; the window's start when it did from there on.
    pub began_ms: Option<u64>,
    /// The same since the run began.
    pub began_uptime_ms: Option<u64>,
    /// Whether it began within the window.
    pub began_within: Option<bool>,
    /// What was alive over time.
    pub series: HistorySeries,
}

/// Growth by what all sites together allocated.
#[derive(Debug, Serialize)]
pub struct PerWorkRow {
    /// How what stays went by it, as `trend` of a suspect.
    pub trend: &'static str,
    /// Bytes for each GiB allocated.
    pub bytes_per_gib: i64,
    /// Its 95 % interval.
    pub ci95: Option<[i64; 2]>,
    /// Whether the clock shows that growth is over and the work does not.
    pub only_clock_is_over: bool,
}

/// What the agent counted of all classes since it began.
#[derive(Debug, Default, Serialize)]
pub struct CountedClasses {
    /// How many there are.
    pub classes: u64,
    /// Objects of all of them.
    pub objects: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Of these, objects whose class is not known.
    pub unknown_objects: u64,
    /// The classes, most bytes first.
    pub rows: Vec<CountedClassRow>,
}

/// What lines of code allocated, counted.
#[derive(Debug, Serialize)]
pub struct CountedLines {
    /// When that begins, in milliseconds since the run began.
    pub from_uptime_ms: u64,
    /// When it ends.
    pub to_uptime_ms: u64,
    /// Whether classes of the JDK's are counted, too.
    pub jdk: bool,
    /// All lines together, those that are not listed included.
    pub totals: CountTotals,
    /// Allocations a second.
    pub objects_per_second: u64,
    /// Bytes a second, of those that are known.
    pub bytes_per_second: u64,
    /// Lines by bytes, then by objects, most first.
    pub rows: Vec<CountedLineRow>,
    /// What was not counted.
    pub missed: CountedMissed,
}

/// A line of code.
#[derive(Debug, Serialize)]
pub struct CountedLineRow {
    /// The line, and what it allocated.
    #[serde(flatten)]
    pub site: CountSite,
    /// Allocations a second, rounded.
    pub objects_per_second: u64,
    /// Bytes a second, rounded; `None` if they are not known.
    pub bytes_per_second: Option<u64>,
    /// What samples say of it; `None` where they cannot be set beside counts.
    pub sampled: Option<SampledLineRow>,
}

/// What samples say of a line of code that is counted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SampledLineRow {
    /// Samples.
    pub samples: u64,
    /// Estimated objects that were allocated.
    pub estimated_objects: u64,
    /// Estimated bytes that were allocated.
    pub estimated_bytes: u64,
    /// Estimated objects a second, rounded.
    pub objects_per_second: u64,
    /// Whether there are fewer or more samples than chance explains.
    pub beyond_chance: bool,
}

/// One of the stacks of a candidate.
#[derive(Debug, Serialize)]
pub struct PathRow {
    /// The leaf first.
    pub frames: Vec<String>,
    /// Estimated bytes that are alive.
    pub live_bytes: u64,
    /// Samples that are alive.
    pub live_samples: u64,
}

/// Single samples.
#[derive(Debug, Serialize)]
pub struct TraceSamplesReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The file.
    pub trace: TraceFile,
    /// The run.
    pub run: RunInfo,
    /// `live`, `recent` or `chosen`.
    pub which: &'static str,
    /// `age` or `bytes`.
    pub by: &'static str,
    /// What `--focus` says.
    pub focus: Option<String>,
    /// What `--thread` says.
    pub thread: Option<String>,
    /// The run's last tick, at which the live ones lived.
    pub at_ms: u64,
    /// The same since the run began.
    pub at_uptime_ms: u64,
    /// All together, those that are not listed included.
    pub totals: SampleTotals,
    /// The samples, in the order of `by`.
    pub samples: Vec<SampleReportRow>,
}

impl TraceSamplesReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.trace-samples/1";
}

/// All samples that are asked for, those left out of the list included.
#[derive(Debug, Default, Serialize)]
pub struct SampleTotals {
    /// Samples.
    pub samples: u64,
    /// Of the objects, not what they stand for.
    pub bytes: u64,
}

/// A sample.
#[derive(Debug, Serialize)]
pub struct SampleReportRow {
    /// The same for the same sample in every dump and trace of the JVM.
    pub uid: u64,
    /// The class, as in Java source.
    pub class: String,
    /// Bytes.
    pub bytes: u64,
    /// Null: not known.
    pub thread: Option<String>,
    /// When it was allocated, milliseconds since 1970.
    pub allocated_ms: u64,
    /// The same since the run began.
    pub allocated_uptime_ms: u64,
    /// Null while it lives.
    pub collected_ms: Option<u64>,
    /// The same since the run began.
    pub collected_uptime_ms: Option<u64>,
    /// From its allocation until it was found to be collected, or until the last tick.
    pub age_ms: u64,
    /// The frames, the leaf first.
    pub frames: Vec<String>,
}
