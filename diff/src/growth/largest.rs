//! Finds the places in a single dump where objects have accumulated. The evidence is how the retained size is divided
//! among objects.
//!
//! A trie node represents all objects of one class that one reference holds. The bytes that it retains can belong to
//! one object or to many. The number of parts of a trie node is its retained size divided by the retained size of its
//! largest object. The search follows a chain of trie nodes, from parent to child. Each child retains most of the bytes
//! of its parent. The place of the accumulation is the trie node at which the number of parts is multiplied by the
//! largest factor. Its holder is the parent of this trie node:
//!
//! ```text
//! node     map    table    entries     values
//! parts      1        1    100,000    100,000
//! factor            x 1  x 100,000        x 1     the entries accumulate, the table holds them
//! ```
//!
//! Each chain has one place of accumulation. A chain ends at a trie node that has no large children.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_sites::packages::is_jdk;
use hprof::{ObjectIndex, Snapshot};

use super::{Aligned, Candidate, RESOLVED};
use crate::names::{self, LabelKind};
use crate::trie::StepId;

/// Maximum number of trie nodes to inspect below a candidate.
const BELOW: usize = 64;
/// If there are at least this number of threads of an application class, they are not a pool: the program keeps
/// creating threads.
const POOL: u64 = 64;
/// Limits of the searches for recursive structures (linked lists and trees): at most `LINKS` levels, and at most
/// `LOOKED_AT` objects on each level.
const LINKS: usize = 6;
const LOOKED_AT: usize = 64;

/// The factor `parts / of` by which the number of parts grows from the parent of a trie node to the trie node. The
/// number of parts of a trie node is its retained size divided by the retained size of its largest object.
#[derive(Clone, Copy, Debug)]
struct Fan {
    parts: u64,
    of: u64,
}

impl Fan {
    const NONE: Self = Self { parts: 1, of: 1 };

    /// True if the number of parts of the trie node is at least twice that of its parent.
    const fn is_fan_out(self) -> bool {
        self.parts >= self.of.saturating_mul(2)
    }

    /// True if this factor is at least as large as `other`.
    fn is_at_least(self, other: Self) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.parts, other.of) >= product(other.parts, self.of)
    }
}

/// Computes and caches the number of parts of each trie node: its retained size divided by that of its largest object.
struct Parts<'a> {
    snapshot: &'a Snapshot,
    known: BTreeMap<StepId, u64>,
}

