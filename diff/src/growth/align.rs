//! Aligns the trie nodes of all dumps with the trie nodes of the last dump.
//!
//! A trie node represents all objects of one class that one reference holds. Trie nodes with the same path correspond.
//! The path of an object can also change. For example, if a thread is running a method of a collection when the dump is
//! taken, the collection has another dominator and so another path. Trie nodes without a counterpart are therefore
//! aligned a second time, by field and class on any path, and a third time, by class and content.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{is_application, label};
use crate::names::{self, LabelKind};
use crate::trie::{StepId, Trie};

/// For each node of the last trie, returns the corresponding node in the trie of each dump. In the last trie, this is
/// the node itself.
pub(super) fn rows(tries: &[&Trie]) -> Vec<Vec<Option<StepId>>> {
    let Some((last, earlier)) = tries.split_last() else {
        return Vec::new();
    };
    let columns: Vec<Vec<Option<StepId>>> = earlier
        .iter()
        .map(|trie| {
            let mut pairs = Pairs::new(trie, last);
            pairs.by_path();
            pairs.by_key(Pairs::field);
            pairs.by_key(Pairs::kind);
            pairs.of
        })
        .collect();
    let row = |step: u32| {
        let earlier = columns.iter().map(|column| column[step as usize]);
        earlier.chain([Some(StepId(step))]).collect()
    };
    (0..last.len() as u32).map(row).collect()
}

/// One earlier trie and the last one, with the pairs of trie nodes that are known to correspond.
struct Pairs<'a> {
    earlier: &'a Trie,
    last: &'a Trie,
    /// For each node of the last trie, the corresponding node of the earlier trie.
    of: Vec<Option<StepId>>,
    /// For each node of the earlier trie, true if it is in `of`.
    taken: Vec<bool>,
}

/// A key for trie nodes on different paths: two trie nodes with the same key correspond.
type Key = (String, String);

impl<'a> Pairs<'a> {
    fn new(earlier: &'a Trie, last: &'a Trie) -> Self {
        let mut pairs = Self {
            earlier,
            last,
            of: vec![None; last.len()],
            taken: vec![false; earlier.len()],
        };
        pairs.align_subtrees(StepId::ROOT, StepId::ROOT);
        pairs
    }

    fn align_subtrees(&mut self, last: StepId, earlier: StepId) {
        self.of[last.0 as usize] = Some(earlier);
        self.taken[earlier.0 as usize] = true;
    }

    /// Aligns trie nodes whose labels are the same on the whole path from the root.
    fn by_path(&mut self) {
        // Class objects are found by name, because their dominator can change from dump to dump: it is a loader, a
        // thread or the virtual root.
        let earlier = self.earlier;
        let classes: BTreeMap<&str, StepId> = (0..earlier.len() as u32)
            .rev()
            .map(|s| (earlier.names.text(earlier[StepId(s)].class), StepId(s)))
            .filter(|(name, _)| name.starts_with("class "))
            .collect();
        let mut work = vec![StepId::ROOT];
        while let Some(step) = work.pop() {
            let below = self.below(step);
            for &child in &self.last[step].children {
                let label = label(self.last, &self.last[child]);
                let same = below.get(&label).or_else(|| classes.get(label.1));
                if let Some(&same) = same {
                    self.align_subtrees(child, same);
                }
                work.push(child);
            }
        }
    }

    /// Returns the children of the earlier trie's node that corresponds to `step`, by label. `step` is a node of the
    /// last trie.
    fn below(&self, step: StepId) -> BTreeMap<(&'a str, &'a str), StepId> {
        let earlier = self.earlier;
        let children = self.of[step.0 as usize].map_or(&[][..], |s| &earlier[s].children);
        let labelled = children.iter().map(|&c| (label(earlier, &earlier[c]), c));
        labelled.collect()
    }

    /// Aligns the remaining trie nodes by a key, the largest first. If two trie nodes are aligned, their descendants
    /// with the same labels are aligned, too.
    fn by_key(&mut self, key: impl Fn(&Trie, StepId) -> Option<Key>) {
        let mut free: BTreeMap<Key, Vec<StepId>> = BTreeMap::new();
        for step in largest_first(self.earlier, |s| !self.taken[s]) {
            if let Some(key) = key(self.earlier, step) {
                free.entry(key).or_default().push(step);
            }
        }
        if free.is_empty() {
            return;
        }
        for step in largest_first(self.last, |s| self.of[s].is_none()) {
            if self.of[step.0 as usize].is_some() {
                continue;
            }
            let Some(steps) = key(self.last, step).and_then(|key| free.get(&key)) else {
                continue;
            };
            let open = |e: &&StepId| !self.taken[e.0 as usize] && self.may_be_aligned(step, **e);
            if let Some(&same) = steps.iter().find(open) {
                self.join_all(step, same);
            }
        }
    }

