//! From bytes to the heap graph: the passes in their order, and what is done when the dump is not
//! as dumps usually are.
//!
//! The usual dump has its classes first, its objects in address order and its ids within a compact
//! range; then one pass over the objects is enough. Whatever turns out otherwise (a class defined
//! late, an id out of range) is found by that pass, which then runs again with it.

use std::collections::{BTreeSet, HashSet};

use crate::bytes::array::Store;
use crate::bytes::source::Source;
use crate::error::{Result, Warning};
use crate::flaw::Flaw;
use crate::graph::address::{self, AddressMap, GRAIN, MarkWriter, Marks, Ranks, Split};
use crate::graph::bare::{self, Kept, LeafClasses};
use crate::graph::heap_graph::{self, HeapGraph};
use crate::graph::implicit_refs;
use crate::graph::missing_roots::{self, MissingRoots};
use crate::graph::permute;
use crate::graph::reach::Reach;
use crate::graph::runs;
use crate::graph::scan::{self, Job, Scanned};
use crate::graph::targets::{BlockTargets, NoTargets, NumberTargets, SlotTargets, Targets};
use crate::ids::{ClassIndex, NONE, ObjectId};
use crate::options::Options;
use crate::progress::Progress;
use crate::records::classes::{self, Class, Classes};
use crate::records::outline::{Outline, Segment};
use crate::records::record::{self, ClassDump, Header, sub};
use crate::records::walk::{self, Root, RootKind, Visitor};
use crate::sizes::gaps;
use crate::sizes::shape::{self, ShapeClasses};

/// A segment larger than this is split so that several threads can read it.
const LARGE_SEGMENT: usize = 16 << 20;
const PIECE: usize = 4 << 20;

/// The starting point of every analysis: the pieces of the file, and the classes.
pub(crate) struct Plan {
    pub(crate) pieces: Vec<Segment>,
    dumps: Vec<ClassDump>,
    pub(crate) classes: Classes,
    /// Class records before this offset are in `dumps`.
    pub(crate) classes_end: usize,
    /// A power of two that object addresses are multiples of.
    pub(crate) alignment: u64,
    /// Whether the graph shall have references from objects to their classes: to those that are not
    /// certainly GC roots.
    pub(crate) class_references: bool,
    /// Whether objects that refer to nothing but such a class may be leaves.
    pub(crate) bare_leaves: bool,
    pub(crate) late_classes: LateClasses,
    reach: Option<Reach>,
}

/// Classes that only the pass over the objects came upon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LateClasses {
    /// Offsets of class records that come after objects.
    pub(crate) late: Vec<usize>,
    /// Ids of classes that have no record, and those of them that arrays name.
    pub(crate) unknown: Vec<u64>,
    pub(crate) arrays: Vec<u64>,
    /// Hidden classes that only their loaders lead to, sorted.
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
        };
        plan.sample(source, id_size);
        plan
    }

    /// Guesses the address range and the alignment from the class ids and the first object of each
    /// piece. The alignment is a multiple of the true one; lengths of arrays are counted by it.
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
        // Older forked dumps are aligned as their JVM is only up to the first array that the child made up.
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
        // Objects of a piece spread over little more than its length, either way from its first.
        let margin = longest * 2 + (1 << 20);
        let aligned = low.trailing_zeros() >= GRAIN;
        let below = runs::with_margin(low, margin);
        let above = high.saturating_add(margin);
        let in_order = runs::may_be_few(&firsts);
        self.reach = Reach::new(below, above, source.len(), in_order).filter(|_| aligned);
    }

    /// Widens the address range to class records that come late: references to their class objects
    /// are slots of the range, too.
    fn cover_classes(&mut self, file: usize) {
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
}

/// Class records come first in nearly every dump: reads them up to the first object.
fn leading_classes(
    source: &Source,
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
        // Damage shows again, and is reported, in the pass over the objects.
        end = walk::walk(source, segment.start, segment.end, id_size, &mut leading)
            .unwrap_or_else(|d| d.offset);
        if leading.stopped {
            break;
        }
    }
    (leading.dumps, end)
}

