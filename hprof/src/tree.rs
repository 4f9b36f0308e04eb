//! The dominator tree of all reachable objects, in its own preorder: a subtree is an interval, so
//! a retained size is the difference of two prefix sums.

mod ranges;

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use self::ranges::{Minima, Sums};
use crate::dominators::Dominators;
use crate::error::Result;
use crate::graph::HeapGraph;
use crate::ids::{NONE, ObjectIndex};
use crate::mem::{self, Array, Store};
use crate::search::sinks::{Codes, Sinks};
use crate::walk::RootKind;

/// A node of the dominator tree that holds references: its place in the tree's preorder. 0 is the
/// super-root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Node(pub u32);

impl Node {
    /// What dominates every reachable object: the GC roots together.
    pub const ROOT: Self = Self(0);

    #[inline]
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who retains what. Objects that hold references are nodes; leaves hang on them.
#[derive(Debug)]
pub struct DominatorTree {
    /// The object at each node; [`NONE`] at the root.
    object: Array<u32>,
    /// The node that dominates each node.
    parent: Array<u32>,
    /// Where each node's subtree ends.
    end: Array<u32>,
    /// Bytes of all nodes before this one and of the leaves on them; one more for the total.
    bytes: Sums,
    /// Number of leaves on all nodes before this one; one more for the total.
    leaf_start: Array<u32>,
    /// Leaves in the order of the nodes they hang on.
    leaves: Array<u32>,
    /// The node of each object with references, [`NONE`] when unreachable.
    node_of: Array<u32>,
    /// The node that each leaf hangs on, [`NONE`] when unreachable.
    leaf_parent: Array<u32>,
    inner: u32,
    roots: Vec<(u32, RootKind)>,
}

const UNSEEN: u64 = (NONE as u64) << 32;

impl DominatorTree {
    /// Lays the tree out. `size` gives an object's shallow size.
    ///
    /// Leaves have no part in the dominator computation: in the tree's preorder the nearest common
    /// dominator of a set of nodes is that of its smallest and its largest member, so one pass
    /// over the references to leaves finds their dominators.
    ///
    /// Cost: linear, but O(log n) for each leaf with several referrers.
    pub(crate) fn new(
        graph: HeapGraph,
        dominators: Dominators,
        size: impl Fn(u32) -> u64 + Sync,
        store: &Store,
    ) -> Result<Self> {
        let (inner, objects) = (graph.split.inner, graph.objects);
        let Dominators {
            number,
            idom,
            levels,
            sinks,
        } = dominators;
        let mut weak = weakly_reached(&graph, &number, levels);
        let core = renumber(&idom, number, graph.codes(), store)?;
        drop(idom);
        let Nodes {
            object,
            parent,
            end,
            node_of,
        } = add_sinks(&graph, core, &sinks, &mut weak, store)?;
        drop(sinks);
        let nodes = parent.len();
        let mut span: Array<u64> = store.zeroed((objects - inner) as usize)?;
        let slot = |target: u32| {
            (target.wrapping_sub(inner) < objects - inner).then(|| (target - inner) as usize)
        };
        let roots = graph.roots.iter().filter_map(|&(root, _)| slot(root));
        spans(&graph, &node_of, &weak, roots, slot, &mut span);
        let HeapGraph {
            roots,
            targets,
            offsets,
            ..
        } = graph;
        drop((targets, offsets));
        let mut leaf_parent: Array<u32> = store.zeroed(span.len())?;
        common_dominators(&parent, &span, &mut leaf_parent, store)?;
        drop(span);
        let (leaf_start, leaves) = hang_leaves(&leaf_parent, nodes, inner, store)?;
        let of_node = |node: usize| {
            let held = &leaves[leaf_start[node] as usize..leaf_start[node + 1] as usize];
            let own = Some(object[node]).filter(|&o| o != NONE).map_or(0, &size);
            own + held.iter().map(|&leaf| size(leaf)).sum::<u64>()
        };
        let bytes = Sums::new(nodes, of_node, store)?;
        store.stop_keeping();
        Ok(Self {
            object,
            parent,
            end,
            bytes,
            leaf_start,
            leaves,
            node_of,
            leaf_parent,
            inner,
            roots,
        })
    }

    /// Number of nodes, the root included.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.object.len()
    }

