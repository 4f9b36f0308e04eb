//! `heapdiff.sites/1`: live bytes by allocation stack.

use serde::Serialize;

use crate::count::CountedInDump;
use crate::diff::{SampledBytes, Stack};
use crate::snapshot::SnapshotInfo;

/// The allocation sites of a dump: what is alive.
#[derive(Debug, Serialize)]
pub struct SitesReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// `agent`, or `traces` where the dump names the stack trace of each object.
    pub origin: &'static str,
    /// What rows are: `stack` or `class`.
    pub by: &'static str,
    /// What `--focus` says.
    pub focus: Option<String>,
    /// All together, those that are not listed included.
    pub totals: SiteTotals,
    /// `None` without the agent.
    pub agent: Option<AgentReport>,
    /// The stacks, most bytes first; none by class.
    pub stacks: Vec<Stack>,
    /// The frames that allocate, most bytes first; none by class.
    pub frames: Vec<LiveFrame>,
    /// The classes, most bytes first; none by stack.
    pub classes: Vec<LiveClassRow>,
}

/// The live objects of a class that one frame allocated, whatever called it.
#[derive(Clone, Debug, Serialize)]
pub struct LiveFrame {
    /// The innermost frame of the application; `None` if no stack was recorded.
    pub frame: Option<String>,
    /// The class.
    pub class: String,
    /// Number of stacks with the frame.
    pub stacks: u64,
    /// Live samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// The 95 % interval of the estimated bytes.
    pub ci95: [u64; 2],
    /// Estimated objects.
    pub estimated_objects: u64,
}

/// The live objects of a class.
#[derive(Debug, Serialize)]
pub struct LiveClassRow {
    /// The class.
    pub class: String,
    /// Live samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// The 95 % interval of the estimated bytes.
    pub ci95: [u64; 2],
    /// Estimated objects.
    pub estimated_objects: u64,
    /// What was allocated of it since the agent's start; `None` where the agent does not count it.
    pub allocated: Option<CountRow>,
}

/// What the agent counted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CountRow {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What was allocated since the agent's start, dead or alive.
#[derive(Debug, Serialize)]
pub struct AllocatedReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// What rows are: `stack` or `class`.
    pub by: &'static str,
    /// What `--focus` says.
    pub focus: Option<String>,
    /// From the agent's start to the dump.
    pub span_ms: u64,
    /// All together, those that are not listed included.
    pub totals: AllocatedTotals,
    /// The agent.
    pub agent: AgentReport,
    /// The stacks, most bytes first; none by class.
    pub stacks: Vec<AllocatedStackRow>,
    /// The classes, most bytes first; none by stack.
    pub classes: Vec<CountedClassRow>,
    /// What was counted by line of code; `None` by class, and where the agent does not count.
    pub counted: Option<CountedInDump>,
}

/// All rows together.
#[derive(Debug, Serialize)]
pub struct AllocatedTotals {
    /// Stacks, or classes.
    pub rows: u64,
    /// Samples; `None` where the agent counted.
    pub samples: Option<u64>,
    /// Bytes.
    pub bytes: u64,
    /// The 95 % interval of the bytes; `None` where it is not known.
    pub ci95: Option<[u64; 2]>,
    /// The part of the bytes that was allocated in stacks without a sample.
    pub other_stacks_bytes: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes, at most, that have no sample because the agent could not keep it.
    pub unseen_bytes: u64,
    /// Bytes of stacks with large objects, of which this JVM samples too few: there may have been up to half more.
    pub undersampled_bytes: u64,
}

/// What was allocated at a stack.
#[derive(Debug, Serialize)]
pub struct AllocatedStackRow {
    /// The frames, the leaf first.
    pub frames: Vec<String>,
    /// The classes of the samples that are remembered, most samples first.
    pub classes: Vec<String>,
    /// Samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// The 95 % interval of the estimated bytes; `None` where it is not known.
    pub ci95: Option<[u64; 2]>,
    /// The same as samples alone say it, where bytes are the stack's share of what was counted at its line; missing elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledBytes>,
    /// Estimated objects.
    pub estimated_objects: u64,
    /// Thousandths of the bytes that are alive; `None` where too few of its samples are followed to tell.
    pub survival_permille: Option<u64>,
}

/// What was allocated of a class.
#[derive(Debug, Serialize)]
pub struct CountedClassRow {
    /// The class.
    pub class: String,
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
}

/// All stacks together, those left out of the list included.
#[derive(Debug, Serialize)]
pub struct SiteTotals {
    /// Stacks.
    pub stacks: u64,
    /// Samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// The 95 % interval of the estimated bytes.
    pub ci95: [u64; 2],
    /// Estimated objects.
    pub estimated_objects: u64,
    /// Samples whose object is garbage, which the dump has all the same.
    pub unreachable_samples: u64,
    /// Samples that the dump met in the making.
    pub unfinished_samples: u64,
    /// Bytes, at most, that have no sample because the agent could not keep it.
    pub unseen_bytes: u64,
    /// The part of the estimated bytes that was allocated in stacks without a sample.
    pub other_stacks_bytes: u64,
    /// Reachable bytes that are not covered by samples, whatever `--focus` says.
    pub unsampled_bytes: u64,
    /// Estimated bytes of large objects, of which this JVM samples too few: there may be up to half more.
    pub undersampled_bytes: u64,
}

/// What the agent says of itself.
#[derive(Debug, Serialize)]
pub struct AgentReport {
    /// `bytes`, `count`, `time` or `class`.
    pub strategy: &'static str,
    /// Mean bytes between samples.
    pub interval_bytes: u64,
    /// Samples a second at most, of the strategy `time`.
    pub rate: u64,
    /// What interval and rate were before samples were thinned.
    pub first_interval_bytes: u64,
    /// The same of the rate.
    pub first_rate: u64,
    /// Frames that are kept of a stack.
    pub depth: u64,
    /// What the agent takes of the heap.
    pub cost: CostReport,
    /// Samples whose object is gone.
    pub collected: CollectedReport,
    /// What else it counted.
    pub counters: Vec<CounterRow>,
}

/// What the agent takes of the heap.
#[derive(Debug, Serialize)]
pub struct CostReport {
    /// Objects.
    pub objects: u64,
    /// Bytes.
    pub bytes: u64,
    /// Samples.
    pub samples: u64,
    /// Shallow bytes of the object that stands for a sample.
    pub bytes_per_sample: u64,
    /// Allocation sites.
    pub sites: u64,
    /// The site table's bytes, names and threads included, over its stacks.
    pub bytes_per_site: u64,
}

/// Samples whose object is gone.
#[derive(Debug, Serialize)]
pub struct CollectedReport {
    /// Samples.
    pub samples: u64,
    /// Those of which the agent remembers more than the number.
    pub remembered: u64,
    /// From allocation until the agent found them gone, of those remembered; `None` without any.
    pub median_age_ms: Option<u64>,
}

/// A number that the agent counted.
#[derive(Debug, Serialize)]
pub struct CounterRow {
    /// What was counted.
    pub name: &'static str,
    /// How often.
    pub count: u64,
    /// Whether it counts samples or names that are missing.
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
