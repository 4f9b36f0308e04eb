//! `heapdiff.sites/1`: live bytes by allocation stack.

use heapdiff_diff::{Allocated, Stack};
use regex::Regex;
use serde::Serialize;

use super::SnapshotInfo;

/// The allocation sites of a dump.
#[derive(Debug, Serialize)]
pub struct SitesReport {
    /// The schema's name.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// `agent`, or `traces` where the dump names the stack trace of each object.
    pub origin: &'static str,
    /// What `--focus` says.
    pub focus: Option<String>,
    /// All together, those that are not listed included.
    pub totals: SiteTotals,
    /// `None` without the agent.
    pub agent: Option<AgentReport>,
    /// The stacks, most bytes first.
    pub stacks: Vec<Stack>,
    /// Whether text shows every frame.
    #[serde(skip)]
    pub verbose: bool,
    /// All stacks, where the format shows them.
    #[serde(skip)]
    pub allocated: Option<Allocated>,
    /// As `focus`, to match with.
    #[serde(skip)]
    pub only: Option<Regex>,
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
    /// Reachable bytes for which no sample speaks, whatever `--focus` says.
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

impl SitesReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.sites/1";
}