    /// Every node but the root, in preorder.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node> + use<> {
        (1..self.object.len() as u32).map(Node)
    }

    /// The object at a node; `None` at the root.
    #[must_use]
    pub fn object(&self, node: Node) -> Option<ObjectIndex> {
        Some(self.object[node.index()])
            .filter(|&o| o != NONE)
            .map(ObjectIndex)
    }

    /// The node of an object that holds references and is reachable.
    #[must_use]
    pub fn node(&self, object: ObjectIndex) -> Option<Node> {
        self.node_of
            .get(object.index())
            .copied()
            .filter(|&n| n != NONE)
            .map(Node)
    }

    /// Whether a GC root reaches the object, by references that retain.
    #[must_use]
    pub fn is_reachable(&self, object: ObjectIndex) -> bool {
        self.dominator(object).is_some()
    }

    /// The node that immediately dominates an object; `None` when it is unreachable.
    #[must_use]
    pub fn dominator(&self, object: ObjectIndex) -> Option<Node> {
        if object.0 < self.inner {
            self.node(object).map(|n| self.parent(n))
        } else {
            let leaf = (object.0 - self.inner) as usize;
            self.leaf_parent
                .get(leaf)
                .copied()
                .filter(|&n| n != NONE)
                .map(Node)
        }
    }

    /// Asks for the first thing that [`DominatorTree::dominator`] looks at.
    #[inline(always)]
    pub(crate) fn fetch_dominator(&self, object: ObjectIndex) {
        if object.0 < self.inner {
            mem::prefetch(&self.node_of, object.index());
        } else {
            mem::prefetch(&self.leaf_parent, (object.0 - self.inner) as usize);
        }
    }

    /// Asks for the second.
    #[inline(always)]
    pub(crate) fn fetch_parent(&self, object: ObjectIndex) {
        if object.0 < self.inner {
            mem::prefetch(&self.parent, self.node_of[object.index()] as usize);
        }
    }

    /// Asks for what [`DominatorTree::children`] and [`DominatorTree::leaves`] look at.
    #[inline(always)]
    pub(crate) fn fetch_children(&self, node: Node) {
        mem::prefetch(&self.end, node.index() + 1);
        mem::prefetch(&self.object, node.index() + 1);
        self.bytes.fetch(node.index() + 1);
        mem::prefetch(&self.leaf_start, node.index());
    }

    /// The node above; the root is its own parent.
    #[inline]
    #[must_use]
    pub fn parent(&self, node: Node) -> Node {
        Node(self.parent[node.index()])
    }

    /// The first node after this one's subtree.
    #[inline]
    #[must_use]
    pub fn end(&self, node: Node) -> Node {
        Node(self.end[node.index()])
    }

    /// The nodes that a node dominates immediately.
    pub fn children(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let end = self.end[node.index()];
        let mut next = node.0 + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(Node(next))?;
            next = self.end[child.index()];
            Some(child)
        })
    }

    /// The leaves that a node dominates immediately.
    pub fn leaves(&self, node: Node) -> impl ExactSizeIterator<Item = ObjectIndex> + '_ {
        let range =
            self.leaf_start[node.index()] as usize..self.leaf_start[node.index() + 1] as usize;
        self.leaves[range].iter().map(|&l| ObjectIndex(l))
    }

    /// Bytes that would be free if the object at this node were.
    #[inline]
    #[must_use]
    pub fn retained_bytes(&self, node: Node) -> u64 {
        self.bytes.before(self.end[node.index()]) - self.bytes.before(node.0)
    }

    /// Objects that would be free if the object at this node were, itself included.
    #[must_use]
    pub fn retained_objects(&self, node: Node) -> u64 {
        let end = self.end[node.index()];
        let leaves = self.leaf_start[end as usize] - self.leaf_start[node.index()];
        let itself = u64::from(node != Node::ROOT);
        u64::from(end - node.0) - 1 + itself + u64::from(leaves)
    }

    /// The objects that roots hold, with the kind of root.
    #[must_use]
    pub fn roots(&self) -> impl ExactSizeIterator<Item = (ObjectIndex, RootKind)> + '_ {
        self.roots.iter().map(|&(o, kind)| (ObjectIndex(o), kind))
    }

    /// The kind of root that holds an object directly.
    #[must_use]
    pub fn root_kind(&self, object: ObjectIndex) -> Option<RootKind> {
        self.roots
            .binary_search_by_key(&object.0, |r| r.0)
            .ok()
            .map(|i| self.roots[i].1)
    }
}

