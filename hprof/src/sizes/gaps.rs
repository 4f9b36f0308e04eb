//! Measures distances between neighbouring objects in the heap, for dumps that are not in the order of addresses.

use rayon::prelude::*;

use crate::graph::address::{AddressMap, Split};
use crate::ids::{ClassIndex, ObjectId};
use crate::records::classes::Classes;
use crate::sizes::shape::{Shape, Shapes};
use crate::sizes::stats::{Last, Stats};

/// Measures the distance between each object and the next one in the heap, which may be a class object. Discards the
/// distances that the scan of the file measured between neighbours in the file.
///
/// Addresses of objects are multiples of eight. So if most ids are multiples of eight, the other ids are not addresses,
/// and their objects are left out. For example, ART writes a made-up array for each class loader, with an id inside the
/// loader. Flattened values are left out, too: they have made-up ids below `flattened_below`.
///
/// Cost: one lookup of each object's class and array length, in the order of addresses. Two passes over the ids if some
/// ids are not multiples of eight.
pub(crate) fn measure(
    classes: &Classes,
    map: &AddressMap,
    shapes: &Shapes,
    split: Split,
    shape_of: impl Fn(u32) -> u32 + Sync,
    flattened_below: u64,
    stats: &mut Stats,
) {
    let mut mirrors: Vec<u64> = classes.iter().map(|(_, c)| c.id.0).collect();
    let parts = rayon::current_num_threads() * 4;
    // If less than half of the objects have ids that are not multiples of eight, these ids are not addresses. Then
    // leave out all objects and class objects with such ids.
    let leave_out = !stats.has_unaligned_ids() || are_ids_mostly_aligned(map, parts, split);
    let is_left_out = |id: u64| id < flattened_below || leave_out && !is_aligned(id);
    mirrors.retain(|&id| id != 0 && !is_left_out(id));
    mirrors.sort_unstable();
    stats.discard_gaps();
    let measured: Vec<Stats> = (0..parts)
        .into_par_iter()
        .map(|part| {
            let mut own = Stats::new(classes, 1);
            let mut next_mirror = None;
            let (mut last, mut previous) = (Last::Nothing, 0_u64);
            map.for_each_in_order(part, parts, split, |id, number| {
                if is_left_out(id) {
                    return;
                }
                own.address_bits |= id;
                let at = next_mirror.get_or_insert_with(|| mirrors.partition_point(|&m| m < id));
                let mut next = id;
                while let Some(&mirror) = mirrors.get(*at).filter(|&&m| m <= id) {
                    // The size of the previous object is at most its distance to the next object or class object. So if
                    // class objects lie between the previous object and the current object, measure the distance to the
                    // first of them. Class objects themselves are not measured.
                    next = next.min(mirror);
                    *at += 1;
                }
                own.gap(last, next.saturating_sub(previous));
                previous = id;
                let is_made_up = classes
                    .forked
                    .as_ref()
                    .is_some_and(|f| f.is_synthetic(ObjectId(id)));
                last = match shapes.decode(shape_of(number)) {
                    _ if is_made_up => Last::Nothing,
                    Shape::Instance(class) => Last::Instance { class: class.0, id },
                    Shape::Array(class, len) => array(classes, class, len),
                    Shape::ValueArray(class, len) => {
                        let array = classes.layout(class.0).array;
                        Last::ValueArray { array, len }
                    }
                    Shape::ClassObject(_) | Shape::Flattened(_) => Last::Nothing,
                };
            });
            own
        })
        .collect();
    if leave_out {
        stats.address_bits = measured.iter().fold(0, |bits, own| bits | own.address_bits);
    }
    for part in measured {
        stats.merge_gaps(&part);
    }
}

/// True if an object can lie at this address.
pub(crate) const fn is_aligned(id: u64) -> bool {
    id.is_multiple_of(8)
}

/// True if more than half of the objects' ids are multiples of eight.
fn are_ids_mostly_aligned(map: &AddressMap, parts: usize, split: Split) -> bool {
    let counts = (0..parts).into_par_iter().map(|part| {
        let (mut all, mut unaligned) = (0_u64, 0_u64);
        map.for_each_in_order(part, parts, split, |id, _| {
            all += 1;
            unaligned += u64::from(!is_aligned(id));
        });
        (all, unaligned)
    });
    let (all, unaligned) = counts.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    unaligned * 2 < all
}

fn array(classes: &Classes, class: ClassIndex, len: u32) -> Last {
    match classes[class].element {
        Some(_) if classes.is_filler(class) => Last::Nothing,
        Some(kind) => Last::Array { kind, len },
        None => Last::Nothing,
    }
}
