//! A candidate together with the sources of evidence about it: the summaries of all dumps, and the last dump.
//!
//! The last dump is open if its objects can be read. If only its summary file is given, the [`Facts`] in this file
//! replace the dump. Facts are evidence that was read from the dump when the summary file was written.
//!
//! In all comments here, a trie node represents all objects of one class that one reference holds.

use hprof::answers::{Record, Value};
use hprof::dominators::Node;
use hprof::records::Reference;
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use crate::facts::{Facts, PlaceFacts};
use crate::growth::{Aligned, Candidate};
use crate::sentence::Change;
use crate::summary::Summary;
use crate::summary::stats::OffHeap;
use crate::trie::{StepId, Trie};

/// Maximum number of objects to collect on each level of the dominator tree, during the descent to the objects of a
/// trie node.
const MEMBERS_PER_LEVEL: usize = 1 << 14;
/// Maximum number of objects to visit in a search for objects of a class that hold other objects of the same class.
const NESTED: usize = 1 << 22;

/// The source of evidence about the last dump.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Last<'a> {
    /// The open dump.
    Dump(&'a Snapshot),
    /// The evidence that the summary file of the dump stores.
    Summary(&'a Facts),
}

impl<'a> Last<'a> {
    /// Returns the dump. Returns `None` if only its summary file is given.
    pub(crate) const fn dump(self) -> Option<&'a Snapshot> {
        match self {
            Self::Dump(snapshot) => Some(snapshot),
            Self::Summary(_) => None,
        }
    }
}

/// A candidate, the dumps in which it grows, and the trie nodes on the path to it.
pub(crate) struct SuspectContext<'a> {
    pub(crate) last: Last<'a>,
    pub(crate) summaries: &'a [Summary],
    pub(crate) aligned: &'a Aligned<'a>,
    pub(crate) candidate: &'a Candidate,
    /// The trie nodes on the path to the candidate: from below the root down to the trie node that the report names.
    pub(crate) steps: Vec<StepId>,
}

/// The structure in which one object holds all other objects of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nested {
    /// A list: each object holds at most one other object of the class.
    Chain,
    /// A tree: some objects hold several other objects of the class.
    Tree,
}

impl<'a> SuspectContext<'a> {
    pub(crate) fn new(
        last: Last<'a>,
        summaries: &'a [Summary],
        aligned: &'a Aligned<'a>,
        candidate: &'a Candidate,
    ) -> Self {
        Self {
            last,
            summaries,
            aligned,
            candidate,
            steps: aligned.last().path(candidate.named),
        }
    }

