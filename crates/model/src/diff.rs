//! `heapdiff.diff/1`: objects that grew between dumps, and the fields that hold them.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::owners::OwnerFigures;
use crate::unreachable::UnreachableSummary;
use crate::words::{DETECTORS, TRENDS, or_null};

/// The report of `heapdiff BEFORE AFTER --format json`: which objects grew, and which fields hold them. Lists of
/// figures have one figure for each dump, in the order of the dumps. Later versions may add keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Name of the schema.
    pub schema: Cow<'static, str>,
    /// The dumps in the order in which they are compared. Dumps of one JVM are ordered by time; dumps of several JVMs
    /// are in the order of the command line.
    #[schemars(with = "Vec<crate::snapshot::SnapshotInfo>", extend("minItems" = 2))]
    pub snapshots: Vec<SnapshotInfo>,
    /// True if differences between the dumps can be read as growth. False in each of these cases: a dump is damaged,
    /// lacks GC roots, is the same as another, is of another program or JVM than the others, or was named out of order.
    /// If the value is false, requested gates are checked only with --allow-partial; without this option, the exit code
    /// is 3.
    #[serde(default = "comparable")]
    pub comparable: bool,
    /// Reasons why the dumps are not comparable, warnings about options that match nothing (--include, --exclude,
    /// --focus, rules of --ignore, --trace), and what recordings lack (--recording).
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Difference in reachable objects and in their bytes: the last dump minus the first.
    pub delta: Delta,
    /// Time until the reachable heap reaches the maximum heap, in milliseconds after the last dump. Null if
    /// `heap_trend.outlook` is not `ends`. Reports of earlier versions lack the key.
    #[serde(default)]
    #[schemars(extend("optional" = true))]
    pub oom: Option<Oom>,
    /// Trend of the reachable heap. Null with one dump, with two dumps less than a minute apart, and if the dumps are
    /// not comparable or not all of one JVM. Reports of earlier versions lack the key.
    #[serde(default)]
    #[schemars(extend("optional" = true))]
    pub heap_trend: Option<HeapTrend>,
    /// Bytes of the growth of the reachable heap that belong to the suspects. No byte is counted twice. With --top and
    /// --include, only the analyzed suspects are included.
    #[serde(default)]
    pub explained_bytes: u64,
    /// Minimum growth of a suspect in bytes; less growth is noise. The minimum is 16 KiB, or 1/2000 of the reachable
    /// bytes of the largest dump if that is more.
    #[serde(default)]
    pub noise_bytes: u64,
    /// Classes with different figures in the dumps, sorted by the growth of retained bytes. Contains all of them unless
    /// --top limits them.
    pub classes: Vec<ClassGrowth>,
    /// Suspects, the most growth first. At most 10 unless --top sets another limit.
    pub suspects: Vec<Suspect>,
    /// Memory by owner. Only with --owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "crate::owners::OwnerFigures")]
    pub owners: Option<OwnerFigures>,
    /// Summary of the unreachable objects. Only if they are more than 30 % of the last dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UnreachableSummary")]
    pub unreachable: Option<UnreachableSummary>,
    /// The recordings that were joined with the dumps. Only with --recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1))]
    pub recordings: Vec<JoinedRecording>,
    /// The parts of the report that are left out because the last argument is a summary, not a dump.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1))]
    pub left_out: Vec<String>,
}

/// The time at which the heap reaches its limit at the measured rate. Times are counted from the last figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Oom {
    /// The estimate, in milliseconds.
    pub at_ms: u64,
    /// Start of the 95 % interval, in milliseconds.
    pub from_ms: u64,
    /// End of the 95 % interval, in milliseconds.
    pub to_ms: u64,
}

