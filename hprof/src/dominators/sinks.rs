//! Terminal merge nodes (sinks): objects with several referrers that lead to no such object (see `core.rs`). Terminal
//! merge nodes take no part in the depth-first search of the dominator computation.
//!
//! When all other nodes of the tree have their position in preorder, the dominator of a terminal merge node can be
//! found: it is the nearest common dominator of its referrers. The first and the last referrer in preorder are enough
//! to compute this dominator. Then the terminal merge nodes, with their subtrees, are inserted into the preorder right
//! after their dominators, and the nodes after them move:
//!
//! ```text
//! before          A B C D E | s t       s is dominated by B, t is in the subtree of s
//! after           A B s t C D E
//! ```

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::dominators::annotated::{AnnotatedGraph, MappedBits, each_bit};
use crate::dominators::core::SEVERAL;
use crate::dominators::leaves::{self, UNSEEN, common, extend_span, extended_span};
use crate::dominators::preorder::WeaklyReached;
use crate::dominators::ranges::Minima;
use crate::error::Result;
use crate::ids::NONE;

/// The referrers of terminal merge nodes (objects with several referrers that lead to no such object).
pub(super) struct Referrers {
    /// For each terminal merge node (see above), the positions in preorder of its first and its last referrer.
    spans: Array<u64>,
    /// For each terminal merge node (see above), the reachability level of the strongest path to the node (0 strong, 1
    /// soft, 2 final). Empty if no object of the tree is reachable only through soft or final references.
    level: Array<u8>,
}

/// A reachable terminal merge node: an object with several referrers that leads to no such object (see `core.rs`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Sink {
    /// The position of the node's dominator in the preorder that does not contain terminal merge nodes and their
    /// subtrees yet.
    pub(super) above: u32,
    pub(super) object: u32,
    pub(super) level: u32,
}

impl Referrers {
    pub(super) fn new(sinks: usize, store: &Store) -> Result<Self> {
        let mut spans: Array<u64> = store.zeroed(sinks)?;
        spans.par_iter_mut().for_each(|span| *span = UNSEEN);
        let level = store.zeroed(0)?;
        Ok(Self { spans, level })
    }

    /// Returns the spans as atomics, so that several threads can extend them. A span consists of the first and the last
    /// referrer of a terminal merge node (see [`Sink`]).
    pub(super) fn spans(&mut self) -> Spans<'_> {
        Spans(mem::as_atomic_u64(&mut self.spans))
    }

    /// Adds all references from strongly reached objects to terminal merge nodes (see [`Sink`]). Call this when all
    /// other nodes have positions. `placed` contains the objects that have a position, and also the unreached objects
    /// of the core (see `core.rs`).
    ///
    /// Cost: one pass over all references.
    pub(super) fn add_references(
        &mut self,
        graph: &AnnotatedGraph,
        placed: &MappedBits,
        weak: &WeaklyReached,
    ) {
        let is_strong = leaves::strong(graph, weak);
        let sinks = self.spans.len() as u32;
        let spans = self.spans();
        placed
            .words()
            .par_iter()
            .enumerate()
            .for_each(|(at, &word)| {
                each_bit(at, word, |object| {
                    if is_strong(object) {
                        spans.add_all(references(graph, object, placed, sinks));
                    }
                });
            });
    }

    /// Adds references to terminal merge nodes (see [`Sink`]) from objects that only soft or final references reach.
    /// Ignores a reference if a stronger reference reaches its target.
    pub(super) fn add_weak_references(
        &mut self,
        graph: &AnnotatedGraph,
        placed: &MappedBits,
        weak: &WeaklyReached,
        store: &Store,
    ) -> Result<()> {
        if weak.iter().all(|of_level| of_level.is_empty()) {
            return Ok(());
        }
        self.level = store.zeroed(self.spans.len())?;
        let (spans, levels) = (&mut self.spans[..], &mut self.level[..]);
        let sinks = spans.len() as u32;
        for (of_level, level) in weak.iter().zip(1..) {
            let rows = of_level.iter();
            let all = rows.flat_map(|&object| references(graph, object, placed, sinks));
            for (sink, place) in all {
                let (span, own) = (&mut spans[sink as usize], &mut levels[sink as usize]);
                if *span == UNSEEN || *own == level {
                    *span = extended_span(*span, place);
                    *own = level;
                }
            }
        }
        Ok(())
    }

    /// Returns the reachable terminal merge nodes (see [`Sink`]), sorted by the positions of their dominators.
    ///
    /// Cost: one pass over the parents of all nodes, and a few look-ups for each object in `objects`. Memory: twelve
    /// bytes for each of these objects.
    pub(super) fn place_below_dominators(
        self,
        objects: &[u32],
        parent: &[u32],
        store: &Store,
    ) -> Result<Array<Sink>> {
        let mut hung: Array<Sink> = store.zeroed(objects.len())?;
        if objects.is_empty() {
            return Ok(hung);
        }
        let minima = Minima::new(parent, store)?;
        let (spans, levels) = (&self.spans[..], &self.level[..]);
        let all = hung.par_iter_mut().zip(objects).zip(spans).enumerate();
        let reached = all.map(|(at, ((sink, &object), &span))| {
            let is_reached = span != UNSEEN;
            *sink = Sink {
                above: if is_reached {
                    common(&minima, span)
                } else {
                    NONE
                },
                object,
                level: levels.get(at).copied().unwrap_or(0).into(),
            };
            usize::from(is_reached)
        });
        let reached = reached.sum();
        // After the sort, the unreachable nodes are at the end, because their `above` is [`NONE`]. Remove them.
        hung.par_sort_unstable();
        hung.cut(reached)?;
        Ok(hung)
    }
}

