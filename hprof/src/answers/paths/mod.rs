//! Shortest paths from GC roots to objects.
//!
//! An application class is kept alive by its loader. So every path from a GC root to a static field of the class begins
//! with the class loader, which is not informative. Therefore, one breadth-first search starts at the static fields of
//! application classes and at the GC roots. It finds a shortest path to every target. If a path begins at a static
//! field, a second search finds the path from a GC root to the class of this field. This part comes before the rest of
//! the path.

pub(crate) mod bidirectional;
mod breadth_first;
mod cut;
pub(crate) mod disjoint;
mod flow;
pub(crate) mod forest;
pub(crate) mod merged;
mod seeds;

use std::collections::BTreeSet;

use crate::answers::objects::reference::Via;
use crate::answers::paths::bidirectional::Bidirectional;
use crate::answers::paths::breadth_first::{Referents, WholeGraph};
use crate::answers::paths::cut::Cut;
use crate::answers::paths::forest::{PathForest, Searched, Statics, Step};
use crate::error::Result;
use crate::graph::bits::Bits;
use crate::graph::heap_graph::HeapGraph;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::options::Refs;
use crate::progress::Progress;
use crate::records::classes::Reference;
use crate::records::walk::RootKind;
use crate::snapshot::Snapshot;

/// Options for a search for paths.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathOptions<'a> {
    /// The references to follow if no path of strong references leads to an object: none for [`Refs::Strong`]; soft,
    /// then final references for [`Refs::Soft`]; soft, final, weak, then phantom references for [`Refs::All`].
    pub follow: Refs,
    /// True if paths begin at static fields of the application, instead of at the GC root that keeps the class alive.
    /// Paths to class objects and class loaders always begin at a GC root.
    pub from_statics: bool,
    /// Objects to ignore, as if they were not in the dump. No path leads to them or through them.
    pub except: &'a [ObjectIndex],
    /// Fields to ignore, as if they were null in all objects: [`Via::Field`] and [`Via::Static`].
    pub without: &'a [Via],
}

impl Default for PathOptions<'_> {
    fn default() -> Self {
        Self {
            follow: Refs::Strong,
            from_statics: true,
            except: &[],
            without: &[],
        }
    }
}

/// A shortest path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// The kind of GC root that holds the first object. `None` if no GC root holds the first object directly. The
    /// object is then a class, and the path begins at one of its static fields.
    pub root: Option<RootKind>,
    /// The objects, from the GC root to the target.
    pub steps: Vec<Step>,
    /// Index in `steps` of the first object to show. If the path goes through a static field, the objects before this
    /// index show what keeps the class of the field alive.
    pub begin: usize,
}

/// Shortest paths to a set of objects. See [`Snapshot::paths`].
#[derive(Debug)]
pub struct Paths {
    /// Paths that begin at static fields or GC roots.
    pub(crate) near: PathForest,
    pub(crate) full: PathForest,
    /// The targets, sorted.
    pub(crate) asked: Vec<ObjectIndex>,
    pub(crate) missing: Vec<ObjectIndex>,
}

impl Paths {
    /// Returns the targets without a path: unreachable objects, and objects that are reachable only through references
    /// that the search does not follow.
    #[must_use]
    pub fn missing(&self) -> &[ObjectIndex] {
        &self.missing
    }

    /// Returns for each target the last field (static or not) on its path whose declaring class `is_preferred` accepts.
    /// If the path has no such field, returns the last field on the path. `None` if the target has no path, or no field
    /// on it.
    ///
    /// Cost: linear in the number of objects on the paths, however long the paths are.
    #[must_use]
    pub fn last_fields(
        &self,
        targets: &[ObjectIndex],
        is_preferred: impl Fn(ClassIndex) -> bool,
    ) -> Vec<Option<Via>> {
        let [near, full] = [&self.near, &self.full].map(|f| f.last_fields(&is_preferred));
        let field = |&target: &ObjectIndex| match self.near.place(target) {
            Some(place) => near[place],
            None => full[self.full.place(target)?],
        };
        targets.iter().map(field).collect()
    }

