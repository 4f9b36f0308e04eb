//! Deep sizes: the size of an object, or of a set of objects, with all objects that they reach by fields and elements.
//! Each object is counted once.
//!
//! The rules are those of the SizeOf agent, which walks objects by reflection inside a JVM. Only fields and elements
//! are followed. Class objects are not counted, even if a field refers to them. A thread has no fields for the objects
//! on its stack, and a loader has none for its classes, so the walk does not go from a thread to its stack or from a
//! loader to its classes.

pub(crate) mod final_fields;
pub(crate) mod flyweights;
pub(crate) mod tree;
mod wide;

use std::ops::Range;

use rayon::prelude::*;
use regex::Regex;
use rustc_hash::FxHashMap;

use crate::answers::deep::final_fields::FinalFields;
use crate::answers::deep::flyweights::Flyweights;
use crate::answers::objects::object::{Body, Numbering, Raw};
use crate::answers::objects::reference::RawVia;
use crate::bytes::array::Array;
use crate::bytes::mem;
use crate::error::{Error, Result};
use crate::graph::bits::Bits;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::options::Refs;
use crate::progress::Progress;
use crate::records::classes::Reference;
use crate::records::outline::Segment;
use crate::records::record::Kind;
use crate::records::walk::{self, Object, Visitor};
use crate::sizes::totals::Total;
use crate::snapshot::Snapshot;

/// Maximum number of objects to read one by one before the whole file is read instead. Reading this many objects takes
/// a tenth of a second.
const LOOKS: usize = 1 << 17;
/// Cost of each level of references, in addition to the cost of reading its objects. The unit is the cost of reading
/// one object.
const LOOKS_OF_LEVEL: usize = 3;
/// Maximum number of objects that a walk on one thread visits. In a heap with less than twice this number of objects,
/// the maximum is half of the heap's objects. A walk that would exceed the maximum is repeated on all threads.
const NARROW: u64 = 1 << 16;
/// Number of pieces of the file (about a megabyte each) that are read together. While the references of these pieces
/// are merged, they are in memory twice: in the list of each piece, and in the list of the whole file.
const BATCH: usize = 128;

/// Options for deep sizes: the objects that count, and the references that are followed.
/// [`Options::refs`](crate::Options::refs) determines which referents of `java.lang.ref` objects are followed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DeepOptions {
    /// Leave out values that the whole program shares, and objects that only these values reach. See [`Flyweights`].
    pub skip_flyweights: bool,
    /// Do not follow static fields from class objects at which the walk starts.
    pub skip_static: bool,
    /// Do not follow fields, static or not, that are known to have one of the modifiers for which [`FinalFields`] was
    /// created. Elements of arrays are always followed.
    pub skip_final: Option<FinalFields>,
    /// Leave out objects whose class name matches one of these expressions, and objects that only such objects reach.
    pub exclude: Vec<Regex>,
    /// Count objects whose class name matches one of these expressions, but do not follow the references of these
    /// objects.
    pub stop_at: Vec<Regex>,
    /// Objects to ignore, as if they were not in the dump.
    pub except: Vec<ObjectIndex>,
}

impl DeepOptions {
    /// True if these options can leave out objects.
    fn can_omit_objects(&self) -> bool {
        self.skip_flyweights || !self.exclude.is_empty() || !self.except.is_empty()
    }
}

/// The references that deep sizes follow, ready for walks. See [`Snapshot::deep`].
#[derive(Debug)]
pub struct Deep<'a> {
    pub(crate) snapshot: &'a Snapshot,
    rules: Rules,
    rows: RowIndex,
    /// The targets of the references of all objects, ordered by referring object. References that are never followed
    /// are left out.
    targets: Array<u32>,
    /// Objects that the current walk has reached. Empty between walks.
    seen: Bits,
}

/// The location in `targets` of each object's references.
#[derive(Debug)]
enum RowIndex {
    /// For each object with references, the index in `targets` of its first reference. One more entry holds the end of
    /// the last object's references.
    All(Array<u32>),
    /// Only for objects that a walk may reach: the start and end of their references in `targets`.
    Some(FxHashMap<u32, (u32, u32)>),
}

