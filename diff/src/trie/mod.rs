//! The dominator tree folded into a trie of labels.
//!
//! A label is the class of objects and the field through which their dominator holds them. Siblings with the same label
//! become one node of the trie. In the code, a trie node is called a step. A list of a million entries is a handful of
//! trie nodes. Chains of one label (linked lists, tree nodes) fold into one trie node. Small branches get no trie node,
//! and only large trie nodes are expanded.
//!
//! ```text
//! objects                                trie nodes
//! ArrayList -> Object[] -> Session 1     ArrayList -> Object[] -> Session, 2 objects
//!                       -> Session 2
//! Node -> Node -> Node                   Node, 3 objects
//! ```

mod kept;
pub(crate) mod locate;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use heapdiff_sites::packages::is_jdk;
use hprof::answers::{Dominated, Holders};
use hprof::dominators::Node;
use hprof::records::RootKind;
use hprof::{ClassIndex, ObjectIndex, Snapshot};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::names::{self, LabelKind, Name, Names};
use crate::samples::AgentObjects;
use crate::samples::population::{SizeClasses, array_classes};

/// The number of a node in its trie; 0 is the root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct StepId(pub(crate) u32);

impl StepId {
    /// The super-root: all GC roots.
    pub(crate) const ROOT: Self = Self(0);
}

/// A node of the trie: the objects of one class that are held by the same reference.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Label of the reference that holds the objects.
    pub(crate) via: Name,
    /// Class of the objects; `class C` for the class object of `C`. Generated classes whose names differ only in their
    /// generated part count as one class.
    pub(crate) class: Name,
    /// The parent node.
    pub(crate) parent: StepId,
    /// Number of objects.
    pub(crate) objects: u64,
    /// Sum of the objects' shallow sizes.
    pub(crate) shallow_bytes: u64,
    /// Bytes that the objects retain together. If one of the objects retains another one, no bytes are counted twice.
    pub(crate) retained_bytes: u64,
    /// The child nodes. Small nodes are left out.
    pub(crate) children: Vec<StepId>,
    /// The objects of the trie node that retain most, at most [`SAMPLES`] of them.
    pub(crate) samples: Vec<ObjectIndex>,
    /// Class of the objects. If several classes have the name, one of these classes.
    of: Option<ClassIndex>,
    /// The number of arrays in the trie node, by size class. Only set if the dump has samples.
    pub(crate) sizes: SizeClasses,
    /// True if descendants of this trie node were folded into one of its ancestors. In a chain of `A`, `B`, `A`, `B`,
    /// this is true for the node of `B`: the second `A` is folded into the node of the first.
    cyclic: bool,
}

/// A folded dominator tree.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    steps: Vec<Step>,
    /// The interned labels.
    pub(crate) names: Names,
}

impl std::ops::Index<StepId> for Trie {
    type Output = Step;
    fn index(&self, id: StepId) -> &Step {
        &self.steps[id.0 as usize]
    }
}

/// A trie node is not expanded (gets no child nodes) if it retains less than 1/`EXPAND_PART` of the reachable bytes.
const EXPAND_PART: u64 = 20_000;
/// A trie node is not expanded if it retains fewer bytes than this, however small the heap is.
const EXPAND_BYTES: u64 = 2 << 10;
/// A new trie node is stored only if it retains at least 1/`KEEP_PART` of the minimum for an expanded trie node.
const KEEP_PART: u64 = 8;
/// Maximum number of objects to store for each trie node. Their paths can be searched later.
const SAMPLES: usize = 4;
/// Maximum number of ancestors that [`Trie::folds_into`] checks for a trie node whose chain an object continues. In a
/// chain such as `A`, `B`, `A`, `B`, it limits the number of alternating classes.
const LONGEST_PERIOD: usize = 6;
/// Maximum number of nodes that one parallel task processes.
const CHUNK: usize = 1 << 12;

