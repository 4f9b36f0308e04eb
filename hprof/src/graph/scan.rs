//! The pass over all objects. It marks where objects start, and records their classes and array lengths, their
//! references, the GC roots, and measurements of object sizes.
//!
//! The file is split into pieces of about a megabyte. The pieces are scanned in parallel, in batches. After each batch,
//! the results of its pieces are appended in file order, so that objects get the same numbers on every run.

mod append;
mod flattened;
#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;

use std::collections::BTreeSet;
use std::sync::Mutex;

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::source::Source;
use crate::error::{Result, Warning};
use crate::graph::address::{MarkWriter, Pending};
use crate::graph::bare::{Kept, Sifter};
use crate::graph::cut_arrays::CutArray;
use crate::graph::implicit_refs;
use crate::graph::runs::Runs;
use crate::graph::targets::Targets;
use crate::graph::waypoints::{self, Waypoint, Waypoints};
use crate::ids::NONE;
use crate::options::Refs;
use crate::progress::Progress;
use crate::records::classes::{Classes, RecordLayout, Reference};
use crate::records::outline::Segment;
use crate::records::record::{ClassDump, Kind};
use crate::records::walk::read_id;
use crate::records::walk::{self, Damage, Object, Root, Visitor};
use crate::sizes::shape::{self, OF_VALUES, Shapes};
use crate::sizes::stats::{Last, Stats};

/// The object to which a soft or final reference refers. The graph uses this reference only if no stronger path reaches
/// the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Referent {
    /// The reference object (`java.lang.ref`), by its number among the objects with references.
    pub(crate) from: u32,
    pub(crate) target: u64,
    pub(crate) kind: Reference,
}

/// A piece of the file. Its first object with references has the number `first_inner`, and its first object without
/// references the number `first_leaf`. The two kinds are counted separately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) segment: Segment,
    pub(crate) first_inner: u32,
    pub(crate) first_leaf: u32,
}

/// The results of one pass over the objects of a dump.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) pieces: Vec<Piece>,
    /// A zero, followed by one end offset into `targets` for each class object and each object with references.
    pub(crate) ends: Array<u32>,
    pub(crate) targets: Array<u32>,
    pub(crate) inner_shapes: Array<u32>,
    pub(crate) leaf_shapes: Array<u32>,
    /// Ids of objects with references, and of objects without references, in file order; empty if ids are addresses.
    pub(crate) inner_ids: Array<u64>,
    pub(crate) leaf_ids: Array<u64>,
    pub(crate) shapes: Shapes,
    pub(crate) referents: Vec<Referent>,
    pub(crate) roots: Vec<Root>,
    /// Class records that come after the first objects.
    pub(crate) late_classes: Vec<ClassDump>,
    /// `unknown_classes` has the ids of all classes without a record. `unknown_arrays` has the ids of those among them
    /// that are classes of object arrays.
    pub(crate) unknown_classes: BTreeSet<u64>,
    pub(crate) unknown_arrays: BTreeSet<u64>,
    /// Objects whose allocation site is known. Each element has the number of the object, true if it counts as an
    /// object without references, and the serial number of its stack trace. Objects with and without references are
    /// numbered separately.
    pub(crate) sites: Vec<(u32, bool, u32)>,
    pub(crate) stats: Stats,
    /// The runs of the file: parts in which the ids of objects ascend.
    pub(crate) runs: Runs,
    pub(crate) waypoints: Waypoints,
    pub(crate) warnings: Vec<Warning>,
    /// Number of object ids for which the address map has no slot: they are outside of the guessed range, not multiples
    /// of 8, or in a block without a number because the limit on blocks is reached.
    pub(crate) misplaced: u64,
    /// The classes of bare leaves. A bare leaf is an object that refers only to its class and is treated as an object
    /// without references.
    pub(crate) bare: BTreeSet<u32>,
    pub(crate) cut_arrays: Vec<CutArray>,
}

