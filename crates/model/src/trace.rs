//! `heapdiff.trace-top/1`, `heapdiff.trace-info/1` and `heapdiff.trace-samples/1`: reports of a trace, which records a
//! JVM over time.

use schemars::JsonSchema;
use serde::Serialize;

use crate::count::{CountSite, CountTotals, CountedMissed};
pub use crate::diff::Oom;
use crate::diff::{HistoryGrowth, HistorySeries, HistorySlope};
use crate::labels::{Label, Labels};
use crate::sites::{CountRow, CountedClassRow};
use crate::words::TRENDS;

/// The report of `heapdiff trace info --format json`: the content of a trace. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TraceInfoReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The file.
    pub trace: TraceFile,
    /// Number of allocation sites of all runs.
    pub sites: u64,
    /// The runs, oldest first.
    pub runs: Vec<RunRow>,
}

impl TraceInfoReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.trace-info/1";
}

/// The file of a trace.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TraceFile {
    /// Path of the trace as given on the command line.
    pub path: String,
    /// Size of the trace in bytes, including data that SQLite still keeps in other files beside it.
    pub bytes: u64,
    /// Damage and missing data of the trace, one sentence each.
    pub warnings: Vec<String>,
}

/// A run: one JVM that wrote to the trace.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RunInfo {
    /// Number of the run, counted from 1. The option --run accepts this number.
    pub number: u64,
    /// Id of the run. The agent's objects in the heap contain the same id.
    pub uid: String,
    /// The JVM's process id.
    pub pid: u64,
    /// Name of the machine.
    pub host: String,
    /// Name that the user gave to the program; null without a name.
    pub service: Option<String>,
    /// Name and version of the JVM.
    pub jvm: String,
    /// Main class or jar, with its arguments.
    pub command: String,
    /// Mean bytes between samples when the run began; 0 if every allocation is sampled.
    pub interval_bytes: u64,
    /// How samples are drawn. `recording` if the trace was imported from a recording.
    pub strategy: String,
    /// When the run began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When the run ended, in milliseconds since 1970; null if it still runs, or was killed.
    pub ended_ms: Option<u64>,
}

/// A run and its content.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RunRow {
    /// The run.
    pub run: RunInfo,
    /// Options of the JVM.
    pub flags: String,
    /// Options of the agent.
    pub options: String,
    /// Number of ticks. The agent writes to the trace at each tick.
    pub ticks: u64,
    /// End of the last tick, in milliseconds since the run began.
    pub uptime_ms: u64,
    /// GCs of the run.
    pub collections: Collections,
    /// Number of samples.
    pub samples: u64,
    /// Number of samples that were taken but not recorded. Live figures do not include these samples, so they are too
    /// low.
    pub lost_samples: u64,
    /// Estimated bytes of the samples that were not recorded.
    pub lost_bytes: u64,
    /// Facts about the counts by line of code (agent option count=on); null if the run did not count. Traces of earlier
    /// versions lack the key.
    #[schemars(extend("optional" = true))]
    pub counting: Option<CountingRow>,
    /// Heap dumps that were taken while the run was recorded.
    pub dumps: Vec<DumpRow>,
    /// True if the table of live samples was full at some time. After that, fewer samples were drawn.
    pub thinned: bool,
    /// Notes of the agent, at most the last 50.
    pub notes: Vec<NoteRow>,
}

/// Facts about the counts by line of code in a run.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountingRow {
    /// When counting began, in milliseconds since the run began.
    pub from_uptime_ms: u64,
    /// Time up to which all allocations are counted, in milliseconds since the run began.
    pub to_uptime_ms: u64,
    /// True if JDK classes are counted, too. Their counts are lower bounds, because the JIT compiler replaces
    /// some of their methods with its own code.
    pub jdk: bool,
    /// Number of class files that got counters.
    pub classes: u64,
    /// Allocations that are not counted.
    pub missed: CountedMissed,
}

/// Numbers of GCs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Collections {
    /// Number of full GCs.
    pub major: u64,
    /// Number of GCs of any kind.
    pub all: u64,
}

/// A heap dump that was taken while the trace was written.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct DumpRow {
    /// When the dump was taken, in milliseconds since 1970.
    pub time_ms: u64,
    /// Path of the dump; null if it is not known.
    pub path: Option<String>,
}

