//! Paths to many objects, stored as a forest. All searches for paths return such a forest.

use std::collections::BTreeSet;

use crate::answers::objects::reference::Via;
use crate::ids::{ClassIndex, NONE, ObjectIndex};
use crate::records::classes::Reference;

/// An object on a path, and the reference to it from the previous object on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The object.
    pub object: ObjectIndex,
    /// The reference from the previous object. `None` for the first object.
    pub via: Option<Via>,
    /// The kind of the `java.lang.ref` object, if `via` leads from such an object to its referent. [`Reference::No`]
    /// for all other references, which are strong.
    pub strength: Reference,
}

/// The objects on the paths that a search found. Each object comes after the object from which it is reached.
#[derive(Debug, Default)]
pub(crate) struct PathForest {
    pub(crate) objects: Vec<u32>,
    /// The forest index of the previous object. [`NONE`] for the first object of a path.
    pub(crate) parents: Vec<u32>,
    pub(crate) vias: Vec<(Via, Reference)>,
    /// The target objects of the paths, sorted. Each is paired with its forest index, which is its index in `objects`.
    pub(crate) targets: Vec<(u32, u32)>,
    /// The objects before this index are reached by strong references alone.
    pub(crate) strong: usize,
}

impl PathForest {
    /// Returns the first objects of the paths.
    pub(super) fn heads(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        let both = self.parents.iter().zip(&self.objects);
        both.filter(|(p, _)| **p == NONE)
            .map(|(_, &o)| ObjectIndex(o))
    }

    pub(super) fn place(&self, target: ObjectIndex) -> Option<usize> {
        let at = self.targets.binary_search_by_key(&target.0, |t| t.0).ok()?;
        Some(self.targets[at].1 as usize)
    }

    /// Returns for each object the last preferred field on its path. If the path has no preferred field, returns the
    /// last field on the path.
    pub(super) fn last_fields(
        &self,
        is_preferred: impl Fn(ClassIndex) -> bool,
    ) -> Vec<Option<Via>> {
        let mut fields: Vec<Option<Via>> = Vec::with_capacity(self.objects.len());
        let declaring = |via: Via| match via {
            Via::Field(class, _) | Via::Static(class, _) => Some(class),
            _ => None,
        };
        let is_preferred = |via: Via| declaring(via).is_some_and(&is_preferred);
        // An object comes after the object from which it is reached.
        for (&parent, &(via, _)) in self.parents.iter().zip(&self.vias) {
            let inherited = fields.get(parent as usize).copied().flatten();
            let own = Some(via).filter(|via| parent != NONE && declaring(*via).is_some());
            let is_better = |own: &Via| is_preferred(*own) || !inherited.is_some_and(is_preferred);
            fields.push(own.filter(is_better).or(inherited));
        }
        fields
    }

    /// Returns the path to the object at index `place` of `objects`, from the first object of the path on.
    pub(super) fn steps(&self, place: usize) -> Vec<Step> {
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

/// The static fields at which a search starts. `None` if the search starts at no static field. Otherwise it starts at
/// the static fields of all application classes except the classes in this set.
pub(crate) type Statics<'a> = Option<&'a BTreeSet<u32>>;

/// The result of a search: the paths to the targets, and the targets without a path.
pub(crate) type Searched = (PathForest, Vec<ObjectIndex>);
