//! Addresses of class objects (HotSpot calls them mirrors), and the size of their static fields.

use crate::records::classes::{Class, Classes};
use crate::sizes::fields::{Model, References};
use crate::sizes::gaps;
use crate::sizes::stats::Stats;

/// The addresses of class objects, sorted. Class objects lie between other objects in the heap, but have no object
/// records in the dump.
#[derive(Default)]
pub(super) struct Mirrors(Vec<u64>);

impl Mirrors {
    /// Collects the addresses of class objects, which are the ids of classes. If the ids of all objects are multiples
    /// of eight, class ids that are not multiples of eight are left out, because they are not addresses. For example,
    /// GraalVM's native images write the address of a `java.lang.Class` plus 1 as the class's id.
    pub(super) fn new(classes: &Classes, stats: &Stats) -> Self {
        let is_address = |id: u64| id != 0 && (gaps::is_aligned(id) || stats.has_unaligned_ids());
        let mut ids: Vec<u64> = classes
            .iter()
            .map(|(_, c)| c.id.0)
            .filter(|&id| is_address(id))
            .collect();
        ids.sort_unstable();
        Self(ids)
    }

    pub(super) fn next(&self, address: u64) -> Option<u64> {
        self.0
            .get(self.0.partition_point(|&id| id <= address))
            .copied()
    }
}

/// Returns an upper bound of the size of a class object without static fields. Each pair of adjacent class objects
/// gives an upper bound: their distance minus the size of the first one's static fields. The smallest of these bounds
/// is returned.
pub(super) fn max_mirror_size(classes: &Classes, model: &Model, mirrors: &Mirrors) -> Option<u64> {
    let place = static_references(classes);
    let room = |class: &Class| {
        let room = mirrors.next(class.id.0)? - class.id.0;
        let room = room.checked_sub(statics(class, model, place))?;
        Some(room & !(u64::from(model.align) - 1)).filter(|&r| r >= u64::from(model.header))
    };
    classes
        .iter()
        .filter(|(_, c)| c.dumped && c.id.0 != 0)
        .filter_map(|(_, c)| room(c))
        .min()
}

/// Returns the size of a class's static fields in bytes. Static fields with names in angle brackets do not count. These
/// are internal references of the JVM, which the dump shows as static fields.
pub(super) fn statics(class: &Class, model: &Model, place: References) -> u64 {
    let fields = class.statics.iter().filter(|s| !s.name.starts_with('<'));
    model.statics(fields.map(|s| s.kind), place)
}

/// Returns where the JVM places static references. JDK 28 and later place them last. This change came with the code for
/// value classes (JEP 401). These JDKs are recognised by the class `IdentityException`. It is new in JDK 28, and each
/// dump of these JDKs contains it.
pub(super) fn static_references(classes: &Classes) -> References {
    match classes.by_name("java.lang.IdentityException") {
        [] => References::First,
        _ => References::Last,
    }
}