/// The parameters of one pass over the objects of a dump.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a, T: Targets> {
    pub(crate) source: &'a Source,
    pub(crate) id_size: usize,
    pub(crate) classes: &'a Classes,
    /// For each class, true if it is certainly a GC root, so that no object is needed to keep it alive.
    pub(crate) pinned: &'a [bool],
    /// True if references from objects to their classes are recorded like other references.
    pub(crate) class_references: bool,
    /// The rule for objects that refer only to their class, if this class might not be a GC root. The rule selects some
    /// of them, which are treated as objects with references. The others are treated as objects without references. If
    /// there is no rule, all of them are treated as objects with references.
    pub(crate) bare: Option<Kept>,
    pub(crate) refs: Refs,
    /// True if the field of each reference must be known from its position in the adjacency list. Then the shape
    /// (encoded class) of an object has bits that show which fields are null. If there are too few bits, the adjacency
    /// list contains [`NONE`] for each null field.
    pub(crate) tells_fields: bool,
    pub(crate) modulus: usize,
    pub(crate) marks: Option<MarkWriter<'a>>,
    pub(crate) collect_ids: bool,
    pub(crate) targets: T,
    /// Class records before this offset in the file are already known.
    pub(crate) classes_end: usize,
    /// Ids below this number are not addresses, because HotSpot makes them up for flattened values. See
    /// [`crate::graph::plan::Plan::flattened_below`].
    pub(crate) flattened_below: u64,
    pub(crate) has_flattened: bool,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) store: &'a Store,
}

/// Maximum number of bytes of a piece of the file that are prefetched. A larger piece consists of one large array, and
/// if this is an array of primitives, its elements are not read.
const MOST_PREPARED: usize = 16 << 20;

/// The results of one piece of the file. Objects and references are numbered from the start of the piece.
#[derive(Default)]
struct ScannedPiece {
    ends: Vec<u32>,
    targets: Vec<u32>,
    inner_shapes: Vec<u32>,
    leaf_shapes: Vec<u32>,
    inner_ids: Vec<u64>,
    leaf_ids: Vec<u64>,
    longs: Vec<(u32, u32)>,
    referents: Vec<Referent>,
    roots: Vec<Root>,
    late_classes: Vec<ClassDump>,
    sites: Vec<(u32, bool, u32)>,
    damage: Option<Damage>,
    runs: Runs,
    waypoints: Vec<Waypoint>,
    cut_arrays: Vec<CutArray>,
}

impl ScannedPiece {
    fn clear(&mut self) {
        self.ends.clear();
        self.targets.clear();
        self.inner_shapes.clear();
        self.leaf_shapes.clear();
        self.inner_ids.clear();
        self.leaf_ids.clear();
        self.longs.clear();
        self.referents.clear();
        self.roots.clear();
        self.late_classes.clear();
        self.sites.clear();
        self.damage = None;
        self.runs.clear();
        self.waypoints.clear();
        self.cut_arrays.clear();
    }
}

/// Results that a thread collects over all pieces of the file that it scans.
struct Worker {
    stats: Stats,
    unknown_classes: BTreeSet<u64>,
    unknown_arrays: BTreeSet<u64>,
    misplaced: u64,
    sifter: Option<Sifter>,
}

/// Scans the pieces of the file, and returns the combined results.
///
/// # Errors
/// Returns an error if there is not enough memory for the results, or if 32 bits cannot number all references.
pub(crate) fn scan<T: Targets>(job: &Job<'_, T>, pieces: &[Segment]) -> Result<Scanned> {
    let new_stats = || Stats::new(job.classes, job.modulus);
    let new_worker = || Worker {
        stats: new_stats(),
        unknown_classes: BTreeSet::new(),
        unknown_arrays: BTreeSet::new(),
        misplaced: 0,
        sifter: job.bare.map(|kept| Sifter::new(kept, job.classes.len())),
    };
    let workers: Vec<Mutex<Worker>> = (0..rayon::current_num_threads())
        .map(|_| Mutex::new(new_worker()))
        .collect();
    let mut out = Scanned {
        pieces: Vec::with_capacity(pieces.len()),
        ends: job.store.zeroed(0)?,
        targets: job.store.zeroed(0)?,
        inner_shapes: job.store.zeroed(0)?,
        leaf_shapes: job.store.zeroed(0)?,
        inner_ids: job.store.zeroed(0)?,
        leaf_ids: job.store.zeroed(0)?,
        shapes: Shapes::new(job.classes),
        referents: Vec::new(),
        roots: Vec::new(),
        late_classes: Vec::new(),
        unknown_classes: BTreeSet::new(),
        unknown_arrays: BTreeSet::new(),
        sites: Vec::new(),
        stats: new_stats(),
        runs: Runs::default(),
        waypoints: Waypoints::default(),
        warnings: Vec::new(),
        misplaced: 0,
        bare: BTreeSet::new(),
        cut_arrays: Vec::new(),
    };
    out.ends.extend(&[0])?;
    if T::COLLECT {
        job.class_rows(&mut out)?;
    }
    let mut parts: Vec<ScannedPiece> = Vec::new();
    parts.resize_with(rayon::current_num_threads() * 8, ScannedPiece::default);
    for batch in pieces.chunks(parts.len()) {
        job.progress.check_cancelled()?;
        let shapes = &out.shapes;
        parts.par_iter_mut().zip(batch).for_each(|(part, &piece)| {
            part.clear();
            let mut own = None;
            let thread = rayon::current_thread_index().unwrap_or(0);
            let mut guard = workers.get(thread).and_then(|w| w.lock().ok());
            let worker = match guard.as_deref_mut() {
                Some(worker) => worker,
                None => own.insert(new_worker()),
            };
            job.scan_piece(piece, part, worker, shapes);
        });
        out.append(job, batch, &mut parts)?;
        job.progress
            .advance(batch.iter().map(|p| p.len() as u64).sum());
    }
    for worker in workers {
        let Ok(worker) = worker.into_inner() else {
            continue;
        };
        out.stats.merge(&worker.stats);
        out.unknown_classes.extend(worker.unknown_classes);
        out.unknown_arrays.extend(worker.unknown_arrays);
        out.misplaced += worker.misplaced;
        let sifter = worker.sifter.iter();
        out.bare.extend(sifter.flat_map(Sifter::classes));
    }
    Ok(out)
}

