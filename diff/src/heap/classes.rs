//! The classes of one dump, without a comparison.

use std::cmp::Reverse;

use heapdiff_model::heap::HeapClass;

use crate::compare::Filter;
use crate::summary::Summary;

/// Returns the classes sorted by the bytes of their reachable instances; ties are sorted by name.
pub(super) fn of(summary: &Summary, filter: &Filter<'_>) -> Vec<HeapClass> {
    let lines = summary.classes.iter();
    let lines = lines.filter(|((class, _), _)| (filter.classes)(&[class]));
    let mut classes: Vec<HeapClass> = lines
        .map(|((class, loader), figures)| HeapClass {
            class: class.clone(),
            loader: loader.clone(),
            objects: figures.reachable.objects,
            shallow_bytes: figures.reachable.bytes,
            retained_bytes: figures.retained_bytes,
        })
        .collect();
    classes.sort_by_key(|c| Reverse((c.shallow_bytes, c.objects)));
    classes
}
