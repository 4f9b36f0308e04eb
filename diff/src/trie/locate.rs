//! Finds the node of a trie that contains an object. A trie node represents all objects of one class that one reference
//! holds.

use hprof::answers::Holders;
use hprof::dominators::Node;
use hprof::{ObjectIndex, Snapshot};
use rustc_hash::FxHashMap;

use crate::names::{self, Name};
use crate::trie::{self, StepId, Trie};

/// Finds the trie nodes of one object after another. Caches the trie nodes of their dominators.
pub(crate) struct Locator<'a> {
    snapshot: &'a Snapshot,
    holders: &'a Holders,
    trie: &'a Trie,
    index: FxHashMap<(StepId, Name, Name), StepId>,
    known: FxHashMap<Node, Place>,
    /// The trie node of each [`PlaceKey`] that was looked up before.
    labels: FxHashMap<PlaceKey, Place>,
}

/// The key of a cached trie node: the trie node above, the class of the dominator, the kind of reference, and the class
/// of the object. Each class object counts as a separate class.
type PlaceKey = (StepId, u32, u16, u32);

#[derive(Clone, Copy)]
struct Place {
    step: StepId,
    /// True if no node of the trie represents the object. `step` is then the trie node of the nearest dominator that
    /// has one. All objects that the object dominates also belong to `step`.
    ends: bool,
}

impl<'a> Locator<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, holders: &'a Holders, trie: &'a Trie) -> Self {
        let steps = (0..trie.len() as u32).map(StepId);
        let children = steps.flat_map(|s| &trie[s].children);
        let index = children.map(|&c| ((trie[c].parent, trie[c].via, trie[c].class), c));
        let root = Place {
            step: StepId::ROOT,
            ends: false,
        };
        Self {
            snapshot,
            holders,
            trie,
            index: index.collect(),
            known: [(Node::ROOT, root)].into_iter().collect(),
            labels: FxHashMap::default(),
        }
    }

    /// Returns the deepest trie node that contains an object; `None` if the object is unreachable.
    ///
    /// Cost: one visit to each dominator of the object that has not been visited before.
    pub(crate) fn step(&mut self, object: ObjectIndex) -> Option<StepId> {
        let tree = self.snapshot.tree();
        let dominator = tree.dominator(object)?;
        let mut above: Vec<Node> = Vec::new();
        let mut node = dominator;
        let mut place = loop {
            if let Some(&place) = self.known.get(&node) {
                break place;
            }
            above.push(node);
            node = tree.parent(node);
        };
        while let Some(node) = above.pop() {
            place = match tree.object(node) {
                Some(object) => self.below(place, object),
                None => place,
            };
            self.known.insert(node, place);
        }
        Some(self.below(place, object).step)
    }

    fn below(&mut self, above: Place, object: ObjectIndex) -> Place {
        if above.ends {
            return above;
        }
        let tree = self.snapshot.tree();
        let class = |o: ObjectIndex| match self.snapshot.class_of(o) {
            Some(class) => class.0,
            None => u32::MAX - o.0,
        };
        let holder = tree.dominator(object).and_then(|d| tree.object(d));
        let label = (
            above.step,
            holder.map_or(u32::MAX, class),
            match holder {
                Some(_) => self.holders.key(object),
                None => tree.root_kind(object).map_or(u16::MAX, |k| k as u16),
            },
            class(object),
        );
        if let Some(&place) = self.labels.get(&label) {
            return place;
        }
        let place = self.place(above.step, object);
        self.labels.insert(label, place);
        place
    }

    fn place(&self, above: StepId, object: ObjectIndex) -> Place {
        let on = |step| Place { step, ends: false };
        let known = &self.trie.names;
        let end = Place {
            step: above,
            ends: true,
        };
        let Some(class) = known.find_class(&names::name_of(self.snapshot, object)) else {
            return end;
        };
        let (via, kind) = trie::label(self.snapshot, self.holders, above, object);
        // All links of a chain, such as a linked list, belong to one trie node. So the label of a reference between two
        // links may not occur in the trie, and then `via` is `None`.
        let via = known.find(&via, kind);
        let step = self.trie.folds_into(above, via, class);
        step.or_else(|| self.index.get(&(above, via?, class)).copied())
            .map_or(end, on)
    }
}
