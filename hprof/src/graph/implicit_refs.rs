//! References and GC roots that no record contains: which classes are roots, and the objects that threads and loaders
//! hold.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::error::Warning;
use crate::flaw::Flaw;
use crate::graph::address::Split;
use crate::graph::scan::Scanned;
use crate::ids::{ClassIndex, NONE};
use crate::records::classes::{Class, Classes};
use crate::records::record::Kind;
use crate::records::walk::{Root, RootKind};
use crate::sizes::shape;

/// Returns for each class true if it is certainly a GC root, so that no object is needed to keep it alive. The result
/// is the same as in the last pass over the dump.
pub(crate) fn pinned_classes(classes: &Classes, roots: &[Root]) -> Vec<bool> {
    let rooted = rooted_classes(classes, roots);
    let pinned = |(i, c): (ClassIndex, &Class)| {
        let boot = c.loader.is_null() && !c.hidden;
        !c.dumped || (boot && rooted[i.index()])
    };
    classes.iter().map(pinned).collect()
}

/// Returns the ids that a class object refers to, in the order of its adjacency list.
pub(crate) fn class_references<'a>(
    classes: &Classes,
    class: &'a Class,
) -> impl Iterator<Item = u64> + use<'a> {
    let superclass = class.superclass.map_or(0, |s| classes[s].id.0);
    let statics = class
        .statics
        .iter()
        .filter(|s| s.kind == Kind::Object)
        .map(|s| s.value);
    [superclass, class.loader.0]
        .into_iter()
        .chain(class.others.iter().copied())
        .chain(statics)
        .filter(|&id| id != 0)
}

/// Returns true if the boot loader keeps a class alive although no GC root refers to the class. `sticky` is true if the
/// dump has GC roots for system classes. If `sticky` is true, the result is true only for array classes of the boot
/// loader, which live as long as the class of their elements. Otherwise it is true for all classes of the boot loader.
fn held_by_boot_loader(class: &Class, sticky: bool) -> bool {
    class.loader.is_null() && class.dumped && (!sticky || class.element.is_some())
}

/// Returns, for each class, true if the boot loader or a GC root holds the class. GC roots that belong to a thread do
/// not count.
pub(crate) fn rooted_classes(classes: &Classes, roots: &[Root]) -> Vec<bool> {
    let mut rooted = vec![false; classes.len()];
    let mut sticky = false;
    for root in roots {
        sticky |= root.kind == RootKind::StickyClass;
        if !root.kind.belongs_to_thread()
            && let Some(class) = classes.by_id(root.id)
        {
            rooted[class.index()] = true;
        }
    }
    for (i, class) in classes.iter() {
        rooted[i.index()] |= held_by_boot_loader(class, sticky);
    }
    rooted
}

/// Returns the warning about GC roots: that the dump has none, that some may be missing because the dump is incomplete,
/// or that those for system classes are missing.
pub(crate) fn without_roots(roots: &[Root], is_incomplete: bool) -> Option<Warning> {
    let sticky = roots.iter().any(|r| r.kind == RootKind::StickyClass);
    let flaw = match (roots.is_empty(), is_incomplete, sticky) {
        (true, _, _) => Flaw::NoRoots,
        (false, true, _) => Flaw::MissingRoots,
        (false, false, false) => Flaw::NoSystemClasses,
        (false, false, true) => return None,
    };
    Some(Warning::new(&flaw))
}

/// Changes the kind of each GC root of unknown kind that refers to a class object to [`RootKind::LoadedClass`]. A
/// repair adds GC roots for classes. It writes them with unknown kind, because the format of dumps has no kind for
/// loaded classes.
pub(crate) fn name_added_roots(classes: &Classes, roots: &mut [Root]) {
    let of_classes = roots
        .iter_mut()
        .filter(|root| root.kind == RootKind::Unknown && classes.by_id(root.id).is_some());
    of_classes.for_each(|root| root.kind = RootKind::LoadedClass);
}