/// The deep size of a set of objects. See [`Deep::of_set`].
#[derive(Clone, Debug, Default)]
pub struct DeepSize {
    /// The total, including the objects themselves.
    pub total: Total,
    /// The totals by class. Class objects count as `java.lang.Class`.
    pub by_class: Vec<Total>,
}

/// Rules for which references are followed.
#[derive(Debug)]
struct Rules {
    /// For each class, true if the search does not follow the references of the class's instances.
    ends: Vec<bool>,
    /// Objects to ignore.
    left_out: Bits,
    flyweights: Option<Flyweights>,
    follow_static: bool,
    finals: Option<FinalFields>,
    /// For each class, a flag for each reference field: true if the field is not followed because of its modifiers.
    /// Empty without `skip_final`.
    final_refs: Vec<Box<[bool]>>,
}

impl Rules {
    fn new(snapshot: &Snapshot, options: &DeepOptions) -> Self {
        let classes = snapshot.classes();
        let matching = |list: &[Regex]| -> Vec<bool> {
            let matches = |name: &str| list.iter().any(|re| re.is_match(name));
            classes.iter().map(|(_, c)| matches(&c.name)).collect()
        };
        let count = snapshot.object_count();
        let mut left_out = Bits::new(if options.can_omit_objects() {
            count as usize
        } else {
            0
        });
        let excluded = matching(&options.exclude);
        let excluded: Vec<ClassIndex> = classes
            .iter()
            .map(|(i, _)| i)
            .filter(|i| excluded[i.index()])
            .collect();
        if !excluded.is_empty() {
            let instances = snapshot.instances(&excluded);
            instances.iter().for_each(|o| left_out.set(o.0));
        }
        let except = options.except.iter().filter(|o| u64::from(o.0) < count);
        except.for_each(|o| left_out.set(o.0));
        let flyweights = options.skip_flyweights.then(|| snapshot.flyweights());
        if let Some(flyweights) = &flyweights {
            flyweights.objects().for_each(|o| left_out.set(o.0));
        }
        Self {
            ends: matching(&options.stop_at),
            left_out,
            flyweights,
            follow_static: !options.skip_static,
            final_refs: match &options.skip_final {
                Some(finals) => finals.by_reference(classes),
                None => Vec::new(),
            },
            finals: options.skip_final.clone(),
        }
    }

    /// Calls `f` for each reference in a record that may be followed according to the rules. Callers must filter out
    /// references to class objects. The function does not, because filtering takes a look-up of each target's class.
    #[inline(always)]
    fn each(
        &self,
        snapshot: &Snapshot,
        class: ClassIndex,
        body: Body<'_>,
        mut f: impl FnMut(u32, RawVia),
    ) {
        let reference = snapshot.classes()[class].reference;
        let follows_referent = match snapshot.options.refs {
            Refs::All => true,
            Refs::Soft => !matches!(reference, Reference::Weak | Reference::Phantom),
            Refs::Strong => reference == Reference::No,
        };
        let finals = self.final_refs.get(class.index()).map_or(&[][..], |f| f);
        snapshot.each_in_record(body, |id, way| {
            let follows = match way {
                RawVia::Class => false,
                RawVia::Referent => follows_referent,
                RawVia::Field(n) => !finals.get(n as usize).is_some_and(|&is_final| is_final),
                _ => true,
            };
            if id == 0 || !follows {
                return;
            }
            let target = snapshot.map.by_id(id, snapshot.split);
            if target != NONE && !self.left_out.has(target) {
                f(target, way);
            }
        });
    }
}

