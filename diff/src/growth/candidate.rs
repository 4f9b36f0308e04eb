//! A place where something accumulates, with its figures.

use heapdiff_trend::Trend;

use super::difference;
use crate::summary::stats::OffHeap;
use crate::trie::StepId;

/// A place that grows: the step that holds the content, and the steps of the content.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The step that holds the content, in the last dump.
    pub(crate) at: StepId,
    /// The growing steps directly below `at`, the most growth first.
    pub(crate) content: Vec<StepId>,
    /// Growing steps in other places that the same field holds.
    pub(crate) beside: Vec<StepId>,
    /// The steps whose objects `objects` counts: `named`, and the named steps of other places.
    pub(super) counted: Vec<StepId>,
    /// The step at or below the content that the report names.
    pub(crate) named: StepId,
    /// True if the same objects grew, and no objects were added.
    pub(crate) in_place: bool,
    /// True if the figures leave out the objects of other candidates below.
    pub(crate) is_rest: bool,
    /// Retained bytes of the content in each dump.
    pub(crate) retained: Vec<u64>,
    pub(crate) objects: Vec<u64>,
    pub(crate) shallow: Vec<u64>,
    /// Memory outside of the heap that direct buffers in the content own, in each dump.
    pub(crate) off_heap: Vec<OffHeap>,
    /// Bytes in the heap and outside of it in each dump.
    pub(crate) series: Vec<u64>,
    /// The trend of `series`.
    pub(crate) trend: Trend,
    /// Dumps in which other paths held the content. The figures in these dumps come from the totals of the class.
    pub(crate) by_class: Vec<usize>,
    /// Dumps between the first and the last without figures, even from the class. Their figures are interpolated.
    pub(crate) elsewhere: Vec<usize>,
}

impl Candidate {
    pub(crate) fn growth(&self) -> i64 {
        difference(&self.retained)
    }

    /// Adds a candidate in another place that the same field holds. `same` is true if both are of one class, so that
    /// their objects can be added up.
    pub(crate) fn take_in(&mut self, other: Self, same: bool) {
        self.beside.extend(other.content);
        self.beside.extend(other.beside);
        let add = |to: &mut Vec<u64>, from: Vec<u64>| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = to.saturating_add(from);
            }
        };
        add(&mut self.retained, other.retained);
        // A chain and its first node lead to the same objects.
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

    /// Returns the bytes in the heap and outside of it, in each dump.
    pub(super) fn bytes(&self) -> Vec<u64> {
        let both = self.retained.iter().zip(&self.off_heap);
        both.map(|(&heap, off)| heap.saturating_add(off.bytes))
            .collect()
    }

    /// Returns the growth in the heap and outside of it.
    pub(super) fn all_growth(&self) -> i64 {
        difference(&self.bytes())
    }

    /// Returns the rank of the trend: 0 for growth at every step, 2 for growth that has ended, 1 for everything else.
    pub(crate) const fn tier(&self) -> u8 {
        match self.trend {
            Trend::Steady => 0,
            t if t.is_over() => 2,
            _ => 1,
        }
    }
}
