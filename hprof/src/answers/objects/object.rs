//! Reads single objects from the file: finds the offset of an object's record, and decodes its fields and elements.
//!
//! In memory, an object is only a number, without an offset. Numbers follow the order of the file, and for each piece
//! of the file (about a megabyte) the number of its first object is known. So an object is found by walking one piece.
//! Callers that need many objects request them together, so that each piece is walked once. An index has the offset of
//! every sixteenth object, so that a walk reads only about twenty records.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::graph::address::AddressMap;
use crate::graph::scan::Piece;
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::options::Refs;
use crate::records::classes::{RecordLayout, Reference};
use crate::records::record::{Kind, sub};
use crate::records::walk::{self, Object, Visitor, read_id};
use crate::snapshot::Snapshot;

/// The value of a field, a static field or an element.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A reference: the id of the target, and the target object. The object is `None` if the id is null or the dump has
    /// no object with the id.
    Object(ObjectId, Option<ObjectIndex>),
    /// `boolean`
    Boolean(bool),
    /// `char`, a UTF-16 unit
    Char(u16),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// `byte`
    Byte(i8),
    /// `short`
    Short(i16),
    /// `int`
    Int(i32),
    /// `long`
    Long(i64),
}

impl Value {
    /// Returns the object that a reference leads to. `None` for all other values.
    #[must_use]
    pub const fn object(self) -> Option<ObjectIndex> {
        match self {
            Self::Object(_, object) => object,
            _ => None,
        }
    }

    /// Returns the type of the value.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Object(..) => Kind::Object,
            Self::Boolean(_) => Kind::Boolean,
            Self::Char(_) => Kind::Char,
            Self::Float(_) => Kind::Float,
            Self::Double(_) => Kind::Double,
            Self::Byte(_) => Kind::Byte,
            Self::Short(_) => Kind::Short,
            Self::Int(_) => Kind::Int,
            Self::Long(_) => Kind::Long,
        }
    }

    /// Returns the value of an integer, a character or a boolean as a number.
    #[must_use]
    pub const fn integer(self) -> Option<i64> {
        Some(match self {
            Self::Boolean(v) => v as i64,
            Self::Char(v) => v as i64,
            Self::Byte(v) => v as i64,
            Self::Short(v) => v as i64,
            Self::Int(v) => v as i64,
            Self::Long(v) => v,
            _ => return None,
        })
    }
}

/// An instance field or a static field, with its value.
#[derive(Clone, Copy, Debug)]
pub struct FieldValue<'a> {
    /// The class that declares the field.
    pub class: ClassIndex,
    /// The field's index among the instance fields (or the static fields) that the class declares.
    pub place: u16,
    /// The name of the field.
    pub name: &'a str,
    /// The value of the field. `None` if the object's record is too short to contain it.
    pub value: Option<Value>,
}

/// The record of one object.
#[derive(Debug)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The object's number.
    pub object: ObjectIndex,
    /// The object's id.
    pub id: ObjectId,
    /// The object's class. `None` for the class objects of a dump without `java.lang.Class`.
    pub class: Option<ClassIndex>,
    /// The serial number of the stack trace that allocated the object; 0 or 1 if the dump has none.
    pub trace: u32,
    /// The object's content.
    pub content: Content<'a>,
}

/// The content of an object.
#[derive(Debug)]
pub enum Content<'a> {
    /// The fields of an instance. The fields of its own class come first, then those of the superclass, and so on.
    Instance(Vec<FieldValue<'a>>),
    /// An array.
    Array(ArrayView<'a>),
    /// A class object.
    Class(ClassObject<'a>),
}

/// The content of a class object.
#[derive(Debug)]
pub struct ClassObject<'a> {
    /// The class that the class object represents.
    pub class: ClassIndex,
    /// The static fields of the class.
    pub statics: Vec<FieldValue<'a>>,
    /// The class object of the superclass.
    pub superclass: Option<ObjectIndex>,
    /// The defining loader, or null for the boot loader.
    pub loader: Value,
    /// The other references of the class: signers, protection domain, constant pool entries.
    pub others: Vec<Value>,
}

/// The elements of an array, decoded one by one when requested.
#[derive(Clone, Copy, Debug)]
pub struct ArrayView<'a> {
    snapshot: &'a Snapshot,
    /// The type of the elements.
    pub kind: Kind,
    /// The number of elements.
    pub len: u32,
    bytes: &'a [u8],
}

