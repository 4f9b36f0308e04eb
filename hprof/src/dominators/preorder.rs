//! All reached objects that hold references in the preorder of the dominator tree.
//!
//! The core's part of the tree is known. Every other object hangs on its only referrer, and so on a
//! member of the core, behind which it comes in the order, before the next member. So each task
//! follows the rows of some members, and the tasks' results stand one after the other. Sinks and what hangs on them come
//! last, and are put in between when their dominators are known.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::dominators::annotated::{
    AnnotatedGraph, CHUNK, Cells, MappedBits, PrefetchQueue, each_bit,
};
use crate::dominators::core::{Core, LONG_ROW, SEVERAL};
use crate::dominators::lengauer_tarjan::Dominators;
use crate::dominators::search::AHEAD;
use crate::dominators::sinks::{Insertion, Referrers, Sink};
use crate::error::Result;
use crate::ids::NONE;

/// Objects with references that only soft references reach, and those that only finalizers do.
pub(super) type WeaklyReached = [Vec<u32>; 2];

/// The tree's nodes; the first is the super-root. Which object is at each place the notes tell.
pub(super) struct Preorder {
    /// The place above each.
    pub(super) parent: Array<u32>,
    pub(super) weak: WeaklyReached,
}

/// The result of laying the tree out.
pub(super) enum Outcome {
    Done(Preorder),
    /// The dominators are not those of the whole graph: these objects have to be witnesses.
    Missing(Vec<u32>),
}

