//! The dominator tree of all reachable objects, in preorder. The subtree of a node is a range of nodes, so its retained
//! size is the difference of two prefix sums.

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;

use std::ops::Range;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::bytes::array::{Array, Column, Store};
use crate::bytes::mem;
use crate::dominators::annotated::AnnotatedGraph;
use crate::dominators::bare::Checked;
use crate::dominators::core::Core;
use crate::dominators::held::{LaidOut, Note};
use crate::dominators::leaves;
use crate::dominators::lengauer_tarjan;
use crate::dominators::preorder::{self, Outcome, Preorder};
use crate::dominators::ranges::{Sums, SumsView};
use crate::dominators::thresholds::Thresholds;
use crate::error::Result;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::{NONE, ObjectIndex};
use crate::progress::Progress;
use crate::records::walk::RootKind;

/// A node of the dominator tree, which is an object with references. The number is its position in the tree's preorder.
/// 0 is the super-root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Node(pub u32);

impl Node {
    /// The super-root: an artificial node that refers to the objects that GC roots hold. It dominates every reachable
    /// object.
    pub const ROOT: Self = Self(0);

    #[inline]
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The dominator tree. Its nodes are the objects with references. The objects without references are leaves. A leaf is
/// a child of the node that dominates it immediately.
#[derive(Debug)]
pub struct DominatorTree {
    /// The object at each node; [`NONE`] at the super-root.
    pub(crate) object: Column<u32>,
    /// The immediate dominator of each node.
    pub(crate) parent: Column<u32>,
    /// For each node, the first node after its subtree.
    pub(crate) end: Column<u32>,
    /// For each node, the bytes of all nodes before it, and of the leaves (objects without references) that these nodes
    /// dominate immediately. The last element is the total.
    pub(crate) bytes: Sums,
    /// For each node, the number of leaves (objects without references) that the nodes before it dominate immediately.
    /// The last element is the total.
    pub(crate) leaf_start: Sums,
    /// The leaves (objects without references), in the order of the nodes that dominate them.
    pub(crate) leaves: Column<u32>,
    /// The node of each object with references; [`NONE`] if the object is unreachable.
    pub(crate) node_of: Column<u32>,
    /// The node that immediately dominates each leaf (object without references); [`NONE`] if the leaf is unreachable.
    pub(crate) leaf_parent: Column<u32>,
    pub(crate) inner: u32,
    pub(crate) roots: Vec<(u32, RootKind)>,
}

impl DominatorTree {
    /// Builds the dominator tree of a graph. `size` returns the shallow size of an object. Retained sizes are sums of
    /// shallow sizes.
    ///
    /// Cost: linear in the number of objects and references, apart from a logarithmic factor. Most of the work runs on
    /// all threads of the current rayon pool. The graph's memory is reused. The tree takes about 21 bytes for each
    /// object with references, and 8 for each other object.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn build(
        graph: HeapGraph,
        size: impl Fn(ObjectIndex) -> u64 + Sync,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let store = Store::new(None);
        let graph = graph.with_rows_of_leaves(&store)?;
        let size = |object| size(ObjectIndex(object));
        let thresholds = Thresholds::default();
        let tree = Self::new(
            graph,
            |_| NONE,
            (size, |_| ()),
            thresholds,
            None,
            &store,
            progress,
        )?;
        Ok(tree.unwrap_or_else(|| {
            unreachable!(
                "`new` returns None only if a leaf refers to its class, and here no leaf does"
            )
        }))
    }

