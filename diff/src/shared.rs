//! The reference paths to objects that no single reference holds.
//!
//! Where several paths lead to what grows, its dominator lies above the point where they part, and
//! the trie shows only that. Here the paths are followed down from the dominator, breadth first,
//! to the first of the growing objects on each.

use std::collections::HashSet;

use hprof::{
    ClassIndex, Content, FieldValue, Hold, Node, ObjectIndex, Record, Reference, Snapshot, Value,
};

use crate::names::{self, LabelKind};

/// A labelled reference.
pub(crate) type Label = (String, LabelKind);

/// Objects read on one level, and levels.
const WIDTH: usize = 1 << 14;
const DEPTH: usize = 8;
/// Levels where one of a few objects is wanted.
const DEPTH_TO_FEW: usize = 16;
/// Elements looked at of one array.
const ELEMENTS: u32 = 256;
/// The class that declares a referent.
const REFERENCE: &str = "java.lang.ref.Reference";
/// Paths that are told apart.
const PATHS: usize = 4;

struct Reached {
    object: ObjectIndex,
    /// The place of the object before it among those reached, and the reference between.
    from: Option<(usize, Label)>,
}

/// Of more objects than these, any will do.
pub(crate) const FEW: u64 = 1000;

/// Paths from the samples' dominator to one of them, or else to objects of their class with the same
/// dominator, one for each reference that leaves the dominator; those found first come first.
///
/// The samples are the largest of `of` objects. A few objects of a class differ (a database has a map for
/// each table), and the path to just any of them would mislead; of very many any will do, and is found
/// sooner.
pub(crate) fn paths(snapshot: &Snapshot, samples: &[ObjectIndex], of: u64) -> Vec<Vec<Label>> {
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
        // What grows may be a root itself, as virtual threads are; that it refers to itself is no path.
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
    // One object has no others.
    if found.is_empty() && of > 1 {
        found = to_others;
    }
    found.truncate(PATHS);
    found
}

/// Where paths begin when only the GC roots together dominate: classes, other roots, and what the stacks of
/// threads hold; those of the application first.
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

/// What an object refers to, with how it is called. A weak or phantom reference keeps nothing alive.
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

/// The references that lead to a place.
fn trace(reached: &[Reached], mut from: Option<(usize, Label)>) -> Vec<Label> {
    let mut path = Vec::new();
    while let Some((at, label)) = from {
        // A chain of one reference is one step.
        if path.last() != Some(&label) {
            path.push(label);
        }
        from = reached[at].from.clone();
    }
    path.reverse();
    path
}