impl<'a> ArrayView<'a> {
    /// True if the array has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the elements in a range. The range is cut to the array's length.
    pub fn elements(
        &self,
        range: std::ops::Range<u32>,
    ) -> impl ExactSizeIterator<Item = Value> + use<'a> {
        let (snapshot, kind) = (self.snapshot, self.kind);
        let size = kind.size(snapshot.header().id_size);
        let last = (self.bytes.len() / size).min(range.end as usize);
        let first = (range.start as usize).min(last);
        let bytes = &self.bytes[first * size..last * size];
        bytes
            .chunks_exact(size)
            .map(move |b| snapshot.value(kind, b))
    }

    /// Returns the elements as they are in the dump, in big-endian byte order.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// An object's record, not decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    pub(crate) id: u64,
    pub(crate) serial: u32,
    /// Offset of the record in the file.
    pub(crate) at: usize,
    pub(crate) body: Body<'a>,
}

impl Raw<'_> {
    /// Returns the id of the object's class if the record contains it.
    pub(crate) const fn class(&self) -> Option<ObjectId> {
        match self.body {
            Body::Instance(class, _) | Body::Objects(class, _) => Some(ObjectId(class)),
            Body::Primitives(..) => None,
        }
    }
}

/// The part of a record that contains the fields or elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Instance(u64, &'a [u8]),
    Objects(u64, &'a [u8]),
    Primitives(Kind, u32, &'a [u8]),
}

/// A visitor with one method for objects of all kinds.
pub(crate) trait Bodies {
    fn object(&mut self, object: Object, body: Body<'_>);
    /// True if the walk must end before the next record. See [`Visitor::stop`].
    #[inline]
    fn is_done(&self) -> bool {
        false
    }
}

impl<V: Bodies> Visitor for V {
    #[inline(always)]
    fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
        self.object(object, Body::Instance(class, body));
    }
    #[inline(always)]
    fn object_array(&mut self, object: Object, class: u64, elements: &[u8]) {
        self.object(object, Body::Objects(class, elements));
    }
    #[inline(always)]
    fn primitive_array(&mut self, object: Object, kind: Kind, len: u32, elements: &[u8]) {
        self.object(object, Body::Primitives(kind, len, elements));
    }
    #[inline(always)]
    fn stop(&mut self, _: u8) -> bool {
        self.is_done()
    }
}

/// Assigns object numbers to the records of a piece of the file while the piece is walked in order.
pub(crate) struct Numbering<'a> {
    snapshot: &'a Snapshot,
    /// Two numbers: that of the next object with references, and that of the next object without references.
    next: [u32; 2],
    sorted: bool,
}

impl<'a> Numbering<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, piece: &Piece) -> Self {
        let split = snapshot.split;
        Self {
            snapshot,
            next: [
                split.classes + piece.first_inner,
                split.inner + piece.first_leaf,
            ],
            sorted: matches!(snapshot.map, AddressMap::Sorted { .. }),
        }
    }

    /// Returns the number of the object whose record is next in the piece of the file. The number comes from the
    /// address map if ids are addresses. Otherwise several objects may have the same id, but the map has only the first
    /// of these objects. In that case, numbers are found by counting records.
    #[inline(always)]
    pub(crate) fn of(&mut self, id: u64, body: Body<'_>) -> u32 {
        let number = self.snapshot.map.by_id(id, self.snapshot.split);
        if self.sorted {
            self.count(number, id, body)
        } else {
            number
        }
    }

    /// Returns the number of objects of the snapshot.
    pub(crate) fn object_count(&self) -> u64 {
        self.snapshot.object_count()
    }

    /// Returns the number of this object if numbers are found by counting records. In that case, this function must be
    /// called for each record. Otherwise returns `None`; use [`Self::of`] to get the number.
    #[inline(always)]
    pub(crate) fn counted(&mut self, id: u64, body: Body<'_>) -> Option<u32> {
        self.sorted.then(|| self.of(id, body))
    }

    #[cold]
    fn count(&mut self, number: u32, id: u64, body: Body<'_>) -> u32 {
        let leaf = number >= self.snapshot.split.inner;
        let kind = if number == self.next[usize::from(leaf)] {
            usize::from(leaf)
        } else {
            usize::from(self.snapshot.is_leaf(id, body, ObjectIndex(self.next[1])))
        };
        self.next[kind] += 1;
        self.next[kind] - 1
    }
}

