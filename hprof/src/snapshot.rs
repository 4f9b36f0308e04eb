//! An analysed dump: the pipeline from the file to retained sizes, and queries on the result.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use rayon::prelude::*;

use crate::NameMapping;
use crate::bytes::array::{Array, Column, Store};
use crate::bytes::mem;
use crate::bytes::source::Source;
use crate::dominators::held::{LaidOut, Note, RowCodes};
use crate::dominators::tree::{DominatorTree, Node};
use crate::error::{Result, Warning};
use crate::flaw::Flaw;
use crate::graph::address::{AddressMap, Split};
use crate::graph::bare;
use crate::graph::build::{self, Built};
use crate::graph::cut_arrays;
use crate::graph::missing_roots::MissingRoots;
use crate::graph::plan::{Context, LateClasses, Plan};
use crate::graph::scan::{Piece, Scanned};
use crate::graph::waypoints::Waypoints;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::index::inbound::Inbound;
use crate::index::positions::Positions;
use crate::options::Options;
use crate::progress::Progress;
use crate::records::classes::{Class, Classes};
use crate::records::outline::Outline;
use crate::records::record::{self, Header};
use crate::records::walk::Root;
use crate::sizes::layout::{Layout, Sizes};
use crate::sizes::shape::{self, Shape, ShapeSizes, Shapes};
use crate::sizes::stats::Stats;
use crate::sizes::totals::{self, ClassTotal, Total};

/// The records, classes and sizes of a dump, without the graph of objects.
#[derive(Debug)]
pub(crate) struct Dump {
    pub(crate) source: Source,
    pub(crate) header: Header,
    pub(crate) outline: Outline,
    pub(crate) classes: Classes,
    pub(crate) sizes: Sizes,
    pub(crate) warnings: Vec<Warning>,
}

impl Dump {
    /// Renames classes and fields by the mapping in the options, if there is one.
    pub(crate) fn rename(&mut self, options: &Options) {
        if let Some(mapping) = &options.mapping {
            self.classes.rename(&**mapping);
        }
    }

    /// Collects the warnings, in file order. Warnings about the whole dump come last.
    pub(crate) fn gather_warnings(
        &mut self,
        stats: &Stats,
        more: impl IntoIterator<Item = Warning>,
    ) {
        let duplicates = self.classes.duplicates;
        let (short, oversized) = (stats.short_bodies, self.classes.oversized);
        let mut all: Vec<Warning> = self.source.warnings().to_vec();
        all.append(&mut self.outline.warnings);
        all.extend(more);
        if duplicates > 0 {
            let classes = duplicates;
            all.push(Warning::new(&Flaw::SameClasses { classes }));
        }
        if oversized > 0 {
            let classes = oversized;
            all.push(Warning::new(&Flaw::TooManyFields { classes }));
        }
        all.extend(short_bodies(short));
        all.extend(self.sizes.doubts());
        all.extend(flattened_values(stats));
        all.extend(lost_locals(&self.classes, stats));
        let own = self.source.number() + 1;
        let later = match (self.outline.next_heap, self.outline.next_dump) {
            (Some(at), _) => Some(Flaw::LaterHeap { at, own }),
            (None, Some(at)) => Some(Flaw::LaterDump { at, own }),
            (None, None) => None,
        };
        all.extend(later.as_ref().map(Warning::new));
        all.sort_by_key(|w| (w.offset.is_none(), w.offset));
        all.dedup();
        self.warnings = all;
    }
}

/// Returns the warning about flattened values, which are objects that are stored inside other objects.
fn flattened_values(stats: &Stats) -> Option<Warning> {
    let values = stats.flattened();
    let classes = stats.classes.iter().filter(|c| c.flattened > 0).count();
    (values > 0).then(|| Warning::new(&Flaw::FlattenedValues { values, classes }))
}

/// Returns the warning about virtual threads, for forked dumps of agents that recorded no object layout. These agents
/// did not write the stacks of virtual threads.
fn lost_locals(classes: &Classes, stats: &Stats) -> Option<Warning> {
    classes.forked.as_ref().filter(|f| f.recorded.is_none())?;
    let found = classes.by_name("java.lang.VirtualThread").iter();
    let threads: u64 = found.map(|c| stats.classes[c.index()].instances).sum();
    (threads > 0).then(|| Warning::new(&Flaw::NoVirtualStacks { threads }))
}

