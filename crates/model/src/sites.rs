//! `heapdiff.sites/1`: live bytes by allocation stack.

use schemars::JsonSchema;
use serde::Serialize;

use crate::count::CountedInDump;
use crate::diff::{SampledBytes, Stack};
use crate::labels::Labels;
use crate::snapshot::SnapshotInfo;

/// The report of `heapdiff sites --format json`: live bytes by allocation stack, or by class with --by class.
/// Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SitesReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// Source of the figures. `agent`: samples of the agent. `traces`: the dump contains the stack trace of each
    /// object, and figures are exact.
    #[schemars(extend("enum" = ["agent", "traces"]))]
    pub origin: &'static str,
    /// Kind of the rows: stacks, or classes with --by class.
    #[schemars(extend("enum" = ["stack", "class"]))]
    pub by: &'static str,
    /// The regular expression of --focus; null without it.
    pub focus: Option<String>,
    /// Totals of all matching stacks, listed or not.
    pub totals: SiteTotals,
    /// Settings and counters of the agent; null if the stacks are stack traces in the dump.
    pub agent: Option<AgentReport>,
    /// Stacks, the most bytes first. All of them unless --top limits them; empty with --by class.
    pub stacks: Vec<Stack>,
    /// Pairs of an allocating frame and a class, the most bytes first. Contains all of them unless --top limits them;
    /// empty with --by class. Reports of earlier versions lack the key.
    #[schemars(extend("optional" = true))]
    pub frames: Vec<LiveFrame>,
    /// Labels of the threads that allocated the objects of the matching stacks, from the library heapdiff-labels.
    /// Missing if no sample has labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Labels")]
    pub labels: Option<Labels>,
    /// With --by class: classes with the most live bytes first, then classes without a live sample; otherwise
    /// empty.
    pub classes: Vec<LiveClassRow>,
}

/// Live objects of a class that one frame allocated, with all callers of the frame.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LiveFrame {
    /// The innermost frame of the application; null if no stack was recorded.
    pub frame: Option<String>,
    /// The class.
    pub class: String,
    /// Number of stacks with the frame.
    pub stacks: u64,
    /// Number of live samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate.
    pub ci95: [u64; 2],
    /// Estimated number of objects.
    pub estimated_objects: u64,
}

/// The live objects of a class.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct LiveClassRow {
    /// The class.
    pub class: String,
    /// Number of live samples.
    pub samples: u64,
    /// Estimated bytes of live objects.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate.
    pub ci95: [u64; 2],
    /// Estimated number of objects.
    pub estimated_objects: u64,
    /// Allocations of the class that the agent counted since its start. Allocations that the agent's filters exclude,
    /// and allocations of the last second, are not included. Null if the agent does not count classes (strategy=class).
    pub allocated: Option<CountRow>,
}

/// Allocation counts of the agent.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct CountRow {
    /// Number of objects.
    pub objects: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// The report of `heapdiff sites --allocated --format json` on a dump: allocations since the agent's start, of dead and
/// live objects. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AllocatedReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// Kind of the rows: stacks, or classes with --by class.
    #[schemars(extend("enum" = ["stack", "class"]))]
    pub by: &'static str,
    /// The regular expression of --focus; null without it.
    pub focus: Option<String>,
    /// Milliseconds from the agent's start to the dump.
    pub span_ms: u64,
    /// Totals of all matching rows, listed or not.
    pub totals: AllocatedTotals,
    /// Settings and counters of the agent.
    pub agent: AgentReport,
    /// With --by stack: stacks, the most bytes first. All of them unless --top limits them.
    pub stacks: Vec<AllocatedStackRow>,
    /// With --by class: allocation counts of the agent, the most bytes first. Allocations that the agent's filters
    /// exclude, and allocations of the last second, are not included.
    pub classes: Vec<CountedClassRow>,
    /// Allocation counts by line of code, including allocations that the JIT compiler removes (agent option count=on).
    /// All figures are exact up to the time at which the agent copied its counters. Null with --by class, and if the
    /// agent does not count.
    pub counted: Option<CountedInDump>,
}

/// Totals of all rows, listed or not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AllocatedTotals {
    /// Number of stacks, or of classes.
    pub rows: u64,
    /// Number of samples; null for counts.
    pub samples: Option<u64>,
    /// Estimated or counted bytes.
    pub bytes: u64,
    /// 95 % interval of the estimate; null if it is not known (strategy=time) and for counts.
    pub ci95: Option<[u64; 2]>,
    /// Part of `bytes` whose allocation stacks have no sample. It is estimated from the stacks with few samples, and
    /// not included in `stacks`. Absent in reports of earlier versions.
    #[schemars(extend("optional" = true))]
    pub other_stacks_bytes: u64,
    /// Number of objects.
    pub objects: u64,
    /// Maximum number of bytes that have no sample because the agent could not store it. Intervals are widened by this
    /// amount.
    pub unseen_bytes: u64,
    /// Estimated bytes of stacks whose samples have 8 KiB or more on average, in a JVM before JDK 25. Such a JVM
    /// samples too few of these objects, so there may be up to 50 % more bytes (intervals include this). Otherwise 0.
    pub undersampled_bytes: u64,
}

