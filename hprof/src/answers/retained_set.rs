//! The retained size of a set of objects: the memory that would be freed if all of them were removed.
//!
//! This memory can be larger than the subtrees of these objects in the dominator tree. For example, if only two objects
//! of the set refer to a third object, neither dominates it, but removing both frees it. Eclipse Memory Analyzer calls
//! the freed objects the retained set. It calls the total size of the subtrees, with each object counted once, the
//! minimum retained size.

use std::cmp::Reverse;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::answers::paths::bidirectional::{Bidirectional, PathSearch};
use crate::answers::rows;
use crate::dominators::tree::Node;
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::graph::heap_graph::HeapGraph;
use crate::graph::implicit_refs;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::progress::Progress;
use crate::sizes::shape::Shape;
use crate::sizes::totals::{ClassTotal, Total};
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the memory that would be freed if all these objects were removed, including the objects. `None` if none
    /// of the objects is reachable.
    ///
    /// As in the dominator tree, a path counts only if no stronger path reaches the object. An object that strong paths
    /// reach is retained if all its strong paths lead through the set, even if a path of soft references bypasses the
    /// set. So for one object the result is that of [`Snapshot::retained_bytes`].
    ///
    /// Cost: nothing for one object. For several objects, the heap graph is built again and searched twice, with five
    /// bits for each object besides the graph. If the snapshot comes from an index and the objects dominate at most
    /// 32,768 objects with references, the graph is usually not needed. Then only the dominated objects, the targets of
    /// their references, and paths to these targets are read.
    ///
    /// # Errors
    /// If there is not enough memory for the graph.
    pub fn retained_by_all(
        &self,
        objects: &[ObjectIndex],
        progress: &dyn Progress,
    ) -> Result<Option<Total>> {
        let reachable = |o: &&ObjectIndex| {
            u64::from(o.0) < self.object_count() && self.tree().is_reachable(**o)
        };
        let members: Vec<ObjectIndex> = objects.iter().filter(reachable).copied().collect();
        match members[..] {
            [] => return Ok(None),
            [one] => {
                let bytes = self.retained_bytes(one);
                let both = bytes.zip(self.retained_objects(one));
                return Ok(both.map(|(bytes, objects)| Total { objects, bytes }));
            }
            _ => {}
        }
        if let Some(freed) = self.retained_by_dominators(&members) {
            return Ok(Some(freed));
        }
        let graph = self.graph(progress)?;
        progress.check_cancelled()?;
        progress.phase("computing the retained size of the selected objects", 0);
        let mut set = Bits::new(graph.object_count());
        members.iter().for_each(|o| set.set(o.0));
        let levels = Levels::compute(&graph);
        let kept = levels.reached_outside_set(&graph, &|object| set.has(object));
        let mut freed = Total::default();
        for object in levels.all.iter().filter(|&o| !kept.has(o)) {
            freed += Total {
                objects: 1,
                bytes: self.shallow_bytes(ObjectIndex(object)),
            };
        }
        Ok(Some(freed))
    }
}

/// Maximum number of objects that [`Snapshot::retained_by_classes`] visits. Each class needs one search of the heap.
const VISITS: u64 = 200_000_000;