/// Returns the warning about reference fields that lie beyond the end of the object's record. Only a pass that reads
/// references finds such fields.
fn short_bodies(short: u64) -> Option<Warning> {
    let fields = short;
    (fields > 0).then(|| Warning::new(&Flaw::ShortBodies { fields }))
}

/// An analysed dump.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) dump: Dump,
    pub(crate) map: AddressMap,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) shapes: Shapes,
    pub(crate) shape_sizes: ShapeSizes,
    pub(crate) inner_shapes: Column<u32>,
    pub(crate) leaf_shapes: Column<u32>,
    pub(crate) split: Split,
    pub(crate) roots: Vec<Root>,
    /// Objects whose allocation site is in the dump: number and stack trace serial, sorted.
    pub(crate) sites: Vec<(u32, u32)>,
    pub(crate) options: Options,
    pub(crate) store: Store,
    pub(crate) tree: DominatorTree,
    /// For each object, a code of the reference by which its dominator holds it. [`Snapshot::holders`] consumes this.
    pub(crate) noted: Mutex<Option<Array<u16>>>,
    /// The total of all objects of each class.
    pub(crate) totals: Vec<ClassTotal>,
    /// Other results about the dump.
    pub(crate) derived: Derived,
    /// Offsets of object records, and lists of referrers. Only a snapshot from an index has them.
    pub(crate) positions: Option<Positions>,
    pub(crate) inbound: Option<Inbound>,
    /// Offsets of some records, at which a search in the file can start. Empty for a snapshot from an index, which has
    /// `positions` for this.
    pub(crate) waypoints: Waypoints,
}

/// Results that an index contains in addition to the arrays.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    pub(crate) late_classes: LateClasses,
    /// True if objects that refer only to their class may be treated as objects without references (see [`bare`]).
    pub(crate) bare_leaves: bool,
    /// The warnings that only an analysis with a graph finds. A histogram that is computed from the index does not
    /// contain them.
    pub(crate) of_graph: Vec<Warning>,
    /// GC roots that the dump lacks although it is complete.
    pub(crate) missing: Option<MissingRoots>,
    /// Results that are computed on first use.
    pub(crate) unreachable: OnceLock<u64>,
    pub(crate) jvm: OnceLock<Option<String>>,
    pub(crate) doubt: OnceLock<Option<Warning>>,
    pub(crate) histogram: OnceLock<Vec<ClassTotal>>,
}

/// A view of the shapes of a [`Snapshot`]'s objects. A shape encodes an object's class and, for arrays, the length. In
/// the view, the shapes are slices. So a loop over objects looks up the location of the slices only once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShapesView<'a> {
    snapshot: &'a Snapshot,
    inner: &'a [u32],
    leaves: &'a [u32],
    split: Split,
}

impl ShapesView<'_> {
    /// Prefetches the shape (encoded class and array length) of an object with references.
    #[inline(always)]
    pub(crate) fn fetch_inner(self, object: u32) {
        mem::prefetch(self.inner, object.wrapping_sub(self.split.classes) as usize);
    }

    /// Prefetches the shape of an object without references.
    #[inline(always)]
    pub(crate) fn fetch_leaf(self, leaf: u32) {
        mem::prefetch(self.leaves, leaf.wrapping_sub(self.split.inner) as usize);
    }

    #[inline(always)]
    pub(crate) fn of(self, object: u32) -> u32 {
        if object >= self.split.inner {
            self.leaves[(object - self.split.inner) as usize]
        } else if object >= self.split.classes {
            self.inner[(object - self.split.classes) as usize]
        } else {
            self.snapshot.shapes.class_object(object)
        }
    }

    /// Returns the shape of an object without references.
    #[inline(always)]
    pub(crate) fn of_leaf(self, leaf: u32) -> u32 {
        self.leaves[(leaf - self.split.inner) as usize]
    }

    /// See [`Snapshot::class_and_size`].
    #[inline(always)]
    pub(crate) fn class_and_size(self, object: u32) -> (Option<ClassIndex>, u64) {
        self.snapshot.class_and_size_of_shape(self.of(object))
    }
}

/// The results of analysing the graph of a dump.
struct Analysed {
    map: AddressMap,
    scanned: Scanned,
    roots: Vec<Root>,
    of_graph: Vec<Warning>,
    missing: Option<MissingRoots>,
    split: Split,
    sizes: Sizes,
    shape_sizes: ShapeSizes,
    tree: DominatorTree,
    noted: Option<Array<u16>>,
}