/// A note in the trace, such as a warning of the agent.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct NoteRow {
    /// Time of the note, in milliseconds since 1970.
    pub time_ms: u64,
    /// The note.
    pub text: String,
}

/// The report of `heapdiff trace top --format json`: allocation sites or classes, ranked by the trend of their live
/// bytes. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TraceTopReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The file.
    pub trace: TraceFile,
    /// The run.
    pub run: RunInfo,
    /// The part of the run that is analyzed.
    pub window: WindowRow,
    /// Kind of the ranked rows: application frames that allocate (frame, the default), stacks (site), classes (class),
    /// or lines of code (line). With line, `candidates` is empty, and only `lines` has entries.
    #[schemars(extend("enum" = ["frame", "site", "class", "line"]))]
    pub by: &'static str,
    /// The regular expression of --focus; null without it.
    #[schemars(extend("optional" = true))]
    pub focus: Option<String>,
    /// The figures of live bytes that are compared. major: the live bytes after each full GC. collections: the minimum
    /// between two GCs of any kind. ticks: the minimum in each of several equal parts of the time, if there was no GC.
    /// survivors: for an imported recording, the live objects of its last dump by allocation time.
    #[schemars(extend("enum" = ["major", "collections", "ticks", "survivors"]))]
    pub basis: &'static str,
    /// Number of moments in time that are compared.
    pub points: u64,
    /// The time for which the live figures are valid. end: the end of the window. major: the last full GC, if only full
    /// GCs find dead samples, as in generational ZGC. unknown: there was no full GC, so unreachable objects are
    /// included.
    #[schemars(extend("enum" = ["end", "major", "unknown"]))]
    pub alive_at: &'static str,
    /// If alive_at is major, the time at which that full GC ended, in milliseconds since the run began; null otherwise.
    pub alive_at_uptime_ms: Option<u64>,
    /// If alive_at is major, live figures include only objects that were allocated before this time and that survived
    /// the full GC of alive_at. Objects that were allocated later were in the young generation at that GC, so they are
    /// left out. The time is in milliseconds since the run began. Null if this time is not known (live figures are then
    /// upper bounds), and null if alive_at is not major. Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub alive_of_uptime_ms: Option<u64>,
    /// GCs in the window.
    pub collections: Collections,
    /// Totals of all sites, listed or not.
    pub totals: TraceTotals,
    /// Candidates, the most suspicious first; at most 100 unless --top sets another limit.
    pub candidates: Vec<CandidateRow>,
    /// Allocation counts of all classes from the agent's start to the last tick of the run. Allocations that the
    /// agent's filters exclude are not included. Present only with --by class, for the whole run and all stacks; null
    /// if the agent does not count classes (strategy=class).
    #[schemars(extend("optional" = true))]
    pub counted: Option<CountedClasses>,
    /// Allocation counts by line of code, including allocations that the JIT compiler removes (agent option
    /// count=on). Null if the agent did not count in this part of the run.
    #[schemars(extend("optional" = true))]
    pub lines: Option<CountedLines>,
    /// Time until the heap after full GCs reaches its limit, in milliseconds after the last tick of the window. Null if
    /// `heap_after_full_gcs.outlook` is not `ends`. Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub oom: Option<Oom>,
    /// Trend of the used heap after full GCs. Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub heap_after_full_gcs: HeapTrendRow,
    /// Notes of the agent in the run, at most the last 50.
    pub notes: Vec<NoteRow>,
}

impl TraceTopReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.trace-top/1";
}

