//! The objects at which a search for paths starts.

use crate::answers::paths::forest::Statics;
use crate::dominators::tree::Node;
use crate::ids::{ClassIndex, ObjectIndex};
use crate::records::walk::RootKind;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the objects at which a search starts, in order of preference: application classes, other classes,
    /// threads, JNI references, other roots.
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

    /// True if an object is the class object of an application class that its loader keeps alive.
    pub(crate) fn is_application_class(&self, object: u32) -> bool {
        let is_held = || {
            let class = &self.classes()[ClassIndex(object)];
            !class.loader.is_null() && class.held_by_loader
        };
        object < self.split.classes && is_held()
    }
}
