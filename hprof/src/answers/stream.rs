//! Lists all objects and all references, one part of the dump at a time. So a caller never needs to have all references
//! in memory, and can read several parts in parallel.

use std::ops::Deref;

use rayon::prelude::*;

use crate::answers::objects::object::{Bodies, Body, Numbering, Raw, Record};
use crate::answers::objects::reference::{RawVia, Via};
use crate::bytes::array::Array;
use crate::error::Result;
use crate::graph::scan::Piece;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::records::classes::Reference;
use crate::records::outline::Segment;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};
use crate::snapshot::Snapshot;

/// The id of every object, by number. See [`Parts::ids`].
#[derive(Debug)]
pub struct Ids(Array<u64>);

impl Ids {
    /// Returns an object's id. Returns a null id if no object has this number.
    #[inline]
    #[must_use]
    pub fn of(&self, object: ObjectIndex) -> ObjectId {
        ObjectId(self.0.get(object.index()).copied().unwrap_or_default())
    }
}

/// The numbers of all objects, sorted by class. See [`Parts::sorted_by_class`].
#[derive(Debug)]
pub struct Numbers(Array<u32>);

impl Deref for Numbers {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

/// A reference that is not null. See [`Parts::links`].
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The referring object.
    pub from: ObjectIndex,
    /// The id of the referring object.
    pub from_id: ObjectId,
    /// The id of the target.
    pub id: ObjectId,
    /// The target. `None` for a dangling reference: the dump has no object with the id.
    pub to: Option<ObjectIndex>,
    way: RawVia,
}

/// The location of an object's record in the file. See [`Parts::places`].
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The object.
    pub object: ObjectIndex,
    /// The offset of the object's record in the file.
    at: usize,
}

/// References that one call of [`Parts::links`] found.
#[derive(Debug, Default)]
pub struct Links {
    /// The references for which `wanted` returned true, in the order of the file.
    pub list: Vec<Link>,
    /// The number of references to `skip` in the next call for the same part. `None` if the part has no more
    /// references.
    pub next: Option<u64>,
}

/// The objects and references of a snapshot, one part of the dump at a time.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a>(&'a Snapshot);

impl<'a> Parts<'a> {
    /// Returns the id of every object.
    ///
    /// Cost: one parallel pass over the file. Memory: eight bytes for each object, in a temporary file if memory
    /// exceeds [`Options::max_memory`](crate::Options::max_memory).
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn ids(self) -> Result<Ids> {
        let mut ids: Array<u64> = self.0.store.zeroed(self.0.object_count() as usize)?;
        let (classes, rest) = ids.split_at_mut(self.0.split.classes as usize);
        for (id, (_, class)) in classes.iter_mut().zip(self.0.classes().iter()) {
            *id = class.id.0;
        }
        let (mut inner, mut leaves) =
            rest.split_at_mut((self.0.split.inner - self.0.split.classes) as usize);
        let mut parts = Vec::with_capacity(self.0.pieces.len());
        for (i, piece) in self.0.pieces.iter().enumerate() {
            let ends = self
                .0
                .pieces
                .get(i + 1)
                .map_or((inner.len(), leaves.len()), |next| {
                    let inner_count = next.first_inner.saturating_sub(piece.first_inner) as usize;
                    let leaf_count = next.first_leaf.saturating_sub(piece.first_leaf) as usize;
                    (inner_count.min(inner.len()), leaf_count.min(leaves.len()))
                });
            let (own_inner, more) = inner.split_at_mut(ends.0);
            inner = more;
            let (own_leaves, more) = leaves.split_at_mut(ends.1);
            leaves = more;
            parts.push((piece, own_inner, own_leaves));
        }
        parts.into_par_iter().for_each(|(piece, inner, leaves)| {
            let firsts = [
                self.0.split.classes + piece.first_inner,
                self.0.split.inner + piece.first_leaf,
            ];
            self.0.walk_piece(piece, |object, number, _| {
                let run = usize::from(number >= self.0.split.inner);
                let slots = if run == 1 { &mut *leaves } else { &mut *inner };
                let at = number.wrapping_sub(firsts[run]) as usize;
                if let Some(slot) = slots.get_mut(at) {
                    *slot = object.id;
                }
                true
            });
        });
        Ok(Ids(ids))
    }

