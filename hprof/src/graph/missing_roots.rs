//! Complete dumps that lack GC roots, and the objects that count as roots in their place.
//!
//! Two programs leave roots out. HotSpot of JDK 19 to 21 writes no frames of parked virtual threads (JDK-8299426), and
//! a `jdk.internal.vm.StackChunk` has no references to locals in a dump. `jhsdb jmap --binaryheap` writes only threads
//! and JNI locals as roots. Objects that only the missing roots hold are in such a dump, but no path from a root leads
//! to them.
//!
//! Among these objects, those without a referrer become GC roots of a special kind. In a dump that was written after a
//! full GC, nearly all of them were alive. Objects that refer to each other in a cycle have referrers, so a cycle stays
//! unreachable unless an object outside of it refers to it. A class loader and its classes always are such a cycle, so
//! an unreachable loader becomes a root as well.

use rustc_hash::FxHashMap;

use crate::error::Warning;
use crate::flaw::Flaw;
use crate::graph::address::{AddressMap, Split};
use crate::graph::bare;
use crate::graph::bits::Bits;
use crate::graph::heap_graph::HeapGraph;
use crate::graph::jvm_version;
use crate::graph::scan::Scanned;
use crate::ids::{ClassIndex, NONE};
use crate::records::classes::Classes;
use crate::records::walk::{Root, RootKind};
use crate::sizes::shape::{self, ShapeClasses};
use crate::snapshot::Snapshot;

/// The first and the last JDK that writes no frames of parked virtual threads.
const WITHOUT_PARKED_FRAMES: std::ops::RangeInclusive<u32> = 19..=21;

/// GC roots that a dump lacks although it is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingRoots {
    /// The dump lacks the frames of parked virtual threads. HotSpot of JDK 19 to 21 writes such dumps.
    ParkedThreads,
    /// The dump lacks Java frames, JNI globals and system classes. `jhsdb jmap --binaryheap` writes such dumps.
    Frames,
}

impl MissingRoots {
    /// Returns the root kind of the objects that count as GC roots in place of the roots that the dump lacks.
    #[must_use]
    pub const fn root_kind(self) -> RootKind {
        match self {
            Self::ParkedThreads => RootKind::ParkedThreads,
            Self::Frames => RootKind::NoReferrer,
        }
    }
}

/// True if a JVM of this version writes no frames of parked virtual threads.
fn lacks_parked_frames(version: &str) -> bool {
    let major = version.split(|c: char| !c.is_ascii_digit()).next();
    let major = major.and_then(|v| v.parse().ok());
    major.is_some_and(|v| WITHOUT_PARKED_FRAMES.contains(&v))
}

impl Snapshot {
    /// Returns true if the dump shows which objects the local variables of parked virtual threads hold.
    ///
    /// Cost: that of [`Snapshot::jvm`] if the dump is incomplete, otherwise nothing.
    #[must_use]
    pub fn shows_parked_frames(&self) -> bool {
        let is_old = || {
            self.jvm()
                .is_some_and(|version| lacks_parked_frames(&version))
        };
        self.missing_roots().is_none() && !(self.is_partial() && is_old())
    }
}

/// Data about a dump, which is available when the dump's graph is complete.
pub(crate) struct Parts<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) id_size: usize,
    pub(crate) classes: &'a Classes,
    pub(crate) scanned: &'a Scanned,
    pub(crate) map: &'a AddressMap,
    pub(crate) split: Split,
    pub(crate) roots: &'a [Root],
    /// For each class, true if the class is certainly a GC root.
    pub(crate) pinned: &'a [bool],
    /// False if roots may be in a part of the file that is missing or damaged.
    pub(crate) is_whole: bool,
}

