//! The tasks that put the nodes of the dominator tree in preorder. Each task handles some members of the core (the
//! objects whose dominators were computed), and the objects that belong to these members (see `preorder.rs`).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bytes::array::Store;
use crate::bytes::list::List;
use crate::bytes::mem;
use crate::dominators::annotated::{AnnotatedGraph, Cells, PrefetchQueue};
use crate::dominators::core::SEVERAL;
use crate::dominators::preorder::Checks;
use crate::dominators::search::AHEAD;
use crate::dominators::sinks::Sink;
use crate::dominators::thresholds::Thresholds;
use crate::error::Result;
use crate::ids::NONE;

/// Maximum and minimum number of tasks whose results are combined together (a batch). While the results of a batch are
/// combined, they are in memory twice, so a batch is only large enough to keep all threads busy.
const BATCH: usize = 64;
const LEAST_BATCH: usize = 16;
/// Maximum and minimum number of core members (objects whose dominators were computed), or of references, that one task
/// handles. While the results of a batch of tasks are combined, they are in memory twice. So tasks are smaller in a
/// small heap.
const LARGEST_SHARE: usize = 1 << 10;
const LEAST_SHARE: usize = 1 << 6;
/// Minimum number of batches (groups of tasks whose results are combined together). If the core (see `core.rs`) is
/// small, there are fewer batches, because a task handles at least [`LEAST_SHARE`] objects of the core.
const BATCHES: usize = 1 << 5;

/// Returns the number of tasks whose results are combined together.
fn batch() -> usize {
    (rayon::current_num_threads() * 8).clamp(LEAST_BATCH, BATCH)
}

/// Returns the number of core members (objects whose dominators were computed) that each task handles. `tasks` is the
/// number of tasks in a batch.
pub(super) fn members_per_task(members: usize, tasks: usize) -> usize {
    (members / (tasks * BATCHES)).clamp(LEAST_SHARE, LARGEST_SHARE)
}

/// The part of the preorder of the dominator tree that one task creates.
pub(super) enum Task {
    /// A range of core members, with the objects that belong to them (see `preorder.rs`). If a member has a long
    /// adjacency list, other tasks handle the objects that belong to it.
    Members(Range<u32>),
    /// A part of the long adjacency list of one core member. The task starts at the targets in this part. It handles
    /// the objects reached from there that belong to the member (see `preorder.rs`).
    Row {
        member: u32,
        object: u32,
        part: Range<u32>,
    },
}

impl Task {
    pub(super) fn nodes(&self) -> Range<u32> {
        match self {
            Self::Members(range) => range.clone(),
            Self::Row { .. } => 0..0,
        }
    }
}

/// Divides the core members (objects whose dominators were computed), in preorder, into parts. Returns the last member
/// of each part. A part ends with a member that has a long adjacency list, or with the last of all members.
fn ends(long: &[u32], nodes: u32) -> impl Iterator<Item = u32> {
    let rest = Some(nodes - 1).filter(|last| long.last() != Some(last));
    long.iter().copied().chain(rest)
}

/// Returns the tasks that put all core members, and the objects that belong to them, in preorder (see `preorder.rs`).
/// `long` has the positions of members with a long adjacency list.
pub(super) fn tasks(
    graph: &AnnotatedGraph,
    nodes: u32,
    long: &[u32],
    object_at: &[u32],
    thresholds: Thresholds,
) -> Vec<Task> {
    let share = members_per_task(nodes as usize, BATCH);
    let mut tasks = Vec::new();
    let mut first = 1;
    for last in ends(long, nodes) {
        for begin in (first..=last).step_by(share) {
            tasks.push(Task::Members(begin..(begin + share as u32).min(last + 1)));
        }
        first = last + 1;
        let object = object_at[last as usize];
        if object != NONE && graph.row(object).len() >= thresholds.long {
            let (first, end) = (graph.begin(object) as u32, graph.begin(object + 1) as u32);
            // If the adjacency list has at least an eighth of all references, the object may dominate a large part of
            // the heap. The list is then divided into smaller parts, so that all threads have work.
            let references = (end - first) as usize;
            let share = if references * 8 < graph.targets.len() {
                LARGEST_SHARE
            } else {
                self::members_per_task(references, LEAST_BATCH)
            };
            for begin in (first..end).step_by(share) {
                tasks.push(Task::Row {
                    member: last,
                    object,
                    part: begin..begin.saturating_add(share as u32).min(end),
                });
            }
        }
    }
    tasks
}

