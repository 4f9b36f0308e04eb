//! Back edges: references from an object to its only referrer. Examples are a tree node's reference to its parent, and
//! a list node's reference to the previous node.
//!
//! A back edge never changes dominators, because its target already is on every path to its source. So back edges do
//! not count as references.
//!
//! ```text
//! P <-> C      C refers back to P, its only referrer. Without this reference, P has one referrer less.
//! ```
//!
//! If only its parent and its children refer to a node, the node has one referrer left. Then its own reference to its
//! parent is a back edge, too. So the computation starts at the end of each branch of the tree and continues towards
//! the root. It finds the only referrer of each node without a search. A node is settled when its only referrer is
//! known.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::annotated::{CHUNK, Cells, MappedBits, each_bit};
use super::core::SEVERAL;
use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::dominators::thresholds::Thresholds;
use crate::error::Result;
use crate::ids::NONE;

/// Flag in the number of referrers of an object. It shows that the search for the object's only referrer leaves the
/// object out. This applies to class objects, to objects held by a GC root, a soft reference or a final reference, and
/// to objects with more than [`Thresholds::popular`] referrers. The flag is larger than any number of referrers.
const NEVER: u32 = 1 << 31;
/// [`has_enough_back_edges`] examines one of each group of this many parts of the graph.
const SAMPLED: usize = 8;

/// Finds objects that have one referrer if back edges (see the top of this file) are ignored. Sets the per-object word
/// of such an object to this referrer. Does nothing if there are too few back edges (see [`has_enough_back_edges`]).
/// `held` contains the class objects, the objects that GC roots hold, and the referents of soft and final references.
///
/// Cost: one pass over the references, and one visit of the adjacency list of each object whose only referrer is known.
/// Memory: eight bytes for each object.
pub(super) fn find_single_referrers(
    cells: Cells<'_>,
    targets: &[u32],
    held: impl Iterator<Item = u32>,
    classes: u32,
    thresholds: Thresholds,
    store: &Store,
) -> Result<()> {
    if !has_enough_back_edges(cells, targets) {
        return Ok(());
    }
    let inner = cells.rows();
    // For each object: the number of references to it, and the XOR of the numbers of the objects that refer to it. If
    // only one reference is left, the XOR is the number of the only referrer.
    let mut referrers: Array<u32> = store.zeroed(inner * 2)?;
    held.for_each(|object| referrers[object as usize * 2] = NEVER);
    let counting = Counting {
        cells,
        targets,
        counts: mem::as_atomic_u32(&mut referrers),
        countable: classes..inner as u32,
        thresholds,
    };
    counting.count();
    let mut starts = MappedBits::new(inner, store)?;
    let words = starts.words_mut().par_iter_mut().enumerate();
    words.for_each(|(at, word)| {
        for object in (at * 64) as u32..((at + 1) * 64).min(inner) as u32 {
            *word |= u64::from(is_back_edge_pair(cells, targets, object)) << (object % 64);
        }
    });
    let referrers = &mut referrers[..];
    let mut settled = 0;
    for (at, &word) in starts.words().iter().enumerate() {
        each_bit(at, word, |start| {
            let mut object = start;
            while is_back_edge_pair(cells, targets, object) {
                let above = cells.number(object);
                let of_above = &mut referrers[above as usize * 2..][..2];
                if of_above[0] >= NEVER {
                    break;
                }
                for _ in row(cells, targets, object)
                    .iter()
                    .filter(|&&to| to == above)
                {
                    of_above[0] -= 1;
                    of_above[1] ^= object;
                }
                if of_above[0] != 1 {
                    break;
                }
                cells.note(above).store(of_above[1], Ordering::Relaxed);
                settled += 1;
                object = above;
            }
        });
    }
    thresholds.count(|tally| &tally.settled, settled);
    Ok(())
}

#[inline(always)]
fn row<'a>(cells: Cells<'_>, targets: &'a [u32], object: u32) -> &'a [u32] {
    &targets[cells.begin(object) as usize..cells.begin(object + 1) as usize]
}

/// Returns true if an object has only one referrer and refers back to this referrer.
#[inline(always)]
fn is_back_edge_pair(cells: Cells<'_>, targets: &[u32], object: u32) -> bool {
    let referrer = cells.number(object);
    referrer < SEVERAL && row(cells, targets, object).contains(&referrer)
}

/// Returns true if [`find_single_referrers`] saves time. This is so if a sample of the graph has at least one back
/// edge, and at least an eighth as many back edges as merge nodes.
fn has_enough_back_edges(cells: Cells<'_>, targets: &[u32]) -> bool {
    let pieces = (0..cells.rows().div_ceil(CHUNK))
        .into_par_iter()
        .step_by(SAMPLED);
    let counts = pieces.map(|piece| {
        let objects = (piece * CHUNK) as u32..((piece + 1) * CHUNK).min(cells.rows()) as u32;
        let back = objects
            .clone()
            .filter(|&object| is_back_edge_pair(cells, targets, object));
        let joins = objects
            .clone()
            .filter(|&object| cells.number(object) == SEVERAL);
        (back.count(), joins.count())
    });
    let (back, joins) = counts.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    back > 0 && back * 8 >= joins
}