/// If roots are missing in a dump, adds roots to its graph. Returns the kind of the missing roots, and the warning.
///
/// Cost: none if no roots are missing. Otherwise one search through the graph, one pass over its unreachable objects,
/// and two bits for each object.
pub(crate) fn add(graph: &mut HeapGraph, parts: &Parts<'_>) -> Option<(MissingRoots, Warning)> {
    let has = |kind| parts.roots.iter().any(|r| r.kind == kind);
    if parts.is_whole
        && has(RootKind::Thread)
        && ![
            RootKind::JavaFrame,
            RootKind::JniGlobal,
            RootKind::StickyClass,
        ]
        .into_iter()
        .any(has)
    {
        let missing = MissingRoots::Frames;
        let added = add_roots(graph, parts, missing, &[]);
        let kind = missing.root_kind().name();
        let flaw = Flaw::OnlyThreads { added, kind };
        return Some((missing, Warning::new(&flaw)));
    }
    let parked = parked_threads(parts)?;
    let missing = MissingRoots::ParkedThreads;
    let added = add_roots(graph, parts, missing, &parked.threads);
    let flaw = Flaw::NoParkedFrames {
        threads: parked.threads.len(),
        version: parked.version,
        added,
        kind: missing.root_kind().name(),
    };
    Some((missing, Warning::new(&flaw)))
}

/// Virtual threads whose frames are in no record.
struct Parked {
    /// Virtual threads that are not GC roots.
    threads: Vec<u32>,
    /// The value of `java.vm.version`.
    version: String,
}

/// Returns the virtual threads that were parked, if the dump lacks their frames. Returns `None` if the dump is of a JDK
/// that writes such frames, or if the dump has the frames of all virtual threads.
fn parked_threads(parts: &Parts<'_>) -> Option<Parked> {
    const THREAD: &str = "java.lang.VirtualThread";
    const STACK: &str = "jdk.internal.vm.StackChunk";
    let boot = |name: &str| -> Vec<ClassIndex> {
        let found = parts.classes.by_name(name).iter().copied();
        found
            .filter(|&c| parts.classes[c].loader.is_null())
            .collect()
    };
    let (of_threads, of_stacks) = (boot(THREAD), boot(STACK));
    let stats = &parts.scanned.stats;
    let count = |classes: &[ClassIndex]| -> u64 {
        let instances = classes.iter().map(|c| stats.classes[c.index()].instances);
        instances.sum()
    };
    let stacks = stats.stack_chunks.values().sum::<u64>() + count(&of_stacks);
    let threads = count(&of_threads);
    // A thread that was parked at least once has a stack in the heap.
    if threads + stacks == 0 || (stacks == 0 && !of_stacks.is_empty()) {
        return None;
    }
    let version = jvm_version::read(parts)?;
    if !lacks_parked_frames(&version) {
        return None;
    }
    let threads = match threads {
        0 => Vec::new(),
        _ => non_root_instances(parts, &of_threads),
    };
    let are_all_rooted = threads.is_empty() && !of_threads.is_empty() && count(&of_threads) > 0;
    (!are_all_rooted).then_some(Parked { threads, version })
}

/// Returns the instances of these classes that are not GC roots of the kind [`RootKind::Thread`].
fn non_root_instances(parts: &Parts<'_>, classes: &[ClassIndex]) -> Vec<u32> {
    let Split { classes: first, .. } = parts.split;
    let mut rooted: Vec<u32> = parts
        .roots
        .iter()
        .filter(|r| r.kind == RootKind::Thread)
        .map(|r| parts.map.by_id(r.id.0, parts.split))
        .collect();
    rooted.sort_unstable();
    let shapes: Vec<u32> = classes
        .iter()
        .map(|c| parts.scanned.shapes.instance(c.0))
        .collect();
    let inner = parts.scanned.inner_shapes.iter();
    let inner = inner.map(|&s| shape::plain(s));
    let leaves = parts.scanned.leaf_shapes.iter().copied();
    let all = inner.chain(leaves).zip(first..);
    all.filter(|(shape, _)| shapes.contains(shape))
        .map(|(_, object)| object)
        .filter(|object| rooted.binary_search(object).is_err())
        .collect()
}

