//! `heapdiff.diff/1`: what grew between dumps, and what holds it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A diff of two or more dumps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// `heapdiff.diff/1`.
    pub schema: Cow<'static, str>,
    /// The dumps, oldest first.
    pub snapshots: Vec<SnapshotInfo>,
    /// Whether what differs between the dumps can be taken for growth: none of them is incomplete, of another program
    /// or JVM than the others, the same as another, or was named out of order.
    #[serde(default = "comparable")]
    pub comparable: bool,
    /// Why not, what was asked for that fits nothing, and how much the agent did not watch.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Reachable objects and bytes, last dump less first.
    pub delta: Delta,
    /// How much of the growth of reachable bytes the suspects are; nothing is counted twice.
    #[serde(default)]
    pub explained_bytes: u64,
    /// Growth of fewer bytes is taken for noise: it makes no suspect.
    #[serde(default)]
    pub noise_bytes: u64,
    /// Classes whose figures differ between dumps, by growth of retained bytes.
    pub classes: Vec<ClassGrowth>,
    /// What grows, the most growth first.
    pub suspects: Vec<Suspect>,
}

/// Of a report that was written before reports told.
const fn comparable() -> bool {
    true
}

impl Report {
    /// Adds a reason why the dumps cannot be compared, before those that are there.
    pub fn doubt(&mut self, why: String) {
        self.comparable = false;
        self.warnings.insert(0, why);
    }

    /// By how many bytes the reachable heap grew.
    #[must_use]
    pub fn grown_bytes(&self) -> u64 {
        u64::try_from(self.delta.shallow_bytes).unwrap_or(0)
    }

    /// How much of the growth no suspect explains; 0 where that is too little to look for.
    #[must_use]
    pub fn unexplained_bytes(&self) -> u64 {
        let rest = self.grown_bytes().saturating_sub(self.explained_bytes);
        match rest < noise(&self.snapshots) {
            true => 0,
            false => rest,
        }
    }
}

/// Growth of fewer bytes is noise in a heap of any size.
const LEAST: u64 = 16 << 10;
/// Growth of less than this part of the reachable bytes is noise.
const LEAST_PART: u64 = 2_000;

/// Returns the growth below which bytes are noise in a heap with `reachable` bytes.
#[must_use]
pub fn least(reachable: u64) -> u64 {
    (reachable / LEAST_PART).max(LEAST)
}

/// Returns the growth below which bytes are noise among these dumps.
#[must_use]
pub fn noise(snapshots: &[SnapshotInfo]) -> u64 {
    let reachable = snapshots.iter().map(|s| s.reachable_bytes).max();
    least(reachable.unwrap_or(0))
}

/// Returns the last figure less the first; if there is only one figure, all of it.
#[must_use]
pub fn difference(figures: &[u64]) -> i64 {
    match figures {
        [first, .., last] => last.cast_signed() - first.cast_signed(),
        [only] => only.cast_signed(),
        [] => 0,
    }
}

/// One dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// The path as given.
    pub path: String,
    /// The file's size.
    pub bytes: u64,
    /// When it was taken, in milliseconds since 1970.
    pub taken_ms: u64,
    /// Bytes of an identifier in the file.
    pub id_size: u32,
    /// The JVM's version, where the heap has it.
    pub jvm: Option<String>,
    /// The JVM's object layout.
    pub layout: LayoutInfo,
    /// All objects in the dump.
    pub objects: u64,
    /// Those that GC roots reach.
    pub reachable_objects: u64,
    /// Their shallow sizes together.
    pub reachable_bytes: u64,
    /// Bytes of garbage.
    pub unreachable_bytes: u64,
    /// True if damage or missing GC roots keep some of the content out of the figures.
    pub partial: bool,
    /// What was damaged or missing.
    pub warnings: Vec<String>,
    /// Objects that count as GC roots because the dump, although whole, lacks roots; missing elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_roots: Option<AssumedRoots>,
    /// The sampling agent, where one was loaded.
    pub agent: Option<AgentInfo>,
}

/// Objects without referrers that count as GC roots because a dump lacks roots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssumedRoots {
    /// The kind of these roots.
    pub kind: Cow<'static, str>,
    /// Number of these objects.
    pub objects: u64,
    /// Bytes that they retain.
    pub retained_bytes: u64,
}

