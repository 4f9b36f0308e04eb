//! Finds paths of references to objects that no single reference holds.
//!
//! If several paths lead to the growing objects, their dominator is the object at which the paths split. The trie shows
//! only this dominator. This module follows the paths down from the dominator, breadth first. Each path ends at the
//! first growing object on it:
//!
//! ```text
//!                  +-> cache -> entries --+
//! dominator (root) |                      +-> growing objects
//!                  +-> index -> nodes ----+
//! ```

use std::cmp::Reverse;
use std::collections::hash_map::Entry;

use hprof::answers::{Content, FieldValue, Hold, Record, Thread, Value};
use hprof::dominators::Node;
use hprof::records::Reference;
use hprof::{ClassIndex, ObjectIndex, Snapshot};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::growth;
use crate::names::{self, Label, LabelKind};

/// Maximum number of objects to read on one level of the search.
const WIDTH: usize = 1 << 14;
/// Maximum number of levels to search.
const DEPTH: usize = 8;
/// Maximum number of levels to search after the first [`DEPTH`] or [`DEPTH_TO_FEW`] levels. On these further levels,
/// only chains are followed, such as the chain of threads that wait for a lock.
const CHAIN: usize = 1 << 9;
/// Maximum number of levels to search if at most [`FEW`] objects are wanted.
const DEPTH_TO_FEW: usize = 16;
/// Maximum number of elements to follow of one array.
const ELEMENTS: u32 = 1 << 12;
/// Maximum number of references to follow in one search.
const REFERENCES: u64 = 1 << 21;
/// Maximum number of references to read in order to find references between wanted objects, for all paths together.
const LINKS: usize = 1 << 17;
/// The JDK class that declares the field `referent`.
const REFERENCE: &str = "java.lang.ref.Reference";
/// Maximum number of paths to return.
const PATHS: usize = 4;

/// An object that the search has reached.
#[derive(Clone)]
struct Reached {
    object: ObjectIndex,
    /// Number of references on the path to the object. A chain whose links use the same field counts as one.
    steps: usize,
    /// Index of the object's predecessor among the reached objects, and the label of the reference between the two.
    /// `None` for an object at which the search began.
    from: Option<(usize, Label)>,
}

/// If at most this number of objects is wanted, the search goes deeper: until it reaches the largest of these objects.
pub(crate) const FEW: u64 = 1000;
/// A path that leads to at least this number of objects is returned, even if another path leads to more than twice as
/// many bytes. The number is small, because the search follows only a few links of a chain, so a path through a chain
/// reaches few objects.
const SEVERAL: usize = 8;

/// A path, and the wanted objects to which it leads.
struct Way {
    path: Vec<Label>,
    objects: FxHashSet<ObjectIndex>,
    /// Bytes that the objects retain together.
    bytes: u64,
    /// Number of wanted objects to which all paths with the same first reference lead together. Set by [`Ways::best`].
    of_beginning: usize,
}

/// The paths that lead to wanted objects, in the order in which the search found them.
#[derive(Default)]
struct Ways {
    list: Vec<Way>,
    index: FxHashMap<Vec<Label>, usize>,
}

impl Ways {
    fn add(&mut self, path: Vec<Label>, object: ObjectIndex, retained: u64) {
        let list = &mut self.list;
        let at = *self.index.entry(path).or_insert_with_key(|path| {
            list.push(Way {
                path: path.clone(),
                objects: FxHashSet::default(),
                bytes: 0,
                of_beginning: 0,
            });
            list.len() - 1
        });
        if list[at].objects.insert(object) {
            list[at].bytes = list[at].bytes.saturating_add(retained);
        }
    }

