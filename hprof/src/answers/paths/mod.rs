//! Shortest paths from GC roots to objects.
//!
//! One breadth-first search gives a shortest path to every object asked for. It starts at the static
//! fields of the application's classes as well as at the true roots: a class of the application is
//! kept by its loader, so a path that goes all the way up begins with the loader of all classes and
//! says nothing. What keeps the class itself is found by a second search and shown before the path.

pub(crate) mod bidirectional;
pub(crate) mod merged;

use crate::Refs;
use std::collections::BTreeSet;

use crate::answers::objects::reference::Via;
use crate::answers::paths::bidirectional::BothEnds;
use crate::bytes::mem::{self, Array};
use crate::dominators::tree::Node;
use crate::error::Result;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::progress::Progress;
use crate::records::classes::Reference;
use crate::records::record::Kind;
use crate::records::walk::RootKind;
use crate::snapshot::Snapshot;

/// How to look for paths.
#[derive(Clone, Copy, Debug)]
pub struct PathOptions<'a> {
    /// Which references are followed for objects that no path of strong references leads to: none,
    /// soft ones and then finalizers', or weak and then phantom ones too.
    pub follow: Refs,
    /// Whether paths begin at the application's static fields, rather than with what keeps the
    /// class. Paths to class objects and class loaders never do.
    pub from_statics: bool,
    /// Objects that no path leads to or through, as though they were not in the dump.
    pub except: &'a [ObjectIndex],
}

impl Default for PathOptions<'_> {
    fn default() -> Self {
        Self {
            follow: Refs::Strong,
            from_statics: true,
            except: &[],
        }
    }
}

/// An object on a path and how the one before it refers to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The object.
    pub object: ObjectIndex,
    /// How the object before refers to it; `None` for the first.
    pub via: Option<Via>,
    /// The kind of reference object whose referent this is; [`Reference::No`] for strong references.
    pub strength: Reference,
}

/// A shortest path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// The kind of GC root that holds the first object; `None` when no path of the references that
    /// were followed leads to the class at which the path begins.
    pub root: Option<RootKind>,
    /// The objects, from the root's to the one asked for.
    pub steps: Vec<Step>,
    /// Where the part to show begins: steps before it tell what keeps the class whose static field
    /// the path goes through.
    pub begin: usize,
}

/// Shortest paths to a set of objects, see [`Snapshot::paths`].
#[derive(Debug)]
pub struct Paths {
    /// Paths that begin at static fields or roots, and the full ones.
    pub(crate) near: Forest,
    pub(crate) full: Forest,
    /// What was asked for, sorted.
    pub(crate) asked: Vec<ObjectIndex>,
    pub(crate) missing: Vec<ObjectIndex>,
}

/// The objects on paths, each after the one that it is reached from.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    pub(crate) objects: Vec<u32>,
    /// Place of the object before, [`NONE`] for the first of a path.
    pub(crate) parents: Vec<u32>,
    pub(crate) vias: Vec<(Via, Reference)>,
    /// The objects that were asked for, sorted, with their places.
    pub(crate) targets: Vec<(u32, u32)>,
    /// Those before this place were reached by strong references only.
    pub(crate) strong: usize,
}

impl Forest {
    /// The first objects of the paths.
    fn heads(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        let both = self.parents.iter().zip(&self.objects);
        both.filter(|(p, _)| **p == NONE)
            .map(|(_, &o)| ObjectIndex(o))
    }

    fn place(&self, target: ObjectIndex) -> Option<usize> {
        let at = self.targets.binary_search_by_key(&target.0, |t| t.0).ok()?;
        Some(self.targets[at].1 as usize)
    }