/// The state of the pass that counts the referrers of each object.
struct Counting<'a> {
    cells: Cells<'a>,
    targets: &'a [u32],
    /// For each object: the number of references to it, and the XOR of the numbers of the objects that refer to it.
    counts: &'a [AtomicU32],
    countable: Range<u32>,
    thresholds: Thresholds,
}

impl Counting<'_> {
    fn count(&self) {
        const AHEAD: usize = 32;
        let inner = self.cells.rows();
        (0..inner.div_ceil(CHUNK))
            .into_par_iter()
            .for_each(|chunk| {
                let mut ring = [(0, NONE); AHEAD];
                let mut at = 0;
                for from in (chunk * CHUNK) as u32..((chunk + 1) * CHUNK).min(inner) as u32 {
                    for &to in row(self.cells, self.targets, from) {
                        if self.countable.contains(&to) && to != from {
                            mem::prefetch(self.counts, to as usize * 2);
                            self.add(std::mem::replace(&mut ring[at], (from, to)));
                            at = (at + 1) % AHEAD;
                        }
                    }
                }
                ring.into_iter().for_each(|reference| self.add(reference));
            });
    }

    /// Counts a reference. If the target has more than [`Thresholds::popular`] referrers, threads only read its
    /// counter, because concurrent writes to it would be slow.
    #[inline(always)]
    fn add(&self, (from, to): (u32, u32)) {
        if to == NONE {
            return;
        }
        let of_target = &self.counts[to as usize * 2..][..2];
        let so_far = of_target[0].load(Ordering::Relaxed);
        if so_far < self.thresholds.popular {
            of_target[0].fetch_add(1, Ordering::Relaxed);
            of_target[1].fetch_xor(from, Ordering::Relaxed);
        } else if so_far < NEVER && of_target[0].fetch_or(NEVER, Ordering::Relaxed) < NEVER {
            self.thresholds.count(|tally| &tally.popular, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dominators::annotated::AnnotatedGraph;
    use crate::dominators::thresholds::Tally;
    use crate::graph::HeapGraph;

    /// Returns for each object the number of references to it, and the XOR of the numbers of the objects that refer to
    /// it. Also returns the number of popular objects, which have more than three referrers.
    fn counted(nodes: u32, rows: &[(u32, u32)]) -> (Vec<u32>, usize) {
        let store = Store::new(None);
        let graph = HeapGraph::from_rows(nodes, rows, &[0], &store).unwrap();
        let mut graph = AnnotatedGraph::new(graph).unwrap();
        let (cells, targets) = graph.shared();
        let tally: &'static Tally = Box::leak(Box::default());
        let mut counts = vec![0; nodes as usize * 2];
        let counting = Counting {
            cells,
            targets,
            counts: mem::as_atomic_u32(&mut counts),
            countable: 1..nodes,
            thresholds: Thresholds {
                popular: 3,
                tally: Some(tally),
                ..Thresholds::USUAL
            },
        };
        counting.count();
        (counts, tally.popular.load(Ordering::Relaxed))
    }

    #[test]
    fn objects_with_many_referrers_are_not_counted() {
        for (referrers, expected) in [(2, [2, 5 ^ 6]), (3, [3, 5 ^ 6 ^ 7])] {
            let rows: Vec<(u32, u32)> = (0..referrers).map(|n| (5 + n, 1)).collect();
            let (counts, popular) = counted(100, &rows);
            assert_eq!((&counts[2..4], popular), (&expected[..], 0));
        }
        for referrers in [4, 50] {
            let rows: Vec<(u32, u32)> = (0..referrers).map(|n| (5 + n, 1)).collect();
            let (counts, popular) = counted(100, &rows);
            assert_eq!((counts[2], popular), (NEVER | 3, 1), "{referrers}");
        }
        // References from an object to itself are left out. So are references to objects that take no part in the
        // count.
        let (counts, popular) = counted(100, &[(1, 0), (1, 1), (2, 0), (3, 0), (4, 0)]);
        assert!(counts.iter().all(|&count| count == 0) && popular == 0);
    }

    #[test]
    fn referrers_are_counted_in_every_part_of_the_heap() {
        let nodes = CHUNK as u32 * 2 + 10;
        let rows: Vec<(u32, u32)> = (0..nodes - 1).map(|from| (from, from + 1)).collect();
        let (counts, _) = counted(nodes, &rows);
        for to in 1..nodes {
            assert_eq!(counts[to as usize * 2..][..2], [1, to - 1]);
        }
    }
}
