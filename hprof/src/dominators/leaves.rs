//! Computes the immediate dominator of each leaf, that is, of each object without references.
//!
//! Most leaves have one referrer, which is their dominator. For a leaf with several referrers, the first and the last
//! referrer in preorder are enough: the nearest common dominator of all referrers is that of these two.
//!
//! ```text
//!     A            preorder: A B C D E
//!    / \
//!   B   E          Leaf L is referred to by C, D and E.
//!  / \             The first is C, the last is E. Their nearest common dominator is A.
//! C   D            So A dominates L.
//! ```

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

/// Stored in place of a dominator if a leaf (object without references) has several referrers. The value is larger than
/// every node number.
const SEVERAL: u32 = NONE - 1;
/// Number of objects that one task handles: objects with references, or leaves.
const CHUNK: usize = 1 << 14;
/// Limits the number of recorded referrers of leaves: at most this number plus [`Thresholds::noted`], or less if there
/// are few leaves. Each recorded referrer takes 8 bytes. If leaves have more referrers, a second pass reads the
/// adjacency lists again.
const MOST_NOTED: usize = 1 << 20;
/// The span of an object for which no referrer was found yet. A span consists of the first and the last referrer of the
/// object in the dominator tree's preorder.
pub(super) const UNSEEN: u64 = (NONE as u64) << 32;

/// Returns the immediate dominator of each leaf (object without references), or [`NONE`] for unreachable leaves. Also
/// returns the leaves that only soft or final references reach, each as its number among the leaves. If referrers of a
/// leaf have different reachability levels, only those with the strongest level count.
///
/// Cost: one pass over the adjacency lists, and a second pass if leaves with several referrers have too many references
/// to record (see [`MOST_NOTED`]). Memory: four bytes for each leaf, and eight for each leaf with several referrers.
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
            // `hangs_on` is 0 if a GC root holds the leaf (the object without references). Then the super-root, node 0,
            // is the leaf's dominator, even if the leaf has other referrers.
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
                    extend_span(span, node);
                }
            }),
            None => {
                thresholds.count(|tally| &tally.leaves_again, 1);
                each_reference(graph, leaves, &is_strong, hung_now, |slot, node, _| {
                    if let Some(span) = span_of(slot) {
                        extend_span(span, node);
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

/// Returns the number of a leaf (object without references), counted from the first leaf; `None` if `target` is not a
/// leaf.
#[inline(always)]
fn slot(graph: &AnnotatedGraph, leaves: u32, target: u32) -> Option<usize> {
    let inner = graph.split.inner;
    (target.wrapping_sub(inner) < leaves).then(|| (target - inner) as usize)
}

/// Returns a function that returns true if strong references reach an object.
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

/// References to leaves (objects without references). Each pair is the number of the leaf, and its referrer's node in
/// the dominator tree.
type Noted = Vec<(u32, u32)>;

/// Calls `visit` for each reference from a strongly reached node to a leaf. The arguments are the number of the leaf,
/// the node, and a list in which `visit` can record references. Returns all recorded references.
///
/// `read` is an array with an element for each leaf, which `visit` accesses. The element is prefetched before `visit`
/// is called, because an atomic operation that misses the cache would delay all operations after it.
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

/// Gives a different number to each leaf that has several referrers. Such a leaf has the value [`SEVERAL`]. The first
/// of these values is replaced by `SEVERAL`, the second by `SEVERAL - 1`, and so on. Returns the number of leaves with
/// several referrers.
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

/// Computes the dominators of leaves that only soft or final references reach. Returns these leaves for each of the two
/// reachability levels. If no leaf refers to its class, the levels are not needed, and the result is empty.
fn weakly(
    graph: &AnnotatedGraph,
    weak: &WeaklyReached,
    minima: &Minima<'_>,
    hung: &mut [u32],
    store: &Store,
) -> Result<WeaklyReached> {
    let mut reached: WeaklyReached = [store.zeroed(0)?, store.zeroed(0)?];
    let leaves = hung.len() as u32;
    // If a soft reference object is reachable only through finalizers, its reference counts as a final reference.
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

/// Extends a span (the first and the last node in preorder) so that it includes one more node.
#[inline(always)]
pub(super) fn extend_span(span: &std::sync::atomic::AtomicU64, node: u32) {
    let mut old = span.load(Ordering::Relaxed);
    loop {
        let new = extended_span(old, node);
        if new == old {
            break;
        }
        match span.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => break,
            Err(seen) => old = seen,
        }
    }
}

/// Returns a span (first and last node in preorder) that includes the nodes of `span` and `node`.
#[inline(always)]
pub(super) fn extended_span(span: u64, node: u32) -> u64 {
    let (low, high) = ((span >> 32) as u32, span as u32);
    u64::from(low.min(node)) << 32 | u64::from(high.max(node))
}

/// Returns the nearest common dominator of the first and the last node of a span (a range of nodes in preorder).
///
/// The result is the smallest parent, in preorder, of all nodes of the span except the first node. If the span has only
/// one node, the result is this node.
pub(super) fn common(minima: &Minima<'_>, span: u64) -> u32 {
    let (low, high) = ((span >> 32) as u32, span as u32);
    if low == high {
        low
    } else {
        minima.of(low as usize + 1, high as usize + 1)
    }
}
