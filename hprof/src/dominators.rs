//! Immediate dominators by the simple variant of Lengauer and Tarjan's algorithm ("A fast
//! algorithm for finding dominators in a flowgraph", 1979), in preorder space and iterative.
//!
//! The variant with path compression alone is O(m log n), and on heaps nearly linear; the
//! semi-NCA alternative is quadratic on long queues that a table also holds, a common leak.

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::error::Result;
use crate::graph::HeapGraph;
use crate::ids::NONE;
use crate::mem::{self, Array, Store};
use crate::progress::Progress;
use crate::search::sinks::Sinks;
use crate::search::{self, Search};

/// Immediate dominators of all reached objects that hold references.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// For each object with references its number, 0 when unreached, its code when it is a sink. A
    /// dominator's number is smaller than that of what it dominates.
    pub(crate) number: Array<u32>,
    /// For each number the immediate dominator's; 0 is the super-root.
    pub(crate) idom: Array<u32>,
    /// The last number of each strength of reachability: strong, then soft, then final.
    pub(crate) levels: [u32; 3],
    pub(crate) sinks: Sinks,
}

/// Computes dominators over strong references, then extends them to what only soft references and
/// then only finalizers reach. Consumes the rows of objects with references.
///
/// Cost: O(m log n) time; four 32-bit arrays beside the graph.
pub(crate) fn dominators(
    graph: &mut HeapGraph,
    store: &Store,
    progress: &dyn Progress,
) -> Result<Dominators> {
    progress.phase("searching", 0);
    let Search {
        number,
        parent,
        reached: strong,
        sinks,
    } = search::search(graph, true, store)?;
    progress.phase("finding dominators", 0);
    let predecessors = Predecessors::new(graph, &number, &parent, store)?;
    mem::trim_heap();
    graph.keep_leaf_references(&number)?;
    let idom = immediate(predecessors, parent, strong, store)?;
    let mut all = Dominators {
        number,
        idom,
        levels: [strong; 3],
        sinks,
    };
    for level in 1..=2 {
        extend(graph, &mut all, level, store)?;
        all.levels[level..].fill(all.idom.len() as u32 - 1);
    }
    Ok(all)
}

/// References among reached objects that are not tree edges, by target.
struct Predecessors {
    offsets: Array<u32>,
    sources: Array<u32>,
}

/// Rows handled by one task.
const CHUNK: usize = 1 << 14;

impl Predecessors {
    fn new(graph: &HeapGraph, number: &[u32], parent: &[u32], store: &Store) -> Result<Self> {
        let mut offsets: Array<u32> = store.zeroed(parent.len() + 1)?;
        {
            let counts = mem::as_atomic_u32(&mut offsets);
            for_each_edge(graph, number, counts, |_, to| {
                counts[to as usize].fetch_add(1, Ordering::Relaxed);
            });
        }
        let to_classes = class_edges(graph, number, parent, &offsets, store)?;
        for &[_, to] in to_classes.iter() {
            offsets[to as usize] += 1;
        }
        let mut sum = 0;
        for offset in offsets.iter_mut() {
            sum += *offset;
            *offset = sum;
        }
        let mut sources: Array<u32> = store.zeroed(sum as usize)?;
        {
            // Filled from each row's end, so that afterwards the offsets are the rows' beginnings.
            let cursors = mem::as_atomic_u32(&mut offsets);
            let out = mem::as_atomic_u32(&mut sources);
            let put = |from: u32, to: u32| {
                let at = cursors[to as usize].fetch_sub(1, Ordering::Relaxed) - 1;
                out[at as usize].store(from, Ordering::Relaxed);
            };
            for_each_edge(graph, number, cursors, put);
            to_classes.iter().for_each(|&[from, to]| put(from, to));
        }
        Ok(Self { offsets, sources })
    }

    #[inline(always)]
    fn of(&self, node: u32) -> std::ops::Range<usize> {
        self.offsets[node as usize] as usize..self.offsets[node as usize + 1] as usize
    }
}