/// The trend of the used heap after full GCs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapTrendRow {
    /// ends: the heap reaches its limit, see `oom`. no-end: the heap does not reach its limit at the measured rate.
    /// irregular: the rate varies so much that the time has no upper bound, or the heap only returned to earlier
    /// levels. no-limit: the heap grows, but its limit is unknown. too-few: there are too few full GCs.
    #[schemars(extend("enum" = ["ends", "no-end", "irregular", "no-limit", "too-few"]))]
    pub outlook: &'static str,
    /// Number of full GCs after which the used heap is known. G1's concurrent cycles and major GCs of ZGC count as full
    /// GCs.
    pub full_gcs: u64,
    /// Start of the measured growth, in milliseconds since the run began. The used heap grew at another rate before,
    /// for example during a warm-up. Null with too few full GCs.
    pub since_uptime_ms: Option<u64>,
    /// Growth per hour since `since_uptime_ms`, a Theil-Sen estimate. Null with too few full GCs.
    pub bytes_per_hour: Option<i64>,
    /// 95 % interval of the growth per hour.
    pub ci95: Option<[i64; 2]>,
    /// Size at which the heap is full; null if it is unknown.
    pub limit_bytes: Option<u64>,
    /// Source of the limit: the maximum heap of the JVM (heap), the memory limit of its container (container), or
    /// --heap-limit (option). Null if the limit is unknown.
    #[schemars(extend("enum" = ["heap", "container", "option", null]))]
    pub limit: Option<&'static str>,
}

/// The analyzed part of the run.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WindowRow {
    /// Start of the window, in milliseconds since 1970.
    pub from_ms: u64,
    /// End of the window, in milliseconds since 1970.
    pub to_ms: u64,
    /// Start of the window, in milliseconds since the run began.
    pub from_uptime_ms: u64,
    /// End of the window, in milliseconds since the run began.
    pub to_uptime_ms: u64,
    /// Number of ticks in the window.
    pub ticks: u64,
}

/// Totals of all sites, listed or not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TraceTotals {
    /// Number of candidates, listed or not.
    pub candidates: u64,
    /// Number of candidates with the verdict leak, growth or unclear.
    pub growing: u64,
    /// Estimated live bytes.
    pub live_bytes: u64,
    /// 95 % interval of the estimate.
    pub ci95: [u64; 2],
    /// Estimated number of live objects.
    pub live_objects: u64,
    /// Number of live samples.
    pub live_samples: u64,
    /// Estimated bytes that were allocated.
    pub allocated_bytes: u64,
    /// Estimated bytes that were collected.
    pub collected_bytes: u64,
    /// Number of samples that the agent could not store.
    pub lost_samples: u64,
    /// Maximum number of bytes that have no sample because the agent could not store it.
    pub lost_bytes: u64,
}

/// A candidate for a leak: a frame, a stack or a class.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CandidateRow {
    /// Rank of the candidate; 1 for the most suspicious.
    pub rank: u64,
    /// leak: live bytes grow, and they grew from the first full GC to the last; growth: live bytes grow, but the
    /// evidence is weaker, or there were no two full GCs; unclear: there were too few GCs.
    #[schemars(extend("enum" = ["leak", "growth", "unclear", "plateau", "warmup", "level"]))]
    pub verdict: &'static str,
    /// How live bytes changed over time. The values are the same as for `trend` of a suspect.
    #[schemars(extend("enum" = TRENDS))]
    pub trend: &'static str,
    /// The allocated class.
    pub class: String,
    /// Number of allocation sites in the candidate; always 1 if sites are ranked.
    pub sites: u64,
    /// The innermost application frame if frames are ranked; null otherwise.
    pub frame: Option<String>,
    /// The stack, the leaf first. If the candidate has several stacks, this is the stack with the most live bytes.
    pub frames: Vec<String>,
    /// Number of distinct stacks of the candidate's sites.
    pub stacks: u64,
    /// The candidate's stacks with the most live bytes, at most 5. Empty if the candidate has only one stack.
    #[schemars(extend("maxItems" = 5))]
    pub paths: Vec<PathRow>,
    /// Estimated live bytes at the end of the window.
    pub live_bytes: u64,
    /// 95 % interval of the estimate.
    pub ci95: [u64; 2],
    /// Estimated number of live objects.
    pub live_objects: u64,
    /// Number of samples that the estimate is based on.
    pub live_samples: u64,
    /// Growth from the first to the last compared moment.
    pub growth: HistoryGrowth,
    /// Growth per hour.
    pub slope: HistorySlope,
    /// Growth in relation to allocation: growth of live bytes per GiB that all sites together allocated. Null if the
    /// program allocated at an even rate over time, or if there are too few samples. Reports of earlier versions lack
    /// the key.
    #[schemars(extend("optional" = true))]
    pub per_work: Option<PerWorkRow>,
    /// Labels of the threads that allocated the live objects, from the library heapdiff-labels. Missing for a part of a
    /// run, and if no sample has labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Labels")]
    pub labels: Option<Labels>,
    /// True if the candidate grew from the first full GC to the last; null if there were no two full GCs.
    pub grew_across_major: Option<bool>,
    /// Share of the candidate in the growth of the heap after full GCs, in thousandths. Null if the heap or the candidate
    /// does not grow, or if live bytes were not compared after full GCs. Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub heap_growth_permille: Option<u64>,
    /// The part of the bytes allocated in the window that survived until its end, in thousandths. Null in an imported
    /// recording, because it does not record collected objects.
    pub survival_permille: Option<u64>,
    /// Estimated bytes that were allocated in the window.
    pub allocated_bytes: u64,
    /// Counted allocations of the class since the agent's start. Only with --by class, for the whole run and all
    /// stacks, if the agent counts classes (strategy=class). Null otherwise; then allocated_bytes is only an estimate.
    /// Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub counted: Option<CountRow>,
    /// Estimated bytes that were collected in the window.
    pub collected_bytes: u64,
    /// When the growth began, in milliseconds since 1970; null if there is no growth.
    pub began_ms: Option<u64>,
    /// When the growth began, in milliseconds since the run began; null if there is no growth.
    pub began_uptime_ms: Option<u64>,
    /// False if the growth began at the first data point or may have begun before it.
    pub began_within: Option<bool>,
    /// Live figures over time. The window is divided into at most 60 parts with equally many ticks; each figure is the
    /// minimum in one part.
    pub series: HistorySeries,
}

