//! Finds the field through which each object's dominator holds it. An adjacency list has the references in the order of
//! the record, so the position in the list identifies the field.

use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};

use rayon::prelude::*;

use crate::bytes::mem;
use crate::dominators::annotated::{AnnotatedGraph, CHUNK};
use crate::error::Result;
use crate::ids::NONE;
use crate::records::classes::{Classes, RecordLayout};
use crate::sizes::shape::{self, InRow, Shape, Shapes};

/// Codes of references that are not fields. The code of a reference field is its number, which counts from 1.
pub(crate) mod code {
    pub(crate) const ELEMENT: u16 = u16::MAX;
    pub(crate) const CLASS: u16 = u16::MAX - 1;
    pub(crate) const LOADER: u16 = u16::MAX - 2;
    pub(crate) const CLASS_PART: u16 = u16::MAX - 3;
    pub(crate) const LOCAL: u16 = u16::MAX - 4;
    /// The referent of a `java.lang.ref` object.
    pub(crate) const REFERENT: u16 = u16::MAX - 5;
    pub(crate) const LAST_FIELD: u16 = u16::MAX - 6;
}

/// An iterator over the codes (see [`code`]) of the references in an adjacency list. References that no record contains
/// come last in the list, and they have no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowCodes {
    Elements,
    Fields {
        /// Used if the adjacency list leaves out null fields: one bit for each field, which is set if the field is not
        /// null.
        bits: u32,
        /// Used if the adjacency list contains null fields. `next` is the number of fields whose codes the iterator has
        /// already returned, and `end` is the number of all fields.
        next: u16,
        end: u16,
        /// True if the iterator returns [`code::REFERENT`] after the codes of the fields, for a `java.lang.ref` object.
        referent: bool,
    },
}

impl RowCodes {
    /// Returns the codes (see [`code`]) of the references in an object's adjacency list. The number `shape` encodes the
    /// object's class, and which references the list contains.
    #[inline]
    pub(crate) fn for_shape(classes: &Classes, shapes: &Shapes, shape: u32) -> Self {
        let in_row = shape::row_layout(shape);
        if in_row == InRow::Elements {
            return Self::Elements;
        }
        let plain = shape::plain(shape);
        let (class, is_instance) = match shapes.decode(plain) {
            Shape::Array(class, _) if classes[class].element.is_some() => return Self::Elements,
            Shape::ValueArray(..) => return Self::Elements,
            Shape::Array(class, _) => (class, false),
            Shape::Instance(class) | Shape::ClassObject(class) => (class, true),
            Shape::Flattened(class) => {
                let array = classes.layout(class.0).array;
                (class, array == RecordLayout::NO_ARRAY)
            }
        };
        let layout = classes.layout(class.0);
        let mut fields = classes.ref_offsets(layout).len();
        let referent = layout.referent != RecordLayout::NO_REFERENT;
        if let InRow::FieldsBut(nulls) = in_row
            && is_instance
            && shape::has_mask(plain, fields)
        {
            Self::Fields {
                bits: ((1 << fields) - 1) & !nulls,
                next: 0,
                end: 0,
                referent,
            }
        } else {
            if let InRow::First(read) = in_row {
                fields = fields.min(read as usize);
            }
            Self::Fields {
                bits: 0,
                next: 0,
                end: fields.min(usize::from(code::LAST_FIELD)) as u16,
                referent: referent && fields <= usize::from(code::LAST_FIELD),
            }
        }
    }
}

impl Iterator for RowCodes {
    type Item = u16;

    #[inline(always)]
    fn next(&mut self) -> Option<u16> {
        let Self::Fields {
            bits,
            next,
            end,
            referent,
        } = self
        else {
            return Some(code::ELEMENT);
        };
        if *bits != 0 {
            let field = bits.trailing_zeros();
            *bits &= *bits - 1;
            Some(field as u16 + 1)
        } else if next < end {
            *next += 1;
            Some(*next)
        } else {
            std::mem::take(referent).then_some(code::REFERENT)
        }
    }
}

/// The adjacency lists, together with the dominators. In `graph`, the per-object word is the object's node in the
/// dominator tree.
#[derive(Clone, Copy)]
pub(crate) struct LaidOut<'a> {
    pub(crate) graph: &'a AnnotatedGraph,
    /// The immediate dominator of each node.
    pub(crate) parent: &'a [u32],
    /// The node that immediately dominates each leaf (object without references).
    pub(crate) leaf_parent: &'a [u32],
}