impl Aligned<'_> {
    /// Returns the accumulations of at least `least` bytes in the last dump, sorted by bytes, descending.
    pub(crate) fn largest(&self, snapshot: &Snapshot, least: u64) -> Vec<Candidate> {
        let trie = self.last();
        let mut parts = Parts {
            snapshot,
            known: BTreeMap::new(),
        };
        let above_buffers = self.buffer_ancestors(least);
        let mut found: Vec<Candidate> = Vec::new();
        let mut work = vec![StepId::ROOT];
        while let Some(step) = work.pop() {
            if self.is_general_purpose(&mut parts, step) {
                continue;
            }
            if step != StepId::ROOT && self.is_accumulation(&mut parts, step) {
                found.push(self.candidate(trie[step].parent, vec![step], false));
                continue;
            }
            // Skip constants that the JVM resolves when code runs for the first time. The application did not
            // accumulate them.
            let is_large = |&&s: &&StepId| {
                trie[s].retained_bytes >= least && !trie.names.text(trie[s].via).ends_with(RESOLVED)
            };
            let large: Vec<StepId> = trie[step]
                .children
                .iter()
                .filter(is_large)
                .copied()
                .collect();
            let is_lowest = large.is_empty() && !above_buffers.contains(&step);
            if is_lowest && step != StepId::ROOT && !self.leads_to_ancestor_class(snapshot, step) {
                found.push(self.candidate(trie[step].parent, vec![step], true));
            }
            work.extend(large);
        }
        found.extend(self.uncovered_buffers(&found, least.cast_signed()));
        self.merge_related(&mut found);
        found.sort_by_cached_key(|c| (std::cmp::Reverse(c.all_growth()), c.at, c.named));
        found
    }

    /// Returns all ancestors of trie nodes with large direct buffers. The buffers of such a node together own at least
    /// `least` bytes outside of the heap. The buffers are a candidate, so their ancestors need not be candidates.
    fn buffer_ancestors(&self, least: u64) -> BTreeSet<StepId> {
        let trie = self.last();
        let large = self.summaries.last().into_iter();
        let large = large.flat_map(|s| {
            s.stats
                .off_heap
                .iter()
                .filter(|(_, own)| own.bytes >= least)
        });
        large
            .flat_map(|(&step, _)| trie.above(trie[step].parent))
            .collect()
    }

    /// True if the trie node is part of a recursive structure, such as a tree whose inner nodes hold further nodes. The
    /// content is then reported at an ancestor. The test: take the largest object that the trie node's largest object
    /// immediately dominates. Its class must be the class of the objects of one of the [`LINKS`] nearest ancestors.
    fn leads_to_ancestor_class(&self, snapshot: &Snapshot, step: StepId) -> bool {
        let trie = self.last();
        let tree = snapshot.tree();
        let class = |o: ObjectIndex| snapshot.class_of(o);
        let Some(node) = trie[step].samples.first().and_then(|&o| tree.node(o)) else {
            return false;
        };
        let below = tree.children(node).take(LOOKED_AT);
        let heaviest = below.max_by_key(|&n| (tree.retained_bytes(n), std::cmp::Reverse(n)));
        let held = heaviest.and_then(|n| tree.object(n)).and_then(class);
        let mut above = trie.above(trie[step].parent).take(LINKS);
        let is_held = |s: StepId| trie[s].samples.first().is_some_and(|&o| class(o) == held);
        held.is_some() && above.any(is_held)
    }

    /// True if the objects of a trie node are of a general-purpose class and only the virtual root dominates them. An
    /// example is strings that two maps share. No single field or element holds these objects, so they are not an
    /// accumulation.
    fn is_general_purpose(&self, parts: &mut Parts<'_>, step: StepId) -> bool {
        let trie = self.last();
        let of = &trie[step];
        let class = trie.names.text(of.class);
        let is_primitive = !names::is_application_class_name(class) && !is_jdk(class);
        step != StepId::ROOT
            && of.parent == StepId::ROOT
            && self.kind(of.via) == LabelKind::Shared
            && (names::is_general_purpose_class(class) || is_primitive)
            && parts.of(self, step) > 1
    }

    /// True if the objects of a trie node are nodes of a tree in the heap: their class is an application class, and
    /// objects of the same class, at most [`LINKS`] levels down, retain at least half of their bytes. The holder of a
    /// tree is the field that refers to its root, not a node.
    pub(super) fn is_root_of_tree(&self, step: StepId) -> bool {
        let trie = self.last();
        let of = &trie[step];
        if !names::is_application_class_name(trie.names.text(of.class)) {
            return false;
        }
        let heaviest = |s: &StepId| {
            let child = trie[*s].children.first().copied();
            child.filter(|&c| trie[c].retained_bytes >= of.retained_bytes / 2)
        };
        let below = std::iter::successors(heaviest(&step), heaviest).take(LINKS);
        // The inner nodes and the leaves of a tree may be siblings of different classes. So check not only the heaviest
        // child on each level, but also its siblings.
        let beside = below.flat_map(|s| trie[trie[s].parent].children.iter().copied());
        let mut large = beside.filter(|&s| trie[s].retained_bytes >= of.retained_bytes / 2);
        large.any(|s| trie[s].class == of.class)
    }

    /// True if the objects of a trie node are the ones that accumulate. The number of parts of a trie node is its
    /// retained size divided by that of its largest object. Two conditions must be true:
    ///
    /// - The number of parts is at least twice that of the parent.
    /// - The largest descendants form a chain: each is the largest child of the one before, and retains at least half
    ///   of the trie node's bytes. None of them multiplies the number of parts of its parent by a larger factor.
    fn is_accumulation(&self, parts: &mut Parts<'_>, step: StepId) -> bool {
        let trie = self.last();
        let own = self.fan_out(parts, step);
        if !own.is_fan_out() {
            return false;
        }
        let half = trie[step].retained_bytes / 2;
        let heaviest = |s: &StepId| {
            let child = trie[*s].children.first().copied();
            child.filter(|&c| trie[c].retained_bytes >= half)
        };
        let mut below = std::iter::successors(heaviest(&step), heaviest).take(BELOW);
        below.all(|s| own.is_at_least(self.fan_out(parts, s)))
    }

    /// Returns the number of parts of a trie node divided by the number of parts of its parent. The number of parts is
    /// the retained size divided by the retained size of the largest object. A pool of threads is not an accumulation:
    /// its factor is 1, and for its children, it counts as one part.
    fn fan_out(&self, parts: &mut Parts<'_>, step: StepId) -> Fan {
        let trie = self.last();
        let is_pool = |parts: &mut Parts<'_>, s: StepId| {
            let own = names::is_application_class_name(trie.names.text(trie[s].class));
            trie[s].parent == StepId::ROOT
                && parts.are_threads(&trie[s].samples)
                && (!own || parts.of(self, s) < POOL)
        };
        let above = trie[step].parent;
        let is_base = |parts: &mut Parts<'_>, s| s == StepId::ROOT || is_pool(parts, s);
        match (is_base(parts, step), is_base(parts, above)) {
            (true, _) => Fan::NONE,
            (false, true) => Fan {
                parts: parts.of(self, step),
                of: 1,
            },
            (false, false) => Fan {
                parts: parts.of(self, step),
                of: parts.of(self, above),
            },
        }
    }
}

