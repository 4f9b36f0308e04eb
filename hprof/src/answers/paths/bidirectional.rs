//! Finds shortest paths to at most 64 objects by a search from both ends, without the heap graph.
//!
//! One search goes forwards from the objects at which paths begin, level by level. The other goes backwards from the
//! target. In each step, the search whose next level costs less continues, until the two meet.
//!
//! If there are several shortest paths, the result is the path that a breadth-first search of the whole graph finds:
//!
//! - The forward search visits objects in the order of a breadth-first search.
//! - When the two searches meet, both may have reached several objects of the forward search's last level. The path
//!   goes through the first of these objects.
//! - From that object on, the path follows in each adjacency list the first reference that leads nearer to the target.

use rustc_hash::FxHashMap;

use crate::answers::paths::forest::{PathForest, Searched, Statics};
use crate::answers::rows::Rows;
use crate::graph::bits::Bits;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::index::inbound::Damaged;
use crate::options::Refs;
use crate::records::record::Kind;
use crate::snapshot::Snapshot;

/// Maximum number of targets. If there are more, the heap graph is built and searched instead.
const TARGETS: usize = 64;
/// Maximum cost of a search, in units of about ten nanoseconds: a third of a second.
const BUDGET: u64 = 30_000_000;
/// Cost of reading an object's record to find its references, in units of about ten nanoseconds. Each element of an
/// array adds [`ELEMENT`].
const RECORD: u64 = 100;
const ELEMENT: u64 = 5;
/// Cost of reading the list of an object's referrers, in units of about ten nanoseconds. Each referrer in the list
/// costs [`SOURCE`] more.
const LIST: u64 = 30;
const SOURCE: u64 = 5;
/// Number of objects whose references are read together.
const CHUNK: usize = 1 << 12;

/// Searches for paths from both ends.
pub(crate) struct Bidirectional<'a> {
    snapshot: &'a Snapshot,
    pub(crate) rows: Rows<'a>,
    follow: Refs,
    except: &'a Bits,
    left: u64,
}

/// The result of a search for a path to one object.
pub(crate) enum PathSearch {
    /// A path.
    Found(Vec<u32>),
    /// No path leads to the target. The list contains the target and all other objects that the backward search
    /// reached. No path leads to these objects, either. The list is empty if the search ignores the target.
    Nowhere(Vec<u32>),
}

/// The objects that the forward search has reached, in breadth-first order. The search always reaches whole levels.
pub(crate) struct Forward {
    queue: Vec<u32>,
    /// For each object of `queue`, the index in `queue` of the previous object on the path. [`NONE`] for an object at
    /// which paths begin.
    parents: Vec<u32>,
    places: FxHashMap<u32, u32>,
    /// The queue index where each level begins.
    levels: Vec<usize>,
    /// The cost of extending the search by one level, in units of about ten nanoseconds.
    cost: u64,
}

impl Forward {
    fn visit(&mut self, object: u32, parent: u32) {
        let place = self.queue.len() as u32;
        if let std::collections::hash_map::Entry::Vacant(free) = self.places.entry(object) {
            free.insert(place);
            self.queue.push(object);
            self.parents.push(parent);
        }
    }

    fn last_level(&self) -> std::ops::Range<usize> {
        self.levels.last().copied().unwrap_or(0)..self.queue.len()
    }

    /// Returns the path to the object at an index of `queue`. The path begins at an object without a previous object.
    fn path(&self, place: u32) -> Vec<u32> {
        let up = |&at: &u32| Some(self.parents[at as usize]).filter(|&p| p != NONE);
        let mut path: Vec<u32> = std::iter::successors(Some(place), up)
            .map(|at| self.queue[at as usize])
            .collect();
        path.reverse();
        path
    }
}

impl<'a> Bidirectional<'a> {
    /// Prepares searches. Returns `None` if the snapshot has no lists of referrers, or if the graph follows weak
    /// references like strong references.
    pub(crate) fn new(snapshot: &'a Snapshot, follow: Refs, except: &'a Bits) -> Option<Self> {
        if snapshot.options.refs == Refs::All {
            return None;
        }
        Some(Self {
            snapshot,
            rows: Rows::new(snapshot)?,
            follow,
            except,
            left: BUDGET,
        })
    }

