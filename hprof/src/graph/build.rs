//! Builds the heap graph from the bytes of a dump: runs the passes in order, and repeats a pass if the dump is unusual.
//!
//! In the usual dump, the classes come first, the objects are in address order, and the ids lie within a compact range.
//! Then one pass over the objects is enough. The pass starts from a plan: the known classes and a guess of the address
//! range. If the pass finds a class defined late, or an id out of range, the plan is extended and the pass runs again.

use std::collections::BTreeSet;

use crate::bytes::array::Store;
use crate::bytes::source::Source;
use crate::error::{Result, Warning};
use crate::flaw::Flaw;
use crate::graph::address::{self, AddressMap, MarkWriter, Marks, Ranks, Split};
use crate::graph::bare::{self, Kept, LeafClasses};
use crate::graph::heap_graph::{self, HeapGraph};
use crate::graph::implicit_refs;
use crate::graph::missing_roots::{self, MissingRoots};
use crate::graph::permute;
use crate::graph::plan::{Context, Plan};
use crate::graph::scan::{self, Job, Scanned};
use crate::graph::targets::{BlockTargets, NoTargets, NumberTargets, SlotTargets, Targets};
use crate::ids::{ClassIndex, NONE, ObjectId};
use crate::options::Options;
use crate::progress::Progress;
use crate::records::classes::{self, Class, Classes};
use crate::records::outline::Outline;
use crate::records::record;
use crate::records::walk::{Root, RootKind};
use crate::sizes::gaps;
use crate::sizes::shape::{self, ShapeClasses};

/// The results of all passes over the dump: the heap graph, and data about its objects.
pub(crate) struct Built {
    pub(crate) graph: HeapGraph,
    pub(crate) map: AddressMap,
    pub(crate) scanned: Scanned,
    /// For each class, true if the class is certainly a GC root.
    pub(crate) pinned: Vec<bool>,
    pub(crate) roots: Vec<Root>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) missing: Option<MissingRoots>,
    /// True if the object of a thread was treated as a leaf (object without references), because its record refers only
    /// to its class. The thread may also hold objects by references that no record contains, such as those from its
    /// local variables.
    pub(crate) bare_holder: bool,
}

impl HeapGraph {
    /// Builds the heap graph of a dump: class objects first, then objects with references, then objects without.
    ///
    /// Cost: a few passes over the file, on all threads of the current rayon pool. Memory: four bytes for each object
    /// and each reference.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a heap dump, or if there is not enough memory. Damaged parts are left out.
    pub fn build(source: &Source, options: &Options, progress: &dyn Progress) -> Result<Self> {
        let header = record::header(source)?;
        let outline = Outline::with_heap(source, &header)?;
        let mut plan = Plan::new(source, &header, &outline);
        plan.class_references = true;
        plan.bare_leaves = false;
        let store = Store::new(options.max_memory);
        let context = Context::new(source, &header, &outline, options, progress, &store);
        Ok(build(&context, &mut plan)?.graph)
    }
}

impl Context<'_> {
    fn job<'a, T: Targets>(&'a self, plan: &'a Plan, pinned: &'a [bool], targets: T) -> Job<'a, T> {
        Job {
            source: self.source,
            id_size: self.header.id_size,
            classes: &plan.classes,
            pinned,
            class_references: plan.class_references,
            bare: self.bare_object_rule(plan),
            refs: self.options.refs,
            tells_fields: self.options.holders,
            modulus: plan.alignment.max(8) as usize,
            marks: None,
            collect_ids: false,
            targets,
            classes_end: plan.classes_end,
            flattened_below: plan.flattened_below,
            has_flattened: plan.has_flattened,
            progress: self.progress,
            store: self.store,
        }
    }

    /// Returns the rule that selects which bare objects (objects that refer only to their class) are treated as objects
    /// with references. Nearly all other bare objects are treated as objects without references (see `bare.rs`).
    /// Returns `None` if no bare object may be treated so: if [`Plan::bare_leaves`] is false, or if there are no
    /// bitmaps of object starts.
    fn bare_object_rule(&self, plan: &Plan) -> Option<Kept> {
        let told = plan.bare_leaves && plan.reach.is_some();
        told.then(|| Kept::new(self.options.thresholds))
    }

    /// Runs a pass over the objects. In addition to its usual results, the pass marks in bitmaps where objects start.
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

/// Measures objects without building a graph. Cost: one pass over the file, and two more if neighbours in the file are
/// not neighbours in the heap.
///
/// # Errors
/// Returns an error if there is not enough memory for the results.
pub(crate) fn measure(context: &Context<'_>, plan: &mut Plan) -> Result<Scanned> {
    let mut attempt = 0;
    loop {
        let pinned = vec![true; plan.classes.len()];
        context.phase("reading objects");
        let scanned = scan::scan(&context.job(plan, &pinned, NoTargets), &plan.pieces)?;
        let learned = plan.learn_flattened(&scanned);
        if plan.has_flattened {
            return measure_by_address(context, plan);
        }
        if attempt > 1 || !(plan.learn_classes(context, &scanned) || learned) {
            return if scanned.runs.are_disjoint() && !scanned.stats.has_unaligned_ids() {
                Ok(scanned)
            } else {
                measure_by_address(context, plan)
            };
        }
        attempt += 1;
    }
}