/// The reached rows of one chunk: each one's number and what is left of its references.
fn chunk_rows<'a>(
    graph: &'a HeapGraph,
    chunk: usize,
    numbers: &'a [u32],
) -> impl Iterator<Item = (u32, &'a [u32])> {
    let first = chunk * CHUNK;
    let (targets, codes) = (&graph.targets[..], graph.codes());
    let offsets = &graph.offsets[first..first + numbers.len() + 1];
    numbers
        .iter()
        .zip(offsets.windows(2))
        .filter(move |(from, _)| codes.is_node(**from))
        .map(move |(&from, bounds)| (from, &targets[bounds[0] as usize..bounds[1] as usize]))
}

/// Visits each edge that is no tree edge and does not lead to a class object; `out` is what the
/// visits write to, at the edge's target. Each is fetched some edges ahead: an atomic operation
/// that misses the cache holds up all that follow it.
fn for_each_edge<T: Sync>(
    graph: &HeapGraph,
    number: &[u32],
    out: &[T],
    visit: impl Fn(u32, u32) + Sync,
) {
    const AHEAD: usize = 32;
    let (inner, codes) = (graph.split.inner, graph.codes());
    number
        .par_chunks(CHUNK)
        .enumerate()
        .for_each(|(chunk, numbers)| {
            let mut ring = [(0_u32, NONE); AHEAD];
            let mut at = 0;
            for (from, row) in chunk_rows(graph, chunk, numbers) {
                for &target in row {
                    if target < inner && target + 1 != from {
                        mem::prefetch(out, target as usize + 1);
                        let (from, to) = std::mem::replace(&mut ring[at], (from, target + 1));
                        if to != NONE {
                            visit(from, to);
                        }
                        at = (at + 1) % AHEAD;
                    }
                }
            }
            for (from, to) in ring {
                if to != NONE {
                    visit(from, to);
                }
            }
        });
    for &(root, _) in &graph.roots {
        if root < inner && codes.is_node(number[root as usize]) {
            visit(0, number[root as usize]);
        }
    }
}

/// The edges to class objects, far fewer than there are: every object refers to its class, so
/// nearly all of them say the same.
///
/// An object that is no ancestor of the class in the search tree, and whose only predecessor is
/// its tree parent, does not dominate the class, and all paths through it come through that
/// parent; so the parent can stand for it. (The parent is an ancestor of the class or was numbered
/// after it, so the tree stays a depth-first tree.) Applied until it no longer can, and with
/// repetitions left out, that leaves a fraction.
fn class_edges(
    graph: &HeapGraph,
    number: &[u32],
    parent: &[u32],
    others: &[u32],
    store: &Store,
) -> Result<Array<[u32; 2]>> {
    /// How far a chain is climbed among the ancestors of other classes.
    const STEPS: usize = 16;
    const CACHE: usize = 1 << 12;
    /// Chunks whose edges are gathered before they are moved to their array.
    const BATCH: usize = 64;
    let codes = graph.codes();
    // The class that a target in a row of the searched leads to, by itself or as a sink.
    let class_of = |target: u32| match codes.as_sink_of_class(target) {
        Some(sink) => codes.class_of_sink(number[sink as usize]),
        None => codes.as_class(target),
    };
    let mut class_at: Array<u32> = store.zeroed(parent.len().div_ceil(32))?;
    for &n in number[..graph.split.classes as usize]
        .iter()
        .filter(|&&n| n != 0)
    {
        class_at[n as usize / 32] |= 1 << (n % 32);
    }
    let is_single =
        |n: u32| others[n as usize] == 0 && class_at[n as usize / 32] & 1 << (n % 32) == 0;
    let is_above = above_classes(number, parent, graph.split.classes, store)?;
    // The top of each chain of objects with one predecessor that are above no class at all.
    let mut top: Array<u32> = store.zeroed(parent.len())?;
    for n in 1..parent.len() as u32 {
        top[n as usize] = if is_single(n) && is_above[n as usize / 32] & 1 << (n % 32) == 0 {
            top[parent[n as usize] as usize]
        } else {
            n
        };
    }
    let top = &top[..];
    let inner = graph.split.inner;
    let edges_of = |chunk: usize, numbers: &[u32]| {
        let mut found: Vec<[u32; 2]> = Vec::new();
        let mut recent = vec![[0_u32; 2]; CACHE];
        for (from, row) in chunk_rows(graph, chunk, numbers) {
            for &target in row {
                if target < inner {
                    continue;
                }
                let Some(class) = class_of(target) else {
                    continue;
                };
                let class = number[class as usize];
                let mut node = top[from as usize];
                for _ in 0..STEPS {
                    // What is smaller may be above this class, what is larger is above others.
                    if node <= class || !is_single(node) {
                        break;
                    }
                    node = top[parent[node as usize] as usize];
                }
                let slot = &mut recent[(node.wrapping_mul(0x9e37_79b1) ^ class) as usize % CACHE];
                if node != class && *slot != [node, class] {
                    *slot = [node, class];
                    found.push([node, class]);
                }
            }
        }
        found
    };
    let mut edges: Array<[u32; 2]> = store.zeroed(0)?;
    for (batch, numbers) in number.chunks(CHUNK * BATCH).enumerate() {
        let found: Vec<Vec<[u32; 2]>> = numbers
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, numbers)| edges_of(batch * BATCH + chunk, numbers))
            .collect();
        found.iter().try_for_each(|found| edges.extend(found))?;
    }
    let held = graph.roots.iter().filter(|&&(root, _)| root < inner);
    let of_roots = held.filter_map(|&(root, _)| codes.class_of_sink(number[root as usize]));
    let of_roots: Vec<[u32; 2]> = of_roots.map(|class| [0, number[class as usize]]).collect();
    edges.extend(&of_roots)?;
    Ok(edges)
}