    /// Finds paths of strong references to the targets. Also returns the targets that no path of any kind reaches.
    /// Returns `None` in these cases:
    ///
    /// - There are more than [`TARGETS`] targets.
    /// - The search would cost more than is left of [`BUDGET`].
    /// - No path of strong references leads to one of the targets, but a weaker path may exist.
    pub(crate) fn search(
        &mut self,
        targets: &[ObjectIndex],
        statics: Statics<'_>,
    ) -> Option<Searched> {
        if targets.len() > TARGETS {
            return None;
        }
        // If the search follows only references that retain objects, an unreachable object has no path.
        let retains = self.follow != Refs::All
            && (self.follow == Refs::Strong || self.snapshot.options.refs == Refs::Soft);
        let tree = self.snapshot.tree();
        let lost = |t: &&ObjectIndex| retains && !tree.is_reachable(**t);
        let (unfound, sought): (Vec<ObjectIndex>, Vec<ObjectIndex>) =
            targets.iter().partition(lost);
        if sought.is_empty() {
            return Some((PathForest::default(), unfound));
        }
        let mut forward = self.forward(statics);
        let mut paths = Vec::with_capacity(sought.len());
        for &target in &sought {
            match self.path(&mut forward, target.0, statics)? {
                PathSearch::Found(path) => paths.push(path),
                PathSearch::Nowhere(_) => return None,
            }
        }
        Some((self.forest(&forward, &paths, statics), unfound))
    }

    /// Starts a forward search at the objects at which paths begin.
    pub(crate) fn forward(&self, statics: Statics<'_>) -> Forward {
        let mut forward = Forward {
            queue: Vec::new(),
            parents: Vec::new(),
            places: FxHashMap::default(),
            levels: vec![0],
            cost: 0,
        };
        for seed in self.snapshot.seeds(statics) {
            if !self.except.has(seed) {
                forward.visit(seed, NONE);
            }
        }
        forward.cost = self.cost_of_rows(&forward.queue);
        forward
    }

    /// Returns the cost of reading the references of these objects, in units of about ten nanoseconds.
    fn cost_of_rows(&self, objects: &[u32]) -> u64 {
        let linked = objects.iter().filter(|&&o| o < self.snapshot.split.inner);
        let each = linked.map(|&o| {
            let elements = self.snapshot.array_length(ObjectIndex(o)).unwrap_or(0);
            RECORD + ELEMENT * u64::from(elements)
        });
        each.sum()
    }

    fn cost_of_lists(&self, objects: &[u32]) -> Result<u64, Damaged> {
        let each = objects
            .iter()
            .map(|&o| Ok(LIST + SOURCE * self.rows.referrers_cost(o)?));
        each.sum()
    }

    /// Returns for each of `objects` the targets of its references. If paths begin at static fields, the result for an
    /// application class contains only the targets of its static fields.
    fn rows_of(&self, objects: &[u32], statics: Statics<'_>) -> Vec<Vec<u32>> {
        let mut rows = self.rows.of(objects);
        for (&object, row) in objects.iter().zip(&mut rows) {
            if statics.is_some() && self.snapshot.is_application_class(object) {
                *row = self.statics_of(object);
            }
        }
        rows
    }

    fn statics_of(&self, class: u32) -> Vec<u32> {
        let fields = self.snapshot.classes()[ClassIndex(class)].statics.iter();
        let ids = fields.filter(|f| f.kind == Kind::Object);
        let found = ids.filter_map(|f| self.snapshot.find(ObjectId(f.value)));
        found.map(|o| o.0).collect()
    }

    /// Finds the path to one object. Returns `None` if the search would cost more than is left of [`BUDGET`].
    pub(crate) fn path(
        &mut self,
        forward: &mut Forward,
        target: u32,
        statics: Statics<'_>,
    ) -> Option<PathSearch> {
        if self.except.has(target) {
            return Some(PathSearch::Nowhere(Vec::new()));
        }
        if let Some(&place) = forward.places.get(&target) {
            return Some(PathSearch::Found(forward.path(place)));
        }
        let mut distance: FxHashMap<u32, u32> = FxHashMap::default();
        distance.insert(target, 0);
        let mut level = vec![target];
        let mut levels = 0;
        let mut cost = self.cost_of_lists(&level).ok()?;
        let meeting = loop {
            let (least, backward) = match forward.cost.checked_sub(cost) {
                Some(_) => (cost, true),
                None => (forward.cost, false),
            };
            self.left = self.left.checked_sub(least.max(LIST))?;
            if backward {
                levels += 1;
                level = self
                    .previous_level(&level, statics, &mut distance, levels)
                    .ok()?;
                if level.is_empty() {
                    return Some(PathSearch::Nowhere(distance.into_keys().collect()));
                }
                let met = level.iter().filter_map(|o| forward.places.get(o));
                if let Some(&place) = met.min() {
                    break place;
                }
                cost = self.cost_of_lists(&level).ok()?;
            } else {
                self.advance(forward, statics);
                let new = forward.last_level();
                if new.is_empty() {
                    // The forward search has reached everything that it can reach, so there is no path. The backward
                    // search continues alone, because the result contains all objects that the backward search reaches.
                    forward.cost = u64::MAX;
                    continue;
                }
                let mut places = new.zip(&forward.queue[forward.last_level()]);
                if let Some((place, _)) = places.find(|(_, o)| distance.contains_key(*o)) {
                    break place as u32;
                }
            }
        };
        let mut path = forward.path(meeting);
        let mut at = forward.queue[meeting as usize];
        for left in (0..*distance.get(&at)?).rev() {
            let row = self.rows_of(&[at], statics).pop()?;
            at = row.into_iter().find(|o| distance.get(o) == Some(&left))?;
            path.push(at);
        }
        Some(PathSearch::Found(path))
    }