/// Returns the references that no record contains, from threads to local variables and from loaders to classes, sorted.
/// Also returns the objects that roots hold, each with its first kind of root.
pub(crate) fn implicit_references(
    classes: &Classes,
    split: Split,
    roots: &[Root],
    resolve: impl Fn(u64) -> u32,
) -> (Vec<(u32, u32)>, BTreeMap<u32, RootKind>) {
    let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
    for root in roots.iter().filter(|r| r.kind == RootKind::Thread) {
        let object = resolve(root.id.0);
        if object < split.inner {
            threads.insert(root.thread, object);
        }
    }
    let mut extra: Vec<(u32, u32)> = Vec::new();
    let mut held: BTreeMap<u32, RootKind> = BTreeMap::new();
    for root in roots {
        let object = resolve(root.id.0);
        if object == NONE {
            continue;
        }
        match threads.get(&root.thread) {
            Some(&thread) if root.kind.belongs_to_thread() => extra.push((thread, object)),
            _ => {
                let kind = held.entry(object).or_insert(root.kind);
                *kind = (*kind).min(root.kind);
            }
        }
    }
    let sticky = roots.iter().any(|r| r.kind == RootKind::StickyClass);
    for (i, class) in classes.iter().take(classes.dumped()) {
        if held_by_boot_loader(class, sticky) {
            held.entry(i.0).or_insert(RootKind::StickyClass);
        } else if !class.loader.is_null() && class.held_by_loader {
            let loader = resolve(class.loader.0);
            if loader < split.inner {
                extra.push((loader, i.0));
            }
        }
    }
    extra.sort_unstable();
    extra.dedup();
    (extra, held)
}

/// Returns the instances that have the same id as a class object, each with the class object. References with this id
/// lead to the instance, so the instance needs a reference to the class object.
pub(crate) fn instances_with_class_id(
    classes: &Classes,
    split: Split,
    resolve: impl Fn(u64) -> u32,
) -> Vec<(u32, u32)> {
    let records = classes.iter().take(classes.dumped());
    let objects = records.map(|(i, class)| (resolve(class.id.0), i.0));
    objects
        .filter(|(object, _)| (split.classes..split.inner).contains(object))
        .collect()
}

/// Makes all classes GC roots. Call this if roots may be missing, because then nothing else in the dump shows which
/// objects are alive. A JVM writes the classes first, so a truncated dump has them.
pub(crate) fn root_all_classes(held: &mut BTreeMap<u32, RootKind>, split: Split) {
    for class in 0..split.classes {
        held.entry(class).or_insert(RootKind::LoadedClass);
    }
}

/// Returns true if the object of any thread is treated as an object without references, although it refers to its class
/// (see `is_bare`). Then the object has no adjacency list, so it cannot refer to the objects that the thread holds.
pub(crate) fn is_any_thread_bare(
    split: Split,
    roots: &[Root],
    resolve: impl Fn(u64) -> u32,
    is_bare: impl Fn(u32) -> bool,
) -> bool {
    let threads = roots.iter().filter(|r| r.kind == RootKind::Thread);
    let mut holders = threads.map(|r| r.id.0).filter(|&id| id != 0);
    holders.any(|id| {
        let object = resolve(id);
        object != NONE && object >= split.inner && is_bare(object - split.inner)
    })
}

/// Returns the tables of `ClassValue`. A table belongs to a class, and only the class's field `classValueMap` refers to
/// it. Dumps do not contain instance fields of class objects, so no reference in a dump leads to the table. It is alive
/// as long as its class.
pub(crate) fn held_by_classes(scanned: &Scanned, classes: &Classes, split: Split) -> Vec<u32> {
    const TABLE: &str = "java.lang.ClassValue$ClassValueMap";
    let tables = classes.by_name(TABLE).iter();
    let mut tables = tables.filter(|&&c| {
        classes[c].loader.is_null() && scanned.stats.classes[c.index()].instances > 0
    });
    let Some(table) = tables.next() else {
        return Vec::new();
    };
    let of_table = scanned.shapes.instance(table.0);
    let objects = scanned.inner_shapes.par_iter().enumerate();
    let found = objects.filter(|&(_, &of)| shape::plain(of) == of_table);
    found.map(|(at, _)| split.classes + at as u32).collect()
}
