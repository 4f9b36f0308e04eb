//! Puts all reached objects with references in the preorder of the dominator tree. In the code, the place of an object
//! is its position in preorder.
//!
//! The dominator tree of the core (the objects whose dominators had to be computed, see `core.rs`) is known. Every
//! other object has one referrer. A walk from such an object to its referrer, to the referrer's only referrer, and so
//! on, leads to a core member. The object belongs to the first core member on this walk. In preorder, the object comes
//! after this core member and before the next one. So each task follows the adjacency lists of some members, and the
//! results of the tasks are concatenated:
//!
//! ```text
//! members        M1             M2        M3
//! preorder       M1 a b c       M2 d      M3 e f
//!                task 1                   task 2
//! ```
//!
//! Terminal merge nodes (objects with several referrers that lead to no such object) and their subtrees are appended
//! last. They are moved to their positions when their dominators are known.

use std::ops::Range;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::dominators::annotated::{AnnotatedGraph, CHUNK, Cells, MappedBits, each_bit};
use crate::dominators::core::Core;
use crate::dominators::lengauer_tarjan::Dominators;
use crate::dominators::sinks::{Insertion, Referrers, Sink};
use crate::dominators::tasks::{self, Task, TaskOutput, Walk};
use crate::dominators::thresholds::Thresholds;
use crate::error::Result;
use crate::ids::NONE;

/// Two ascending lists of object numbers: the objects that are reachable only through soft references, and the objects
/// that are reachable only through finalizers.
pub(super) type WeaklyReached = [Array<u32>; 2];

/// The nodes of the dominator tree in preorder. The first node is the super-root (the root of the tree). In the graph,
/// the per-object word of an object is the object's position in this order.
pub(super) struct Preorder {
    /// The position of each node's parent.
    pub(super) parent: Array<u32>,
    pub(super) weak: WeaklyReached,
    /// For each class object, its reachability level (0 for strong, 1 for soft, 2 for final references), and the
    /// positions of the nodes that the class object's dominator dominates.
    pub(super) of_class: Vec<(usize, Range<u32>)>,
}

/// The result of [`lay_out`]: the preorder, or the additional input for another attempt.
pub(super) enum Outcome {
    Done(Preorder),
    /// Some computed dominators are wrong. The computation has to be repeated, and must then also follow the references
    /// from these objects to class objects.
    Missing(Vec<u32>),
}

