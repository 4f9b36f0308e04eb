//! Finds shortest paths by a breadth-first search of the whole heap graph.

use crate::answers::paths::cut::Cut;
use crate::answers::paths::forest::{PathForest, Searched, Statics};
use crate::bytes::array::Array;
use crate::bytes::mem;
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::options::Refs;
use crate::records::classes::Reference;
use crate::records::record::Kind;
use crate::snapshot::Snapshot;

/// The heap graph, with the objects that a search leaves out and the weaker references that it follows.
pub(super) struct WholeGraph<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) except: Bits,
    pub(super) cut: Cut,
    pub(super) graph: &'a HeapGraph,
    pub(super) referents: Referents,
    pub(super) follow: Refs,
}

/// The referents of `java.lang.ref` objects, separate from all other references.
pub(super) struct Referents {
    list: Vec<(u32, u32, Reference)>,
    sources: Bits,
}

impl Referents {
    pub(super) fn new(list: Vec<(u32, u32, Reference)>, objects: usize) -> Self {
        let mut sources = Bits::new(if list.is_empty() { 0 } else { objects });
        list.iter().for_each(|r| sources.set(r.0));
        Self { list, sources }
    }

    #[inline(always)]
    fn of(&self, source: u32) -> Option<(u32, Reference)> {
        if !self.sources.has(source) {
            return None;
        }
        let at = self.list.binary_search_by_key(&source, |r| r.0).ok()?;
        Some((self.list[at].1, self.list[at].2))
    }
}

/// Returns the weakness of a reference as a number: 0 for a strong reference, and more for weaker references. The
/// search follows all references of one strength before it follows weaker ones.
const fn weakness(kind: Reference) -> u8 {
    match kind {
        Reference::No => 0,
        Reference::Soft => 1,
        Reference::Final => 2,
        Reference::Weak => 3,
        Reference::Phantom => 4,
    }
}

/// The entry in `parent` for an object from which the search starts. If an object has a parent, the entry is the number
/// of the parent plus [`OFFSET`].
const SEED: u32 = 1;
/// The entry in `parent` for an object that the search leaves out.
const EXCEPT: u32 = 2;
const OFFSET: u32 = 3;

/// The state of a search.
struct BreadthFirst {
    /// For each object: 0 if it was not reached, [`SEED`] if the search starts from it, [`EXCEPT`] if the search leaves
    /// it out, otherwise the object from which it was reached plus [`OFFSET`].
    parent: Array<u32>,
    /// Objects in the order in which they were reached.
    queue: Array<u32>,
    tail: usize,
    /// Number of objects in `queue` that strong references reached.
    strong: usize,
    wanted: Bits,
    left: usize,
}

impl BreadthFirst {
    #[inline(always)]
    fn visit(&mut self, object: u32, from: u32) {
        if self.parent[object as usize] == 0 {
            self.parent[object as usize] = from;
            self.queue[self.tail] = object;
            self.tail += 1;
            if self.wanted.take(object) {
                self.left -= 1;
            }
        }
    }
}