struct RecordFinder<'a, 'w> {
    snapshot: &'a Snapshot,
    numbering: Numbering<'a>,
    /// The numbers of the objects to find, sorted.
    wanted: &'w [u32],
    found: Vec<(u32, Raw<'a>)>,
}

impl Bodies for RecordFinder<'_, '_> {
    #[inline(always)]
    fn object(&mut self, object: Object, body: Body<'_>) {
        let number = self.numbering.of(object.id, body);
        if self.wanted.binary_search(&number).is_ok() {
            self.found
                .push((number, self.snapshot.record_at(object, body)));
        }
    }
    #[inline]
    fn is_done(&self) -> bool {
        self.found.len() == self.wanted.len()
    }
}

impl Snapshot {
    /// Returns the id of each object.
    ///
    /// Cost: a few memory accesses for each object if the file is in address order. Otherwise a walk over each piece of
    /// the file (about a megabyte) that holds one of the objects.
    #[must_use]
    pub fn ids(&self, objects: &[ObjectIndex]) -> Vec<Option<ObjectId>> {
        // With an index, it is faster to read the object's record than to compute its address from the bitmaps of the
        // address map.
        let addresses: Option<Vec<_>> = match &self.positions {
            Some(_) => None,
            None => objects.iter().map(|&o| self.address_of(o)).collect(),
        };
        if let Some(addresses) = addresses {
            return addresses.into_iter().map(Some).collect();
        }
        let raws = self.records_of(objects);
        let own = |(&object, raw): (&ObjectIndex, Option<Raw<'_>>)| match self.represents(object) {
            Some(class) => Some(self.classes()[class].id),
            None => raw.map(|r| ObjectId(r.id)),
        };
        objects.iter().zip(raws).map(own).collect()
    }

    /// Returns the id of an object if the id can be computed from the address map.
    fn address_of(&self, object: ObjectIndex) -> Option<ObjectId> {
        if let Some(class) = self.represents(object) {
            return Some(self.classes()[class].id);
        }
        let ranks = match &self.map {
            AddressMap::Ordered(ranks) | AddressMap::Runs { ranks, .. } => ranks,
            AddressMap::Permuted { .. } | AddressMap::Sorted { .. } => return None,
        };
        let piece = self.pieces.get(self.piece_of(object.0)? as usize)?;
        let id_size = self.header().id_size;
        let first = self.source().get(piece.segment.start..)?;
        let is_object = matches!(
            first.first()?,
            &(sub::INSTANCE | sub::OBJECT_ARRAY | sub::PRIMITIVE_ARRAY)
        );
        let id = first.get(1..=id_size).filter(|_| is_object)?;
        let id = id.iter().fold(0, |v, &b| v << 8 | u64::from(b));
        let (number, leaf) = match object.0.checked_sub(self.split.inner) {
            Some(leaf) => (leaf, true),
            None => (object.0 - self.split.classes, false),
        };
        let near = ranks.space.slot(id)?;
        let (rank, from) = match &self.map {
            AddressMap::Runs { runs, .. } => runs.rank(number, leaf, near)?,
            _ => (number, near),
        };
        let address = ranks.address(rank, leaf, from)?;
        (self.map.by_id(address, self.split) == object.0).then_some(ObjectId(address))
    }

    /// Returns the offset of each object's record in the (decompressed) file. `None` for class objects, whose records
    /// are all in [`Snapshot::classes`].
    ///
    /// Cost: as [`Snapshot::ids`].
    #[must_use]
    pub fn locate(&self, objects: &[ObjectIndex]) -> Vec<Option<u64>> {
        let at = |raw: Option<Raw<'_>>| raw.map(|r| r.at as u64);
        self.records_of(objects).into_iter().map(at).collect()
    }