    /// Returns at most [`PATHS`] paths, the best ones first. If several paths have the same first reference and the
    /// same holder, only the path to the most bytes is considered.
    ///
    /// The paths are sorted by these criteria, in this order:
    ///
    /// - Paths to at least half of the maximum bytes of a path are first. Other paths to at least [`SEVERAL`] objects
    ///   follow. All other paths are left out.
    /// - A path precedes the others if it leads to more bytes than all other paths with its first reference.
    /// - Paths are in the order in which the search found their first references.
    /// - Paths with the same first reference are in descending order of bytes.
    fn best(self) -> Vec<Way> {
        let mut beginnings: Vec<FxHashSet<ObjectIndex>> = Vec::new();
        let mut index: FxHashMap<Option<Label>, usize> = FxHashMap::default();
        let mut known: FxHashMap<(usize, Option<String>), usize> = FxHashMap::default();
        let mut best: Vec<(usize, Way)> = Vec::new();
        for way in self.list {
            let first = way.path.first().cloned();
            let beginning = *index.entry(first).or_insert_with(|| {
                beginnings.push(FxHashSet::default());
                beginnings.len() - 1
            });
            beginnings[beginning].extend(&way.objects);
            match known.entry((beginning, growth::holder(&way.path))) {
                Entry::Vacant(entry) => {
                    entry.insert(best.len());
                    best.push((beginning, way));
                }
                Entry::Occupied(entry) => {
                    let known = &mut best[*entry.get()].1;
                    if known.bytes < way.bytes {
                        *known = way;
                    }
                }
            }
        }
        let most = best.iter().map(|(_, way)| way.bytes).max().unwrap_or(0);
        let is_usual = |way: &Way| way.bytes >= most / 2;
        // The sort is stable, so paths to the same number of bytes stay in the order in which the search found them.
        best.sort_by_key(|(beginning, way)| (*beginning, Reverse(way.bytes)));
        let mut before = None;
        let mut ranked: Vec<((bool, bool), Way)> = Vec::new();
        for (beginning, mut way) in best {
            let is_first = before.replace(beginning) != Some(beginning);
            way.of_beginning = beginnings[beginning].len();
            let objects = if is_first {
                way.of_beginning
            } else {
                way.objects.len()
            };
            if is_usual(&way) || objects >= SEVERAL {
                ranked.push(((!is_usual(&way), !is_first), way));
            }
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(PATHS);
        ranked.into_iter().map(|(_, way)| way).collect()
    }

    /// Returns the number of different references with which the paths begin. Each path begins at the dominator of the
    /// wanted objects.
    fn first_reference_count(&self) -> usize {
        let first: FxHashSet<Option<&Label>> = self.list.iter().map(|w| w.path.first()).collect();
        first.len()
    }
}

/// The objects to which the search finds paths.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// The given objects, which all have the same dominator.
    These(&'a [ObjectIndex]),
    /// All objects of one class that have the same dominator. `of` is their number. `samples` are the largest of them,
    /// and determine the class and the dominator.
    All { samples: &'a [ObjectIndex], of: u64 },
}

impl<'a> Wanted<'a> {
    const fn samples(self) -> &'a [ObjectIndex] {
        match self {
            Self::These(samples) | Self::All { samples, .. } => samples,
        }
    }

    const fn count(self) -> u64 {
        match self {
            Self::These(objects) => objects.len() as u64,
            Self::All { of, .. } => of,
        }
    }
}

/// A path to wanted objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedPath {
    pub(crate) labels: Vec<Label>,
    /// Number of objects that the search reached on all paths with the same first reference.
    pub(crate) objects: u64,
    /// True if the path's first reference leads to at least half of the objects that the search reached.
    pub(crate) is_usual: bool,
}

/// Returns paths from the dominator of the wanted objects to one of them, if possible to one of the samples. The
/// samples are the largest of the wanted objects.
///
/// The paths are selected and sorted by [`Ways::best`]. If the first path has neither an application field nor a static
/// field, and no object dominates the wanted objects, paths from objects of application classes come first.
///
/// Paths are ranked by the bytes that their objects retain. A path to a small object, or to only a few of many objects,
/// would mislead: for example, a database has a map for each table.
///
/// Cost: reads at most [`WIDTH`] objects on each level. The search has [`DEPTH`] levels, or [`DEPTH_TO_FEW`] levels if
/// at most [`FEW`] objects are wanted. Chains can add [`CHAIN`] levels.
pub(crate) fn find(snapshot: &Snapshot, wanted: Wanted<'_>) -> Vec<SharedPath> {
    let (samples, of) = (wanted.samples(), wanted.count());
    let tree = snapshot.tree();
    let Some(&sample) = samples.first() else {
        return Vec::new();
    };
    let Some(dominator) = tree.dominator(sample) else {
        return Vec::new();
    };
    let above = tree.object(dominator);
    let locals = above.map_or_else(Vec::new, |o| local_variables(snapshot, o, dominator));
    let search = Search {
        snapshot,
        wanted,
        samples,
        of,
        class: snapshot.class_of(sample),
        dominator,
        locals: &locals,
    };
    let all: Vec<ObjectIndex> = match above {
        Some(object) => std::iter::once(object)
            .chain(loaded_by(snapshot, object))
            .chain(locals.iter().copied())
            .collect(),
        // The growing objects may be GC roots themselves, as virtual threads are in dumps. The search does not start at
        // these.
        None => {
            let mut starts = starts(snapshot);
            starts.retain(|&o| !search.is_wanted(o));
            starts
        }
    };
    let mut found = search.ways(&all, 0);
    let is_written = |path: &[Label]| path.iter().any(|l| growth::is_application(l.1));
    let is_named = |path: &SharedPath| {
        let is_static = |l: &Label| l.1 == LabelKind::RuntimeStatic;
        is_written(&path.labels) || path.labels.iter().any(is_static)
    };
    if tree.object(dominator).is_none() && !found.first().is_some_and(is_named) {
        // Paths from JDK threads are short, and hide the longer path from the application.
        let own: Vec<ObjectIndex> = all
            .into_iter()
            .filter(|&o| is_application_object(snapshot, o))
            .collect();
        let mut named = search.ways(&own, CHAIN);
        named.retain(|path| is_written(&path.labels) && path.objects >= of.min(SEVERAL as u64));
        found.retain(|path| !named.iter().any(|other| other.labels == path.labels));
        found.splice(0..0, named);
        found.truncate(PATHS);
    }
    found
}

