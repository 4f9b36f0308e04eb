//! The plan of a dump, made before its objects are read: the pieces into which the file is split, the classes, and
//! guesses of the address range and the alignment. A pass over the objects corrects the plan.

use std::collections::HashSet;

use crate::bytes::array::Store;
use crate::bytes::source::Source;
use crate::graph::address::GRAIN;
use crate::graph::reach::Reach;
use crate::graph::runs;
use crate::graph::scan::Scanned;
use crate::ids::ObjectId;
use crate::options::Options;
use crate::progress::Progress;
use crate::records::classes::Classes;
use crate::records::outline::{Outline, Segment};
use crate::records::record::{self, ClassDump, Header, sub};
use crate::records::walk::{self, Visitor};

/// A segment larger than this is split so that several threads can read it.
const LARGE_SEGMENT: usize = 16 << 20;
const PIECE: usize = 4 << 20;

/// A dump, and everything that the passes over its objects need.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a Source,
    pub(crate) header: &'a Header,
    pub(crate) outline: &'a Outline,
    pub(crate) options: &'a Options,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) store: &'a Store,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        source: &'a Source,
        header: &'a Header,
        outline: &'a Outline,
        options: &'a Options,
        progress: &'a dyn Progress,
        store: &'a Store,
    ) -> Self {
        Self {
            source,
            header,
            outline,
            options,
            progress,
            store,
        }
    }
}

/// The starting point of every analysis: the pieces of the file, and the classes.
pub(crate) struct Plan {
    pub(crate) pieces: Vec<Segment>,
    pub(crate) dumps: Vec<ClassDump>,
    pub(crate) classes: Classes,
    /// Class records before this offset in the file are in `dumps`.
    pub(crate) classes_end: usize,
    /// A power of two. All object addresses are multiples of this number.
    pub(crate) alignment: u64,
    /// True if the graph has references from objects to their classes. References to classes that are certainly GC
    /// roots are always left out.
    pub(crate) class_references: bool,
    /// True if an object that refers only to its class may be treated as a leaf (an object without references) although
    /// its class might not be a GC root.
    pub(crate) bare_leaves: bool,
    pub(crate) late_classes: LateClasses,
    pub(crate) reach: Option<Reach>,
    /// Ids below this number are not addresses: HotSpot makes up the ids 1, 2, 3, ... for flattened values. 0 if ids
    /// with these values are addresses.
    pub(crate) flattened_below: u64,
    /// True if a pass found flattened values.
    pub(crate) has_flattened: bool,
}

/// Returns the number below which an id cannot be the address of an object. In JVMs with flattened values, the heap
/// begins at 2 GiB or above.
fn lowest_address(id_size: usize, dumps: &[ClassDump]) -> u64 {
    const LOWEST: u64 = 1 << 30;
    let ids = || dumps.iter().map(|class| class.id).filter(|&id| id != 0);
    let are_addresses = id_size == 8 && ids().all(|id| id.is_multiple_of(8));
    match ids().min() {
        Some(lowest) if are_addresses => lowest.min(LOWEST),
        _ => 0,
    }
}

/// Data about classes that the class records at the start of the dump do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LateClasses {
    /// Offsets of class records that come after objects.
    pub(crate) late: Vec<usize>,
    /// `unknown` has the ids of all classes without a record. `arrays` has the ids of those among them that are classes
    /// of object arrays.
    pub(crate) unknown: Vec<u64>,
    pub(crate) arrays: Vec<u64>,
    /// Hidden classes that only their class loaders keep alive, sorted.
    pub(crate) by_loader: Vec<u32>,
}

impl Plan {
    pub(crate) fn new(source: &Source, header: &Header, outline: &Outline) -> Self {
        let id_size = header.id_size;
        let mut pieces = Vec::with_capacity(outline.segments.len());
        for &segment in &outline.segments {
            let mut start = segment.start;
            if segment.len() > LARGE_SEGMENT {
                for at in walk::split_points(source, segment.start, segment.end, id_size, PIECE) {
                    pieces.push(Segment { start, end: at });
                    start = at;
                }
            }
            pieces.push(Segment {
                start,
                end: segment.end,
            });
        }
        let (dumps, classes_end) = leading_classes(source, id_size, &outline.segments);
        let classes = Classes::new(source, id_size, outline, &dumps);
        let mut plan = Self {
            pieces,
            dumps,
            classes,
            classes_end,
            alignment: 8,
            class_references: false,
            bare_leaves: true,
            late_classes: LateClasses::default(),
            reach: None,
            flattened_below: 0,
            has_flattened: false,
        };
        plan.flattened_below = lowest_address(id_size, &plan.dumps);
        plan.sample(source, id_size);
        plan
    }