impl Snapshot {
    /// Replaces the retained bytes in a histogram. The new figure of a class is the retained size of the set of all its
    /// instances. Returns a sorted list of the other classes. Their figure stays the sum of [`Snapshot::histogram`],
    /// which is a lower bound.
    ///
    /// Each class needs a search, which can visit all objects. All searches together may visit at most 200 million
    /// objects. If this is not enough for all classes, only the classes with the largest sums get a new figure.
    ///
    /// Cost: the passes that build the heap graph, and for each class one search through it, on all threads of the
    /// current rayon pool. Memory: the graph, four bytes and three bits for each object, and for each thread one bit
    /// for each object and the stack of its search.
    ///
    /// # Errors
    /// If there is not enough memory for the graph, or if the progress is cancelled.
    pub fn retained_by_classes(
        &self,
        totals: &mut [ClassTotal],
        progress: &dyn Progress,
    ) -> Result<Vec<ClassIndex>> {
        let reachable = |c: &ClassIndex| totals[c.index()].reachable.objects > 0;
        let mut classes: Vec<ClassIndex> = (0..totals.len() as u32)
            .map(ClassIndex)
            .filter(reachable)
            .collect();
        classes.sort_by_key(|c| Reverse(totals[c.index()].retained_bytes));
        let most = VISITS / self.object_count().max(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut rest = classes.split_off(most.min(classes.len()));
        rest.sort_unstable();
        if classes.is_empty() {
            return Ok(rest);
        }
        let graph = self.graph(progress)?;
        progress.phase(
            "computing the retained size of each class",
            classes.len() as u64,
        );
        let class_class = self.class_class();
        let class_of: Vec<u32> = (0..graph.object_count() as u32)
            .map(|o| match self.shapes.decode(self.shape(ObjectIndex(o))) {
                Shape::Instance(class)
                | Shape::Flattened(class)
                | Shape::Array(class, _)
                | Shape::ValueArray(class, _) => class.0,
                Shape::ClassObject(_) => class_class.map_or(NONE, |c| c.0),
            })
            .collect();
        let levels = Levels::compute(&graph);
        let bytes = classes.par_iter().map(|class| {
            progress.check_cancelled()?;
            let kept = levels.reached_outside_set(&graph, &|o| class_of[o as usize] == class.0);
            let freed = levels.all.iter().filter(|&o| !kept.has(o));
            let bytes = freed.map(|o| self.shallow_bytes(ObjectIndex(o))).sum();
            progress.advance(1);
            Ok((*class, bytes))
        });
        for (class, bytes) in bytes.collect::<Result<Vec<(ClassIndex, u64)>>>()? {
            totals[class.index()].retained_bytes = bytes;
        }
        Ok(rest)
    }
}

/// Limit of [`Snapshot::retained_by_dominators`], which reads objects one by one. The set has at most this many
/// objects, and they dominate at most this many objects with references.
const LOOKS: usize = 1 << 15;
/// Maximum number of objects without references whose class is looked up. This limit is higher than `LOOKS`, because
/// looking up a class is fast.
const LEAVES: usize = LOOKS * 64;

impl Snapshot {
    /// Returns the number and bytes of the objects that `members` retain together, computed with the dominator tree.
    /// All members must be reachable. The objects that a member dominates are retained. If a retained object refers to
    /// another object, and every path to this other object goes through a member, the other object is retained, too.
    ///
    /// Returns `None` in these cases:
    ///
    /// - The computation would take long (see [`LOOKS`] and [`LEAVES`]).
    /// - Soft references or finalizers are involved.
    /// - There is no index.
    fn retained_by_dominators(&self, members: &[ObjectIndex]) -> Option<Total> {
        if members.len() > LOOKS || self.inbound.is_none() {
            return None;
        }
        let mut members = members.to_vec();
        members.sort_unstable();
        members.dedup();
        let tree = self.tree();
        let mut nodes: Vec<Node> = members.iter().filter_map(|&o| tree.node(o)).collect();
        nodes.sort_unstable();
        // The tree nodes of the members that no other member dominates. Members without references have no tree node.
        // `alone` below lists those that no other member dominates.
        let mut tops: Vec<Node> = Vec::new();
        for node in nodes {
            if tops.last().is_none_or(|&top| tree.end(top) <= node) {
                tops.push(node);
            }
        }
        let below = |node: Node| {
            let at = tops.partition_point(|&top| top <= node);
            at.checked_sub(1)
                .is_some_and(|at| node < tree.end(tops[at]))
        };
        let dominated = |object: ObjectIndex| match tree.node(object) {
            Some(node) => below(node),
            None => tree.dominator(object).is_some_and(below),
        };
        let mut freed = Total::default();
        let mut looks = 0;
        for &top in &tops {
            freed += Total {
                objects: tree.retained_objects(top),
                bytes: tree.retained_bytes(top),
            };
            looks += (tree.end(top).0 - top.0) as usize;
        }
        let leaves = members
            .iter()
            .filter(|&&o| tree.node(o).is_none() && !dominated(o));
        let alone: Vec<ObjectIndex> = leaves.copied().collect();
        for &leaf in &alone {
            freed += self.one(leaf);
        }
        // A single object retains exactly the objects that it dominates. Several objects together may retain more. For
        // example, all instances of a class together may retain the class.
        if tops.len() < 2 && (alone.is_empty() || tops.len() + alone.len() < 2) {
            return Some(freed);
        }
        if looks > LOOKS {
            return None;
        }
        let mut set = Bits::new(self.object_count() as usize);
        members.iter().for_each(|o| set.set(o.0));
        let pinned = implicit_refs::pinned_classes(self.classes(), &self.roots);
        let mut leaves: FxHashMap<u32, u32> = FxHashMap::default();
        let below_tops = tops.iter().flat_map(|top| top.0..tree.end(*top).0);
        let hung = below_tops.flat_map(|node| tree.leaves(Node(node)));
        for (looks, leaf) in alone.iter().copied().chain(hung).enumerate() {
            if looks == LEAVES {
                return None;
            }
            if let Some(class) = rows::class_of_leaf(self, &pinned, leaf.0) {
                leaves.entry(class).or_insert(leaf.0);
            }
        }
        if tops.len() < 2 && leaves.is_empty() {
            return Some(freed);
        }
        let mut ends = Bidirectional::new(self, self.options.refs, &set)?;
        let mut forward = ends.forward(None);
        let below_tops = tops.iter().flat_map(|top| top.0..tree.end(*top).0);
        let mut level: Vec<u32> = below_tops
            .filter_map(|n| tree.object(Node(n)))
            .map(|o| o.0)
            .chain(leaves.into_values())
            .collect();
        let mut known: FxHashMap<u32, bool> = FxHashMap::default();
        let mut counted: FxHashSet<u32> = FxHashSet::default();
        while !level.is_empty() {
            if level.iter().any(|&o| ends.rows.may_weakly_hold(o)) {
                return None;
            }
            let mut targets: Vec<u32> = ends.rows.of(&level).into_iter().flatten().collect();
            targets.sort_unstable();
            targets.dedup();
            level.clear();
            for target in targets {
                let object = ObjectIndex(target);
                if set.has(target) || dominated(object) || counted.contains(&target) {
                    continue;
                }
                let is_kept = match known.get(&target) {
                    Some(&is_kept) => is_kept,
                    None => match ends.path(&mut forward, target, None)? {
                        PathSearch::Found(path) => {
                            known.extend(path.into_iter().map(|o| (o, true)));
                            true
                        }
                        PathSearch::Nowhere(all) => {
                            for &object in &all {
                                if ends.rows.is_weakly_held(object).ok()? {
                                    return None;
                                }
                            }
                            known.extend(all.into_iter().map(|o| (o, false)));
                            false
                        }
                    },
                };
                if !is_kept {
                    counted.insert(target);
                    freed += self.one(object);
                    level.push(target);
                }
            }
        }
        Some(freed)
    }

