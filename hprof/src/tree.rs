//! The dominator tree of all reachable objects, in its own preorder: a subtree is an interval, so
//! a retained size is the difference of two prefix sums.

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::dominators::Dominators;
use crate::error::Result;
use crate::graph::HeapGraph;
use crate::ids::{NONE, ObjectIndex};
use crate::mem::{self, Array, Store};
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
    bytes: Array<u64>,
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
        mut graph: HeapGraph,
        dominators: Dominators,
        size: impl Fn(u32) -> u64 + Sync,
        store: &Store,
    ) -> Result<Self> {
        let (inner, objects) = (graph.split.inner, graph.objects);
        graph.keep_leaf_references()?;
        let Dominators {
            number,
            idom,
            levels,
        } = dominators;
        let Renumbered { place, parent, end } = renumber(&idom, store)?;
        drop(idom);
        let nodes = parent.len();
        let mut object: Array<u32> = store.zeroed(nodes)?;
        object[0] = NONE;
        let mut node_of = number;
        {
            let out = mem::as_atomic_u32(&mut object);
            node_of.par_iter_mut().enumerate().for_each(|(i, n)| {
                if *n == 0 {
                    *n = NONE;
                } else {
                    *n = place[*n as usize];
                    out[*n as usize].store(i as u32, Ordering::Relaxed);
                }
            });
        }
        // Numbers up to levels[0] were strongly reached; a node's level shows in a place only
        // through its number, so the few weaker ones are listed.
        let weak_nodes: [Vec<u32>; 2] = [1, 2].map(|l| {
            (levels[l - 1] + 1..=levels[l])
                .map(|n| place[n as usize])
                .collect()
        });
        drop(place);
        let mut span: Array<u64> = store.zeroed((objects - inner) as usize)?;
        spans(&graph, &node_of, &weak_nodes, &object, &mut span);
        let HeapGraph {
            roots,
            targets,
            offsets,
            ..
        } = graph;
        drop((targets, offsets));
        let mut leaf_parent: Array<u32> = store.zeroed(span.len())?;
        common_dominators(&parent, &end, &span, &mut leaf_parent, store)?;
        drop(span);
        let (leaf_start, leaves) = hang_leaves(&leaf_parent, nodes, inner, store)?;
        let bytes = prefix_bytes(&object, &leaf_start, &leaves, size, store)?;
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
        mem::prefetch(&self.bytes, node.index() + 1);
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
        self.bytes[self.end[node.index()] as usize] - self.bytes[node.index()]
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

struct Renumbered {
    /// Number to place in the tree's preorder.
    place: Array<u32>,
    parent: Array<u32>,
    end: Array<u32>,
}

/// From numbers in which dominators come first to the dominator tree's preorder.
fn renumber(idom: &[u32], store: &Store) -> Result<Renumbered> {
    let nodes = idom.len();
    let mut size: Array<u32> = store.zeroed(nodes)?;
    for n in (1..nodes).rev() {
        size[n] += 1;
        size[idom[n] as usize] += size[n];
    }
    size[0] += 1;
    let (mut place, mut next): (Array<u32>, Array<u32>) =
        (store.zeroed(nodes)?, store.zeroed(nodes)?);
    let (mut parent, mut end): (Array<u32>, Array<u32>) =
        (store.zeroed(nodes)?, store.zeroed(nodes)?);
    {
        let (size, place, next) = (&size[..], &mut place[..], &mut next[..]);
        let (parent, end) = (&mut parent[..], &mut end[..]);
        next[0] = 1;
        end[0] = nodes as u32;
        for n in 1..nodes {
            let up = idom[n] as usize;
            let at = next[up];
            next[up] = at + size[n];
            next[n] = at + 1;
            place[n] = at;
            parent[at as usize] = place[up];
            end[at as usize] = at + size[n];
        }
    }
    Ok(Renumbered { place, parent, end })
}

impl HeapGraph {
    /// Drops all references but those to leaves, and gives their memory back.
    fn keep_leaf_references(&mut self) -> Result<()> {
        let inner = self.split.inner;
        // Above the leaves are the marks of class objects and of nothing.
        let leaves = self.objects - inner;
        const CHUNK: usize = 1 << 18;
        // Each chunk of rows is compacted in place, then the chunks are moved together.
        let rows = self.offsets.len() - 1;
        let bounds: Vec<usize> = (0..=rows.div_ceil(CHUNK))
            .map(|c| self.offsets[(c * CHUNK).min(rows)] as usize)
            .collect();
        let mut jobs = Vec::with_capacity(bounds.len());
        let mut rest = &mut self.targets[..];
        let (_, mut offsets) = self.offsets.split_at_mut(1);
        for bound in bounds.windows(2) {
            let (targets, ends);
            (targets, rest) = rest.split_at_mut(bound[1] - bound[0]);
            (ends, offsets) = offsets.split_at_mut(offsets.len().min(CHUNK));
            jobs.push((bound[0], targets, ends));
        }
        let kept: Vec<usize> = jobs
            .into_par_iter()
            .map(|(base, targets, ends)| {
                let (mut from, mut to) = (0, 0);
                for end in ends {
                    let row_end = *end as usize - base;
                    while from < row_end {
                        let target = targets[from];
                        from += 1;
                        if target.wrapping_sub(inner) < leaves {
                            targets[to] = target;
                            to += 1;
                        }
                    }
                    *end = to as u32;
                }
                to
            })
            .collect();
        let mut at = 0;
        let mut shifts = Vec::with_capacity(kept.len());
        for (&begin, &count) in bounds.iter().zip(&kept) {
            self.targets.copy_within(begin..begin + count, at);
            shifts.push(at as u32);
            at += count;
        }
        self.offsets[1..]
            .par_chunks_mut(CHUNK)
            .zip(shifts)
            .for_each(|(ends, shift)| {
                ends.iter_mut().for_each(|e| *e += shift);
            });
        self.targets.cut(at)
    }
}

/// For each leaf the smallest and the largest node that refers to it, by its strongest referrers.
fn spans(
    graph: &HeapGraph,
    node_of: &[u32],
    weak: &[Vec<u32>; 2],
    object: &[u32],
    span: &mut [u64],
) {
    let inner = graph.split.inner;
    let mut is_weak: Vec<u64> = vec![
        0;
        if weak.iter().all(Vec::is_empty) {
            0
        } else {
            object.len() / 64 + 1
        }
    ];
    for &node in weak.iter().flatten() {
        is_weak[node as usize / 64] |= 1 << (node % 64);
    }
    let is_strong =
        |node: u32| is_weak.is_empty() || is_weak[node as usize / 64] & 1 << (node % 64) == 0;
    span.par_iter_mut().for_each(|s| *s = UNSEEN);
    for &(root, _) in &graph.roots {
        if root >= inner {
            span[(root - inner) as usize] = 0;
        }
    }
    let shared = mem::as_atomic_u64(span);
    let widen = |leaf: u32, node: u32| {
        let slot = &shared[(leaf - inner) as usize];
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
    node_of
        .par_chunks(CHUNK)
        .enumerate()
        .for_each(|(c, nodes)| {
            let first = c * CHUNK;
            let mut begin = graph.offsets[first] as usize;
            for (i, &node) in nodes.iter().enumerate() {
                let end = graph.offsets[first + i + 1] as usize;
                if begin < end && node != NONE && is_strong(node) {
                    for &leaf in &graph.targets[begin..end] {
                        widen(leaf, node);
                    }
                }
                begin = end;
            }
        });
    for level in 0..2 {
        let mut late: Vec<(u32, u32)> = Vec::new();
        let unseen = |leaf: u32| span_is_unseen(&shared[(leaf - inner) as usize]);
        for &(from, leaf) in &graph.weaker[level] {
            let node = node_of[from as usize];
            if leaf >= inner && node != NONE && unseen(leaf) {
                late.push((leaf, node));
            }
        }
        for &node in &weak[level] {
            let row = graph.row(object[node as usize]).iter();
            late.extend(
                row.copied()
                    .filter(|&leaf| unseen(leaf))
                    .map(|leaf| (leaf, node)),
            );
        }
        for (leaf, node) in late {
            widen(leaf, node);
        }
    }
}

fn span_is_unseen(slot: &std::sync::atomic::AtomicU64) -> bool {
    slot.load(Ordering::Relaxed) == UNSEEN
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
fn common_dominators(
    parent: &[u32],
    end: &[u32],
    span: &[u64],
    out: &mut [u32],
    store: &Store,
) -> Result<()> {
    // Jump pointers (Myers, "An applicative random-access stack", 1983): with parents they reach
    // any ancestor in O(log depth) steps.
    let (mut jump, mut depth): (Array<u32>, Array<u32>) =
        (store.zeroed(parent.len())?, store.zeroed(parent.len())?);
    for n in 1..parent.len() {
        let up = parent[n] as usize;
        let over = jump[up] as usize;
        let far = jump[over] as usize;
        depth[n] = depth[up] + 1;
        jump[n] = if depth[up] - depth[over] == depth[over] - depth[far] {
            far as u32
        } else {
            up as u32
        };
    }
    drop(depth);
    let jump = &jump[..];
    out.par_iter_mut()
        .zip(span.par_iter())
        .for_each(|(out, &span)| {
            if span == UNSEEN {
                *out = NONE;
                return;
            }
            let (mut low, high) = ((span >> 32) as u32, span as u32);
            // The ancestor of `low` whose subtree has `high` in it.
            while end[low as usize] <= high {
                let over = jump[low as usize];
                low = if end[over as usize] <= high {
                    over
                } else {
                    parent[low as usize]
                };
            }
            *out = low;
        });
    Ok(())
}

/// Leaves by the node they hang on: a counting sort, stable in object order.
fn hang_leaves(
    leaf_parent: &[u32],
    nodes: usize,
    inner: u32,
    store: &Store,
) -> Result<(Array<u32>, Array<u32>)> {
    let mut start: Array<u32> = store.zeroed(nodes + 1)?;
    {
        let counts = mem::as_atomic_u32(&mut start);
        leaf_parent.par_iter().for_each(|&node| {
            if node != NONE {
                counts[node as usize].fetch_add(1, Ordering::Relaxed);
            }
        });
    }
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

fn prefix_bytes(
    object: &[u32],
    leaf_start: &[u32],
    leaves: &[u32],
    size: impl Fn(u32) -> u64 + Sync,
    store: &Store,
) -> Result<Array<u64>> {
    const CHUNK: usize = 1 << 14;
    let mut bytes: Array<u64> = store.zeroed(object.len() + 1)?;
    let sums: Vec<u64> = bytes[1..]
        .par_chunks_mut(CHUNK)
        .enumerate()
        .map(|(c, out)| {
            let mut sum = 0;
            for (i, slot) in out.iter_mut().enumerate() {
                let node = c * CHUNK + i;
                if object[node] != NONE {
                    sum += size(object[node]);
                }
                for &leaf in &leaves[leaf_start[node] as usize..leaf_start[node + 1] as usize] {
                    sum += size(leaf);
                }
                *slot = sum;
            }
            sum
        })
        .collect();
    let mut total = 0;
    let mut bases = Vec::with_capacity(sums.len());
    for sum in sums {
        bases.push(total);
        total += sum;
    }
    bytes[1..]
        .par_chunks_mut(CHUNK)
        .zip(bases)
        .for_each(|(out, base)| out.iter_mut().for_each(|b| *b += base));
    Ok(bytes)
}
