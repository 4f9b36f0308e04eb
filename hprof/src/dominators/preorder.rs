//! All reached objects that hold references in the preorder of the dominator tree.
//!
//! The core's part of the tree is known. Every other object hangs on its only referrer, and so on a
//! member of the core, behind which it comes in the order, before the next member. So each task
//! follows the rows of some members, and the tasks' results stand one after the other. Sinks and what hangs on them come
//! last, and are put in between when their dominators are known.

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

/// Objects with references that only soft references reach, and those that only finalizers do, ascending.
pub(super) type WeaklyReached = [Array<u32>; 2];

/// The tree's nodes; the first is the super-root. Which object is at each place the notes tell.
pub(super) struct Preorder {
    /// The place above each.
    pub(super) parent: Array<u32>,
    pub(super) weak: WeaklyReached,
    /// For each class object its level of reachability, and the nodes that its dominator dominates.
    pub(super) of_class: Vec<(usize, Range<u32>)>,
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
    // Holds each member's object at first, and its place once it has been laid out.
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
                    part.each_weak(task, &level, |level, objects| weak[level].extend(objects))?;
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
                        *to = placed_at(from, base, above);
                    }
                    spans.widen_noted(&part.to_sinks, |at| placed_at(at, base, above));
                    for (q, &at) in nodes.zip(&part.members) {
                        parent[at as usize] = place[above_of.above(q) as usize];
                    }
                });
            for part in parts.iter() {
                missing.extend(&part.missing);
                more_to_sinks |= part.more_to_sinks;
            }
            if let Some(laid_out) = batch.iter().map(|task| task.nodes().end).max() {
                members.shed(laid_out);
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
        referrers.widen_by_rows(graph, &placed, &weak);
    }
    if !sinks.is_empty() {
        referrers.widen_weakly(graph, &placed, &weak, store)?;
    }
    let hung = referrers.hang(&sinks, &parent[..nodes], store)?;
    drop(sinks);
    thresholds.count(|tally| &tally.sinks, hung.len());
    let hanging = Hanging {
        nodes: nodes as u32,
        checks: &checks,
        thresholds,
    };
    let (starts, hung_parent) = hanging.follow(graph, &hung, &mut placed, store)?;
    let insertion = Insertion::new(&hung, &starts, nodes as u32, store)?;
    let moved = |q: u32| insertion.moved(place_of(q as usize));
    let dominated: Vec<(usize, Range<u32>)> = checks
        .of_class
        .iter()
        .map(|(level, q)| (*level, moved(q.start)..moved(q.end)))
        .collect();
    forget_unplaced(graph, &placed);
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
    // The tasks' results took memory that the tree's arrays need.
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

/// A place that counts from a task's beginning, or is that of the member the task is about.
#[inline(always)]
fn placed_at(at: u32, base: u32, above: u32) -> u32 {
    match at {
        NONE => above,
        at => base + at,
    }
}

/// What sinks are followed with when all else is laid out.
struct Hanging<'a> {
    /// The nodes so far.
    nodes: u32,
    checks: &'a Checks,
    thresholds: Thresholds,
}

impl Hanging<'_> {
    /// Follows the rows of sinks, whose nodes come after all others so far. Returns for each sink how many of these nodes
    /// come before it, with one more for all, and what is above each: places so far.
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
        let share = tasks::share(sinks.len(), count);
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
                .try_for_each(|(part, sinks)| walk.fill_sinks(part, sinks))?;
            for (part, sinks) in parts.iter().zip(batch.chunks(share)) {
                let base = self.nodes + parent.len() as u32;
                let first = parent.len();
                parent.extend(part.parent.elements())?;
                let parent = &mut parent[first..];
                parent
                    .iter_mut()
                    .for_each(|above| *above = placed_at(*above, base, NONE));
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

/// The objects at some of the places, ascending.
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

/// Objects that the dominator of their class does not dominate: of each part of the heap one for each
/// class. `dominated` are the levels of the class objects and the places of what their dominators
/// dominate.
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

    fn view(&self) -> MembersView<'_> {
        MembersView {
            above: &self.above,
            nodes: self.nodes,
        }
    }

    /// Gives back what is known of the members before a place.
    fn shed(&mut self, first: u32) {
        self.above
            .shed((self.nodes - first.min(self.nodes)) as usize);
    }
}

/// What is above members, as a slice.
#[derive(Clone, Copy)]
struct MembersView<'a> {
    above: &'a [u32],
    nodes: u32,
}

impl MembersView<'_> {
    /// The place above the member at a place.
    #[inline(always)]
    fn above(self, q: u32) -> u32 {
        self.above[(self.nodes - 1 - q) as usize]
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
pub(super) struct Checks {
    /// For each class object its level of reachability, and the members that its dominator
    /// dominates.
    of_class: Vec<(usize, Range<u32>)>,
    /// For each level of the referring object and each class object the first of the members among
    /// which it has to be, and how many there are.
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