/// Returns the references from an object to terminal merge nodes (see [`Sink`]). These nodes have no position in
/// preorder yet. Each pair is the number of the terminal merge node and the position of the object.
fn references<'a>(
    graph: &'a AnnotatedGraph,
    object: u32,
    placed: &'a MappedBits,
    sinks: u32,
) -> impl Iterator<Item = (u32, u32)> + 'a {
    let place = graph.note(object);
    let others = graph.split.classes..graph.split.inner;
    // If an object of the core (see `core.rs`) is not reached, its per-object word is 0. Ignore its references.
    let row = if place == 0 { &[] } else { graph.row(object) };
    row.iter()
        .filter(move |target| others.contains(target) && !placed.contains(**target))
        .map(move |&target| (SEVERAL.wrapping_sub(graph.note(target)), place))
        .filter(move |&(sink, _)| sink < sinks)
}

/// The array `spans` of [`Referrers`], shared between threads.
#[derive(Clone, Copy)]
pub(super) struct Spans<'a>(&'a [AtomicU64]);

impl Spans<'_> {
    /// Adds references to the spans (first and last referrer) of terminal merge nodes (see [`Sink`]). Each reference is
    /// a pair: the number of the terminal merge node, and the position of the referrer.
    fn add_all(self, references: impl Iterator<Item = (u32, u32)>) {
        references.for_each(|(sink, place)| extend_span(&self.0[sink as usize], place));
    }

    /// Adds the references that a task recorded, like [`Self::add_all`]. Each reference is a pair: the number of the
    /// terminal merge node, and the position of the referrer in the task's output. The function `place` converts this
    /// position to a position in the whole preorder.
    pub(super) fn add_recorded(self, references: &[(u32, u32)], place: impl Fn(u32) -> u32) {
        const AHEAD: usize = 16;
        for (i, &(sink, from)) in references.iter().enumerate() {
            if let Some(&(later, _)) = references.get(i + AHEAD) {
                mem::prefetch(self.0, later as usize);
            }
            extend_span(&self.0[sink as usize], place(from));
        }
    }
}

/// A set of positions as a bitmap, and the number of positions in the set before each word of the bitmap.
struct Ranks {
    words: Array<u64>,
    before: Array<u32>,
}

impl Ranks {
    fn new(places: usize, marked: impl Iterator<Item = u32>, store: &Store) -> Result<Self> {
        let mut words: Array<u64> = store.zeroed(places / 64 + 1)?;
        let mut before: Array<u32> = store.zeroed(words.len())?;
        {
            let words = &mut words[..];
            marked.for_each(|at| words[at as usize / 64] |= 1 << (at % 64));
            let mut sum = 0;
            for (before, word) in before.iter_mut().zip(words) {
                *before = sum;
                sum += word.count_ones();
            }
        }
        Ok(Self { words, before })
    }