/// The trend of the reachable heap over several dumps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapTrend {
    /// ends: the heap reaches its limit, see `oom`. no-end: the heap does not reach its limit at the measured rate.
    /// irregular: the rate varies so much that the time has no upper bound, or the heap only returned to earlier
    /// levels. no-limit: the heap grows, but its limit is unknown (--heap-limit). too-few: there are fewer than five dumps.
    #[schemars(extend("enum" = ["ends", "no-end", "irregular", "no-limit", "too-few"]))]
    pub outlook: Cow<'static, str>,
    /// Growth per hour, a Theil-Sen estimate. With ten or more dumps, dumps of a warm-up are left out.
    pub bytes_per_hour: i64,
    /// 95 % interval of the growth per hour; null with fewer than five dumps.
    pub ci95: Option<[i64; 2]>,
    /// The maximum heap; null if it is unknown.
    pub limit_bytes: Option<u64>,
}

/// A recording that was joined with the dumps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinedRecording {
    /// Path of the recording as given on the command line.
    pub path: String,
    /// How the recording was matched with the dumps. dump-event: the recording contains the event of a dump, with the
    /// time and the size of the dump's file. time: the recording and the dumps agree in time, JVM version and command,
    /// as far as these are known. none: not matched, because the recording contains neither times nor the name of a
    /// JVM.
    #[schemars(extend("enum" = ["dump-event", "time", "none"]))]
    pub matched: Cow<'static, str>,
    /// Number of samples of live objects that have a stack.
    pub survivors: u64,
    /// Number of samples of allocations that have a stack.
    pub allocations: u64,
    /// What the recording lacks, one sentence each.
    pub notes: Vec<String>,
}

/// Returns the value of `comparable` for reports of earlier versions, which lack the key.
const fn comparable() -> bool {
    true
}

impl Report {
    /// Adds a reason why the dumps cannot be compared. It is the first of the warnings.
    pub fn add_warning(&mut self, why: String) {
        self.comparable = false;
        self.warnings.insert(0, why);
    }

    /// Sets `left_out` of the report to the parts that any of the listed suspects leaves out.
    pub fn list_left_out(&mut self) {
        let is_missing = |part: &&str| {
            self.suspects
                .iter()
                .any(|s| s.left_out.iter().any(|own| own == part))
        };
        let parts = left_out::ALL.into_iter().filter(is_missing);
        self.left_out = parts.map(str::to_owned).collect();
    }

    /// Returns the bytes by which the reachable heap grew; 0 if it did not grow.
    #[must_use]
    pub fn grown_bytes(&self) -> u64 {
        u64::try_from(self.delta.shallow_bytes).unwrap_or(0)
    }

    /// Returns the growth in bytes that belongs to no suspect; 0 if it is less than the noise limit.
    #[must_use]
    pub fn unexplained_bytes(&self) -> u64 {
        let rest = self.grown_bytes().saturating_sub(self.explained_bytes);
        if rest < noise(&self.snapshots) {
            0
        } else {
            rest
        }
    }
}

/// Growth of less than this number of bytes is noise, whatever the size of the heap.
const LEAST: u64 = 16 << 10;
/// Growth of less than 1/`LEAST_PART` of the reachable bytes is noise.
const LEAST_PART: u64 = 2_000;

/// Returns the limit in bytes below which growth is noise, in a heap with `reachable` bytes.
#[must_use]
pub fn least(reachable: u64) -> u64 {
    (reachable / LEAST_PART).max(LEAST)
}

/// Returns the limit in bytes below which growth is noise, for these dumps.
#[must_use]
pub fn noise(snapshots: &[SnapshotInfo]) -> u64 {
    let reachable = snapshots.iter().map(|s| s.reachable_bytes).max();
    least(reachable.unwrap_or(0))
}

/// Returns the last figure minus the first. If there is only one figure, returns this figure.
#[must_use]
pub fn difference(figures: &[u64]) -> i64 {
    match figures {
        [first, .., last] => last.cast_signed() - first.cast_signed(),
        [only] => only.cast_signed(),
        [] => 0,
    }
}

