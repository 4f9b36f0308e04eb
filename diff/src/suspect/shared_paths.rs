//! The reference paths to objects that no single reference holds.
//!
//! Where several paths lead to what grows, its dominator lies above the point where they part, and
//! the trie shows only that. Here the paths are followed down from the dominator, breadth first,
//! to the first of the growing objects on each.

use std::collections::HashSet;

use hprof::{
    ClassIndex, Content, FieldValue, Hold, Node, ObjectIndex, Record, Reference, Snapshot, Value,
};

use crate::names::{self, Label};

/// Objects read on one level.
const WIDTH: usize = 1 << 14;
/// Levels that are searched.
const DEPTH: usize = 8;
/// Levels that are searched for one of a few objects.
const DEPTH_TO_FEW: usize = 16;
/// Elements of one array that are followed.
const ELEMENTS: u32 = 256;
/// The class that declares the field `referent`.
const REFERENCE: &str = "java.lang.ref.Reference";
/// Paths that are returned.
const PATHS: usize = 4;

/// An object that the search came to.
struct Reached {
    object: ObjectIndex,
    /// The place of its predecessor among the reached objects, and the reference between the two.
    from: Option<(usize, Label)>,
}

/// The most objects of a class of which a particular one is looked for.
pub(crate) const FEW: u64 = 1000;

/// Paths from the samples' dominator to one of the samples, or else to another object of their class with the
/// same dominator; one path for each reference that leaves the dominator, the shortest first.
///
/// The samples are the largest of `of` objects. Where there are few (a database has a map for each table), the
/// path to a small one would mislead, so a large one is looked for. Where there are many, the path to any of
/// them will do.
///
/// Cost: reads at most some ten thousand objects on each of eight levels, of few objects sixteen.
pub(crate) fn find(snapshot: &Snapshot, samples: &[ObjectIndex], of: u64) -> Vec<Vec<Label>> {
    let tree = snapshot.tree();
    let Some(&sample) = samples.first() else {
        return Vec::new();
    };
    let Some(dominator) = tree.dominator(sample) else {
        return Vec::new();
    };
    let class = snapshot.class_of(sample);
    let largest = snapshot.retained_bytes(sample);
    let is_large =
        |&&o: &&ObjectIndex| snapshot.retained_bytes(o) >= largest.map(|bytes| bytes / 2);
    let samples: Vec<ObjectIndex> = samples.iter().filter(is_large).copied().collect();
    let wanted =
        |o: ObjectIndex| snapshot.class_of(o) == class && tree.dominator(o) == Some(dominator);
    let mut reached: Vec<Reached> = match tree.object(dominator) {
        Some(object) => std::iter::once(object)
            .chain(loaded_by(snapshot, object))
            .map(|object| Reached { object, from: None })
            .collect(),
        // Growing objects may be roots themselves, as virtual threads are. The search does not start there.
        None => starts(snapshot)
            .into_iter()
            .filter(|&o| !wanted(o))
            .map(|object| Reached { object, from: None })
            .collect(),
    };
    let mut seen: HashSet<ObjectIndex> = reached.iter().map(|r| r.object).collect();
    let [mut found, mut to_others] = [const { Vec::<Vec<Label>>::new() }; 2];
    let mut level = 0..reached.len();
    let depth = if of <= FEW { DEPTH_TO_FEW } else { DEPTH };
    for _ in 0..depth {
        let objects: Vec<ObjectIndex> = reached[level.clone()]
            .iter()
            .take(WIDTH)
            .map(|r| r.object)
            .collect();
        for (i, record) in snapshot.read_all(&objects).into_iter().enumerate() {
            let Some(record) = record else { continue };
            for (target, label) in references(snapshot, &record) {
                let from = Some((level.start + i, label));
                if wanted(target) {
                    let path = trace(&reached, from);
                    let found = if of <= FEW && samples.contains(&target) {
                        &mut found
                    } else {
                        &mut to_others
                    };
                    if path.len() <= depth && found.iter().all(|p| p.first() != path.first()) {
                        found.push(path);
                    }
                } else if is_below(snapshot, dominator, target) && seen.insert(target) {
                    reached.push(Reached {
                        object: target,
                        from,
                    });
                }
            }
        }
        level = level.end..reached.len();
        if level.is_empty() || found.len() >= PATHS {
            break;
        }
        if of > FEW && to_others.len() >= PATHS {
            break;
        }
    }
    // A single object has no others of its kind.
    if found.is_empty() && of > 1 {
        found = to_others;
    }
    found.truncate(PATHS);
    found
}