    fn one(&self, object: ObjectIndex) -> Total {
        Total {
            objects: 1,
            bytes: self.shallow_bytes(object),
        }
    }
}

/// The objects that GC roots reach, by reachability level (0 for strong, 1 for soft, 2 for final references).
pub(super) struct Levels {
    /// All objects that are reached.
    all: Bits,
    /// For each level, the objects that can be reached with references of stronger levels only. Empty for level 0,
    /// because no level is stronger.
    pub(super) before: Vec<Bits>,
    /// For each level, the pairs of reference object and referent that are followed at this level, sorted. Level 1 has
    /// the soft references, and level 2 has the soft and the final references.
    pub(super) weaker: Vec<Vec<(u32, u32)>>,
}

impl Levels {
    pub(super) fn compute(graph: &HeapGraph) -> Self {
        let mut all = DepthFirst::new(graph.object_count());
        let (mut before, mut up_to) = (Vec::new(), Vec::new());
        for level in 0..=graph.weaker.len() {
            before.push(match level {
                0 => Bits::new(0),
                _ => all.seen.clone(),
            });
            let mut weaker: Vec<(u32, u32)> = graph.weaker[..level].concat();
            weaker.sort_unstable();
            all.extend(graph, &weaker, level, &|_| true);
            up_to.push(weaker);
        }
        Self {
            all: all.seen,
            before,
            weaker: up_to,
        }
    }

    /// Returns the objects that GC roots reach by paths that contain no object of a set. `is_in_set` returns true for
    /// the objects of this set.
    fn reached_outside_set(&self, graph: &HeapGraph, is_in_set: &impl Fn(u32) -> bool) -> Bits {
        let mut kept = DepthFirst::new(graph.object_count());
        for (level, (before, weaker)) in self.before.iter().zip(&self.weaker).enumerate() {
            // If stronger references reach an object in the whole graph, weaker paths to the object do not count. This
            // is so even if all stronger paths go through the set.
            let is_left_out = |object| is_in_set(object) || level > 0 && before.has(object);
            let passes = |object| !is_left_out(object);
            kept.extend(graph, weaker, level, &passes);
        }
        kept.seen
    }
}

/// The state of a depth-first search.
struct DepthFirst {
    seen: Bits,
    stack: Vec<u32>,
}

impl DepthFirst {
    fn new(objects: usize) -> Self {
        Self {
            seen: Bits::new(objects),
            stack: Vec::new(),
        }
    }

    /// Extends the search to the references of `level`: 0 for strong, 1 for soft, 2 for final. `weaker` has the soft
    /// and final references up to this level. Only objects for which `passes` returns true are visited.
    fn extend(
        &mut self,
        graph: &HeapGraph,
        weaker: &[(u32, u32)],
        level: usize,
        passes: &impl Fn(u32) -> bool,
    ) {
        match level.checked_sub(1) {
            None => {
                for &(root, _) in &graph.roots {
                    self.visit(root, passes);
                }
            }
            Some(kind) => {
                for &(source, target) in &graph.weaker[kind] {
                    if self.seen.has(source) {
                        self.visit(target, passes);
                        self.spread(graph, weaker, passes);
                    }
                }
            }
        }
        self.spread(graph, weaker, passes);
    }

    fn visit(&mut self, object: u32, passes: &impl Fn(u32) -> bool) {
        if object != NONE && !self.seen.has(object) && passes(object) {
            self.seen.set(object);
            self.stack.push(object);
        }
    }

    fn spread(&mut self, graph: &HeapGraph, weaker: &[(u32, u32)], passes: &impl Fn(u32) -> bool) {
        while let Some(object) = self.stack.pop() {
            for &target in graph.row(object) {
                self.visit(target, passes);
            }
            if !weaker.is_empty() {
                let first = weaker.partition_point(|e| e.0 < object);
                let own = weaker[first..].iter().take_while(|e| e.0 == object);
                for &(_, target) in own {
                    self.visit(target, passes);
                }
            }
        }
    }
}
