//! Class objects (HotSpot's mirrors): their addresses, and the size of their static fields.

use crate::records::classes::{Class, Classes};
use crate::sizes::fields::{Model, References};
use crate::sizes::gaps;
use crate::sizes::stats::Stats;

/// Class objects by address. They are between the other objects but have no object records.
#[derive(Default)]
pub(super) struct Mirrors(Vec<u64>);

impl Mirrors {
    /// Collects the addresses of class objects, which are the ids of classes. Ids that are not addresses are left out:
    /// if objects have addresses that are multiples of eight, other ids are not addresses. GraalVM's native images
    /// write the address of a `java.lang.Class` plus 1 as the class's id.
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

/// Returns an upper bound of the size of a class object without static fields. For each two adjacent class objects, it
/// is their distance minus the static fields of the first. The smallest of these values is returned.
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

/// Returns the size of a class's static fields in bytes. Static fields with names in angle brackets do not count. They
/// are references of the JVM, which are static fields only in the dump.
pub(super) fn statics(class: &Class, model: &Model, place: References) -> u64 {
    let fields = class.statics.iter().filter(|s| !s.name.starts_with('<'));
    model.statics(fields.map(|s| s.kind), place)
}

/// Returns where the JVM places static references. JDK 28 changed this together with the code for value classes (JEP
/// 401), and has a new exception, which each of its dumps contains.
pub(super) fn static_references(classes: &Classes) -> References {
    match classes.by_name("java.lang.IdentityException") {
        [] => References::First,
        _ => References::Last,
    }
}