impl<T: Targets> Job<'_, T> {
    /// Records the references of class objects: those to the superclass and the loader, those in static fields, and
    /// those in other entries of the record.
    fn class_rows(&self, out: &mut Scanned) -> Result<()> {
        let mut row = Vec::new();
        for (_, class) in self.classes.iter().take(self.classes.dumped()) {
            row.clear();
            let ids = implicit_refs::class_references(self.classes, class);
            row.extend(ids.map(|id| self.targets.encode(id)));
            out.targets.extend(&row)?;
            out.ends.extend(&[out.targets.len() as u32])?;
        }
        Ok(())
    }

    fn scan_piece(
        &self,
        piece: Segment,
        part: &mut ScannedPiece,
        worker: &mut Worker,
        shapes: &Shapes,
    ) {
        self.source
            .advise_sequential(piece.start, piece.len().min(MOST_PREPARED));
        if let Some(sifter) = &mut worker.sifter {
            sifter.next_piece();
        }
        let result = match self.id_size {
            8 => self.visit::<8>(piece, part, worker, shapes),
            _ => self.visit::<4>(piece, part, worker, shapes),
        };
        part.damage = result.err();
    }

    fn visit<const ID: usize>(
        &self,
        piece: Segment,
        part: &mut ScannedPiece,
        worker: &mut Worker,
        shapes: &Shapes,
    ) -> Result<usize, Damage> {
        let mut visitor = PieceVisitor::<T, ID> {
            job: self,
            part,
            worker,
            shapes,
            pending: Pending::default(),
            last: Last::Nothing,
            previous: None,
            class_id: 0,
            class: NONE,
        };
        let result = walk::walk(self.source, piece.start, piece.end, ID, &mut visitor);
        if let Some(marks) = &self.marks {
            marks.flush(&mut visitor.pending);
        }
        if let Some(previous) = visitor.previous {
            visitor.part.runs.end(previous);
        }
        result
    }
}

struct PieceVisitor<'a, 'j, T: Targets, const ID: usize> {
    job: &'a Job<'j, T>,
    part: &'a mut ScannedPiece,
    worker: &'a mut Worker,
    shapes: &'a Shapes,
    pending: Pending,
    /// `last` is the previous object. This field is set only if the distance to the current object is an upper limit of
    /// the previous object's size. `previous` is the id of the previous object, even if other records came in between.
    last: Last,
    previous: Option<u64>,
    /// The id and the number of the class that was looked up last.
    class_id: u64,
    class: u32,
}

impl<T: Targets, const ID: usize> PieceVisitor<'_, '_, T, ID> {
    /// Begins the work on an object of the file: compares its address with that of the previous object.
    #[inline(always)]
    fn begin(&mut self, object: Object) {
        let stats = &mut self.worker.stats;
        if object.id < self.job.flattened_below {
            stats.low_ids.add_array();
        }
        match self.previous {
            Some(previous) if object.id > previous => stats.gap(self.last, object.id - previous),
            previous => {
                if let Some(previous) = previous {
                    self.part.runs.end(previous);
                }
                let before = [self.part.inner_shapes.len(), self.part.leaf_shapes.len()];
                self.part.runs.begin(object.id, before);
            }
        }
        self.previous = Some(object.id);
        stats.address_bits |= object.id;
    }