/// The result of a task. All positions count from the first object that the task handles. Later tasks reuse the memory
/// of the lists.
pub(super) struct TaskOutput {
    pub(super) object: List<u32>,
    /// For each element of `object`, the position of its parent. [`NONE`] for the objects whose positions are in
    /// `members`, and if the parent is not in `object`.
    pub(super) parent: List<u32>,
    /// The positions of the core members that the task handles, or of the terminal merge nodes (see [`Sink`]).
    pub(super) members: Vec<u32>,
    pub(super) missing: Vec<u32>,
    /// References from strongly reached objects to terminal merge nodes (see [`Sink`]). Each pair is the number of the
    /// terminal merge node and the position of the referrer. The position is [`NONE`] if the referrer is not in
    /// `object`.
    pub(super) to_sinks: Vec<(u32, u32)>,
    /// True if the task found more than [`Thresholds::noted`] references to terminal merge nodes (see [`Sink`]). Then
    /// `to_sinks` contains only the first [`Thresholds::noted`] of these references.
    pub(super) more_to_sinks: bool,
    /// The stack of the walk over objects. Each element describes an ancestor of the current object with four numbers:
    /// the start and the end of the unread part of its adjacency list, the ancestor, and the ancestor's position.
    stack: List<[u32; 4]>,
}

impl TaskOutput {
    /// Creates empty results for the tasks of a batch.
    pub(super) fn batch(store: &Store) -> Result<Vec<Self>> {
        (0..batch()).map(|_| Self::new(store)).collect()
    }

    fn new(store: &Store) -> Result<Self> {
        Ok(Self {
            object: List::new(store)?,
            parent: List::new(store)?,
            members: Vec::new(),
            missing: Vec::new(),
            to_sinks: Vec::new(),
            more_to_sinks: false,
            stack: List::new(store)?,
        })
    }

    /// Adds an object to the task's part of the preorder, and returns its position.
    #[inline(always)]
    fn add(&mut self, object: u32, parent: u32) -> Result<u32> {
        let place = self.object.len() as u32;
        self.object.push(object)?;
        self.parent.push(parent)?;
        Ok(place)
    }

    fn make_contiguous(&mut self) -> Result<()> {
        self.object.make_contiguous()?;
        self.parent.make_contiguous()
    }

    /// Calls `visit` with groups of objects that only weaker references reach. The first argument of `visit` is 0 if
    /// soft references reach the group, and 1 if finalizers do. The second argument is the objects. `level` has the
    /// reachability level of each core member.
    pub(super) fn for_each_weak_group(
        &self,
        task: &Task,
        level: &[u8],
        mut visit: impl FnMut(usize, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let all = self.object.elements();
        let mut weak = |member: u32, objects: Range<usize>| match level[member as usize] {
            0 => Ok(()),
            level => visit(usize::from(level) - 1, &all[objects]),
        };
        match task {
            Task::Members(members) => {
                let ends = self.members.iter().skip(1).map(|&end| end as usize);
                let ends = ends.chain([all.len()]);
                for ((member, &begin), end) in members.clone().zip(&self.members).zip(ends) {
                    weak(member, begin as usize..end)?;
                }
                Ok(())
            }
            Task::Row { member, .. } => weak(*member, 0..all.len()),
        }
    }

    fn clear(&mut self) {
        self.object.clear();
        self.parent.clear();
        self.members.clear();
        self.missing.clear();
        self.to_sinks.clear();
        self.more_to_sinks = false;
    }
}

pub(super) struct Walk<'a> {
    pub(super) cells: Cells<'a>,
    pub(super) targets: &'a [u32],
    pub(super) inner: u32,
    pub(super) classes: u32,
    /// Number of terminal merge nodes (see [`Sink`]) whose referrers are recorded. Their numbers are smaller than this.
    pub(super) sinks: u32,
    /// One bit for each object. The bits of objects in the core are set from the start. The bit of another object is
    /// set when a task has given the object a position.
    pub(super) placed: &'a [AtomicU64],
    pub(super) object_at: &'a [u32],
    pub(super) checks: &'a Checks,
    /// The reachability level of each core member (0 strong, 1 soft, 2 final). Empty if strong references reach all
    /// members.
    pub(super) level: &'a [u8],
    pub(super) thresholds: Thresholds,
}