    /// Finds the dominators and puts the tree in preorder. `class_of` returns the class object of an object, or
    /// [`NONE`] if the reference to it does not matter. `size` returns an object's shallow size, and `fetch` prefetches
    /// the memory that `size` reads. The function `note` is called with the adjacency lists and the dominators, before
    /// the lists are freed. Returns `None` if the reference from a leaf (object without other references) to its class
    /// could change a dominator.
    ///
    /// Leaves take no part in the dominator computation. In the tree's preorder, the nearest common dominator of a set
    /// of nodes is that of the first and the last of these nodes. So one pass over the references to leaves finds their
    /// dominators.
    ///
    /// Cost: linear, except O(log n) for each leaf with several referrers.
    pub(crate) fn new(
        graph: HeapGraph,
        class_of: impl Fn(u32) -> u32 + Sync,
        (size, fetch): (impl Fn(u32) -> u64 + Sync, impl Fn(u32) + Sync),
        thresholds: Thresholds,
        note: Option<Note<'_>>,
        store: &Store,
        progress: &dyn Progress,
    ) -> Result<Option<Self>> {
        /// Number of objects between the prefetch of a size and its use.
        const AHEAD: usize = 16;
        let (inner, objects) = (graph.split.inner, graph.objects);
        let mut graph = AnnotatedGraph::new(graph)?;
        // Frees memory that was needed for reading.
        mem::trim_heap();
        let Preorder {
            parent,
            weak,
            of_class,
        } = preorder_of(&mut graph, &class_of, thresholds, store, progress)?;
        let nodes = parent.len();
        let (leaf_parent, weak) =
            leaves::dominators(&graph, &weak, &parent, objects - inner, thresholds, store)?;
        let checked = Checked {
            graph: &graph,
            of_class: &of_class,
            leaf_parent: &leaf_parent,
            weak: &weak,
        };
        if checked.is_wrong(&class_of) {
            return Ok(None);
        }
        drop((of_class, weak));
        if let Some(note) = note {
            note(LaidOut {
                graph: &graph,
                parent: &parent,
                leaf_parent: &leaf_parent,
            })?;
        }
        graph.targets = store.zeroed(0)?;
        let roots = std::mem::take(&mut graph.roots);
        let node_of = graph.into_notes()?;
        let (end, hung) = rayon::join(
            || ends(&parent, store),
            || sort_leaves(&leaf_parent, nodes, inner, store),
        );
        let (end, (leaf_start, leaves)) = (end?, hung?);
        let object = nodes_objects(&node_of, nodes, store)?;
        store.release_kept();
        let bytes = {
            let (object, leaves, starts) = (&object[..], &leaves[..], leaf_start.view());
            let (size, fetch) = (&size, &fetch);
            let from = |first: usize| {
                let mut begin = starts.before(first as u32) as usize;
                (first..nodes).map(move |node| {
                    if let Some(&later) = object.get(node + AHEAD) {
                        fetch(later);
                    }
                    let end = starts.before(node as u32 + 1) as usize;
                    let own = Some(object[node]).filter(|&o| o != NONE).map_or(0, size);
                    let held = (begin..end).map(|at| {
                        if let Some(&later) = leaves.get(at + AHEAD) {
                            fetch(later);
                        }
                        size(leaves[at])
                    });
                    begin = end;
                    own + held.sum::<u64>()
                })
            };
            Sums::new(nodes, from, store)?
        };
        store.stop_keeping();
        Ok(Some(Self {
            object: object.into(),
            parent: parent.into(),
            end: end.into(),
            bytes,
            leaf_start,
            leaves: leaves.into(),
            node_of: node_of.into(),
            leaf_parent: leaf_parent.into(),
            inner,
            roots,
        }))
    }

