//! Memory by owner: each reachable object belongs to one owner, or to the owners that share it.
//!
//! An anchor is an object with a fixed owner, for example an instance of a plugin's class ([`Anchors`]). Any other
//! object belongs to an owner if a path leads from one of the owner's anchors to the object without another anchor in
//! between. So an object that two plugins reach is shared by both plugins, and an object that only a GC root or a JDK
//! class reaches belongs to the JVM. Each reachable object has exactly one [`Belongs`] value, so figures by this value
//! add up to the reachable heap.
//!
//! If all paths to an object lead through the anchors of one owner, the object is freed together with these anchors. In
//! this respect the result is the same as with a dominator tree in which each owner is one node.

use rustc_hash::FxHashMap;

use crate::answers::retained_set::Levels;
use crate::error::Result;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::progress::Progress;
use crate::sizes::shape::Shape;
use crate::snapshot::Snapshot;

/// An owner of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The JVM. It owns an object if a path leads to the object from a GC root or from an anchor of the JVM (see
    /// [`Anchors`]), such as a JDK class. No anchor of another owner may be on this path.
    Jvm,
    /// The owner with this number.
    Number(u32),
}

/// The anchors: objects whose owner is given. The search for owners does not change these owners.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    /// Number of owners.
    pub owners: u32,
    /// For each class, the owner of its instances.
    pub instances: Vec<Option<Owner>>,
    /// For each class, the owner of its class object. Objects that only the class's static fields reach belong to the
    /// same owner, unless the path from the field leads through another anchor.
    pub class_objects: Vec<Option<Owner>>,
    /// Owners of single objects. They take precedence over `instances` and `class_objects`.
    pub objects: FxHashMap<ObjectIndex, Owner>,
}

/// The owners of each object. See [`Snapshot::owned`].
#[derive(Clone, Debug)]
pub struct Owned {
    /// For each object, its label: a number that identifies a set of owners (see [`Sets`]), combined with the flag
    /// [`FIXED`].
    labels: Vec<u32>,
    sets: Sets,
}

/// The owner or owners of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Belongs {
    /// The object has one owner.
    One(Owner),
    /// Two owners share the object.
    Two(Owner, Owner),
    /// Three or more owners share the object.
    Several,
}

impl Snapshot {
    /// Finds the owner of each reachable object, or the owners that share it.
    ///
    /// Soft and final references count only for objects that no path of stronger references reaches, as in the
    /// dominator tree.
    ///
    /// Cost: the passes that build the heap graph, and a search that visits each reference at most three times. Memory:
    /// the graph, and for each object four bytes and three bits.
    ///
    /// # Errors
    /// If there is not enough memory for the graph, or if the progress is cancelled.
    pub fn owned(&self, anchors: &Anchors, progress: &dyn Progress) -> Result<Owned> {
        let graph = self.graph(progress)?;
        progress.check_cancelled()?;
        progress.phase("finding the owner of each object", 0);
        let of_class = |owners: &[Option<Owner>], class: ClassIndex| {
            owners.get(class.index()).copied().flatten()
        };
        let anchor = |object: u32| {
            let object = ObjectIndex(object);
            let own = anchors.objects.get(&object).copied();
            own.or_else(|| match self.shapes.decode(self.shape(object)) {
                Shape::Instance(class)
                | Shape::Flattened(class)
                | Shape::Array(class, _)
                | Shape::ValueArray(class, _) => of_class(&anchors.instances, class),
                Shape::ClassObject(class) => of_class(&anchors.class_objects, class),
            })
        };
        Ok(Owned::search(&graph, anchors.owners, &anchor))
    }
}

impl Owned {
    /// Returns the owner or owners of an object. `None` if the object is unreachable.
    #[must_use]
    pub fn belongs(&self, object: ObjectIndex) -> Option<Belongs> {
        let label = *self.labels.get(object.index())?;
        (label != UNREACHED).then(|| self.sets.belongs(label & !FIXED))
    }