impl Trie {
    /// Builds a trie by folding the dominator tree: siblings with the same label become one trie node. Leaves out the
    /// agent's objects.
    ///
    /// Cost: visits the children of every dominator tree node that belongs to an expanded trie node, in parallel.
    #[must_use]
    pub(crate) fn new(
        snapshot: &Snapshot,
        holders: &Holders,
        agent_objects: &AgentObjects,
    ) -> Self {
        let reachable = snapshot.tree().retained_bytes(Node::ROOT);
        let reachable = reachable.saturating_sub(agent_objects.reachable(snapshot).bytes);
        let mut builder = Builder {
            snapshot,
            holders,
            agent_objects,
            trie: Self {
                steps: Vec::new(),
                names: Names::default(),
            },
            pending: Vec::new(),
            largest: Vec::new(),
            queue: VecDeque::new(),
            index: HashMap::new(),
            expand: (reachable / EXPAND_PART).max(EXPAND_BYTES),
            arrays: array_classes(snapshot),
        };
        let root = builder
            .trie
            .names
            .intern("<GC roots>", LabelKind::Structure);
        builder.add(StepId::ROOT, root, root);
        builder.trie.steps[0].retained_bytes = reachable;
        builder.pending[0].fresh.add(Node::ROOT);
        builder.queue.push_back(StepId::ROOT);
        while let Some(step) = builder.queue.pop_front() {
            builder.expand(step);
        }
        let Builder {
            mut trie, largest, ..
        } = builder;
        for (step, largest) in trie.steps.iter_mut().zip(largest) {
            step.samples = largest.0.into_iter().map(|(_, object)| object).collect();
        }
        trie.sort_children();
        trie
    }

    /// Sorts the children of each trie node by the bytes that they retain.
    fn sort_children(&mut self) {
        for i in 0..self.steps.len() {
            let mut children = std::mem::take(&mut self.steps[i].children);
            children.sort_by_key(|&c| (std::cmp::Reverse(self[c].retained_bytes), c));
            self.steps[i].children = children;
        }
    }

    /// Returns the number of trie nodes.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns the trie node into which objects of a class are folded, because they continue a chain. It is one of
    /// these:
    ///
    /// - the parent trie node, if it has the same class (as in a linked list or a tree);
    /// - one of the [`LONGEST_PERIOD`] nearest ancestors, if it has the same class and the same reference holds its
    ///   objects.
    ///
    /// The second case is possible for application classes, and for JDK classes if all fields in between are JDK fields
    /// (chained `CompletableFuture`s). It excludes JDK collections, because a collection inside a collection is not a
    /// chain.
    ///
    /// `via` is the reference that holds the objects. If it is `None`, no trie node has this reference as its label,
    /// and only the parent trie node can match.
    pub(crate) fn folds_into(
        &self,
        above: StepId,
        via: Option<Name>,
        class: Name,
    ) -> Option<StepId> {
        if above == StepId::ROOT {
            return None;
        }
        if self[above].class == class {
            return Some(above);
        }
        let of_runtime = is_jdk(self.names.text(class));
        let is_between = |s: StepId| {
            self.names.kind(self[s].via) == LabelKind::RuntimeField
                && names::is_chain_link_class(self.names.text(self[s].class))
        };
        std::iter::successors(Some(above), |&s| Some(self[s].parent))
            .take_while(|&s| s != StepId::ROOT)
            .take_while(|&s| !of_runtime || is_between(s))
            .take(LONGEST_PERIOD)
            .find(|&s| self[s].class == class && Some(self[s].via) == via)
    }

    /// Returns this trie node and its ancestors, up to the root.
    pub(crate) fn above(&self, step: StepId) -> impl Iterator<Item = StepId> + '_ {
        std::iter::successors(Some(step), |&s| (s != StepId::ROOT).then(|| self[s].parent))
    }

    /// Returns the classes of the trie nodes at most [`LONGEST_PERIOD`] levels below a trie node.
    pub(crate) fn classes_below(&self, step: StepId) -> BTreeSet<Name> {
        let mut classes = BTreeSet::new();
        let mut level = vec![step];
        for _ in 0..LONGEST_PERIOD {
            level = level
                .iter()
                .flat_map(|&s| self[s].children.iter().copied())
                .collect();
            classes.extend(level.iter().map(|&s| self[s].class));
        }
        classes
    }

    /// Returns the trie nodes from below the root down to this one.
    #[must_use]
    pub(crate) fn path(&self, step: StepId) -> Vec<StepId> {
        let mut path: Vec<StepId> = std::iter::successors(Some(step), |&s| Some(self[s].parent))
            .take_while(|&s| s != StepId::ROOT)
            .collect();
        path.reverse();
        path
    }
}

/// Nodes of the dominator tree, divided into parts. Each part is processed by one task. Lists are concatenated without
/// copying nodes, and each part is freed as soon as its task has ended.
#[derive(Debug, Default)]
struct Nodes(Vec<Vec<Node>>);

impl Nodes {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    fn add(&mut self, node: Node) {
        match self.0.last_mut() {
            Some(part) if part.len() < CHUNK => part.push(node),
            _ => self.0.push(vec![node]),
        }
    }

