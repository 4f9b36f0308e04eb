//! A flow in the heap graph, from GC roots to objects.
//!
//! By the theorem of Menger, the largest number of paths without a common reference equals the smallest number of
//! references whose removal leaves no path. Both numbers come from a maximum flow. Each step adds a shortest path in
//! the residual graph. This is the algorithm of Edmonds and Karp (J. ACM 19, 1972).

use std::collections::{BTreeMap, BTreeSet};

use crate::answers::paths::breadth_first::WholeGraph;
use crate::answers::paths::forest::Statics;
use crate::bytes::array::Array;
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::ids::{ClassIndex, NONE, ObjectIndex};

/// The entry in `parent` for an object that the search has not reached.
const UNSEEN: u32 = 0;
/// The entry in `parent` for an object at which the search starts.
const SEED: u32 = 1;
/// The entry in `parent` for an object that the search leaves out.
const EXCEPT: u32 = 2;
/// If an object was reached from another object, its entry in `parent` is the number of that other object plus this
/// offset.
const OFFSET: u32 = 3;

/// A network flow, as in graph theory, from GC roots and static fields through references to the targets.
pub(super) struct Flow<'a> {
    graph: &'a WholeGraph<'a>,
    statics: Statics<'a>,
    seeds: Vec<u32>,
    targets: Bits,
    /// The size of the flow from one object to another, in units. The key is the pair of the two objects. No value is
    /// zero.
    units: BTreeMap<(u32, u32), u32>,
    /// The keys of `units`, with source and target exchanged.
    reversed: BTreeSet<(u32, u32)>,
    /// The objects that are, or have been, the source or the target in a key of `units`.
    touched: Bits,
    /// True if references in fields of application classes have a smaller capacity (maximum flow) than other
    /// references.
    prefers_application: bool,
    parent: Array<u32>,
    queue: Vec<u32>,
}

impl<'a> Flow<'a> {
    /// Creates an empty flow. A target must not be a seed, that is, an object at which paths begin.
    pub(super) fn new(
        graph: &'a WholeGraph<'a>,
        statics: Statics<'a>,
        seeds: Vec<u32>,
        targets: &[ObjectIndex],
    ) -> Result<Self> {
        let objects = graph.graph.object_count();
        let mut wanted = Bits::new(objects);
        targets.iter().for_each(|t| wanted.set(t.0));
        Ok(Self {
            graph,
            statics,
            seeds,
            targets: wanted,
            units: BTreeMap::new(),
            reversed: BTreeSet::new(),
            touched: Bits::new(objects),
            prefers_application: false,
            parent: graph.snapshot.store.zeroed(objects)?,
            queue: Vec::new(),
        })
    }

    /// Increases the flow along a shortest path in the residual graph. Returns the number of added units, which is 0 if
    /// the flow is a maximum.
    pub(super) fn augment(&mut self) -> u32 {
        self.parent.fill(UNSEEN);
        for object in self.graph.except.iter() {
            self.parent[object as usize] = EXCEPT;
        }
        self.queue.clear();
        for &seed in &self.seeds {
            if self.parent[seed as usize] == UNSEEN {
                self.parent[seed as usize] = SEED;
                self.queue.push(seed);
            }
        }
        let Some(mut at) = self.search(0) else {
            return 0;
        };
        let mut arcs = Vec::new();
        while self.parent[at as usize] >= OFFSET {
            let from = self.parent[at as usize] - OFFSET;
            arcs.push((from, at));
            at = from;
        }
        let left = arcs.iter().map(|&(from, to)| self.residual(from, to));
        let added = left.min().unwrap_or(0);
        for (from, to) in arcs {
            let back = self.flow(to, from).min(added);
            self.change(to, from, |units| units - back);
            self.change(from, to, |units| units + added - back);
        }
        added
    }

    /// Gives references of application classes a capacity of 4, and all other references a capacity of 5. A smallest
    /// cut of at most three references stays smallest, and contains as few references of other classes as possible.
    pub(super) fn prefer_application(&mut self) {
        self.prefers_application = true;
        self.units.values_mut().for_each(|units| *units *= 4);
    }

    /// Returns the references of a smallest cut as pairs of source and target. If several references have the same
    /// source and target, the pair occurs once for each reference. The flow must be a maximum, and `augment` must have
    /// returned 0. Among several smallest cuts, the result is as near to the targets as possible, so that it frees few
    /// other objects.
    pub(super) fn cut(&mut self) -> Vec<(u32, u32)> {
        let mut fixed = BTreeSet::new();
        loop {
            let crossing = |&&(from, to): &&(u32, u32)| {
                self.parent[from as usize] != UNSEEN && self.parent[to as usize] == UNSEEN
            };
            let arcs: Vec<(u32, u32)> = self.units.keys().filter(crossing).copied().collect();
            let next = arcs
                .iter()
                .find(|arc| !fixed.contains(*arc) && !self.targets.has(arc.1));
            let Some(&(from, to)) = next else {
                let each = arcs.iter().flat_map(|&(from, to)| {
                    let count = self.references(from, to) as usize;
                    std::iter::repeat_n((from, to), count)
                });
                return each.collect();
            };
            // Try to move the cut towards the targets, so that `to` is before the cut. This is not possible if the
            // residual graph has a path from `to` to a target.
            let start = self.queue.len();
            self.parent[to as usize] = from + OFFSET;
            self.queue.push(to);
            if self.search(start).is_some() {
                for object in self.queue.drain(start..) {
                    self.parent[object as usize] = UNSEEN;
                }
                fixed.insert((from, to));
            }
        }
    }