/// Lays the tree out; the notes are used up, and then hold each object's place, [`NONE`] where an
/// object is unreachable.
///
/// Cost: one visit of each reference.
pub(super) fn lay_out(
    graph: &mut AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
    dominators: Dominators,
    store: &Store,
) -> Result<Outcome> {
    let Dominators { idom, levels, core } = dominators;
    let nodes = idom.len();
    let places = Places::new(&idom, store)?;
    let level_of = |number: u32| levels.iter().position(|&last| number <= last).unwrap_or(2);
    let checks = Checks::new(graph, &idom, &places, level_of);
    let mut members = Members::new(&idom, places);
    drop(idom);
    let mut long: Vec<u32> = core
        .long
        .iter()
        .map(|&object| graph.note(object))
        .filter(|&number| number != 0)
        .map(|number| members.place[number as usize])
        .collect();
    long.sort_unstable();
    // Holds each member's object at first, and its place once it has been laid out.
    let mut place = objects(graph, &core, &members.place, store)?;
    members.place = store.zeroed(0)?;
    let weak_from = |q: usize| match levels[0] == levels[2] {
        true => 0,
        false => level_of(graph.note(place[q])),
    };
    let mut level: Vec<u8> = Vec::new();
    if levels[0] != levels[2] {
        level.resize(nodes, 0);
        level
            .par_iter_mut()
            .enumerate()
            .skip(1)
            .for_each(|(q, level)| *level = weak_from(q) as u8);
    }
    let tasks = tasks(graph, nodes as u32, &long, &place);
    // From here on those that have a place in the order, or are sure to get one.
    let Core {
        members: mut placed,
        sinks,
        ..
    } = core;
    let mut referrers = Referrers::new(sinks.len(), store)?;
    let total = graph.split.inner as usize + 1;
    let mut parent: Array<u32> = store.zeroed(total)?;
    place[0] = 0;
    let mut missing: Vec<u32> = Vec::new();
    let mut len = 1;
    {
        let inner = graph.split.inner;
        let classes = graph.split.classes;
        let (cells, targets) = graph.shared();
        let batch = (rayon::current_num_threads() * 8).clamp(LEAST_BATCH, BATCH);
        let mut parts: Vec<TaskOutput> = (0..batch).map(|_| TaskOutput::default()).collect();
        for batch in tasks.chunks(batch) {
            let walk = Walk {
                cells,
                targets,
                inner,
                classes,
                sinks: sinks.len() as u32,
                placed: placed.shared(),
                object_at: &place,
                checks: &checks,
                level: &level,
            };
            parts
                .par_iter_mut()
                .zip(batch)
                .for_each(|(part, task)| walk.fill(part, task));
            let parts = &mut parts[..batch.len()];
            let mut jobs = Vec::with_capacity(parts.len());
            let mut parents = &mut parent[len..];
            for (part, task) in parts.iter().zip(batch) {
                let base = len as u32;
                for (q, at) in task.nodes().zip(&part.members) {
                    place[q as usize] = base + at;
                }
                let above = match task {
                    Task::Members(_) => 0,
                    Task::Row { member, .. } => place[*member as usize],
                };
                let count = part.object.len();
                let own;
                (own, parents) = parents.split_at_mut(count);
                for &(level, sink, at) in &part.weak_to_sinks {
                    referrers.add_weak(level, sink, placed_at(at, base, above));
                }
                jobs.push((part, task.nodes(), base, above, own));
                len += count;
            }
            let spans = referrers.spans();
            jobs.into_par_iter()
                .for_each(|(part, nodes, base, above, parent)| {
                    note(cells, &part.object, base);
                    for (to, &from) in parent.iter_mut().zip(&part.parent) {
                        *to = placed_at(from, base, above);
                    }
                    let to_sinks = part.to_sinks.iter();
                    spans.widen(to_sinks.map(|&(sink, at)| (sink, placed_at(at, base, above))));
                    for (q, &at) in nodes.zip(&part.members) {
                        parent[at as usize] = place[members.above(q) as usize];
                    }
                });
            parts.iter().for_each(|part| missing.extend(&part.missing));
            if let Some(laid_out) = batch.iter().map(|task| task.nodes().end).max() {
                members.shed(laid_out);
            }
        }
    }
    if !missing.is_empty() {
        return Ok(Outcome::Missing(missing));
    }
    let nodes = len;
    let hung = referrers.hang(&sinks, &parent[..nodes], store)?;
    drop(sinks);
    let (starts, hung_parent) =
        hang_sinks(graph, &hung, nodes as u32, &checks, &mut placed, store)?;
    let insertion = Insertion::new(&hung, &starts, nodes as u32);
    let place_of = |q: usize| place.get(q).map_or(nodes as u32, |&place| place);
    let moved = |q: u32| insertion.moved(place_of(q as usize));
    let dominated: Vec<(usize, Range<u32>)> = checks
        .of_class
        .iter()
        .map(|(level, q)| (*level, moved(q.start)..moved(q.end)))
        .collect();
    forget_unplaced(graph, &placed);
    let len = nodes + hung_parent.len();
    let weak = [1, 2].map(|wanted| {
        let of_level = (1..level.len()).filter(|&q| level[q] == wanted);
        let places = of_level.map(|q| place_of(q)..place_of(q + 1));
        let places: Vec<Range<u32>> = places.chain(insertion.of_level(wanted)).collect();
        objects_at(graph, &places, len)
    });
    if !hung.is_empty() {
        insertion.insert(&mut parent, &hung_parent);
        graph.renumber(|place| insertion.place(place));
    }
    parent.cut(len)?;
    drop(insertion);
    drop((hung, starts, hung_parent));
    drop((members, place, placed));
    // The tasks' results took memory that the tree's arrays need.
    mem::trim_heap();
    let preorder = Preorder { parent, weak };
    let missing = misplaced_classes(graph, class_of, &dominated, &preorder.weak);
    if missing.is_empty() {
        Ok(Outcome::Done(preorder))
    } else {
        Ok(Outcome::Missing(missing))
    }
}

/// A place that counts from a task's beginning, or is that of the member the task is about.
#[inline(always)]
fn placed_at(at: u32, base: u32, above: u32) -> u32 {
    match at {
        NONE => above,
        at => base + at,
    }
}

/// Follows the rows of sinks, whose nodes come after all others so far. Returns for each sink how many of these nodes come
/// before it, with one more for all, and what is above each: places so far.
fn hang_sinks(
    graph: &mut AnnotatedGraph,
    sinks: &[Sink],
    nodes: u32,
    checks: &Checks,
    placed: &mut MappedBits,
    store: &Store,
) -> Result<(Vec<u32>, Array<u32>)> {
    let mut starts: Vec<u32> = Vec::with_capacity(sinks.len() + 1);
    let mut parent: Array<u32> = store.zeroed(0)?;
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    let (cells, targets) = graph.shared();
    let count = (rayon::current_num_threads() * 8).clamp(LEAST_BATCH, BATCH);
    let mut parts: Vec<TaskOutput> = (0..count).map(|_| TaskOutput::default()).collect();
    let share = (sinks.len() / (count * BATCHES)).clamp(LEAST_SHARE, LARGEST_SHARE);
    for batch in sinks.chunks(share * count) {
        let walk = Walk {
            cells,
            targets,
            inner,
            classes,
            sinks: 0,
            placed: placed.shared(),
            object_at: &[],
            checks,
            level: &[],
        };
        let tasks = batch.par_chunks(share);
        parts
            .par_iter_mut()
            .zip(tasks)
            .for_each(|(part, sinks)| walk.fill_sinks(part, sinks));
        for (part, sinks) in parts.iter().zip(batch.chunks(share)) {
            let base = nodes + parent.len() as u32;
            let first = parent.len();
            parent.extend(&part.parent)?;
            let parent = &mut parent[first..];
            parent
                .iter_mut()
                .for_each(|above| *above = placed_at(*above, base, NONE));
            for (sink, &at) in sinks.iter().zip(&part.members) {
                parent[at as usize] = sink.above;
                starts.push(first as u32 + at);
            }
            note(cells, &part.object, base);
        }
    }
    starts.push(parent.len() as u32);
    Ok((starts, parent))
}