    fn append(&mut self, other: Self) {
        for part in other.0 {
            match self.0.last_mut() {
                Some(last) if last.len() + part.len() <= CHUNK => last.extend_from_slice(&part),
                _ => self.0.push(part),
            }
        }
    }
}

/// The nodes of the dominator tree that belong to a trie node, and whose children have not been visited yet.
#[derive(Debug, Default)]
struct Pending {
    fresh: Nodes,
    /// Nodes of the dominator tree whose retained bytes the trie node already includes. Their objects are in a chain,
    /// and an earlier object of the trie node dominates them.
    nested: Nodes,
}

/// The objects that retain most, each with the bytes that it retains. If objects retain the same, the ones with the
/// lowest numbers come first.
#[derive(Clone, Debug, Default)]
struct Largest(Vec<(u64, ObjectIndex)>);

impl Largest {
    #[inline]
    fn add(&mut self, retained: u64, object: ObjectIndex) {
        let is_before = |known: &(u64, ObjectIndex)| {
            known.0 > retained || known.0 == retained && known.1 < object
        };
        if self.0.len() == SAMPLES && self.0.last().is_some_and(is_before) {
            return;
        }
        let at = self.0.partition_point(is_before);
        self.0.insert(at, (retained, object));
        self.0.truncate(SAMPLES);
    }
}

/// Objects that have the same label and whose dominators belong to one trie node.
#[derive(Debug, Default)]
struct Group {
    objects: u64,
    shallow: u64,
    retained: u64,
    nodes: Nodes,
    samples: Largest,
    sizes: SizeClasses,
}

impl Group {
    fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.shallow += other.shallow;
        self.retained += other.retained;
        self.nodes.append(other.nodes);
        self.sizes.merge(&other.sizes);
        for &(retained, object) in &other.samples.0 {
            self.samples.add(retained, object);
        }
    }
}

/// The key of a group: two numbers, for the kind of reference that holds an object and for the object's class. Each
/// class object has its own number, as if it had its own class.
type GroupKey = (u32, u32);

/// Groups of objects, by key. Neighbouring objects mostly have the same few keys. So the search begins in a small table
/// of recently used groups.
#[derive(Debug, Default)]
struct Groups {
    list: Vec<(GroupKey, Group)>,
    index: FxHashMap<GroupKey, u32>,
    recent: [u32; 32],
    /// Objects that belong to the trie node itself, because they are links of its chain.
    folded: Group,
}

impl Groups {
    #[inline]
    fn of(&mut self, key: GroupKey) -> &mut Group {
        let recent = (key.0.wrapping_mul(7) ^ key.1) as usize % self.recent.len();
        let mut at = self.recent[recent] as usize;
        if self.list.get(at).is_none_or(|g| g.0 != key) {
            at = self.find(key);
            self.recent[recent] = at as u32;
        }
        &mut self.list[at].1
    }

    fn find(&mut self, key: GroupKey) -> usize {
        let list = &mut self.list;
        let at = *self.index.entry(key).or_insert_with(|| {
            list.push((key, Group::default()));
            list.len() as u32 - 1
        });
        at as usize
    }

    fn merge(mut self, other: Self) -> Self {
        self.folded.merge(other.folded);
        for (key, group) in other.list {
            self.of(key).merge(group);
        }
        self
    }
}

struct Builder<'a> {
    snapshot: &'a Snapshot,
    holders: &'a Holders,
    agent_objects: &'a AgentObjects,
    trie: Trie,
    pending: Vec<Pending>,
    largest: Vec<Largest>,
    queue: VecDeque<StepId>,
    index: HashMap<(StepId, Name, Name), StepId>,
    expand: u64,
    /// For each class, true if it is an array class.
    arrays: Vec<bool>,
}