/// A function that reads the adjacency lists and the dominators before the lists are freed.
pub(crate) type Note<'a> = &'a mut dyn FnMut(LaidOut<'_>) -> Result<()>;

/// Number of references processed together.
const BATCH: usize = 256;
/// Minimum length of an adjacency list that is split between tasks.
const LONG: usize = 1 << 16;

/// A reference in a batch. `from` is its source's node in the dominator tree, and `target` is the object to which it
/// refers. `node` is the node of `target`, or [`NONE`] if `target` has no references. `code` identifies the field or
/// the kind of reference (see [`code`]).
#[derive(Clone, Copy)]
struct Passing {
    from: u32,
    target: u32,
    node: u32,
    code: u16,
}

impl LaidOut<'_> {
    /// Stores, for each object, the code (see [`code`]) of the reference by which its dominator holds it. If the
    /// dominator has several references to the object, stores the code of the first. Stores no code if a class object
    /// holds the object. Stores no code either if the reference is in no adjacency list, unless it is a soft or final
    /// reference. `codes` returns the codes for the adjacency list of an object.
    ///
    /// Cost: one pass over the references, in parallel.
    pub(crate) fn note(self, codes: impl Fn(u32) -> RowCodes + Sync, slots: &[AtomicU16]) {
        let split = self.graph.split;
        let chunks = (split.inner - split.classes.min(split.inner)).div_ceil(CHUNK as u32);
        (0..chunks).into_par_iter().for_each(|chunk| {
            let first = split.classes + chunk * CHUNK as u32;
            let last = first.saturating_add(CHUNK as u32).min(split.inner);
            let mut batch: Vec<Passing> = Vec::with_capacity(BATCH);
            let mut begin = self.graph.begin(first);
            for object in first..last {
                let row = begin..self.graph.begin(object + 1);
                begin = row.end;
                let from = self.graph.note(object);
                if row.is_empty() || from == NONE {
                    continue;
                }
                let codes = codes(object);
                if row.len() >= LONG && codes == RowCodes::Elements {
                    // All elements of an array have the code `ELEMENT`. So the result is the same, whichever task
                    // stores the code.
                    let parts = row.clone().into_par_iter().step_by(LONG);
                    parts.for_each(|at| {
                        let mut batch: Vec<Passing> = Vec::with_capacity(BATCH);
                        let part = at..(at + LONG).min(row.end);
                        self.row(from, part, codes, &mut batch, slots);
                        self.flush(&mut batch, slots);
                    });
                } else {
                    self.row(from, row, codes, &mut batch, slots);
                }
            }
            self.flush(&mut batch, slots);
        });
        for &(from, target) in self.graph.weaker.iter().flatten() {
            let from = self.graph.note(from);
            if from != NONE && self.dominator(target) == from {
                set(slots, target, code::REFERENT);
            }
        }
    }

    #[inline(always)]
    fn row(
        self,
        from: u32,
        row: Range<usize>,
        codes: RowCodes,
        batch: &mut Vec<Passing>,
        slots: &[AtomicU16],
    ) {
        let inner = self.graph.split.inner;
        for (&target, code) in self.graph.targets[row].iter().zip(codes) {
            if target == NONE {
                continue;
            }
            if target < inner {
                self.graph.fetch(target);
            } else {
                mem::prefetch(self.leaf_parent, (target - inner) as usize);
            }
            mem::prefetch(slots, target as usize);
            batch.push(Passing {
                from,
                target,
                node: NONE,
                code,
            });
            if batch.len() == BATCH {
                self.flush(batch, slots);
            }
        }
    }

    /// Returns true if this reference to a class object was inserted in place of a path "object -> leaf -> class of the
    /// leaf". A leaf is an object that refers only to its class. An object with such an inserted reference has no other
    /// reference to the class.
    #[inline(always)]
    fn is_leaf_shortcut(self, passing: Passing) -> bool {
        if passing.target >= self.graph.split.classes {
            return false;
        }
        let all = &self.graph.by_leaves;
        let first = all.partition_point(|pair| pair.1 < passing.target);
        let mut of_class = all[first..]
            .iter()
            .take_while(|pair| pair.1 == passing.target);
        of_class.any(|&(from, _)| self.graph.note(from) == passing.from)
    }

    /// For each reference in a batch whose source is the dominator of its target, stores the code of the field or
    /// element. Clears the batch.
    ///
    /// Each reference needs look-ups at unrelated addresses. Each look-up is done for the whole batch before the next
    /// look-up, so that prefetching has time to load the data.
    fn flush(self, batch: &mut Vec<Passing>, slots: &[AtomicU16]) {
        let inner = self.graph.split.inner;
        for passing in batch.iter_mut() {
            if passing.target < inner {
                passing.node = self.graph.note(passing.target);
                mem::prefetch(self.parent, passing.node as usize);
            }
        }
        for passing in batch.drain(..) {
            let dominator = match passing.node {
                NONE => self.dominator(passing.target),
                node => self.parent[node as usize],
            };
            let is_free = || slots[passing.target as usize].load(Ordering::Relaxed) == 0;
            if dominator == passing.from && is_free() && !self.is_leaf_shortcut(passing) {
                set(slots, passing.target, passing.code);
            }
        }
    }

    fn dominator(self, target: u32) -> u32 {
        let inner = self.graph.split.inner;
        match target.checked_sub(inner) {
            Some(leaf) => self.leaf_parent[leaf as usize],
            None => match self.graph.note(target) {
                NONE => NONE,
                node => self.parent[node as usize],
            },
        }
    }
}

/// Sets the code of the field or element by which an object's dominator holds it, unless it is set already. Only the
/// tasks that process the adjacency list of the object's dominator call this.
#[inline(always)]
fn set(slots: &[AtomicU16], target: u32, code: u16) {
    let slot = &slots[target as usize];
    if slot.load(Ordering::Relaxed) == 0 {
        slot.store(code, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_before_the_referent_and_end_there() {
        let fields = |bits, end| RowCodes::Fields {
            bits,
            next: 0,
            end,
            referent: true,
        };
        let all = |codes: RowCodes| codes.collect::<Vec<u16>>();
        assert_eq!(all(fields(0b1011, 0)), [1, 2, 4, code::REFERENT]);
        assert_eq!(all(fields(0, 3)), [1, 2, 3, code::REFERENT]);
    }
}
