//! Sinks of the core: joins from which no other join is reached. They have no part in the search.
//!
//! When all else is laid out, the nearest common dominator of a sink's referrers dominates it: that of the first and of
//! the last of them in preorder. Then the sinks, and what hangs on them, are put into the order, each right behind
//! its dominator, and what comes after it moves on.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::dominators::leaves::{UNSEEN, common, widen, widened};
use crate::dominators::ranges::Minima;
use crate::error::Result;

/// The places of the referrers of each sink.
pub(super) struct Referrers {
    /// The first and the last place of those that are strongly reached.
    spans: Array<u64>,
    /// Level, sink and place of the others.
    weak: Vec<(u8, u32, u32)>,
}

/// A sink that is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sink {
    /// The place of its dominator among all but sinks.
    pub(super) above: u32,
    pub(super) object: u32,
    pub(super) level: u8,
}

impl Referrers {
    pub(super) fn new(sinks: usize, store: &Store) -> Result<Self> {
        let mut spans: Array<u64> = store.zeroed(sinks)?;
        spans.par_iter_mut().for_each(|span| *span = UNSEEN);
        let weak = Vec::new();
        Ok(Self { spans, weak })
    }

    /// The spans, to be widened by several threads.
    pub(super) fn spans(&mut self) -> Spans<'_> {
        Spans(mem::as_atomic_u64(&mut self.spans))
    }

    pub(super) fn add_weak(&mut self, level: u8, sink: u32, place: u32) {
        self.weak.push((level, sink, place));
    }

    /// The sinks that are reached, by their dominators' places.
    ///
    /// Cost: one pass over the places above all nodes, and one look at a few of them for each sink.
    pub(super) fn hang(
        mut self,
        objects: &[u32],
        parent: &[u32],
        store: &Store,
    ) -> Result<Vec<Sink>> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        self.weak.sort_unstable();
        let mut levels: Vec<(u32, u8)> = Vec::new();
        for of_level in self.weak.chunk_by(|a, b| a.0 == b.0) {
            let level = of_level[0].0;
            // A weaker path never counts beside a stronger one.
            let before = levels.len();
            for &(_, sink, place) in of_level {
                let at = sink as usize;
                let is_own = levels
                    .get(before..)
                    .is_some_and(|own| own.last() == Some(&(sink, level)));
                if is_own || self.spans[at] == UNSEEN {
                    self.spans[at] = widened(self.spans[at], place);
                    if !is_own {
                        levels.push((sink, level));
                    }
                }
            }
        }
        levels.sort_unstable();
        let minima = Minima::new(parent, store)?;
        let spans = &self.spans[..];
        let level_of = |sink: u32| {
            let at = levels.binary_search_by_key(&sink, |&(sink, _)| sink);
            at.map_or(0, |at| levels[at].1)
        };
        let all = objects.par_iter().zip(spans).enumerate();
        let reached = all.filter(|(_, (_, span))| **span != UNSEEN);
        let hung = reached.map(|(at, (&object, &span))| Sink {
            above: common(&minima, span),
            object,
            level: level_of(at as u32),
        });
        let mut hung: Vec<Sink> = hung.collect();
        hung.par_sort_unstable();
        Ok(hung)
    }
}

/// As [`Referrers`] has them.
#[derive(Clone, Copy)]
pub(super) struct Spans<'a>(&'a [AtomicU64]);

impl Spans<'_> {
    /// Adds references: sink, place.
    pub(super) fn widen(self, references: impl Iterator<Item = (u32, u32)>) {
        references.for_each(|(sink, place)| widen(&self.0[sink as usize], place));
    }
}

/// Marks among places, and how many come before each.
struct Ranks {
    words: Vec<u64>,
    before: Vec<u32>,
}

impl Ranks {
    /// `marked` ascends.
    fn new(places: usize, marked: impl Iterator<Item = u32>) -> Self {
        let mut words = vec![0_u64; places / 64 + 1];
        marked.for_each(|at| words[at as usize / 64] |= 1 << (at % 64));
        let mut sum = 0;
        let before = words.iter().map(|word| {
            let before = sum;
            sum += word.count_ones();
            before
        });
        let before = before.collect();
        Self { words, before }
    }

    /// Marks before a place.
    #[inline(always)]
    fn before(&self, place: u32) -> u32 {
        let (word, bit) = (place as usize / 64, place % 64);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }
}

/// The places of all nodes, those included that sinks and what hangs on them have.
pub(super) struct Insertion<'a> {
    sinks: &'a [Sink],
    /// For each sink how many nodes come before it that are sinks or hang on them, and one more for all.
    starts: &'a [u32],
    /// The nodes that are neither.
    nodes: u32,
    dominators: Ranks,
    /// For each dominator of sinks the start of the first, and one more for all.
    first: Vec<u32>,
    of_sink: Ranks,
}

impl<'a> Insertion<'a> {
    pub(super) fn new(sinks: &'a [Sink], starts: &'a [u32], nodes: u32) -> Self {
        let all = starts.last().copied().unwrap_or(0);
        let groups = || sinks.chunk_by(|a, b| a.above == b.above);
        let mut at = 0;
        let mut first: Vec<u32> = groups()
            .map(|group| {
                at += group.len();
                starts[at - group.len()]
            })
            .collect();
        first.push(all);
        Self {
            sinks,
            starts,
            nodes,
            dominators: Ranks::new(nodes as usize, groups().map(|group| group[0].above)),
            first,
            of_sink: Ranks::new(all as usize, starts[..sinks.len()].iter().copied()),
        }
    }

    /// The place of what was at a place among all but sinks, or the first after all of them.
    #[inline(always)]
    pub(super) fn moved(&self, place: u32) -> u32 {
        place + self.first[self.dominators.before(place) as usize]
    }

    /// The place of a node by its place so far: sinks, and what hangs on them, come after all others.
    #[inline(always)]
    pub(super) fn place(&self, place: u32) -> u32 {
        match place.checked_sub(self.nodes) {
            None => self.moved(place),
            Some(at) => {
                let sink = self.of_sink.before(at + 1) - 1;
                self.sinks[sink as usize].above + 1 + at
            }
        }
    }

    /// The places so far of the sinks of a level and of what hangs on them.
    pub(super) fn of_level(&self, level: u8) -> impl Iterator<Item = Range<u32>> {
        let ends = self.starts.windows(2).zip(self.sinks);
        let of_level = ends.filter(move |(_, sink)| sink.level == level);
        of_level.map(|(ends, _)| self.nodes + ends[0]..self.nodes + ends[1])
    }

    /// Puts what is above each node into the order. `hung` has, for sinks and what hangs on them, the place so far.
    pub(super) fn insert(&self, parent: &mut [u32], hung: &[u32]) {
        let (own, _) = parent.split_at_mut(self.nodes as usize);
        own.par_iter_mut()
            .for_each(|above| *above = self.moved(*above));
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
                    None => self.moved(from),
                    Some(at) => begin as u32 + at,
                };
            }
        }
    }
}