impl WholeGraph<'_> {
    /// Searches until all targets are found. Returns the paths, and the targets without a path. If `statics` is `None`,
    /// the search does not start at static fields. Otherwise it starts at the static fields of application classes. The
    /// set in `statics` has the application classes that are left out.
    pub(super) fn search(&self, targets: &[ObjectIndex], statics: Statics<'_>) -> Result<Searched> {
        if targets.is_empty() {
            return Ok((PathForest::default(), Vec::new()));
        }
        let store = &self.snapshot.store;
        let objects = self.graph.object_count();
        let mut search = BreadthFirst {
            parent: store.zeroed(objects)?,
            queue: store.zeroed(objects)?,
            tail: 0,
            strong: 0,
            wanted: Bits::new(objects),
            left: targets.len(),
        };
        targets.iter().for_each(|t| search.wanted.set(t.0));
        for object in self.except.iter() {
            search.parent[object as usize] = EXCEPT;
        }
        for seed in self.snapshot.seeds(statics) {
            search.visit(seed, SEED);
        }
        // A search that starts at static fields follows only strong references. Weaker references are left to the
        // search that starts at the GC roots, so that strong paths always come first.
        let levels = if statics.is_some() { 0 } else { self.weakest() };
        let mut head = 0;
        for level in 0..=levels {
            if level > 0 {
                for &(source, target, kind) in &self.referents.list {
                    if weakness(kind) == level && search.parent[source as usize] != 0 {
                        search.visit(target, source + OFFSET);
                    }
                }
            }
            while head < search.tail && search.left > 0 {
                self.expand(&mut search, head, level, statics.is_some());
                head += 1;
            }
            if level == 0 {
                search.strong = search.tail;
            }
        }
        Ok(forest(search, targets))
    }

    #[inline(always)]
    fn expand(&self, search: &mut BreadthFirst, at: usize, level: u8, statics: bool) {
        let (graph, inner) = (self.graph, self.graph.split.inner);
        // Prefetch what a later step needs: first the start of the adjacency list, then the list.
        if let Some(&soon) = search.queue[..search.tail].get(at + 16) {
            mem::prefetch(&graph.offsets, soon as usize);
        }
        if let Some(&soon) = search.queue[..search.tail].get(at + 8)
            && soon < inner
        {
            mem::prefetch(&graph.targets, graph.offsets[soon as usize] as usize);
        }
        let object = search.queue[at];
        self.each_target(object, level, statics, |target| {
            search.visit(target, object + OFFSET);
        });
    }

    /// Calls `visit` with the target of each followed reference of an object, once for each reference. If `statics` is
    /// true and the object is an application class, only its static fields are followed.
    #[inline(always)]
    pub(super) fn each_target(
        &self,
        object: u32,
        level: u8,
        statics: bool,
        mut visit: impl FnMut(u32),
    ) {
        let referent = self.referents.of(object);
        // The targets of ignored fields. For each ignored field, one reference to its target is skipped. Any other
        // reference to this target is followed.
        let mut cut: Vec<u32> = self
            .cut
            .references(object)
            .iter()
            .map(|cut| cut.1)
            .collect();
        let mut is_cut = |target| {
            let at = cut.iter().position(|&other| other == target);
            at.map(|at| cut.swap_remove(at)).is_some()
        };
        if statics && self.snapshot.is_application_class(object) {
            let class = &self.snapshot.classes()[ClassIndex(object)];
            for field in class.statics.iter().filter(|f| f.kind == Kind::Object) {
                let target = self.snapshot.find(ObjectId(field.value));
                if let Some(target) = target.filter(|target| !is_cut(target.0)) {
                    visit(target.0);
                }
            }
        } else {
            // If the graph follows all references, the adjacency list also contains the referent, which is visited
            // separately below. So skip the referent once in this list.
            let mut skip = match (self.snapshot.options.refs, referent) {
                (Refs::All, Some((target, _))) => target,
                _ => NONE,
            };
            for &target in self.graph.row(object) {
                if target == NONE {
                    continue;
                }
                if target == skip {
                    skip = NONE;
                    continue;
                }
                if !is_cut(target) {
                    visit(target);
                }
            }
        }
        if let Some((target, kind)) = referent
            && weakness(kind) <= level
        {
            visit(target);
        }
    }

    /// Returns the weakness (see `weakness`) of the weakest kind of reference that a search follows.
    pub(super) const fn weakest(&self) -> u8 {
        match self.follow {
            Refs::Strong => 0,
            Refs::Soft => 2,
            Refs::All => 4,
        }
    }
}

/// Reduces the result of a search to the paths that lead to `targets`.
fn forest(search: BreadthFirst, targets: &[ObjectIndex]) -> Searched {
    let BreadthFirst {
        mut parent,
        queue,
        tail,
        strong,
        ..
    } = search;
    let (found, unfound): (Vec<ObjectIndex>, Vec<ObjectIndex>) = targets
        .iter()
        .partition(|t| !matches!(parent[t.index()], 0 | EXCEPT));
    let mut on_path = Bits::new(parent.len());
    found.iter().for_each(|t| on_path.set(t.0));
    for &object in queue[..tail].iter().rev() {
        let from = parent[object as usize];
        if from >= OFFSET && on_path.has(object) {
            on_path.set(from - OFFSET);
        }
    }
    let mut forest = PathForest::default();
    for (at, &object) in queue[..tail].iter().enumerate() {
        if !on_path.has(object) {
            continue;
        }
        forest.strong += usize::from(at < strong);
        let from = parent[object as usize];
        // Reuse the array `parent`: for an object in the forest, the element is now the object's index in the forest.
        parent[object as usize] = forest.objects.len() as u32;
        let up = if from < OFFSET {
            NONE
        } else {
            parent[(from - OFFSET) as usize]
        };
        forest.objects.push(object);
        forest.parents.push(up);
    }
    let place = |t: ObjectIndex| (t.0, parent[t.index()]);
    forest.targets = found.into_iter().map(place).collect();
    forest.targets.sort_unstable();
    (forest, unfound)
}