impl Snapshot {
    /// Prepares the computation of deep sizes.
    ///
    /// Cost: one pass over the file. Memory: four bytes for each reference and for each object with references.
    ///
    /// # Errors
    /// If there is not enough memory for the references, or if their number does not fit in 32 bits.
    pub fn deep(&self, options: &DeepOptions, progress: &dyn Progress) -> Result<Deep<'_>> {
        self.gather_rows(Rules::new(self, options), progress)
    }

    /// Prepares the computation of deep sizes for walks that begin at objects in `starts`. The result has the
    /// references of all objects that `starts` reach, but might lack those of other objects.
    ///
    /// Cost: if the snapshot comes from an index and `starts` reach at most about 130,000 objects, one read of each of
    /// these objects. Otherwise as [`Snapshot::deep`].
    ///
    /// # Errors
    /// As [`Snapshot::deep`].
    pub fn deep_from(
        &self,
        starts: &[ObjectIndex],
        options: &DeepOptions,
        progress: &dyn Progress,
    ) -> Result<Deep<'_>> {
        let rules = Rules::new(self, options);
        if self.positions.is_none() {
            return self.gather_rows(rules, progress);
        }
        let mut deep = Deep {
            snapshot: self,
            rules,
            rows: RowIndex::Some(FxHashMap::default()),
            targets: self.store.zeroed(0)?,
            seen: Bits::new(self.object_count() as usize),
        };
        if deep.follow(starts)? {
            Ok(deep)
        } else {
            self.gather_rows(deep.rules, progress)
        }
    }

    fn gather_rows(&self, rules: Rules, progress: &dyn Progress) -> Result<Deep<'_>> {
        progress.phase("reading references", self.source().len() as u64);
        let rows = (self.split.inner - self.split.classes) as usize;
        let mut offsets: Array<u32> = self.store.zeroed(rows + 1)?;
        let mut targets: Array<u32> = self.store.zeroed(0)?;
        for pieces in self.pieces.chunks(BATCH) {
            progress.check_cancelled()?;
            let parts: Vec<RowsOfPiece<'_>> = pieces
                .par_iter()
                .map(|piece| {
                    let mut rows = RowsOfPiece {
                        snapshot: self,
                        rules: &rules,
                        numbering: Numbering::new(self, piece),
                        next: self.split.classes + piece.first_inner,
                        ends: Vec::new(),
                        targets: Vec::new(),
                    };
                    let Segment { start, end } = piece.segment;
                    self.source().advise_sequential(start, end - start);
                    let id_size = self.header().id_size;
                    // Ignore errors of the walk over the records, because this damage was already reported when the
                    // dump was opened.
                    let _ = walk::walk(self.source(), start, end, id_size, &mut rows);
                    progress.advance((end - start) as u64);
                    rows
                })
                .collect();
            for part in parts {
                let before = targets.len();
                targets.extend(&part.targets)?;
                if targets.len() >= NONE as usize {
                    return Err(Error::Limit {
                        what: "references",
                        count: targets.len() as u64,
                        limit: u64::from(NONE) - 1,
                    });
                }
                for (object, end) in part.ends {
                    let at = (object - self.split.classes) as usize;
                    offsets[at + 1] = before as u32 + end;
                }
            }
        }
        // Objects without references get an empty range.
        let mut last = 0;
        for end in offsets.iter_mut() {
            last = last.max(*end);
            *end = last;
        }
        Ok(Deep {
            snapshot: self,
            rules,
            rows: RowIndex::All(offsets),
            targets,
            seen: Bits::new(self.object_count() as usize),
        })
    }

    /// True if an object represents a class or a primitive type.
    fn is_class_mirror(&self, object: u32) -> bool {
        object < self.split.classes || {
            let class = self.class_of(ObjectIndex(object));
            class.is_some() && class == self.class_class()
        }
    }
}

/// The references of the objects in one piece of the file.
struct RowsOfPiece<'a> {
    snapshot: &'a Snapshot,
    rules: &'a Rules,
    numbering: Numbering<'a>,
    /// The smallest number that the next object can have. Numbers ascend in the order of the file.
    next: u32,
    /// For each object with references, its number and the end of its references in `targets`.
    ends: Vec<(u32, u32)>,
    targets: Vec<u32>,
}

impl RowsOfPiece<'_> {
    #[inline(always)]
    fn object(&mut self, id: u64, class: Option<ClassIndex>, body: Body<'_>) {
        let (snapshot, rules) = (self.snapshot, self.rules);
        let number = self.numbering.of(id, body);
        if number < self.next || number >= snapshot.split.inner {
            return;
        }
        self.next = number + 1;
        let Some(class) = class.filter(|c| !rules.ends[c.index()]) else {
            return;
        };
        if rules.left_out.has(number) {
            return;
        }
        let targets = &mut self.targets;
        rules.each(snapshot, class, body, |target, _| targets.push(target));
        self.ends.push((number, self.targets.len() as u32));
    }
}