    /// Returns the numbers of all objects, sorted by the rank of their class, then by number. `ranks` has the rank of
    /// each class. Class objects count as instances of `java.lang.Class`. If the dump does not contain
    /// `java.lang.Class`, class objects come last.
    ///
    /// Cost: two passes over the objects. Memory: four bytes for each object, in a temporary file if memory exceeds
    /// [`Options::max_memory`](crate::Options::max_memory).
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn sorted_by_class(self, ranks: &[u32]) -> Result<Numbers> {
        let last = ranks.iter().max().map_or(0, |&r| r as usize + 1);
        let own = self.0.class_class();
        let rank = |object: u32| {
            let class = self.0.class_of(ObjectIndex(object)).or(own);
            let rank = class.and_then(|c| ranks.get(c.index()));
            rank.map_or(last, |&r| r as usize)
        };
        let count = self.0.object_count() as u32;
        let mut starts = vec![0_usize; last + 2];
        (0..count).for_each(|object| starts[rank(object) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut sorted: Array<u32> = self.0.store.zeroed(count as usize)?;
        for object in 0..count {
            let start = &mut starts[rank(object)];
            sorted[*start] = object;
            *start += 1;
        }
        Ok(Numbers(sorted))
    }

    /// Returns the number of parts of the dump. The first part has the class objects. Each other part is about a
    /// megabyte of the file, or more if an array is larger.
    #[must_use]
    pub fn count(self) -> u32 {
        self.0.pieces.len() as u32 + 1
    }

    /// Returns the part that contains an object's record.
    #[must_use]
    pub fn part_of(self, object: ObjectIndex) -> Option<u32> {
        if object.0 < self.0.split.classes {
            return Some(0);
        }
        (u64::from(object.0) < self.0.object_count())
            .then(|| self.0.piece_of(object.0))?
            .map(|piece| piece + 1)
    }

    /// Returns the references in a part's records for which `wanted` returns true. The first `skip` references are
    /// skipped, and at most `limit` references are returned. The result does not include the references from objects to
    /// their classes (see [`Snapshot::class_of`]), nor references that are not in any record (see
    /// [`Parts::implicit_references`]).
    ///
    /// Cost: a walk over the part.
    #[must_use]
    pub fn links(
        self,
        part: u32,
        skip: u64,
        limit: usize,
        wanted: &(dyn Fn(&Link) -> bool + Sync),
    ) -> Links {
        let mut links = Links::default();
        let mut passed = 0_u64;
        // Adds a reference if `wanted` returns true for it. Returns false if `limit` was reached before.
        let mut add = |from: u32, from_id: u64, id: u64, way: RawVia| {
            if id == 0 || matches!(way, RawVia::Class) {
                return true;
            }
            passed += 1;
            if passed <= skip {
                return true;
            }
            if links.list.len() >= limit {
                links.next.get_or_insert(passed - 1);
                return false;
            }
            let link = Link {
                from: ObjectIndex(from),
                from_id: ObjectId(from_id),
                id: ObjectId(id),
                to: Some(self.0.number_of(id))
                    .filter(|&n| n != NONE)
                    .map(ObjectIndex),
                way,
            };
            if wanted(&link) {
                links.list.push(link);
            }
            true
        };
        let Some(piece) = (part as usize).checked_sub(1) else {
            for class in (0..self.0.split.classes).map(ClassIndex) {
                let own = self.0.classes()[class].id.0;
                self.0.each_of_class(class, |id, way| {
                    add(class.0, own, id, way);
                });
            }
            return links;
        };
        if let Some(piece) = self.0.pieces.get(piece) {
            self.0.walk_piece(piece, |object, number, body| {
                let mut room = true;
                self.0.each_in_record(body, |id, way| {
                    room = room && add(number, object.id, id, way);
                });
                room
            });
        }
        links
    }

    /// Returns the references that are not in any record: from threads to objects on their stacks, and from class
    /// loaders to their classes. Sorted by the referring object.
    #[must_use]
    pub fn implicit_references(self) -> Vec<Link> {
        let unwritten = self.0.implicit_references();
        let links = unwritten.iter().map(|(from, to, way)| Link {
            from: ObjectIndex(from),
            from_id: ObjectId::NULL,
            id: ObjectId::NULL,
            to: Some(ObjectIndex(to)),
            way,
        });
        let mut links: Vec<Link> = links.collect();
        let ends: Vec<ObjectIndex> = links
            .iter()
            .flat_map(|l| [Some(l.from), l.to])
            .flatten()
            .collect();
        for (link, ids) in links.iter_mut().zip(self.0.ids(&ends).chunks_exact(2)) {
            link.from_id = ids[0].unwrap_or_default();
            link.id = ids[1].unwrap_or_default();
        }
        links
    }

    /// Returns the field or other kind of a reference, and the strength of the reference: [`Reference::No`] for
    /// ordinary, strong references.
    #[must_use]
    pub fn via(self, link: &Link) -> (Via, Reference) {
        self.0.via(link.from, link.way)
    }

    /// Returns the locations of a part's records in the file, sorted by object number.
    ///
    /// Cost: a walk over the part.
    #[must_use]
    pub fn places(self, part: u32) -> Vec<Place> {
        let mut places = Vec::new();
        let piece = (part as usize).checked_sub(1);
        if let Some(piece) = piece.and_then(|p| self.0.pieces.get(p)) {
            self.0.walk_piece(piece, |object, number, _| {
                if number != NONE {
                    let at = object.at;
                    places.push(Place {
                        object: ObjectIndex(number),
                        at,
                    });
                }
                true
            });
        }
        places.sort_by_key(|p| p.object);
        places
    }

    /// Reads the object whose record is at `place`. Returns `None` if the dump has no complete record there, for
    /// example because `place` belongs to another dump.
    ///
    /// Cost: reads one record.
    #[must_use]
    pub fn read(self, place: Place) -> Option<Record<'a>> {
        Some(self.0.record(place.object, &self.0.raw_of(place)?))
    }

    /// Returns the text of the string whose record is at `place`. `place_of` gets the string's array, and must return
    /// the location of the array's record. See [`Snapshot::string`].
    ///
    /// Cost: reads two records.
    #[must_use]
    pub fn string(
        self,
        place: Place,
        limit: usize,
        place_of: &mut dyn FnMut(ObjectIndex) -> Option<Place>,
    ) -> Option<String> {
        let string = self.0.raw_of(place)?;
        let class = &self.0.classes()[self.0.class_of(place.object)?];
        if !class.loader.is_null() || &*class.name != "java.lang.String" {
            return None;
        }
        let array = self.0.field_in(&string, "value")?.object()?;
        self.0
            .text(&string, self.0.raw_of(place_of(array)?)?, limit)
    }
}

impl Snapshot {
    /// Gives access to all objects and references of the dump, one part of the dump at a time.
    #[doc(hidden)]
    #[must_use]
    pub fn parts(&self) -> Parts<'_> {
        Parts(self)
    }