/// A bitmap of the class objects' ancestors in the search tree, themselves included.
fn above_classes(
    number: &[u32],
    parent: &[u32],
    classes: u32,
    store: &Store,
) -> Result<Array<u32>> {
    let mut above: Array<u32> = store.zeroed(parent.len().div_ceil(32))?;
    for &class in &number[..classes as usize] {
        let mut n = class;
        while n != 0 && above[n as usize / 32] & 1 << (n % 32) == 0 {
            above[n as usize / 32] |= 1 << (n % 32);
            n = parent[n as usize];
        }
    }
    Ok(above)
}

/// The algorithm proper, over numbers.
fn immediate(
    predecessors: Predecessors,
    parent: Array<u32>,
    reached: u32,
    store: &Store,
) -> Result<Array<u32>> {
    let count = reached as usize + 1;
    // The parents' memory grows into the vertices', from the last to the first.
    let mut vertices = parent;
    vertices.resize(count * 4)?;
    {
        let fields = &mut vertices[..];
        for w in (0..count).rev() {
            let ancestor = fields[w];
            fields[w * 4..w * 4 + 4].copy_from_slice(&[ancestor, w as u32, 0, 0]);
        }
    }
    let vertices: &mut [Vertex] = bytemuck::cast_slice_mut(&mut vertices);
    {
        let sources = &predecessors.sources[..];
        let mut forest = Forest {
            vertices,
            path: Vec::new(),
        };
        for w in (1..=reached).rev() {
            let p = forest.vertices[w as usize].ancestor;
            let mut best = p;
            for at in predecessors.of(w).rev() {
                if at >= AHEAD {
                    mem::prefetch(forest.vertices, sources[at - AHEAD] as usize);
                }
                let v = sources[at];
                // A smaller number is an unlinked vertex: its own semidominator so far.
                best = best.min(if v <= w { v } else { forest.eval(v, w) });
            }
            let vertices = &mut *forest.vertices;
            vertices[w as usize].semi = best;
            vertices[w as usize].idom = if best == p || best == 0 {
                best
            } else {
                std::mem::replace(&mut vertices[best as usize].idom, w)
            };
            // From here on w is linked to p: empty p's bucket. Zero is no member of any bucket.
            if p != 0 {
                let mut v = std::mem::take(&mut vertices[p as usize].idom);
                while v != 0 {
                    let Vertex {
                        idom: next, semi, ..
                    } = forest.vertices[v as usize];
                    let u = forest.eval_vertex(v, w - 1);
                    let dominator = if forest.vertices[u as usize].semi < semi {
                        u
                    } else {
                        p
                    };
                    forest.vertices[v as usize].idom = dominator;
                    v = next;
                }
            }
        }
    }
    drop(predecessors);
    let mut idom: Array<u32> = store.zeroed(count)?;
    let idoms = &mut idom[..];
    for (w, vertex) in vertices.iter().enumerate().skip(1) {
        idoms[w] = if vertex.idom == vertex.semi {
            vertex.idom
        } else {
            idoms[vertex.idom as usize]
        };
    }
    Ok(idom)
}

