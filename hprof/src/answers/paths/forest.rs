//! Paths to many objects, kept as a forest: what every search for paths gives.

use std::collections::BTreeSet;

use crate::answers::objects::reference::Via;
use crate::ids::{NONE, ObjectIndex};
use crate::records::classes::Reference;

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

/// The objects on paths, each after the one that it is reached from.
#[derive(Debug, Default)]
pub(crate) struct PathForest {
    pub(crate) objects: Vec<u32>,
    /// Place of the object before, [`NONE`] for the first of a path.
    pub(crate) parents: Vec<u32>,
    pub(crate) vias: Vec<(Via, Reference)>,
    /// The objects that were asked for, sorted, with their places.
    pub(crate) targets: Vec<(u32, u32)>,
    /// Strong references alone reached the objects before this place.
    pub(crate) strong: usize,
}

impl PathForest {
    /// The first objects of the paths.
    pub(super) fn heads(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        let both = self.parents.iter().zip(&self.objects);
        both.filter(|(p, _)| **p == NONE)
            .map(|(_, &o)| ObjectIndex(o))
    }

    pub(super) fn place(&self, target: ObjectIndex) -> Option<usize> {
        let at = self.targets.binary_search_by_key(&target.0, |t| t.0).ok()?;
        Some(self.targets[at].1 as usize)
    }

    /// The path to a place, its first step first.
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

/// Classes whose static fields no search starts from; `None` when it starts from none.
pub(crate) type Statics<'a> = Option<&'a BTreeSet<u32>>;

/// The paths of the targets that have one, and the others.
pub(crate) type Searched = (PathForest, Vec<ObjectIndex>);