/// Makes unreachable objects GC roots: first the unreachable objects in `first`, then objects without referrers, then
/// class loaders. Returns the number of new roots.
fn add_roots(
    graph: &mut HeapGraph,
    parts: &Parts<'_>,
    missing: MissingRoots,
    first: &[u32],
) -> usize {
    let mut search = Search::new(graph, parts);
    let mut added: Vec<u32> = Vec::new();
    let root = |search: &mut Search<'_>, added: &mut Vec<u32>, object: u32| {
        if object < graph.objects && !search.reached.has(object) {
            added.push(object);
            search.reach(object);
        }
    };
    for &object in first {
        root(&mut search, &mut added, object);
    }
    for object in search.without_referrers() {
        root(&mut search, &mut added, object);
    }
    let classes = parts.classes.iter().take(parts.classes.dumped());
    for (_, class) in classes.filter(|(_, c)| !c.loader.is_null()) {
        let loader = parts.map.by_id(class.loader.0, parts.split);
        root(&mut search, &mut added, loader);
    }
    drop(search);
    let count = added.len();
    let kind = missing.root_kind();
    graph.roots.extend(added.into_iter().map(|o| (o, kind)));
    graph.roots.sort_unstable();
    count
}

/// A search for the objects that GC roots reach.
struct Search<'a> {
    graph: &'a HeapGraph,
    parts: &'a Parts<'a>,
    /// For each shape (class, and length of an array), the class that objects of this shape keep alive.
    of_shape: ShapeClasses,
    /// The referents of soft and final reference objects, by reference object.
    referents: FxHashMap<u32, Vec<u32>>,
    reached: Bits,
    stack: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a HeapGraph, parts: &'a Parts<'a>) -> Self {
        let mut referents: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for &(from, to) in graph.weaker.iter().flatten() {
            referents.entry(from).or_default().push(to);
        }
        let mut search = Self {
            graph,
            parts,
            of_shape: bare::shape_classes(
                &parts.scanned.shapes,
                parts.classes,
                parts.pinned,
                parts.split,
            ),
            referents,
            reached: Bits::new(graph.objects as usize),
            stack: Vec::new(),
        };
        for &(object, _) in &graph.roots {
            search.reach(object);
        }
        search
    }

    /// Calls `f` with each object that an object keeps alive.
    fn for_each_target(&self, object: u32, mut f: impl FnMut(u32)) {
        let Split { classes, inner } = self.parts.split;
        let scanned = self.parts.scanned;
        let shape = match object.checked_sub(inner) {
            Some(leaf) => scanned.leaf_shapes.get(leaf as usize).copied(),
            None => {
                for &target in self.graph.row(object) {
                    f(target);
                }
                if let Some(referents) = self.referents.get(&object) {
                    referents.iter().for_each(|&target| f(target));
                }
                let nth = object.checked_sub(classes);
                nth.and_then(|nth| scanned.inner_shapes.get(nth as usize))
                    .map(|&s| shape::plain(s))
            }
        };
        if let Some(shape) = shape {
            f(self.of_shape.of(&scanned.shapes, shape));
        }
    }

    /// Records in `reached` an object and all objects that are reachable from it.
    fn reach(&mut self, object: u32) {
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(object);
        while let Some(object) = stack.pop() {
            if object == NONE || self.reached.has(object) {
                continue;
            }
            self.reached.set(object);
            self.for_each_target(object, |target| {
                if target != NONE && !self.reached.has(target) {
                    stack.push(target);
                }
            });
        }
        self.stack = stack;
    }

    /// Returns the unreachable objects that no other object refers to, except class objects.
    fn without_referrers(&self) -> Vec<u32> {
        let first = self.parts.split.classes;
        let mut referred = Bits::new(self.graph.objects as usize);
        for object in (0..self.graph.objects).filter(|&o| !self.reached.has(o)) {
            self.for_each_target(object, |target| {
                if target != object && target != NONE {
                    referred.set(target);
                }
            });
        }
        let unreached = (first..self.graph.objects).filter(|&o| !self.reached.has(o));
        unreached.filter(|&o| !referred.has(o)).collect()
    }
}