impl Builder<'_> {
    fn add(&mut self, parent: StepId, via: Name, class: Name) -> StepId {
        if let Some(&step) = self.index.get(&(parent, via, class)) {
            return step;
        }
        let id = StepId(self.trie.steps.len() as u32);
        self.trie.steps.push(Step {
            via,
            class,
            parent,
            objects: 0,
            shallow_bytes: 0,
            retained_bytes: 0,
            children: Vec::new(),
            samples: Vec::new(),
            of: None,
            sizes: SizeClasses::default(),
            cyclic: false,
        });
        self.pending.push(Pending::default());
        self.largest.push(Largest::default());
        self.index.insert((parent, via, class), id);
        if id != StepId::ROOT {
            self.trie.steps[parent.0 as usize].children.push(id);
        }
        id
    }

    fn expand(&mut self, step: StepId) {
        let Pending { fresh, nested } = std::mem::take(&mut self.pending[step.0 as usize]);
        for (nodes, is_nested) in [(fresh, false), (nested, true)] {
            if nodes.is_empty() {
                continue;
            }
            let Groups { list, folded, .. } = self.groups(nodes, self.trie[step].of);
            let own = &mut self.trie.steps[step.0 as usize];
            own.objects += folded.objects;
            own.shallow_bytes += folded.shallow;
            own.sizes.merge(&folded.sizes);
            for (via, class, group) in self.named(step, list) {
                self.place(step, (via, class), group, is_nested);
            }
        }
    }

    /// Groups the objects that the nodes immediately dominate, by label. The groups are always in the same order.
    /// Objects of the class `chained` are links of a chain, and what they dominate is grouped here as well. A chain of
    /// millions of links therefore takes only one call.
    fn groups(&self, nodes: Nodes, chained: Option<ClassIndex>) -> Groups {
        let parts = nodes.0.into_par_iter();
        let groups = parts.fold(Groups::default, |mut groups, part| {
            self.group(&part, chained, &mut groups);
            groups
        });
        let mut all = groups.reduce(Groups::default, Groups::merge);
        all.list.sort_unstable_by_key(|g| g.0);
        all
    }

    fn group(&self, nodes: &[Node], chained: Option<ClassIndex>, groups: &mut Groups) {
        let agent_objects = self.agent_objects;
        // Sizes are only needed for samples.
        let is_sampled = !agent_objects.is_empty();
        self.snapshot.dominated(self.holders, nodes, |child| {
            if is_sampled && agent_objects.contains(child.object) {
                return false;
            }
            if chained.is_some() && child.class == chained {
                groups.folded.objects += 1;
                groups.folded.shallow += child.shallow_bytes;
                if is_sampled && self.is_array(&child) {
                    groups.folded.sizes.add(child.shallow_bytes);
                }
                return true;
            }
            let group = groups.of(self.key(&child));
            group.objects += 1;
            group.shallow += child.shallow_bytes;
            group.retained += child.retained_bytes;
            group.samples.add(child.retained_bytes, child.object);
            if is_sampled && self.is_array(&child) {
                group.sizes.add(child.shallow_bytes);
            }
            if let Some(node) = child.node {
                group.nodes.add(node);
            }
            false
        });
    }

    #[inline]
    fn is_array(&self, child: &Dominated) -> bool {
        let class = child.class.and_then(|c| self.arrays.get(c.index()));
        class.copied().unwrap_or(false)
    }

    #[inline]
    fn key(&self, child: &Dominated) -> GroupKey {
        let hold = if child.above == Node::ROOT {
            self.snapshot
                .tree()
                .root_kind(child.object)
                .map_or(u32::MAX, |k| k as u32)
        } else {
            u32::from(child.key)
        };
        (hold, child.class.map_or(u32::MAX - child.object.0, |c| c.0))
    }

    /// Adds up the groups below a trie node that have the same label. For example, each of thousands of generated
    /// classes can be too small to be stored, while all of them together are large.
    fn named(&mut self, above: StepId, list: Vec<(GroupKey, Group)>) -> Vec<(Name, Name, Group)> {
        let mut named: Vec<(Name, Name, Group)> = Vec::with_capacity(list.len());
        let mut places: FxHashMap<(Name, Name), usize> = FxHashMap::default();
        for (key, group) in list {
            let Some(&(_, sample)) = group.samples.0.first() else {
                continue;
            };
            let (via, kind) = self.label(above, key, sample);
            let via = self.trie.names.intern(&via, kind);
            let class = names::name_of(self.snapshot, sample);
            let class = self.trie.names.intern(&class, LabelKind::Class);
            match places.entry((via, class)) {
                Entry::Occupied(known) => named[*known.get()].2.merge(group),
                Entry::Vacant(place) => {
                    place.insert(named.len());
                    named.push((via, class, group));
                }
            }
        }
        named
    }

    /// Adds a group of objects to the child node with the group's label. If the objects continue a chain, adds them to
    /// an ancestor instead (see `folds_into`).
    fn place(&mut self, above: StepId, (via, class): (Name, Name), group: Group, nested: bool) {
        let Some(&(_, sample)) = group.samples.0.first() else {
            return;
        };
        if let Some(into) = self.trie.folds_into(above, Some(via), class) {
            let step = &mut self.trie.steps[into.0 as usize];
            step.objects += group.objects;
            step.shallow_bytes += group.shallow;
            step.sizes.merge(&group.sizes);
            for s in std::iter::successors(Some(above), |&s| Some(self.trie[s].parent))
                .take_while(|&s| s != into)
                .collect::<Vec<_>>()
            {
                self.trie.steps[s.0 as usize].cyclic = true;
            }
            self.queue_nodes(into, group.nodes, true);
            return;
        }
        let known = self.index.contains_key(&(above, via, class));
        if !known && group.retained < self.expand / KEEP_PART {
            return;
        }
        let id = self.add(above, via, class);
        let of = self.snapshot.class_of(sample);
        let step = &mut self.trie.steps[id.0 as usize];
        step.of = of;
        step.objects += group.objects;
        step.shallow_bytes += group.shallow;
        step.sizes.merge(&group.sizes);
        // In a chain of alternating classes, an earlier object of this trie node can dominate the group. The trie
        // node's retained bytes then already include the group.
        let inside = nested && step.cyclic;
        if !inside {
            step.retained_bytes += group.retained;
        }
        let samples = &mut self.largest[id.0 as usize];
        for &(retained, object) in &group.samples.0 {
            samples.add(retained, object);
        }
        if step.retained_bytes >= self.expand {
            self.queue_nodes(id, group.nodes, inside);
        }
    }

    fn queue_nodes(&mut self, step: StepId, nodes: Nodes, nested: bool) {
        if nodes.is_empty() {
            return;
        }
        let pending = &mut self.pending[step.0 as usize];
        if pending.fresh.is_empty() && pending.nested.is_empty() {
            self.queue.push_back(step);
        }
        if nested {
            pending.nested.append(nodes)
        } else {
            pending.fresh.append(nodes)
        }
    }

    fn label(&self, above: StepId, key: GroupKey, sample: ObjectIndex) -> (String, LabelKind) {
        debug_assert!(
            above == StepId::ROOT || key.0 == u32::from(self.holders.key(sample)),
            "all objects of a group have the same kind of holder"
        );
        label(self.snapshot, self.holders, above, sample)
    }
}

