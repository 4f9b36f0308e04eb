//! `heapdiff.heap/1`: the objects and fields that hold most of one dump.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diff::{
    Coverage, Growth, JoinedRecording, KnownLeak, SnapshotInfo, Stack, Suspect, Through,
};
use crate::labels::Labels;
use crate::unreachable::UnreachableSummary;
use crate::words::{DETECTORS, or_null};

/// The report of `heapdiff DUMP --format json`: the objects and fields that hold most of one dump. One dump does not
/// show growth. Later versions may add keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapReport {
    /// Name of the schema.
    pub schema: Cow<'static, str>,
    /// The dump.
    #[schemars(with = "crate::snapshot::SnapshotInfo")]
    pub snapshot: SnapshotInfo,
    /// Warnings: the dump is incomplete, a pattern of --include or --exclude matches nothing, or a recording lacks data
    /// (--recording).
    pub warnings: Vec<String>,
    /// Minimum number of retained bytes of a suspect: 2 % of the reachable bytes, but at least 16 KiB.
    pub least_bytes: u64,
    /// Reachable bytes that the suspects retain. No byte is counted twice. With --top and --include, only the analyzed
    /// suspects are included.
    pub explained_bytes: u64,
    /// The thread whose allocation failed, if the JVM wrote the dump for an OutOfMemoryError. Null if the dump does not
    /// name such a thread.
    pub died: Option<Died>,
    /// Fields under which many bytes have accumulated. Those with the most retained bytes come first. At most 10 unless
    /// --top sets another limit.
    #[serde(with = "one_dump")]
    #[schemars(with = "Vec<HeapSuspect>")]
    pub suspects: Vec<Suspect>,
    /// Threads that retain least_bytes or more, the most bytes first, at most 20.
    pub threads: Vec<HeapThread>,
    /// Wasted memory, the largest savings first; `heapdiff waste` has details. Kinds without savings are
    /// missing.
    pub waste: Vec<HeapWaste>,
    /// Classes, sorted by the bytes of their reachable instances. All of them unless --top limits them.
    pub classes: Vec<HeapClass>,
    /// Summary of the unreachable objects. Only if they are more than 30 % of the dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UnreachableSummary")]
    pub unreachable: Option<UnreachableSummary>,
    /// The recordings that were joined with the dump. Only with --recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("minItems" = 1))]
    pub recordings: Vec<JoinedRecording>,
}

impl HeapReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.heap/1";
}

/// A thread whose allocation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Died {
    /// Name of the thread; null if the dump does not have it.
    pub thread: Option<String>,
    /// Frames of the thread, the innermost first, without the frames of the error itself.
    pub frames: Vec<String>,
}

/// Converts the suspects of one dump to JSON, in the form of [`HeapSuspect`].
mod one_dump {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{HeapSuspect, Suspect};

    pub(super) fn serialize<S: Serializer>(
        suspects: &[Suspect],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(suspects.iter().map(HeapSuspect::from))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Suspect>, D::Error> {
        let suspects = Vec::<HeapSuspect>::deserialize(deserializer)?;
        Ok(suspects.into_iter().map(Suspect::from).collect())
    }
}

/// A field under which many bytes have accumulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapSuspect {
    /// Rank of the suspect; 1 for the largest.
    #[schemars(extend("minimum" = 1))]
    pub rank: u32,
    /// Facts about the suspect, as sentences that a reader can check. One dump cannot show a leak, so no sentence
    /// claims one.
    pub reasons: Vec<String>,
    /// Kind and name of the GC root that keeps the objects alive.
    pub root: String,
    /// The references from the root down to the accumulated objects.
    pub path: Vec<String>,
    /// The field that holds the accumulated objects.
    pub holder: String,
    /// Class of the accumulated objects.
    pub class: String,
    /// Number of accumulated objects of this class.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects, in bytes.
    pub shallow_bytes: u64,
    /// Bytes that these objects retain.
    pub retained_bytes: u64,
    /// Name of the known leak pattern; null if no pattern matches. The first of `reasons` describes it.
    #[schemars(extend("enum" = or_null(&DETECTORS)))]
    pub detector: Option<Cow<'static, str>>,
    /// The field that refers to the ThreadLocal whose values hold the objects. Only for the leak pattern thread-local,
    /// and only if such a field is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub thread_local: Option<String>,
    /// Number of objects that hold the content. 1 for one collection; more if, for example, each tenant has a
    /// collection.
    #[schemars(extend("minimum" = 1))]
    pub holders: u64,
    /// Other fields that hold the same objects.
    #[schemars(extend("maxItems" = 4))]
    pub also_held_by: Vec<String>,
    /// Memory outside of the heap that belongs to direct buffers among the objects.
    pub off_heap_bytes: u64,
    /// The stacks that allocated the objects, the most bytes first, at most 50; empty if no stack is known.
    /// `coverage` includes all stacks.
    pub stacks: Vec<Stack>,
    /// Part of retained_bytes that samples cover.
    pub coverage: HeapCoverage,
    /// The innermost application frame through which at least two thirds of the bytes of the stacks were
    /// allocated. Missing if there are at most three stacks, or no such frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Through")]
    pub allocated_through: Option<Through>,
    /// Address of the largest object that has the holding field: 0x7f00a8. For a static field, the address of the class
    /// object. Missing if no object on the path has the field.
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
    /// Labels of the threads that allocated the objects, from the library heapdiff-labels. Missing if no sample of the
    /// objects has labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Labels")]
    pub labels: Option<Labels>,
    /// The likely fix in one sentence; missing if nothing suggests one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub likely_fix: Option<String>,
    /// Commands that show more about the suspect.
    #[serde(default)]
    #[schemars(extend("optional" = true))]
    pub next: Vec<String>,
    /// The code that allocated the objects, with its probability and evidence, or why it is unknown. Only with
    /// --recording, for suspects without samples of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub joined: Option<String>,
}