/// Assigns each reached object its position in the preorder of the dominator tree. Overwrites the per-object words of
/// the graph. Afterwards, the word of an object is its position, or [`NONE`] if the object is unreachable.
///
/// Cost: one visit of each reference.
pub(super) fn lay_out(
    graph: &mut AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
    dominators: Dominators,
    thresholds: Thresholds,
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
    // `place` has one element for each core member (an object whose dominator was computed), in the preorder of the
    // core. At first, an element is the object number of the member. When a task has given the member its position in
    // the whole tree, the element becomes this position.
    let mut place = objects(graph, &core, &members.place, store)?;
    let mut level: Array<u8> = store.zeroed(0)?;
    if levels[0] != levels[2] {
        level.resize(nodes)?;
        let (level, places) = (&mut level[..], &members.place[..]);
        for number in levels[0] + 1..=levels[2] {
            level[places[number as usize] as usize] = level_of(number) as u8;
        }
    }
    members.place = store.zeroed(0)?;
    let tasks = tasks::tasks(graph, nodes as u32, &long, &place, thresholds);
    // From here on, `placed` contains the objects that have a position in preorder or will certainly get one.
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
    let mut more_to_sinks = false;
    let mut weak: WeaklyReached = [store.zeroed(0)?, store.zeroed(0)?];
    let mut len = 1;
    {
        let inner = graph.split.inner;
        let classes = graph.split.classes;
        let (cells, targets) = graph.shared();
        let mut parts = TaskOutput::batch(store)?;
        for batch in tasks.chunks(parts.len()) {
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
                thresholds,
            };
            parts
                .par_iter_mut()
                .zip(batch)
                .try_for_each(|(part, task)| walk.fill(part, task))?;
            let parts = &mut parts[..batch.len()];
            let mut jobs = Vec::with_capacity(parts.len());
            let mut parents = &mut parent[len..];
            for (part, task) in parts.iter().zip(batch) {
                let base = len as u32;
                let places = &mut place[..];
                for (q, at) in task.nodes().zip(&part.members) {
                    places[q as usize] = base + at;
                }
                if !level.is_empty() {
                    part.for_each_weak_group(task, &level, |level, objects| {
                        weak[level].extend(objects)
                    })?;
                }
                let above = match task {
                    Task::Members(_) => 0,
                    Task::Row { member, .. } => place[*member as usize],
                };
                let count = part.object.len();
                let own;
                (own, parents) = parents.split_at_mut(count);
                jobs.push((part, task.nodes(), base, above, own));
                len += count;
            }
            let spans = referrers.spans();
            let (above_of, place) = (members.view(), &place[..]);
            jobs.into_par_iter()
                .for_each(|(part, nodes, base, above, parent)| {
                    note(cells, part.object.elements(), base);
                    for (to, &from) in parent.iter_mut().zip(part.parent.elements()) {
                        *to = absolute_position(from, base, above);
                    }
                    spans.add_recorded(&part.to_sinks, |at| absolute_position(at, base, above));
                    for (q, &at) in nodes.zip(&part.members) {
                        parent[at as usize] = place[above_of.above(q) as usize];
                    }
                });
            for part in parts.iter() {
                missing.extend(&part.missing);
                more_to_sinks |= part.more_to_sinks;
            }
            if let Some(laid_out) = batch.iter().map(|task| task.nodes().end).max() {
                members.release_before(laid_out);
            }
        }
    }
    if !missing.is_empty() {
        return Ok(Outcome::Missing(missing));
    }
    let nodes = len;
    let place_of = |q: usize| place.get(q).map_or(nodes as u32, |&place| place);
    weak.iter_mut().for_each(|weak| weak.par_sort_unstable());
    if more_to_sinks {
        thresholds.count(|tally| &tally.again, 1);
        referrers.add_references(graph, &placed, &weak);
    }
    if !sinks.is_empty() {
        referrers.add_weak_references(graph, &placed, &weak, store)?;
    }
    let hung = referrers.place_below_dominators(&sinks, &parent[..nodes], store)?;
    drop(sinks);
    thresholds.count(|tally| &tally.sinks, hung.len());
    let hanging = Hanging {
        nodes: nodes as u32,
        checks: &checks,
        thresholds,
    };
    let (starts, hung_parent) = hanging.follow(graph, &hung, &mut placed, store)?;
    let insertion = Insertion::new(&hung, &starts, nodes as u32, store)?;
    let moved = |q: u32| insertion.new_position(place_of(q as usize));
    let dominated: Vec<(usize, Range<u32>)> = checks
        .of_class
        .iter()
        .map(|(level, q)| (*level, moved(q.start)..moved(q.end)))
        .collect();
    clear_unplaced(graph, &placed);
    let len = nodes + hung_parent.len();
    for (weak, wanted) in weak.iter_mut().zip([1, 2]) {
        let sinks = hung.iter().filter(|sink| sink.level == wanted).count();
        if sinks > 0 {
            thresholds.count(|tally| &tally.weak_sinks, sinks);
            let more = objects_at(graph, insertion.of_level(wanted), &placed, store)?;
            weak.extend(&more)?;
            weak.sort_unstable();
        }
    }
    if !hung.is_empty() {
        insertion.insert(&mut parent, &hung_parent);
        graph.renumber(|place| insertion.place(place));
    }
    parent.cut(len)?;
    drop(insertion);
    drop((hung, starts, hung_parent));
    drop((members, place, placed));
    // Return the memory of the tasks' results to the system, because the arrays of the tree need it.
    mem::trim_heap();
    let missing = misplaced_classes(graph, class_of, &dominated, &weak);
    let preorder = Preorder {
        parent,
        weak,
        of_class: dominated,
    };
    if missing.is_empty() {
        Ok(Outcome::Done(preorder))
    } else {
        Ok(Outcome::Missing(missing))
    }
}

/// Converts a position that is relative to a task's first object to a position in the whole preorder. `base` is the
/// position of the task's first object. [`NONE`] is converted to `above`. For a [`Task::Row`], `above` is the position
/// of the object whose adjacency list the task reads.
#[inline(always)]
fn absolute_position(at: u32, base: u32, above: u32) -> u32 {
    match at {
        NONE => above,
        at => base + at,
    }
}

/// The data needed to give positions to terminal merge nodes and their subtrees, when all other nodes have positions.
/// Terminal merge nodes are objects with several referrers that lead to no such object.
struct Hanging<'a> {
    /// Number of nodes that have a position so far.
    nodes: u32,
    checks: &'a Checks,
    thresholds: Thresholds,
}

