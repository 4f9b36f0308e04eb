//! What objects retain together: what would be free if all of them were.
//!
//! That is more than the members' parts of the dominator tree: an object that two members refer to, and
//! nobody else, is dominated by neither of them, and goes with both. (Eclipse Memory Analyzer calls this the
//! retained set, and the union of the members' parts the minimum retained size.)

use rustc_hash::{FxHashMap, FxHashSet};

use crate::answers::paths::bidirectional::{Bidirectional, PathSearch};
use crate::dominators::tree::Node;
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::graph::heap_graph::HeapGraph;
use crate::graph::{implicit_refs, rows};
use crate::ids::{NONE, ObjectIndex};
use crate::progress::Progress;
use crate::sizes::totals::Total;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// What would be free if all these objects were, themselves included; `None` when none of them is
    /// reachable.
    ///
    /// Stronger paths count before weaker ones as in the dominator tree: what a strong path reaches is
    /// retained when no strong path leads past the set, whatever soft ones do. So for one object the figures
    /// are those of [`Snapshot::retained_bytes`].
    ///
    /// Cost: for one object none. For more the heap graph is built once more and searched twice; four bits
    /// an object besides the graph. Of a snapshot from an index, where they retain little, only what they
    /// dominate is looked at and what that refers to.
    ///
    /// # Errors
    /// When there is no memory for the graph.
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
        if let Some(freed) = self.retained_by_few(&members) {
            return Ok(Some(freed));
        }
        let graph = self.graph(progress)?;
        progress.go_on()?;
        progress.phase("searching past the selected", 0);
        let mut set = Bits::new(graph.object_count());
        members.iter().for_each(|o| set.set(o.0));
        let (all, kept) = reached(&graph, &set);
        let mut freed = Total::default();
        for object in all.iter().filter(|&o| !kept.has(o)) {
            freed += Total {
                objects: 1,
                bytes: self.shallow_bytes(ObjectIndex(object)),
            };
        }
        Ok(Some(freed))
    }
}

/// The most objects that are looked at one by one.
const LOOKS: usize = 1 << 15;
/// The most leaves whose class is looked at, which is quick.
const LEAVES: usize = LOOKS * 64;

impl Snapshot {
    /// What reachable objects retain together, from the dominator tree: what they dominate, and of what that
    /// refers to all that no path leads to but through them. `None` when this would take long, when soft
    /// references or finalizers have to do with it, or without an index.
    fn retained_by_few(&self, members: &[ObjectIndex]) -> Option<Total> {
        if members.len() > LOOKS || self.inbound.is_none() {
            return None;
        }
        let mut members = members.to_vec();
        members.sort_unstable();
        members.dedup();
        let tree = self.tree();
        let mut nodes: Vec<Node> = members.iter().filter_map(|&o| tree.node(o)).collect();
        nodes.sort_unstable();
        // The objects that no other of them dominates.
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
        // An object retains what it dominates; a leaf retains itself, and with others perhaps its class.
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

/// The objects that roots reach, and those that they reach without going through the set.
fn reached(graph: &HeapGraph, set: &Bits) -> (Bits, Bits) {
    let count = graph.object_count();
    let mut all = DepthFirst::new(count);
    let mut kept = DepthFirst::new(count);
    for level in 0..=graph.weaker.len() {
        // An object that a stronger path reaches is not kept by weaker ones.
        let before = match level {
            0 => Bits::new(0),
            _ => all.seen.clone(),
        };
        let mut weaker: Vec<(u32, u32)> = graph.weaker[..level].concat();
        weaker.sort_unstable();
        all.extend(graph, &weaker, level, &|_| true);
        let passes = |object| !set.has(object) && !before.has(object);
        kept.extend(graph, &weaker, level, &passes);
    }
    (all.seen, kept.seen)
}

/// The state of a search.
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

    /// Goes on to what references of this level lead to: strong ones, then soft, then final. `weaker` has
    /// all that are not strong, up to this level.
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