/// The tree's arrays, without and later with the sinks.
struct Nodes {
    object: Array<u32>,
    parent: Array<u32>,
    end: Array<u32>,
    node_of: Array<u32>,
}

/// The tree of what was searched: from numbers in which dominators come first to the dominator
/// tree's preorder. Sinks have no node yet, and `object` is left empty.
fn renumber(idom: &[u32], number: Array<u32>, codes: Codes, store: &Store) -> Result<Nodes> {
    let nodes = idom.len();
    // First each number's subtree size, then its place.
    let mut place: Array<u32> = store.zeroed(nodes)?;
    for n in (1..nodes).rev() {
        place[n] += 1;
        place[idom[n] as usize] += place[n];
    }
    place[0] += 1;
    let mut next: Array<u32> = store.zeroed(nodes)?;
    let (mut parent, mut end): (Array<u32>, Array<u32>) =
        (store.zeroed(nodes)?, store.zeroed(nodes)?);
    {
        let (place, next) = (&mut place[..], &mut next[..]);
        let (parent, end) = (&mut parent[..], &mut end[..]);
        next[0] = 1;
        place[0] = 0;
        end[0] = nodes as u32;
        for n in 1..nodes {
            let up = idom[n] as usize;
            let (at, size) = (next[up], place[n]);
            next[up] = at + size;
            next[n] = at + 1;
            place[n] = at;
            parent[at as usize] = place[up];
            end[at as usize] = at + size;
        }
    }
    drop(next);
    let mut node_of = number;
    node_of.par_iter_mut().for_each(|n| {
        *n = if codes.is_node(*n) {
            place[*n as usize]
        } else {
            NONE
        };
    });
    Ok(Nodes {
        object: store.zeroed(0)?,
        parent,
        end,
        node_of,
    })
}

/// Objects with references that only soft references reach, and those that only finalizers do.
type Weak = [Vec<u32>; 2];

fn weakly_reached(graph: &HeapGraph, number: &[u32], levels: [u32; 3]) -> Weak {
    if levels[0] == levels[2] {
        return Weak::default();
    }
    let codes = graph.codes();
    [1, 2].map(|level| {
        let range = levels[level - 1] + 1..=levels[level];
        number
            .par_iter()
            .enumerate()
            .filter(|(_, n)| codes.is_node(**n) && range.contains(*n))
            .map(|(object, _)| object as u32)
            .collect()
    })
}

