//! Paths without a common reference, and the smallest set of references whose removal leaves no path.

use std::collections::BTreeSet;

use crate::answers::objects::reference::Via;
use crate::answers::paths::flow::Flow;
use crate::answers::paths::forest::PathForest;
use crate::answers::paths::merged::{Merge, PathTree};
use crate::answers::paths::{Path, PathOptions, Paths};
use crate::error::Result;
use crate::ids::{NONE, ObjectIndex};
use crate::progress::Progress;
use crate::snapshot::Snapshot;

/// Maximum number of references in [`DisjointPaths::cut`].
pub const MAX_CUT: usize = 3;

/// One reference of a cut, which is a set of references whose removal leaves no path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutReference {
    /// The object that has the reference.
    pub source: ObjectIndex,
    /// The field, the array element or another kind of reference.
    pub via: Via,
    /// The target of the reference.
    pub target: ObjectIndex,
}

/// Paths without a common reference. See [`Snapshot::disjoint_paths`].
#[derive(Debug)]
#[non_exhaustive]
pub struct DisjointPaths {
    /// The paths, shortest first. Each path leads to one of the targets.
    pub paths: Vec<Path>,
    /// A smallest set of references whose removal frees all targets that have a path. `None` if each such set has more
    /// than [`MAX_CUT`] references. Empty if no target has a path.
    pub cut: Option<Vec<CutReference>>,
    /// Number of targets that GC roots hold directly. Paths and cut do not take these targets into account.
    pub held_by_roots: u64,
}

impl Snapshot {
    /// Finds at most `limit` paths from static fields or GC roots to the targets. No two of these paths have a common
    /// reference. Also finds a smallest set of references whose removal frees the targets. Of several smallest sets, a
    /// set with fields of application classes is preferred, then a set near the targets.
    ///
    /// Class objects are held by their loaders. The search assumes that class objects stay reachable, unless a target
    /// is a class or a class loader.
    ///
    /// Cost: the heap graph is built again, and searched breadth-first about once for each path.
    ///
    /// # Errors
    /// If there is not enough memory for the graph.
    pub fn disjoint_paths(
        &self,
        targets: &[ObjectIndex],
        options: &PathOptions<'_>,
        limit: usize,
        progress: &dyn Progress,
    ) -> Result<DisjointPaths> {
        let targets = self.existing(targets);
        let graph = self.graph(progress)?;
        let whole = self.whole_graph(&graph, self.ignored(options), options, progress)?;
        progress.check_cancelled()?;
        progress.phase("searching for alternative paths", 0);
        let from_statics = options.from_statics && !targets.iter().any(|&t| self.is_class_like(t));
        let mut unloaded = BTreeSet::new();
        loop {
            let statics = from_statics.then_some(&unloaded);
            let seeds = self.seeds(statics);
            let seeds: Vec<u32> = seeds
                .into_iter()
                .filter(|s| !whole.except.has(*s))
                .collect();
            let (held, free): (Vec<ObjectIndex>, Vec<_>) = {
                let mut sorted = seeds.clone();
                sorted.sort_unstable();
                let is_seed = |t: &&ObjectIndex| sorted.binary_search(&t.0).is_ok();
                targets.iter().partition(is_seed)
            };
            let mut flow = Flow::new(&whole, statics, seeds, &free)?;
            let mut size = 0;
            while size < limit.max(MAX_CUT + 1) {
                progress.check_cancelled()?;
                match flow.augment() {
                    0 => break,
                    added => size += added as usize,
                }
            }
            let mut paths = flow.paths();
            if from_statics && !(options.except.is_empty() && options.without.is_empty()) {
                // If objects or fields are ignored, the class at which a path begins might be unreachable. Then the
                // search is repeated without paths that begin at this class.
                let heads = paths.iter().map(|path| ObjectIndex(path[0]));
                let heads: Vec<_> = heads.filter(|&o| self.represents(o).is_some()).collect();
                let (_, lost) = whole.search(&heads, None)?;
                if !lost.is_empty() {
                    unloaded.extend(lost.iter().map(|o| o.0));
                    continue;
                }
            }
            let cut = if size <= MAX_CUT {
                flow.prefer_application();
                while flow.augment() > 0 {}
                Some(self.cut_references(&flow.cut(), options))
            } else {
                None
            };
            paths.sort_by_key(Vec::len);
            paths.truncate(limit);
            let mut forest = self::forest(&paths);
            self.label(&mut forest, options.without);
            let path = |&(_, last): &(u32, u32)| {
                let steps = forest.steps(last as usize);
                Path {
                    root: self.tree().root_kind(steps[0].object),
                    steps,
                    begin: 0,
                }
            };
            return Ok(DisjointPaths {
                paths: forest.targets.iter().map(path).collect(),
                cut,
                held_by_roots: held.len() as u64,
            });
        }
    }

    /// Looks up the field or array element of each reference in `arcs`, which are pairs of source and target.
    fn cut_references(&self, arcs: &[(u32, u32)], options: &PathOptions<'_>) -> Vec<CutReference> {
        let pairs: Vec<Vec<u32>> = arcs.iter().map(|&(from, to)| vec![from, to]).collect();
        let mut forest = self::forest(&pairs);
        self.label(&mut forest, options.without);
        let ends = forest
            .objects
            .chunks_exact(2)
            .zip(forest.vias.chunks_exact(2));
        ends.map(|(objects, vias)| CutReference {
            source: ObjectIndex(objects[0]),
            via: vias[1].0,
            target: ObjectIndex(objects[1]),
        })
        .collect()
    }
}

impl DisjointPaths {
    /// Merges the first `count` paths into a tree with at most `limit` lines. If the tree would have more lines,
    /// objects of one class that are reached by the same fields are merged into one line.
    #[must_use]
    pub fn tree(&self, snapshot: &Snapshot, count: usize, limit: usize) -> PathTree {
        let paths = &self.paths[..count.min(self.paths.len())];
        let objects = paths
            .iter()
            .map(|path| path.steps.iter().map(|step| step.object.0));
        let mut near = forest(&objects.map(Iterator::collect).collect::<Vec<_>>());
        let steps = paths.iter().flat_map(|path| &path.steps);
        near.vias = steps
            .map(|step| (step.via.unwrap_or(Via::ClassPart), step.strength))
            .collect();
        let merge = if near.objects.len() <= limit {
            Merge::Object
        } else {
            Merge::Class
        };
        let paths = Paths {
            near,
            full: PathForest::default(),
            asked: Vec::new(),
            missing: Vec::new(),
        };
        paths.merged(snapshot, merge, limit)
    }
}

/// Builds a forest (a set of trees) from paths. If several paths contain an object, the forest has a separate entry for
/// each of these paths. The forest's `targets` are the last objects of the paths, in the order of `paths`.
fn forest(paths: &[Vec<u32>]) -> PathForest {
    let mut forest = PathForest::default();
    for path in paths {
        for (at, &object) in path.iter().enumerate() {
            let previous = (forest.objects.len() as u32).wrapping_sub(1);
            forest.parents.push(if at == 0 { NONE } else { previous });
            forest.objects.push(object);
            if at + 1 == path.len() {
                forest.targets.push((object, previous.wrapping_add(1)));
            }
        }
    }
    forest.strong = forest.objects.len();
    forest
}