/// How many predecessors ahead their vertices are fetched.
const AHEAD: usize = 24;

/// All that is known of a vertex, in a quarter of a cache line.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Vertex {
    /// The parent in the search tree, later an ancestor nearer to the root.
    ancestor: u32,
    /// The vertex of smallest semidominator between here and the ancestor.
    label: u32,
    semi: u32,
    /// In turn the vertex's bucket (while it is unprocessed), its link in a bucket, its dominator.
    idom: u32,
}

/// The link-eval forest. A vertex is linked once it is larger than a limit that moves down.
struct Forest<'a> {
    vertices: &'a mut [Vertex],
    path: Vec<u32>,
}

impl Forest<'_> {
    /// The smallest semidominator on the path from `v` up to its tree's root, where vertices above
    /// `limit` are linked.
    #[inline]
    fn eval(&mut self, v: u32, limit: u32) -> u32 {
        let label = self.eval_vertex(v, limit);
        self.vertices[label as usize].semi
    }

    /// The vertex that has it. Compresses the path.
    #[inline]
    fn eval_vertex(&mut self, v: u32, limit: u32) -> u32 {
        let vertices = &mut *self.vertices;
        let mut up = vertices[v as usize].ancestor;
        if up <= limit {
            return vertices[v as usize].label;
        }
        let mut top = v;
        self.path.clear();
        while up > limit {
            self.path.push(top);
            top = up;
            up = vertices[top as usize].ancestor;
        }
        let mut best = vertices[top as usize].label;
        let mut best_semi = vertices[best as usize].semi;
        for &x in self.path.iter().rev() {
            let own = vertices[x as usize].label;
            let own_semi = vertices[own as usize].semi;
            if best_semi < own_semi {
                vertices[x as usize].label = best;
            } else {
                (best, best_semi) = (own, own_semi);
            }
            vertices[x as usize].ancestor = up;
        }
        vertices[v as usize].label
    }
}