impl Visitor for RowsOfPiece<'_> {
    #[inline(always)]
    fn instance(&mut self, object: Object, class: u64, body: &[u8]) {
        let index = self.snapshot.classes().by_id(ObjectId(class));
        self.object(object.id, index, Body::Instance(class, body));
    }
    #[inline(always)]
    fn object_array(&mut self, object: Object, class: u64, elements: &[u8]) {
        let index = self.snapshot.classes().by_id(ObjectId(class));
        self.object(object.id, index, Body::Objects(class, elements));
    }
    #[inline(always)]
    fn primitive_array(&mut self, object: Object, kind: Kind, len: u32, elements: &[u8]) {
        // Arrays of primitives have no references. But if [`Numbering`] counts records, it must count these arrays.
        self.numbering
            .counted(object.id, Body::Primitives(kind, len, elements));
    }
}

impl Deep<'_> {
    /// Returns the classes of counted objects, and the superclasses of these classes, for which it is not known which
    /// fields are final. Deep sizes follow the final fields of such classes. The list is sorted. It is empty if the
    /// options do not skip final fields.
    #[must_use]
    pub fn unknown_finals(&self, starts: &[ObjectIndex], size: &DeepSize) -> Vec<ClassIndex> {
        let Some(finals) = &self.rules.finals else {
            return Vec::new();
        };
        let classes = self.snapshot.classes();
        let counted = |c: &ClassIndex| size.by_class[c.index()].objects > 0;
        let all = classes.iter().map(|(index, _)| index);
        let mut unknown: Vec<ClassIndex> = all
            .filter(counted)
            .filter(|&c| !self.rules.ends[c.index()])
            .flat_map(|c| classes.chain(c))
            .filter(|&c| !finals.are_own_fields_known(c))
            .collect();
        if self.rules.follow_static {
            let started = starts.iter().filter_map(|&o| self.snapshot.represents(o));
            unknown.extend(started.filter(|&c| !finals.are_statics_known(c)));
        }
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }

    /// Returns the values that deep sizes leave out because the whole program shares them, such as enum constants and
    /// interned strings. `None` if the options do not leave out shared values.
    #[must_use]
    pub fn flyweights(&self) -> Option<&Flyweights> {
        self.rules.flyweights.as_ref()
    }

    /// Returns the deep size of a set of objects: all objects that any of them reaches, each counted once. Objects that
    /// the options leave out are not counted, even if they are in the set.
    ///
    /// Cost: one visit of each reached object and of each of its references. The size of the set does not matter. If
    /// more than 65,536 objects or more than half of the heap's objects are reached, all threads can share the work.
    pub fn of_set(&mut self, objects: &[ObjectIndex]) -> DeepSize {
        if let Some(size) = self.size_on_one_thread(objects, self.narrow()) {
            return size;
        }
        if let Some(size) = self.size_on_threads(objects) {
            self.clear_seen();
            return size;
        }
        self.clear_seen();
        self.size_on_one_thread(objects, u64::MAX)
            .unwrap_or_default()
    }

    /// Computes the deep size of a set on one thread. Returns `None` if the set reaches more than `most` objects.
    fn size_on_one_thread(&mut self, objects: &[ObjectIndex], most: u64) -> Option<DeepSize> {
        let snapshot = self.snapshot;
        let mirrors = snapshot.class_class();
        let mut size = DeepSize {
            total: Total::default(),
            by_class: vec![Total::default(); snapshot.classes().len()],
        };
        let whole = self.walk(objects, most, |object| {
            let (class, bytes) = snapshot.class_and_size(ObjectIndex(object));
            let one = Total { objects: 1, bytes };
            size.total += one;
            if let Some(class) = class.or(mirrors) {
                size.by_class[class.index()] += one;
            }
        });
        self.clear_seen();
        whole.then_some(size)
    }

    /// Returns the deep size of one object, or `None` if it reaches more than `most` objects.
    ///
    /// Cost: as [`Deep::of_set`] of the object. If `most` is at most 65,536 and at most half of the heap's objects, the
    /// walk stops after `most` objects.
    pub fn of_one(&mut self, object: ObjectIndex, most: u64) -> Option<Total> {
        let narrow = self.narrow();
        let of_one = self.size_if_small(object, most.min(narrow));
        if of_one.is_some() || most <= narrow {
            return of_one;
        }
        let total = self.of_set(&[object]).total;
        (total.objects <= most).then_some(total)
    }

    fn narrow(&self) -> u64 {
        NARROW.min(self.snapshot.object_count() / 2)
    }

    fn size_if_small(&mut self, object: ObjectIndex, most: u64) -> Option<Total> {
        let snapshot = self.snapshot;
        let mut total = Total::default();
        let mut reached = Vec::new();
        let whole = self.walk(&[object], most, |object| {
            reached.push(object);
            total += Total {
                objects: 1,
                bytes: snapshot.shallow_bytes(ObjectIndex(object)),
            };
        });
        if !whole {
            // Some objects are marked as seen but were not visited, so `reached` does not list them. Clear all
            // bits of `seen`.
            self.clear_seen();
            return None;
        }
        for object in reached {
            self.seen.take(object);
        }
        Some(total)
    }

    /// Visits each object that `starts` reach, once. Returns false if `starts` reach more than `most` objects.
    fn walk(&mut self, starts: &[ObjectIndex], most: u64, mut visit: impl FnMut(u32)) -> bool {
        let classes = self.snapshot.split.classes;
        let mut left = most;
        let mut stack: Vec<u32> = Vec::new();
        for start in starts {
            self.reach(start.0, &mut stack);
            while let Some(object) = stack.pop() {
                visit(object);
                if left == 0 {
                    return false;
                }
                left -= 1;
                if let Some(&soon) = stack.len().checked_sub(4).and_then(|at| stack.get(at))
                    && let RowIndex::All(offsets) = &self.rows
                {
                    mem::prefetch(offsets, soon.wrapping_sub(classes) as usize);
                }
                self.step(object, &mut stack);
            }
        }
        true
    }

    /// Adds an object at which the walk starts to `found`, unless it is ignored or already seen.
    pub(crate) fn reach(&mut self, object: u32, found: &mut Vec<u32>) {
        let there = u64::from(object) < self.snapshot.object_count();
        if there && !self.seen.has(object) && !self.rules.left_out.has(object) {
            self.seen.set(object);
            found.push(object);
        }
    }

    /// Adds the target of a reference to the set `seen`. Returns true if the target was not in the set before and has
    /// to be counted. Class objects are neither added nor counted.
    #[inline(always)]
    pub(crate) fn mark_target(&mut self, target: u32) -> bool {
        let new = !self.seen.has(target) && !self.snapshot.is_class_mirror(target);
        if new {
            self.seen.set(target);
        }
        new
    }

    /// Adds to `found` the targets of an object's references that were not seen before.
    #[inline(always)]
    pub(crate) fn step(&mut self, object: u32, found: &mut Vec<u32>) {
        let split = self.snapshot.split;
        if object < split.classes {
            self.each_static(object, |deep, target, _| {
                if deep.mark_target(target) {
                    found.push(target);
                }
            });
        } else if object < split.inner {
            for target in self.row(object) {
                let target = self.targets[target];
                if self.mark_target(target) {
                    found.push(target);
                }
            }
        }
    }

    /// Returns the range of an object's references in `targets`.
    #[inline(always)]
    fn row(&self, object: u32) -> Range<usize> {
        match &self.rows {
            RowIndex::All(offsets) => {
                let at = (object - self.snapshot.split.classes) as usize;
                offsets[at] as usize..offsets[at + 1] as usize
            }
            RowIndex::Some(rows) => {
                let (begin, end) = rows.get(&object).copied().unwrap_or_default();
                begin as usize..end as usize
            }
        }
    }

    /// Reads the references of all objects that `starts` reach. Returns false if reading them one by one would exceed
    /// the limit [`LOOKS`].
    fn follow(&mut self, starts: &[ObjectIndex]) -> Result<bool> {
        let (snapshot, split) = (self.snapshot, self.snapshot.split);
        let mut level: Vec<u32> = Vec::new();
        starts.iter().for_each(|o| self.reach(o.0, &mut level));
        let mut left = LOOKS;
        let mut rows = FxHashMap::default();
        while !level.is_empty() {
            let Some(rest) = left.checked_sub(level.len() + LOOKS_OF_LEVEL) else {
                return Ok(false);
            };
            left = rest;
            // Objects that are close in the file are read together.
            level.sort_unstable();
            let linked = level.partition_point(|&o| o < split.classes)
                ..level.partition_point(|&o| o < split.inner);
            let objects: Vec<ObjectIndex> = level[linked.clone()]
                .iter()
                .map(|&o| ObjectIndex(o))
                .collect();
            let mut found = Vec::new();
            for &class in &level[..linked.start] {
                self.step(class, &mut found);
            }
            let raws = snapshot.records_of(&objects);
            let read = |(&object, raw): (&ObjectIndex, &Option<Raw<'_>>)| {
                let mut row = Vec::new();
                let class = snapshot.class_of(object);
                let class = class.filter(|c| !self.rules.ends[c.index()]);
                if let (Some(class), Some(raw)) = (class, raw) {
                    let take = |target, _| row.push(target);
                    self.rules.each(snapshot, class, raw.body, take);
                }
                row
            };
            let of_level: Vec<Vec<u32>> = match objects.len() {
                0..=256 => objects.iter().zip(&raws).map(read).collect(),
                _ => {
                    let both = objects.par_iter().zip(&raws);
                    both.with_min_len(64).map(read).collect()
                }
            };
            for (object, row) in objects.iter().zip(of_level) {
                let begin = self.targets.len();
                left = left.saturating_sub(row.len() / 8);
                if begin + row.len() >= NONE as usize {
                    return Ok(false);
                }
                self.targets.extend(&row)?;
                rows.insert(object.0, (begin as u32, (begin + row.len()) as u32));
                found.extend(row.into_iter().filter(|&target| self.mark_target(target)));
            }
            level = found;
        }
        self.rows = RowIndex::Some(rows);
        self.clear_seen();
        Ok(true)
    }

    /// Calls `f` with the target of each followed reference of an object, and with the field or element that holds the
    /// reference.
    pub(crate) fn each_reference(
        &mut self,
        object: u32,
        raw: Option<&Raw<'_>>,
        mut f: impl FnMut(&mut Self, u32, RawVia),
    ) {
        let snapshot = self.snapshot;
        if object < snapshot.split.classes {
            self.each_static(object, f);
        } else if let (Some(raw), Some(class)) = (raw, snapshot.class_of(ObjectIndex(object)))
            && !self.rules.ends[class.index()]
        {
            let mut found = Vec::new();
            let rules = &self.rules;
            rules.each(snapshot, class, raw.body, |target, way| {
                found.push((target, way))
            });
            found
                .into_iter()
                .for_each(|(target, way)| f(self, target, way));
        }
    }

    /// Calls `f` for each object that the static fields of a class object refer to, if static fields are followed.
    fn each_static(&mut self, object: u32, mut f: impl FnMut(&mut Self, u32, RawVia)) {
        let snapshot = self.snapshot;
        let ends = |c: ClassIndex| self.rules.ends[c.index()];
        if !self.rules.follow_static || snapshot.class_class().is_some_and(ends) {
            return;
        }
        let class = ClassIndex(object);
        let statics = snapshot.classes()[class].statics.iter();
        for (field, place) in statics.zip(0..) {
            let follows = field.kind == Kind::Object && field.value != 0 && !is_hidden(&field.name);
            let finals = self.rules.finals.as_ref();
            if !follows || finals.is_some_and(|f| f.has_static(class, place)) {
                continue;
            }
            let target = snapshot.map.by_id(field.value, snapshot.split);
            if target != NONE && !self.rules.left_out.has(target) {
                f(self, target, RawVia::Static(place));
            }
        }
    }

    /// Clears the set of seen objects.
    pub(crate) fn clear_seen(&mut self) {
        self.seen = Bits::new(self.snapshot.object_count() as usize);
    }
}

/// True for names like `<resolved_references>`. The JVM uses such names for references that are not fields of the
/// class.
fn is_hidden(field: &str) -> bool {
    field.starts_with('<')
}