/// Everything the passes found, the graph included.
pub(crate) struct Built {
    pub(crate) graph: HeapGraph,
    pub(crate) map: AddressMap,
    pub(crate) scanned: Scanned,
    /// For each class whether it is certainly a GC root.
    pub(crate) pinned: Vec<bool>,
    pub(crate) roots: Vec<Root>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) missing: Option<MissingRoots>,
    /// Whether what holds objects without a record that says so is a bare leaf.
    pub(crate) bare_holder: bool,
}

impl HeapGraph {
    /// The heap graph of a dump: class objects first, then objects with references, then those without.
    ///
    /// Cost: a few passes over the file, on all threads of the current rayon pool. Memory: four bytes for each
    /// object and each reference.
    ///
    /// # Errors
    /// When the bytes are no heap dump, or there is no memory for the objects. Damaged parts are left out.
    pub fn of(source: &Source, options: &Options, progress: &dyn Progress) -> Result<Self> {
        let header = record::header(source)?;
        let outline = Outline::with_heap(source, &header)?;
        let mut plan = Plan::new(source, &header, &outline);
        plan.class_references = true;
        plan.bare_leaves = false;
        let store = Store::new(options.max_memory);
        let built = build(
            source, &header, &outline, &mut plan, options, progress, &store,
        )?;
        Ok(built.graph)
    }
}

struct Context<'a> {
    source: &'a Source,
    header: &'a Header,
    outline: &'a Outline,
    options: &'a Options,
    progress: &'a dyn Progress,
    store: &'a Store,
}

impl Context<'_> {
    fn job<'a, T: Targets>(&'a self, plan: &'a Plan, pinned: &'a [bool], targets: T) -> Job<'a, T> {
        Job {
            source: self.source,
            id_size: self.header.id_size,
            classes: &plan.classes,
            pinned,
            class_references: plan.class_references,
            bare: self.kept(plan),
            refs: self.options.refs,
            tells_fields: self.options.holders,
            modulus: plan.alignment.max(8) as usize,
            marks: None,
            collect_ids: false,
            targets,
            classes_end: plan.classes_end,
            progress: self.progress,
            store: self.store,
        }
    }

    /// How many bare objects are no leaves; `None` when none is a leaf, as where marks do not tell which are.
    fn kept(&self, plan: &Plan) -> Option<Kept> {
        let told = plan.bare_leaves && plan.reach.is_some();
        told.then(|| Kept::new(self.options.thresholds))
    }

    /// A pass that marks objects.
    fn marking<T: Targets>(
        &self,
        plan: &Plan,
        pinned: &[bool],
        marks: MarkWriter<'_>,
        targets: T,
    ) -> Result<Scanned> {
        let job = Job {
            marks: Some(marks),
            ..self.job(plan, pinned, targets)
        };
        scan::scan(&job, &plan.pieces)
    }

    fn phase(&self, name: &'static str) {
        self.progress.phase(name, self.source.len() as u64);
    }
}

/// Measures objects without building a graph: one pass over the file, and two more where neighbours in the file
/// are none in the heap.
///
/// # Errors
/// When there is no memory for the results.
pub(crate) fn measure(
    source: &Source,
    header: &Header,
    outline: &Outline,
    plan: &mut Plan,
    options: &Options,
    progress: &dyn Progress,
    store: &Store,
) -> Result<Scanned> {
    let context = Context {
        source,
        header,
        outline,
        options,
        progress,
        store,
    };
    let mut attempt = 0;
    loop {
        let pinned = vec![true; plan.classes.len()];
        context.phase("reading objects");
        let scanned = scan::scan(&context.job(plan, &pinned, NoTargets), &plan.pieces)?;
        if attempt > 1 || !learn_classes(&context, plan, &scanned) {
            return match scanned.runs.are_apart() && !scanned.stats.has_unaligned_ids() {
                true => Ok(scanned),
                false => measure_by_address(&context, plan),
            };
        }
        attempt += 1;
    }
}