    /// Returns the number of nodes, including the super-root.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.object.len()
    }

    /// Returns all nodes except the super-root, in preorder.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = Node> + use<> {
        (1..self.object.len() as u32).map(Node)
    }

    /// Returns the object at a node; `None` at the super-root.
    #[inline]
    #[must_use]
    pub fn object(&self, node: Node) -> Option<ObjectIndex> {
        Some(self.object[node.index()])
            .filter(|&o| o != NONE)
            .map(ObjectIndex)
    }

    /// Returns the node of an object that has references and is reachable.
    #[inline]
    #[must_use]
    pub fn node(&self, object: ObjectIndex) -> Option<Node> {
        self.node_of
            .get(object.index())
            .copied()
            .filter(|&n| n != NONE)
            .map(Node)
    }

    /// Returns true if the object is reachable from a GC root through references that retain objects.
    #[inline]
    #[must_use]
    pub fn is_reachable(&self, object: ObjectIndex) -> bool {
        if object.0 < self.inner {
            self.node(object).is_some()
        } else {
            self.dominator(object).is_some()
        }
    }

    /// Returns the node that immediately dominates an object; `None` if the object is unreachable.
    #[inline]
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

    /// Prefetches the element that [`DominatorTree::dominator`] reads first: the node of an object, or the dominator of
    /// a leaf (object without references).
    #[inline(always)]
    pub(crate) fn fetch_dominator(&self, object: ObjectIndex) {
        if object.0 < self.inner {
            mem::prefetch(&self.node_of, object.index());
        } else {
            mem::prefetch(&self.leaf_parent, (object.0 - self.inner) as usize);
        }
    }

    /// Prefetches the memory that [`DominatorTree::dominator`] reads second.
    #[inline(always)]
    pub(crate) fn fetch_parent(&self, object: ObjectIndex) {
        if object.0 < self.inner {
            mem::prefetch(&self.parent, self.node_of[object.index()] as usize);
        }
    }

    /// Returns the tree's arrays as slices, for loops over many nodes.
    pub(crate) fn view(&self) -> TreeView<'_> {
        TreeView {
            object: &self.object,
            end: &self.end,
            leaf_start: self.leaf_start.view(),
            leaves: &self.leaves,
            bytes: self.bytes.view(),
        }
    }

    /// Returns the parent of a node: its immediate dominator. The super-root is its own parent.
    #[inline]
    #[must_use]
    pub fn parent(&self, node: Node) -> Node {
        Node(self.parent[node.index()])
    }

    /// Returns the first node after the subtree of a node.
    #[inline]
    #[must_use]
    pub fn end(&self, node: Node) -> Node {
        Node(self.end[node.index()])
    }

    /// Returns the nodes that a node dominates immediately.
    pub fn children(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let end = self.end[node.index()];
        let mut next = node.0 + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(Node(next))?;
            next = self.end[child.index()];
            Some(child)
        })
    }

    /// Returns the leaves (objects without references) that a node dominates immediately.
    pub fn leaves(&self, node: Node) -> impl ExactSizeIterator<Item = ObjectIndex> + '_ {
        self.view().leaves(node.0).iter().map(|&l| ObjectIndex(l))
    }

    /// Returns the bytes that would become free if the object at this node were freed, including its own bytes.
    #[inline]
    #[must_use]
    pub fn retained_bytes(&self, node: Node) -> u64 {
        self.bytes.before(self.end[node.index()]) - self.bytes.before(node.0)
    }

    /// Returns the number of objects that would become free if the object at this node were freed, including itself.
    #[must_use]
    pub fn retained_objects(&self, node: Node) -> u64 {
        let end = self.end[node.index()];
        let leaves = self.leaf_start.before(end) - self.leaf_start.before(node.0);
        let itself = u64::from(node != Node::ROOT);
        u64::from(end - node.0) - 1 + itself + leaves
    }

    /// Returns the objects that GC roots hold, each with its kind of root.
    #[must_use]
    pub fn roots(&self) -> impl ExactSizeIterator<Item = (ObjectIndex, RootKind)> + '_ {
        self.roots.iter().map(|&(o, kind)| (ObjectIndex(o), kind))
    }

    /// Returns the kind of GC root that holds an object directly.
    #[must_use]
    pub fn root_kind(&self, object: ObjectIndex) -> Option<RootKind> {
        self.roots
            .binary_search_by_key(&object.0, |r| r.0)
            .ok()
            .map(|i| self.roots[i].1)
    }
}

/// The arrays of a [`DominatorTree`] as slices. In a loop, this saves a look-up of the array's location for each node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeView<'a> {
    pub(crate) object: &'a [u32],
    pub(crate) end: &'a [u32],
    leaf_start: SumsView<'a>,
    leaves: &'a [u32],
    bytes: SumsView<'a>,
}