/// The objects at which paths begin where only the GC roots together dominate: classes, other roots, and local
/// variables; those of application classes first.
fn starts(snapshot: &Snapshot) -> Vec<ObjectIndex> {
    let roots = snapshot.tree().roots().map(|(object, _)| object);
    let classes = snapshot
        .classes()
        .iter()
        .take(snapshot.classes().dumped())
        .map(|(i, _)| ObjectIndex(i.0));
    let threads = snapshot.threads();
    let locals = threads.iter().flat_map(|thread| {
        let of_frames = thread.frames.iter().flat_map(|frame| &frame.locals);
        of_frames.chain(&thread.other_locals).map(|l| l.object)
    });
    let mut all: Vec<ObjectIndex> = classes.chain(roots).chain(locals).collect();
    all.sort_by_key(|&o| {
        let class = snapshot.represents(o).or_else(|| snapshot.class_of(o));
        let runtime = class.is_none_or(|c| names::is_runtime(snapshot, c));
        (runtime, o)
    });
    all.dedup();
    all.retain(|&o| snapshot.tree().is_reachable(o));
    all
}

/// The classes of a class loader.
fn loaded_by(snapshot: &Snapshot, loader: ObjectIndex) -> impl Iterator<Item = ObjectIndex> {
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

/// The objects that an object refers to, with labels. The referents of weak and phantom references are left
/// out.
fn references(snapshot: &Snapshot, record: &Record<'_>) -> Vec<(ObjectIndex, Label)> {
    let classes = snapshot.classes();
    let strength = snapshot
        .class_of(record.object)
        .map(|class| classes[class].reference);
    let keeps_referent = !matches!(strength, Some(Reference::Weak | Reference::Phantom));
    let keeps = |f: &FieldValue<'_>| {
        keeps_referent || f.name != "referent" || &*classes[f.class].name != REFERENCE
    };
    let label = |hold| names::hold_label(snapshot, hold, Some(record.object));
    let field = |class: ClassIndex, place, is_static| {
        label(if is_static {
            Hold::Static(class, place)
        } else {
            Hold::Field(class, place)
        })
    };
    match &record.content {
        Content::Instance(fields) => fields
            .iter()
            .filter(|f| keeps(f))
            .filter_map(|f| match f.value {
                Some(Value::Object(_, Some(target))) => {
                    Some((target, field(f.class, f.place, false)))
                }
                _ => None,
            })
            .collect(),
        Content::Class(class) => class
            .statics
            .iter()
            .filter_map(|f| match f.value {
                Some(Value::Object(_, Some(target))) => {
                    Some((target, field(f.class, f.place, true)))
                }
                _ => None,
            })
            .collect(),
        Content::Array(array) => {
            let targets = array.elements(0..ELEMENTS).filter_map(|v| match v {
                Value::Object(_, target) => target,
                _ => None,
            });
            let label = label(Hold::Element);
            targets.map(|t| (t, label.clone())).collect()
        }
    }
}

/// The references that lead to a place of the search, from its start.
fn trace(reached: &[Reached], mut from: Option<(usize, Label)>) -> Vec<Label> {
    let mut path = Vec::new();
    while let Some((at, label)) = from {
        // A chain through one field is one step.
        if path.last() != Some(&label) {
            path.push(label);
        }
        from = reached[at].from.clone();
    }
    path.reverse();
    path
}