    /// True if two trie nodes on different paths may be treated as corresponding. One of these conditions must be true:
    ///
    /// - The objects of `last` are of an application class, or hold objects of an application class.
    /// - In one of the two dumps, several paths lead to the objects, or the holder is a GC root, class, class loader or
    ///   thread. So no field or array element identifies them.
    fn may_be_aligned(&self, last: StepId, earlier: StepId) -> bool {
        let anywhere = |trie: &Trie, step: StepId| {
            let kind = trie.names.kind(trie[step].via);
            matches!(kind, LabelKind::Shared | LabelKind::Structure)
        };
        let own = |trie: &Trie, step: StepId| {
            names::is_application_class_name(trie.names.text(trie[step].class))
        };
        own(self.last, last)
            || holds(self.last, last).is_some()
            || anywhere(self.last, last)
            || anywhere(self.earlier, earlier)
    }

    fn join_all(&mut self, last: StepId, earlier: StepId) {
        let mut work = vec![(last, earlier)];
        while let Some((last, earlier)) = work.pop() {
            self.align_subtrees(last, earlier);
            let below = self.below(last);
            for &child in &self.last[last].children {
                let same = below.get(&label(self.last, &self.last[child]));
                if let Some(&same) = same
                    && self.of[child.0 as usize].is_none()
                    && !self.taken[same.0 as usize]
                {
                    work.push((child, same));
                }
            }
        }
    }

    /// Returns the field that holds a trie node's objects, and their class. Returns `None` unless it is a field of an
    /// application class or a static field of the JDK. Any other field is too common to identify the objects.
    fn field(trie: &Trie, step: StepId) -> Option<Key> {
        let kind = trie.names.kind(trie[step].via);
        let tells = is_application(kind) || kind == LabelKind::RuntimeStatic;
        let (via, class) = label(trie, &trie[step]);
        tells.then(|| (via.to_owned(), class.to_owned()))
    }

    /// Returns the class of a trie node's objects, and the application class that retains most of their content.
    fn kind(trie: &Trie, step: StepId) -> Option<Key> {
        let class = trie.names.text(trie[step].class);
        let held = holds(trie, step).unwrap_or_default();
        // Class objects are already aligned by name.
        (!class.starts_with("class ")).then(|| (class.to_owned(), held.to_owned()))
    }
}

/// Maximum number of levels below a trie node to search for an application class.
const DEPTH: usize = 6;

/// Searches the descendants of a trie node for application classes, at most [`DEPTH`] levels down. Does not search
/// below a descendant that has an application class. Returns the class of the largest descendant found. Returns `None`
/// if there is no such descendant, or if the trie node itself has an application class.
fn holds(trie: &Trie, step: StepId) -> Option<&str> {
    let own = |s: StepId| names::is_application_class_name(trie.names.text(trie[s].class));
    if own(step) {
        return None;
    }
    let mut level = vec![step];
    let mut found: BTreeSet<(Reverse<u64>, StepId)> = BTreeSet::new();
    for _ in 0..DEPTH {
        let below = level.iter().flat_map(|&s| trie[s].children.iter().copied());
        let (held, inner): (Vec<StepId>, Vec<StepId>) = below.partition(|&s| own(s));
        found.extend(held.iter().map(|&s| (Reverse(trie[s].retained_bytes), s)));
        level = inner;
    }
    let &(_, most) = found.first()?;
    Some(trie.names.text(trie[most].class))
}

/// Returns the trie nodes for which `wanted` returns true, sorted by retained bytes, descending. Nodes with equal
/// retained bytes are sorted by their numbers.
fn largest_first(trie: &Trie, wanted: impl Fn(usize) -> bool) -> Vec<StepId> {
    let steps = (1..trie.len() as u32).map(StepId);
    let mut steps: Vec<StepId> = steps.filter(|s| wanted(s.0 as usize)).collect();
    steps.sort_by_key(|&s| (Reverse(trie[s].retained_bytes), s));
    steps
}