impl<'a> TreeView<'a> {
    /// Prefetches the memory needed to find the nodes and leaves that a node dominates immediately.
    #[inline(always)]
    pub(crate) fn fetch_children(self, node: u32) {
        let at = node as usize;
        mem::prefetch(self.end, at + 1);
        mem::prefetch(self.object, at + 1);
        self.bytes.fetch(at + 1);
        self.leaf_start.fetch(at);
    }

    /// See [`DominatorTree::leaves`].
    #[inline(always)]
    pub(crate) fn leaves(self, node: u32) -> &'a [u32] {
        let begin = self.leaf_start.before(node) as usize;
        &self.leaves[begin..self.leaf_start.before(node + 1) as usize]
    }

    /// Returns the number of leaves (objects without references) that the nodes before this one dominate immediately.
    #[inline(always)]
    pub(crate) fn leaves_before(self, node: u32) -> usize {
        self.leaf_start.before(node) as usize
    }

    /// Returns the leaves (objects without references) that the nodes of a range dominate immediately. The first
    /// element of the result is the number of leaves that the nodes before the range dominate immediately.
    pub(crate) fn leaves_of(self, nodes: Range<u32>) -> (usize, &'a [u32]) {
        let begin = self.leaves_before(nodes.start);
        (begin, &self.leaves[begin..self.leaves_before(nodes.end)])
    }

    /// Returns the bytes of all nodes before this one, and of the leaves that these nodes dominate immediately.
    #[inline(always)]
    pub(crate) fn bytes_before(self, node: u32) -> u64 {
        self.bytes.before(node)
    }

    /// See [`DominatorTree::retained_bytes`].
    #[inline(always)]
    pub(crate) fn retained_bytes(self, node: u32) -> u64 {
        self.bytes.before(self.end[node as usize]) - self.bytes.before(node)
    }
}

/// Finds the dominators, and gives each node its position in preorder. If the first witnesses (the objects whose
/// references to their classes are followed) are not enough, repeats this with more witnesses. The last attempt
/// computes the dominators of all objects with references.
fn preorder_of(
    graph: &mut AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
    thresholds: Thresholds,
    store: &Store,
    progress: &dyn Progress,
) -> Result<Preorder> {
    const ATTEMPTS: usize = 3;
    let mut witnesses: Vec<u32> = Vec::new();
    for attempt in 0..=ATTEMPTS {
        progress.check_cancelled()?;
        progress.phase("searching the heap graph", 0);
        let core = if attempt < ATTEMPTS {
            Core::find(graph, class_of, &witnesses, thresholds, store)?
        } else {
            Core::all(graph, store)?
        };
        let dominators = lengauer_tarjan::dominators(graph, class_of, core, store, progress)?;
        progress.check_cancelled()?;
        progress.phase("retained sizes", 0);
        match preorder::lay_out(graph, class_of, dominators, thresholds, store)? {
            Outcome::Done(preorder) => return Ok(preorder),
            Outcome::Missing(more) => {
                thresholds.count(|tally| &tally.wanting, 1);
                witnesses.extend(more);
            }
        }
    }
    unreachable!("the last attempt includes all nodes, so no node can be missing")
}

/// Returns the object at each node of the dominator tree; [`NONE`] at the super-root.
fn nodes_objects(node_of: &[u32], nodes: usize, store: &Store) -> Result<Array<u32>> {
    const AHEAD: usize = 32;
    const CHUNK: usize = 1 << 14;
    let mut object: Array<u32> = store.zeroed(nodes)?;
    {
        let out = mem::as_atomic_u32(&mut object);
        let chunks = node_of.par_chunks(CHUNK).enumerate();
        chunks.for_each(|(chunk, nodes)| {
            for (i, (&node, object)) in nodes.iter().zip((chunk * CHUNK) as u32..).enumerate() {
                if let Some(&later) = nodes.get(i + AHEAD) {
                    mem::prefetch(out, later as usize);
                }
                if node != NONE {
                    out[node as usize].store(object, Ordering::Relaxed);
                }
            }
        });
    }
    object[0] = NONE;
    Ok(object)
}