impl Analysed {
    /// Returns `None` if the graph must be built again with fewer leaves (objects that are treated as having no
    /// references). This is necessary if leaves keep classes alive, or if leaves hold objects by references that no
    /// record contains.
    fn new(built: Built, context: &Context<'_>, plan: &Plan) -> Result<Option<Self>> {
        let (options, store) = (context.options, context.store);
        let Built {
            graph,
            map,
            mut scanned,
            pinned,
            roots,
            warnings: of_graph,
            missing,
            bare_holder,
        } = built;
        if bare_holder {
            return Ok(None);
        }
        let is_in_order = scanned.runs.are_disjoint() && !scanned.stats.has_unaligned_ids();
        if !is_in_order || plan.has_flattened || plan.classes.forked.is_some() {
            build::measure_gaps(plan, &map, &mut scanned, graph.split);
        }
        let sizes = Sizes::infer(
            &plan.classes,
            &scanned.stats,
            context.header.id_size,
            &context.outline.live_objects(),
        );
        let split = graph.split;
        let shape_sizes = ShapeSizes::new(&scanned.shapes, &sizes);
        let (inner_shapes, leaf_shapes) = (&scanned.inner_shapes[..], &scanned.leaf_shapes[..]);
        let size = |object: u32| {
            let shape = if object >= split.inner {
                leaf_shapes[(object - split.inner) as usize]
            } else if object >= split.classes {
                inner_shapes[(object - split.classes) as usize]
            } else {
                scanned.shapes.class_object(object)
            };
            shape_sizes.of(&scanned.shapes, &sizes, shape::plain(shape))
        };
        let fetch = |object: u32| {
            if object >= split.inner {
                mem::prefetch(leaf_shapes, (object - split.inner) as usize);
            } else {
                mem::prefetch(inner_shapes, object.wrapping_sub(split.classes) as usize);
            }
        };
        let classes_of = bare::shape_classes(&scanned.shapes, &plan.classes, &pinned, split);
        let class_of = |object: u32| {
            let shape = if object < split.classes {
                return NONE;
            } else if object < split.inner {
                shape::plain(inner_shapes[(object - split.classes) as usize])
            } else if plan.bare_leaves {
                leaf_shapes[(object - split.inner) as usize]
            } else {
                return NONE;
            };
            classes_of.of(&scanned.shapes, shape)
        };
        let (objects, bare) = (graph.objects as usize, graph.of_leaves.len());
        let mut noted: Option<Array<u16>> = None;
        let codes = |object: u32| {
            let shape = inner_shapes[(object - split.classes) as usize];
            RowCodes::for_shape(&plan.classes, &scanned.shapes, shape)
        };
        let mut note = |rows: LaidOut<'_>| {
            let slots = noted.insert(store.zeroed(objects)?);
            rows.note(codes, mem::as_atomic_u16(slots));
            Ok(())
        };
        let note: Option<Note<'_>> = if options.holders {
            Some(&mut note)
        } else {
            None
        };
        let thresholds = options.thresholds;
        let tree = DominatorTree::new(
            graph,
            class_of,
            (size, fetch),
            thresholds,
            note,
            store,
            context.progress,
        )?;
        options.thresholds.count(|tally| &tally.bare, bare);
        Ok(tree.map(|tree| Self {
            map,
            scanned,
            roots,
            of_graph,
            missing,
            split,
            sizes,
            shape_sizes,
            tree,
            noted,
        }))
    }
}

impl Analysed {
    /// Returns the hidden classes that no path reaches, if the class loader of at least one of these classes is
    /// reachable. The JVM has not unloaded these classes, because they are in the dump. So their class loaders keep
    /// them alive.
    fn held_by_loaders_alone(&self, plan: &Plan) -> Vec<u32> {
        let is_reached =
            |object: u32| object != NONE && self.tree.node(ObjectIndex(object)).is_some();
        let classes = plan.classes.iter().take(plan.classes.dumped());
        let hidden = classes.filter(|(_, c)| !c.held_by_loader && !c.loader.is_null());
        let alone: Vec<(u32, ObjectId)> = hidden
            .filter(|(class, _)| !is_reached(class.0))
            .map(|(class, c)| (class.0, c.loader))
            .collect();
        // Adding these references can make more class loaders reachable. So if any loader is reached, the references of
        // all loaders are added.
        let are_kept = alone
            .iter()
            .any(|(_, loader)| is_reached(self.map.by_id(loader.0, self.split)));
        let alone = alone.into_iter().filter(|_| are_kept);
        alone.map(|(class, _)| class).collect()
    }
}