    /// The path to a place, its first step first.
    fn steps(&self, place: usize) -> Vec<Step> {
        let up = |&at: &usize| Some(self.parents[at] as usize).filter(|&p| p != NONE as usize);
        let mut steps: Vec<Step> = std::iter::successors(Some(place), up)
            .map(|at| {
                let (via, strength) = self.vias[at];
                Step {
                    object: ObjectIndex(self.objects[at]),
                    via: (self.parents[at] != NONE).then_some(via),
                    strength,
                }
            })
            .collect();
        steps.reverse();
        steps
    }
}

impl Paths {
    /// The objects that no path was found to: unreachable, or reachable only by weaker references
    /// than were followed.
    #[must_use]
    pub fn missing(&self) -> &[ObjectIndex] {
        &self.missing
    }

    /// A shortest path to one of the objects asked for.
    #[must_use]
    pub fn path(&self, snapshot: &Snapshot, target: ObjectIndex) -> Option<Path> {
        let kind = |steps: &[Step]| {
            let first = steps.first()?;
            snapshot.tree().root_kind(first.object)
        };
        let Some(place) = self.near.place(target) else {
            let steps = self.full.steps(self.full.place(target)?);
            let by_static = |s: &Step| matches!(s.via, Some(Via::Static(..)));
            let own = |s: &Step| snapshot.is_application_class(s.object.0);
            // A weaker path, too, is shown from a static field of the application on.
            let begin = steps
                .windows(2)
                .collect::<Vec<_>>()
                .iter()
                .rposition(|s| own(&s[0]) && by_static(&s[1]));
            return Some(Path {
                root: kind(&steps),
                begin: begin
                    .filter(|_| !snapshot.is_class_like(target))
                    .unwrap_or(0),
                steps,
            });
        };
        let mut near = self.near.steps(place);
        let head = near.first()?.object;
        match self.full.place(head) {
            Some(place) if snapshot.tree().root_kind(head).is_none() => {
                let mut steps = self.full.steps(place);
                let begin = steps.len() - 1;
                steps.extend(near.drain(1..));
                Some(Path {
                    root: kind(&steps),
                    steps,
                    begin,
                })
            }
            _ => Some(Path {
                root: kind(&near),
                steps: near,
                begin: 0,
            }),
        }
    }
}