impl Parts<'_> {
    fn of(&mut self, aligned: &Aligned<'_>, step: StepId) -> u64 {
        if let Some(&known) = self.known.get(&step) {
            return known;
        }
        let counted = self.count(aligned, step);
        self.known.insert(step, counted);
        counted
    }

    /// True if the objects are platform threads. False for virtual threads, because programs create any number of them.
    fn are_threads(&self, objects: &[ObjectIndex]) -> bool {
        let classes = self.snapshot.classes();
        let class = objects.first().and_then(|&o| self.snapshot.class_of(o));
        let Some(class) = class else {
            return false;
        };
        let extends = |name: &str| {
            let known = classes.by_name(name);
            known.iter().any(|&k| classes.is_subclass(class, k))
        };
        extends("java.lang.Thread") && !extends("java.lang.VirtualThread")
    }

    fn count(&self, aligned: &Aligned<'_>, step: StepId) -> u64 {
        let trie = aligned.last();
        let mut at = step;
        let mut most = u64::MAX;
        for _ in 0..BELOW {
            let this = &trie[at];
            most = most.min(this.objects.max(1));
            let largest = this.samples.first().copied();
            let bytes = largest.and_then(|o| self.snapshot.retained_bytes(o));
            let apart = this.retained_bytes / bytes.unwrap_or(0).max(1);
            if apart > 1 || !largest.is_some_and(|o| self.is_chain(o)) {
                return apart.clamp(1, most);
            }
            // The first link of a chain retains all other links, so the chain looks like one large object. Continue
            // with the content of the links.
            match this.children.first() {
                Some(&c) if trie[c].retained_bytes.saturating_mul(2) >= this.retained_bytes => {
                    at = c
                }
                _ => return most,
            }
        }
        most
    }

    /// True if an object is a link of a chain: it dominates another object of its class, at most [`LINKS`] levels down.
    fn is_chain(&self, object: ObjectIndex) -> bool {
        let tree = self.snapshot.tree();
        let class = self.snapshot.class_of(object);
        let mut level = vec![object];
        for _ in 0..LINKS {
            let nodes = level.iter().filter_map(|&o| tree.node(o));
            let below = nodes.flat_map(|n| tree.children(n)).take(LOOKED_AT);
            level = below.filter_map(|n| tree.object(n)).collect();
            if level.iter().any(|&o| self.snapshot.class_of(o) == class) {
                return true;
            }
        }
        false
    }
}
