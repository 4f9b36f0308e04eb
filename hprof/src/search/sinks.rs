//! Sinks: objects that hold references, but only to leaves and at most one class object.
//!
//! Nothing but a class is reached through them, so they need no part in the search and in the
//! dominator computation. Like a leaf's, a sink's dominator is the nearest common dominator of its
//! referrers; and where a class is reached without a sink, the sink does not dominate it, and its
//! referrers can stand for it as the class's predecessors. In a usual heap (strings, boxed values
//! of application classes) every second object with references is one.

use rayon::prelude::*;

use crate::error::Result;
use crate::graph::HeapGraph;
use crate::ids::NONE;
use crate::mem::{Array, Store};

/// How searched rows name what has no number.
///
/// Above all object numbers come sinks that lead to no class, then sinks that do, and as the
/// largest values below [`NONE`] class objects, counted down. The last kind is also the code of a
/// sink among the numbers: by the class it leads to, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codes {
    objects: u32,
    inner: u32,
    first_class: u32,
}

impl HeapGraph {
    pub(crate) fn codes(&self) -> Codes {
        Codes {
            objects: self.objects,
            inner: self.split.inner,
            first_class: NONE - self.split.classes,
        }
    }
}

impl Codes {
    /// Whether there are enough values for sinks.
    fn has_room(self) -> bool {
        u64::from(self.objects) + 2 * u64::from(self.inner) < u64::from(self.first_class)
    }

    #[inline(always)]
    pub(crate) const fn class(self, class: u32) -> u32 {
        NONE - 1 - class
    }

    /// The class that a code names.
    #[inline(always)]
    pub(crate) const fn as_class(self, code: u32) -> Option<u32> {
        if code >= self.first_class && code != NONE {
            Some(NONE - 1 - code)
        } else {
            None
        }
    }

    /// Whether a number is that of a sink.
    #[inline(always)]
    pub(crate) const fn is_sink(self, number: u32) -> bool {
        number >= self.first_class
    }

    /// Whether a number is that of a reached object, not of a sink.
    #[inline(always)]
    pub(crate) const fn is_node(self, number: u32) -> bool {
        number != 0 && number < self.first_class
    }

    /// The class that a sink's number says it leads to.
    #[inline(always)]
    pub(crate) const fn class_of_sink(self, number: u32) -> Option<u32> {
        self.as_class(number)
    }

    /// How a row names a sink of this number.
    #[inline(always)]
    pub(crate) const fn sink(self, object: u32, number: u32) -> u32 {
        let base = if number == NONE {
            self.objects
        } else {
            self.objects + self.inner
        };
        base + object
    }

    /// The sink that a row's target names.
    #[inline(always)]
    pub(crate) const fn as_sink(self, target: u32) -> Option<u32> {
        if target < self.objects || target >= self.first_class {
            None
        } else if target - self.objects < self.inner {
            Some(target - self.objects)
        } else {
            Some(target - self.objects - self.inner)
        }
    }

    /// The sink that a row's target names, when it leads to a class.
    #[inline(always)]
    pub(crate) const fn as_sink_of_class(self, target: u32) -> Option<u32> {
        let first = self.objects as u64 + self.inner as u64;
        if (target as u64) < first || target >= self.first_class {
            None
        } else {
            Some(target - self.objects - self.inner)
        }
    }
}

/// Which objects are sinks, and their ranks among themselves.
#[derive(Debug)]
pub(crate) struct Sinks {
    bits: Array<u64>,
    /// Sinks before each word.
    before: Array<u32>,
    count: u32,
}

impl Sinks {
    /// Rows handled by one task, a multiple of the bits in a word.
    const CHUNK: usize = 1 << 14;