    /// Ends the work on an object: gives it the next number among the objects of its kind.
    #[inline(always)]
    fn end(&mut self, object: Object, leaf: bool, shape: u32) {
        if T::COLLECT || self.job.marks.is_some() || self.job.collect_ids {
            let part = &mut *self.part;
            if (part.inner_shapes.len() + part.leaf_shapes.len()).is_multiple_of(waypoints::EVERY) {
                let before = [
                    part.inner_shapes.len() as u32,
                    part.leaf_shapes.len() as u32,
                ];
                let at = object.at;
                part.waypoints.push(Waypoint { at, before });
            }
            if leaf {
                part.leaf_shapes.push(shape);
            } else {
                part.inner_shapes.push(shape);
                part.ends.push(part.targets.len() as u32);
            }
            if let Some(marks) = &self.job.marks
                && object.id >= self.job.flattened_below
            {
                match self.job.targets.start(marks, object.id) {
                    Some(slot) => marks.mark(&mut self.pending, slot, leaf),
                    None => self.record_misplaced(object.id),
                }
            } else if self.job.collect_ids {
                if leaf {
                    self.part.leaf_ids.push(object.id)
                } else {
                    self.part.inner_ids.push(object.id)
                }
            }
            if object.serial > 1 {
                self.site(object.serial, leaf);
            }
        }
    }

    #[cold]
    fn record_misplaced(&mut self, id: u64) {
        self.worker.misplaced += 1;
        let stats = &mut self.worker.stats;
        (stats.lowest, stats.highest) = (stats.lowest.min(id), stats.highest.max(id));
    }

    #[cold]
    fn site(&mut self, serial: u32, leaf: bool) {
        let part = &mut *self.part;
        let count = if leaf {
            part.leaf_shapes.len()
        } else {
            part.inner_shapes.len()
        };
        part.sites.push((count as u32 - 1, leaf, serial));
        self.worker.stats.real_serials += 1;
    }

    #[inline(always)]
    fn class_of(&mut self, id: u64) -> u32 {
        if id != self.class_id || self.class == NONE {
            self.class_id = id;
            self.class = match self.job.classes.by_id(crate::ids::ObjectId(id)) {
                Some(class) => class.0,
                None => {
                    self.worker.unknown_classes.insert(id);
                    NONE
                }
            };
        }
        self.class
    }

    /// Records a reference, unless it is null. Increments `count`, the number of the object's references.
    #[inline(always)]
    fn reference(&mut self, id: u64, count: &mut u32) {
        if id != 0 {
            *count += 1;
            if T::COLLECT {
                let target = self.job.targets.encode(id);
                self.part.targets.push(target);
            }
        }
    }

    /// Records the reference to the object's class, unless the class is certainly a GC root, or the object is treated
    /// as an object without references.
    #[inline(always)]
    fn class_reference(&mut self, class: u32, may_be_bare: bool, count: &mut u32) {
        if self.job.pinned[class as usize] {
            return;
        }
        if *count == 0 && may_be_bare && self.is_bare_leaf(class) {
            return;
        }
        if !self.job.class_references {
            // The graph does not contain the reference to the class, but the object still counts as an object with
            // references.
            *count += 1;
        } else {
            let id = self.job.classes[crate::ids::ClassIndex(class)].id.0;
            self.reference(id, count);
        }
    }

    /// Returns true if an object that refers only to its class is treated as an object without references. Must be
    /// called once for each such object, because the result depends on the number of earlier calls.
    fn is_bare_leaf(&mut self, class: u32) -> bool {
        let layout = self.job.classes.layout(class);
        let has_referent = layout.referent != RecordLayout::NO_REFERENT;
        match &mut self.worker.sifter {
            Some(sifter) if !has_referent && !layout.never_leaf => sifter.is_leaf(class),
            _ => false,
        }
    }