impl Walk<'_> {
    pub(super) fn fill(&self, part: &mut TaskOutput, task: &Task) -> Result<()> {
        const AHEAD: u32 = 8;
        part.clear();
        match task {
            Task::Members(range) => {
                for q in range.clone() {
                    if q + 2 * AHEAD < range.end {
                        self.cells.fetch(self.object_at[(q + 2 * AHEAD) as usize]);
                        let later = self.object_at[(q + AHEAD) as usize];
                        mem::prefetch(self.targets, self.cells.begin(later) as usize);
                    }
                    let object = self.object_at[q as usize];
                    let at = part.add(object, NONE)?;
                    part.members.push(at);
                    let row = self.cells.begin(object)..self.cells.begin(object + 1);
                    if row.len() < self.thresholds.long {
                        self.follow(q, object, at, row, part)?;
                    }
                }
            }
            Task::Row {
                member,
                object,
                part: row,
            } => self.follow(*member, *object, NONE, row.clone(), part)?,
        }
        part.make_contiguous()
    }

    /// Assigns positions in the preorder to terminal merge nodes (see [`Sink`]) and to the objects in their subtrees.
    pub(super) fn place_sinks(&self, part: &mut TaskOutput, sinks: &[Sink]) -> Result<()> {
        part.clear();
        for (i, sink) in sinks.iter().enumerate() {
            if let Some(later) = sinks.get(i + AHEAD) {
                self.cells.fetch(later.object);
            }
            let object = sink.object;
            self.placed[object as usize / 64].fetch_or(1 << (object % 64), Ordering::Relaxed);
            let at = part.add(object, NONE)?;
            part.members.push(at);
            let row = self.cells.begin(object)..self.cells.begin(object + 1);
            self.follow(0, object, at, row, part)?;
        }
        part.make_contiguous()
    }

    /// Returns true if an object still needs a position in the tree: it is no class object, has references, and has no
    /// position yet.
    #[inline(always)]
    fn needs_position(&self, target: u32) -> bool {
        let placed = |target: u32| {
            self.placed[target as usize / 64].load(Ordering::Relaxed) & 1 << (target % 64)
        };
        target >= self.classes && target < self.inner && placed(target) == 0
    }

    /// Assigns positions to the objects that belong to `object` (see `preorder.rs`) and are reached from `row`, a part
    /// of its adjacency list. `above` is the position of `object`.
    fn follow(
        &self,
        q: u32,
        object: u32,
        above: u32,
        row: Range<u32>,
        part: &mut TaskOutput,
    ) -> Result<()> {
        let level = self.level.get(q as usize).copied().unwrap_or(0);
        let checks = &self.checks.of_level[usize::from(level)];
        let mut queue = PrefetchQueue::new(self.cells, self.targets);
        let is_missing = |class: u32| {
            let (low, len) = checks[class as usize];
            q.wrapping_sub(low) >= len
        };
        // The walk reads the first element of the list next, so prefetching this element now would be too late.
        let fetch_first = |queue: &mut PrefetchQueue<'_>, row: &Range<u32>| {
            if row.len() > 2 {
                let row = row.start as usize..row.end as usize;
                for &next in self.targets[row].iter().take(AHEAD).skip(1) {
                    if self.needs_position(next) {
                        queue.fetch(next);
                    }
                }
            }
        };
        let (mut object, mut above) = (object, above);
        let mut row = row;
        fetch_first(&mut queue, &row);
        loop {
            let Some(at) = row.next() else {
                let Some([start, end, of, place]) = part.stack.pop() else {
                    return Ok(());
                };
                (row, object, above) = (start..end, of, place);
                continue;
            };
            let at = at as usize;
            let target = self.targets[at];
            if row.len() >= AHEAD {
                let next = self.targets[at + AHEAD];
                if self.needs_position(next) {
                    queue.fetch(next);
                }
            }
            if target < self.classes {
                if is_missing(target) && part.missing.last() != Some(&object) {
                    part.missing.push(object);
                }
            } else if self.needs_position(target) {
                let number = self.cells.number(target);
                if number != object {
                    let sink = SEVERAL.wrapping_sub(number);
                    if sink < self.sinks && level == 0 {
                        if part.to_sinks.len() < self.thresholds.noted {
                            part.to_sinks.push((sink, above))
                        } else {
                            part.more_to_sinks = true
                        }
                    }
                    continue;
                }
                // The object may refer to the target several times. Only the reference that is found first counts. If
                // the adjacency list is long, another task may already have found a reference to the target.
                let bit = 1 << (target % 64);
                let word = &self.placed[target as usize / 64];
                if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                    continue;
                }
                let place = part.add(target, above)?;
                let below = self.cells.begin(target)..self.cells.begin(target + 1);
                // An adjacency list may be empty. An example is the list of a boxed value, because the value refers
                // only to its class.
                if !below.is_empty() {
                    fetch_first(&mut queue, &below);
                    // The unread part of a linked-list node's adjacency list usually has only references to leaves
                    // (objects without references). Skipping these references keeps the stack small for long lists.
                    if row.len() < AHEAD {
                        while !row.is_empty() && self.targets[row.start as usize] >= self.inner {
                            row.start += 1;
                        }
                    }
                    if !row.is_empty() {
                        part.stack.push([row.start, row.end, object, above])?;
                    }
                    (row, object, above) = (below, target, place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ends;

    #[test]
    fn runs_end_once_each() {
        let all = |long: &[u32], nodes| ends(long, nodes).collect::<Vec<_>>();
        assert_eq!(all(&[], 10), [9]);
        assert_eq!(all(&[3, 5], 10), [3, 5, 9]);
        // `ends` returns the last object of each part. The last of all objects is returned only once, even if it has a
        // long adjacency list.
        assert_eq!(all(&[3, 9], 10), [3, 9]);
    }
}