/// Hangs the sinks on the tree, each as a node without children, before the other children of the
/// node that dominates it. Those that turn out to be weakly reached are added to `weak`.
fn add_sinks(
    graph: &HeapGraph,
    core: Nodes,
    sinks: &Sinks,
    weak: &mut Weak,
    store: &Store,
) -> Result<Nodes> {
    let Nodes {
        parent,
        end,
        mut node_of,
        ..
    } = core;
    let codes = graph.codes();
    let mut places: Array<u32> = store.zeroed(sinks.count() as usize)?;
    {
        let mut span: Array<u64> = store.zeroed(places.len())?;
        let slot = |target: u32| codes.as_sink(target).map(|sink| sinks.rank(sink) as usize);
        let held = graph.roots.iter().map(|&(root, _)| root);
        let roots = held
            .filter(|&root| root < graph.split.inner && sinks.contains(root))
            .map(|root| sinks.rank(root) as usize);
        let late = spans(graph, &node_of, weak, roots, slot, &mut span);
        for (weak, late) in weak.iter_mut().zip(late) {
            weak.extend(late.into_iter().filter_map(|target| codes.as_sink(target)));
        }
        common_dominators(&parent, &span, &mut places, store)?;
    }
    // Some sinks were searched and have a node.
    let searched = |object: usize| node_of[object] != NONE;
    sinks.each_mut(&mut places, |object, place| {
        if searched(object as usize) {
            *place = NONE;
        }
    });
    // How many sinks hang on the nodes before each.
    let mut before: Array<u32> = store.zeroed(parent.len() + 1)?;
    count(&places, &mut before[1..]);
    let mut sum = 0;
    for count in before.iter_mut() {
        sum += *count;
        *count = sum;
    }
    let total = parent.len() + sum as usize;
    {
        // Takes each node's sinks from last to first; afterwards `before` is as it was, but one on.
        let next = &mut before[1..];
        for place in places.iter_mut().rev() {
            if *place != NONE {
                let node = *place as usize;
                next[node] -= 1;
                *place += 1 + next[node];
            }
        }
    }
    // Now `before[n + 1]` counts the sinks on the nodes before `n`.
    let before = &before[1..];
    let at = |node: u32| node + before.get(node as usize).copied().unwrap_or(sum);
    let mut parent_of: Array<u32> = store.zeroed(total)?;
    fill(&mut parent_of, before, |node, out| {
        let own = at(node);
        out.fill(own);
        out[0] = at(parent[node as usize]);
    });
    drop(parent);
    let mut end_of: Array<u32> = store.zeroed(total)?;
    fill(&mut end_of, before, |node, out| {
        for (own, end) in (at(node) + 1..).zip(out.iter_mut()) {
            *end = own;
        }
        out[0] = at(end[node as usize]);
    });
    drop(end);
    let mut object: Array<u32> = store.zeroed(total)?;
    object[0] = NONE;
    {
        let out = mem::as_atomic_u32(&mut object);
        sinks.each_pair(&mut node_of, &places, |object, node, place| {
            *node = match place {
                Some(place) if *node == NONE => place,
                _ if *node == NONE => NONE,
                _ => at(*node),
            };
            if *node != NONE {
                out[*node as usize].store(object, Ordering::Relaxed);
            }
        });
    }
    Ok(Nodes {
        object,
        parent: parent_of,
        end: end_of,
        node_of,
    })
}

/// Fills the stretch of each node: itself and the sinks on it.
fn fill(out: &mut [u32], before: &[u32], fill: impl Fn(u32, &mut [u32]) + Sync) {
    const CHUNK: usize = 1 << 14;
    let total = out.len();
    let nodes = before.len();
    let start = |node: usize| {
        if node < nodes {
            node + before[node] as usize
        } else {
            total
        }
    };
    let mut jobs = Vec::with_capacity(nodes / CHUNK + 1);
    let mut rest = out;
    for first in (0..nodes).step_by(CHUNK) {
        let last = (first + CHUNK).min(nodes);
        let part;
        (part, rest) = rest.split_at_mut(start(last) - start(first));
        jobs.push((first..last, part));
    }
    jobs.into_par_iter().for_each(|(range, part)| {
        let base = start(range.start);
        for node in range {
            fill(
                node as u32,
                &mut part[start(node) - base..start(node + 1) - base],
            );
        }
    });
}