/// The JVM's object layout as inferred from a dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutInfo {
    /// Bytes of a reference.
    #[serde(rename = "ref")]
    pub reference: u32,
    /// Bytes of an object header.
    pub header: u32,
    /// Bytes of an array header.
    pub array_header: u32,
    /// Object alignment.
    pub align: u32,
    /// `addresses` when measured, `assumed` when only modelled.
    pub source: Cow<'static, str>,
}

/// The sampling agent's state in a dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// Mean bytes between samples.
    pub interval_bytes: u64,
    /// Samples whose object is alive.
    pub live_samples: u64,
    /// Distinct allocation sites.
    pub sites: u64,
    /// When it started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The JVM's process id.
    pub pid: u64,
}

/// A difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// Objects.
    pub objects: i64,
    /// Shallow bytes.
    pub shallow_bytes: i64,
}

/// A class's reachable instances, one figure for each dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassGrowth {
    /// Its name as in Java source.
    pub class: String,
    /// Its loader's class; null for the boot loader.
    pub loader: Option<String>,
    /// Reachable instances.
    pub objects: Vec<u64>,
    /// Their shallow sizes together.
    pub shallow_bytes: Vec<u64>,
    /// What they retain as a set.
    pub retained_bytes: Vec<u64>,
}

/// What a suspect is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It grew, and something says that it will go on.
    Leak,
    /// It grew.
    Growth,
    /// It grew as caches do until they are full.
    Cache,
    /// It grew once, as programs do when they start.
    Warmup,
}

impl Verdict {
    /// Whether it is something to worry about. Caches that fill and programs that warm up are not.
    #[must_use]
    pub const fn is_grave(self) -> bool {
        matches!(self, Self::Leak | Self::Growth)
    }
}

/// Something that accumulates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspect {
    /// 1 for the most growth.
    pub rank: u32,
    /// What it is taken for.
    pub verdict: Verdict,
    /// Why, in sentences that a reader can check.
    pub reasons: Vec<String>,
    /// Kind and name of what keeps it alive.
    pub root: String,
    /// The references from the root down to what accumulates.
    pub path: Vec<String>,
    /// The field whose content grows.
    pub holder: String,
    /// What accumulates there.
    pub class: String,
    /// Objects of that class, one figure for each dump.
    pub objects: Vec<u64>,
    /// Their shallow sizes together.
    pub shallow_bytes: Vec<u64>,
    /// What accumulates there retains.
    pub retained_bytes: Vec<u64>,
    /// Last dump less first.
    pub growth: Growth,
    /// The stacks that allocated the growth, where an agent sampled them.
    pub stacks: Vec<Stack>,
    /// How much of the growth the samples explain.
    pub coverage: Coverage,
    /// The name of the detector that knows this kind of leak.
    pub detector: Option<Cow<'static, str>>,
    /// How the retained bytes went from dump to dump: `steady`, `uneven`, `slowing`, `late`, `plateau`,
    /// `warm-up`, `jump`, `sawtooth`, `rising-sawtooth`. Null for two dumps.
    pub trend: Option<Cow<'static, str>>,
    /// Objects among which the growth is spread: 1 for one collection, more for one of each tenant, say.
    pub holders: u64,
    /// Other fields that hold the same objects: removing one reference would not free them.
    pub also_held_by: Vec<String>,
    /// Memory outside of the heap that direct buffers among the growing objects own, one figure for
    /// each dump.
    pub off_heap_bytes: Vec<u64>,
    /// What a trace tells of it; missing where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// Where no stack is known: what was allocated of the class since the first dump, by stack, the most bytes first. The agent
    /// counts all samples where it follows few; missing elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated_at: Vec<AllocatedAt>,
    /// The frame of the program that most of the growth was allocated through; missing where few stacks say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_through: Option<Through>,
    /// The answer in one sentence; empty in reports of earlier versions.
    #[serde(default)]
    pub headline: String,
    /// The address of the largest object that has the holding field, in the last dump: `0x7f00a8`. A class object for a
    /// static field. Missing if no object on the path has the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_id: Option<String>,
    /// The likely fix in one sentence; missing if nothing suggests one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likely_fix: Option<String>,
    /// Commands to paste that show more of it.
    #[serde(default)]
    pub next: Vec<String>,
    /// How the collections are used in which it grows; missing where the agent did not watch them (`usage=on`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
}

impl Suspect {
    /// Bytes by which it grew, in the heap and in direct buffers outside of it.
    #[must_use]
    pub fn growth_with_off_heap(&self) -> i64 {
        let off_heap = difference(&self.off_heap_bytes);
        self.growth.retained_bytes.saturating_add(off_heap)
    }
}