/// Returns the label of the reference that holds an object, whose dominator belongs to the trie node `above`.
pub(crate) fn label(
    snapshot: &Snapshot,
    holders: &Holders,
    above: StepId,
    object: ObjectIndex,
) -> (String, LabelKind) {
    let tree = snapshot.tree();
    if above == StepId::ROOT {
        return match tree.root_kind(object) {
            None => names::hold_label(snapshot, hprof::answers::Hold::Shared, None),
            // A class object has the same label for all kinds of roots that hold it.
            Some(_) if snapshot.represents(object).is_some() => (
                RootKind::StickyClass.name().to_owned(),
                LabelKind::Structure,
            ),
            Some(kind) => (kind.name().to_owned(), LabelKind::Structure),
        };
    }
    let hold = snapshot.hold_of(holders, object);
    let holder = tree.dominator(object).and_then(|d| tree.object(d));
    names::hold_label(snapshot, hold, holder)
}

/// A node of a test trie: the number of its parent, its label, its class, and three figures (objects, shallow bytes,
/// retained bytes).
#[cfg(test)]
pub(crate) type Drawn = (u32, (&'static str, LabelKind), &'static str, [u64; 3]);

#[cfg(test)]
impl Trie {
    /// Returns a trie of these nodes. They are numbered from 1, in the given order.
    pub(crate) fn drawn(steps: &[Drawn]) -> Self {
        let mut names = Names::default();
        let root = names.intern("<GC roots>", LabelKind::Structure);
        let step = |via, class, parent, [objects, shallow_bytes, retained_bytes]: [u64; 3]| Step {
            via,
            class,
            parent,
            objects,
            shallow_bytes,
            retained_bytes,
            children: Vec::new(),
            samples: Vec::new(),
            of: None,
            sizes: SizeClasses::default(),
            cyclic: false,
        };
        let mut drawn = vec![step(root, root, StepId::ROOT, [0; 3])];
        for (number, &(parent, (via, kind), class, figures)) in (1..).zip(steps) {
            let via = names.intern(via, kind);
            let class = names.intern(class, LabelKind::Class);
            drawn.push(step(via, class, StepId(parent), figures));
            drawn[parent as usize].children.push(StepId(number));
        }
        Self {
            steps: drawn,
            names,
        }
    }

    /// Gives a node of a test trie another label.
    pub(crate) fn set_via(&mut self, step: StepId, via: Name) {
        self.steps[step.0 as usize].via = via;
    }
}

#[cfg(test)]
mod tests;