/// A search for paths from a dominator down to the wanted objects.
struct Search<'a> {
    snapshot: &'a Snapshot,
    wanted: Wanted<'a>,
    samples: &'a [ObjectIndex],
    /// Number of wanted objects. `samples` are the largest of these.
    of: u64,
    class: Option<ClassIndex>,
    dominator: Node,
    /// The objects of a thread's local variables, sorted. Empty unless a thread dominates the wanted objects. The
    /// search starts from the thread, and then from these objects.
    locals: &'a [ObjectIndex],
}

impl Search<'_> {
    fn is_wanted(&self, object: ObjectIndex) -> bool {
        match self.wanted {
            Wanted::These(objects) => objects.contains(&object),
            Wanted::All { .. } => {
                self.snapshot.class_of(object) == self.class
                    && self.snapshot.tree().dominator(object) == Some(self.dominator)
            }
        }
    }

    /// Returns the paths that begin at these objects. After the normal number of levels, the search has `chain` more
    /// levels. On these, it follows only paths with a chain: consecutive references with the same label, which count as
    /// one step.
    fn ways(&self, starts: &[ObjectIndex], chain: usize) -> Vec<SharedPath> {
        let (snapshot, of) = (self.snapshot, self.of);
        let local = names::hold_label(snapshot, Hold::Local, None);
        let start = |&object| Reached {
            object,
            steps: 0,
            from: self
                .locals
                .binary_search(&object)
                .is_ok()
                .then(|| (0, local.clone())),
        };
        let mut reached: Vec<Reached> = starts.iter().map(start).collect();
        let mut seen: FxHashSet<ObjectIndex> = starts.iter().copied().collect();
        let mut ways = Ways::default();
        let mut labels = Labels::default();
        let mut targets: FxHashSet<ObjectIndex> = FxHashSet::default();
        let mut level = 0..reached.len();
        let depth = if of <= FEW { DEPTH_TO_FEW } else { DEPTH };
        let mut references_left = REFERENCES;
        for _ in 0..depth + chain {
            let objects: Vec<ObjectIndex> = reached[level.clone()]
                .iter()
                .take(WIDTH)
                .map(|r| r.object)
                .collect();
            for (i, record) in snapshot.read_all(&objects).into_iter().enumerate() {
                let Some(record) = record else { continue };
                let by = reached[level.start + i].clone();
                for (target, hold) in holds(snapshot, &record) {
                    if references_left == 0 {
                        break;
                    }
                    references_left -= 1;
                    let is_wanted = self.is_wanted(target);
                    let is_new =
                        || !seen.contains(&target) && is_below(snapshot, self.dominator, target);
                    if !is_wanted && !is_new() {
                        continue;
                    }
                    let label = labels.of(snapshot, hold, record.object);
                    let goes_on = by.from.as_ref().is_some_and(|(_, last)| *last == label);
                    let steps = by.steps + usize::from(!goes_on);
                    if steps > depth {
                        continue;
                    }
                    let from = Some((level.start + i, label));
                    if is_wanted {
                        // If only one object is wanted, do not accept other objects of its class.
                        if of > 1 || self.samples.contains(&target) {
                            let retained = snapshot.retained_bytes(target).unwrap_or(0);
                            ways.add(trace(&reached, from), target, retained);
                            targets.insert(target);
                        }
                    } else {
                        seen.insert(target);
                        reached.push(Reached {
                            object: target,
                            steps,
                            from,
                        });
                    }
                }
            }
            level = level.end..reached.len();
            let found = targets.len() as u64;
            let enough = if of <= FEW {
                self.samples.iter().all(|s| targets.contains(s))
            } else {
                found * 2 >= of.min(WIDTH as u64)
            };
            if level.is_empty() || (enough && ways.first_reference_count() >= PATHS) {
                break;
            }
        }
        if let Wanted::All { .. } = self.wanted {
            self.follow_links(&mut ways);
        }
        let ways = ways.best().into_iter();
        let paths = ways.map(|way| SharedPath {
            is_usual: way.of_beginning * 2 >= targets.len(),
            objects: way.of_beginning as u64,
            labels: way.path,
        });
        paths.collect()
    }

    /// For each path, follows references from its wanted objects to further wanted objects, and adds these to the path.
    /// For example, a reference to one node of a doubly linked list holds all nodes.
    fn follow_links(&self, ways: &mut Ways) {
        let most = LINKS / ways.list.len().max(1);
        for way in &mut ways.list {
            let mut left = most;
            let mut work: Vec<ObjectIndex> = way.objects.iter().copied().collect();
            work.sort_unstable();
            // First read [`SEVERAL`] objects as a sample. If none of them refers to another wanted object, skip the
            // other objects, because hardly any of them does.
            let mut tried = work.split_off(work.len().saturating_sub(SEVERAL));
            let mut has_links = false;
            while left > 0
                && let Some(object) = tried.pop().or_else(|| work.pop().filter(|_| has_links))
            {
                let Some(record) = self.snapshot.read(object).ok() else {
                    continue;
                };
                let references = holds(self.snapshot, &record);
                left = left.saturating_sub(references.len());
                for (target, _) in references {
                    if target == object || !self.is_wanted(target) {
                        continue;
                    }
                    has_links = true;
                    if way.objects.insert(target) {
                        let retained = self.snapshot.retained_bytes(target).unwrap_or(0);
                        way.bytes = way.bytes.saturating_add(retained);
                        work.push(target);
                    }
                }
            }
        }
    }
}