impl Snapshot {
    /// Finds a shortest path to each of the objects. Of several, one through an application's static
    /// field comes first, then through other classes, threads, JNI references, other roots; and
    /// strong paths, however long, come before weaker ones.
    ///
    /// Cost: the heap graph is built once more, and searched breadth-first up to twice; about
    /// eight bytes an object besides the graph. Of a snapshot from an index, paths to a few objects are looked
    /// for from both ends first, which mostly takes a few thousand looks.
    ///
    /// # Errors
    /// When there is no memory for the graph.
    pub fn paths(
        &self,
        targets: &[ObjectIndex],
        options: &PathOptions<'_>,
        progress: &dyn Progress,
    ) -> Result<Paths> {
        let mut targets: Vec<ObjectIndex> = targets
            .iter()
            .copied()
            .filter(|t| u64::from(t.0) < self.object_count())
            .collect();
        targets.sort_unstable();
        targets.dedup();
        let mut except = Bits::new(match options.except {
            [] => 0,
            _ => self.object_count() as usize,
        });
        let known = |o: &&ObjectIndex| u64::from(o.0) < self.object_count();
        options
            .except
            .iter()
            .filter(known)
            .for_each(|o| except.set(o.0));
        if let Some(mut ends) = BothEnds::new(self, options.follow, &except) {
            progress.phase("searching paths", 0);
            let search =
                |targets: &[ObjectIndex], statics: Statics<'_>| Ok(ends.search(targets, statics));
            if let Some(paths) = self.paths_by(&targets, options.from_statics, search)? {
                return Ok(paths);
            }
        }
        let graph = self.graph(progress)?;
        let mut weak = if options.follow == Refs::Strong && self.options.refs != Refs::All {
            Vec::new()
        } else {
            progress.phase("reading reference objects", 0);
            self.referents()
        };
        weak.retain(|&(source, ..)| !except.has(source));
        let field = Field {
            snapshot: self,
            except,
            graph: &graph,
            referents: Referents::new(weak, graph.object_count()),
            follow: options.follow,
        };
        progress.phase("searching paths", 0);
        let search = |targets: &[ObjectIndex], statics: Statics<'_>| {
            field.search(targets, statics).map(Some)
        };
        let paths = self.paths_by(&targets, options.from_statics, search)?;
        // This search finds whatever there is.
        Ok(paths.unwrap_or_else(|| Paths {
            near: Forest::default(),
            full: Forest::default(),
            asked: Vec::new(),
            missing: Vec::new(),
        }))
    }

    /// Paths as a search finds them; `None` when it gives up.
    fn paths_by(
        &self,
        targets: &[ObjectIndex],
        from_statics: bool,
        mut search: impl FnMut(&[ObjectIndex], Statics<'_>) -> Result<Option<Searched>>,
    ) -> Result<Option<Paths>> {
        let (near_targets, full_targets): (Vec<_>, Vec<_>) = targets
            .iter()
            .partition(|&&t| from_statics && !self.is_class_like(t));
        let mut weak_classes = BTreeSet::new();
        let (mut near, mut full, missing) = loop {
            let statics = Some(&weak_classes);
            let Some((near, unfound)) = search(&near_targets, statics)? else {
                return Ok(None);
            };
            let heads = near.heads().filter(|&o| self.tree().root_kind(o).is_none());
            let heads: Vec<ObjectIndex> = heads.collect();
            let mut asked = [full_targets.clone(), unfound].concat();
            asked.sort_unstable();
            let mut all: Vec<ObjectIndex> = asked.iter().chain(&heads).copied().collect();
            all.sort_unstable();
            all.dedup();
            let Some((full, unfound)) = search(&all, None)? else {
                return Ok(None);
            };
            // A class that is not strongly reached starts no strong path. Next to never is there one.
            let before = weak_classes.len();
            let strong = |o: &ObjectIndex| full.place(*o).is_some_and(|p| p < full.strong);
            weak_classes.extend(heads.iter().filter(|o| !strong(o)).map(|o| o.0));
            if weak_classes.len() == before {
                let missing = unfound.into_iter();
                let missing = missing.filter(|t| asked.binary_search(t).is_ok());
                break (near, full, missing.collect::<Vec<_>>());
            }
        };
        self.label(&mut near);
        self.label(&mut full);
        Ok(Some(Paths {
            near,
            full,
            asked: targets.to_vec(),
            missing,
        }))
    }

    /// Class objects and class loaders: what their classes' static fields hold does not tell what
    /// keeps them.
    fn is_class_like(&self, object: ObjectIndex) -> bool {
        let classes = self.classes();
        let mut chain = self
            .class_of(object)
            .into_iter()
            .flat_map(|c| classes.chain(c));
        self.represents(object).is_some()
            || chain.any(|c| {
                let class = &classes[c];
                class.loader.is_null() && &*class.name == "java.lang.ClassLoader"
            })
    }

    /// Whether an object is the class object of a class that the application brought.
    pub(crate) fn is_application_class(&self, object: u32) -> bool {
        object < self.split.classes && !self.classes()[ClassIndex(object)].loader.is_null()
    }

    /// Looks up how each object of the forest is referred to by the one before.
    fn label(&self, forest: &mut Forest) {
        const CHUNK: usize = 1 << 18;
        forest.vias = vec![(Via::ClassPart, Reference::No); forest.objects.len()];
        // Edges by source: its number, the target's, the target's place.
        let mut edges: Vec<(u32, u32, u32)> = forest
            .objects
            .iter()
            .zip(&forest.parents)
            .zip(0..)
            .filter(|((_, parent), _)| **parent != NONE)
            .map(|((&object, &parent), place)| (forest.objects[parent as usize], object, place))
            .collect();
        edges.sort_unstable();
        let unwritten = self.unwritten();
        let groups: Vec<&[(u32, u32, u32)]> = edges.chunk_by(|a, b| a.0 == b.0).collect();
        for groups in groups.chunks(CHUNK) {
            let sources: Vec<ObjectIndex> = groups.iter().map(|g| ObjectIndex(g[0].0)).collect();
            let raws = self.raws(&sources);
            for ((&source, edges), raw) in sources.iter().zip(groups).zip(raws) {
                let mut found = vec![false; edges.len()];
                let mut left = edges.len();
                let mut see = |target: u32, way| {
                    let Ok(at) = edges.binary_search_by_key(&target, |e| e.1) else {
                        return;
                    };
                    if !std::mem::replace(&mut found[at], true) {
                        forest.vias[edges[at].2 as usize] = self.via(source, way);
                        left -= 1;
                    }
                };
                if let Some(class) = self.represents(source) {
                    self.each_of_class(class, |id, way| see(self.number_of(id), way));
                } else if let Some(raw) = raw {
                    self.each_in_record(raw.body, |id, way| {
                        if id != 0 {
                            see(self.number_of(id), way);
                        }
                    });
                }
                if left > 0 {
                    for (target, way) in unwritten.of(source.0) {
                        if let Ok(at) = edges.binary_search_by_key(&target, |e| e.1)
                            && !std::mem::replace(&mut found[at], true)
                        {
                            forest.vias[edges[at].2 as usize] = self.via(source, way);
                        }
                    }
                }
            }
        }
    }
}

