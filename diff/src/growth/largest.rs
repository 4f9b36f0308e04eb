//! One dump alone: the places where something has accumulated, told by how what is held falls apart.
//!
//! What a step retains may be one object's or that of many. A step's parts are how many objects of the size of its
//! largest it would take to retain as much. Going down a chain of steps, each of which retains most of the one above,
//! the parts multiply: one map, one table, a hundred thousand entries, as many values. Something accumulates where
//! they multiply the most, and what holds it is the step above. A chain has one such step; it ends where no step below
//! is large.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_sites::packages::is_jdk;
use hprof::{ObjectIndex, Snapshot};

use super::{Aligned, Candidate, RESOLVED};
use crate::names::{self, LabelKind};
use crate::trie::StepId;

/// Steps that are looked at below one that might be where something accumulates.
const BELOW: usize = 64;
/// So many threads of a class of the program's own are no pool, but what the program makes.
const POOL: u64 = 64;
/// Levels of dominated objects, and objects of each, in which a chain is looked for.
const LINKS: usize = 6;
const LOOKED_AT: usize = 64;

/// By what factor the parts of a step are more than those of the step above.
#[derive(Clone, Copy, Debug)]
struct Fan {
    parts: u64,
    of: u64,
}

impl Fan {
    const NONE: Self = Self { parts: 1, of: 1 };

    /// Whether it falls apart at all.
    const fn is_apart(self) -> bool {
        self.parts >= self.of.saturating_mul(2)
    }

    /// Whether it falls apart at least as much as another.
    fn is_as_wide(self, other: Self) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.parts, other.of) >= product(other.parts, self.of)
    }
}

/// How many parts steps have.
struct Parts<'a> {
    snapshot: &'a Snapshot,
    known: BTreeMap<StepId, u64>,
}

impl Aligned<'_> {
    /// The places in the last dump at which something of at least so many bytes accumulates, the most bytes first.
    pub(crate) fn largest(&self, snapshot: &Snapshot, least: u64) -> Vec<Candidate> {
        let trie = self.last();
        let mut parts = Parts {
            snapshot,
            known: BTreeMap::new(),
        };
        let above_buffers = self.above_buffers(least);
        let mut found: Vec<Candidate> = Vec::new();
        let mut work = vec![StepId::ROOT];
        while let Some(step) = work.pop() {
            if self.is_of_all_kinds(&mut parts, step) {
                continue;
            }
            if step != StepId::ROOT && self.falls_apart(&mut parts, step) {
                found.push(self.candidate(trie[step].parent, vec![step], false));
                continue;
            }
            // Constants that are resolved when code first runs are the runtime's affair.
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
            if is_lowest && step != StepId::ROOT && !self.folds_back(snapshot, step) {
                found.push(self.candidate(trie[step].parent, vec![step], true));
            }
            work.extend(large);
        }
        found.extend(self.outside(&found, least.cast_signed()));
        self.combine(&mut found);
        found.sort_by_cached_key(|c| (std::cmp::Reverse(c.all_growth()), c.at, c.named));
        found
    }

    /// Steps above direct buffers that own at least `least` bytes outside of the heap. The buffers are a candidate of their
    /// own, and the steps above them are not.
    fn above_buffers(&self, least: u64) -> BTreeSet<StepId> {
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

    /// Whether what a step's objects hold is a step above once more, as the inner nodes of a tree hold nodes: what is in
    /// them is told there.
    fn folds_back(&self, snapshot: &Snapshot, step: StepId) -> bool {
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

    /// Whether a step's objects are of a class that serves all kinds of things, and only all GC roots together hold
    /// them: strings that two maps share, say. No place holds them, so they are no accumulation.
    fn is_of_all_kinds(&self, parts: &mut Parts<'_>, step: StepId) -> bool {
        let trie = self.last();
        let of = &trie[step];
        let class = trie.names.text(of.class);
        let is_primitive = !names::is_own_class(class) && !is_jdk(class);
        step != StepId::ROOT
            && of.parent == StepId::ROOT
            && self.kind(of.via) == LabelKind::Shared
            && (names::is_of_all_kinds(class) || is_primitive)
            && parts.of(self, step) > 1
    }

    /// Whether nodes of a program's own class hold most of what they retain in nodes of that class, a few steps below. A
    /// tree's nodes are its own affair: its holder is the field with its root.
    pub(super) fn is_root_of_tree(&self, step: StepId) -> bool {
        let trie = self.last();
        let of = &trie[step];
        if !names::is_own_class(trie.names.text(of.class)) {
            return false;
        }
        let heaviest = |s: &StepId| {
            let child = trie[*s].children.first().copied();
            child.filter(|&c| trie[c].retained_bytes >= of.retained_bytes / 2)
        };
        let below = std::iter::successors(heaviest(&step), heaviest).take(LINKS);
        // Inner nodes and leaves may be beside each other.
        let beside = below.flat_map(|s| trie[trie[s].parent].children.iter().copied());
        let mut large = beside.filter(|&s| trie[s].retained_bytes >= of.retained_bytes / 2);
        large.any(|s| trie[s].class == of.class)
    }

    /// Whether a step's objects are what accumulates: it falls apart, and no step below that retains most of it does
    /// so more.
    fn falls_apart(&self, parts: &mut Parts<'_>, step: StepId) -> bool {
        let trie = self.last();
        let own = self.fan(parts, step);
        if !own.is_apart() {
            return false;
        }
        let half = trie[step].retained_bytes / 2;
        let heaviest = |s: &StepId| {
            let child = trie[*s].children.first().copied();
            child.filter(|&c| trie[c].retained_bytes >= half)
        };
        let mut below = std::iter::successors(heaviest(&step), heaviest).take(BELOW);
        below.all(|s| own.is_as_wide(self.fan(parts, s)))
    }

    /// How much more a step falls apart than the one above. The threads of a pool are no accumulation: what they hold
    /// counts anew.
    fn fan(&self, parts: &mut Parts<'_>, step: StepId) -> Fan {
        let trie = self.last();
        let is_pool = |parts: &mut Parts<'_>, s: StepId| {
            let own = names::is_own_class(trie.names.text(trie[s].class));
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

    /// Whether objects are threads of the system's. Virtual ones are as many as the program makes.
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
            // The first link of a chain retains all others; what each holds tells more.
            match this.children.first() {
                Some(&c) if trie[c].retained_bytes.saturating_mul(2) >= this.retained_bytes => {
                    at = c
                }
                _ => return most,
            }
        }
        most
    }

    /// Whether an object dominates another of its class, as links of a list do, with a few objects between at most.
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
