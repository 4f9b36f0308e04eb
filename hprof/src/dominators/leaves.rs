//! The nodes that leaves hang on.
//!
//! Most leaves have one referrer, which is their dominator. Of the others the smallest and the largest referrer in
//! preorder tell it: the nearest common dominator of all is that of these two.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::dominators::annotated::AnnotatedGraph;
use crate::dominators::preorder::WeaklyReached;
use crate::dominators::ranges::Minima;
use crate::dominators::thresholds::Thresholds;
use crate::error::Result;
use crate::ids::NONE;

/// Marks a leaf that several nodes refer to. There are fewer nodes.
const SEVERAL: u32 = NONE - 1;
/// Leaves handled by one task.
const CHUNK: usize = 1 << 14;
/// Referrers of leaves that are noted at most, 8 bytes each: beyond it the rows are passed once more.
const MOST_NOTED: usize = 1 << 20;
/// The span of nothing.
pub(super) const UNSEEN: u64 = (NONE as u64) << 32;

/// The node that each leaf hangs on, by its strongest referrers; [`NONE`] for those that are unreachable. And the leaves that only
/// weaker references reach, by their numbers among leaves.
///
/// Cost: one pass over the rows, and one more where leaves with several referrers have many references. Memory: four bytes
/// a leaf, and eight for each with several referrers.
pub(super) fn dominators(
    graph: &AnnotatedGraph,
    weak: &WeaklyReached,
    parent: &[u32],
    leaves: u32,
    thresholds: Thresholds,
    store: &Store,
) -> Result<(Array<u32>, WeaklyReached)> {
    let mut hung: Array<u32> = store.zeroed(leaves as usize)?;
    hung.par_iter_mut().for_each(|node| *node = NONE);
    let is_strong = strong(graph, weak);
    let slot = |target: u32| slot(graph, leaves, target);
    for root in graph.roots.iter().filter_map(|&(root, _)| slot(root)) {
        hung[root] = 0;
    }
    let most = thresholds.noted + (leaves as usize / 64).min(MOST_NOTED);
    let noted = {
        let shared = mem::as_atomic_u32(&mut hung);
        let total = AtomicUsize::new(0);
        let noted = each_reference(graph, leaves, &is_strong, shared, |slot, node, noted| {
            let hangs_on = &shared[slot];
            let mut old = hangs_on.load(Ordering::Relaxed);
            if old == NONE {
                match hangs_on.compare_exchange(old, node, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return,
                    Err(seen) => old = seen,
                }
            }
            // What a root holds hangs on the super-root whatever else refers to it.
            if old == node || old == 0 {
                return;
            }
            if old != SEVERAL {
                old = hangs_on.swap(SEVERAL, Ordering::Relaxed);
            }
            if total.load(Ordering::Relaxed) <= most {
                let all = [old, node].into_iter().filter(|&node| node != SEVERAL);
                noted.extend(all.map(|node| (slot as u32, node)));
                total.fetch_add(2, Ordering::Relaxed);
            }
        });
        (total.into_inner() <= most).then_some(noted)
    };
    let several = number(&mut hung);
    if several == 0
        && weak.iter().all(|of_level| of_level.is_empty())
        && graph.weaker.iter().all(Vec::is_empty)
    {
        return Ok((hung, [store.zeroed(0)?, store.zeroed(0)?]));
    }
    let minima = Minima::new(parent, store)?;
    if several > 0 {
        let mut span: Array<u64> = store.zeroed(several)?;
        span.par_iter_mut().for_each(|span| *span = UNSEEN);
        let shared = mem::as_atomic_u64(&mut span);
        let nodes = parent.len() as u32;
        let hung_now = &hung[..];
        let span_of = |slot: usize| {
            let number = Some(hung_now[slot]).filter(|&node| node >= nodes && node != NONE);
            number.map(|number| &shared[(SEVERAL - number) as usize])
        };
        match &noted {
            Some(noted) => noted.par_iter().for_each(|&(slot, node)| {
                if let Some(span) = span_of(slot as usize) {
                    widen(span, node);
                }
            }),
            None => {
                thresholds.count(|tally| &tally.leaves_again, 1);
                each_reference(graph, leaves, &is_strong, hung_now, |slot, node, _| {
                    if let Some(span) = span_of(slot) {
                        widen(span, node);
                    }
                });
            }
        }
        hung.par_iter_mut()
            .filter(|node| **node >= nodes && **node != NONE)
            .for_each(|node| *node = common(&minima, span[(SEVERAL - *node) as usize]));
    }
    let weak = weakly(graph, weak, &minima, &mut hung, store)?;
    Ok((hung, weak))
}

/// The place of a leaf among the leaves.
#[inline(always)]
fn slot(graph: &AnnotatedGraph, leaves: u32, target: u32) -> Option<usize> {
    let inner = graph.split.inner;
    (target.wrapping_sub(inner) < leaves).then(|| (target - inner) as usize)
}

/// Which objects strong references reach.
pub(super) fn strong(
    graph: &AnnotatedGraph,
    weak: &WeaklyReached,
) -> impl Fn(u32) -> bool + Sync + use<> {
    let words = if weak.iter().all(|of_level| of_level.is_empty()) {
        0
    } else {
        graph.split.inner as usize / 64 + 1
    };
    let mut is_weak = vec![0_u64; words];
    for &object in weak.iter().flat_map(|of_level| of_level.iter()) {
        is_weak[object as usize / 64] |= 1 << (object % 64);
    }
    move |object: u32| is_weak.is_empty() || is_weak[object as usize / 64] & 1 << (object % 64) == 0
}

/// References to leaves: the leaf's place, the node.
type Noted = Vec<(u32, u32)>;