    fn raw_of(&self, place: Place) -> Option<Raw<'_>> {
        struct OneRecord<'a> {
            snapshot: &'a Snapshot,
            raw: Option<Raw<'a>>,
        }
        impl Visitor for OneRecord<'_> {
            fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
                self.raw = Some(self.snapshot.record_at(object, Body::Instance(class, body)));
            }
            fn object_array(&mut self, object: Object, class: u64, elements: &[u8]) {
                self.raw = Some(
                    self.snapshot
                        .record_at(object, Body::Objects(class, elements)),
                );
            }
            fn primitive_array(&mut self, object: Object, kind: Kind, len: u32, bytes: &[u8]) {
                let body = Body::Primitives(kind, len, bytes);
                self.raw = Some(self.snapshot.record_at(object, body));
            }
            fn stop(&mut self, _: u8) -> bool {
                self.raw.is_some()
            }
        }
        let (source, id_size) = (self.source(), self.header().id_size);
        let mut one = OneRecord {
            snapshot: self,
            raw: None,
        };
        if place.at < source.len() {
            // If no complete record begins at this offset, the result is `None`.
            let _ = walk::walk(source, place.at, source.len(), id_size, &mut one);
        }
        one.raw
    }

    /// Returns the GC roots in the order of the dump. An object can occur several times.
    #[must_use]
    pub fn gc_roots(&self) -> &[walk::Root] {
        &self.roots
    }

    /// Calls `f` with each record of a piece of the file and the object number of the record, until `f` returns false.
    fn walk_piece(&self, piece: &Piece, f: impl FnMut(Object, u32, Body<'_>) -> bool) {
        struct EachRecord<'a, F> {
            numbering: Numbering<'a>,
            f: F,
            done: bool,
        }
        impl<F: FnMut(Object, u32, Body<'_>) -> bool> Bodies for EachRecord<'_, F> {
            #[inline(always)]
            fn object(&mut self, object: Object, body: Body<'_>) {
                let number = self.numbering.of(object.id, body);
                // A modified index file might not contain the record's id, or might have too few objects.
                if u64::from(number) < self.numbering.object_count() {
                    self.done |= !(self.f)(object, number, body);
                }
            }
            #[inline(always)]
            fn is_done(&self) -> bool {
                self.done
            }
        }
        let mut each = EachRecord {
            numbering: Numbering::new(self, piece),
            f,
            done: false,
        };
        let Segment { start, end } = piece.segment;
        self.source().advise_sequential(start, end - start);
        // Errors of the walk are ignored, because this damage was already reported when the dump was opened.
        let _ = walk::walk(self.source(), start, end, self.header().id_size, &mut each);
    }
}