    /// Adds one level to the forward search.
    fn advance(&self, forward: &mut Forward, statics: Statics<'_>) {
        let level = forward.last_level();
        forward.levels.push(level.end);
        for first in level.clone().step_by(CHUNK) {
            let places = first..level.end.min(first + CHUNK);
            let rows = self.rows_of(&forward.queue[places.clone()], statics);
            for (place, row) in places.zip(rows) {
                let new = row.into_iter().filter(|&o| !self.except.has(o));
                new.for_each(|object| forward.visit(object, place as u32));
            }
        }
        forward.cost = self.cost_of_rows(&forward.queue[level.end..]);
    }

    /// Returns the next level of the backward search: objects that refer to objects of `level`.
    fn previous_level(
        &self,
        level: &[u32],
        statics: Statics<'_>,
        distance: &mut FxHashMap<u32, u32>,
        levels: u32,
    ) -> Result<Vec<u32>, Damaged> {
        let mut next = Vec::new();
        for &object in level {
            for source in self.rows.referrers_of(object)? {
                let leads = statics.is_none()
                    || !self.snapshot.is_application_class(source)
                    || self.statics_of(source).contains(&object);
                if leads && !self.except.has(source) && !distance.contains_key(&source) {
                    distance.insert(source, levels);
                    next.push(source);
                }
            }
        }
        Ok(next)
    }

    /// Joins the paths into a forest, in the order of a breadth-first search.
    fn forest(&self, forward: &Forward, paths: &[Vec<u32>], statics: Statics<'_>) -> PathForest {
        let mut forest = PathForest::default();
        let mut places: FxHashMap<u32, u32> = FxHashMap::default();
        let deepest = paths.iter().map(Vec::len).max().unwrap_or(0);
        for depth in 0..deepest {
            // Each element has three numbers: the forest index of the previous object on the path, a rank, and the
            // object. A breadth-first search visits objects with the same previous object in ascending order of their
            // ranks.
            let mut level: Vec<(u32, u32, u32)> = Vec::new();
            for path in paths {
                let Some(&object) = path.get(depth) else {
                    continue;
                };
                let before = depth.checked_sub(1).map(|d| path[d]);
                let parent = before.and_then(|b| places.get(&b).copied());
                level.push((parent.unwrap_or(NONE), 0, object));
            }
            level.sort_unstable();
            level.dedup();
            for step in &mut level {
                step.1 = match forward.places.get(&step.2) {
                    Some(&place) => place,
                    // With one path there is nothing to sort.
                    None if paths.len() == 1 => 0,
                    None => {
                        let before = forest.objects.get(step.0 as usize);
                        let rows = before.map(|&b| self.rows_of(&[b], statics));
                        let row = rows.and_then(|mut rows| rows.pop()).unwrap_or_default();
                        let at = row.iter().position(|&o| o == step.2);
                        at.map_or(NONE, |at| at as u32)
                    }
                };
            }
            level.sort_unstable();
            for (parent, _, object) in level {
                places.insert(object, forest.objects.len() as u32);
                forest.objects.push(object);
                forest.parents.push(parent);
            }
        }
        forest.targets = paths
            .iter()
            .filter_map(|path| path.last())
            .filter_map(|&target| Some((target, *places.get(&target)?)))
            .collect();
        forest.targets.sort_unstable();
        forest.strong = forest.objects.len();
        forest
    }
}