    /// Finds the sinks and fills `rows`: for each object where its row begins, and for sinks the
    /// code of the class that they lead to.
    ///
    /// Cost: one pass over the rows.
    pub(crate) fn find(
        graph: &HeapGraph,
        enabled: bool,
        rows: &mut [[u32; 2]],
        store: &Store,
    ) -> Result<Self> {
        let codes = graph.codes();
        let enabled = enabled && codes.has_room();
        let (inner, classes) = (graph.split.inner as usize, graph.split.classes as usize);
        let mut bits: Array<u64> = store.zeroed(inner / 64 + 1)?;
        let mut before: Array<u32> = store.zeroed(bits.len())?;
        // What weaker references start from or lead to must have numbers.
        let mut numbered: Vec<u32> = graph
            .weaker
            .iter()
            .flatten()
            .flat_map(|&(from, to)| [from, to])
            .collect();
        numbered.sort_unstable();
        let targets = &graph.targets[..];
        rows.par_chunks_mut(Self::CHUNK)
            .zip(bits.par_chunks_mut(Self::CHUNK / 64))
            .enumerate()
            .for_each(|(chunk, (rows, bits))| {
                let first = chunk * Self::CHUNK;
                let offsets = &graph.offsets[first..];
                for (i, row) in rows.iter_mut().enumerate() {
                    let begin = offsets[i];
                    row[0] = begin;
                    let object = first + i;
                    if !enabled || object < classes || object >= inner {
                        continue;
                    }
                    let held = &targets[begin as usize..offsets[i + 1] as usize];
                    if let Some(code) = sink_code(held, graph, codes)
                        && (numbered.is_empty()
                            || numbered.binary_search(&(object as u32)).is_err())
                    {
                        row[1] = code;
                        bits[i / 64] |= 1 << (i % 64);
                    }
                }
            });
        let mut count = 0;
        for (before, bits) in before.iter_mut().zip(&bits[..]) {
            *before = count;
            count += bits.count_ones();
        }
        Ok(Self {
            bits,
            before,
            count,
        })
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether an object was found to be a sink (the search may have numbered it nevertheless).
    pub(crate) fn contains(&self, object: u32) -> bool {
        self.bits[object as usize / 64] & 1 << (object % 64) != 0
    }

    /// A sink's rank among the sinks.
    #[inline(always)]
    pub(crate) fn rank(&self, object: u32) -> u32 {
        let below = self.bits[object as usize / 64] & ((1 << (object % 64)) - 1);
        self.before[object as usize / 64] + below.count_ones()
    }

    /// Visits all sinks with their values, which are in the order of ranks.
    pub(crate) fn each_mut(&self, values: &mut [u32], visit: impl Fn(u32, &mut u32) + Sync) {
        const WORDS: usize = 1 << 10;
        let mut jobs = Vec::with_capacity(self.bits.len() / WORDS + 1);
        let mut rest = values;
        for (chunk, bits) in self.bits.chunks(WORDS).enumerate() {
            let count = bits.iter().map(|b| b.count_ones() as usize).sum();
            let part;
            (part, rest) = rest.split_at_mut(count);
            jobs.push((chunk * WORDS, bits, part));
        }
        jobs.into_par_iter().for_each(|(first, bits, values)| {
            let mut values = values.iter_mut();
            for (word, &bits) in (first..).zip(bits) {
                let mut left = bits;
                while left != 0 {
                    if let Some(value) = values.next() {
                        visit((word * 64) as u32 + left.trailing_zeros(), value);
                    }
                    left &= left - 1;
                }
            }
        });
    }

    /// Visits every object with its value in `all` and, when it is a sink, its value in `values`,
    /// which is in the order of ranks.
    pub(crate) fn each_pair(
        &self,
        all: &mut [u32],
        values: &[u32],
        visit: impl Fn(u32, &mut u32, Option<u32>) + Sync,
    ) {
        all.par_chunks_mut(64 << 8)
            .enumerate()
            .for_each(|(chunk, all)| {
                let first = chunk * (64 << 8);
                let mut at = self.before[first / 64] as usize;
                for (object, value) in (first..).zip(all) {
                    let of_sink = self.contains(object as u32).then(|| {
                        at += 1;
                        values[at - 1]
                    });
                    visit(object as u32, value, of_sink);
                }
            });
    }
}

/// The code of a row that makes its object a sink.
#[inline(always)]
fn sink_code(row: &[u32], graph: &HeapGraph, codes: Codes) -> Option<u32> {
    let mut code = NONE;
    for &target in row {
        if target < graph.split.inner {
            if target >= graph.split.classes || code != NONE {
                return None;
            }
            code = codes.class(target);
        }
    }
    Some(code)
}
