//! Unreachable objects: their classes and sizes, and which of these objects hold the others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::answers::objects::reference::RawVia;
use crate::dominators::tree::DominatorTree;
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::progress::Progress;
use crate::records::walk::RootKind;
use crate::sizes::totals::Total;
use crate::snapshot::Snapshot;

/// The unreachable objects of a dump, and the references between these objects.
///
/// An object is an entry if no other unreachable object refers to it. If objects refer to each other in a cycle that no
/// other unreachable object refers to, one of them is an entry. Each unreachable object would be reachable if GC roots
/// held the entries.
#[derive(Debug)]
pub struct Unreachable {
    /// The unreachable objects, sorted. An object's position in this list is its number in `graph`.
    objects: Vec<u32>,
    /// The graph of the references between unreachable objects. Its GC roots are the entries, as defined above.
    graph: HeapGraph,
}

/// The dominator tree of the unreachable objects. The entries (see [`Unreachable`]), from which all other unreachable
/// objects are reachable, take the role of GC roots.
#[derive(Debug)]
pub struct UnreachableTree {
    objects: Vec<u32>,
    tree: DominatorTree,
}

/// An unreachable object, and the memory that it retains in an [`UnreachableTree`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnreachableObject {
    /// The object.
    pub object: ObjectIndex,
    /// The objects that the object dominates in the tree, including itself.
    pub retained: Total,
}

/// The entries (see [`Unreachable`]) of one class, and the memory that is reachable only from these entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryClass {
    /// The class. `None` for class objects.
    pub class: Option<ClassIndex>,
    /// Number of entries.
    pub entries: u64,
    /// The objects that are reachable from these entries but from no other entries, including the entries themselves.
    pub retained: Total,
}

impl Snapshot {
    /// Finds the unreachable objects and their entries. References from `java.lang.ref` objects to their referents do
    /// not count.
    ///
    /// Cost: reads the unreachable objects that have references.
    ///
    /// # Errors
    /// If there is not enough memory, or if the search is cancelled.
    pub fn unreachable_objects(&self, progress: &dyn Progress) -> Result<Unreachable> {
        progress.phase("reading unreachable objects", 0);
        let objects: Vec<u32> = (0..self.object_count() as u32)
            .into_par_iter()
            .filter(|&object| !self.tree.is_reachable(ObjectIndex(object)))
            .collect();
        let edges = self.references_between(&objects);
        progress.check_cancelled()?;
        let mut graph = HeapGraph::from_rows(objects.len() as u32, &edges, &[], &self.store)?;
        drop(edges);
        let entries = entries(&graph).into_iter();
        graph.roots = entries.map(|entry| (entry, RootKind::Unknown)).collect();
        Ok(Unreachable { objects, graph })
    }

    /// Returns the references between `objects`, which are sorted. Each reference is a pair of positions in `objects`:
    /// its source and its target. The pairs are sorted by source.
    fn references_between(&self, objects: &[u32]) -> Vec<(u32, u32)> {
        /// Number of records that are read at a time.
        const CHUNK: usize = 1 << 14;
        // Objects from this position on have no references, except to their classes.
        let inner = objects.partition_point(|&object| object < self.split.inner);
        let ranks = Ranks::new(objects, self.object_count() as usize);
        let chunks = objects[..inner].par_chunks(CHUNK).enumerate();
        let edges: Vec<Vec<(u32, u32)>> = chunks
            .map(|(chunk, sources)| {
                let mut edges = Vec::new();
                let sources: Vec<ObjectIndex> = sources.iter().copied().map(ObjectIndex).collect();
                let records = self.records_of(&sources);
                for ((&source, record), at) in sources.iter().zip(records).zip(chunk * CHUNK..) {
                    let mut add = |id: u64, way| {
                        let target = if id == 0 { NONE } else { self.number_of(id) };
                        if target != NONE
                            && let Some(target) = ranks.of(target)
                            && !matches!(way, RawVia::Referent)
                        {
                            edges.push((at as u32, target));
                        }
                    };
                    if let Some(class) = self.represents(source) {
                        self.each_of_class(class, &mut add);
                    } else if let Some(record) = record {
                        self.each_in_record(record.body, &mut add);
                    }
                }
                edges
            })
            .collect();
        edges.concat()
    }
}

