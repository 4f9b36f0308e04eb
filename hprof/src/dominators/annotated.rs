//! The heap graph with one word per object for the dominator computation.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::error::Result;
use crate::graph::address::Split;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::NONE;
use crate::records::walk::RootKind;

/// A [`HeapGraph`] with one word for each object, called its note. Each step of the dominator computation stores its
/// result for an object in this word. The word is stored next to the start of the object's adjacency list, so one cache
/// miss loads both.
#[derive(Debug)]
pub(crate) struct AnnotatedGraph {
    /// A pair of numbers for each object with references: the start of its adjacency list, and its per-object word. One
    /// more pair at the end has the end of the last list.
    cells: Array<u32>,
    pub(crate) targets: Array<u32>,
    pub(crate) split: Split,
    pub(crate) roots: Vec<(u32, RootKind)>,
    /// References to referents: first those of soft references, then those of final references. Each pair is the
    /// reference object and its referent.
    pub(crate) weaker: [Vec<(u32, u32)>; 2],
    /// References that were inserted in place of paths "object -> middle object -> class". The middle object refers
    /// only to its class. Each pair is the first object and the class. The pairs are sorted by class.
    pub(crate) by_leaves: Vec<(u32, u32)>,
    /// The class objects of bare leaves (objects that refer only to their class).
    pub(crate) of_leaves: Vec<u32>,
}

/// Number of objects in one task.
pub(crate) const CHUNK: usize = 1 << 14;

impl AnnotatedGraph {
    /// Takes over the arrays of a graph. Sets the per-object word of each object to [`NONE`].
    ///
    /// Cost: one pass over the starts of the adjacency lists, in place.
    pub(crate) fn new(graph: HeapGraph) -> Result<Self> {
        let HeapGraph {
            offsets,
            targets,
            split,
            roots,
            weaker,
            mut by_leaves,
            of_leaves,
            ..
        } = graph;
        by_leaves.sort_unstable_by_key(|&(from, class)| (class, from));
        let mut cells = offsets;
        let count = cells.len();
        cells.resize(count * 2)?;
        let both = &mut cells[..];
        for at in (0..count).rev() {
            (both[at * 2], both[at * 2 + 1]) = (both[at], NONE);
        }
        Ok(Self {
            cells,
            targets,
            split,
            roots,
            weaker,
            by_leaves,
            of_leaves,
        })
    }

    /// Returns the starts of the adjacency lists and the per-object words as atomics, so that several threads can write
    /// them. Also returns the targets of all references.
    pub(crate) fn shared(&mut self) -> (Cells<'_>, &[u32]) {
        (Cells(mem::as_atomic_u32(&mut self.cells)), &self.targets)
    }

    #[inline(always)]
    pub(crate) fn begin(&self, object: u32) -> usize {
        self.cells[object as usize * 2] as usize
    }

    #[inline(always)]
    pub(crate) fn note(&self, object: u32) -> u32 {
        self.cells[object as usize * 2 + 1]
    }

    /// Prefetches the per-object word that [`AnnotatedGraph::note`] reads.
    #[inline(always)]
    pub(crate) fn fetch(&self, object: u32) {
        mem::prefetch(&self.cells, object as usize * 2);
    }

    pub(crate) fn set_note(&mut self, object: u32, note: u32) {
        self.cells[object as usize * 2 + 1] = note;
    }

    #[inline]
    pub(crate) fn row(&self, object: u32) -> &[u32] {
        &self.targets[self.begin(object)..self.begin(object + 1)]
    }

    /// Returns the adjacency lists and the per-object words of all objects as slices, for loops over many objects.
    #[inline(always)]
    pub(crate) fn view(&self) -> GraphView<'_> {
        GraphView {
            cells: &self.cells,
            targets: &self.targets,
        }
    }

    /// Sets the per-object words of all objects to [`NONE`].
    pub(crate) fn clear_notes(&mut self) {
        self.cells
            .par_chunks_mut(CHUNK * 2)
            .for_each(|cells| cells.iter_mut().skip(1).step_by(2).for_each(|n| *n = NONE));
    }

    /// Replaces each per-object word that is not [`NONE`] by the result of `new`.
    pub(crate) fn renumber(&mut self, new: impl Fn(u32) -> u32 + Sync) {
        self.cells.par_chunks_mut(CHUNK * 2).for_each(|cells| {
            let notes = cells.iter_mut().skip(1).step_by(2);
            notes
                .filter(|note| **note != NONE)
                .for_each(|note| *note = new(*note));
        });
    }

    /// Converts the graph to an array that contains only the per-object words.
    pub(crate) fn into_notes(self) -> Result<Array<u32>> {
        let mut cells = self.cells;
        let count = self.split.inner as usize;
        let both = &mut cells[..];
        for at in 0..count {
            both[at] = both[at * 2 + 1];
        }
        cells.cut(count)?;
        Ok(cells)
    }
}