/// For each target with a slot the smallest and the largest node that refers to it, by its strongest
/// referrers. Returns the targets that only weaker references reach.
fn spans(
    graph: &HeapGraph,
    node_of: &[u32],
    weak: &Weak,
    roots: impl Iterator<Item = usize>,
    slot: impl Fn(u32) -> Option<usize> + Sync,
    span: &mut [u64],
) -> Weak {
    span.par_iter_mut().for_each(|s| *s = UNSEEN);
    for root in roots {
        span[root] = 0;
    }
    let mut is_weak = vec![
        0_u64;
        if weak.iter().all(Vec::is_empty) {
            0
        } else {
            node_of.len() / 64 + 1
        }
    ];
    for &object in weak.iter().flatten() {
        is_weak[object as usize / 64] |= 1 << (object % 64);
    }
    let is_strong =
        |object: usize| is_weak.is_empty() || is_weak[object / 64] & 1 << (object % 64) == 0;
    let shared = mem::as_atomic_u64(span);
    let widen = |slot: usize, node: u32| {
        let slot = &shared[slot];
        let mut old = slot.load(Ordering::Relaxed);
        loop {
            let new = widened(old, node);
            if new == old {
                break;
            }
            match slot.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(seen) => old = seen,
            }
        }
    };
    const CHUNK: usize = 1 << 14;
    const AHEAD: usize = 32;
    node_of
        .par_chunks(CHUNK)
        .enumerate()
        .for_each(|(c, nodes)| {
            let first = c * CHUNK;
            let mut begin = graph.offsets[first] as usize;
            // Slots are fetched some references ahead: an atomic operation that misses the cache
            // holds up all that follow it.
            let mut ring = [(usize::MAX, 0_u32); AHEAD];
            let mut at = 0;
            for (i, &node) in nodes.iter().enumerate() {
                let end = graph.offsets[first + i + 1] as usize;
                if begin < end && node != NONE && is_strong(first + i) {
                    for slot in graph.targets[begin..end].iter().filter_map(|&t| slot(t)) {
                        mem::prefetch(shared, slot);
                        let (slot, node) = std::mem::replace(&mut ring[at], (slot, node));
                        at = (at + 1) % AHEAD;
                        if slot != usize::MAX {
                            widen(slot, node);
                        }
                    }
                }
                begin = end;
            }
            for (slot, node) in ring {
                if slot != usize::MAX {
                    widen(slot, node);
                }
            }
        });
    let mut found = Weak::default();
    // A soft reference that only finalizers reach is no stronger than they are.
    let mut last = weak[1].clone();
    last.sort_unstable();
    let is_last = |from: u32| usize::from(last.binary_search(&from).is_ok());
    for level in 0..2 {
        let softly = graph.weaker[0].iter().filter(|e| is_last(e.0) == level);
        let finally = graph.weaker[1].iter().filter(|_| level == 1);
        let of_referents = softly.chain(finally).copied();
        let of_rows = weak[level]
            .iter()
            .flat_map(|&from| graph.row(from).iter().map(move |&target| (from, target)));
        let late: Vec<(u32, u32)> = of_referents
            .chain(of_rows)
            .filter(|&(from, target)| {
                node_of[from as usize] != NONE
                    && slot(target).is_some_and(|s| shared[s].load(Ordering::Relaxed) == UNSEEN)
            })
            .collect();
        for (from, target) in late {
            if let Some(slot) = slot(target) {
                widen(slot, node_of[from as usize]);
            }
            found[level].push(target);
        }
        found[level].sort_unstable();
        found[level].dedup();
    }
    found
}

#[inline(always)]
fn widened(span: u64, node: u32) -> u64 {
    let (low, high) = ((span >> 32) as u32, span as u32);
    if span == UNSEEN {
        u64::from(node) << 32 | u64::from(node)
    } else {
        u64::from(low.min(node)) << 32 | u64::from(high.max(node))
    }
}

/// The nearest common dominator of each span's ends.
///
/// In preorder, the nearest common ancestor of two nodes is the smallest parent of those after the
/// first up to the second.
fn common_dominators(parent: &[u32], span: &[u64], out: &mut [u32], store: &Store) -> Result<()> {
    let minima = Minima::new(parent, store)?;
    out.par_iter_mut()
        .zip(span.par_iter())
        .for_each(|(out, &span)| {
            let (low, high) = ((span >> 32) as u32, span as u32);
            *out = if span == UNSEEN {
                NONE
            } else if low == high {
                low
            } else {
                minima.of(low as usize + 1, high as usize + 1)
            };
        });
    Ok(())
}

/// Counts how often each node occurs.
fn count(nodes: &[u32], counts: &mut [u32]) {
    let counts = mem::as_atomic_u32(counts);
    nodes.par_iter().for_each(|&node| {
        if node != NONE {
            counts[node as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Leaves by the node they hang on: a counting sort, stable in object order.
fn hang_leaves(
    leaf_parent: &[u32],
    nodes: usize,
    inner: u32,
    store: &Store,
) -> Result<(Array<u32>, Array<u32>)> {
    let mut start: Array<u32> = store.zeroed(nodes + 1)?;
    count(leaf_parent, &mut start);
    let mut sum = 0;
    for count in start.iter_mut() {
        sum += *count;
        *count = sum;
    }
    let mut leaves: Array<u32> = store.zeroed(sum as usize)?;
    {
        let (start, leaves) = (&mut start[..], &mut leaves[..]);
        for (leaf, &node) in leaf_parent.iter().enumerate().rev() {
            if node != NONE {
                start[node as usize] -= 1;
                leaves[start[node as usize] as usize] = inner + leaf as u32;
            }
        }
    }
    Ok((start, leaves))
}