impl Hanging<'_> {
    /// Appends new nodes to the preorder: the terminal merge nodes (see [`Sink`]) and the objects in their subtrees.
    ///
    /// Returns two arrays. The first has, for each terminal merge node, the number of new nodes before it. Its last
    /// element is the number of all new nodes. The second array has the position of each new node's parent. In these
    /// positions, all new nodes still come after the other nodes. Afterwards, [`Insertion`] moves them.
    fn follow(
        &self,
        graph: &mut AnnotatedGraph,
        sinks: &[Sink],
        placed: &mut MappedBits,
        store: &Store,
    ) -> Result<(Array<u32>, Array<u32>)> {
        let mut starts: Array<u32> = store.zeroed(sinks.len() + 1)?;
        let mut parent: Array<u32> = store.zeroed(0)?;
        let (inner, classes) = (graph.split.inner, graph.split.classes);
        let (cells, targets) = graph.shared();
        let mut parts = TaskOutput::batch(store)?;
        let count = parts.len();
        let share = tasks::members_per_task(sinks.len(), count);
        let mut next = 0;
        for batch in sinks.chunks(share * count) {
            let walk = Walk {
                cells,
                targets,
                inner,
                classes,
                sinks: 0,
                placed: placed.shared(),
                object_at: &[],
                checks: self.checks,
                level: &[],
                thresholds: self.thresholds,
            };
            let tasks = batch.par_chunks(share);
            parts
                .par_iter_mut()
                .zip(tasks)
                .try_for_each(|(part, sinks)| walk.place_sinks(part, sinks))?;
            for (part, sinks) in parts.iter().zip(batch.chunks(share)) {
                let base = self.nodes + parent.len() as u32;
                let first = parent.len();
                parent.extend(part.parent.elements())?;
                let parent = &mut parent[first..];
                parent
                    .iter_mut()
                    .for_each(|above| *above = absolute_position(*above, base, NONE));
                let starts = &mut starts[next..];
                for ((sink, &at), start) in sinks.iter().zip(&part.members).zip(starts) {
                    parent[at as usize] = sink.above;
                    *start = first as u32 + at;
                }
                next += sinks.len();
                note(cells, part.object.elements(), base);
            }
        }
        starts[next] = parent.len() as u32;
        Ok((starts, parent))
    }
}

/// Stores consecutive positions, from `first` on, in the per-object words of `objects`.
fn note(cells: Cells<'_>, objects: &[u32], first: u32) {
    const AHEAD: usize = 32;
    for (i, (&object, place)) in objects.iter().zip(first..).enumerate() {
        if let Some(&later) = objects.get(i + AHEAD) {
            cells.fetch(later);
        }
        cells.note(object).store(place, Ordering::Relaxed);
    }
}

/// Sets the per-object words of objects without a position in preorder to [`NONE`]. Unreached objects of the core (see
/// [`Core`]) still have the word 0, which would be the position of the tree's root.
fn clear_unplaced(graph: &mut AnnotatedGraph, placed: &MappedBits) {
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

/// Returns the objects at the given positions in preorder, sorted by their numbers.
fn objects_at(
    graph: &AnnotatedGraph,
    places: impl Iterator<Item = Range<u32>>,
    placed: &MappedBits,
    store: &Store,
) -> Result<Array<u32>> {
    let mut places = places.filter(|places| !places.is_empty()).peekable();
    if places.peek().is_none() {
        return store.zeroed(0);
    }
    let inner = graph.split.inner;
    let mut wanted = MappedBits::new(inner as usize + 1, store)?;
    places.flatten().for_each(|place| wanted.insert(place));
    let mut found = MappedBits::new(inner as usize, store)?;
    let (rows, is_wanted) = (graph.view(), wanted.view());
    let words = found.words_mut().par_iter_mut().zip(placed.words());
    words.enumerate().for_each(|(at, (found, &placed))| {
        each_bit(at, placed, |object| {
            let place = rows.note(object);
            let is_found = place != NONE && is_wanted.contains(place);
            *found |= u64::from(is_found) << (object % 64);
        });
    });
    drop(wanted);
    found.list(store)
}

/// Finds objects that refer to their class, although the computed dominator of the class does not dominate them. Each
/// such object shows that this dominator is wrong. Of each [`CHUNK`] consecutive objects, returns at most one for each
/// class.
///
/// `dominated` contains, for each class object, its reachability level and the positions of the nodes that the class
/// object's dominator dominates.
fn misplaced_classes(
    graph: &AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
    dominated: &[(usize, Range<u32>)],
    weak: &WeaklyReached,
) -> Vec<u32> {
    let (inner, classes, rows) = (graph.split.inner, graph.split.classes, graph.view());
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
                let (place, class) = (rows.note(object), class_of(object));
                if place == NONE || class == NONE {
                    continue;
                }
                let (level, places) = &dominated[class as usize];
                let (level, is_within) = (*level, places.contains(&place));
                if level == 0 && is_within {
                    continue;
                }
                let own = level_of(object);
                // Only the strongest path to an object counts. A soft path, for example, has no effect if a path of
                // strong references reaches the object, too.
                let holds = level < own || level == own && is_within;
                if !holds && found.iter().all(|f| f.1 != class) {
                    found.push((object, class));
                }
            }
            found.into_iter().map(|f| f.0)
        })
        .collect()
}