    /// Guesses the address range and the alignment from the class ids and the first object of each piece of the file.
    /// The guess of the alignment is a multiple of the true alignment, because few addresses are examined. Array
    /// lengths are counted modulo the guess, so a large guess needs many counters. So the guess is halved until the
    /// counters take at most 32 MiB plus four times the file's size, or until the guess is 8.
    fn sample(&mut self, source: &Source, id_size: usize) {
        let mut ids: Vec<u64> = self.dumps.iter().map(|c| c.id).collect();
        let starts = self
            .pieces
            .iter()
            .map(|piece| piece.start)
            .chain([self.classes_end]);
        let firsts = starts.filter_map(|start| {
            let tag = *source.get(start)?;
            let is_object = matches!(
                tag,
                sub::INSTANCE | sub::OBJECT_ARRAY | sub::PRIMITIVE_ARRAY
            );
            let id = source.get(start + 1..start + 1 + id_size)?;
            is_object.then(|| id.iter().fold(0, |v, &b| v << 8 | u64::from(b)))
        });
        let firsts: Vec<u64> = firsts.collect();
        // Older forked dumps contain arrays that the child process invented, with addresses that may not be aligned
        // like the JVM's objects. So only the addresses of classes are used for forked dumps.
        let classes_only = ids.iter().fold(0, |a, b| a | b);
        ids.extend(&firsts);
        let bits = match self.classes.forked {
            Some(_) => classes_only,
            None => ids.iter().fold(0, |a, b| a | b),
        };
        self.alignment = 1 << bits.trailing_zeros().min(8);
        let threads = rayon::current_num_threads() as u64 + 1;
        let counters = self.classes.arrays().len() as u64 * 8 * threads;
        while self.alignment > 8 && self.alignment * counters > (32 << 20) + source.len() as u64 * 4
        {
            self.alignment /= 2;
        }
        let (Some(&low), Some(&high)) = (ids.iter().min(), ids.iter().max()) else {
            return;
        };
        let longest = self
            .pieces
            .iter()
            .map(|p| p.len() as u64)
            .max()
            .unwrap_or(0);
        // The objects of a piece of the file lie close to its first object, at lower or higher addresses. The guess is
        // that they are at most twice the length of the longest piece plus 1 MiB away.
        let margin = longest * 2 + (1 << 20);
        let aligned = low.trailing_zeros() >= GRAIN;
        let below = runs::lower_by_margin(low, margin);
        let above = high.saturating_add(margin);
        let in_order = runs::may_have_few_runs(&firsts);
        self.reach = Reach::new(below, above, source.len(), in_order).filter(|_| aligned);
    }

    /// Extends the address range so that it includes all class objects, also those whose records come after other
    /// objects. References can lead to class objects, so each class object needs a slot in the address map.
    fn extend_to_class_objects(&mut self, file: usize) {
        let ids = || self.dumps.iter().map(|c| c.id);
        let (Some(reach), Some(low), Some(high)) = (self.reach, ids().min(), ids().max()) else {
            return;
        };
        if ids().all(|id| reach.range.slot(id).is_some()) {
            return;
        }
        let aligned = ids().all(|id| id.trailing_zeros() >= GRAIN);
        let wider = reach.with(low, high.saturating_add(8), file);
        self.reach = wider.filter(|_| aligned);
    }

    /// Adds to the plan the new classes that the pass over the objects found. Returns true if there are such classes.
    pub(crate) fn learn_classes(&mut self, context: &Context<'_>, scanned: &Scanned) -> bool {
        let id_size = context.header.id_size;
        let late = scanned.late_classes.len();
        if late > 0 {
            // The class records that come after objects are few, so reading them again takes little time.
            let mut again = LateClassVisitor {
                dumps: Vec::new(),
                places: Vec::new(),
                from: self.classes_end,
            };
            for piece in &self.pieces {
                let _ = walk::walk(context.source, piece.start, piece.end, id_size, &mut again);
            }
            self.dumps.append(&mut again.dumps);
            self.late_classes.late.append(&mut again.places);
            self.classes_end = usize::MAX;
            self.classes = Classes::new(context.source, id_size, context.outline, &self.dumps);
        }
        let unknown: Vec<u64> = scanned
            .unknown_classes
            .iter()
            .copied()
            .filter(|&id| self.classes.by_id(ObjectId(id)).is_none())
            .collect();
        let arrays: HashSet<u64> = scanned.unknown_arrays.iter().copied().collect();
        let found = late > 0 || !unknown.is_empty();
        if late > 0 {
            self.extend_to_class_objects(context.source.len());
        }
        self.late_classes.unknown.extend(&unknown);
        self.late_classes.arrays.extend(&arrays);
        self.late_classes.arrays.sort_unstable();
        self.late_classes.arrays.dedup();
        self.classes.with_unknown(unknown, &arrays);
        found
    }