    /// Returns the records of objects. `None` for class objects.
    pub(crate) fn records_of(&self, objects: &[ObjectIndex]) -> Vec<Option<Raw<'_>>> {
        let mut wanted: Vec<u32> = objects
            .iter()
            .map(|o| o.0)
            .filter(|&o| o >= self.split.classes && u64::from(o) < self.object_count())
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        // For each object: its piece of the file, the offset in the piece at which the search begins, and its number.
        // Sorting brings objects with equal pieces and offsets together, so that one search can find all of them.
        let mut placed: Vec<(u32, u32, u32)> = wanted
            .iter()
            .filter_map(|&o| {
                let piece = self.piece_of(o)?;
                Some((piece, self.search_start(piece, o), o))
            })
            .collect();
        placed.sort_unstable();
        let same = |a: &(u32, u32, u32), b: &(u32, u32, u32)| (a.0, a.1) == (b.0, b.1);
        let groups: Vec<&[(u32, u32, u32)]> = placed.chunk_by(same).collect();
        let read = |group: &&[(u32, u32, u32)]| {
            let numbers: Vec<u32> = group.iter().map(|g| g.2).collect();
            let (piece, begin, _) = group[0];
            self.find_in_piece(&self.pieces[piece as usize], begin, &numbers)
        };
        // If only a few groups of records are needed, this thread reads them, because waking another thread takes
        // longer than reading a few hundred records.
        let alone = match (&self.positions, self.waypoints.is_empty()) {
            (Some(_), _) => 64,
            (None, false) => 4,
            (None, true) => 1,
        };
        let mut found: Vec<(u32, Raw<'_>)> = if groups.len() <= alone {
            groups.iter().flat_map(read).collect()
        } else {
            let groups = groups.par_iter().with_min_len(alone);
            groups.flat_map_iter(read).collect()
        };
        found.par_sort_unstable_by_key(|f| f.0);
        let look_up = |object: &ObjectIndex| {
            let at = found.binary_search_by_key(&object.0, |f| f.0).ok()?;
            Some(found[at].1)
        };
        objects.iter().map(look_up).collect()
    }