/// The adjacency lists and per-object words of an [`AnnotatedGraph`] as slices. In a loop, these slices save a look-up
/// of the array's location for each object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphView<'a> {
    cells: &'a [u32],
    pub(crate) targets: &'a [u32],
}

impl GraphView<'_> {
    #[inline(always)]
    pub(crate) fn begin(self, object: u32) -> usize {
        self.cells[object as usize * 2] as usize
    }

    #[inline(always)]
    pub(crate) fn note(self, object: u32) -> u32 {
        self.cells[object as usize * 2 + 1]
    }
}

/// The starts of the adjacency lists, and the per-object words, of an [`AnnotatedGraph`]. Several threads can read and
/// write them.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a>(&'a [AtomicU32]);

impl<'a> Cells<'a> {
    /// Returns the number of objects that have an adjacency list.
    pub(crate) fn rows(self) -> usize {
        self.0.len() / 2 - 1
    }

    #[inline(always)]
    pub(crate) fn begin(self, object: u32) -> u32 {
        self.0[object as usize * 2].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn note(self, object: u32) -> &'a AtomicU32 {
        &self.0[object as usize * 2 + 1]
    }

    #[inline(always)]
    pub(crate) fn number(self, object: u32) -> u32 {
        self.note(object).load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn fetch(self, object: u32) {
        mem::prefetch(self.0, object as usize * 2);
    }
}

/// A queue that prefetches the objects that a traversal visits soon. Without the queue, the traversal would wait for
/// one cache miss after the other. The queue first fetches the start of an object's adjacency list. Some objects later,
/// when the start has arrived, it fetches the list.
pub(crate) struct PrefetchQueue<'a> {
    cells: Cells<'a>,
    targets: &'a [u32],
    ring: [u32; PrefetchQueue::DELAY],
    at: usize,
}

impl<'a> PrefetchQueue<'a> {
    const DELAY: usize = 4;

    pub(crate) fn new(cells: Cells<'a>, targets: &'a [u32]) -> Self {
        Self {
            cells,
            targets,
            ring: [0; Self::DELAY],
            at: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn fetch(&mut self, object: u32) {
        self.cells.fetch(object);
        let ready = std::mem::replace(&mut self.ring[self.at], object);
        self.at = (self.at + 1) % Self::DELAY;
        mem::prefetch(self.targets, self.cells.begin(ready) as usize);
    }
}

/// A set of objects: one bit for each object.
#[derive(Debug)]
pub(crate) struct MappedBits(Array<u64>);

impl MappedBits {
    pub(crate) fn new(objects: usize, store: &Store) -> Result<Self> {
        Ok(Self(store.zeroed(objects / 64 + 1)?))
    }

    #[inline(always)]
    pub(crate) fn contains(&self, object: u32) -> bool {
        self.0[object as usize / 64] & 1 << (object % 64) != 0
    }

    /// Returns the bitmap as a slice, for loops that test many bits.
    #[inline(always)]
    pub(crate) fn view(&self) -> BitsView<'_> {
        BitsView(&self.0)
    }

    pub(crate) fn insert(&mut self, object: u32) {
        self.0[object as usize / 64] |= 1 << (object % 64);
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }

    /// Returns the words of the bitmap as atomics, so that several threads can set bits.
    pub(crate) fn shared(&mut self) -> &[AtomicU64] {
        mem::as_atomic_u64(&mut self.0)
    }

    /// Returns the objects whose bit is set, ascending.
    pub(crate) fn list(&self, store: &Store) -> Result<Array<u32>> {
        let mut list: Array<u32> = store.zeroed(self.count() as usize)?;
        let mut places = list.iter_mut();
        for (at, &word) in self.0.iter().enumerate() {
            each_bit(at, word, |object| {
                if let Some(place) = places.next() {
                    *place = object;
                }
            });
        }
        Ok(list)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.par_iter().map(|w| u64::from(w.count_ones())).sum()
    }
}

/// [`MappedBits`] as a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitsView<'a>(&'a [u64]);

impl BitsView<'_> {
    #[inline(always)]
    pub(crate) fn contains(self, object: u32) -> bool {
        self.0[object as usize / 64] & 1 << (object % 64) != 0
    }
}

/// Calls `visit` with each object whose bit is set in `word`, a word of the bitmap. `at` is the index of the word.
#[inline(always)]
pub(crate) fn each_bit(at: usize, mut word: u64, mut visit: impl FnMut(u32)) {
    while word != 0 {
        visit((at * 64) as u32 + word.trailing_zeros());
        word &= word - 1;
    }
}
