//! Finds out which objects would be freed if the program cleared a field. Objects that are reachable on another path
//! stay. Also finds the object that has the field.

use hprof::answers::Hold;
use hprof::dominators::Node;
use hprof::{ObjectIndex, Snapshot};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::names::{self, Label};
use crate::suspect::shared_paths;

/// Maximum number of references to follow for one object and field.
const REFERENCES: u32 = 1 << 14;
/// Maximum number of dominators to check above the object.
const DOMINATORS: usize = 1 << 8;

/// Checks whether an object would stay reachable if the field `field` were cleared in all objects. If it would, returns
/// the labels of references that lead around the field. Returns `None` in three cases: the object would be freed, no
/// path through the field was found, or a limit was reached.
///
/// Each dominator of the object is on all paths to the object. If all paths from one dominator to the next lead through
/// the field, clearing the field frees the object:
///
/// ```text
/// root -> ... -> dominator --field--> dominator -> ... -> object     cleared: the object is freed
///                    |                    ^
///                    +----- other --------+                          with this path, it stays
/// ```
///
/// Cost: reads at most 16,384 references.
pub(super) fn path_without(
    snapshot: &Snapshot,
    object: ObjectIndex,
    field: &str,
) -> Option<Vec<Label>> {
    let tree = snapshot.tree();
    let mut search = Search::new(snapshot, field);
    let mut other = None;
    let mut below = object;
    for _ in 0..DOMINATORS {
        let node = tree.dominator(below)?;
        let Some(above) = tree.object(node) else {
            // Only the virtual root dominates `below`. Paths from the GC roots to this object are not searched.
            return other;
        };
        match search.between(node, below)? {
            Between::OnlyTheField => return None,
            Between::OtherPath(_) if other.is_some() => {}
            Between::OtherPath(path) => other = Some(path),
            Between::NoField => {}
        }
        below = above;
    }
    None
}

/// Returns the nearest dominator of an object that has a non-null reference field of this name.
///
/// Cost: reads at most 16,384 references.
pub(super) fn holder_of(
    snapshot: &Snapshot,
    object: ObjectIndex,
    field: &str,
) -> Option<ObjectIndex> {
    let tree = snapshot.tree();
    let above = |&object: &ObjectIndex| tree.object(tree.dominator(object)?);
    let mut search = Search::new(snapshot, field);
    let chain = std::iter::successors(Some(object), above).take(DOMINATORS);
    for object in chain {
        let record = snapshot.read(object).ok()?;
        for (_, hold) in shared_paths::strong_references(snapshot, &record, search.left) {
            search.left = search.left.checked_sub(1)?;
            if search.has_name(hold) {
                return Some(object);
            }
        }
    }
    None
}

/// The result of a search for the field on the paths from a dominator to the next one.
enum Between {
    /// No path that the search found leads through the field.
    NoField,
    /// All paths lead through the field.
    OnlyTheField,
    /// At least one path leads through the field, and another path does not. The labels are those of the other path.
    OtherPath(Vec<Label>),
}

struct Search<'a> {
    snapshot: &'a Snapshot,
    field: &'a str,
    /// Results of earlier comparisons: for each kind of reference, true if its label is `field`.
    is_field: FxHashMap<Hold, bool>,
    /// Number of references that may still be read.
    left: u32,
}

/// An object that a search has reached, the index of its predecessor, and the kind of the reference from the
/// predecessor. An object at which the search began has no predecessor.
type Reached = (ObjectIndex, Option<(usize, Hold)>);

impl<'a> Search<'a> {
    fn new(snapshot: &'a Snapshot, field: &'a str) -> Self {
        Self {
            snapshot,
            field,
            is_field: FxHashMap::default(),
            left: REFERENCES,
        }
    }

    /// Searches for paths from the object of `node` to `below`, an object that `node` dominates directly. Returns
    /// `None` if the search has to stop because it has read [`REFERENCES`] references.
    fn between(&mut self, node: Node, below: ObjectIndex) -> Option<Between> {
        let above = self.snapshot.tree().object(node)?;
        let mut through_field = Vec::new();
        let mut other = self.path(&[above], (node, below), Some(&mut through_field))?;
        if other.is_none() && through_field.is_empty() {
            // A class loader refers to its classes, although no record in the dump contains these references.
            let classes: Vec<ObjectIndex> = shared_paths::loaded_by(self.snapshot, above).collect();
            if classes.contains(&below) {
                return Some(Between::NoField);
            }
            other = self.path(&classes, (node, below), Some(&mut through_field))?;
        }
        if through_field.is_empty() {
            return Some(Between::NoField);
        }
        let Some(other) = other else {
            return Some(Between::OnlyTheField);
        };
        let is_held = through_field.contains(&below)
            || self.path(&through_field, (node, below), None)?.is_some();
        Some(if is_held {
            Between::OtherPath(other)
        } else {
            Between::NoField
        })
    }

    /// Searches for a shortest path from one of `starts` to `below`, through objects that `node` dominates. Returns the
    /// labels of the references on this path. Returns `Some(None)` if there is no path. Returns `None` if the search
    /// has to stop because it has read [`REFERENCES`] references.
    ///
    /// If `through_field` is given, the search does not follow references with the label [`Self::field`]. It adds the
    /// targets of these references to `through_field`.
    #[expect(
        clippy::option_option,
        reason = "the outer Option is None if the limit is reached, the inner Option is the path"
    )]
    fn path(
        &mut self,
        starts: &[ObjectIndex],
        (node, below): (Node, ObjectIndex),
        mut through_field: Option<&mut Vec<ObjectIndex>>,
    ) -> Option<Option<Vec<Label>>> {
        let snapshot = self.snapshot;
        let tree = snapshot.tree();
        let is_inside = |n: Node| n > node && n < tree.end(node);
        let mut reached: Vec<Reached> = starts.iter().map(|&start| (start, None)).collect();
        let mut seen: FxHashSet<ObjectIndex> = starts.iter().copied().collect();
        let mut found = None;
        let mut at = 0;
        // Read all starting objects, even if a path is already found: another one of them may have the searched field.
        while at < reached.len() && (found.is_none() || at < starts.len()) {
            let object = reached[at].0;
            let record = snapshot.read(object).ok()?;
            for (target, hold) in shared_paths::strong_references(snapshot, &record, self.left) {
                self.left = self.left.checked_sub(1)?;
                let leads_on = tree.node(target).is_some_and(is_inside);
                if target != below && (!leads_on || seen.contains(&target)) {
                    continue;
                }
                if let Some(targets) = through_field.as_deref_mut()
                    && self.has_name(hold)
                {
                    targets.push(target);
                    continue;
                }
                let from = (at, hold);
                if target == below {
                    found.get_or_insert(from);
                } else {
                    seen.insert(target);
                    reached.push((target, Some(from)));
                }
            }
            at += 1;
        }
        let mut labels = Vec::new();
        let mut from = found;
        while let Some((at, hold)) = from {
            let (object, before) = reached[at];
            labels.push(names::hold_label(snapshot, hold, Some(object)));
            from = before;
        }
        labels.reverse();
        Some(found.is_some().then_some(labels))
    }

    fn has_name(&mut self, hold: Hold) -> bool {
        let (snapshot, field) = (self.snapshot, self.field);
        let is_field = self.is_field.entry(hold);
        *is_field.or_insert_with(|| names::hold_label(snapshot, hold, None).0 == field)
    }
}