impl Snapshot {
    /// Loads and analyses a dump: reads its records, links its objects, computes dominators, and sums up retained
    /// sizes.
    ///
    /// Memory: about 25 bytes for each object. Time: a few passes over the file, on all threads of the current rayon
    /// pool, and one single-threaded search. The time doubles if the dump has to be read again. This is necessary if
    /// objects that refer only to their class might keep the class alive.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a heap dump, or if there is not enough memory for its
    /// objects. If the dump is damaged, there are [`Snapshot::warnings`] instead.
    pub fn open(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Self> {
        Self::of(Source::open_nth(path, options.dump)?, options, progress)
    }

    /// Replaces a snapshot by that of another dump. The memory of the previous snapshot is returned to the system
    /// first. The new snapshot has the memory limit of the previous one. See [`Snapshot::open`].
    ///
    /// # Errors
    /// See [`Snapshot::open`].
    pub fn open_after(
        previous: Self,
        path: &Path,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let store = previous.store.clone();
        // Return the memory to the system and do not keep it for reuse. Many parts of it are too small for the arrays
        // that are needed while the dump is read, so they would stay unused.
        drop(previous);
        store.start_keeping();
        Self::within(
            store,
            Source::open_nth(path, options.dump)?,
            options,
            progress,
        )
    }

    /// Analyses a dump that is already open. See [`Snapshot::open`].
    ///
    /// # Errors
    /// See [`Snapshot::open`].
    pub fn of(source: Source, options: &Options, progress: &dyn Progress) -> Result<Self> {
        Self::within(Store::new(options.max_memory), source, options, progress)
    }

    fn within(
        store: Store,
        source: Source,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let header = record::header(&source)?;
        let outline = Outline::with_heap(&source, &header)?;
        let mut plan = Plan::new(&source, &header, &outline);
        let context = Context::new(&source, &header, &outline, options, progress, &store);
        let analysed = loop {
            let built = build::build(&context, &mut plan)?;
            match Analysed::new(built, &context, &plan)? {
                Some(analysed) => {
                    let found = analysed.held_by_loaders_alone(&plan);
                    if found.is_empty() {
                        break analysed;
                    }
                    progress.phase("reading the dump again", 0);
                    plan.late_classes.by_loader = found;
                }
                // Some leaves (objects that are treated as having no references) may keep their classes alive, or hold
                // objects by references that no record contains. So read the dump again, with a stricter rule for
                // leaves. This time, an object whose only reference leads to its class is a leaf only if the class is
                // certainly a GC root.
                None => {
                    progress.phase(
                        "reading the dump again, because individual objects may keep classes alive",
                        0,
                    );
                    plan.bare_leaves = false;
                    options.thresholds.count(|tally| &tally.read_again, 1);
                }
            }
        };
        let Analysed {
            map,
            mut scanned,
            roots,
            mut of_graph,
            missing,
            split,
            sizes,
            shape_sizes,
            tree,
            noted,
        } = analysed;
        if options.holders {
            // The shapes (encoded classes) of objects contain bits that show which fields are null. After the analysis,
            // these bits are not needed any more, so remove them.
            let shapes = scanned.inner_shapes.par_iter_mut();
            shapes.for_each(|shape| *shape = shape::plain(*shape));
        }
        let numbered = |&(n, leaf, serial): &(u32, bool, u32)| {
            (n + if leaf { split.inner } else { split.classes }, serial)
        };
        let mut sites: Vec<(u32, u32)> = scanned.sites.iter().map(numbered).collect();
        sites.sort_unstable();
        let scan_warnings = std::mem::take(&mut scanned.warnings);
        let (classes, stats) = (plan.classes, scanned.stats);
        let totals = totals::totals(&classes, &sizes, &stats);
        let mut dump = Dump {
            source,
            header,
            outline,
            classes,
            sizes,
            warnings: Vec::new(),
        };
        let cut = &scanned.cut_arrays;
        let next = cut_arrays::next_objects(cut, &dump.classes, &map, split);
        of_graph.extend(cut_arrays::warnings(cut, &dump.classes, &dump.sizes, &next));
        dump.gather_warnings(
            &stats,
            scan_warnings.into_iter().chain(of_graph.iter().cloned()),
        );
        of_graph.extend(short_bodies(stats.short_bodies));
        dump.source.check()?;
        dump.rename(options);
        Ok(Self {
            dump,
            map,
            pieces: scanned.pieces,
            shapes: scanned.shapes,
            shape_sizes,
            inner_shapes: scanned.inner_shapes.into(),
            leaf_shapes: scanned.leaf_shapes.into(),
            split,
            roots,
            sites,
            options: options.clone(),
            store,
            tree,
            noted: Mutex::new(noted),
            totals,
            derived: Derived {
                late_classes: plan.late_classes,
                bare_leaves: plan.bare_leaves,
                of_graph,
                missing,
                ..Derived::default()
            },
            positions: None,
            inbound: None,
            waypoints: scanned.waypoints,
        })
    }

    /// Returns the header of the file.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.dump.header
    }

