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
/// Elements looked at of one array.
const ELEMENTS: u32 = 256;
/// Paths that are told apart.
const PATHS: usize = 4;

struct Reached {
    object: ObjectIndex,
    /// The place of the object before it among those reached, and the reference between.
    from: Option<(usize, Label)>,
}

/// Paths from `sample`'s dominator to objects of its class with the same dominator, one for each
/// reference that leaves the dominator; those found first come first.
pub(crate) fn paths(snapshot: &Snapshot, sample: ObjectIndex) -> Vec<Vec<Label>> {
    let tree = snapshot.tree();
    let Some(dominator) = tree.dominator(sample) else {
        return Vec::new();
    };
    let class = snapshot.class_of(sample);
    let wanted =
        |o: ObjectIndex| snapshot.class_of(o) == class && tree.dominator(o) == Some(dominator);
    let mut reached: Vec<Reached> = match tree.object(dominator) {
        Some(object) => defined_by(snapshot, object)
            .into_iter()
            .chain([object])
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
    let mut found: Vec<Vec<Label>> = Vec::new();
    let mut level = 0..reached.len();
    for _ in 0..DEPTH {
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
                    if path.len() <= DEPTH && found.iter().all(|p| p.first() != path.first()) {
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
    }
    found.truncate(PATHS);
    found
}

/// The classes that a class loader defined: no field of the loader need lead to them.
fn defined_by(snapshot: &Snapshot, loader: ObjectIndex) -> Vec<ObjectIndex> {
    let classes = snapshot.classes();
    let of_loaders = classes.by_name("java.lang.ClassLoader").first();
    let is_loader = match (snapshot.class_of(loader), of_loaders) {
        (Some(class), Some(&loaders)) => classes.is_subclass(class, loaders),
        _ => false,
    };
    let all = classes.iter().take(classes.dumped());
    all.filter(|(_, c)| is_loader && snapshot.find(c.loader) == Some(loader))
        .map(|(i, _)| ObjectIndex(i.0))
        .filter(|&o| snapshot.tree().is_reachable(o))
        .collect()
}

/// Where paths begin when only the GC roots together dominate: classes, the application's first.
fn starts(snapshot: &Snapshot) -> Vec<ObjectIndex> {
    let roots = snapshot.tree().roots().map(|(object, _)| object);
    let classes = snapshot
        .classes()
        .iter()
        .take(snapshot.classes().dumped())
        .map(|(i, _)| ObjectIndex(i.0));
    let mut all: Vec<ObjectIndex> = classes.chain(roots).collect();
    all.sort_by_key(|&o| {
        let runtime = snapshot
            .represents(o)
            .is_none_or(|c| names::is_runtime(snapshot, c));
        (runtime, o)
    });
    all.dedup();
    all.retain(|&o| snapshot.tree().is_reachable(o));
    all
}

fn is_below(snapshot: &Snapshot, dominator: Node, object: ObjectIndex) -> bool {
    let tree = snapshot.tree();
    tree.node(object)
        .is_some_and(|n| n > dominator && n < tree.end(dominator))
}

/// What an object refers to, with how it is called.
fn references(snapshot: &Snapshot, record: &Record<'_>) -> Vec<(ObjectIndex, Label)> {
    let label = |hold| names::hold_label(snapshot, hold, Some(record.object));
    let field = |class: ClassIndex, place, is_static| {
        label(if is_static {
            Hold::Static(class, place)
        } else {
            Hold::Field(class, place)
        })
    };
    // What retains nothing is no path.
    let of = record.class.map(|c| snapshot.classes()[c].reference);
    let weak = matches!(of, Some(Reference::Weak | Reference::Phantom));
    let retains = |f: &&FieldValue<'_>| {
        let of_reference = || &*snapshot.classes()[f.class].name == "java.lang.ref.Reference";
        !(weak && f.name == "referent" && of_reference())
    };
    match &record.content {
        Content::Instance(fields) => fields
            .iter()
            .filter(retains)
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