    /// Returns the last dump. Returns `None` if only its summary file is given.
    pub(crate) const fn dump(&self) -> Option<&'a Snapshot> {
        self.last.dump()
    }

    /// Returns evidence about a trie node. If the last dump is open, `read` reads the evidence from the dump.
    /// Otherwise, `saved` returns the evidence that the summary file stores.
    pub(crate) fn fact<T>(
        &self,
        step: StepId,
        read: impl FnOnce(&'a Snapshot) -> Option<T>,
        saved: impl FnOnce(&'a PlaceFacts) -> Option<T>,
    ) -> Option<T> {
        match self.last {
            Last::Dump(snapshot) => read(snapshot),
            Last::Summary(facts) => saved(facts.place(step)?),
        }
    }

    /// True if the summary file of the last dump has no evidence about the suspect. Evidence is stored only for the
    /// largest trie nodes.
    pub(crate) fn lacks_facts(&self) -> bool {
        let Last::Summary(facts) = self.last else {
            return false;
        };
        let step = self.candidate.named;
        facts.place(step).is_none() && self.trie()[step].retained_bytes <= facts.least_bytes
    }

    /// True if there is only one dump, so that no growth is known.
    pub(crate) const fn is_alone(&self) -> bool {
        self.summaries.len() == 1
    }

    /// Returns how the number of `things` changed from the first dump to the last. In a single dump, `first` is
    /// ignored.
    pub(crate) fn changed(&self, first: u64, last: u64, things: impl Into<String>) -> Change {
        Change {
            first: (!self.is_alone()).then_some(first),
            last,
            things: things.into(),
        }
    }

    pub(crate) fn trie(&self) -> &'a Trie {
        self.aligned.last()
    }

    /// Returns the name of the class of a trie node's objects.
    pub(crate) fn class(&self, step: StepId) -> &'a str {
        let trie = self.trie();
        trie.names.text(trie[step].class)
    }

    /// Returns the name of the reference that holds a trie node's objects.
    pub(crate) fn via(&self, step: StepId) -> &'a str {
        let trie = self.trie();
        trie.names.text(trie[step].via)
    }

    /// Returns the first trie node on the path whose class name satisfies `wanted`.
    pub(crate) fn of_class(&self, wanted: impl Fn(&str) -> bool) -> Option<StepId> {
        self.steps.iter().copied().find(|&s| wanted(self.class(s)))
    }

    /// Returns the first trie node on the path whose reference name satisfies `wanted`.
    pub(crate) fn first_via(&self, wanted: impl Fn(&str) -> bool) -> Option<StepId> {
        self.steps.iter().copied().find(|&s| wanted(self.via(s)))
    }

    /// Returns the first trie node on the path whose class is, or extends, the JDK class of this name.
    pub(crate) fn of_kind(&self, ancestor: &str) -> Option<StepId> {
        self.steps
            .iter()
            .copied()
            .find(|&s| self.is_kind(s, ancestor))
    }

    /// True if a trie node's class is, or extends, the JDK class of this name.
    pub(crate) fn is_kind(&self, step: StepId, ancestor: &str) -> bool {
        let Some(class) = self.class_index(step) else {
            return false;
        };
        match self.last {
            Last::Dump(snapshot) => {
                let classes = snapshot.classes();
                let of_boot = |&&c: &&ClassIndex| classes[c].loader.is_null();
                let ancestor = classes.by_name(ancestor).iter().find(of_boot);
                ancestor.is_some_and(|&ancestor| classes.is_subclass(class, ancestor))
            }
            Last::Summary(facts) => facts
                .chain(class)
                .any(|class| class.is_of_boot && class.name == ancestor),
        }
    }

    /// True if a class is, or extends, one of the classes of this name.
    pub(crate) fn extends(&self, class: ClassIndex, name: &str) -> bool {
        match self.last {
            Last::Dump(snapshot) => {
                let classes = snapshot.classes();
                let known = classes.by_name(name);
                known.iter().any(|&k| classes.is_subclass(class, k))
            }
            Last::Summary(facts) => facts.chain(class).any(|class| class.name == name),
        }
    }

    /// Returns the kind of reference (such as soft or weak) that a trie node's objects are. Returns `None` if their
    /// class is unknown.
    pub(crate) fn reference(&self, step: StepId) -> Option<Reference> {
        let class = self.class_index(step)?;
        match self.last {
            Last::Dump(snapshot) => Some(snapshot.classes()[class].reference),
            Last::Summary(facts) => Some(facts.class(class)?.reference),
        }
    }

    /// Returns the class of a trie node's objects; `None` for class objects. If the last dump is open, the index is an
    /// index of the dump's classes. Otherwise, it is an index of the classes in the summary file.
    pub(crate) fn class_index(&self, step: StepId) -> Option<ClassIndex> {
        let snapshot = match self.last {
            Last::Dump(snapshot) => snapshot,
            Last::Summary(facts) => return facts.class_of(step),
        };
        let &sample = self.trie()[step].samples.first()?;
        match snapshot.represents(sample) {
            Some(_) => None,
            None => snapshot.class_of(sample),
        }
    }

    /// Returns the class that a trie node's object represents; `None` if it is not a class object.
    pub(crate) fn represents(&self, step: StepId) -> Option<ClassIndex> {
        match self.last {
            Last::Dump(snapshot) => snapshot.represents(*self.trie()[step].samples.first()?),
            Last::Summary(facts) => facts.represented(step),
        }
    }

    /// Returns the number of a trie node's objects in each dump.
    pub(crate) fn objects(&self, step: StepId) -> Vec<u64> {
        self.aligned.figures(step, |s| s.objects)
    }

    /// Returns the number of a trie node's objects in the first dump and in the last. In a single dump, returns 0 and
    /// the number of objects.
    pub(crate) fn ends(&self, step: StepId) -> (u64, u64) {
        match self.objects(step)[..] {
            [first, .., last] => (first, last),
            [only] => (0, only),
            [] => (0, 0),
        }
    }

    /// Returns the off-heap memory of the candidate in the first dump and in the last. In a single dump, the memory in
    /// the first dump counts as 0.
    pub(crate) fn off_heap(&self) -> (OffHeap, OffHeap) {
        match self.candidate.off_heap[..] {
            [first, .., last] => (first, last),
            [only] => (OffHeap::default(), only),
            [] => (OffHeap::default(), OffHeap::default()),
        }
    }

    /// Returns the innermost trie node that is held by a field of an application class, on the path from the root down
    /// to the top object of the growing structure.
    pub(crate) fn application_field_step(&self) -> Option<StepId> {
        self.aligned.application_field_step(self.candidate)
    }

    /// Returns at most `limit` objects of a trie node. Of the objects found, the ones with the lowest numbers are
    /// returned: they were allocated together and are adjacent in the file, so reading them is cheap.
    ///
    /// Returns no objects if the last dump is not open.
    ///
    /// Cost: visits some ten thousand objects of the dominator tree, in memory.
    pub(crate) fn members(&self, step: StepId, limit: usize) -> Vec<ObjectIndex> {
        if self.dump().is_none() {
            return Vec::new();
        }
        let trie = self.trie();
        let path = trie.path(step);
        // Some trie nodes store all their objects as samples, others store only some. Start at the deepest trie node on
        // the path that stores all of its objects, and descend the dominator tree from these objects.
        let known = |s: &StepId| trie[*s].objects == trie[*s].samples.len() as u64;
        let from = path.iter().rposition(known);
        let mut objects: Vec<ObjectIndex> = match from {
            Some(at) => trie[path[at]].samples.clone(),
            None => path
                .first()
                .map_or_else(Vec::new, |&s| trie[s].samples.clone()),
        };
        for &below in &path[from.map_or(1, |at| at + 1).min(path.len())..] {
            let class = self.class_index(below);
            objects = self.dominated_by(&objects, class);
        }
        if objects.is_empty() {
            objects.clone_from(&trie[step].samples);
        }
        // One trie node represents all objects of a chain, such as a linked list. The search above found only the first
        // object of each chain. Add the other objects.
        if objects.len() < limit {
            objects = self.follow_chain(objects, self.class_index(step));
        }
        objects.sort_unstable();
        objects.dedup();
        objects.truncate(limit);
        objects
    }

    /// Returns the objects of a class that only the virtual root dominates.
    pub(crate) fn rooted(&self, class: Option<ClassIndex>) -> Vec<ObjectIndex> {
        self.of(class, self.children(Node::ROOT))
    }

    /// Returns the structure in which a trie node's largest object holds the node's other objects. Returns `None` if it
    /// does not hold all other objects, or if more than [`NESTED`] objects would have to be visited.
    ///
    /// Cost: visits at most [`NESTED`] objects of the dominator tree, in memory.
    pub(crate) fn nested(&self, step: StepId) -> Option<Nested> {
        let snapshot = self.dump()?;
        let class = self.class_index(step)?;
        let &head = self.trie()[step].samples.first()?;
        let (mut open, mut objects, mut visited) = (vec![head], 0_u64, 0_usize);
        let mut is_chain = true;
        while let Some(object) = open.pop() {
            objects += 1;
            let Some(node) = snapshot.tree().node(object) else {
                continue;
            };
            let before = open.len();
            for child in self.children(node) {
                visited += 1;
                if visited > NESTED {
                    return None;
                }
                if snapshot.class_of(child) == Some(class) {
                    open.push(child);
                }
            }
            is_chain &= open.len() <= before + 1;
        }
        (objects == self.trie()[step].objects).then_some(if is_chain {
            Nested::Chain
        } else {
            Nested::Tree
        })
    }

    /// Returns the objects of a class whose immediate dominator is one of the given objects.
    pub(crate) fn dominated_by(
        &self,
        objects: &[ObjectIndex],
        class: Option<ClassIndex>,
    ) -> Vec<ObjectIndex> {
        let nodes = objects.iter().filter_map(|&o| self.dump()?.tree().node(o));
        self.of(class, nodes.flat_map(|n| self.children(n)))
    }

    /// Returns at most [`MEMBERS_PER_LEVEL`] objects of a class, sorted: the first ones in `objects`. Checks at most
    /// `8 * MEMBERS_PER_LEVEL` objects.
    fn of(
        &self,
        class: Option<ClassIndex>,
        objects: impl Iterator<Item = ObjectIndex>,
    ) -> Vec<ObjectIndex> {
        let mut found: Vec<ObjectIndex> = objects
            .take(8 * MEMBERS_PER_LEVEL)
            .filter(|&o| self.dump().is_some_and(|dump| dump.class_of(o) == class))
            .take(MEMBERS_PER_LEVEL)
            .collect();
        found.sort_unstable();
        found
    }

    fn children(&self, node: Node) -> impl Iterator<Item = ObjectIndex> + '_ {
        self.dump().into_iter().flat_map(move |snapshot| {
            let tree = snapshot.tree();
            let inner = tree.children(node).filter_map(|n| tree.object(n));
            inner.chain(tree.leaves(node))
        })
    }

    fn follow_chain(
        &self,
        mut objects: Vec<ObjectIndex>,
        class: Option<ClassIndex>,
    ) -> Vec<ObjectIndex> {
        let mut at = 0;
        while at < objects.len() && objects.len() < MEMBERS_PER_LEVEL {
            let next = self.dominated_by(&objects[at..=at], class);
            objects.extend(next);
            at += 1;
        }
        objects
    }

    /// Returns the contents of strings, each with at most `limit` characters.
    pub(crate) fn strings(&self, strings: &[ObjectIndex], limit: usize) -> Vec<Option<String>> {
        let dump = self.dump();
        dump.map_or_else(Vec::new, |dump| dump.strings(strings, limit))
    }

    /// Reads the fields of objects. Objects that cannot be read are left out.
    pub(crate) fn read(&self, objects: &[ObjectIndex]) -> Vec<Record<'a>> {
        self.dump().map_or_else(Vec::new, |snapshot| {
            snapshot.read_all(objects).into_iter().flatten().collect()
        })
    }

    /// Returns for each object the reference in the field `name`, or `None` if the object has no reference in this
    /// field.
    pub(crate) fn field(&self, objects: &[ObjectIndex], name: &str) -> Vec<Option<ObjectIndex>> {
        let values = self.dump().map(|dump| dump.field_values(objects, [name]));
        let values = values.into_iter().flatten();
        values.map(|v| v?[0].and_then(Value::object)).collect()
    }

    /// Returns the integer in a field, for each of the objects.
    pub(crate) fn number(&self, objects: &[ObjectIndex], name: &str) -> Vec<Option<i64>> {
        let values = self.dump().map(|dump| dump.field_values(objects, [name]));
        let values = values.into_iter().flatten();
        values.map(|v| v?[0].and_then(Value::integer)).collect()
    }
}