/// One dump of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotInfo {
    /// Path of the dump as given on the command line.
    pub path: String,
    /// Size of the file on disk in bytes. For a compressed file, this is the compressed size.
    pub bytes: u64,
    /// When the dump was taken, in milliseconds since 1970, UTC.
    pub taken_ms: u64,
    /// Number of bytes of an object id in the file.
    pub id_size: u32,
    /// Version of the JVM: java.vm.version in the system properties of the heap; null if it was not found, or
    /// not searched for.
    pub jvm: Option<String>,
    /// The JVM's object layout, from which shallow sizes are computed.
    pub layout: LayoutInfo,
    /// Number of objects in the dump, class objects included, reachable or not.
    pub objects: u64,
    /// Number of objects that can be reached from a GC root by references that retain their target (--refs).
    pub reachable_objects: u64,
    /// Shallow bytes of the reachable objects.
    pub reachable_bytes: u64,
    /// Shallow bytes of the objects that no GC root reaches.
    pub unreachable_bytes: u64,
    /// True if the figures lack some of the dump's content because of damage or missing GC roots.
    pub partial: bool,
    /// Damage, missing data and oddities of the dump, one sentence each.
    pub warnings: Vec<String>,
    /// Objects without referrers that are treated as GC roots, because the dump is complete but lacks roots. Such dumps
    /// have no frames of parked virtual threads (JDK 19 to 21), or were written by jhsdb. Missing for other dumps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_roots: Option<AssumedRoots>,
    /// The agent; null if it was not loaded.
    pub agent: Option<AgentInfo>,
}

/// Objects without referrers that are treated as GC roots because a dump lacks roots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssumedRoots {
    /// The kind of these roots, with the same names as in the report of `paths`.
    pub kind: Cow<'static, str>,
    /// Number of objects that are treated as GC roots.
    pub objects: u64,
    /// Bytes that these objects retain.
    pub retained_bytes: u64,
}

/// The JVM's object layout as inferred from a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutInfo {
    /// Bytes of a reference in the heap: 4 when compressed.
    #[serde(rename = "ref")]
    #[schemars(extend("enum" = [4, 8]))]
    pub reference: u32,
    /// Bytes of an object's header.
    pub header: u32,
    /// Bytes of an array's header, its length included.
    pub array_header: u32,
    /// Alignment of objects in bytes. Object sizes are multiples of it.
    pub align: u32,
    /// addresses: the layout was measured from the distances between objects. assumed: the layout is a model, because
    /// ids are not addresses or there are too few objects.
    #[schemars(extend("enum" = ["addresses", "assumed"]))]
    pub source: Cow<'static, str>,
}

/// The state of the sampling agent in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// Mean bytes between samples; 0 if every allocation is sampled.
    pub interval_bytes: u64,
    /// Number of samples whose object is reachable.
    pub live_samples: u64,
    /// Number of stacks in the site table.
    pub sites: u64,
    /// When sampling began, in milliseconds since 1970, UTC.
    pub started_ms: u64,
    /// The JVM's process id.
    pub pid: u64,
}

/// A difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    /// Difference in the number of objects.
    pub objects: i64,
    /// Difference in shallow bytes.
    pub shallow_bytes: i64,
}

/// Reachable instances of a class, one figure for each dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassGrowth {
    /// Name of the class, in the form com.acme.Foo$Bar or byte[].
    pub class: String,
    /// Class of the loader that defined the class; null for the boot loader. The loader's id is not given, because ids
    /// have no meaning in another dump.
    pub loader: Option<String>,
    /// Number of reachable instances.
    #[schemars(extend("minItems" = 2))]
    pub objects: Vec<u64>,
    /// Sum of the shallow sizes of these objects, in bytes.
    #[schemars(extend("minItems" = 2))]
    pub shallow_bytes: Vec<u64>,
    /// Bytes that all instances together retain. No byte is counted twice.
    #[schemars(extend("minItems" = 2))]
    pub retained_bytes: Vec<u64>,
}

/// The verdict on a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The number or size of the objects grew, and evidence shows that the growth continues.
    Leak,
    /// The number or size of the objects grew, and no other verdict applies.
    #[default]
    Growth,
    /// The number or size of the objects grew as in a cache that is not yet full.
    Cache,
    /// The number or size of the objects grew a single time, as in a program that has just started.
    Warmup,
}