/// Notes the places of objects that have them one after the other.
fn note(cells: Cells<'_>, objects: &[u32], first: u32) {
    const AHEAD: usize = 32;
    for (i, (&object, place)) in objects.iter().zip(first..).enumerate() {
        if let Some(&later) = objects.get(i + AHEAD) {
            cells.fetch(later);
        }
        cells.note(object).store(place, Ordering::Relaxed);
    }
}

/// Sets the notes of objects that have no place to [`NONE`]. Those of the core's unreached members are zero, which is no
/// object's place.
fn forget_unplaced(graph: &mut AnnotatedGraph, placed: &MappedBits) {
    let inner = graph.split.inner;
    let (cells, _) = graph.shared();
    placed
        .words()
        .par_iter()
        .enumerate()
        .for_each(|(at, &word)| {
            let first = (at * 64) as u32;
            for object in first..first.saturating_add(64).min(inner) {
                let note = cells.note(object);
                if word & 1 << (object % 64) == 0 || note.load(Ordering::Relaxed) == 0 {
                    note.store(NONE, Ordering::Relaxed);
                }
            }
        });
}

/// The objects at some of the places, which are below a limit.
fn objects_at(graph: &AnnotatedGraph, places: &[Range<u32>], limit: usize) -> Vec<u32> {
    if places.is_empty() {
        return Vec::new();
    }
    let mut wanted = vec![0_u64; limit / 64 + 1];
    for place in places.iter().cloned().flatten() {
        wanted[place as usize / 64] |= 1 << (place % 64);
    }
    let objects = (0..graph.split.inner).into_par_iter();
    let found = objects.filter(|&object| match graph.note(object) {
        NONE => false,
        place => wanted[place as usize / 64] & 1 << (place % 64) != 0,
    });
    found.collect()
}

/// Objects that the dominator of their class does not dominate: of each part of the heap one for each
/// class. `dominated` are the levels of the class objects and the places of what their dominators
/// dominate.
fn misplaced_classes(
    graph: &AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
    dominated: &[(usize, Range<u32>)],
    weak: &WeaklyReached,
) -> Vec<u32> {
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    let level_of = |object: u32| {
        let is_in = |list: &[u32]| list.binary_search(&object).is_ok();
        match weak {
            [soft, last] if soft.is_empty() && last.is_empty() => 0,
            [soft, _] if is_in(soft) => 1,
            [_, last] if is_in(last) => 2,
            _ => 0,
        }
    };
    (0..inner.div_ceil(CHUNK as u32))
        .into_par_iter()
        .flat_map_iter(|chunk| {
            let first = chunk * CHUNK as u32;
            let last = first.saturating_add(CHUNK as u32).min(inner);
            let mut found: Vec<(u32, u32)> = Vec::new();
            for object in first.max(classes)..last {
                let (place, class) = (graph.note(object), class_of(object));
                if place == NONE || class == NONE {
                    continue;
                }
                let (level, places) = &dominated[class as usize];
                let (level, is_within) = (*level, places.contains(&place));
                if level == 0 && is_within {
                    continue;
                }
                let own = level_of(object);
                // A weaker path never counts beside a stronger one.
                let holds = level < own || level == own && is_within;
                if !holds && found.iter().all(|f| f.1 != class) {
                    found.push((object, class));
                }
            }
            found.into_iter().map(|f| f.0)
        })
        .collect()
}

/// The places of the core's numbers in the preorder of the core's part of the dominator tree.
struct Places {
    /// Of each number.
    place: Array<u32>,
    /// The end of each number's subtree.
    end: Array<u32>,
}