    /// Returns the number of positions in the set that are less than the position `place`.
    #[inline(always)]
    fn before(&self, place: u32) -> u32 {
        let (word, bit) = (place as usize / 64, place % 64);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }
}

/// The insertion of terminal merge nodes (see [`Sink`]) and their subtrees into the preorder, right after their
/// dominators. Converts positions before the insertion to positions after it.
pub(super) struct Insertion<'a> {
    sinks: &'a [Sink],
    /// For each terminal merge node in `sinks`, the number of inserted nodes that come before it: the nodes before it
    /// in `sinks`, and their subtrees. The last element is the number of all inserted nodes.
    starts: &'a [u32],
    /// Number of nodes that had a position before this insertion. The inserted nodes are not counted.
    nodes: u32,
    dominators: Ranks,
    /// For each immediate dominator of terminal merge nodes: the number from `starts` for the first of these merge
    /// nodes. One more element at the end is the number of all inserted nodes.
    first: Array<u32>,
    of_sink: Ranks,
}

impl<'a> Insertion<'a> {
    pub(super) fn new(
        sinks: &'a [Sink],
        starts: &'a [u32],
        nodes: u32,
        store: &Store,
    ) -> Result<Self> {
        let all = starts.last().copied().unwrap_or(0);
        let groups = || sinks.chunk_by(|a, b| a.above == b.above);
        let mut first: Array<u32> = store.zeroed(groups().count() + 1)?;
        let mut at = 0;
        for (first, group) in first.iter_mut().zip(groups()) {
            *first = starts[at];
            at += group.len();
        }
        if let Some(last) = first.last_mut() {
            *last = all;
        }
        let dominators = groups().map(|group| group[0].above);
        let own = starts[..sinks.len()].iter().copied();
        Ok(Self {
            sinks,
            starts,
            nodes,
            dominators: Ranks::new(nodes as usize, dominators, store)?,
            first,
            of_sink: Ranks::new(all as usize, own, store)?,
        })
    }

    /// Returns the new position of a node that already had a position before the terminal merge nodes were inserted.
    /// `place` is its old position, or the first position after all old positions.
    #[inline(always)]
    pub(super) fn new_position(&self, place: u32) -> u32 {
        place + self.first[self.dominators.before(place) as usize]
    }

    /// Returns the new position of any node after the insertion of the terminal merge nodes. `place` is its old
    /// position. The old positions of the inserted nodes come after those of all other nodes.
    #[inline(always)]
    pub(super) fn place(&self, place: u32) -> u32 {
        match place.checked_sub(self.nodes) {
            None => self.new_position(place),
            Some(at) => {
                let sink = self.of_sink.before(at + 1) - 1;
                self.sinks[sink as usize].above + 1 + at
            }
        }
    }

    /// Returns the positions of the terminal merge nodes (see [`Sink`]) with this reachability level and of their
    /// subtrees. The positions are those before the insertion.
    pub(super) fn of_level(&self, level: u32) -> impl Iterator<Item = Range<u32>> {
        let ends = self.starts.windows(2).zip(self.sinks);
        let of_level = ends.filter(move |(_, sink)| sink.level == level);
        of_level.map(|(ends, _)| self.nodes + ends[0]..self.nodes + ends[1])
    }

    /// Inserts the terminal merge nodes (see [`Sink`]) and their subtrees into `parent`, the array of the parents'
    /// positions. `hung` has the parents' positions for the inserted nodes, as they were before the insertion.
    pub(super) fn insert(&self, parent: &mut [u32], hung: &[u32]) {
        let (own, _) = parent.split_at_mut(self.nodes as usize);
        own.par_iter_mut()
            .for_each(|above| *above = self.new_position(*above));
        let mut end = self.nodes as usize;
        for (sink, ends) in self.sinks.iter().zip(self.starts.windows(2)).rev() {
            let (begin, shift) = (sink.above as usize + 1, ends[1] as usize);
            if begin < end {
                parent.copy_within(begin..end, begin + shift);
                end = begin;
            }
            let hung = &hung[ends[0] as usize..ends[1] as usize];
            let inserted = &mut parent[begin + ends[0] as usize..begin + shift];
            for (to, &from) in inserted.iter_mut().zip(hung) {
                *to = match from.checked_sub(self.nodes) {
                    None => self.new_position(from),
                    Some(at) => begin as u32 + at,
                };
            }
        }
    }
}