/// How collections are used, as the agent counted it up to the last dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// When counting began, in milliseconds since 1970: of several collections, of the first.
    pub since_ms: u64,
    /// Elements that were put.
    pub put: u64,
    /// Elements that were removed.
    pub removed: u64,
    /// Readings: an element was asked for, or a pass over all was begun.
    pub read: u64,
    /// Collections in which that was counted.
    pub watched: u64,
    /// How many there are at this place.
    pub collections: u64,
}

/// What one stack allocated of a class between two dumps, dead or alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedAt {
    /// Frames, the leaf first; empty where the JVM told none.
    pub frames: Vec<String>,
    /// Samples.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
}

/// A frame that most of a growth was allocated through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Through {
    /// The frame; class and method alone where it is one method at several lines.
    pub frame: String,
    /// Estimated bytes of the stacks that it is in.
    pub estimated_bytes: u64,
    /// Their share of those of all the suspect's stacks, in thousandths.
    pub permille: u64,
    /// The stacks that it is in.
    pub stacks: u64,
}

/// What a trace of the JVM tells of the objects that a suspect's stacks allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The suspect's stacks that the trace knows; the rest is not in the figures.
    pub stacks: u64,
    /// How the figures went, as `trend` of a suspect.
    pub trend: Cow<'static, str>,
    /// What the figures are compared at: `major` collections, `collections` of any kind, `ticks`.
    pub basis: Cow<'static, str>,
    /// How many moments are compared.
    pub points: u64,
    /// When what stays began to grow, milliseconds since 1970; null where it does not.
    pub began_ms: Option<u64>,
    /// The same since the trace of the run began.
    pub began_uptime_ms: Option<u64>,
    /// Whether it began within the trace, rather than before its first tick.
    pub began_within: Option<bool>,
    /// Last moment less first.
    pub growth: HistoryGrowth,
    /// Growth an hour.
    pub slope: HistorySlope,
    /// Of the bytes allocated, the part that was not collected, in thousandths; 1000 where that is not known.
    pub survival_permille: u64,
    /// Whether collections told what was collected.
    #[serde(default = "is_known")]
    pub survival_known: bool,
    /// What was alive over time.
    pub series: HistorySeries,
}

/// Of reports that older versions saved.
const fn is_known() -> bool {
    true
}

/// Growth over a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryGrowth {
    /// Objects.
    pub objects: i64,
    /// Bytes.
    pub bytes: i64,
}

/// Growth an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistorySlope {
    /// Bytes.
    pub bytes_per_hour: i64,
    /// Their 95 % interval; null where fewer than five moments are compared.
    pub ci95: Option<[i64; 2]>,
    /// Objects.
    pub objects_per_hour: i64,
}

/// What was alive over time, in at most 60 parts of it: the least of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistorySeries {
    /// The end of each part, milliseconds since 1970.
    pub time_ms: Vec<u64>,
    /// Objects.
    pub live_objects: Vec<u64>,
    /// Bytes.
    pub live_bytes: Vec<u64>,
}

/// A suspect's growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Growth {
    /// Objects.
    pub objects: i64,
    /// Shallow bytes.
    pub shallow_bytes: i64,
    /// Retained bytes.
    pub retained_bytes: i64,
}

/// An allocating stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Frames, the leaf first.
    pub frames: Vec<String>,
    /// What it allocated.
    pub class: String,
    /// Samples behind the estimate.
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// Its 95 % interval.
    pub ci95: [u64; 2],
    /// The same as samples alone say it; missing where allocations that the agent counted say no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledBytes>,
    /// Estimated objects.
    pub estimated_objects: u64,
    /// Bytes alive of those allocated, as samples tell, in thousandths.
    pub survival_permille: u64,
    /// Whether enough of the stack's samples were followed until they are collected to tell that.
    #[serde(default = "is_known")]
    pub survival_known: bool,
    /// Threads that allocated.
    pub threads: Vec<String>,
}

/// What samples say of a stack without counted allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledBytes {
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// Their 95 % interval.
    pub ci95: [u64; 2],
}

/// How much of a growth the samples explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Samples among the growing objects.
    pub samples: u64,
    /// Bytes that they stand for.
    pub sampled_bytes: u64,
    /// Bytes that grew.
    pub growth_bytes: u64,
    /// Bytes, at most, that have no sample because the agent could not keep it.
    pub unseen_bytes: u64,
    /// Bytes of the growth for which no sample speaks.
    #[serde(default)]
    pub unsampled_bytes: u64,
}