/// What is searched.
struct Field<'a> {
    snapshot: &'a Snapshot,
    except: Bits,
    graph: &'a HeapGraph,
    referents: Referents,
    follow: Refs,
}

/// One bit an object.
#[derive(Clone, Debug)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }
    #[inline(always)]
    pub(crate) fn set(&mut self, at: u32) {
        self.0[at as usize / 64] |= 1 << (at % 64);
    }
    #[inline(always)]
    pub(crate) fn has(&self, at: u32) -> bool {
        self.0
            .get(at as usize / 64)
            .is_some_and(|w| w & 1 << (at % 64) != 0)
    }
    /// Those that are set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().zip(0..).flat_map(|(&word, at)| {
            let bits = (0..64).filter(move |bit| word & 1 << bit != 0);
            bits.map(move |bit| at * 64 + bit)
        })
    }
    pub(crate) fn take(&mut self, at: u32) -> bool {
        let had = self.has(at);
        self.0[at as usize / 64] &= !(1 << (at % 64));
        had
    }
}

/// The referents of reference objects, apart from all other references.
struct Referents {
    list: Vec<(u32, u32, Reference)>,
    sources: Bits,
}

impl Referents {
    fn new(list: Vec<(u32, u32, Reference)>, objects: usize) -> Self {
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

/// How weak a reference is: stronger ones are followed to the end before weaker ones.
const fn weakness(kind: Reference) -> u8 {
    match kind {
        Reference::No => 0,
        Reference::Soft => 1,
        Reference::Final => 2,
        Reference::Weak => 3,
        Reference::Phantom => 4,
    }
}

/// The parent of an object that a search starts from; others are stored plus [`OFFSET`].
const SEED: u32 = 1;
/// The parent of an object that is passed by.
const EXCEPT: u32 = 2;
const OFFSET: u32 = 3;

/// A search under way.
struct Search {
    /// For each object 0 when unseen, [`SEED`], [`EXCEPT`], or the object that it was reached from.
    parent: Array<u32>,
    /// Objects in the order they were reached.
    queue: Array<u32>,
    tail: usize,
    /// How many of them strong references reached.
    strong: usize,
    wanted: Bits,
    left: usize,
}

impl Search {
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

impl Field<'_> {
    /// Searches until all targets are found. Returns their paths, and those that have none.
    /// `statics` are the classes whose static fields are no start, `None` when none are.
    fn search(&self, targets: &[ObjectIndex], statics: Statics<'_>) -> Result<Searched> {
        if targets.is_empty() {
            return Ok((Forest::default(), Vec::new()));
        }
        let store = &self.snapshot.store;
        let objects = self.graph.object_count();
        let mut search = Search {
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
        // What only weaker references lead to is left to the search from the true roots, so that a
        // strong path always comes first.
        let levels: u8 = match self.follow {
            _ if statics.is_some() => 0,
            Refs::Strong => 0,
            Refs::Soft => 2,
            Refs::All => 4,
        };
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
    fn expand(&self, search: &mut Search, at: usize, level: u8, statics: bool) {
        let (graph, inner) = (self.graph, self.graph.split.inner);
        // Where this will be needed soon: first where its row begins, then the row.
        if let Some(&soon) = search.queue[..search.tail].get(at + 16) {
            mem::prefetch(&graph.offsets, soon as usize);
        }
        if let Some(&soon) = search.queue[..search.tail].get(at + 8)
            && soon < inner
        {
            mem::prefetch(&graph.targets, graph.offsets[soon as usize] as usize);
        }
        let object = search.queue[at];
        let referent = self.referents.of(object);
        if statics && self.snapshot.is_application_class(object) {
            let class = &self.snapshot.classes()[ClassIndex(object)];
            for field in class.statics.iter().filter(|f| f.kind == Kind::Object) {
                let target = self.snapshot.find(ObjectId(field.value));
                if let Some(target) = target {
                    search.visit(target.0, object + OFFSET);
                }
            }
        } else if object < inner {
            // A graph that follows all references has the referent among the others, once.
            let mut skip = match (self.snapshot.options.refs, referent) {
                (Refs::All, Some((target, _))) => target,
                _ => NONE,
            };
            for &target in graph.row(object) {
                if target == NONE {
                    continue;
                }
                if target == skip {
                    skip = NONE;
                    continue;
                }
                search.visit(target, object + OFFSET);
            }
        }
        if let Some((target, kind)) = referent
            && weakness(kind) <= level
        {
            search.visit(target, object + OFFSET);
        }
    }
}

impl Snapshot {
    /// What a search starts from, the more telling first.
    pub(crate) fn seeds(&self, statics: Statics<'_>) -> Vec<u32> {
        let classes = self.split.classes;
        let tree = self.tree();
        let mut seeds: Vec<(u8, u32)> = tree
            .roots
            .iter()
            .map(|&(object, kind)| {
                let rank = match kind {
                    _ if self.is_application_class(object) => 0,
                    _ if object < classes => 1,
                    RootKind::Thread => 2,
                    RootKind::JniGlobal | RootKind::JniLocal => 3,
                    _ => 4,
                };
                (rank, object)
            })
            .collect();
        if let Some(weak) = statics {
            let held = |&c: &u32| tree.node(ObjectIndex(c)).is_some_and(|n| n != Node::ROOT);
            let own = (0..classes).filter(|c| self.is_application_class(*c) && !weak.contains(c));
            seeds.extend(own.filter(held).map(|c| (0, c)));
        }
        seeds.sort_unstable();
        seeds.dedup();
        seeds.into_iter().map(|s| s.1).collect()
    }
}

/// Classes whose static fields no search starts from; `None` when it starts from none.
pub(crate) type Statics<'a> = Option<&'a BTreeSet<u32>>;

/// The paths of the targets that have one, and the others.
pub(crate) type Searched = (Forest, Vec<ObjectIndex>);

/// Keeps what leads to the targets.
fn forest(search: Search, targets: &[ObjectIndex]) -> Searched {
    let Search {
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
    let mut forest = Forest::default();
    for (at, &object) in queue[..tail].iter().enumerate() {
        if !on_path.has(object) {
            continue;
        }
        forest.strong += usize::from(at < strong);
        let from = parent[object as usize];
        // The array is used anew for the places of those that are done.
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