    /// Returns a shortest path to one of the targets.
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
            // Hide the steps before the last static field of an application class. Paths in `near` hide such steps,
            // too.
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
    /// Finds a shortest path to each of `targets`. If there are several shortest paths, the order of preference is:
    /// through a static field of an application class, through other classes, threads, JNI references, other roots.
    /// Strong paths come before weaker paths, whatever their length.
    ///
    /// Cost: the heap graph is built again, and searched breadth-first at most twice, with about eight bytes for each
    /// object in addition to the graph. If the snapshot comes from an index and there are at most 64 targets, a search
    /// from both ends is tried first. This search usually visits a few thousand objects.
    ///
    /// # Errors
    /// If there is not enough memory for the graph.
    pub fn paths(
        &self,
        targets: &[ObjectIndex],
        options: &PathOptions<'_>,
        progress: &dyn Progress,
    ) -> Result<Paths> {
        let targets = self.existing(targets);
        let except = self.ignored(options);
        if options.without.is_empty()
            && let Some(mut ends) = Bidirectional::new(self, options.follow, &except)
        {
            progress.phase("searching for paths", 0);
            let search =
                |targets: &[ObjectIndex], statics: Statics<'_>| Ok(ends.search(targets, statics));
            if let Some(paths) = self.paths_by(&targets, options, search)? {
                return Ok(paths);
            }
        }
        let graph = self.graph(progress)?;
        let whole = self.whole_graph(&graph, except, options, progress)?;
        progress.check_cancelled()?;
        progress.phase("searching for paths", 0);
        let search = |targets: &[ObjectIndex], statics: Statics<'_>| {
            whole.search(targets, statics).map(Some)
        };
        let paths = self.paths_by(&targets, options, search)?;
        // A search of the whole graph always has a result, so this default is never used.
        Ok(paths.unwrap_or_else(|| Paths {
            near: PathForest::default(),
            full: PathForest::default(),
            asked: Vec::new(),
            missing: Vec::new(),
        }))
    }

    /// Returns the objects that exist, sorted, each once.
    fn existing(&self, objects: &[ObjectIndex]) -> Vec<ObjectIndex> {
        let known = |o: &ObjectIndex| u64::from(o.0) < self.object_count();
        let mut existing: Vec<ObjectIndex> = objects.iter().copied().filter(known).collect();
        existing.sort_unstable();
        existing.dedup();
        existing
    }

    fn ignored(&self, options: &PathOptions<'_>) -> Bits {
        let mut except = Bits::new(match options.except {
            [] => 0,
            _ => self.object_count() as usize,
        });
        let existing = self.existing(options.except);
        existing.iter().for_each(|o| except.set(o.0));
        except
    }

    /// Returns the graph without the objects and fields that `options` ignores.
    fn whole_graph<'a>(
        &'a self,
        graph: &'a HeapGraph,
        except: Bits,
        options: &PathOptions<'_>,
        progress: &dyn Progress,
    ) -> Result<WholeGraph<'a>> {
        progress.check_cancelled()?;
        let mut weak = if options.follow == Refs::Strong && self.options.refs != Refs::All {
            Vec::new()
        } else {
            progress.phase("reading reference objects", 0);
            self.referents()
        };
        let cut = Cut::new(self, options.without);
        weak.retain(|&(source, target, _)| {
            !except.has(source) && !cut.references(source).contains(&(source, target))
        });
        Ok(WholeGraph {
            snapshot: self,
            except,
            cut,
            graph,
            referents: Referents::new(weak, graph.object_count()),
            follow: options.follow,
        })
    }

    /// Builds paths from the results of `search`. Returns `None` if the search gives up.
    fn paths_by(
        &self,
        targets: &[ObjectIndex],
        options: &PathOptions<'_>,
        mut search: impl FnMut(&[ObjectIndex], Statics<'_>) -> Result<Option<Searched>>,
    ) -> Result<Option<Paths>> {
        let (near_targets, full_targets): (Vec<_>, Vec<_>) = targets
            .iter()
            .partition(|&&t| options.from_statics && !self.is_class_like(t));
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
            // A strong path cannot begin at a class that is not strongly reachable. Such classes are rare. If there are
            // any, the search is repeated without them.
            let before = weak_classes.len();
            let strong = |o: &ObjectIndex| full.place(*o).is_some_and(|p| p < full.strong);
            weak_classes.extend(heads.iter().filter(|o| !strong(o)).map(|o| o.0));
            if weak_classes.len() == before {
                let missing = unfound.into_iter();
                let missing = missing.filter(|t| asked.binary_search(t).is_ok());
                break (near, full, missing.collect::<Vec<_>>());
            }
        };
        self.label(&mut near, options.without);
        self.label(&mut full, options.without);
        Ok(Some(Paths {
            near,
            full,
            asked: targets.to_vec(),
            missing,
        }))
    }

    /// True for class objects and class loaders. A path to such an object does not begin at a static field, because the
    /// path would not show what keeps the object alive.
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

    /// Finds, for each object of `forest`, the reference from its parent in `forest`, which is the previous object on
    /// the path.
    fn label(&self, forest: &mut PathForest, without: &[Via]) {
        const CHUNK: usize = 1 << 18;
        forest.vias = vec![(Via::ClassPart, Reference::No); forest.objects.len()];
        // References, sorted by source. Each element has the source, the target, and the index of the target in
        // `forest`.
        let mut edges: Vec<(u32, u32, u32)> = forest
            .objects
            .iter()
            .zip(&forest.parents)
            .zip(0..)
            .filter(|((_, parent), _)| **parent != NONE)
            .map(|((&object, &parent), place)| (forest.objects[parent as usize], object, place))
            .collect();
        edges.sort_unstable();
        let unwritten = self.implicit_references();
        let groups: Vec<&[(u32, u32, u32)]> = edges.chunk_by(|a, b| a.0 == b.0).collect();
        for groups in groups.chunks(CHUNK) {
            let sources: Vec<ObjectIndex> = groups.iter().map(|g| ObjectIndex(g[0].0)).collect();
            let raws = self.records_of(&sources);
            for ((&source, edges), raw) in sources.iter().zip(groups).zip(raws) {
                let mut found = vec![false; edges.len()];
                let mut left = edges.len();
                let mut see = |target: u32, way| {
                    // Several paths may use different references from one object to another.
                    let first = edges.partition_point(|e| e.1 < target);
                    let same = edges[first..].partition_point(|e| e.1 == target);
                    let Some(at) = (first..first + same).find(|&at| !found[at]) else {
                        return;
                    };
                    let via = self.via(source, way);
                    if !without.contains(&via.0) {
                        found[at] = true;
                        forest.vias[edges[at].2 as usize] = via;
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