    /// Returns the record of an object that a walk passes to its visitor. The visitor's `body` is valid only during the
    /// call, so the returned record refers to the same bytes in the file instead.
    pub(crate) fn record_at(&self, object: Object, body: Body<'_>) -> Raw<'_> {
        let id_size = self.header().id_size;
        let again = |bytes: &[u8], head: usize| {
            let start = object.at + 1 + head;
            let bytes = self.source().get(start..start + bytes.len());
            bytes.unwrap_or(&[])
        };
        let body = match body {
            Body::Instance(class, b) => Body::Instance(class, again(b, 2 * id_size + 8)),
            Body::Objects(class, b) => Body::Objects(class, again(b, 2 * id_size + 8)),
            Body::Primitives(kind, len, b) => Body::Primitives(kind, len, again(b, id_size + 9)),
        };
        Raw {
            id: object.id,
            serial: object.serial,
            at: object.at,
            body,
        }
    }

    /// Returns the offset in a piece of the file where the search for an object begins.
    fn search_start(&self, piece: u32, object: u32) -> u32 {
        let Some(of) = self.pieces.get(piece as usize) else {
            return 0;
        };
        let (leaf, nth, first) = match object.checked_sub(self.split.inner) {
            Some(leaf) => (true, leaf, of.first_leaf),
            None => (false, object - self.split.classes, of.first_inner),
        };
        match &self.positions {
            Some(positions) => positions.before(piece as usize, leaf, nth - first),
            // Begin at the start of the piece of the file, because objects with the same id are distinguished by
            // counting records.
            None if matches!(self.map, AddressMap::Sorted { .. }) => 0,
            None => {
                let at = self.waypoints.before(leaf, nth);
                let from = at.and_then(|at| at.checked_sub(of.segment.start));
                from.and_then(|from| u32::try_from(from).ok()).unwrap_or(0)
            }
        }
    }

    /// Returns the number and the record of each object in `wanted`. Searches a piece of the file from the offset
    /// `begin`. If ids are not addresses, [`Numbering`] counts the records of the piece to find the numbers of objects.
    /// In that case, `begin` must be 0, so that no record is left out of the count.
    fn find_in_piece(&self, piece: &Piece, begin: u32, wanted: &[u32]) -> Vec<(u32, Raw<'_>)> {
        let mut finder = RecordFinder {
            snapshot: self,
            numbering: Numbering::new(self, piece),
            wanted,
            found: Vec::with_capacity(wanted.len()),
        };
        let segment = piece.segment;
        // Errors of the walk are ignored, because this damage was already reported when the dump was opened.
        let _ = walk::walk(
            self.source(),
            segment.end.min(segment.start + begin as usize),
            segment.end,
            self.header().id_size,
            &mut finder,
        );
        finder.found
    }

    /// Returns the index of the piece of the file that contains an object's record.
    pub(crate) fn piece_of(&self, object: u32) -> Option<u32> {
        let after = if object >= self.split.inner {
            let leaf = object - self.split.inner;
            self.pieces.partition_point(|p| p.first_leaf <= leaf)
        } else {
            let inner = object - self.split.classes;
            self.pieces.partition_point(|p| p.first_inner <= inner)
        };
        u32::try_from(after.checked_sub(1)?).ok()
    }

    /// Returns the index of the piece of the file that contains the record of an object with references. `None` for
    /// other objects.
    pub(crate) fn piece_of_linked(&self, object: ObjectIndex) -> Option<u32> {
        let linked = self.split.classes..self.split.inner;
        linked
            .contains(&object.0)
            .then(|| self.piece_of(object.0))?
    }

    /// Returns the number and record of each object with references in a piece of the file.
    pub(crate) fn linked_objects_in(&self, piece: u32) -> Vec<(u32, Raw<'_>)> {
        let at = piece as usize;
        let all = self.split.inner - self.split.classes;
        let first = self.pieces[at].first_inner;
        let end = self.pieces.get(at + 1).map_or(all, |p| p.first_inner);
        let numbers = (first..end).map(|n| n + self.split.classes);
        let mut found = self.find_in_piece(&self.pieces[at], 0, &numbers.collect::<Vec<u32>>());
        found.sort_unstable_by_key(|f| f.0);
        found
    }

    /// True if the graph numbers an object among the objects without references (leaves), which it numbers separately.
    /// Used when [`Numbering`] finds the numbers of objects by counting records. `own` is the object's id. `next` is
    /// the number of the next leaf that [`Numbering`] has not passed: if the object is a leaf, this is its number.
    fn is_leaf(&self, own: u64, body: Body<'_>, next: ObjectIndex) -> bool {
        let id_size = self.header().id_size;
        let set = |b: &[u8], at: usize| {
            b.get(at..at + id_size)
                .is_some_and(|id| id.iter().any(|&b| b != 0))
        };
        let (id, refers) = match body {
            Body::Primitives(..) => return true,
            Body::Objects(class, elements) => (class, elements.iter().any(|&b| b != 0)),
            Body::Instance(class, body) => {
                let Some(index) = self.classes().by_id(ObjectId(class)) else {
                    return true;
                };
                let layout = self.classes().layout(index.0);
                let fields = self.classes().ref_offsets(layout);
                let followed = match self.options.refs {
                    Refs::All => true,
                    Refs::Soft => !matches!(layout.reference, Reference::Weak | Reference::Phantom),
                    Refs::Strong => layout.reference == Reference::No,
                };
                let referent = layout.referent != RecordLayout::NO_REFERENT && followed;
                let refers = layout.never_leaf
                    || self.classes().holds_class(index.0, own)
                    || fields.iter().any(|&at| set(body, at as usize))
                    || referent && set(body, layout.referent as usize);
                (class, refers)
            }
        };
        // An object that keeps its class alive may have no references, but the graph does not number it among such
        // objects. Then the object with the number `next` is a different object and has another class.
        !refers
            && u64::from(next.0) < self.object_count()
            && self.class_of(next) == self.classes().by_id(ObjectId(id))
    }

    /// Reads one object.
    ///
    /// Cost: a walk over one piece of the file (about a megabyte). To read many objects, use [`Snapshot::read_all`].
    ///
    /// # Errors
    /// If no object has this number.
    pub fn read(&self, object: ObjectIndex) -> Result<Record<'_>> {
        let record = self.read_all(&[object]).pop().flatten();
        record.ok_or(Error::NoSuchNumber(object))
    }

