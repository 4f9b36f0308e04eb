//! `heapdiff.sites/1`: live bytes by allocation stack.

use heapdiff_diff::{Allocated, Stack};
use regex::Regex;
use serde::Serialize;

use super::SnapshotInfo;

/// The allocation sites of a dump.
#[derive(Debug, Serialize)]
pub(crate) struct SitesReport {
    pub(crate) schema: &'static str,
    pub(crate) snapshot: SnapshotInfo,
    /// `agent`, or `traces` where the dump names the stack trace of each object.
    pub(crate) origin: &'static str,
    /// What `--focus` says.
    pub(crate) focus: Option<String>,
    pub(crate) totals: SiteTotals,
    /// `None` without the agent.
    pub(crate) agent: Option<AgentReport>,
    pub(crate) stacks: Vec<Stack>,
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

/// All stacks together, those left out of the list included.
#[derive(Debug, Serialize)]
pub(crate) struct SiteTotals {
    pub(crate) stacks: u64,
    pub(crate) samples: u64,
    pub(crate) estimated_bytes: u64,
    pub(crate) ci95: [u64; 2],
    pub(crate) estimated_objects: u64,
    /// Samples whose object is garbage, which the dump has all the same.
    pub(crate) unreachable_samples: u64,
    /// Samples that the dump met in the making.
    pub(crate) unfinished_samples: u64,
    /// Bytes, at most, that have no sample because the agent could not keep it.
    pub(crate) unseen_bytes: u64,
}

/// What the agent says of itself.
#[derive(Debug, Serialize)]
pub(crate) struct AgentReport {
    /// `bytes`, `count`, `time` or `class`.
    pub(crate) strategy: &'static str,
    pub(crate) interval_bytes: u64,
    pub(crate) rate: u64,
    /// What interval and rate were before samples were thinned.
    pub(crate) first_interval_bytes: u64,
    pub(crate) first_rate: u64,
    pub(crate) depth: u64,
    pub(crate) cost: CostReport,
    pub(crate) collected: CollectedReport,
    pub(crate) counters: Vec<CounterRow>,
}

/// What the agent takes of the heap.
#[derive(Debug, Serialize)]
pub(crate) struct CostReport {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    pub(crate) samples: u64,
    /// Shallow bytes of the object that stands for a sample.
    pub(crate) bytes_per_sample: u64,
    pub(crate) sites: u64,
    /// The site table's bytes, names and threads included, over its stacks.
    pub(crate) bytes_per_site: u64,
}

/// Samples whose object is gone.
#[derive(Debug, Serialize)]
pub(crate) struct CollectedReport {
    pub(crate) samples: u64,
    /// Those of which the agent remembers more than the number.
    pub(crate) remembered: u64,
    /// From allocation until the agent found them gone, of those remembered; `None` without any.
    pub(crate) median_age_ms: Option<u64>,
}

/// A number that the agent counted.
#[derive(Debug, Serialize)]
pub(crate) struct CounterRow {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    /// Whether it counts samples or names that are missing.
    pub(crate) is_loss: bool,
}

impl SitesReport {
    pub(crate) const SCHEMA: &'static str = "heapdiff.sites/1";
}