    /// Splits the flow into paths, each from a seed (an object at which paths begin) to a target. Each unit of flow is
    /// one path.
    pub(super) fn paths(&self) -> Vec<Vec<u32>> {
        let mut left = self.units.clone();
        let mut paths = Vec::new();
        for &seed in &self.seeds {
            loop {
                let mut path = vec![seed];
                let mut places = BTreeMap::from([(seed, 0)]);
                let mut at = seed;
                while !self.targets.has(at) {
                    let mut out = left.range_mut((at, 0)..=(at, NONE));
                    let Some((&arc, units)) = out.next() else {
                        break;
                    };
                    *units -= 1;
                    if *units == 0 {
                        left.remove(&arc);
                    }
                    at = arc.1;
                    // The flow may have a cycle. Remove the cycle from the path.
                    if let Some(&first) = places.get(&at) {
                        for dropped in path.drain(first..) {
                            places.remove(&dropped);
                        }
                    }
                    places.insert(at, path.len());
                    path.push(at);
                }
                if path.len() < 2 {
                    break;
                }
                paths.push(path);
            }
        }
        paths
    }

    /// Continues a breadth-first search of the residual graph from the queue index `head` on. Returns the first target
    /// that the search reaches.
    fn search(&mut self, mut head: usize) -> Option<u32> {
        // Follow weaker references, too, because such a reference holds its referent for a while.
        let level = self.graph.weakest();
        let mut out: Vec<u32> = Vec::new();
        while let Some(&object) = self.queue.get(head) {
            head += 1;
            out.clear();
            let Self { graph, statics, .. } = self;
            graph.each_target(object, level, statics.is_some(), |target| out.push(target));
            if self.touched.has(object) {
                self.keep_residual(object, &mut out);
            }
            for &target in &out {
                if self.parent[target as usize] == UNSEEN {
                    self.parent[target as usize] = object + OFFSET;
                    self.queue.push(target);
                    if self.targets.has(target) {
                        return Some(target);
                    }
                }
            }
        }
        None
    }

    /// Replaces `out`, the targets of all references of an object, by the targets of the object's arcs in the residual
    /// graph.
    fn keep_residual(&self, object: u32, out: &mut Vec<u32>) {
        let each = self.capacity(object);
        out.sort_unstable();
        let counted = out.chunk_by(|a, b| a == b);
        let free = |same: &[u32]| {
            let capacity = (same.len() as u32).saturating_mul(each);
            (capacity > self.flow(object, same[0])).then_some(same[0])
        };
        let mut left: Vec<u32> = counted.filter_map(free).collect();
        let back = self.reversed.range((object, 0)..=(object, NONE));
        left.extend(back.map(|arc| arc.1));
        *out = left;
    }

    fn flow(&self, from: u32, to: u32) -> u32 {
        self.units.get(&(from, to)).copied().unwrap_or(0)
    }

    fn change(&mut self, from: u32, to: u32, change: impl FnOnce(u32) -> u32) {
        let units = change(self.flow(from, to));
        if units == 0 {
            self.units.remove(&(from, to));
            self.reversed.remove(&(to, from));
            return;
        }
        self.units.insert((from, to), units);
        self.reversed.insert((to, from));
        self.touched.set(from);
        self.touched.set(to);
    }

    fn residual(&self, from: u32, to: u32) -> u32 {
        let capacity = self
            .references(from, to)
            .saturating_mul(self.capacity(from));
        capacity.saturating_sub(self.flow(from, to)) + self.flow(to, from)
    }

    /// Returns the capacity of one reference from the object `from`.
    fn capacity(&self, from: u32) -> u32 {
        match (self.prefers_application, self.is_of_application(from)) {
            (false, _) => 1,
            (true, true) => 4,
            (true, false) => 5,
        }
    }

    /// Returns the number of references from one object to another.
    fn references(&self, from: u32, to: u32) -> u32 {
        let level = self.graph.weakest();
        let mut count = 0;
        self.graph
            .each_target(from, level, self.statics.is_some(), |target| {
                count += u32::from(target == to);
            });
        count
    }

    /// True if an object has fields of an application class.
    fn is_of_application(&self, object: u32) -> bool {
        let snapshot = self.graph.snapshot;
        if snapshot.represents(ObjectIndex(object)).is_some() {
            return snapshot.is_application_class(object);
        }
        let class = snapshot.class_of(ObjectIndex(object));
        let own = |class: ClassIndex| {
            snapshot.is_application_class(class.0)
                && !snapshot.classes()[class].name.ends_with("[]")
        };
        class.is_some_and(own)
    }
}