impl Verdict {
    /// True for leaks and growth. False for caches that fill up and for programs that warm up.
    #[must_use]
    pub const fn is_leak_or_growth(self) -> bool {
        matches!(self, Self::Leak | Self::Growth)
    }
}

/// A known leak of a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownLeak {
    /// Name of the leak in the tracker of the library, such as `JDK-8168469`.
    pub id: String,
    /// The library: the name of its jar without the version, or `jdk`.
    pub library: String,
    /// Version of the library in the last dump; null if it is unknown.
    pub version: Option<String>,
    /// The cause in one sentence.
    pub cause: String,
    /// The first versions without the leak, separated by commas; null if the library has no such version.
    pub fixed_in: Option<String>,
    /// Address of the leak in the tracker.
    pub link: String,
}

/// A place where objects accumulate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suspect {
    /// Rank of the suspect; 1 for the most growth.
    #[schemars(extend("minimum" = 1))]
    pub rank: u32,
    /// leak: the objects grew in number or size, and evidence shows that the growth continues; growth: they grew;
    /// cache: they grew as in a cache that is not yet full; warmup: they grew a single time, as in a program that has
    /// just started.
    pub verdict: Verdict,
    /// Reasons for the verdict, as sentences that a reader can check.
    pub reasons: Vec<String>,
    /// Kind and name of the GC root that keeps the objects alive.
    pub root: String,
    /// The references from the root down to the accumulating objects.
    pub path: Vec<String>,
    /// The field whose content grows.
    pub holder: String,
    /// Class of the accumulating objects.
    pub class: String,
    /// Number of accumulating objects of this class, one figure for each dump.
    #[schemars(extend("minItems" = 2))]
    pub objects: Vec<u64>,
    /// Sum of the shallow sizes of these objects, in bytes.
    #[schemars(extend("minItems" = 2))]
    pub shallow_bytes: Vec<u64>,
    /// Bytes that these objects retain.
    #[schemars(extend("minItems" = 2))]
    pub retained_bytes: Vec<u64>,
    /// Growth from the first dump to the last.
    pub growth: Growth,
    /// The stacks that allocated the growth, the most bytes first, at most 50. Stacks of direct buffers come
    /// first if memory outside of the heap grew more. Empty if no stack is known. `coverage` includes all
    /// stacks.
    pub stacks: Vec<Stack>,
    /// How much of the growth is covered by samples.
    pub coverage: Coverage,
    /// Name of the known leak pattern; null if no pattern matches. The first of `reasons` describes it.
    #[schemars(extend("enum" = or_null(&DETECTORS)))]
    pub detector: Option<Cow<'static, str>>,
    /// The field that refers to the ThreadLocal whose values hold the objects. Only for the leak pattern thread-local,
    /// and only if such a field is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub thread_local: Option<String>,
    /// How the retained bytes changed from dump to dump; null for two dumps.
    #[schemars(extend("enum" = or_null(&TRENDS)))]
    pub trend: Option<Cow<'static, str>>,
    /// Number of objects that hold the growing content. 1 for one collection; more if, for example, each tenant has a
    /// collection that grows.
    #[schemars(extend("minimum" = 1))]
    pub holders: u64,
    /// Other fields that hold the same objects.
    #[schemars(extend("maxItems" = 4))]
    pub also_held_by: Vec<String>,
    /// Memory outside of the heap that belongs to direct buffers among the growing objects, one figure for each dump;
    /// empty if there are no direct buffers.
    pub off_heap_bytes: Vec<u64>,
    /// History of the objects that the stacks of the suspect allocated, from a trace; only with --trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "History")]
    pub history: Option<History>,
    /// The stacks that allocated objects of the class since the first dump, dead or alive, the most bytes first, at
    /// most 10. Present only if `stacks` is empty because the agent tracks no sample of the growing objects
    /// (generational ZGC).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1, "maxItems" = 10))]
    pub allocated_at: Vec<AllocatedAt>,
    /// The innermost application frame through which at least two thirds of the bytes of the stacks were allocated.
    /// Missing if there are at most three stacks, or if there is no such frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Through")]
    pub allocated_through: Option<Through>,
    /// The result in one sentence: the holder, the class that accumulates, the growth, its share of the heap's growth,
    /// and the application frame that allocated the objects.
    #[serde(default)]
    #[schemars(extend("optional" = true))]
    pub headline: String,
    /// Address, in the last dump, of the largest object that has the holding field: 0x7f00a8. For a static field, the
    /// address of the class object. Missing if no object on the path has the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub holder_id: Option<String>,
    /// Pending work of which the objects are a part, in one sentence, such as "40 queued tasks: a.Mail, in the queue
    /// of mailer". Missing without such work, or if the last argument is a
    /// summary. `heapdiff threads` lists all pending work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub work: Option<String>,
    /// The known leak of a library that the suspect matches; null without a match. Reports of earlier versions lack the
    /// key.
    #[serde(default)]
    #[schemars(extend("optional" = true))]
    pub known: Option<KnownLeak>,
    /// Labels of the threads that allocated the growing objects, from the library heapdiff-labels. Missing if no sample
    /// of the objects has labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Labels")]
    pub labels: Option<Labels>,
    /// The likely fix in one sentence; missing if nothing suggests one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub likely_fix: Option<String>,
    /// Commands that show more about the suspect in the last dump.
    #[serde(default)]
    #[schemars(extend("optional" = true))]
    pub next: Vec<String>,
    /// How the program uses the collections that grow, up to the last dump. Present only if the agent watched them
    /// (usage=on).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Used")]
    pub usage: Option<Used>,
    /// The code that allocated the growth, with its probability and evidence, or why it is unknown. Only with
    /// --recording, for suspects without samples of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub joined: Option<String>,
    /// The parts of this suspect's report that are left out because the last argument is a summary, not a dump.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1))]
    pub left_out: Vec<String>,
}