/// How much of the content under a holder is covered by samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapCoverage {
    /// Number of samples among the objects.
    pub samples: u64,
    /// Bytes that the samples represent.
    pub sampled_bytes: u64,
    /// Maximum number of bytes that have no sample because the agent could not store it. Intervals of stacks are
    /// widened by this amount.
    pub unseen_bytes: u64,
    /// Bytes that are not covered by samples: retained_bytes minus sampled_bytes.
    pub unsampled_bytes: u64,
}

impl From<&Suspect> for HeapSuspect {
    fn from(suspect: &Suspect) -> Self {
        let last = |figures: &[u64]| figures.last().copied().unwrap_or(0);
        let suspect = suspect.clone();
        Self {
            rank: suspect.rank,
            reasons: suspect.reasons,
            root: suspect.root,
            path: suspect.path,
            holder: suspect.holder,
            class: suspect.class,
            objects: last(&suspect.objects),
            shallow_bytes: last(&suspect.shallow_bytes),
            retained_bytes: last(&suspect.retained_bytes),
            detector: suspect.detector,
            thread_local: suspect.thread_local,
            holders: suspect.holders,
            also_held_by: suspect.also_held_by,
            off_heap_bytes: last(&suspect.off_heap_bytes),
            stacks: suspect.stacks,
            coverage: suspect.coverage.into(),
            allocated_through: suspect.allocated_through,
            holder_id: suspect.holder_id,
            work: suspect.work,
            known: suspect.known,
            labels: suspect.labels,
            likely_fix: suspect.likely_fix,
            next: suspect.next,
            joined: suspect.joined,
        }
    }
}

impl From<HeapSuspect> for Suspect {
    /// Converts a suspect from a comparison of this dump with an empty heap.
    fn from(suspect: HeapSuspect) -> Self {
        let coverage = suspect.coverage;
        Self {
            rank: suspect.rank,
            reasons: suspect.reasons,
            root: suspect.root,
            path: suspect.path,
            holder: suspect.holder,
            class: suspect.class,
            objects: vec![suspect.objects],
            shallow_bytes: vec![suspect.shallow_bytes],
            retained_bytes: vec![suspect.retained_bytes],
            growth: Growth {
                objects: suspect.objects.cast_signed(),
                shallow_bytes: suspect.shallow_bytes.cast_signed(),
                retained_bytes: suspect.retained_bytes.cast_signed(),
            },
            stacks: suspect.stacks,
            coverage: Coverage {
                samples: coverage.samples,
                sampled_bytes: coverage.sampled_bytes,
                growth_bytes: suspect.retained_bytes,
                unseen_bytes: coverage.unseen_bytes,
                unsampled_bytes: coverage.unsampled_bytes,
            },
            detector: suspect.detector,
            thread_local: suspect.thread_local,
            holders: suspect.holders,
            also_held_by: suspect.also_held_by,
            off_heap_bytes: vec![suspect.off_heap_bytes],
            allocated_through: suspect.allocated_through,
            holder_id: suspect.holder_id,
            work: suspect.work,
            known: suspect.known,
            labels: suspect.labels,
            likely_fix: suspect.likely_fix,
            next: suspect.next,
            joined: suspect.joined,
            ..Self::default()
        }
    }
}

impl From<Coverage> for HeapCoverage {
    fn from(coverage: Coverage) -> Self {
        Self {
            samples: coverage.samples,
            sampled_bytes: coverage.sampled_bytes,
            unseen_bytes: coverage.unseen_bytes,
            unsampled_bytes: coverage.unsampled_bytes,
        }
    }
}

/// A thread with a large retained size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapThread {
    /// Name of the thread; null if the dump does not have it.
    pub name: Option<String>,
    /// Bytes that would be freed without the thread.
    pub retained_bytes: u64,
    /// The local variable that retains most; null if no variable retains anything.
    pub local: Option<ThreadHold>,
}

/// An object that a local variable of a frame holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadHold {
    /// The frame of the local variable.
    pub frame: String,
    /// Class of the object.
    pub class: String,
    /// Bytes that the object retains.
    pub retained_bytes: u64,
}

/// Wasted memory of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapWaste {
    /// Kind of waste: one of the kinds in heapdiff.waste/1.
    pub kind: Cow<'static, str>,
    /// Number of wasteful objects. For duplicates, all objects that equal at least one other object.
    pub objects: u64,
    /// Bytes of these objects that could be saved. No byte is counted in two kinds.
    pub bytes_to_win: u64,
    /// The field that holds most of the wasted memory; null if none is known.
    pub holder: Option<String>,
}

/// Reachable instances of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeapClass {
    /// Name of the class, in the form com.acme.Foo$Bar or byte[].
    pub class: String,
    /// Class of the loader that defined it; null for the boot loader.
    pub loader: Option<String>,
    /// Number of reachable instances.
    pub objects: u64,
    /// Sum of the shallow sizes of these objects, in bytes.
    pub shallow_bytes: u64,
    /// Bytes that all instances together retain. No byte is counted twice.
    pub retained_bytes: u64,
}
