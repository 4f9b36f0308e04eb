//! Who refers to an object.

use rayon::prelude::*;

use crate::classes::Reference;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::object::{Body, Numbering};
use crate::outline::Segment;
use crate::paths::Bits;
use crate::record::Kind;
use crate::reference::{Via, Way};
use crate::scan::Piece;
use crate::snapshot::Snapshot;
use crate::walk::{self, Object, Root, Visitor};

/// A reference to one of the objects asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Referrer {
    /// The object referred to.
    pub target: ObjectIndex,
    /// The object that refers to it.
    pub from: ObjectIndex,
    /// How.
    pub via: Via,
    /// Whether it is the referent of a reference object, and of which kind: [`Reference::No`] for
    /// ordinary, strong references.
    pub strength: Reference,
}

/// References to objects, see [`Snapshot::referrers`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Referrers {
    /// The first of them, sorted by target and then by the referring object's number.
    pub list: Vec<Referrer>,
    /// How many there are in all.
    pub total: u64,
}

impl Snapshot {
    /// The references to these objects: by fields, elements, static fields, and those that no
    /// record shows (a thread's stack, a loader's classes, an object's class). Of each object that
    /// several hold, references by reachable and unreachable objects alike are listed, `limit` in
    /// all.
    ///
    /// Cost: one pass over the file.
    #[must_use]
    pub fn referrers(&self, targets: &[ObjectIndex], limit: usize) -> Referrers {
        let objects = self.object_count();
        let mut wanted = Bits::new(objects as usize);
        for target in targets.iter().filter(|t| u64::from(t.0) < objects) {
            wanted.set(target.0);
        }
        let found = self.pieces.par_iter().map(|piece| {
            let mut finder = Finder::new(self, &wanted, piece, limit);
            let Segment { start, end } = piece.segment;
            self.dump.source.will_read(start, end - start);
            // Damage was reported when the dump was opened.
            let id_size = self.dump.header.id_size;
            let _ = walk::walk(&self.dump.source, start, end, id_size, &mut finder);
            finder.found
        });
        let mut all = found.reduce(Found::default, |a, b| a.merged(b, limit));
        let mut rest = Found::default();
        for class in (0..self.split.classes).map(ClassIndex) {
            self.each_of_class(class, |id, way| {
                let target = if id == 0 { NONE } else { self.number_of(id) };
                if wanted.has(target) {
                    rest.add(target, class.0, way);
                }
            });
        }
        for (source, target, way) in self.unwritten().iter() {
            if wanted.has(target) {
                rest.add(target, source, way);
            }
        }
        all = all.merged(rest, limit);
        let referrer = |&(target, source, way): &(u32, u32, Way)| {
            let (via, strength) = self.via(ObjectIndex(source), way);
            Referrer {
                target: ObjectIndex(target),
                from: ObjectIndex(source),
                via,
                strength,
            }
        };
        Referrers {
            list: all.list.iter().map(referrer).collect(),
            total: all.count,
        }
    }

    /// The GC roots that hold an object: of each kind, with thread and frame.
    ///
    /// Cost: one look at each root.
    #[must_use]
    pub fn roots_of(&self, object: ObjectIndex) -> Vec<Root> {
        let roots = self.roots.iter().copied();
        roots
            .filter(|r| self.number_of(r.id.0) == object.0)
            .collect()
    }
}

#[derive(Default)]
struct Found {
    /// Target, source, way.
    list: Vec<(u32, u32, Way)>,
    count: u64,
}

impl Found {
    fn add(&mut self, target: u32, source: u32, way: Way) {
        self.list.push((target, source, way));
        self.count += 1;
    }

    /// Keeps the first `limit` by target and source. References of one source stay in the order of
    /// its record.
    fn cut(&mut self, limit: usize) {
        self.list.sort_by_key(|r| (r.0, r.1));
        self.list.truncate(limit);
    }

    fn merged(mut self, mut other: Self, limit: usize) -> Self {
        self.list.append(&mut other.list);
        self.count += other.count;
        self.cut(limit);
        self
    }
}

struct Finder<'a> {
    snapshot: &'a Snapshot,
    wanted: &'a Bits,
    numbering: Numbering<'a>,
    limit: usize,
    found: Found,
}

impl<'a> Finder<'a> {
    fn new(snapshot: &'a Snapshot, wanted: &'a Bits, piece: &Piece, limit: usize) -> Self {
        Self {
            snapshot,
            wanted,
            numbering: Numbering::new(snapshot, piece),
            limit,
            found: Found::default(),
        }
    }

    #[inline(always)]
    fn object(&mut self, object: Object, body: Body<'_>) {
        // The number is needed only where something is found, but must be counted everywhere.
        let mut source = self.numbering.counted(object.id, body);
        self.snapshot.each_in_record(body, |id, way| {
            if id == 0 {
                return;
            }
            let target = self.snapshot.number_of(id);
            if self.wanted.has(target) {
                let number = *source.get_or_insert_with(|| self.snapshot.number_of(object.id));
                self.found.add(target, number, way);
            }
        });
        // Bounds the memory that a much referred object takes.
        if self.found.list.len() > self.limit.saturating_mul(2).max(1 << 12) {
            self.found.cut(self.limit);
        }
    }
}

impl Visitor for Finder<'_> {
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
}