/// The parts of a report that can be left out, in the order in which reports list them.
pub mod left_out {
    /// Other fields that hold the same objects, and the id of the holder.
    pub const PATHS: &str = "references on other paths";
    /// Limits and known leak patterns of suspects that are too small for the summary.
    pub const EVIDENCE: &str = "limits and known leak patterns of small suspects";
    /// Names and states of threads: on paths, or in the evidence for a suspect.
    pub const THREADS: &str = "names and states of threads";
    /// Stacks from a recording, for suspects that are too small for the summary.
    pub const CONTENT: &str = "stacks from the recording, for small suspects";
    /// Suggested commands that read objects.
    pub const COMMANDS: &str = "next commands";
    /// All parts.
    pub const ALL: [&str; 5] = [PATHS, EVIDENCE, THREADS, CONTENT, COMMANDS];
}

impl Suspect {
    /// True if the suspect is from the analysis of a single dump. Such an analysis is a comparison with an empty heap.
    #[must_use]
    pub const fn is_from_single_dump(&self) -> bool {
        self.retained_bytes.len() == 1
    }

    /// Returns the bytes that the suspect's objects retain in the last dump.
    #[must_use]
    pub fn retained(&self) -> u64 {
        self.retained_bytes.last().copied().unwrap_or(0)
    }

    /// Returns the size of the suspect's direct buffers in the last dump, which is memory outside of the heap, in
    /// bytes.
    #[must_use]
    pub fn off_heap(&self) -> u64 {
        self.off_heap_bytes.last().copied().unwrap_or(0)
    }

    /// Returns the growth of the suspect in bytes: of its retained size, and of its direct buffers outside of the heap.
    #[must_use]
    pub fn growth_with_off_heap(&self) -> i64 {
        let off_heap = difference(&self.off_heap_bytes);
        self.growth.retained_bytes.saturating_add(off_heap)
    }
}

