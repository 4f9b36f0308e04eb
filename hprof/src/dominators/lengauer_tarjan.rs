//! Immediate dominators by the simple variant of Lengauer and Tarjan's algorithm ("A fast algorithm for finding
//! dominators in a flowgraph", 1979). The implementation is iterative and works on preorder numbers.
//!
//! The simple variant uses path compression without balancing. Its time is O(m log n), and nearly linear on heaps. The
//! semi-NCA algorithm is an alternative, but takes quadratic time on a long queue whose elements a table also holds,
//! which is a common leak.

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::list::List;
use crate::bytes::mem;
use crate::dominators::annotated::{AnnotatedGraph, MappedBits, each_bit};
use crate::dominators::core::Core;
use crate::dominators::search::{self, SpanningTree};
use crate::error::Result;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::NONE;
use crate::progress::Progress;

/// Immediate dominators of the reached members of the core (the objects whose dominators have to be computed). The
/// members are numbered, and the per-object word of each member in the graph is its number.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// For each reached member of the core, indexed by its number: the number of its immediate dominator. Dominators
    /// have smaller numbers than the objects that they dominate. 0 is the super-root (the artificial root).
    pub(crate) idom: Array<u32>,
    /// For each reachability level (strong, soft, final): the largest number of a core member that is reachable by
    /// references of this level or of stronger levels.
    pub(crate) levels: [u32; 3],
    pub(crate) core: Core,
}

/// Computes the dominators of the core (see [`Core`]) over strong references. Then extends the dominators to objects
/// that only soft references reach, and to objects that only final references (those of finalizers) reach.
///
/// Time: O(m log n) in the core. Memory: 16 bytes for each core object; or, if this is more, 8 bytes for each core
/// object plus 4 bytes for each reference from a core object to a merge node (an object with several referrers).
pub(crate) fn dominators(
    graph: &mut AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
    core: Core,
    store: &Store,
    progress: &dyn Progress,
) -> Result<Dominators> {
    let SpanningTree {
        parent,
        reached: strong,
    } = store.preparing(later_bytes(&core), || {
        search::search(graph, class_of, &core, store)
    })?;
    progress.check_cancelled()?;
    progress.phase("finding dominators", 0);
    let predecessors = Predecessors::new(graph, class_of, &core, strong, store)?;
    mem::trim_heap();
    let idom = immediate(predecessors, parent, strong, store)?;
    let mut all = Dominators {
        idom,
        levels: [strong; 3],
        core,
    };
    for level in 1..=2 {
        extend(graph, class_of, &mut all, level, store)?;
        all.levels[level..].fill(all.idom.len() as u32 - 1);
    }
    Ok(all)
}

/// Returns a lower bound, in bytes, of the memory that is needed right after the depth-first search. This memory is for
/// the references to merge nodes (objects with several referrers), and for the first vertices that are processed.
fn later_bytes(core: &Core) -> u64 {
    u64::from(core.count) * 8
}

/// References from the reached members of the core (the objects whose dominators are computed) to merge nodes (objects
/// with several referrers), grouped by target.
struct Predecessors {
    offsets: Array<u32>,
    sources: Array<u32>,
}

impl Predecessors {
    fn new(
        graph: &mut AnnotatedGraph,
        class_of: &(impl Fn(u32) -> u32 + Sync),
        core: &Core,
        reached: u32,
        store: &Store,
    ) -> Result<Self> {
        let mut offsets: Array<u32> = store.zeroed(reached as usize + 2)?;
        {
            let counts = mem::as_atomic_u32(&mut offsets);
            for_each_edge(graph, class_of, core, counts, |_, to| {
                counts[to as usize].fetch_add(1, Ordering::Relaxed);
            });
        }
        let mut sum = 0;
        for offset in offsets.iter_mut() {
            sum += *offset;
            *offset = sum;
        }
        let mut sources: Array<u32> = store.zeroed(sum as usize)?;
        {
            // Sorts the references by target. The group of each target is filled from its end. Afterwards the offsets
            // are the starts of the groups.
            let cursors = mem::as_atomic_u32(&mut offsets);
            let out = mem::as_atomic_u32(&mut sources);
            for_each_edge(graph, class_of, core, cursors, |from, to| {
                let at = cursors[to as usize].fetch_sub(1, Ordering::Relaxed) - 1;
                out[at as usize].store(from, Ordering::Relaxed);
            });
        }
        Ok(Self { offsets, sources })
    }
}