/// Growth in relation to the bytes that all sites together allocated.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PerWorkRow {
    /// How live bytes changed in relation to the bytes allocated. The values are the same as for `trend` of a suspect.
    #[schemars(extend("enum" = TRENDS))]
    pub trend: &'static str,
    /// Growth in live bytes per GiB allocated, a Theil-Sen estimate.
    pub bytes_per_gib: i64,
    /// 95 % interval of the estimate.
    pub ci95: Option<[i64; 2]>,
    /// True if the live bytes stopped growing over time, but still grow in relation to the bytes allocated.
    pub only_clock_is_over: bool,
}

/// Allocation counts of all classes since the agent's start.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountedClasses {
    /// Number of classes, listed or not.
    pub classes: u64,
    /// Number of allocated objects of all classes.
    pub objects: u64,
    /// Allocated bytes of all classes.
    pub bytes: u64,
    /// Number of allocated objects whose class is not known. So the count of a single class may be too low by at most
    /// this number.
    pub unknown_objects: u64,
    /// Classes, the most bytes first; at most 100 unless --top sets another limit. `(other classes)` stands for all
    /// classes that are left out because of the limit `trace_max`.
    pub rows: Vec<CountedClassRow>,
}

/// Allocation counts of lines of code.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountedLines {
    /// When the first included time span begins, in milliseconds since the run began. Counts are stored in time spans,
    /// and the report includes the spans that end in the window. Old spans are long, so the first one may begin before
    /// the window.
    pub from_uptime_ms: u64,
    /// When the last included time span ends, in milliseconds since the run began.
    pub to_uptime_ms: u64,
    /// True if JDK classes are counted, too. Their counts are lower bounds, because the JIT compiler replaces
    /// some of their methods with its own code.
    pub jdk: bool,
    /// Totals of all lines, listed or not. With --focus, totals of the matching lines.
    pub totals: CountTotals,
    /// Allocations per second, rounded.
    pub objects_per_second: u64,
    /// Known bytes per second, rounded.
    pub bytes_per_second: u64,
    /// One entry for each combination of method, line and allocated class. Entries with the most bytes come first; of
    /// equal entries, those with the most objects. At most 100 unless --top sets another limit.
    pub rows: Vec<CountedLineRow>,
    /// Allocations that are not counted.
    pub missed: CountedMissed,
}

/// A line of code.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountedLineRow {
    /// The line and its allocations.
    #[serde(flatten)]
    pub site: CountSite,
    /// Allocations per second, rounded.
    pub objects_per_second: u64,
    /// Bytes per second, rounded; null if the bytes are not known.
    pub bytes_per_second: Option<u64>,
    /// Estimates by samples for the same line and class. Null if samples cannot be compared with counts: samples were
    /// not drawn by bytes, were downsampled, or were lost, or samples and counts do not cover the same allocations.
    pub sampled: Option<SampledLineRow>,
}