/// How the program used collections. The agent counted until the last dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    /// When counting began for the first of the collections, in milliseconds since 1970.
    pub since_ms: u64,
    /// Number of elements that were added.
    pub put: u64,
    /// Number of elements that were removed.
    pub removed: u64,
    /// Number of reads: lookups of an element, and starts of an iteration.
    pub read: u64,
    /// Number of collections that were watched.
    #[schemars(extend("minimum" = 1))]
    pub watched: u64,
    /// Number of collections of the suspect, watched or not.
    #[schemars(extend("minimum" = 1))]
    pub collections: u64,
}

/// Objects of a class that one stack allocated between two dumps, dead or alive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocatedAt {
    /// Frames, the leaf first; empty if the JVM reported no stack.
    pub frames: Vec<String>,
    /// Number of samples.
    #[schemars(extend("minimum" = 1))]
    pub samples: u64,
    /// Estimated bytes.
    pub estimated_bytes: u64,
}

/// A frame through which most of a growth was allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Through {
    /// The frame. If the stacks have different lines of its method, this is only the class and the method.
    pub frame: String,
    /// Estimated bytes of the stacks with the frame.
    pub estimated_bytes: u64,
    /// Bytes of the stacks with the frame, as a share of the bytes of all stacks of the suspect, in thousandths.
    pub permille: u64,
    /// Number of stacks with the frame.
    #[schemars(extend("minimum" = 1))]
    pub stacks: u64,
}

/// History of the objects that the stacks of a suspect allocated, from a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Number of stacks of the suspect that are in the trace. The figures include only these stacks.
    pub stacks: u64,
    /// How the live figures changed over time. The values are the same as for `trend` of a suspect.
    #[schemars(extend("enum" = TRENDS))]
    pub trend: Cow<'static, str>,
    /// Kind of the live figures that are compared. major means the live objects after each full GC. collections means
    /// the minimum of the live objects between two GCs of any kind. ticks means the minimum in each of several equal
    /// parts of the time; it is used if there was no GC.
    #[schemars(extend("enum" = ["major", "collections", "ticks"]))]
    pub basis: Cow<'static, str>,
    /// Number of moments in time that are compared.
    pub points: u64,
    /// When the growth began, in milliseconds since 1970; null if there is no growth.
    pub began_ms: Option<u64>,
    /// When the growth began, in milliseconds since the trace of the run began; null if there is no growth.
    pub began_uptime_ms: Option<u64>,
    /// False if the growth began at the first data point or may have begun before it.
    pub began_within: Option<bool>,
    /// Growth from the first to the last compared moment.
    pub growth: HistoryGrowth,
    /// Growth per hour.
    pub slope: HistorySlope,
    /// Part of the allocated bytes that survived, in thousandths; 1000 if the part is not known.
    pub survival_permille: u64,
    /// False if it is not known which objects were collected. This is the case under generational ZGC before a full GC,
    /// and in a recording. Reports of earlier versions lack the key.
    #[serde(default = "default_survival_known")]
    #[schemars(extend("optional" = true))]
    pub survival_known: bool,
    /// Number of different ages of the live objects at the end of the run, counted in GCs of any kind. Missing if the
    /// trace has no single samples of the stacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub surviving_generations: Option<u64>,
    /// Live figures over time. The time is divided into at most 60 parts with equally many ticks; each figure is the
    /// minimum in one part.
    pub series: HistorySeries,
}

/// Returns the value of `survival_known` for reports of earlier versions, which lack the key.
const fn default_survival_known() -> bool {
    true
}

/// Growth over a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryGrowth {
    /// Growth in objects.
    pub objects: i64,
    /// Growth in bytes.
    pub bytes: i64,
}

/// Growth per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySlope {
    /// Growth in bytes per hour, a Theil-Sen estimate.
    pub bytes_per_hour: i64,
    /// 95 % confidence interval of the growth per hour. It includes the uncertainty of the estimates of live bytes.
    /// Null if fewer than five moments are compared.
    pub ci95: Option<[i64; 2]>,
    /// Growth in objects per hour.
    pub objects_per_hour: i64,
}