/// For each member of the core (the objects whose dominators were computed), the range of its subtree in the preorder
/// of the core's dominator tree. Both arrays are indexed by the number of the member.
struct Places {
    /// The position of each core member in preorder.
    place: Array<u32>,
    /// For each core member, the first position after its subtree.
    end: Array<u32>,
}

impl Places {
    /// Computes positions in preorder from `idom`, the immediate dominators. Each dominator has a smaller number than
    /// the objects that it dominates.
    ///
    /// # Panics
    /// Panics if a dominator has a larger number than an object that it dominates. This cannot happen, because the
    /// search numbers a dominator before the objects that it dominates.
    fn new(idom: &[u32], store: &Store) -> Result<Self> {
        let nodes = idom.len();
        // At first, an element is the size of an object's subtree. Later, it is the position of this object in
        // preorder.
        let mut place: Array<u32> = store.zeroed(nodes)?;
        // For each object, the next free position in its subtree. When all positions are assigned, this is the first
        // position after the subtree.
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
            // Each dominator has a smaller number, so every path up the tree ends at the root.
            assert!(up < n, "{n} is dominated by {up}");
            let (at, size) = (next[up], places[n]);
            next[up] = at + size;
            next[n] = at + 1;
            places[n] = at;
        }
        Ok(Self { place, end })
    }
}

/// The dominator tree of the core, in preorder.
struct Members {
    /// The position of each core member in preorder, indexed by the number of the member.
    place: Array<u32>,
    /// The position of each core member's parent. The array starts with the last member, so that the memory of the
    /// first members can be freed first.
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

    fn view(&self) -> MembersView<'_> {
        MembersView {
            above: &self.above,
            nodes: self.nodes,
        }
    }

    /// Frees the stored parents of the core members whose positions are before `first`.
    fn release_before(&mut self, first: u32) {
        self.above
            .truncate_and_release((self.nodes - first.min(self.nodes)) as usize);
    }
}

/// The positions of the parents of core members, as a slice.
#[derive(Clone, Copy)]
struct MembersView<'a> {
    above: &'a [u32],
    nodes: u32,
}

impl MembersView<'_> {
    /// Returns the position of the parent of the core member at position `q`. A position is an index in the preorder of
    /// the core's dominator tree.
    #[inline(always)]
    fn above(self, q: u32) -> u32 {
        self.above[(self.nodes - 1 - q) as usize]
    }
}

/// Returns the core member at each position in the preorder of the core's dominator tree.
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
                // Each object needs two look-ups at distant addresses. To hide their latency, each look-up is done for
                // all objects of one word of the bitmap before the next look-up begins.
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

/// For each class object, the range of positions in which an object that refers to it must lie. If an object lies
/// elsewhere, the computed dominator of the class object is wrong.
pub(super) struct Checks {
    /// For each class object: its reachability level, and the range of core members that the class object's dominator
    /// dominates. The range consists of positions in the preorder of the core (see [`Core`]).
    of_class: Vec<(usize, Range<u32>)>,
    /// For each reachability level of a referring object, and for each class object: the start and the length of a
    /// range of positions. The referring object must be a core member in this range, or belong to such a member (see
    /// the top of this file).
    pub(super) of_level: [Vec<(u32, u32)>; 3],
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
                // Only the strongest path to an object counts. A soft path, for example, has no effect if a path of
                // strong references reaches the object, too.
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
