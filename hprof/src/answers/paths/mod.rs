//! Shortest paths from GC roots to objects.
//!
//! One breadth-first search gives a shortest path to every object asked for. It starts at the static
//! fields of the application's classes as well as at the true roots: a class of the application is
//! kept by its loader, so a path that goes all the way up begins with the loader of all classes and
//! says nothing. What keeps the class itself is found by a second search and shown before the path.

pub(crate) mod bidirectional;
mod breadth_first;
pub(crate) mod forest;
pub(crate) mod merged;
mod seeds;

use std::collections::BTreeSet;

use crate::answers::objects::reference::Via;
use crate::answers::paths::bidirectional::Bidirectional;
use crate::answers::paths::breadth_first::{Referents, WholeGraph};
use crate::answers::paths::forest::{PathForest, Searched, Statics, Step};
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::ids::{NONE, ObjectIndex};
use crate::options::Refs;
use crate::progress::Progress;
use crate::records::classes::Reference;
use crate::records::walk::RootKind;
use crate::snapshot::Snapshot;

/// How to look for paths.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
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
    pub(crate) near: PathForest,
    pub(crate) full: PathForest,
    /// The objects asked for, sorted.
    pub(crate) asked: Vec<ObjectIndex>,
    pub(crate) missing: Vec<ObjectIndex>,
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
        if let Some(mut ends) = Bidirectional::new(self, options.follow, &except) {
            progress.phase("searching for paths", 0);
            let search =
                |targets: &[ObjectIndex], statics: Statics<'_>| Ok(ends.search(targets, statics));
            if let Some(paths) = self.paths_by(&targets, options.from_statics, search)? {
                return Ok(paths);
            }
        }
        let graph = self.graph(progress)?;
        progress.go_on()?;
        let mut weak = if options.follow == Refs::Strong && self.options.refs != Refs::All {
            Vec::new()
        } else {
            progress.phase("reading reference objects", 0);
            self.referents()
        };
        weak.retain(|&(source, ..)| !except.has(source));
        let whole = WholeGraph {
            snapshot: self,
            except,
            graph: &graph,
            referents: Referents::new(weak, graph.object_count()),
            follow: options.follow,
        };
        progress.go_on()?;
        progress.phase("searching for paths", 0);
        let search = |targets: &[ObjectIndex], statics: Statics<'_>| {
            whole.search(targets, statics).map(Some)
        };
        let paths = self.paths_by(&targets, options.from_statics, search)?;
        // This search finds whatever there is.
        Ok(paths.unwrap_or_else(|| Paths {
            near: PathForest::default(),
            full: PathForest::default(),
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

    /// Looks up how each object of the forest is referred to by the one before.
    fn label(&self, forest: &mut PathForest) {
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