/// Live figures over time, in at most 60 parts: the minimum in each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySeries {
    /// End of each part of the time, in milliseconds since 1970.
    #[schemars(extend("maxItems" = 60))]
    pub time_ms: Vec<u64>,
    /// Live objects in each part.
    #[schemars(extend("maxItems" = 60))]
    pub live_objects: Vec<u64>,
    /// Live bytes in each part.
    #[schemars(extend("maxItems" = 60))]
    pub live_bytes: Vec<u64>,
}

/// Growth of a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Growth {
    /// Growth in objects.
    pub objects: i64,
    /// Growth in shallow bytes.
    pub shallow_bytes: i64,
    /// Growth in retained bytes.
    pub retained_bytes: i64,
}

/// An allocating stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// Frames, the leaf first: com.acme.Foo.add(Foo.java:42). ` (lambda)`, ` (object)` or ` (proxy)` marks
    /// methods or classes that the compiler or a library made. Empty if the JVM reported no stack.
    pub frames: Vec<String>,
    /// The allocated class; `class com.acme.Foo` if the stack defined a class.
    pub class: String,
    /// Number of samples that the estimate is based on.
    pub samples: u64,
    /// Estimated bytes. In a comparison, the net growth in bytes: allocated minus freed. Otherwise the bytes of live
    /// objects. The figure is exact in two cases: if the agent samples with interval 0, and if the dump contains the
    /// stack trace of each object.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate.
    pub ci95: [u64; 2],
    /// Estimate from samples alone. Present if allocation counts (count=on) made `estimated_bytes` more exact: the
    /// counts narrow the interval, and the estimate is moved into the narrower interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SampledBytes")]
    pub sampled: Option<SampledBytes>,
    /// Estimated number of objects.
    pub estimated_objects: u64,
    /// Part of the bytes allocated at this stack since the start that is still alive, in thousandths, estimated from
    /// samples.
    #[schemars(extend("maximum" = 1000))]
    pub survival_permille: u64,
    /// False if survival_permille is not reliable, for one of three reasons. Too few samples of the stack were tracked
    /// until they were collected (fewer than 16 are expected at the present interval or rate). Or all samples of the
    /// stack are of class definitions, and it is unknown how many of the defined classes were collected. Or the stack
    /// is not from the agent, but from a stack trace in the dump or from a recording. Reports of earlier versions lack
    /// the key.
    #[serde(default = "default_survival_known")]
    #[schemars(extend("optional" = true))]
    pub survival_known: bool,
    /// Names of the threads that allocated, the most samples first, at most 8.
    #[schemars(extend("maxItems" = 8))]
    pub threads: Vec<String>,
    /// Source of the stack. agent: the agent's samples in the dumps. recording: a recording of the same JVM. Missing
    /// without --recording. For a stack from a recording, estimated_bytes and estimated_objects are the growth of the
    /// suspect, multiplied by the probability of the stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Cow<'static, str>", extend("enum" = ["agent", "recording"]))]
    pub source: Option<Cow<'static, str>>,
    /// Probability that the stack allocated the growth, in thousandths. Only for stacks of recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", extend("maximum" = 1000))]
    pub probability_permille: Option<u64>,
    /// The evidence for the probability: 41 of 44 surviving samples. Only for stacks of recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub evidence: Option<String>,
}

/// Estimate for a stack that is computed from samples alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledBytes {
    /// Estimated bytes.
    pub estimated_bytes: u64,
    /// 95 % interval of the estimate.
    pub ci95: [u64; 2],
}

/// How much of a suspect's growth is covered by samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Number of samples among the growing objects.
    pub samples: u64,
    /// Bytes that the samples represent. The estimate may exceed growth_bytes.
    pub sampled_bytes: u64,
    /// Growth of the retained bytes, measured in the dumps.
    pub growth_bytes: u64,
    /// Maximum number of bytes of the growth whose samples the agent could not store. Intervals of stacks are widened
    /// by this amount.
    pub unseen_bytes: u64,
    /// Bytes of the growth that are not covered by samples: growth_bytes minus sampled_bytes.
    #[serde(default)]
    pub unsampled_bytes: u64,
}