/// Calls `visit` for each reference to a merge node, with the number of the source and the number of the target.
///
/// `out` is an array indexed by target number, to which `visit` writes. The data of later objects is prefetched first,
/// and then the elements of `out` that `visit` will write. Without this, an atomic operation that misses the cache
/// would delay all operations after it.
fn for_each_edge<T: Sync>(
    graph: &mut AnnotatedGraph,
    class_of: &(impl Fn(u32) -> u32 + Sync),
    core: &Core,
    out: &[T],
    visit: impl Fn(u32, u32) + Sync,
) {
    const AHEAD: usize = 32;
    /// Number of words of the bitmap `core.members` that one task processes. The bitmap shows which objects need a
    /// dominator computation.
    const WORDS: usize = 1 << 8;
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    let roots: Vec<u32> = graph.roots.iter().map(|r| r.0).collect();
    let (cells, targets) = graph.shared();
    let (joins, witnesses) = (core.joins.view(), core.witnesses.view());
    core.members
        .words()
        .par_chunks(WORDS)
        .enumerate()
        .for_each(|(chunk, words)| {
            let mut objects = [(0_u32, NONE); AHEAD];
            let mut numbers = [(0_u32, NONE); AHEAD];
            let (mut at, mut due) = (0, 0);
            let mut finish = |from: u32, to: u32| {
                if to != NONE {
                    mem::prefetch(out, to as usize);
                }
                let (from, to) = std::mem::replace(&mut numbers[due], (from, to));
                due = (due + 1) % AHEAD;
                if to != NONE {
                    visit(from, to);
                }
            };
            let mut number = |from: u32, object: u32| {
                if object != NONE {
                    let to = cells.number(object);
                    if to != from {
                        finish(from, to);
                    }
                }
            };
            for (i, &word) in words.iter().enumerate() {
                each_bit(chunk * WORDS + i, word, |object| {
                    let from = cells.number(object);
                    if from == 0 {
                        return;
                    }
                    let with_classes = witnesses.contains(object);
                    let row = cells.begin(object) as usize..cells.begin(object + 1) as usize;
                    let mut add = |target: u32| {
                        cells.fetch(target);
                        let (from, object) = std::mem::replace(&mut objects[at], (from, target));
                        at = (at + 1) % AHEAD;
                        number(from, object);
                    };
                    for &target in &targets[row] {
                        let counts = if target < classes {
                            with_classes
                        } else {
                            target < inner && joins.contains(target)
                        };
                        if counts {
                            add(target);
                        }
                    }
                    if with_classes
                        && let Some(class) = Some(class_of(object)).filter(|&c| c != NONE)
                    {
                        add(class);
                    }
                });
            }
            for (from, object) in objects {
                number(from, object);
            }
            for _ in 0..AHEAD {
                finish(0, NONE);
            }
        });
    for root in roots {
        if root < inner && core.members.contains(root) && cells.number(root) != 0 {
            visit(0, cells.number(root));
        }
    }
}

/// Runs Lengauer and Tarjan's algorithm on numbered vertices.
///
/// Vertices are processed from the last to the first. Meanwhile, memory for the results is filled as fast as memory of
/// the input is freed. So the input and the results are never both completely in memory.
fn immediate(
    predecessors: Predecessors,
    parent: Array<u32>,
    reached: u32,
    store: &Store,
) -> Result<Array<u32>> {
    /// Memory of the input is freed each time this number of vertices has been processed. The results of this number of
    /// vertices fill a large page.
    const STRETCH: usize = 1 << 17;
    let count = reached as usize + 1;
    let Predecessors {
        mut offsets,
        mut sources,
    } = predecessors;
    let mut parent = parent;
    // The store keeps freed memory for reuse. Give this memory back to the system. Otherwise the first vertices of the
    // new array would be in it. They are processed last, so the memory would be unused for a long time.
    store.release_kept();
    let mut words: Array<u32> = store.zeroed(count * 4)?;
    {
        let mut forest = LinkEvalForest {
            vertices: bytemuck::cast_slice_mut(&mut words),
            path: Vec::new(),
        };
        let mut last = reached;
        while last > 0 {
            let first = ((last as usize - 1) / STRETCH * STRETCH).max(1) as u32;
            let known = Unprocessed {
                parent: &mut parent,
                offsets: &offsets,
                sources: &sources,
            };
            forest.process(first, last, known);
            last = first - 1;
            let left = first as usize;
            sources.truncate_and_release(offsets[left] as usize);
            offsets.truncate_and_release(left + 1);
            parent.truncate_and_release(left);
        }
    }
    drop((offsets, sources, parent));
    // The result is written into the memory of the vertices. The words of a vertex are overwritten only after the
    // vertex has been read.
    let fields = &mut words[..];
    for w in 1..count {
        let (semi, idom) = (fields[w * 4 + 2], fields[w * 4 + 3]);
        fields[w] = if idom == semi {
            idom
        } else {
            fields[idom as usize]
        };
    }
    words.cut(count)?;
    Ok(words)
}

/// Number of predecessors between the prefetch of a vertex and its use.
const AHEAD: usize = 24;

