//! Distances between neighbours in the heap, for dumps whose file order is not that of addresses.

use rayon::prelude::*;

use crate::graph::address::{AddressMap, Split};
use crate::ids::{ClassIndex, ObjectId};
use crate::records::classes::Classes;
use crate::sizes::shape::{Shape, Shapes};
use crate::sizes::stats::{Last, Stats};

/// Measures anew what the distances say of sizes, class objects taken for neighbours too. What the
/// scan measured between neighbours in the file is forgotten.
///
/// Cost: one visit of each object's shape, in the order of addresses.
pub(crate) fn measure(
    classes: &Classes,
    map: &AddressMap,
    shapes: &Shapes,
    split: Split,
    shape_of: impl Fn(u32) -> u32 + Sync,
    stats: &mut Stats,
) {
    let mut mirrors: Vec<u64> = classes.iter().map(|(_, c)| c.id.0).collect();
    mirrors.retain(|&id| id != 0);
    mirrors.sort_unstable();
    stats.forget_gaps();
    let parts = rayon::current_num_threads() * 4;
    let measured: Vec<Stats> = (0..parts)
        .into_par_iter()
        .map(|part| {
            let mut own = Stats::new(classes, 1);
            let mut next_mirror = None;
            let (mut last, mut previous) = (Last::Nothing, 0_u64);
            map.in_order(part, parts, split, |id, number| {
                let at = next_mirror.get_or_insert_with(|| mirrors.partition_point(|&m| m < id));
                let mut next = id;
                while let Some(&mirror) = mirrors.get(*at).filter(|&&m| m <= id) {
                    // The first of them ends what came before, and is not measured itself.
                    next = next.min(mirror);
                    *at += 1;
                }
                own.gap(last, next.saturating_sub(previous));
                previous = id;
                let is_made_up = classes
                    .forked
                    .as_ref()
                    .is_some_and(|f| f.is_made_up(ObjectId(id)));
                last = match shapes.decode(shape_of(number)) {
                    _ if is_made_up => Last::Nothing,
                    Shape::Instance(class) => Last::Instance { class: class.0, id },
                    Shape::Array(class, len) => array(classes, class, len),
                    Shape::ClassObject(_) => Last::Nothing,
                };
            });
            own
        })
        .collect();
    for part in measured {
        stats.merge_gaps(&part);
    }
}

fn array(classes: &Classes, class: ClassIndex, len: u32) -> Last {
    match classes[class].element {
        Some(kind) => Last::Array { kind, len },
        None => Last::Nothing,
    }
}