/// True if an object is an instance of an application class, or the class object of one.
fn is_application_object(snapshot: &Snapshot, object: ObjectIndex) -> bool {
    let class = snapshot
        .represents(object)
        .or_else(|| snapshot.class_of(object));
    class.is_some_and(|c| !names::is_runtime(snapshot, c))
}

/// Returns the objects at which paths begin if no single object dominates the wanted objects: classes, other roots, and
/// local variables. Objects of application classes come first.
fn starts(snapshot: &Snapshot) -> Vec<ObjectIndex> {
    let roots = snapshot.tree().roots().map(|(object, _)| object);
    let classes = snapshot
        .classes()
        .iter()
        .take(snapshot.classes().dumped())
        .map(|(i, _)| ObjectIndex(i.0));
    let threads = snapshot.threads();
    let locals = threads.iter().flat_map(locals);
    let mut all: Vec<ObjectIndex> = classes.chain(roots).chain(locals).collect();
    all.sort_by_key(|&o| (!is_application_object(snapshot, o), o));
    all.dedup();
    all.retain(|&o| snapshot.tree().is_reachable(o));
    all
}

/// Returns the objects that the local variables of `thread` hold and that the thread dominates. Empty if `thread` is
/// not a thread.
fn local_variables(snapshot: &Snapshot, thread: ObjectIndex, node: Node) -> Vec<ObjectIndex> {
    let threads = snapshot.threads();
    let found = threads.iter().filter(|t| t.object == Some(thread));
    let mut objects: Vec<ObjectIndex> = found.flat_map(locals).collect();
    objects.retain(|&object| is_below(snapshot, node, object));
    objects.sort_unstable();
    objects.dedup();
    objects
}

fn locals(thread: &Thread) -> impl Iterator<Item = ObjectIndex> + '_ {
    let of_frames = thread.frames.iter().flat_map(|frame| &frame.locals);
    of_frames.chain(&thread.other_locals).map(|l| l.object)
}