impl Places {
    /// From numbers in which dominators come first.
    ///
    /// # Panics
    /// When a dominator does not come first, which the search's order rules out.
    fn new(idom: &[u32], store: &Store) -> Result<Self> {
        let nodes = idom.len();
        // Holds each number's subtree size at first, then its place.
        let mut place: Array<u32> = store.zeroed(nodes)?;
        // Holds the next free place below each number, which in the end is that after its subtree.
        let mut end: Array<u32> = store.zeroed(nodes)?;
        let (places, next) = (&mut place[..], &mut end[..]);
        for n in (1..nodes).rev() {
            places[n] += 1;
            places[idom[n] as usize] += places[n];
        }
        next[0] = 1;
        places[0] = 0;
        for n in 1..nodes {
            let up = idom[n] as usize;
            // So every way up the tree ends at its root.
            assert!(up < n, "{n} is dominated by {up}");
            let (at, size) = (next[up], places[n]);
            next[up] = at + size;
            next[n] = at + 1;
            places[n] = at;
        }
        Ok(Self { place, end })
    }
}

/// The core's part of the dominator tree, in its preorder.
struct Members {
    /// The place of each number.
    place: Array<u32>,
    /// The place above each, from the last to the first, so that those of the first can be given back first.
    above: Array<u32>,
    nodes: u32,
}

impl Members {
    fn new(idom: &[u32], places: Places) -> Self {
        let Places { place, end } = places;
        let mut above = end;
        let nodes = idom.len() as u32;
        {
            let (place, above) = (&place[..], mem::as_atomic_u32(&mut above));
            place.par_iter().zip(idom).for_each(|(&at, &up)| {
                let above = &above[(nodes - 1 - at) as usize];
                above.store(place[up as usize], Ordering::Relaxed);
            });
        }
        Self {
            place,
            above,
            nodes,
        }
    }

    /// The place above the member at a place.
    #[inline(always)]
    fn above(&self, q: u32) -> u32 {
        self.above[(self.nodes - 1 - q) as usize]
    }

    /// Gives back what is known of the members before a place.
    fn shed(&mut self, first: u32) {
        self.above
            .shed((self.nodes - first.min(self.nodes)) as usize);
    }
}

/// The member at each place.
fn objects(
    graph: &mut AnnotatedGraph,
    core: &Core,
    place: &[u32],
    store: &Store,
) -> Result<Array<u32>> {
    const WORDS: usize = 1 << 8;
    let mut object: Array<u32> = store.zeroed(place.len())?;
    let (cells, _) = graph.shared();
    let out = mem::as_atomic_u32(&mut object);
    let words = core.members.words();
    words
        .par_chunks(WORDS)
        .enumerate()
        .for_each(|(chunk, words)| {
            let mut batch: Vec<(u32, u32)> = Vec::with_capacity(64);
            for (i, &word) in words.iter().enumerate() {
                // Each object needs two look-ups in far places, which are done stage by stage for the whole word.
                each_bit(chunk * WORDS + i, word, |object| {
                    let number = cells.number(object);
                    if number != 0 {
                        mem::prefetch(place, number as usize);
                        batch.push((object, number));
                    }
                });
                for (_, number) in &mut batch {
                    *number = place[*number as usize];
                    mem::prefetch(out, *number as usize);
                }
                for (object, place) in batch.drain(..) {
                    out[place as usize].store(object, Ordering::Relaxed);
                }
            }
        });
    object[0] = NONE;
    Ok(object)
}

/// The places that objects must have which refer to class objects.
struct Checks {
    /// For each class object its level of reachability, and the members that its dominator
    /// dominates.
    of_class: Vec<(usize, Range<u32>)>,
    /// For each level of the referring object and each class object the first of the members among
    /// which it has to be, and how many there are.
    of_level: [Vec<(u32, u32)>; 3],
}

impl Checks {
    fn new(
        graph: &AnnotatedGraph,
        idom: &[u32],
        places: &Places,
        level_of: impl Fn(u32) -> usize,
    ) -> Self {
        let of_class: Vec<(usize, Range<u32>)> = (0..graph.split.classes)
            .map(|class| match graph.note(class) {
                0 => (usize::MAX, 0..0),
                number => {
                    let dominator = idom[number as usize] as usize;
                    let among = places.place[dominator]..places.end[dominator];
                    (level_of(number), among)
                }
            })
            .collect();
        let of_level = |own: usize| {
            let among = |(level, range): &(usize, Range<u32>)| match level.cmp(&own) {
                // A weaker path never counts beside a stronger one.
                std::cmp::Ordering::Less => (0, u32::MAX),
                std::cmp::Ordering::Greater => (0, 0),
                std::cmp::Ordering::Equal => (range.start, range.end - range.start),
            };
            of_class.iter().map(among).collect()
        };
        let of_level = [0, 1, 2].map(of_level);
        Self { of_class, of_level }
    }
}