/// The positions of objects in a sorted list.
struct Ranks {
    members: Bits,
    /// For each 64-bit word of the bit set `members`, the number of bits that are set before it.
    before: Vec<u32>,
}

impl Ranks {
    fn new(objects: &[u32], all: usize) -> Self {
        let mut members = Bits::new(all);
        objects.iter().for_each(|&object| members.set(object));
        let mut sum = 0;
        let before = members.words().iter().map(|word| {
            let before = sum;
            sum += word.count_ones();
            before
        });
        let before = before.collect();
        Self { members, before }
    }

    #[inline]
    fn of(&self, object: u32) -> Option<u32> {
        let at = object as usize / 64;
        let below = self.members.words()[at] & ((1 << (object % 64)) - 1);
        let rank = self.before[at] + below.count_ones();
        self.members.has(object).then_some(rank)
    }
}

/// Returns objects from which all objects of the graph are reachable: the objects to which no object refers, and one
/// object of each cycle that is not reachable from outside the cycle.
///
/// Method: a depth-first search visits all objects that are not reachable from objects without referrers. These objects
/// are then checked in the reverse of the order in which their visits ended. If none of the objects in the result so
/// far reaches the checked object, this object belongs to such a cycle. (This is the first half of the algorithm of
/// Kosaraju and Sharir, 1981.)
fn entries(graph: &HeapGraph) -> Vec<u32> {
    let objects = graph.object_count();
    let mut is_target = Bits::new(objects);
    graph
        .targets
        .iter()
        .for_each(|&target| is_target.set(target));
    let all = 0..objects as u32;
    let mut roots: Vec<u32> = all.clone().filter(|&o| !is_target.has(o)).collect();
    let mut seen = Bits::new(objects);
    let mut queue = roots.clone();
    roots.iter().for_each(|&root| seen.set(root));
    while let Some(object) = queue.pop() {
        queue.extend(graph.row(object).iter().filter(|&&target| seen.add(target)));
    }
    let mut again = seen.clone();
    let mut ended = Vec::new();
    for object in all {
        depth_first(graph, object, &mut again, &mut ended);
    }
    for &object in ended.iter().rev() {
        if !seen.has(object) {
            roots.push(object);
            depth_first(graph, object, &mut seen, &mut Vec::new());
        }
    }
    roots.sort_unstable();
    roots
}

/// Searches depth-first from `start`. Adds each object that is newly visited to `ended` when its visit ends.
fn depth_first(graph: &HeapGraph, start: u32, seen: &mut Bits, ended: &mut Vec<u32>) {
    if !seen.add(start) {
        return;
    }
    let mut stack = vec![(start, graph.row(start))];
    while let Some((object, left)) = stack.last_mut() {
        let Some((&target, rest)) = left.split_first() else {
            ended.push(*object);
            stack.pop();
            continue;
        };
        *left = rest;
        if seen.add(target) {
            stack.push((target, graph.row(target)));
        }
    }
}