    /// Changes the plan after the first pass that found ids below [`Plan::flattened_below`]. If HotSpot made up these
    /// ids, the dump has flattened values. Otherwise the ids are addresses. Returns true if the plan changed.
    pub(crate) fn learn_flattened(&mut self, scanned: &Scanned) -> bool {
        let low_ids = scanned.stats.low_ids;
        if self.has_flattened || self.flattened_below == 0 || !low_ids.are_any() {
            return false;
        }
        if low_ids.are_made_up() {
            self.has_flattened = true;
            // Made-up ids are not addresses, so an address range is of no use.
            self.reach = None;
        } else {
            self.flattened_below = 0;
        }
        true
    }

    /// Returns true if the results of a pass do not change the plan. Otherwise, corrects the plan for another pass and
    /// returns false. The plan changes if the pass found new classes, ids without a slot in the address map, or (for
    /// the first time) ids below [`Plan::flattened_below`].
    pub(crate) fn is_settled(&mut self, context: &Context<'_>, scanned: &Scanned) -> bool {
        let learned = self.learn_flattened(scanned);
        if self.learn_classes(context, scanned) || learned {
            return false;
        }
        if scanned.misplaced == 0 {
            return true;
        }
        let (low, high) = (scanned.stats.lowest, scanned.stats.highest);
        let aligned = scanned.stats.address_bits.trailing_zeros() >= GRAIN;
        let wider = |reach: Reach| reach.with(low, high.saturating_add(8), context.source.len());
        self.reach = self.reach.and_then(wider).filter(|_| aligned);
        false
    }
}

/// Reads the class records up to the first object. Nearly every dump has all of its class records there.
pub(crate) fn leading_classes(
    source: &[u8],
    id_size: usize,
    segments: &[Segment],
) -> (Vec<ClassDump>, usize) {
    struct LeadingClassVisitor {
        dumps: Vec<ClassDump>,
        stopped: bool,
    }
    impl Visitor for LeadingClassVisitor {
        fn class_dump(&mut self, _: usize, class: ClassDump) {
            self.dumps.push(class);
        }
        fn stop(&mut self, tag: u8) -> bool {
            self.stopped = matches!(
                tag,
                sub::INSTANCE | sub::OBJECT_ARRAY | sub::PRIMITIVE_ARRAY
            );
            self.stopped
        }
    }
    let mut leading = LeadingClassVisitor {
        dumps: Vec::new(),
        stopped: false,
    };
    let mut end = 0;
    for segment in segments {
        // Errors of the walk are ignored here. The pass over the objects reports damage.
        end = walk::walk(source, segment.start, segment.end, id_size, &mut leading)
            .unwrap_or_else(|d| d.offset);
        if leading.stopped {
            break;
        }
    }
    (leading.dumps, end)
}

struct LateClassVisitor {
    dumps: Vec<ClassDump>,
    places: Vec<usize>,
    from: usize,
}

impl Visitor for LateClassVisitor {
    fn class_dump(&mut self, at: usize, class: ClassDump) {
        if at >= self.from {
            self.dumps.push(class);
            self.places.push(at);
        }
    }
}

/// Returns the classes of a dump, including `late_classes`, which an earlier pass found only among the objects. Returns
/// `None` if `late_classes` does not fit this dump.
///
/// Cost: reads the class records.
pub(crate) fn read_classes(
    source: &Source,
    header: &Header,
    outline: &Outline,
    late_classes: &LateClasses,
) -> Option<Classes> {
    let id_size = header.id_size;
    let (mut dumps, _) = leading_classes(source, id_size, &outline.segments);
    for &at in &late_classes.late {
        let rest = source.get(at..)?.strip_prefix(&[sub::CLASS_DUMP])?;
        dumps.push(record::class_dump(rest, id_size)?.0);
    }
    let mut classes = Classes::new(source, id_size, outline, &dumps);
    let arrays = late_classes.arrays.iter().copied().collect();
    classes.with_unknown(late_classes.unknown.iter().copied(), &arrays);
    classes.set_held_by_loaders(&late_classes.by_loader);
    Some(classes)
}