/// Tasks whose results are put together at a time, at most and at least: as few as keep all threads busy, since until
/// then each result is in memory twice.
const BATCH: usize = 64;
const LEAST_BATCH: usize = 16;
/// Members or references that one task begins with, at most and at least: the tasks of a batch have some part of the
/// tree in memory twice, which shall be small in small heaps too.
const LARGEST_SHARE: usize = 1 << 12;
const LEAST_SHARE: usize = 1 << 6;
/// Batches into which the members are divided at least, where that gives no smaller shares.
const BATCHES: usize = 1 << 5;

/// A part of the order.
enum Task {
    /// Members and what hangs on them, long rows excepted.
    Members(Range<u32>),
    /// Objects that a member holds by a part of its long row.
    Row {
        member: u32,
        object: u32,
        part: Range<usize>,
    },
}

impl Task {
    fn nodes(&self) -> Range<u32> {
        match self {
            Self::Members(range) => range.clone(),
            Self::Row { .. } => 0..0,
        }
    }
}

/// The last member of each run: those with long rows, and the very last, once.
fn ends(long: &[u32], nodes: u32) -> impl Iterator<Item = u32> {
    let rest = Some(nodes - 1).filter(|last| long.last() != Some(last));
    long.iter().copied().chain(rest)
}

fn tasks(graph: &AnnotatedGraph, nodes: u32, long: &[u32], object_at: &[u32]) -> Vec<Task> {
    let share = (nodes as usize / (BATCH * BATCHES)).clamp(LEAST_SHARE, LARGEST_SHARE);
    let mut tasks = Vec::new();
    let mut first = 1;
    for last in ends(long, nodes) {
        for begin in (first..=last).step_by(share) {
            tasks.push(Task::Members(begin..(begin + share as u32).min(last + 1)));
        }
        first = last + 1;
        let object = object_at[last as usize];
        if object != NONE && graph.row(object).len() >= LONG_ROW {
            let (first, end) = (graph.begin(object), graph.begin(object + 1));
            // Much of the heap may hang on one row, which is then laid out in smaller parts. Many rows are many tasks as they are.
            let share = match (end - first) * 8 < graph.targets.len() {
                true => LARGEST_SHARE,
                false => {
                    ((end - first) / (LEAST_BATCH * BATCHES)).clamp(LEAST_SHARE, LARGEST_SHARE)
                }
            };
            for begin in (first..end).step_by(share) {
                tasks.push(Task::Row {
                    member: last,
                    object,
                    part: begin..(begin + share).min(end),
                });
            }
        }
    }
    tasks
}

/// A task's result; places count from its beginning. Used again by later tasks.
#[derive(Default)]
struct TaskOutput {
    object: Vec<u32>,
    /// [`NONE`] for what hangs on the member that the task is about.
    parent: Vec<u32>,
    /// Places of the members.
    members: Vec<u32>,
    missing: Vec<u32>,
    /// References to sinks: sink, place of the referrer, [`NONE`] for the member that the task is about.
    to_sinks: Vec<(u32, u32)>,
    /// The same by what is not strongly reached, with its level.
    weak_to_sinks: Vec<(u8, u32, u32)>,
}

impl TaskOutput {
    fn clear(&mut self) {
        self.object.clear();
        self.parent.clear();
        self.members.clear();
        self.missing.clear();
        self.to_sinks.clear();
        self.weak_to_sinks.clear();
    }
}

struct Walk<'a> {
    cells: Cells<'a>,
    targets: &'a [u32],
    inner: u32,
    classes: u32,
    /// Number of sinks that are to be told.
    sinks: u32,
    /// A bit for each object of the core, and for each other once a task has it.
    placed: &'a [AtomicU64],
    object_at: &'a [u32],
    checks: &'a Checks,
    /// Of each member; empty when all are strong.
    level: &'a [u8],
}