/// Measures the objects of a file that is not in the order of addresses.
fn measure_by_address(context: &Context<'_>, plan: &mut Plan) -> Result<Scanned> {
    let Pass {
        mut scanned, ranks, ..
    } = read_objects(context, plan, false)?;
    let split = split(&plan.classes, &scanned);
    let (map, _) = address_map(context, &mut scanned, ranks, split)?;
    measure_gaps(plan, &map, &mut scanned, split);
    Ok(scanned)
}

/// Measures the distances between objects that are neighbours in the heap, to find out the sizes of objects.
pub(crate) fn measure_gaps(plan: &Plan, map: &AddressMap, scanned: &mut Scanned, split: Split) {
    let shape_of = |object: u32| match object.checked_sub(split.inner) {
        Some(leaf) => scanned.leaf_shapes[leaf as usize],
        None => shape::plain(scanned.inner_shapes[(object - split.classes) as usize]),
    };
    let (shapes, stats) = (&scanned.shapes, &mut scanned.stats);
    let flattened_below = if plan.has_flattened {
        plan.flattened_below
    } else {
        0
    };
    let classes = &plan.classes;
    gaps::measure(
        classes,
        map,
        shapes,
        split,
        shape_of,
        flattened_below,
        stats,
    );
}

/// Runs the passes that build the graph.
///
/// # Errors
/// Returns an error if there is not enough memory for the arrays, or if there are more objects than 32 bits can number.
pub(crate) fn build(context: &Context<'_>, plan: &mut Plan) -> Result<Built> {
    let Pass {
        pinned,
        mut scanned,
        ranks,
    } = read_objects(context, plan, true)?;
    let plan = &*plan;
    let classes = &plan.classes;
    let split = split(classes, &scanned);
    let mut warnings = Vec::new();
    let (map, doubles) = address_map(context, &mut scanned, ranks, split)?;
    if doubles > 0 {
        let flaw = Flaw::SameObjects { objects: doubles };
        warnings.push(Warning::new(&flaw));
    }
    link(context, plan, &pinned, &mut scanned, split, &map)?;
    let mut roots = std::mem::take(&mut scanned.roots);
    let is_incomplete = context.outline.is_cut_off() || !scanned.warnings.is_empty();
    if context.outline.has_repaired_roots() {
        // The warning about the repair already mentions the GC roots, so no other warning about roots is needed.
        implicit_refs::name_added_roots(classes, &mut roots);
    } else {
        warnings.extend(implicit_refs::without_roots(&roots, is_incomplete));
    }
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
        .bare_object_rule(plan)
        .map(|_| bare::shape_classes(&scanned.shapes, classes, &pinned, split));
    let bare_holder = of_leaf.as_ref().is_some_and(|of_leaf| {
        let shape = |leaf: u32| scanned.leaf_shapes[leaf as usize];
        let is_bare = |leaf| of_leaf.of(&scanned.shapes, shape(leaf)) != NONE;
        implicit_refs::is_any_thread_bare(split, &roots, resolve, is_bare)
    });
    let near = of_leaf.as_ref().filter(|_| !plan.class_references);
    let twice = implicit_refs::instances_with_class_id(classes, split, resolve);
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
        context.store,
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
        graph.leaf_classes = LeafClasses::new(classes, context.store)?;
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

/// The results of the last pass of [`read_objects`]. This pass found nothing that was missing in its [`Plan`], such as
/// a class.
struct Pass {
    /// For each class, true if the class is certainly a GC root.
    pinned: Vec<bool>,
    scanned: Scanned,
    ranks: Option<Ranks>,
}

/// Reads all objects, in one pass if the dump is usual. If a pass finds something that the plan (classes, address
/// range) lacks, the plan is extended and all objects are read again. If `references` is true, the pass also records
/// references, and finds the classes that are not GC roots.
fn read_objects(context: &Context<'_>, plan: &mut Plan, references: bool) -> Result<Pass> {
    let mut unpinned: BTreeSet<u32> = BTreeSet::new();
    loop {
        let pinned = if references {
            plan.classes
                .set_held_by_loaders(&plan.late_classes.by_loader);
            certain_root_classes(&plan.classes, &unpinned)
        } else {
            vec![true; plan.classes.len()]
        };
        let (scanned, marks) = first_pass(context, plan, &pinned, references)?;
        if !plan.is_settled(context, &scanned) {
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
        let ranks = marks.map(|m| m.into_ranks(context.store)).transpose()?;
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

/// Returns for each class true if it is certainly a GC root: classes of the boot loader and classes without a record.
fn certain_root_classes(classes: &Classes, unpinned: &BTreeSet<u32>) -> Vec<bool> {
    let is_certain = |(i, class): (ClassIndex, &Class)| {
        let boot = class.loader.is_null() && !class.hidden;
        !class.dumped || (boot && !unpinned.contains(&i.0))
    };
    classes.iter().map(is_certain).collect()
}

/// Returns true if several objects have the same id. Only an address map with a sorted table of ids can handle such
/// ids.
fn has_doubles(scanned: &Scanned, ranks: &Ranks) -> bool {
    let records = scanned.inner_shapes.len() + scanned.leaf_shapes.len();
    let marks = ranks.marked.iter().map(|&m| u64::from(m)).sum();
    records as u64 > marks || ranks.doubled
}

/// Returns which object numbers belong to class objects, objects with references, and objects without references.
fn split(classes: &Classes, scanned: &Scanned) -> Split {
    Split {
        classes: classes.dumped() as u32,
        inner: (classes.dumped() + scanned.inner_shapes.len()) as u32,
    }
}

/// Creates the address map. Also returns the number of objects that have the id of another object.
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
        Some(runs) if runs.is_rank_identity() => AddressMap::Ordered(ranks),
        Some(runs) => AddressMap::Runs { ranks, runs },
        None => permute::permute(context, scanned, ranks, split)?,
    };
    Ok((map, 0))
}

/// Runs the pass over all objects. Records references as slots (positions in the address map) if `references` is true
/// and slots fit in 32 bits.
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
    // References can lead to class objects, so class objects need slots (positions in the address map).
    if let Some(blocks) = &blocks {
        for class in &plan.dumps {
            blocks.slot(class.id);
        }
    }
    let mut scanned = match (&blocks, references && reach.fits_u32_slots(file)) {
        (None, true) => context.marking(plan, pinned, writer, SlotTargets(reach.range)),
        (None, false) => context.marking(plan, pinned, writer, NoTargets),
        (Some(b), true) => context.marking(plan, pinned, writer, BlockTargets::<true>(b)),
        (Some(b), false) => context.marking(plan, pinned, writer, BlockTargets::<false>(b)),
    }?;
    marks.order(&mut scanned.targets, context.store)?;
    Ok((scanned, Some(marks)))
}

/// Converts the recorded references from slots (positions in the address map) to object numbers. No slots were recorded
/// if they do not fit in 32 bits, or if ids are not addresses. Then this function reads all objects again and records
/// object numbers.
fn link(
    context: &Context<'_>,
    plan: &Plan,
    pinned: &[bool],
    scanned: &mut Scanned,
    split: Split,
    map: &AddressMap,
) -> Result<()> {
    let (classes, store) = (&plan.classes, context.store);
    let file = context.source.len();
    let one_step = plan.reach.is_some_and(|r| r.fits_u32_slots(file));
    if one_step {
        let ranks = map.ranks();
        heap_graph::translate(&mut scanned.targets, map, split, |slot| {
            let id = ranks.and_then(|r| r.space.address(u64::from(slot)));
            let id = id.unwrap_or(0);
            let class = classes.by_id(ObjectId(id)).map_or(NONE, |c| c.0);
            // Only a class with a record has a class object.
            if class < split.classes { class } else { NONE }
        });
    } else {
        let numbers = NumberTargets {
            map,
            classes,
            split,
        };
        // Frees the arrays of the first pass, before the second pass allocates its own.
        (scanned.inner_shapes, scanned.leaf_shapes) = (store.zeroed(0)?, store.zeroed(0)?);
        *scanned = scan::scan(&context.job(plan, pinned, numbers), &plan.pieces)?;
    }
    Ok(())
}

/// Creates the graph from the recorded references. Adds the GC roots and the references that no record contains.
///
/// `near` contains the class object for each shape (class and array length) of leaves, which are objects that refer
/// only to their class. If `near` is `Some`, references "object -> class" are inserted in place of paths "object ->
/// leaf -> class of the leaf". They are inserted only for objects close to a GC root.
fn assemble(
    scanned: &mut Scanned,
    classes: &Classes,
    split: Split,
    near: Option<&ShapeClasses>,
    (roots, all_classes, twice): (&[Root], bool, &[(u32, u32)]),
    resolve: impl Fn(u64) -> u32,
    store: &Store,
) -> Result<HeapGraph> {
    let (mut extra, mut held) = implicit_refs::implicit_references(classes, split, roots, &resolve);
    extra.extend(twice);
    extra.sort_unstable();
    for object in implicit_refs::held_by_classes(scanned, classes, split) {
        held.entry(object).or_insert(RootKind::VmInternal);
    }
    if all_classes {
        implicit_refs::root_all_classes(&mut held, split);
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
            linked.shortcuts_around_leaves(|object| {
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