/// The state of a vertex. It takes a quarter of a cache line.
///
/// When all vertices are processed, the array of vertices is read as an array of words.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Vertex {
    /// The parent in the spanning tree, later an ancestor closer to the root.
    ancestor: u32,
    /// The vertex with the smallest semidominator on the path from this vertex to the ancestor.
    label: u32,
    semi: u32,
    /// At first, the next vertex in the same bucket (a linked list of vertices). Later, the dominator of the vertex.
    idom: u32,
}

/// The parents and the predecessors of the vertices that are not processed yet.
struct Unprocessed<'a> {
    /// This array has two uses. If the bucket of a vertex is empty, the element is the vertex's parent, which has a
    /// smaller number than the vertex. If the bucket is not empty, the element is the first member of the bucket, which
    /// has a larger number. The members of a bucket are a linked list, and the last member links to the vertex's
    /// parent.
    parent: &'a mut [u32],
    offsets: &'a [u32],
    sources: &'a [u32],
}

/// The link-eval forest of the Lengauer-Tarjan algorithm. Vertices with numbers greater than a limit are linked to
/// their parents. The limit decreases while the algorithm runs.
struct LinkEvalForest<'a> {
    vertices: &'a mut [Vertex],
    path: Vec<u32>,
}

impl LinkEvalForest<'_> {
    /// Computes the semidominators of the vertices from `last` down to `first`, and links the vertices. All vertices
    /// after `last` must be processed already.
    fn process(&mut self, first: u32, last: u32, known: Unprocessed<'_>) {
        let Unprocessed {
            parent,
            offsets,
            sources,
        } = known;
        let mut end = offsets[last as usize + 1] as usize;
        for w in (first..=last).rev() {
            let p = parent[w as usize];
            let begin = offsets[w as usize] as usize;
            let mut best = p;
            for at in (begin..end).rev() {
                if at >= AHEAD {
                    mem::prefetch(self.vertices, sources[at - AHEAD] as usize);
                }
                let v = sources[at];
                // A vertex with a smaller number is not linked yet. So far, its semidominator is the vertex itself.
                best = best.min(if v <= w { v } else { self.eval(v, w) });
            }
            end = begin;
            self.vertices[w as usize] = Vertex {
                ancestor: p,
                label: w,
                semi: best,
                idom: if best == p || best == 0 {
                    best
                } else {
                    std::mem::replace(&mut parent[best as usize], w)
                },
            };
            // From here on, `w` is linked to `p`. Find the dominators of the vertices in the bucket of `p`, and empty
            // it.
            if p != 0 {
                let mut v = parent[p as usize];
                while v > p {
                    let Vertex {
                        idom: next, semi, ..
                    } = self.vertices[v as usize];
                    let u = self.eval_vertex(v, w - 1);
                    let dominator = if self.vertices[u as usize].semi < semi {
                        u
                    } else {
                        p
                    };
                    self.vertices[v as usize].idom = dominator;
                    v = next;
                }
                parent[p as usize] = v;
            }
        }
    }

    /// Returns the smallest semidominator on the path from `v` up to the root of its tree in the forest. Vertices with
    /// numbers greater than `limit` are linked.
    #[inline]
    fn eval(&mut self, v: u32, limit: u32) -> u32 {
        let label = self.eval_vertex(v, limit);
        self.vertices[label as usize].semi
    }

    /// Returns the vertex with the smallest semidominator on the path from `v` up to the root of its tree in the
    /// forest. Compresses the path. Vertices with numbers greater than `limit` are linked.
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
/// A newly reached object cannot change the dominator of an object that a stronger path reaches. The reason: a weaker
/// path to an object has no effect if there is a stronger path to it. The objects that stronger paths reach influence
/// the new dominators only through their dominator tree. So it is enough to run the algorithm on a small graph: the
/// newly reached objects, the reference objects, and the ancestors of the reference objects in the dominator tree.
fn extend(
    graph: &mut AnnotatedGraph,
    class_of: &impl Fn(u32) -> u32,
    all: &mut Dominators,
    level: usize,
    store: &Store,
) -> Result<()> {
    let (inner, classes) = (graph.split.inner, graph.split.classes);
    let core = &all.core;
    let is_member = |object: u32| object < inner && core.members.contains(object);
    let base = all.idom.len() as u32 - 1;
    let mut seeds: List<[u32; 2]> = List::new(store)?;
    for &(from, to) in &graph.weaker[level - 1] {
        if graph.note(from) != 0 && is_member(to) && graph.note(to) == 0 {
            seeds.push([from, to])?;
        }
    }
    if seeds.len() == 0 {
        return Ok(());
    }
    let seeds = seeds.into_array()?;
    // Collects the newly reached objects, and the references among them.
    let mut found: List<u32> = List::new(store)?;
    for &[_, to] in seeds.iter() {
        if graph.note(to) == 0 {
            found.push(to)?;
            graph.set_note(to, base + found.len() as u32);
        }
    }
    let weaker = sorted(&graph.weaker[..level], store)?;
    let mut edges: List<[u32; 2]> = List::new(store)?;
    let (cells, targets) = graph.shared();
    let mut at = 0;
    while at < found.len() {
        let object = found.get(at);
        let from = base + 1 + at as u32;
        let first = weaker.partition_point(|e| e[0] < object);
        let referents = weaker[first..]
            .iter()
            .take_while(|e| e[0] == object)
            .map(|e| e[1]);
        let is_witness = core.witnesses.contains(object);
        let row = cells.begin(object) as usize..cells.begin(object + 1) as usize;
        let held = targets[row]
            .iter()
            .copied()
            .chain(referents)
            .chain([class_of(object)].into_iter().filter(|_| is_witness))
            .filter(|&target| is_member(target));
        for target in held {
            let mut to = cells.number(target);
            if to == 0 {
                found.push(target)?;
                to = base + found.len() as u32;
                cells.note(target).store(to, Ordering::Relaxed);
            } else if target < classes && !is_witness {
                continue;
            }
            if to > base {
                edges.push([from, to])?;
            }
        }
        at += 1;
    }
    drop(weaker);
    let found = found.into_array()?;
    // Collect the reference objects (`java.lang.ref`) and all their dominators. Begin at the last node: a dominator has
    // a smaller number than the nodes that it dominates, so it is visited after them.
    let mut above = MappedBits::new(base as usize + 1, store)?;
    for &[from, to] in seeds.iter() {
        let (from, to) = (graph.note(from), graph.note(to));
        above.insert(from);
        edges.push([from, to])?;
    }
    drop(seeds);
    for at in (0..above.words().len()).rev() {
        let mut left = above.words()[at];
        while left != 0 {
            let bit = 63 - left.leading_zeros();
            let dominator = all.idom[at * 64 + bit as usize];
            if dominator != 0 {
                above.insert(dominator);
            }
            left = above.words()[at] & ((1 << bit) - 1);
        }
    }
    let above = above.list(store)?;
    // In the small graph, the reference objects and their dominators have the first numbers. The newly reached objects
    // have the next numbers.
    let small = |n: u32| -> u32 {
        if n > base {
            above.len() as u32 + (n - base - 1)
        } else {
            above.partition_point(|&a| a < n) as u32
        }
    };
    let mut roots: Vec<u32> = Vec::new();
    for &node in above.iter() {
        match all.idom[node as usize] {
            0 => roots.push(small(node)),
            dominator => edges.push([dominator, node])?,
        }
    }
    let mut rows = edges.into_array()?;
    rows.par_iter_mut().for_each(|row| *row = row.map(small));
    rows.par_sort_unstable();
    let nodes = above.len() + found.len();
    let little = HeapGraph::from_rows(nodes as u32, &rows, &roots, store)?;
    drop(rows);
    let mut little = AnnotatedGraph::new(little)?;
    let whole = Core::all(&mut little, store)?;
    let search = search::search(&mut little, &|_| NONE, &whole, store)?;
    let reached = search.reached;
    let predecessors = Predecessors::new(&mut little, &|_| NONE, &whole, reached, store)?;
    let idom = immediate(predecessors, search.parent, reached, store)?;
    // Number the newly reached objects in the order in which the search of the small graph reached them. Then a
    // dominator has a smaller number than the objects that it dominates.
    let mut order: Array<u32> = store.zeroed(reached as usize + 1)?;
    for node in 0..nodes as u32 {
        let n = little.note(node);
        if n != 0 {
            order[n as usize] = node;
        }
    }
    let mut outer: Array<u32> = store.zeroed(reached as usize + 1)?;
    let mut next = base;
    all.idom.resize(base as usize + 1 + found.len())?;
    for n in 1..=reached as usize {
        let node = order[n] as usize;
        outer[n] = match above.get(node) {
            Some(&a) => a,
            None => {
                next += 1;
                graph.set_note(found[node - above.len()], next);
                all.idom[next as usize] = outer[idom[n] as usize];
                next
            }
        };
    }
    Ok(())
}

/// Returns the references of `weaker` as one list, sorted by source.
fn sorted(weaker: &[Vec<(u32, u32)>], store: &Store) -> Result<Array<[u32; 2]>> {
    let count = weaker.iter().map(Vec::len).sum();
    let mut sorted: Array<[u32; 2]> = store.zeroed(count)?;
    let all = weaker.iter().flatten();
    for (to, &(source, target)) in sorted.iter_mut().zip(all) {
        *to = [source, target];
    }
    sorted.par_sort_unstable();
    Ok(sorted)
}