impl Walk<'_> {
    fn fill(&self, part: &mut TaskOutput, task: &Task) {
        const AHEAD: u32 = 8;
        part.clear();
        let mut stack = Vec::new();
        match task {
            Task::Members(range) => {
                for q in range.clone() {
                    if q + 2 * AHEAD < range.end {
                        self.cells.fetch(self.object_at[(q + 2 * AHEAD) as usize]);
                        let later = self.object_at[(q + AHEAD) as usize];
                        mem::prefetch(self.targets, self.cells.begin(later) as usize);
                    }
                    let object = self.object_at[q as usize];
                    let at = part.object.len() as u32;
                    part.members.push(at);
                    part.object.push(object);
                    part.parent.push(NONE);
                    let row =
                        self.cells.begin(object) as usize..self.cells.begin(object + 1) as usize;
                    if row.len() < LONG_ROW {
                        self.follow(q, object, at, row, &mut stack, part);
                    }
                }
            }
            Task::Row {
                member,
                object,
                part: row,
            } => self.follow(*member, *object, NONE, row.clone(), &mut stack, part),
        }
    }

    /// Adds sinks and what hangs on them.
    fn fill_sinks(&self, part: &mut TaskOutput, sinks: &[Sink]) {
        part.clear();
        let mut stack = Vec::new();
        for (i, sink) in sinks.iter().enumerate() {
            if let Some(later) = sinks.get(i + AHEAD) {
                self.cells.fetch(later.object);
            }
            let (object, at) = (sink.object, part.object.len() as u32);
            self.placed[object as usize / 64].fetch_or(1 << (object % 64), Ordering::Relaxed);
            part.members.push(at);
            part.object.push(object);
            part.parent.push(NONE);
            let row = self.cells.begin(object) as usize..self.cells.begin(object + 1) as usize;
            self.follow(0, object, at, row, &mut stack, part);
        }
    }

    /// Whether an object has no place yet.
    #[inline(always)]
    fn hangs(&self, target: u32) -> bool {
        let placed = |target: u32| {
            self.placed[target as usize / 64].load(Ordering::Relaxed) & 1 << (target % 64)
        };
        target >= self.classes && target < self.inner && placed(target) == 0
    }

    /// Adds what hangs on an object, which is at `above`, by a part of its row.
    fn follow(
        &self,
        q: u32,
        object: u32,
        above: u32,
        row: Range<usize>,
        stack: &mut Vec<(Range<usize>, u32, u32)>,
        part: &mut TaskOutput,
    ) {
        let level = self.level.get(q as usize).copied().unwrap_or(0);
        let checks = &self.checks.of_level[usize::from(level)];
        let mut queue = PrefetchQueue::new(self.cells, self.targets);
        let is_missing = |class: u32| {
            let (low, len) = checks[class as usize];
            q.wrapping_sub(low) >= len
        };
        // The first element comes next anyway, so fetching it does not help.
        let fetch_first = |queue: &mut PrefetchQueue<'_>, row: &Range<usize>| {
            if row.len() > 2 {
                for &next in self.targets[row.clone()].iter().take(AHEAD).skip(1) {
                    if self.hangs(next) {
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
                let Some(up) = stack.pop() else { break };
                (row, object, above) = up;
                continue;
            };
            let target = self.targets[at];
            if row.len() >= AHEAD {
                let next = self.targets[at + AHEAD];
                if self.hangs(next) {
                    queue.fetch(next);
                }
            }
            if target < self.classes {
                if is_missing(target) && part.missing.last() != Some(&object) {
                    part.missing.push(object);
                }
            } else if self.hangs(target) {
                let number = self.cells.number(target);
                if number != object {
                    let sink = SEVERAL.wrapping_sub(number);
                    if sink < self.sinks {
                        match level {
                            0 => part.to_sinks.push((sink, above)),
                            _ => part.weak_to_sinks.push((level, sink, above)),
                        }
                    }
                    continue;
                }
                // A second reference from the same object is not followed. In a long row it can be
                // another task's.
                let bit = 1 << (target % 64);
                let word = &self.placed[target as usize / 64];
                if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                    continue;
                }
                let place = part.object.len() as u32;
                part.object.push(target);
                part.parent.push(above);
                let below =
                    self.cells.begin(target) as usize..self.cells.begin(target + 1) as usize;
                // Boxed values refer to nothing but their class.
                if !below.is_empty() {
                    fetch_first(&mut queue, &below);
                    stack.push((row, object, above));
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
        // The last member's row can be long too.
        assert_eq!(all(&[3, 9], 10), [3, 9]);
    }
}