/// Returns, for each node, the first node after its subtree. `parent` is in preorder.
fn ends(parent: &[u32], store: &Store) -> Result<Array<u32>> {
    let mut end: Array<u32> = store.zeroed(parent.len())?;
    let ends = &mut end[..];
    for node in (0..parent.len()).rev() {
        // If the node has no children, `ends[node]` is still 0, and the subtree consists of the node alone.
        let own = ends[node].max(node as u32 + 1);
        ends[node] = own;
        let above = &mut ends[parent[node] as usize];
        *above = own.max(*above);
    }
    Ok(end)
}

/// Counts how often each node occurs in `nodes`.
fn count(nodes: &[u32], counts: &mut [u32]) {
    const AHEAD: usize = 32;
    const CHUNK: usize = 1 << 14;
    let counts = mem::as_atomic_u32(counts);
    nodes.par_chunks(CHUNK).for_each(|nodes| {
        let mut at = 0;
        // Leaves with neighbouring numbers often have the same parent, so count all leaves in a row with the same
        // parent at once.
        for same in nodes.chunk_by(|a, b| a == b) {
            at += same.len();
            if let Some(&later) = nodes.get(at + AHEAD) {
                mem::prefetch(counts, later as usize);
            }
            if let Some(count) = counts.get(same[0] as usize) {
                count.fetch_add(same.len() as u32, Ordering::Relaxed);
            }
        }
    });
}

/// Returns the leaves (objects without references), sorted by the node that dominates them, and the number of leaves
/// before each node. Leaves of one node stay in the order of their numbers (counting sort).
///
/// Each task reads all leaves, and stores the leaves of its nodes.
fn sort_leaves(
    leaf_parent: &[u32],
    nodes: usize,
    inner: u32,
    store: &Store,
) -> Result<(Sums, Array<u32>)> {
    /// Maximum number of tasks. With more tasks, reading all leaves in each task would take longer than storing them.
    const MOST_TASKS: usize = 16;
    const AHEAD: usize = 32;
    let mut start: Array<u32> = store.zeroed(nodes)?;
    count(leaf_parent, &mut start);
    let sums = {
        let counts = &start[..];
        let from = |first: usize| counts[first..].iter().map(|&count| u64::from(count));
        Sums::new(nodes, from, store)?
    };
    let before = sums.view();
    let all = before.before(nodes as u32) as usize;
    let mut leaves: Array<u32> = store.zeroed(all)?;
    start
        .par_iter_mut()
        .enumerate()
        .for_each(|(node, start)| *start = before.before(node as u32) as u32);
    let tasks = rayon::current_num_threads().min(MOST_TASKS);
    let (mut first, mut starts, mut places) = (0, &mut start[..], &mut leaves[..]);
    let mut jobs = Vec::with_capacity(tasks);
    for task in 1..=tasks {
        let wanted = all * task / tasks;
        // The last task gets all remaining nodes.
        let count = if task == tasks {
            starts.len()
        } else {
            starts.partition_point(|&start| (start as usize) < wanted)
        };
        let (own, own_places);
        (own, starts) = starts.split_at_mut(count);
        let begin = before.before(first as u32);
        let end = before.before((first + count) as u32);
        (own_places, places) = places.split_at_mut((end - begin) as usize);
        jobs.push((first as u32, begin as u32, own, own_places));
        first += count;
    }
    jobs.into_par_iter()
        .for_each(|(first, begin, starts, places)| {
            for (at, (&node, leaf)) in leaf_parent.iter().zip(inner..).enumerate() {
                if let Some(&later) = leaf_parent.get(at + AHEAD) {
                    mem::prefetch(starts, later.wrapping_sub(first) as usize);
                }
                if let Some(start) = starts.get_mut(node.wrapping_sub(first) as usize) {
                    places[(*start - begin) as usize] = leaf;
                    *start += 1;
                }
            }
        });
    Ok((sums, leaves))
}
