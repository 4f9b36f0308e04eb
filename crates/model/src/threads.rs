//! `heapdiff.threads/1`: threads, their stacks, and the objects that the threads and stacks hold.

use schemars::JsonSchema;
use serde::Serialize;

use crate::show::ObjectRef;
use crate::snapshot::SnapshotInfo;
use crate::words::ID;

/// The report of `heapdiff threads --format json`: threads, their stacks, and the objects that the threads and stacks
/// hold. Later versions may add keys.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ThreadsReport {
    /// Name of the schema.
    pub schema: &'static str,
    /// The dump.
    pub snapshot: SnapshotInfo,
    /// Totals of all threads, listed or not.
    pub totals: ThreadTotals,
    /// Groups of pending work: threads with equal stacks, tasks in queues of executors, incomplete futures, coroutines,
    /// subscriptions and channels. All members of a group have the same `shape`. Groups that retain the most come
    /// first. At most 10 unless --top sets another limit.
    pub pending: Vec<PendingRow>,
    /// Number of groups of pending work.
    pub pending_groups: u64,
    /// Number of threads that are not in `threads` because they are in a group of `pending`.
    #[serde(skip)]
    pub grouped_threads: u64,
    /// Threads, the largest retained size first. At most 100 unless --top sets another limit.
    pub threads: Vec<ThreadRow>,
}

/// Totals of all threads, listed or not.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct ThreadTotals {
    /// Number of threads.
    pub threads: u64,
    /// Number of virtual threads among them.
    pub virtual_threads: u64,
}

/// A group of pending work. All members of the group have the same lines in `shape`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PendingRow {
    /// The kind of work.
    #[schemars(extend("enum" = ["threads", "virtual-threads", "tasks", "futures", "coroutines", "subscriptions", "pipelines"]))]
    pub kind: &'static str,
    /// Number of members: threads, tasks, futures, coroutines, subscriptions or channels.
    pub count: u64,
    /// Bytes that the members of the group retain. No byte is counted twice.
    pub retained_bytes: u64,
    /// The lines that all members of the group have in common. Depending on the kind, these are frames, functions,
    /// operators or handlers.
    pub shape: Vec<String>,
    /// The member of the group that retains the most.
    pub largest: Option<ObjectRef>,
}

/// One thread.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ThreadRow {
    /// Name of the thread; null if the dump does not have it.
    pub name: Option<String>,
    /// Id of the thread object; null if the dump lacks it.
    #[schemars(extend("pattern" = ID))]
    pub id: Option<String>,
    /// Name of the class, in the form `com.acme.Foo$Bar` or `byte[]`.
    pub class: Option<String>,
    /// True for a daemon thread; null if the dump does not record it.
    pub daemon: Option<bool>,
    /// True for a virtual thread.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// Priority of the thread; null if the dump does not record it.
    pub priority: Option<i32>,
    /// State as in `java.lang.Thread.State`; null for virtual threads, and if the dump does not record it.
    #[schemars(extend("enum" = ["NEW", "RUNNABLE", "BLOCKED", "WAITING", "TIMED_WAITING", "TERMINATED", null]))]
    pub state: Option<&'static str>,
    /// Context class loader; null for a thread without a context class loader.
    pub context_loader: Option<ObjectRef>,
    /// Bytes that only this thread keeps alive: the thread object, and the objects that its frames hold.
    pub retained_bytes: Option<u64>,
    /// Number of objects that would be freed without the thread.
    pub retained_objects: Option<u64>,
    /// The stack, the innermost frame first.
    pub frames: Vec<FrameRow>,
    /// Objects that the thread's stack holds but that belong to none of `frames`.
    pub other_locals: Locals,
}

/// One frame.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FrameRow {
    /// The frame as in a Java stack trace: com.acme.Foo.add(Foo.java:42).
    pub frame: String,
    /// Objects that the local variables of the frame hold.
    #[serde(flatten)]
    pub locals: Locals,
}

/// Objects that local variables hold.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Locals {
    /// Number of objects that local variables hold.
    #[serde(rename = "locals")]
    pub count: u64,
    /// The objects that retain the most, at most 5.
    #[schemars(extend("maxItems" = 5))]
    pub largest: Vec<LocalRow>,
}

/// An object that a local variable holds.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct LocalRow {
    /// The kind of GC root: a Java frame's local variable, a JNI local, and so on.
    pub kind: &'static str,
    /// The object; null if the dump lacks it.
    pub object: Option<ObjectRef>,
    /// Bytes that would be freed if the object were removed.
    pub retained_bytes: u64,
}

impl ThreadsReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "heapdiff.threads/1";
}
