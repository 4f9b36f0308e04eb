//! A place in the heap where objects accumulate, with its figures. Places are found in the trie. A trie node represents
//! all objects of one class that one reference holds.

use heapdiff_trend::Trend;

use super::difference;
use crate::summary::stats::OffHeap;
use crate::trie::{StepId, Trie};

/// A structure that grows. It consists of a holder (the trie node `at`) and of growing trie nodes below it (`content`).
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The trie node that holds the candidate's content, in the last dump.
    pub(crate) at: StepId,
    /// The growing trie nodes directly below `at`, sorted by growth, descending.
    pub(crate) content: Vec<StepId>,
    /// Other growing trie nodes that belong to the candidate. They are on other paths of the trie, but the same field
    /// holds their objects.
    pub(crate) beside: Vec<StepId>,
    /// The trie nodes whose objects are counted in `objects`. One is `named`. The others are the `named` nodes of
    /// candidates of the same class that were merged into this candidate.
    pub(super) counted: Vec<StepId>,
    /// The trie node that the report names: one of the nodes in `content`, or a descendant of such a node.
    pub(crate) named: StepId,
    /// True if the objects themselves became larger, and no objects were added.
    pub(crate) in_place: bool,
    /// True if other candidates are below this one. Their objects are then not included in the figures of this
    /// candidate.
    pub(crate) is_rest: bool,
    /// Retained bytes of the candidate's content in each dump.
    pub(crate) retained: Vec<u64>,
    pub(crate) objects: Vec<u64>,
    pub(crate) shallow: Vec<u64>,
    /// The candidate's objects may include direct buffers. This is the memory that these buffers own outside of the
    /// heap, in each dump.
    pub(crate) off_heap: Vec<OffHeap>,
    /// Sum of the bytes in the heap and outside of it, in each dump.
    pub(crate) series: Vec<u64>,
    /// The trend of `series`.
    pub(crate) trend: Trend,
    /// Indices of dumps in which the candidate's content was on other paths of the trie than in the last dump. In these
    /// dumps, the figures are computed from the total number of instances of the class.
    pub(crate) by_class: Vec<usize>,
    /// Indices of dumps between the first and the last whose figures are unknown. The figures cannot be computed from
    /// the total number of instances either, so they are interpolated.
    pub(crate) elsewhere: Vec<usize>,
}

impl Candidate {
    /// Creates a candidate from one trie node of a single dump. All figures of the candidate are 0: it shows where the
    /// objects are, and not how large they are.
    pub(crate) fn of_step(trie: &Trie, step: StepId) -> Self {
        Self {
            at: trie[step].parent,
            content: vec![step],
            beside: Vec::new(),
            counted: vec![step],
            named: step,
            in_place: false,
            is_rest: false,
            retained: vec![0],
            objects: vec![0],
            shallow: vec![0],
            off_heap: vec![OffHeap::default()],
            series: vec![0],
            trend: Trend::Level,
            by_class: Vec::new(),
            elsewhere: Vec::new(),
        }
    }

    pub(crate) fn growth(&self) -> i64 {
        difference(&self.retained)
    }

    /// Merges another candidate into this one. The same field holds the content of both, on different paths of the
    /// trie. `same` is true if both candidates are of one class, so that their numbers of objects can be added up.
    pub(crate) fn merge(&mut self, other: Self, same: bool) {
        self.beside.extend(other.content);
        self.beside.extend(other.beside);
        let add = |to: &mut Vec<u64>, from: Vec<u64>| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = to.saturating_add(from);
            }
        };
        add(&mut self.retained, other.retained);
        // If one candidate is a chain and the other is the first node of the chain, both have the same objects. Do not
        // count these twice.
        let is_new = other
            .counted
            .iter()
            .all(|step| !self.counted.contains(step));
        if same && is_new {
            self.counted.extend(other.counted);
            add(&mut self.objects, other.objects);
            add(&mut self.shallow, other.shallow);
        }
        for (to, from) in self.off_heap.iter_mut().zip(other.off_heap) {
            to.buffers += from.buffers;
            to.bytes = to.bytes.saturating_add(from.bytes);
        }
    }

    /// Returns the sum of the bytes in the heap and outside of it, in each dump.
    pub(super) fn bytes(&self) -> Vec<u64> {
        let both = self.retained.iter().zip(&self.off_heap);
        both.map(|(&heap, off)| heap.saturating_add(off.bytes))
            .collect()
    }

    /// Returns the growth of the bytes in the heap and outside of it.
    pub(super) fn all_growth(&self) -> i64 {
        difference(&self.bytes())
    }

    /// Returns the rank of the trend: 0 if the candidate grew between all dumps, 2 if growth has ended, 1 otherwise.
    pub(crate) const fn tier(&self) -> u8 {
        match self.trend {
            Trend::Steady => 0,
            t if t.has_stopped_growing() => 2,
            _ => 1,
        }
    }
}