    /// Records the referent of a `java.lang.ref` object. Returns true if the reference is soft or final and its
    /// referent was added to `referents`. Other referents are ignored or recorded as usual references, and the result
    /// is false.
    fn referent(&mut self, layout: &RecordLayout, body: &[u8], count: &mut u32) -> bool {
        let at = layout.referent as usize;
        if body.len() < at + ID {
            return false;
        }
        let target = read_id::<ID>(body, at);
        let follow = match (self.job.refs, layout.reference) {
            (Refs::All, _) | (_, Reference::No) => true,
            (Refs::Soft, Reference::Soft | Reference::Final) => {
                if target != 0 {
                    let from = self.part.inner_shapes.len() as u32;
                    self.part.referents.push(Referent {
                        from,
                        target,
                        kind: layout.reference,
                    });
                }
                return target != 0;
            }
            _ => false,
        };
        if follow {
            self.reference(target, count);
        }
        false
    }

    /// Returns the shape (encoded class and size) of an instance with a variable size: a stack chunk, which is a part
    /// of a virtual thread's stack. In a damaged dump, the class of the instance may also be an array class.
    #[cold]
    fn stack_chunk_shape(&mut self, class: u32, array: u32, body: &[u8]) -> u32 {
        let classes = self.job.classes;
        let Some(words) = classes.stack_words(crate::ids::ClassIndex(class), body) else {
            self.worker.stats.classes[class as usize].instances += 1;
            return self.shapes.instance(class);
        };
        self.last = Last::Nothing;
        *self.worker.stats.stack_chunks.entry(words).or_default() += 1;
        self.array_shape(class, array, words)
    }

    /// Records the references of an object, and [`NONE`] in the adjacency list for each null field. If the record is
    /// too short for all fields of the class, the missing fields are not recorded, because there can be very many. Then
    /// the result is a new shape (encoded class) that also contains the number of fields in the record, if this number
    /// can be encoded.
    #[cold]
    fn all_fields(
        &mut self,
        body: &[u8],
        offsets: &[u32],
        (class, shape): (u32, u32),
        fields: usize,
        count: &mut u32,
    ) -> Option<u32> {
        for &at in offsets {
            let id = read_id::<ID>(body, at as usize);
            if id == 0 {
                self.part.targets.push(NONE);
            }
            self.reference(id, count);
        }
        let is_array = self.job.classes.layout(class).array != RecordLayout::NO_ARRAY;
        (offsets.len() < fields && !is_array)
            .then(|| shape::truncated_shape(shape, offsets.len()))
            .flatten()
    }

    /// Records the array if HotSpot may have truncated it, that is, if it has as many elements as fit into one record.
    #[inline(always)]
    fn note_cut(&mut self, object: Object, class: u32, kind: Kind, len: u32) {
        if len >= CutArray::FEWEST && len == CutArray::most_elements(kind, ID) {
            let id = object.id;
            self.part.cut_arrays.push(CutArray { id, class, len });
        }
    }

    fn array_shape(&mut self, class: u32, array: u32, len: u32) -> u32 {
        self.shapes.short_array(array, len).unwrap_or_else(|| {
            self.part.longs.push((class, len.min(OF_VALUES - 1)));
            self.shapes.long_array(self.part.longs.len() as u32 - 1)
        })
    }
}

