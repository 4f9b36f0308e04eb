//! Checks that the dominators are correct although some references to classes were left out: the references from bare
//! leaves. A bare leaf is an object that refers only to its class and is treated as an object without references.
//!
//! The dominator of each class was computed without these references. If this dominator also dominates a bare leaf of
//! the class, the reference from the bare leaf to the class changes no dominator.

use std::ops::Range;

use rayon::prelude::*;

use crate::dominators::annotated::{AnnotatedGraph, CHUNK};
use crate::dominators::preorder::WeaklyReached;
use crate::ids::NONE;

/// The dominator tree to check. It was computed without the references to classes from objects that refer only to their
/// class.
pub(super) struct Checked<'a> {
    /// The graph. The per-object word of each object is the object's node in the tree.
    pub(super) graph: &'a AnnotatedGraph,
    /// For each class object: its reachability level (0 for strong, 1 for soft, 2 for final references), and the range
    /// of nodes that the class object's dominator dominates.
    pub(super) of_class: &'a [(usize, Range<u32>)],
    /// The node that immediately dominates each object without references.
    pub(super) leaf_parent: &'a [u32],
    /// Two sorted lists of objects without references: those that only soft references reach, and those that only final
    /// references reach. Each element is an object's number, counted from the first object without references.
    pub(super) weak: &'a WeaklyReached,
}

impl Checked<'_> {
    /// Returns true if the reference from a bare leaf to its class could change the tree. `class_of` returns the class
    /// object of an object, or [`NONE`].
    ///
    /// Cost: one visit of each object without references, in parallel. No cost if the super-root immediately dominates
    /// all classes of bare leaves.
    pub(super) fn is_wrong(&self, class_of: impl Fn(u32) -> u32 + Sync) -> bool {
        let mut classes = self
            .graph
            .of_leaves
            .iter()
            .map(|&c| &self.of_class[c as usize]);
        if classes.all(|(level, dominated)| *level == 0 && dominated.start == 0) {
            return false;
        }
        let inner = self.graph.split.inner;
        let level_of = |leaf: u32| {
            let is_in = |list: &[u32]| list.binary_search(&leaf).is_ok();
            match self.weak {
                [soft, _] if is_in(soft) => 1,
                [_, last] if is_in(last) => 2,
                _ => 0,
            }
        };
        let is_wrong = |leaf: u32, node: u32| {
            let class = class_of(inner + leaf);
            if class == NONE || node == NONE {
                return false;
            }
            let (level, dominated) = &self.of_class[class as usize];
            let is_within = dominated.contains(&node);
            if *level == 0 && is_within {
                return false;
            }
            // Only the strongest path to an object counts. A soft path, for example, has no effect if a path of strong
            // references reaches the object, too.
            let own = level_of(leaf);
            !(*level < own || *level == own && is_within)
        };
        let chunks = self.leaf_parent.par_chunks(CHUNK).enumerate();
        let wrong = chunks.filter(|(chunk, nodes)| {
            let mut leaves = ((chunk * CHUNK) as u32..).zip(nodes.iter());
            leaves.any(|(leaf, &node)| is_wrong(leaf, node))
        });
        wrong.find_any(|_| true).is_some()
    }
}