/// Extends the dominators to objects that only weaker references reach.
///
/// Such objects refer to nothing that changes a stronger object's dominators, since a weaker path
/// never counts beside a stronger one. And all that the stronger part says about their dominators
/// is in its dominator tree. So a small graph has the same answer: the dominator tree's part above
/// the reference objects, and the newly reached objects.
fn extend(graph: &mut HeapGraph, all: &mut Dominators, level: usize, store: &Store) -> Result<()> {
    let (inner, codes) = (graph.split.inner, graph.codes());
    let base = all.idom.len() as u32 - 1;
    let is_new = |number: &[u32], target: u32| target < inner && number[target as usize] == 0;
    let seeds: Vec<(u32, u32)> = graph.weaker[level - 1]
        .iter()
        .copied()
        .filter(|&(from, to)| all.number[from as usize] != 0 && is_new(&all.number, to))
        .collect();
    if seeds.is_empty() {
        return Ok(());
    }
    // What the new objects are and what they refer to among each other.
    let mut found: Vec<u32> = Vec::new();
    for &(_, to) in &seeds {
        if is_new(&all.number, to) {
            found.push(to);
            all.number[to as usize] = base + found.len() as u32;
        }
    }
    let mut weaker: Vec<(u32, u32)> = graph.weaker[..level].concat();
    weaker.sort_unstable();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut at = 0;
    while at < found.len() {
        let object = found[at];
        let from = base + 1 + at as u32;
        let first = weaker.partition_point(|e| e.0 < object);
        let referents = weaker[first..]
            .iter()
            .take_while(|e| e.0 == object)
            .map(|e| e.1);
        let (begin, end) = (
            graph.offsets[object as usize],
            graph.offsets[object as usize + 1],
        );
        // Referents come after the row, where there is no slot to rewrite.
        let row = (begin as usize..end as usize).map(|slot| (slot, graph.targets[slot]));
        let held: Vec<(usize, u32)> = row
            .chain(referents.map(|target| (usize::MAX, target)))
            .filter(|&(_, target)| target < inner)
            .collect();
        for (slot, target) in held {
            let mut to = all.number[target as usize];
            if codes.is_sink(to) {
                // As in the search: only a sink that is the first way to its class is entered.
                let class = codes.class_of_sink(to).map(|c| all.number[c as usize]);
                if class != Some(0) {
                    graph.targets[slot] = codes.sink(target, to);
                    if let Some(class) = class.filter(|&c| c > base) {
                        edges.push((from, class));
                    }
                    continue;
                }
                to = 0;
            }
            if to == 0 {
                found.push(target);
                to = base + found.len() as u32;
                all.number[target as usize] = to;
            }
            if to > base {
                edges.push((from, to));
            }
        }
        at += 1;
    }
    // The part of the dominator tree above the references.
    let mut above: Vec<u32> = Vec::new();
    for &(from, to) in &seeds {
        let from = all.number[from as usize];
        above.push(from);
        edges.push((from, all.number[to as usize]));
    }
    above.sort_unstable();
    above.dedup();
    let mut work = above.clone();
    let mut known: std::collections::HashSet<u32> = above.iter().copied().collect();
    while let Some(node) = work.pop() {
        let dominator = all.idom[node as usize];
        if dominator != 0 && known.insert(dominator) {
            work.push(dominator);
            above.push(dominator);
        }
    }
    above.sort_unstable();
    edges.extend(above.iter().map(|&n| (all.idom[n as usize], n)));
    // Small numbers: first those above, then the new ones.
    let small = |n: u32| -> u32 {
        if n > base {
            above.len() as u32 + (n - base - 1)
        } else {
            above.partition_point(|&a| a < n) as u32
        }
    };
    let mut roots: Vec<u32> = Vec::new();
    let mut rows: Vec<(u32, u32)> = Vec::with_capacity(edges.len());
    for (from, to) in edges {
        if from == 0 {
            roots.push(small(to))
        } else {
            rows.push((small(from), small(to)))
        }
    }
    rows.sort_unstable();
    rows.dedup();
    roots.sort_unstable();
    let nodes = above.len() + found.len();
    let mut little = HeapGraph::from_rows(nodes as u32, &rows, &roots, store)?;
    let search = search::search(&mut little, false, store)?;
    let (number, reached) = (search.number, search.reached);
    let predecessors = Predecessors::new(&little, &number, &search.parent, store)?;
    let idom = immediate(predecessors, search.parent, reached, store)?;
    // New objects are numbered in the small search's order, so that dominators stay smaller.
    let mut order: Vec<u32> = vec![NONE; reached as usize + 1];
    for (node, &n) in number.iter().enumerate() {
        if n != 0 {
            order[n as usize] = node as u32;
        }
    }
    let mut outer: Vec<u32> = vec![0; reached as usize + 1];
    let mut next = base;
    all.idom.resize(base as usize + 1 + found.len())?;
    for n in 1..=reached as usize {
        let node = order[n] as usize;
        outer[n] = match above.get(node) {
            Some(&a) => a,
            None => {
                next += 1;
                all.number[found[node - above.len()] as usize] = next;
                all.idom[next as usize] = outer[idom[n] as usize];
                next
            }
        };
    }
    Ok(())
}

impl HeapGraph {
    /// A graph of `nodes` objects that all may hold references, from edges sorted by source.
    pub(crate) fn from_rows(
        nodes: u32,
        rows: &[(u32, u32)],
        roots: &[u32],
        store: &Store,
    ) -> Result<Self> {
        let mut offsets: Array<u32> = store.zeroed(nodes as usize + 1)?;
        for &(from, _) in rows {
            offsets[from as usize + 1] += 1;
        }
        let mut sum = 0;
        for offset in offsets.iter_mut() {
            sum += *offset;
            *offset = sum;
        }
        let mut targets: Array<u32> = store.zeroed(rows.len())?;
        for (slot, row) in targets.iter_mut().zip(rows) {
            *slot = row.1;
        }
        let split = crate::address::Split {
            classes: 0,
            inner: nodes,
        };
        let roots = roots
            .iter()
            .map(|&r| (r, crate::RootKind::Unknown))
            .collect();
        Ok(Self {
            offsets,
            targets,
            split,
            objects: nodes,
            roots,
            weaker: [Vec::new(), Vec::new()],
        })
    }
}