    /// Returns the bytes of the dump, with their path and their size on disk.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.dump.source
    }

    /// Returns the option that decides which reference objects retain their referents.
    #[must_use]
    pub const fn refs(&self) -> crate::options::Refs {
        self.options.refs
    }

    /// Returns the mapping that gave classes, fields and methods their original names; `None` if the names are those in
    /// the dump.
    #[must_use]
    pub fn mapping(&self) -> Option<&Arc<dyn NameMapping>> {
        self.options.mapping.as_ref()
    }

    /// Returns warnings about damaged or missing parts of the dump, in file order.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.dump.warnings
    }

    /// Returns true if some of the dump's content is missing from the figures.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.dump.warnings.iter().any(|w| w.partial)
    }

    /// Returns the GC roots that the dump lacks although it is complete. If there are any, objects without referrers
    /// count as roots of the kind [`MissingRoots::root_kind`].
    #[must_use]
    pub const fn missing_roots(&self) -> Option<MissingRoots> {
        self.derived.missing
    }

    /// Returns the number of objects that count as GC roots because the dump lacks roots, and the bytes that they
    /// retain.
    ///
    /// Cost: one visit of each root.
    #[must_use]
    pub fn assumed_roots(&self) -> Option<(MissingRoots, Total)> {
        let missing = self.derived.missing?;
        let kind = missing.root_kind();
        let mut all = Total::default();
        for (object, _) in self.tree.roots().filter(|root| root.1 == kind) {
            all.objects += 1;
            // If another object dominates this object, the retained bytes of that object already include it.
            if self.tree.dominator(object) == Some(Node::ROOT) {
                all.bytes += self.retained_bytes(object).unwrap_or(0);
            }
        }
        Some((missing, all))
    }

    /// Returns the inferred object layout of the JVM.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.dump.sizes.layout
    }

    /// Returns the classes of the dump.
    #[must_use]
    pub fn classes(&self) -> &Classes {
        &self.dump.classes
    }

    /// Returns the dominator tree.
    #[must_use]
    pub fn tree(&self) -> &DominatorTree {
        &self.tree
    }

    /// Returns the number of objects, including class objects.
    #[must_use]
    pub fn object_count(&self) -> u64 {
        u64::from(self.split.inner) + self.leaf_shapes.len() as u64
    }

    /// Returns the object with this id in the dump.
    #[must_use]
    pub fn find(&self, id: ObjectId) -> Option<ObjectIndex> {
        match self.map.by_id(id.0, self.split) {
            NONE => self
                .dump
                .classes
                .by_id(id)
                .filter(|c| c.0 < self.split.classes)
                .map(|c| ObjectIndex(c.0)),
            number => Some(ObjectIndex(number)),
        }
    }

    #[inline]
    pub(crate) fn shape(&self, object: ObjectIndex) -> u32 {
        let object = object.0;
        if object >= self.split.inner {
            self.leaf_shapes[(object - self.split.inner) as usize]
        } else if object >= self.split.classes {
            self.inner_shapes[(object - self.split.classes) as usize]
        } else {
            self.shapes.class_object(object)
        }
    }

    /// Returns a view of the objects for loops that read the shapes of many objects. A shape encodes an object's class
    /// and, for arrays, the length.
    pub(crate) fn shapes_view(&self) -> ShapesView<'_> {
        ShapesView {
            snapshot: self,
            inner: &self.inner_shapes,
            leaves: &self.leaf_shapes,
            split: self.split,
        }
    }

    #[inline(always)]
    pub(crate) fn size_of_shape(&self, shape: u32) -> u64 {
        self.shape_sizes.of(&self.shapes, &self.dump.sizes, shape)
    }

    #[inline(always)]
    fn class_and_size_of_shape(&self, shape: u32) -> (Option<ClassIndex>, u64) {
        self.shape_sizes
            .class_and_size(&self.shapes, &self.dump.sizes, shape)
    }

    /// Returns the total shallow size, in bytes, of all objects that are not reachable. An object is reachable if a GC
    /// root reaches it by references that retain their targets.
    ///
    /// Cost: one parallel pass over the objects, on the first call.
    #[must_use]
    pub fn unreachable_bytes(&self) -> u64 {
        *self.derived.unreachable.get_or_init(|| self.unreachable())
    }

    fn unreachable(&self) -> u64 {
        (0..self.object_count() as u32)
            .into_par_iter()
            .map(ObjectIndex)
            .filter(|&object| !self.tree.is_reachable(object))
            .map(|object| self.shallow_bytes(object))
            .sum()
    }

    /// Returns the shallow size of an object in bytes.
    #[inline]
    #[must_use]
    pub fn shallow_bytes(&self, object: ObjectIndex) -> u64 {
        self.size_of_shape(self.shape(object))
    }

    /// Returns the shallow size of an instance of a class that is not an array class. The dump need not have an
    /// instance.
    #[must_use]
    pub fn instance_bytes(&self, class: ClassIndex) -> u64 {
        self.dump.sizes.instance(class)
    }

    /// Returns the class of an object; `None` for class objects, which are instances of `java.lang.Class` (see
    /// [`Snapshot::represents`]).
    #[inline]
    #[must_use]
    pub fn class_of(&self, object: ObjectIndex) -> Option<ClassIndex> {
        match self.shapes.decode(self.shape(object)) {
            Shape::Instance(class)
            | Shape::Flattened(class)
            | Shape::Array(class, _)
            | Shape::ValueArray(class, _) => Some(class),
            Shape::ClassObject(_) => None,
        }
    }

    /// Returns the class of an object like [`Snapshot::class_of`], and its shallow size, in one look-up.
    #[inline]
    #[must_use]
    pub fn class_and_size(&self, object: ObjectIndex) -> (Option<ClassIndex>, u64) {
        self.class_and_size_of_shape(self.shape(object))
    }

    /// Returns the class that a class object represents.
    #[must_use]
    pub fn represents(&self, object: ObjectIndex) -> Option<ClassIndex> {
        (object.0 < self.split.classes).then_some(ClassIndex(object.0))
    }

    /// Returns the length of an array; `None` if the object is not an array.
    #[must_use]
    pub fn array_length(&self, object: ObjectIndex) -> Option<u32> {
        match self.shapes.decode(self.shape(object)) {
            Shape::Array(class, len) if self.dump.classes[class].element.is_some() => Some(len),
            Shape::ValueArray(_, len) => Some(len),
            _ => None,
        }
    }

    /// Returns the class of an object; for class objects `java.lang.Class`.
    #[must_use]
    pub fn class(&self, object: ObjectIndex) -> Option<&Class> {
        let class = self.class_of(object).or_else(|| self.class_class())?;
        Some(&self.dump.classes[class])
    }

    /// Returns the class `java.lang.Class`, if the dump has it.
    #[must_use]
    pub fn class_class(&self) -> Option<ClassIndex> {
        self.dump
            .classes
            .by_name("java.lang.Class")
            .first()
            .copied()
    }

    /// Returns the name of an object in reports: its class, or `class C` for the class object of `C`.
    #[must_use]
    pub fn name(&self, object: ObjectIndex) -> String {
        match self.represents(object) {
            Some(class) => format!("class {}", self.dump.classes[class].name),
            None => self
                .class(object)
                .map_or_else(|| "java.lang.Class".to_owned(), |c| c.name.to_string()),
        }
    }

    /// Returns the bytes that would become free if the object were freed; `None` if the object is unreachable.
    #[must_use]
    pub fn retained_bytes(&self, object: ObjectIndex) -> Option<u64> {
        match self.tree.node(object) {
            Some(node) => Some(self.tree.retained_bytes(node)),
            None => self
                .tree
                .is_reachable(object)
                .then(|| self.shallow_bytes(object)),
        }
    }

    /// Returns the number of objects that would become free if the object were freed; `None` if the object is
    /// unreachable.
    #[must_use]
    pub fn retained_objects(&self, object: ObjectIndex) -> Option<u64> {
        match self.tree.node(object) {
            Some(node) => Some(self.tree.retained_objects(node)),
            None => self.tree.is_reachable(object).then_some(1),
        }
    }
}