    fn search(graph: &HeapGraph, owners: u32, anchor: &dyn Fn(u32) -> Option<Owner>) -> Self {
        let levels = Levels::compute(graph);
        let mut search = Search {
            labels: vec![UNREACHED; graph.object_count()],
            sets: Sets::new(owners),
            stack: Vec::new(),
            anchor,
        };
        for (level, (before, weaker)) in levels.before.iter().zip(&levels.weaker).enumerate() {
            let passes = |object| level == 0 || !before.has(object);
            match level.checked_sub(1) {
                None => {
                    for &(root, _) in &graph.roots {
                        search.visit(root, JVM);
                    }
                }
                Some(kind) => {
                    for &(source, target) in &graph.weaker[kind] {
                        let label = search.label(source);
                        if label != UNREACHED && target != NONE && passes(target) {
                            search.visit(target, label);
                            search.spread(graph, weaker, &passes);
                        }
                    }
                }
            }
            search.spread(graph, weaker, &passes);
        }
        Self {
            labels: search.labels,
            sets: search.sets,
        }
    }
}

/// Label of an object that was not reached yet.
const UNREACHED: u32 = 0;
/// Label of objects that belong to the JVM. The next labels stand for single owners, and the labels after these stand
/// for pairs of owners.
const JVM: u32 = 1;
/// Label of objects that three or more owners share.
const SEVERAL: u32 = FIXED - 1;
/// Flag in the label of an anchor (an object with a fixed owner). The search does not change the owner of an anchor.
const FIXED: u32 = 1 << 31;

/// The sets of owners of objects. A label is the number of such a set.
#[derive(Clone, Debug)]
struct Sets {
    first_pair: u32,
    /// For each pair of owners, the labels of both owners, the lower label first.
    pairs: Vec<[u32; 2]>,
    /// For two sets of owners, the label (number) of the union of both sets. The key consists of the labels of the two
    /// sets, the lower label first.
    unions: FxHashMap<(u32, u32), u32>,
}

impl Sets {
    fn new(owners: u32) -> Self {
        Self {
            first_pair: owners.saturating_add(JVM + 1),
            pairs: Vec::new(),
            unions: FxHashMap::default(),
        }
    }

    fn single(owner: Owner) -> u32 {
        match owner {
            Owner::Jvm => JVM,
            Owner::Number(number) => number.saturating_add(JVM + 1).min(SEVERAL),
        }
    }

    fn pair(&self, label: u32) -> Option<[u32; 2]> {
        let at = label.checked_sub(self.first_pair)?;
        self.pairs.get(at as usize).copied()
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == UNREACHED || a == SEVERAL {
            return a;
        }
        if a == UNREACHED || b == SEVERAL {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let union = match (self.pair(key.0), self.pair(key.1)) {
            (None, None) => {
                self.pairs.push([key.0, key.1]);
                let label = self.first_pair as usize + self.pairs.len() - 1;
                u32::try_from(label).map_or(SEVERAL, |label| label.min(SEVERAL))
            }
            (None, Some(pair)) if pair.contains(&key.0) => key.1,
            _ => SEVERAL,
        };
        self.unions.insert(key, union);
        union
    }

    fn belongs(&self, label: u32) -> Belongs {
        let owner = |label: u32| match label.checked_sub(JVM + 1) {
            None => Owner::Jvm,
            Some(number) => Owner::Number(number),
        };
        match self.pair(label) {
            Some([a, b]) => Belongs::Two(owner(a), owner(b)),
            None if label == SEVERAL => Belongs::Several,
            None => Belongs::One(owner(label)),
        }
    }
}

struct Search<'a> {
    labels: Vec<u32>,
    sets: Sets,
    /// Objects whose label has changed. The search must follow the references of these objects, even if it has followed
    /// them before.
    stack: Vec<u32>,
    anchor: &'a dyn Fn(u32) -> Option<Owner>,
}

