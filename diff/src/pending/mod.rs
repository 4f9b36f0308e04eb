//! Pending work, grouped by its shape: threads with equal stacks, tasks in the queues of executors, incomplete futures,
//! suspended coroutines, subscriptions and network channels. A shape is a list of lines of text, such as stack frames.

mod chains;
mod executors;
mod futures;
mod suspects;
mod threads;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use heapdiff_units::counted;
use hprof::answers::Thread;
use hprof::dominators::Node;
use hprof::{ClassIndex, ObjectIndex, Snapshot};

pub(crate) use self::suspects::add_work;
use crate::names::name_of;

/// Maximum number of lines that describe a group ([`PendingWork::shape`]), without the last line `... N more`.
const LINES: usize = 40;

/// A kind of pending work. The kind determines which lines describe the work ([`PendingWork::shape`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PendingKind {
    /// Threads with equal stacks. The lines are the frames, innermost first.
    Threads,
    /// Virtual threads with equal stacks. The lines are the frames, innermost first.
    VirtualThreads,
    /// Tasks in the queue of an executor.
    Tasks,
    /// Incomplete futures, with the functions that wait for them.
    Futures,
    /// Suspended Kotlin coroutines. The lines are the functions, innermost first.
    Coroutines,
    /// Subscriptions of Reactor. The lines are the operators, upstream first.
    Subscriptions,
    /// Pipelines of Netty. The lines are the handlers.
    Pipelines,
}

impl PendingKind {
    const ALL: [Self; 7] = [
        Self::Threads,
        Self::VirtualThreads,
        Self::Tasks,
        Self::Futures,
        Self::Coroutines,
        Self::Subscriptions,
        Self::Pipelines,
    ];

    /// Returns the kind with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns a text for a group with `count` members, such as `3 threads with the same stack`.
    #[must_use]
    pub fn counted(self, count: u64) -> String {
        let noun = match self {
            Self::Threads => "thread",
            Self::VirtualThreads => "virtual thread",
            Self::Tasks => "queued task",
            Self::Futures => "incomplete future",
            Self::Coroutines => "suspended coroutine",
            Self::Subscriptions => "Reactor subscription",
            Self::Pipelines => "Netty channel",
        };
        let rest = if self.is_stack() {
            " with the same stack"
        } else {
            ""
        };
        counted(count, noun) + rest
    }

    /// True if the lines that describe the work ([`PendingWork::shape`]) are stack frames.
    #[must_use]
    pub const fn is_stack(self) -> bool {
        matches!(self, Self::Threads | Self::VirtualThreads)
    }

    /// Returns the name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::VirtualThreads => "virtual-threads",
            Self::Tasks => "tasks",
            Self::Futures => "futures",
            Self::Coroutines => "coroutines",
            Self::Subscriptions => "subscriptions",
            Self::Pipelines => "pipelines",
        }
    }
}

/// A group of pending work that is described by the same lines, such as stack frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingWork {
    /// The kind of the pending work.
    pub kind: PendingKind,
    /// The lines that describe the work, such as stack frames. All objects in `members` have the same lines.
    pub shape: Vec<String>,
    /// The threads, tasks, futures, coroutines, subscriptions or pipelines.
    pub members: Vec<ObjectIndex>,
    /// Bytes that the objects in `members` retain. No byte is counted twice.
    pub retained_bytes: u64,
}

/// Groups pending work by the lines that describe it ([`PendingWork::shape`]). Groups that retain the most come first.
/// A thread whose stack no other thread has is not listed.
///
/// `suspended` returns the stack frame at which a Kotlin function is suspended, from the class of its continuation and
/// the label; `None` if the frame is unknown.
///
/// Cost: reads the objects that represent the work.
#[must_use]
pub fn pending_work(
    snapshot: &Snapshot,
    threads: &[Thread],
    suspended: &mut dyn FnMut(&str, i64) -> Option<String>,
) -> Vec<PendingWork> {
    let mut groups = Groups::default();
    threads::add(threads, &mut groups);
    executors::add(snapshot, &mut groups);
    futures::add(snapshot, &mut groups);
    chains::add(snapshot, suspended, &mut groups);
    let mut all: Vec<PendingWork> = groups
        .0
        .into_iter()
        .map(|((kind, shape), members)| PendingWork {
            kind,
            shape,
            retained_bytes: retained(snapshot, &members),
            members,
        })
        .collect();
    all.sort_by_key(|group| Reverse((group.retained_bytes, group.members.len())));
    all
}

#[derive(Default)]
struct Groups(BTreeMap<(PendingKind, Vec<String>), Vec<ObjectIndex>>);

impl Groups {
    fn add(&mut self, kind: PendingKind, mut shape: Vec<String>, member: ObjectIndex) {
        if shape.len() > LINES {
            let more = shape.len() - LINES;
            shape.truncate(LINES);
            shape.push(format!("... {more} more"));
        }
        self.0.entry((kind, shape)).or_default().push(member);
    }
}

/// Returns the bytes that objects retain together. An object that another one of the objects dominates is not counted
/// again.
fn retained(snapshot: &Snapshot, objects: &[ObjectIndex]) -> u64 {
    let tree = snapshot.tree();
    let mut nodes: Vec<Node> = objects.iter().filter_map(|&o| tree.node(o)).collect();
    nodes.sort_unstable();
    let (mut bytes, mut end) = (0, Node::ROOT);
    for node in nodes {
        if node >= end {
            bytes += tree.retained_bytes(node);
            end = tree.end(node);
        }
    }
    // Objects without references are not nodes of the dominator tree.
    let leaves = objects
        .iter()
        .filter(|&&o| tree.node(o).is_none() && tree.is_reachable(o));
    bytes + leaves.map(|&o| snapshot.shallow_bytes(o)).sum::<u64>()
}

/// Returns the reachable instances of a class and its subclasses. The class is found by its name.
fn instances(snapshot: &Snapshot, name: &str) -> Vec<ObjectIndex> {
    let classes = snapshot.classes();
    let named = classes.by_name(name);
    if named.is_empty() {
        return Vec::new();
    }
    let all = classes.iter().map(|(class, _)| class);
    let is_sub = |class: &ClassIndex| named.iter().any(|of| classes.is_subclass(*class, *of));
    let own: Vec<ClassIndex> = all.filter(is_sub).collect();
    let mut objects = snapshot.instances(&own);
    objects.retain(|&object| snapshot.tree().is_reachable(object));
    objects
}

/// Returns the name of an object's class, without the part that differs from run to run.
fn class_name(snapshot: &Snapshot, object: ObjectIndex) -> String {
    name_of(snapshot, object)
}

#[cfg(test)]
mod tests;