/// Returns the classes that a class loader has loaded.
pub(super) fn loaded_by(
    snapshot: &Snapshot,
    loader: ObjectIndex,
) -> impl Iterator<Item = ObjectIndex> {
    let id = snapshot.ids(&[loader]).first().copied().flatten();
    snapshot
        .classes()
        .iter()
        .take(snapshot.classes().dumped())
        .filter(move |(_, class)| Some(class.loader) == id)
        .map(|(i, _)| ObjectIndex(i.0))
}

fn is_below(snapshot: &Snapshot, dominator: Node, object: ObjectIndex) -> bool {
    let tree = snapshot.tree();
    tree.node(object)
        .is_some_and(|n| n > dominator && n < tree.end(dominator))
}

/// A cache of labels. It saves time, because millions of references have the same few labels.
#[derive(Default)]
struct Labels(FxHashMap<(Hold, Option<ClassIndex>), Label>);

impl Labels {
    fn of(&mut self, snapshot: &Snapshot, hold: Hold, holder: ObjectIndex) -> Label {
        // The label of an array element depends on the object that holds it. No other label does.
        let class = (hold == Hold::Element).then(|| snapshot.class_of(holder));
        let known = self.0.entry((hold, class.flatten()));
        known
            .or_insert_with(|| names::hold_label(snapshot, hold, Some(holder)))
            .clone()
    }
}

/// Returns the references of an object with their labels. The referents of weak and phantom references are left out.
pub(super) fn references(snapshot: &Snapshot, record: &Record<'_>) -> Vec<(ObjectIndex, Label)> {
    let label = |hold| names::hold_label(snapshot, hold, Some(record.object));
    let all = holds(snapshot, record).into_iter();
    all.map(|(target, hold)| (target, label(hold))).collect()
}

/// Returns the same references as [`references`], without labels.
fn holds(snapshot: &Snapshot, record: &Record<'_>) -> Vec<(ObjectIndex, Hold)> {
    let is_kept = |kind| !matches!(kind, Reference::Weak | Reference::Phantom);
    references_if(snapshot, record, is_kept, ELEMENTS)
}

/// Returns the strong references of an object. For an array, returns those of at most `elements` elements.
pub(super) fn strong_references(
    snapshot: &Snapshot,
    record: &Record<'_>,
    elements: u32,
) -> Vec<(ObjectIndex, Hold)> {
    references_if(snapshot, record, |kind| kind == Reference::No, elements)
}

/// Returns the references of an object. If the object is a `java.lang.ref.Reference`, its referent is included only if
/// `keeps_referent` returns true for this kind of reference.
fn references_if(
    snapshot: &Snapshot,
    record: &Record<'_>,
    keeps_referent: impl Fn(Reference) -> bool,
    elements: u32,
) -> Vec<(ObjectIndex, Hold)> {
    let classes = snapshot.classes();
    let class = snapshot.class_of(record.object);
    let keeps_referent = class.is_none_or(|class| keeps_referent(classes[class].reference));
    let keeps = |f: &FieldValue<'_>| {
        keeps_referent || f.name != "referent" || &*classes[f.class].name != REFERENCE
    };
    match &record.content {
        Content::Instance(fields) => fields
            .iter()
            .filter(|f| keeps(f))
            .filter_map(|f| match f.value {
                Some(Value::Object(_, Some(target))) => {
                    Some((target, Hold::Field(f.class, f.place)))
                }
                _ => None,
            })
            .collect(),
        Content::Class(class) => class
            .statics
            .iter()
            .filter_map(|f| match f.value {
                Some(Value::Object(_, Some(target))) => {
                    Some((target, Hold::Static(f.class, f.place)))
                }
                _ => None,
            })
            .collect(),
        Content::Array(array) => {
            let targets = array.elements(0..elements).filter_map(|v| match v {
                Value::Object(_, target) => target,
                _ => None,
            });
            targets.map(|t| (t, Hold::Element)).collect()
        }
    }
}

/// Returns the references on the path from a starting object of the search to a reached object.
fn trace(reached: &[Reached], mut from: Option<(usize, Label)>) -> Vec<Label> {
    let mut path = Vec::new();
    while let Some((at, label)) = from {
        // Links of a chain that use the same field count as one reference of the path.
        if path.last() != Some(&label) {
            path.push(label);
        }
        from = reached[at].from.clone();
    }
    path.reverse();
    path
}
