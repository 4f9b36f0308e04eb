//! Merges the ends of linked structures with the other nodes of these structures.
//!
//! A `LinkedList` refers directly to its first and its last node, while several paths lead to each node in between. A
//! `ConcurrentLinkedQueue` refers to the first node of a chain, and directly to its last node. So the nodes of one
//! structure are siblings with up to three different labels. They get one label, so that they count together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hprof::ObjectIndex;
use hprof::answers::Content;
use rustc_hash::FxHashMap;

use super::{Builder, Largest, NamedGroup, StepId};
use crate::names::{self, LabelKind, Name};

/// The labels of ends of linked structures that were merged. Maps the parent trie node, the end's label and the class
/// to the label of the structure's other nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends(FxHashMap<(StepId, Name, Name), Name>);

impl Ends {
    /// Returns the label of objects of a class below the trie node `above`. It differs from `via` if the objects are
    /// ends of a linked structure.
    pub(super) fn label(&self, above: StepId, via: Name, class: Name) -> Name {
        self.0.get(&(above, via, class)).copied().unwrap_or(via)
    }
}

impl Builder<'_> {
    /// Merges groups below one trie node. A group of ends of linked structures is merged with the group of the other
    /// nodes of these structures. The samples of the merged group are those of the other nodes.
    pub(super) fn merge_ends(
        &mut self,
        above: StepId,
        mut groups: Vec<NamedGroup>,
    ) -> Vec<NamedGroup> {
        if above == StepId::ROOT {
            return groups;
        }
        let mut by_class: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
        for (index, &(_, class, _)) in groups.iter().enumerate() {
            by_class.entry(class).or_default().push(index);
        }
        for of_class in by_class.into_values().filter(|of_class| of_class.len() > 1) {
            let rank = |&g: &usize| (self.rank(&groups[g]), Reverse(g));
            let Some(rest) = of_class.iter().copied().max_by_key(rank) else {
                continue;
            };
            for end in of_class.into_iter().filter(|&end| end != rest) {
                if self.is_end(&groups[end], &groups[rest]) {
                    let (via, class, group) = &mut groups[end];
                    let key = (above, *via, *class);
                    let mut group = std::mem::take(group);
                    group.samples = Largest::default();
                    self.trie.ends.0.insert(key, groups[rest].0);
                    groups[rest].2.merge(group);
                }
            }
        }
        groups.retain(|(.., group)| group.objects > 0);
        groups
    }

    /// Ranks the groups of a class. Ends are merged with the group that has the highest rank.
    fn rank(&self, (via, _, group): &NamedGroup) -> (bool, u64) {
        let is_shared = self.trie.names.kind(*via) == LabelKind::Shared;
        (is_shared, group.retained)
    }

    /// True if the objects of the first group are ends of the linked structures to which the objects of the second
    /// group belong.
    fn is_end(&self, (via, class, end): &NamedGroup, (rest_via, _, rest): &NamedGroup) -> bool {
        let names = &self.trie.names;
        let (kind, rest_kind) = (names.kind(*via), names.kind(*rest_via));
        let is_of_runtime =
            |kind| matches!(kind, LabelKind::RuntimeField | LabelKind::RuntimeStatic);
        let is_of_application = |kind| {
            matches!(
                kind,
                LabelKind::ApplicationField | LabelKind::ApplicationStatic
            )
        };
        let is_shared = rest_kind == LabelKind::Shared;
        if is_of_runtime(kind) && names::is_collection_part(names.text(*class)) {
            // The last node of a queue may refer to no other node. So the group `rest` (the queue's other nodes) shows
            // that this is a linked structure.
            let is_rest = is_shared || is_of_runtime(rest_kind);
            return is_rest && rest.samples.0.iter().any(|&(_, o)| self.next(o).is_some());
        }
        let tree = self.snapshot.tree();
        let is_linked = |object: ObjectIndex| {
            let next = self.next(object);
            next.is_some_and(|next| tree.dominator(next) == tree.dominator(object))
        };
        is_of_application(kind)
            && is_shared
            && end.retained < rest.retained
            && end.samples.0.iter().any(|&(_, o)| is_linked(o))
    }

    /// Returns another object of the same class to which a field of an object refers.
    fn next(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let Content::Instance(fields) = self.snapshot.read(object).ok()?.content else {
            return None;
        };
        let class = self.snapshot.class_of(object);
        let targets = fields.iter().filter_map(|field| field.value?.object());
        let mut targets = targets.filter(|&t| t != object);
        targets.find(|&t| self.snapshot.class_of(t) == class)
    }
}