/// Objects that a stack allocated.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AllocatedStackRow {
    /// Frames, the leaf first: com.acme.Foo.add(Foo.java:42). ` (lambda)`, ` (object)` or ` (proxy)` marks
    /// methods or classes that the compiler or a library made. Empty if the JVM reported no stack.
    pub frames: Vec<String>,
    /// Allocated classes of those samples that the agent still stores. Classes with the most samples come first.
    pub classes: Vec<String>,
    /// Number of samples taken.
    pub samples: u64,
    /// Estimated bytes of all objects, dead or alive.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate; null if it is not known (strategy=time).
    pub ci95: Option<[u64; 2]>,
    /// Estimate from samples alone. Present if the agent counted the line of the stack's first frame (count=on), and
    /// the bytes of the stack are computed as its share of this count. Missing if the samples and the count of that
    /// line contradict each other (counted.disagreements).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SampledBytes")]
    pub sampled: Option<SampledBytes>,
    /// Estimated number of objects, computed from the sizes of the samples that the agent still stores.
    pub estimated_objects: u64,
    /// Part of the bytes that is alive, in thousandths, estimated by samples; null if too few samples are
    /// tracked.
    #[schemars(extend("maximum" = 1000))]
    pub survival_permille: Option<u64>,
}

/// Allocated objects of a class.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CountedClassRow {
    /// The class.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Totals of all stacks, listed or not.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SiteTotals {
    /// Number of pairs of stack and class.
    pub stacks: u64,
    /// Number of live samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate.
    pub ci95: [u64; 2],
    /// Estimated number of objects.
    pub estimated_objects: u64,
    /// Number of samples that are left out because no GC root reaches the sampled object. Samples of all stacks are
    /// included, whether or not they match --focus.
    pub unreachable_samples: u64,
    /// Number of samples that are left out because the agent was still recording them when the dump was taken. Samples
    /// of all stacks are included, whether or not they match --focus.
    pub unfinished_samples: u64,
    /// Maximum number of bytes that have no sample because the agent could not store it. Intervals of stacks are
    /// widened by this amount.
    pub unseen_bytes: u64,
    /// Part of `estimated_bytes` whose allocation stacks have no sample. It is estimated from the stacks with few
    /// samples, and not included in `stacks` and `frames`. Absent in reports of earlier versions.
    #[schemars(extend("optional" = true))]
    pub other_stacks_bytes: u64,
    /// Reachable bytes that no sample covers. The figure does not depend on --focus. These bytes belong to classes
    /// without a sample, and to objects that are older than the agent.
    pub unsampled_bytes: u64,
    /// Estimated bytes of objects of 8 KiB or more, if the agent was attached to a JVM before JDK 25. Such a JVM
    /// samples too few of these objects, so there may be up to 50 % more bytes (intervals of stacks include this).
    /// Otherwise 0.
    pub undersampled_bytes: u64,
}

/// Settings and counters of the agent.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AgentReport {
    /// How samples are drawn: by allocated bytes, by the number of allocations, or by time. With `class`, samples are
    /// drawn by the number of allocations, and all allocations of each class are counted.
    #[schemars(extend("enum" = ["bytes", "count", "time", "class"]))]
    pub strategy: &'static str,
    /// Mean bytes between samples; 0 if every allocation is sampled.
    pub interval_bytes: u64,
    /// Mean number of allocations, or milliseconds, between samples; 0 with strategy=bytes.
    pub rate: u64,
    /// Value of interval_bytes before the agent's table was full and it began to downsample.
    pub first_interval_bytes: u64,
    /// Value of rate before the agent's table was full and it began to downsample.
    pub first_rate: u64,
    /// Maximum number of frames of a stack.
    pub depth: u64,
    /// Objects of the agent in the heap.
    pub cost: CostReport,
    /// Samples whose object was collected.
    pub collected: CollectedReport,
    /// All counters of the agent since its start.
    pub counters: Vec<CounterRow>,
}

/// Objects of the agent in the heap.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CostReport {
    /// Number of objects of the agent.
    pub objects: u64,
    /// Shallow bytes of all objects of the agent. No other figure includes them.
    pub bytes: u64,
    /// Number of objects that represent samples, including samples of collected objects that are not yet
    /// removed.
    pub samples: u64,
    /// Shallow bytes of one of these objects.
    pub bytes_per_sample: u64,
    /// Number of stacks in the site table.
    pub sites: u64,
    /// Bytes of the site table, including names, divided by the number of stacks.
    pub bytes_per_site: u64,
}

/// Samples whose object was collected.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CollectedReport {
    /// Number of samples.
    pub samples: u64,
    /// Number of samples of collected objects whose details are in the heap: the most recent ones, and a random choice
    /// of all.
    pub remembered: u64,
    /// Median time in milliseconds from the allocation of these objects until the agent detected that they were
    /// collected; null without such samples.
    pub median_age_ms: Option<u64>,
}

/// A counter of the agent.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CounterRow {
    /// Name of the counter.
    pub name: &'static str,
    /// Value of the counter.
    pub count: u64,
    /// True if the counter counts data that is missing from the samples.
    pub is_loss: bool,
}

impl AllocatedReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.allocated/1";
}

impl SitesReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.sites/1";
}