impl<T: Targets, const ID: usize> Visitor for PieceVisitor<'_, '_, T, ID> {
    #[inline(always)]
    fn instance(&mut self, object: Object, class_id: u64, body: &[u8]) {
        let is_flattened = object.id < self.job.flattened_below;
        if !is_flattened {
            self.begin(object);
        }
        let class = self.class_of(class_id);
        if class == NONE {
            self.last = Last::Nothing;
            return;
        }
        if !is_flattened {
            self.last = Last::Instance {
                class,
                id: object.id,
            };
        }
        let (classes, mut count, mut special) = (self.job.classes, 0, false);
        let (mut has_nulls, mut holds_class) = (false, false);
        let layout = classes.layout(class);
        let mut shape = if is_flattened {
            self.flattened(object.id, class)
        } else if layout.array == RecordLayout::NO_ARRAY {
            self.worker.stats.classes[class as usize].instances += 1;
            self.shapes.instance(class)
        } else {
            self.stack_chunk_shape(class, layout.array, body)
        };
        if T::COLLECT || self.job.marks.is_some() || self.job.collect_ids {
            let mut offsets = classes.ref_offsets(layout);
            let fields = offsets.len();
            if offsets
                .last()
                .is_some_and(|&at| at as usize + ID > body.len())
            {
                // If the record is too short, find the fields that it contains. Offsets ascend, so this is a binary
                // search.
                let fit = offsets.partition_point(|&at| at as usize + ID <= body.len());
                self.worker.stats.short_bodies += (offsets.len() - fit) as u64;
                offsets = &offsets[..fit];
            }
            if self.job.has_flattened {
                self.note_flattened_fields(class, offsets, body);
            }
            if !(T::COLLECT && self.job.tells_fields) {
                for &at in offsets {
                    self.reference(read_id::<ID>(body, at as usize), &mut count);
                }
            } else if layout.array == RecordLayout::NO_ARRAY && shape::has_mask(shape, fields) {
                // Fields that are missing because the record is too short count as null.
                let mut nulls = (1 << fields) - (1 << offsets.len());
                for (k, &at) in offsets.iter().enumerate() {
                    let id = read_id::<ID>(body, at as usize);
                    nulls |= u32::from(id == 0) << k;
                    self.reference(id, &mut count);
                }
                if nulls != 0 {
                    shape = shape::with_nulls(shape, nulls);
                }
            } else {
                let of = (class, shape);
                let cut = self.all_fields(body, offsets, of, fields, &mut count);
                shape = cut.unwrap_or(shape);
                has_nulls = true;
            }
            if layout.referent != RecordLayout::NO_REFERENT {
                special = self.referent(layout, body, &mut count);
            }
            holds_class = count == 0 && classes.holds_class(class, object.id);
            self.class_reference(class, !holds_class, &mut count);
        }
        let leaf = count == 0 && !special && !layout.never_leaf && !holds_class;
        if leaf && has_nulls {
            let part = &mut *self.part;
            let before = part.ends.last().map_or(0, |&end| end as usize);
            part.targets.truncate(before);
        }
        self.end(object, leaf, if leaf { shape::plain(shape) } else { shape });
    }

    #[inline(always)]
    fn object_array(&mut self, object: Object, class_id: u64, elements: &[u8]) {
        self.begin(object);
        let len = (elements.len() / ID) as u32;
        let class = self.class_of(class_id);
        if class == NONE {
            self.worker.unknown_arrays.insert(class_id);
            self.last = Last::Nothing;
            return;
        }
        let classes = self.job.classes;
        self.last = match classes.is_filler(crate::ids::ClassIndex(class)) {
            true => Last::Nothing,
            false => Last::Array {
                kind: Kind::Object,
                len,
            },
        };
        let array = classes.layout(class).array;
        let (mut count, shape) = if array == RecordLayout::NO_ARRAY {
            // The dump is damaged: the class of an array is not an array class. Count the array as an instance.
            self.worker.stats.classes[class as usize].instances += 1;
            let shape = if T::COLLECT && self.job.tells_fields {
                shape::with_elements(class)
            } else {
                self.shapes.instance(class)
            };
            (0, shape)
        } else if self.job.has_flattened {
            self.note_cut(object, class, Kind::Object, len);
            (0, self.array_with_values(class, array, elements))
        } else {
            self.worker.stats.array(array, len);
            self.note_cut(object, class, Kind::Object, len);
            (0, self.array_shape(class, array, len))
        };
        if T::COLLECT {
            self.part.targets.reserve(len as usize);
            for element in elements.chunks_exact(ID) {
                self.reference(read_id::<ID>(element, 0), &mut count);
            }
            self.class_reference(class, true, &mut count);
        } else if self.job.marks.is_some() || self.job.collect_ids {
            count = u32::from(elements.iter().any(|&b| b != 0));
            self.class_reference(class, true, &mut count);
        }
        let leaf = count == 0;
        self.end(object, leaf, if leaf { shape::plain(shape) } else { shape });
    }

    #[inline(always)]
    fn primitive_array(&mut self, object: Object, kind: Kind, len: u32, _: &[u8]) {
        self.begin(object);
        self.last = Last::Array { kind, len };
        let class = self.job.classes.primitive_array(kind);
        let array = self.job.classes.layout(class).array;
        self.worker.stats.array(array, len);
        self.note_cut(object, class, kind, len);
        let shape = self.array_shape(class, array, len);
        self.end(object, true, shape);
    }

    fn class_dump(&mut self, at: usize, class: ClassDump) {
        self.last = Last::Nothing;
        if at >= self.job.classes_end {
            self.part.late_classes.push(class);
        }
    }

    fn root(&mut self, root: Root) {
        self.part.roots.push(root);
    }
}
