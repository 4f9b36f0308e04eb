//! `heapdiff.heap/1`: what holds most of one dump.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::diff::{Coverage, SnapshotInfo, Stack, Through};

/// What keeps most of one dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapReport {
    /// `heapdiff.heap/1`.
    pub schema: Cow<'static, str>,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// What was asked for that fits nothing.
    pub warnings: Vec<String>,
    /// What retains less is no suspect.
    pub least_bytes: u64,
    /// How much of the reachable bytes the suspects are; nothing is counted twice.
    pub explained_bytes: u64,
    /// The thread whose allocation failed, where the JVM wrote the dump for an `OutOfMemoryError`.
    pub died: Option<Died>,
    /// What keeps most, the most bytes first.
    pub suspects: Vec<HeapSuspect>,
    /// Threads that retain as much as a suspect, the most bytes first.
    pub threads: Vec<HeapThread>,
    /// Memory that the program could do without, the most bytes first; empty where it was not looked for.
    pub waste: Vec<HeapWaste>,
    /// Classes by the bytes of their reachable instances, the most first.
    pub classes: Vec<HeapClass>,
}

impl HeapReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.heap/1";
}

/// A thread whose allocation failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    /// Its name; null where the dump does not tell.
    pub thread: Option<String>,
    /// What it was doing: its frames, the innermost first, without the error's own.
    pub frames: Vec<String>,
}

/// A place where much has accumulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapSuspect {
    /// 1 for what retains most.
    pub rank: u32,
    /// What is known of it, in sentences that a reader can check.
    pub reasons: Vec<String>,
    /// Kind and name of what keeps it alive.
    pub root: String,
    /// The references from the root down to what has accumulated.
    pub path: Vec<String>,
    /// The field that holds it.
    pub holder: String,
    /// What has accumulated there.
    pub class: String,
    /// Objects of that class.
    pub objects: u64,
    /// Their shallow sizes together.
    pub shallow_bytes: u64,
    /// What has accumulated there retains.
    pub retained_bytes: u64,
    /// The name of the detector that knows this kind of holder.
    pub detector: Option<Cow<'static, str>>,
    /// Objects among which it is spread: 1 for one collection, more for one of each tenant, say.
    pub holders: u64,
    /// Other fields that hold the same objects: removing one reference would not free them.
    pub also_held_by: Vec<String>,
    /// Memory outside of the heap that direct buffers among the objects own.
    pub off_heap_bytes: u64,
    /// The stacks that allocated it, where an agent sampled them.
    pub stacks: Vec<Stack>,
    /// How much of it the samples explain.
    pub coverage: HeapCoverage,
    /// The frame of the program that most of it was allocated through; missing where few stacks say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_through: Option<Through>,
    /// The address of the largest object that has the holding field: `0x7f00a8`. A class object for a static field. Missing
    /// if no object on the path has the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_id: Option<String>,
    /// The likely fix for a known leak pattern; missing if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likely_fix: Option<String>,
    /// Commands to paste that show more of it.
    #[serde(default)]
    pub next: Vec<String>,
}

/// How much of what is held the samples explain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapCoverage {
    /// Samples among the objects.
    pub samples: u64,
    /// Bytes that they stand for.
    pub sampled_bytes: u64,
    /// Bytes, at most, that have no sample because the agent could not keep it.
    pub unseen_bytes: u64,
    /// Bytes for which no sample speaks.
    pub unsampled_bytes: u64,
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

/// A thread that retains much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapThread {
    /// Its name; null where the dump does not tell.
    pub name: Option<String>,
    /// Bytes that would be free without it.
    pub retained_bytes: u64,
    /// The frame whose local variable retains the most; null where none does.
    pub local: Option<ThreadHold>,
}

/// What a frame's local variable holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadHold {
    /// The frame.
    pub frame: String,
    /// The object's class.
    pub class: String,
    /// What it retains.
    pub retained_bytes: u64,
}

/// Memory of one kind that a program could do without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapWaste {
    /// Its name, as in `heapdiff.waste/1`.
    pub kind: Cow<'static, str>,
    /// The wasteful objects.
    pub objects: u64,
    /// The part of their bytes that could be saved.
    pub bytes_to_win: u64,
    /// The field that holds most of it; null where none does.
    pub holder: Option<String>,
}

/// A class's reachable instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapClass {
    /// Its name as in Java source.
    pub class: String,
    /// Its loader's class; null for the boot loader.
    pub loader: Option<String>,
    /// Reachable instances.
    pub objects: u64,
    /// Their shallow sizes together.
    pub shallow_bytes: u64,
    /// What they retain as a set.
    pub retained_bytes: u64,
}