impl Search<'_> {
    fn label(&self, object: u32) -> u32 {
        let label = self.labels.get(object as usize);
        label.map_or(UNREACHED, |label| label & !FIXED)
    }

    /// Adds the owners of a referrer to the owners of an object. `from` is the label (number) of the referrer's set of
    /// owners. If the object is an anchor (an object with a fixed owner), its owner does not change.
    fn visit(&mut self, object: u32, from: u32) {
        let Some(label) = self.labels.get_mut(object as usize) else {
            return;
        };
        let new = match *label {
            UNREACHED => match (self.anchor)(object) {
                Some(owner) => Sets::single(owner) | FIXED,
                None => from,
            },
            fixed if fixed & FIXED != 0 => return,
            old if old == from => return,
            old => self.sets.union(old, from),
        };
        if *label != new {
            *label = new;
            self.stack.push(object);
        }
    }

    fn spread(&mut self, graph: &HeapGraph, weaker: &[(u32, u32)], passes: &dyn Fn(u32) -> bool) {
        while let Some(object) = self.stack.pop() {
            let label = self.label(object);
            for &target in graph.row(object) {
                if target != NONE && passes(target) {
                    self.visit(target, label);
                }
            }
            if !weaker.is_empty() {
                let first = weaker.partition_point(|e| e.0 < object);
                let own = weaker[first..].iter().take_while(|e| e.0 == object);
                for &(_, target) in own {
                    if target != NONE && passes(target) {
                        self.visit(target, label);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const OBJECTS: u32 = 24;

    /// Returns the owners of each object. Each owner has its own search, which starts at the owner's anchors. The
    /// search for the JVM also starts at GC roots that are not anchors.
    fn brute_force(
        edges: &[(u32, u32)],
        roots: &[u32],
        anchor: &dyn Fn(u32) -> Option<Owner>,
    ) -> Vec<BTreeSet<Owner>> {
        let reach = |from: Vec<u32>, passes: &dyn Fn(u32) -> bool| {
            let mut seen: BTreeSet<u32> = from.iter().copied().collect();
            let mut stack = from;
            while let Some(object) = stack.pop() {
                for &(_, target) in edges.iter().filter(|e| e.0 == object) {
                    if passes(target) && seen.insert(target) {
                        stack.push(target);
                    }
                }
            }
            seen
        };
        let all = reach(roots.to_vec(), &|_| true);
        let mut owners = vec![BTreeSet::new(); OBJECTS as usize];
        for owner in [
            Owner::Jvm,
            Owner::Number(0),
            Owner::Number(1),
            Owner::Number(2),
        ] {
            let is_root =
                |o: &u32| owner == Owner::Jvm && roots.contains(o) && anchor(*o).is_none();
            let is_own = |o: &u32| all.contains(o) && anchor(*o) == Some(owner);
            let from = (0..OBJECTS).filter(|o| is_root(o) || is_own(o)).collect();
            for object in reach(from, &|o| anchor(o).is_none()) {
                owners[object as usize].insert(owner);
            }
        }
        owners
    }

    proptest! {
        #[test]
        fn labels_are_those_of_a_search_from_each_owner(
            edges in prop::collection::vec((0..OBJECTS, 0..OBJECTS), 0..60),
            roots in prop::collection::vec(0..OBJECTS, 1..4),
            anchors in prop::collection::vec(0..9_u32, OBJECTS as usize),
        ) {
            let anchor = |object: u32| match anchors[object as usize] {
                0 => Some(Owner::Jvm),
                number @ 1..=3 => Some(Owner::Number(number - 1)),
                _ => None,
            };
            let graph = HeapGraph::from_edges(OBJECTS, &edges, &roots).unwrap();
            let owned = Owned::search(&graph, 3, &anchor);
            let expected = brute_force(&edges, &roots, &anchor);
            for (object, owners) in (0..).zip(&expected) {
                let owners: Vec<Owner> = owners.iter().copied().collect();
                let belongs = match owners[..] {
                    [] => None,
                    [one] => Some(Belongs::One(one)),
                    [a, b] => Some(Belongs::Two(a, b)),
                    _ => Some(Belongs::Several),
                };
                prop_assert_eq!(owned.belongs(ObjectIndex(object)), belongs, "object {}", object);
            }
        }
    }
}