/// Estimates by samples for a counted line of code.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct SampledLineRow {
    /// Number of samples.
    pub samples: u64,
    /// Number of allocated objects, estimated by samples.
    pub estimated_objects: u64,
    /// Allocated bytes, estimated by samples.
    pub estimated_bytes: u64,
    /// Estimated objects per second, rounded.
    pub objects_per_second: u64,
    /// True if the number of samples differs from the count by more than random variation. Allocations that the JIT
    /// compiler removes are counted but never sampled. JVMs before JDK 25 sample objects of some sizes too rarely.
    pub beyond_chance: bool,
}

/// One of the stacks of a candidate.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PathRow {
    /// The stack, the leaf first.
    pub frames: Vec<String>,
    /// Estimated live bytes.
    pub live_bytes: u64,
    /// Number of live samples.
    pub live_samples: u64,
}

/// The report of `heapdiff trace samples --format json`: single samples of a run, live or collected. Later
/// versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TraceSamplesReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The file.
    pub trace: TraceFile,
    /// The run.
    pub run: RunInfo,
    /// The listed samples: those that were alive at the last tick (live), those that were freed last (recent), or a
    /// random choice of all freed samples (chosen).
    #[schemars(extend("enum" = ["live", "recent", "chosen"]))]
    pub which: &'static str,
    /// The order: the oldest first (age), or the largest first (bytes).
    #[schemars(extend("enum" = ["age", "bytes"]))]
    pub by: &'static str,
    /// The regular expression of --focus; null without it.
    pub focus: Option<String>,
    /// The regular expression of --thread; null without it.
    pub thread: Option<String>,
    /// The regular expression of --label; missing without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub label: Option<String>,
    /// End of the last tick of the run, in milliseconds since 1970.
    pub at_ms: u64,
    /// End of the last tick of the run, in milliseconds since the run began.
    pub at_uptime_ms: u64,
    /// Totals of all matching samples, listed or not.
    pub totals: SampleTotals,
    /// The first samples, at most as many as --top sets.
    pub samples: Vec<SampleReportRow>,
}

impl TraceSamplesReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.trace-samples/1";
}

/// Totals of all matching samples, listed or not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SampleTotals {
    /// Number of samples.
    pub samples: u64,
    /// Sum of the shallow sizes of the sampled objects, in bytes.
    pub bytes: u64,
}

/// A sample.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SampleReportRow {
    /// Id of the sample. It is unique in the run, and the same in heap dumps of the JVM.
    pub uid: u64,
    /// Name of the class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub class: String,
    /// Shallow size of the object, in bytes.
    pub bytes: u64,
    /// Name of the thread that allocated the object; null if it is not known.
    pub thread: Option<String>,
    /// Labels of the thread at the time of the allocation, from the library heapdiff-labels; missing without labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 3))]
    pub labels: Vec<Label>,
    /// When the object was allocated, in milliseconds since 1970.
    pub allocated_ms: u64,
    /// When the object was allocated, in milliseconds since the run began.
    pub allocated_uptime_ms: u64,
    /// When the agent detected that the object was collected, in milliseconds since 1970; null while it is alive.
    pub collected_ms: Option<u64>,
    /// When the agent detected that the object was collected, in milliseconds since the run began; null while it is
    /// alive.
    pub collected_uptime_ms: Option<u64>,
    /// Milliseconds from the allocation of the object until the agent detected that it was collected. For a live
    /// object, until the last tick.
    pub age_ms: u64,
    /// The allocating stack, the leaf first.
    pub frames: Vec<String>,
}

/// The part of a trace whose stacks are drawn. There is no JSON form of the stacks.
#[derive(Debug, Default, Serialize)]
pub struct FlameReport {
    /// Path of the file.
    pub path: String,
    /// Start of the part, in milliseconds since 1970.
    pub from_ms: u64,
    /// End of the drawn part of the trace, in milliseconds since 1970.
    pub to_ms: u64,
    /// Damage of the file.
    pub warnings: Vec<String>,
}