    /// Reads objects. `None` for numbers that no object has.
    ///
    /// Cost: as [`Snapshot::ids`].
    #[must_use]
    pub fn read_all(&self, objects: &[ObjectIndex]) -> Vec<Option<Record<'_>>> {
        let raws = self.records_of(objects);
        let pairs = objects.iter().zip(raws);
        pairs
            .map(|(&object, raw)| match raw {
                Some(raw) => Some(self.record(object, &raw)),
                None => self
                    .represents(object)
                    .map(|class| self.class_record(object, class)),
            })
            .collect()
    }

    pub(crate) fn record<'a>(&'a self, object: ObjectIndex, raw: &Raw<'a>) -> Record<'a> {
        let array = |kind, len, bytes| {
            Content::Array(ArrayView {
                snapshot: self,
                kind,
                len,
                bytes,
            })
        };
        let content = match raw.body {
            Body::Instance(class, body) => {
                Content::Instance(self.fields_in(ObjectId(class), body).collect())
            }
            Body::Objects(_, bytes) => {
                let len = bytes.len() / self.header().id_size;
                array(Kind::Object, u32::try_from(len).unwrap_or(u32::MAX), bytes)
            }
            Body::Primitives(kind, len, bytes) => array(kind, len, bytes),
        };
        Record {
            object,
            id: ObjectId(raw.id),
            class: self.class_of(object),
            trace: raw.serial,
            content,
        }
    }

    fn class_record(&self, object: ObjectIndex, index: ClassIndex) -> Record<'_> {
        let class = &self.classes()[index];
        let statics = class
            .statics
            .iter()
            .zip(0..)
            .map(|(field, place)| FieldValue {
                class: index,
                place,
                name: &field.name,
                value: Some(self.of_bits(field.kind, field.value)),
            });
        let superclass = class.superclass.map(|s| ObjectIndex(s.0));
        Record {
            object,
            id: class.id,
            class: self.class_class(),
            trace: 0,
            content: Content::Class(ClassObject {
                class: index,
                statics: statics.collect(),
                superclass: superclass.filter(|s| s.0 < self.split.classes),
                loader: self.reference(class.loader.0),
                others: class.others.iter().map(|&id| self.reference(id)).collect(),
            }),
        }
    }

    /// Returns the fields in an instance's body. The fields of the instance's own class come first, then those of its
    /// superclasses.
    pub(crate) fn fields_in<'a>(
        &'a self,
        class: ObjectId,
        body: &'a [u8],
    ) -> impl Iterator<Item = FieldValue<'a>> {
        let (classes, id_size) = (self.classes(), self.header().id_size);
        let chain = classes
            .by_id(class)
            .into_iter()
            .flat_map(|c| classes.chain(c));
        let fields =
            chain.flat_map(move |c| classes[c].fields.iter().zip(0..).map(move |f| (c, f)));
        fields.scan(0_usize, move |at, (class, (field, place))| {
            let start = *at;
            *at += field.kind.size(id_size);
            Some(FieldValue {
                class,
                place,
                name: &field.name,
                value: body.get(start..*at).map(|b| self.value(field.kind, b)),
            })
        })
    }

    /// Returns the value of the first field with this name. The object's own class is searched first, then its
    /// superclasses.
    pub(crate) fn field_in(&self, raw: &Raw<'_>, name: &str) -> Option<Value> {
        let Body::Instance(class, body) = raw.body else {
            return None;
        };
        self.fields_in(ObjectId(class), body)
            .find(|f| f.name == name)
            .and_then(|f| f.value)
    }

    fn reference(&self, id: u64) -> Value {
        let object = if id == 0 {
            None
        } else {
            self.find(ObjectId(id))
        };
        Value::Object(ObjectId(id), object)
    }

    /// Decodes a value. `bytes` must have exactly the size of the type.
    pub(crate) fn value(&self, kind: Kind, bytes: &[u8]) -> Value {
        let bits = match (kind, bytes.len()) {
            (Kind::Object, 8) => read_id::<8>(bytes, 0),
            _ => bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b)),
        };
        self.of_bits(kind, bits)
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the value is in the low bits"
    )]
    fn of_bits(&self, kind: Kind, bits: u64) -> Value {
        match kind {
            Kind::Object => self.reference(bits),
            Kind::Boolean => Value::Boolean(bits as u8 != 0),
            Kind::Char => Value::Char(bits as u16),
            Kind::Float => Value::Float(f32::from_bits(bits as u32)),
            Kind::Double => Value::Double(f64::from_bits(bits)),
            Kind::Byte => Value::Byte((bits as u8).cast_signed()),
            Kind::Short => Value::Short((bits as u16).cast_signed()),
            Kind::Int => Value::Int((bits as u32).cast_signed()),
            Kind::Long => Value::Long(bits.cast_signed()),
        }
    }

    /// Returns the value of a static field of a class.
    #[must_use]
    pub fn static_value(&self, class: ClassIndex, name: &str) -> Option<Value> {
        let field = self.classes()[class]
            .statics
            .iter()
            .find(|s| &*s.name == name)?;
        Some(self.of_bits(field.kind, field.value))
    }
}