impl Unreachable {
    /// Returns the number of unreachable objects.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.objects.len() as u64
    }

    /// Returns the number and bytes of the unreachable instances of each class, the most bytes first. `None` for class
    /// objects.
    #[must_use]
    pub fn classes(&self, snapshot: &Snapshot) -> Vec<(Option<ClassIndex>, Total)> {
        let mut totals: FxHashMap<Option<ClassIndex>, Total> = FxHashMap::default();
        for &object in &self.objects {
            let (class, bytes) = snapshot.class_and_size(ObjectIndex(object));
            *totals.entry(class).or_default() += Total { objects: 1, bytes };
        }
        let mut rows: Vec<_> = totals.into_iter().collect();
        rows.sort_by_key(|row| (Reverse(row.1.bytes), row.0));
        rows
    }

    /// Returns the entries, in ascending order.
    pub fn entries(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        let roots = self.graph.roots.iter();
        roots.map(|&(local, _)| ObjectIndex(self.objects[local as usize]))
    }

    /// Returns the classes of the entries, sorted by retained bytes, the most bytes first.
    ///
    /// Cost: visits each object at most twice.
    #[must_use]
    pub fn entry_classes(&self, snapshot: &Snapshot) -> Vec<EntryClass> {
        /// The value in `holder` for an object that is reachable from entries of several classes.
        const SEVERAL: u32 = NONE - 1;
        let mut numbers: BTreeMap<Option<ClassIndex>, u32> = BTreeMap::new();
        let mut rows: Vec<EntryClass> = Vec::new();
        // For each object that is reachable from entries of only one class, the index of this class in `rows`.
        let mut holder = vec![NONE; self.objects.len()];
        let mut queue: Vec<u32> = Vec::new();
        for &(local, _) in &self.graph.roots {
            let class = snapshot.class_of(ObjectIndex(self.objects[local as usize]));
            let row = *numbers.entry(class).or_insert_with(|| {
                rows.push(EntryClass {
                    class,
                    entries: 0,
                    retained: Total::default(),
                });
                rows.len() as u32 - 1
            });
            rows[row as usize].entries += 1;
            holder[local as usize] = row;
            queue.push(local);
        }
        while let Some(object) = queue.pop() {
            let own = holder[object as usize];
            for &target in self.graph.row(object) {
                let known = holder[target as usize];
                let new = match known {
                    NONE => own,
                    _ if known == own => known,
                    _ => SEVERAL,
                };
                if new != known {
                    holder[target as usize] = new;
                    queue.push(target);
                }
            }
        }
        for (&object, &row) in self.objects.iter().zip(&holder) {
            if let Some(row) = rows.get_mut(row as usize) {
                let bytes = snapshot.shallow_bytes(ObjectIndex(object));
                row.retained += Total { objects: 1, bytes };
            }
        }
        rows.sort_by_key(|row| Reverse(row.retained.bytes));
        rows
    }

    /// Computes the dominator tree, with the entries as GC roots.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn into_tree(
        self,
        snapshot: &Snapshot,
        progress: &dyn Progress,
    ) -> Result<UnreachableTree> {
        let Self { objects, graph } = self;
        let size = |local: ObjectIndex| snapshot.shallow_bytes(ObjectIndex(objects[local.index()]));
        let tree = DominatorTree::build(graph, size, progress)?;
        Ok(UnreachableTree { objects, tree })
    }
}

impl UnreachableTree {
    /// Returns the objects that would hold the most bytes, the largest first: at most `limit` objects for which
    /// `wanted` returns true.
    #[must_use]
    pub fn largest(
        &self,
        limit: usize,
        wanted: impl Fn(ObjectIndex) -> bool,
    ) -> Vec<UnreachableObject> {
        let mut best: BinaryHeap<Reverse<(u64, Reverse<u32>)>> = BinaryHeap::new();
        for (local, &object) in self.objects.iter().enumerate() {
            let bytes = self.retained(local).bytes;
            let is_larger = best.peek().is_none_or(|Reverse((least, _))| bytes > *least);
            if (is_larger || best.len() < limit) && wanted(ObjectIndex(object)) {
                best.push(Reverse((bytes, Reverse(local as u32))));
                if best.len() > limit {
                    best.pop();
                }
            }
        }
        let sorted = best.into_sorted_vec().into_iter();
        sorted
            .map(|Reverse((_, Reverse(local)))| UnreachableObject {
                object: ObjectIndex(self.objects[local as usize]),
                retained: self.retained(local as usize),
            })
            .collect()
    }

    fn retained(&self, local: usize) -> Total {
        // All objects are nodes of the tree: `from_rows` gives an adjacency list to every object, even to one without
        // references.
        let node = self.tree.node(ObjectIndex(local as u32));
        node.map_or(Total::default(), |node| Total {
            objects: self.tree.retained_objects(node),
            bytes: self.tree.retained_bytes(node),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(objects: usize, edges: &[(u32, u32)]) -> Vec<u32> {
        let graph = HeapGraph::from_edges(objects as u32, edges, &[]);
        entries(&graph.unwrap())
    }

    #[test]
    fn each_object_is_reachable_from_the_entries() {
        assert_eq!(roots(0, &[]), []);
        assert_eq!(roots(3, &[(1, 0), (1, 2)]), [1]);
        // Objects 1 and 2 form a cycle and refer to object 0, which the search visits first.
        assert_eq!(roots(3, &[(1, 2), (2, 1), (2, 0)]).len(), 1);
        // Objects 0 and 1 form a cycle that another cycle reaches.
        let two = roots(4, &[(0, 1), (1, 0), (2, 3), (3, 2), (3, 0)]);
        assert!(two == [2] || two == [3]);
        assert_eq!(roots(2, &[(0, 0), (1, 1)]), [0, 1]);
    }
}