/// Visits each reference of a strongly reached node to a leaf: the leaf's place, the node, and a list to note references
/// in, which is returned. What is `read` at that place is fetched some references ahead: an atomic operation that misses
/// the cache holds up all that follow it.
fn each_reference<T: Sync>(
    graph: &AnnotatedGraph,
    leaves: u32,
    is_strong: &(impl Fn(u32) -> bool + Sync),
    read: &[T],
    visit: impl Fn(usize, u32, &mut Noted) + Sync,
) -> Noted {
    const AHEAD: usize = 32;
    let (inner, rows) = (graph.split.inner, graph.view());
    let targets = rows.targets;
    (0..inner.div_ceil(CHUNK as u32))
        .into_par_iter()
        .flat_map_iter(|chunk| {
            let mut noted = Noted::new();
            let first = chunk * CHUNK as u32;
            let mut begin = rows.begin(first);
            let mut ring = [(usize::MAX, 0_u32); AHEAD];
            let mut at = 0;
            for object in first..first.saturating_add(CHUNK as u32).min(inner) {
                let end = rows.begin(object + 1);
                let node = rows.note(object);
                if begin < end && node != NONE && is_strong(object) {
                    for &target in &targets[begin..end] {
                        let slot = target.wrapping_sub(inner);
                        if slot >= leaves {
                            continue;
                        }
                        mem::prefetch(read, slot as usize);
                        let (slot, node) = std::mem::replace(&mut ring[at], (slot as usize, node));
                        at = (at + 1) % AHEAD;
                        if slot != usize::MAX {
                            visit(slot, node, &mut noted);
                        }
                    }
                }
                begin = end;
            }
            for (slot, node) in ring {
                if slot != usize::MAX {
                    visit(slot, node, &mut noted);
                }
            }
            noted
        })
        .collect()
}

/// Numbers the leaves with several referrers, from [`SEVERAL`] down, in the place of the mark. Returns how many
/// there are.
fn number(hung: &mut [u32]) -> usize {
    let is_one = |node: &&mut u32| **node == SEVERAL;
    let counts: Vec<usize> = hung
        .par_chunks(CHUNK)
        .map(|hung| hung.iter().filter(|node| **node == SEVERAL).count())
        .collect();
    let firsts = counts.iter().scan(0, |sum, count| {
        *sum += count;
        Some(*sum - count)
    });
    let firsts: Vec<usize> = firsts.collect();
    hung.par_chunks_mut(CHUNK)
        .zip(firsts)
        .for_each(|(hung, first)| {
            for (number, node) in (first as u32..).zip(hung.iter_mut().filter(is_one)) {
                *node = SEVERAL - number;
            }
        });
    counts.iter().sum()
}

/// Hangs on what only weaker references reach: those leaves that nothing stronger refers to. Returns them where it matters
/// how strongly leaves are reached.
fn weakly(
    graph: &AnnotatedGraph,
    weak: &WeaklyReached,
    minima: &Minima<'_>,
    hung: &mut [u32],
    store: &Store,
) -> Result<WeaklyReached> {
    let mut reached: WeaklyReached = [store.zeroed(0)?, store.zeroed(0)?];
    let leaves = hung.len() as u32;
    // A soft reference that only finalizers reach is no stronger than they are.
    let is_last = |from: u32| usize::from(weak[1].binary_search(&from).is_ok());
    for (level, of_level) in weak.iter().enumerate() {
        let softly = graph.weaker[0].iter().filter(|e| is_last(e.0) == level);
        let finally = graph.weaker[1].iter().filter(|_| level == 1);
        let of_referents = softly.chain(finally).copied();
        let of_rows = of_level
            .iter()
            .flat_map(|&from| graph.row(from).iter().map(move |&target| (from, target)));
        let late = of_referents
            .chain(of_rows)
            .filter_map(|(from, target)| Some((slot(graph, leaves, target)?, graph.note(from))))
            .filter(|&(slot, node)| node != NONE && hung[slot] == NONE)
            .map(|(slot, node)| (slot as u64) << 32 | u64::from(node));
        let mut all: Array<u64> = store.zeroed(late.clone().count())?;
        all.iter_mut()
            .zip(late)
            .for_each(|(to, reference)| *to = reference);
        all.par_sort_unstable();
        for referrers in all.chunk_by(|a, b| a >> 32 == b >> 32) {
            let [low, high] = [referrers.first(), referrers.last()]
                .map(|reference| reference.map_or(0, |&reference| reference as u32));
            let slot = (referrers[0] >> 32) as usize;
            hung[slot] = common(minima, u64::from(low) << 32 | u64::from(high));
            if !graph.of_leaves.is_empty() {
                reached[level].extend(&[slot as u32])?;
            }
        }
    }
    Ok(reached)
}

/// Widens a span of nodes to one more.
#[inline(always)]
pub(super) fn widen(span: &std::sync::atomic::AtomicU64, node: u32) {
    let mut old = span.load(Ordering::Relaxed);
    loop {
        let new = widened(old, node);
        if new == old {
            break;
        }
        match span.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => break,
            Err(seen) => old = seen,
        }
    }
}

/// As [`widen`].
#[inline(always)]
pub(super) fn widened(span: u64, node: u32) -> u64 {
    let (low, high) = ((span >> 32) as u32, span as u32);
    u64::from(low.min(node)) << 32 | u64::from(high.max(node))
}

/// The nearest common dominator of a span's ends.
///
/// In preorder, the nearest common ancestor of two nodes is the smallest parent of those after the
/// first up to the second.
pub(super) fn common(minima: &Minima<'_>, span: u64) -> u32 {
    let (low, high) = ((span >> 32) as u32, span as u32);
    if low == high {
        low
    } else {
        minima.of(low as usize + 1, high as usize + 1)
    }
}