/// Measures objects of a file whose order says nothing of their order in the heap.
fn measure_by_address(context: &Context<'_>, plan: &mut Plan) -> Result<Scanned> {
    let Pass {
        mut scanned, ranks, ..
    } = read_objects(context, plan, false)?;
    let split = split(&plan.classes, &scanned);
    let (map, _) = address_map(context, &mut scanned, ranks, split)?;
    measure_gaps(&plan.classes, &map, &mut scanned, split);
    Ok(scanned)
}

/// Measures distances between neighbours in the heap.
pub(crate) fn measure_gaps(
    classes: &Classes,
    map: &AddressMap,
    scanned: &mut Scanned,
    split: Split,
) {
    let shape_of = |object: u32| match object.checked_sub(split.inner) {
        Some(leaf) => scanned.leaf_shapes[leaf as usize],
        None => shape::plain(scanned.inner_shapes[(object - split.classes) as usize]),
    };
    let (shapes, stats) = (&scanned.shapes, &mut scanned.stats);
    gaps::measure(classes, map, shapes, split, shape_of, stats);
}

/// Adds classes that the pass came upon. Returns whether there were any.
fn learn_classes(context: &Context<'_>, plan: &mut Plan, scanned: &Scanned) -> bool {
    let late = scanned.late_classes.len();
    if late > 0 {
        // The records are read again rather than moved: they are few, and `scanned` is dropped.
        let mut again = LateClassVisitor {
            dumps: Vec::new(),
            places: Vec::new(),
            from: plan.classes_end,
        };
        for piece in &plan.pieces {
            let _ = walk::walk(
                context.source,
                piece.start,
                piece.end,
                context.header.id_size,
                &mut again,
            );
        }
        plan.dumps.append(&mut again.dumps);
        plan.late_classes.late.append(&mut again.places);
        plan.classes_end = usize::MAX;
        plan.classes = Classes::new(
            context.source,
            context.header.id_size,
            context.outline,
            &plan.dumps,
        );
    }
    let unknown: Vec<u64> = scanned
        .unknown_classes
        .iter()
        .copied()
        .filter(|&id| plan.classes.by_id(ObjectId(id)).is_none())
        .collect();
    let arrays: HashSet<u64> = scanned.unknown_arrays.iter().copied().collect();
    let found = late > 0 || !unknown.is_empty();
    if late > 0 {
        plan.cover_classes(context.source.len());
    }
    plan.late_classes.unknown.extend(&unknown);
    plan.late_classes.arrays.extend(&arrays);
    plan.late_classes.arrays.sort_unstable();
    plan.late_classes.arrays.dedup();
    plan.classes.with_unknown(unknown, &arrays);
    found
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

/// The classes of a dump, those included that an earlier pass over the objects found late; `None` when that
/// cannot be of this dump.
///
/// Cost: reads the class records.
pub(crate) fn classes_with(
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
    classes.hold_by_loaders(&late_classes.by_loader);
    Some(classes)
}

/// Runs the passes that lead to the graph.
///
/// # Errors
/// When there is no memory for the arrays, or more objects than 32 bits number.
pub(crate) fn build(
    source: &Source,
    header: &Header,
    outline: &Outline,
    plan: &mut Plan,
    options: &Options,
    progress: &dyn Progress,
    store: &Store,
) -> Result<Built> {
    let context = Context {
        source,
        header,
        outline,
        options,
        progress,
        store,
    };
    let Pass {
        pinned,
        mut scanned,
        ranks,
    } = read_objects(&context, plan, true)?;
    let plan = &*plan;
    let classes = &plan.classes;
    let split = split(classes, &scanned);
    let mut warnings = Vec::new();
    let (map, doubles) = address_map(&context, &mut scanned, ranks, split)?;
    if doubles > 0 {
        let flaw = Flaw::SameObjects { objects: doubles };
        warnings.push(Warning::new(&flaw));
    }
    link(&context, plan, &pinned, (&mut scanned, split), &map)?;
    let roots = std::mem::take(&mut scanned.roots);
    let is_incomplete = context.outline.is_cut_off() || !scanned.warnings.is_empty();
    warnings.extend(implicit_refs::without_roots(&roots, is_incomplete));
    let all_classes = is_incomplete || roots.is_empty();
    let resolve = |id: u64| {
        NumberTargets {
            map: &map,
            classes,
            split,
        }
        .encode(id)
    };
    let of_leaf = context
        .kept(plan)
        .map(|_| bare::shape_classes(&scanned.shapes, classes, &pinned, split));
    let bare_holder = of_leaf.as_ref().is_some_and(|of_leaf| {
        let shape = |leaf: u32| scanned.leaf_shapes[leaf as usize];
        let is_bare = |leaf| of_leaf.of(&scanned.shapes, shape(leaf)) != NONE;
        implicit_refs::have_bare_holder(split, &roots, resolve, is_bare)
    });
    let near = of_leaf.as_ref().filter(|_| !plan.class_references);
    let twice = implicit_refs::written_twice(classes, split, resolve);
    if !twice.is_empty() {
        let classes = twice.len();
        warnings.push(Warning::new(&Flaw::WrittenTwice { classes }));
    }
    let unwritten = (&roots[..], all_classes, &twice[..]);
    let mut graph = assemble(
        &mut scanned,
        classes,
        split,
        near,
        unwritten,
        resolve,
        store,
    )?;
    let parts = missing_roots::Parts {
        source: context.source,
        id_size: context.header.id_size,
        classes,
        scanned: &scanned,
        map: &map,
        split,
        roots: &roots,
        pinned: &pinned,
        is_whole: !all_classes,
    };
    let (missing, warning) = missing_roots::add(&mut graph, &parts).unzip();
    warnings.extend(warning);
    if let Some(of_leaf) = of_leaf.filter(|_| plan.class_references) {
        let shapes = scanned.leaf_shapes.iter();
        let classes = shapes.map(|&shape| of_leaf.of(&scanned.shapes, shape));
        graph.leaf_classes = LeafClasses::new(classes, store)?;
        graph.of_leaves.clear();
    }
    Ok(Built {
        graph,
        map,
        scanned,
        pinned,
        roots,
        warnings,
        missing,
        bare_holder,
    })
}

/// What the pass over the objects found, once the plan was complete.
struct Pass {
    /// For each class whether it is certainly a GC root.
    pinned: Vec<bool>,
    scanned: Scanned,
    ranks: Option<Ranks>,
}

/// Reads all objects, once in the usual dump. A pass that comes upon something that the plan lacks completes the plan,
/// and all objects are read again. With `references`, references are recorded, and so are classes that are no GC roots.
fn read_objects(context: &Context<'_>, plan: &mut Plan, references: bool) -> Result<Pass> {
    let mut unpinned: BTreeSet<u32> = BTreeSet::new();
    loop {
        let pinned = if references {
            plan.classes.hold_by_loaders(&plan.late_classes.by_loader);
            certain_roots(&plan.classes, &unpinned)
        } else {
            vec![true; plan.classes.len()]
        };
        let (scanned, marks) = first_pass(context, plan, &pinned, references)?;
        if !is_settled(context, plan, &scanned) {
            continue;
        }
        if references {
            let rooted = implicit_refs::rooted_classes(&plan.classes, &scanned.roots);
            let before = unpinned.len();
            let dumped = 0..plan.classes.dumped();
            unpinned.extend(
                dumped
                    .filter(|&i| pinned[i] && !rooted[i])
                    .map(|i| i as u32),
            );
            if unpinned.len() > before {
                continue;
            }
            context.phase("linking objects");
        }
        let ranks = marks.map(|m| m.seal(context.store)).transpose()?;
        if ranks.as_ref().is_some_and(|r| has_doubles(&scanned, r)) {
            plan.reach = None;
            continue;
        }
        return Ok(Pass {
            pinned,
            scanned,
            ranks,
        });
    }
}

/// Returns for each class whether it is certainly a GC root: classes of the boot loader and classes without a record.
fn certain_roots(classes: &Classes, unpinned: &BTreeSet<u32>) -> Vec<bool> {
    let is_certain = |(i, class): (ClassIndex, &Class)| {
        let boot = class.loader.is_null() && !class.hidden;
        !class.dumped || (boot && !unpinned.contains(&i.0))
    };
    classes.iter().map(is_certain).collect()
}

/// Whether the plan had all that the pass came upon. If not, it has it now, and the pass has to run again.
fn is_settled(context: &Context<'_>, plan: &mut Plan, scanned: &Scanned) -> bool {
    if learn_classes(context, plan, scanned) {
        return false;
    }
    if scanned.misplaced == 0 {
        return true;
    }
    let (low, high) = (scanned.stats.lowest, scanned.stats.highest);
    let aligned = scanned.stats.address_bits.trailing_zeros() >= GRAIN;
    let file = context.source.len();
    let wider = |reach: Reach| reach.with(low, high.saturating_add(8), file);
    plan.reach = plan.reach.and_then(wider).filter(|_| aligned);
    false
}

/// Whether several objects have one id, which only the sorted table tells apart.
fn has_doubles(scanned: &Scanned, ranks: &Ranks) -> bool {
    let records = scanned.inner_shapes.len() + scanned.leaf_shapes.len();
    let marks = ranks.marked.iter().map(|&m| u64::from(m)).sum();
    records as u64 > marks || ranks.doubled
}

/// How the numbers of a pass's objects are split.
fn split(classes: &Classes, scanned: &Scanned) -> Split {
    Split {
        classes: classes.dumped() as u32,
        inner: (classes.dumped() + scanned.inner_shapes.len()) as u32,
    }
}

/// The address map, and how many objects have the id of another.
fn address_map(
    context: &Context<'_>,
    scanned: &mut Scanned,
    ranks: Option<Ranks>,
    split: Split,
) -> Result<(AddressMap, u64)> {
    let Some(ranks) = ranks else {
        return address::sort_ids(scanned, split, context.store);
    };
    let map = match scanned.runs.table(&ranks) {
        Some(runs) if runs.is_ordered() => AddressMap::Ordered(ranks),
        Some(runs) => AddressMap::Runs { ranks, runs },
        None => {
            let file = (context.source, context.header.id_size);
            permute::permute(file, scanned, ranks, split, context.store)?
        }
    };
    Ok((map, 0))
}

/// The pass over all objects, with references as slots where they are wanted and that is possible.
fn first_pass(
    context: &Context<'_>,
    plan: &Plan,
    pinned: &[bool],
    references: bool,
) -> Result<(Scanned, Option<Marks>)> {
    context.phase("reading objects");
    let Some(reach) = plan.reach else {
        let job = Job {
            collect_ids: true,
            ..context.job(plan, pinned, NoTargets)
        };
        return Ok((scan::scan(&job, &plan.pieces)?, None));
    };
    let file = context.source.len();
    let mut marks = reach.marks(file, context.store)?;
    let (writer, blocks) = marks.writers();
    // References to class objects are slots, too.
    if let Some(blocks) = &blocks {
        for class in &plan.dumps {
            blocks.slot(class.id);
        }
    }
    let mut scanned = match (&blocks, references && reach.is_one_step(file)) {
        (None, true) => context.marking(plan, pinned, writer, SlotTargets(reach.range)),
        (None, false) => context.marking(plan, pinned, writer, NoTargets),
        (Some(b), true) => context.marking(plan, pinned, writer, BlockTargets::<true>(b)),
        (Some(b), false) => context.marking(plan, pinned, writer, BlockTargets::<false>(b)),
    }?;
    marks.order(&mut scanned.targets, context.store)?;
    Ok((scanned, Some(marks)))
}

/// Replaces recorded references by object numbers. If addresses were too far apart for that, reads all objects again.
fn link(
    context: &Context<'_>,
    plan: &Plan,
    pinned: &[bool],
    (scanned, split): (&mut Scanned, Split),
    map: &AddressMap,
) -> Result<()> {
    let (classes, store) = (&plan.classes, context.store);
    let file = context.source.len();
    let one_step = plan.reach.is_some_and(|r| r.is_one_step(file));
    if one_step {
        let ranks = map.ranks();
        heap_graph::translate(&mut scanned.targets, map, split, |slot| {
            let id = ranks.and_then(|r| r.space.address(u64::from(slot)));
            let id = id.unwrap_or(0);
            let class = classes.by_id(ObjectId(id)).map_or(NONE, |c| c.0);
            // A class without a record has no class object.
            if class < split.classes { class } else { NONE }
        });
    } else {
        let numbers = NumberTargets {
            map,
            classes,
            split,
        };
        // The first pass's arrays are given back before the second pass fills them anew.
        (scanned.inner_shapes, scanned.leaf_shapes) = (store.zeroed(0)?, store.zeroed(0)?);
        *scanned = scan::scan(&context.job(plan, pinned, numbers), &plan.pieces)?;
    }
    Ok(())
}

/// Adds what no record shows and the roots; with `near`, the classes of leaves, what refers to classes by way of leaves.
fn assemble(
    scanned: &mut Scanned,
    classes: &Classes,
    split: Split,
    near: Option<&ShapeClasses>,
    (roots, all_classes, twice): (&[Root], bool, &[(u32, u32)]),
    resolve: impl Fn(u64) -> u32,
    store: &Store,
) -> Result<HeapGraph> {
    let (mut extra, mut held) = implicit_refs::unwritten(classes, split, roots, &resolve);
    extra.extend(twice);
    extra.sort_unstable();
    for object in implicit_refs::held_by_classes(scanned, classes, split) {
        held.entry(object).or_insert(RootKind::VmInternal);
    }
    if all_classes {
        implicit_refs::hold_classes(&mut held, split);
    }
    let mut offsets = std::mem::replace(&mut scanned.ends, store.zeroed(0)?);
    let mut targets = std::mem::replace(&mut scanned.targets, store.zeroed(0)?);
    let by_leaves = match near {
        Some(of_leaf) => {
            let linked = bare::Linked {
                split,
                offsets: &offsets,
                targets: &targets,
                extra: &extra,
                held: &held,
            };
            linked.by_leaves(|object| {
                let shape = scanned.leaf_shapes[(object - split.inner) as usize];
                of_leaf.of(&scanned.shapes, shape)
            })
        }
        None => Vec::new(),
    };
    extra.extend(&by_leaves);
    extra.sort_unstable();
    extra.dedup();
    heap_graph::insert(&mut offsets, &mut targets, &extra)?;
    offsets.shrink_to_fit()?;
    targets.shrink_to_fit()?;
    let mut weaker = [Vec::new(), Vec::new()];
    for referent in std::mem::take(&mut scanned.referents) {
        let target = resolve(referent.target);
        if target != NONE {
            let level = usize::from(referent.kind == classes::Reference::Final);
            weaker[level].push((split.classes + referent.from, target));
        }
    }
    Ok(HeapGraph {
        offsets,
        targets,
        split,
        objects: split.inner + scanned.leaf_shapes.len() as u32,
        roots: held.into_iter().collect(),
        weaker,
        leaf_classes: LeafClasses::none(store)?,
        by_leaves,
        of_leaves: scanned.bare.iter().copied().collect(),
    })
}
