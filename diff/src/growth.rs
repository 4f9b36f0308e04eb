//! Where it accumulates: the deepest step that stays level in number while what it holds grows.

use std::collections::BTreeMap;

use crate::names::{self, LabelKind};
use crate::shared::Label;
use crate::summary::Summary;
use crate::trie::{Step, StepId, Trie};

/// Growth smaller than this is noise, whatever the heap's size.
const LEAST: u64 = 16 << 10;
/// Growth smaller than this part of the reachable bytes is noise too.
const LEAST_PART: u64 = 2_000;

/// Something that grows: where it is held and what it is.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The step that holds what grows, in the last dump.
    pub(crate) at: StepId,
    /// What grows below it, the most growth first.
    pub(crate) content: Vec<StepId>,
    /// What grows in other places that the same field holds.
    pub(crate) beside: Vec<StepId>,
    /// The part of the content that a reader wants named.
    pub(crate) named: StepId,
    /// Whether the content is a single object that grew rather than more objects.
    pub(crate) in_place: bool,
    /// Retained bytes of the content in each dump.
    pub(crate) retained: Vec<u64>,
    pub(crate) objects: Vec<u64>,
    pub(crate) shallow: Vec<u64>,
}

impl Candidate {
    pub(crate) fn growth(&self) -> i64 {
        difference(&self.retained)
    }
}

/// Last less first.
pub(crate) fn difference(figures: &[u64]) -> i64 {
    match figures {
        [first, .., last] => last.cast_signed() - first.cast_signed(),
        _ => 0,
    }
}

/// The tries of all dumps, walked together along the last one's.
pub(crate) struct Aligned<'a> {
    tries: Vec<&'a Trie>,
    /// For each step of the last trie the same step in each trie, itself last.
    same: Vec<Vec<Option<StepId>>>,
    /// By how much the reachable instances of each class grew in number, wherever they are held.
    instances: BTreeMap<&'a str, i64>,
    least: i64,
}

impl<'a> Aligned<'a> {
    pub(crate) fn new(summaries: &'a [Summary]) -> Option<Self> {
        let last = summaries.last()?;
        let tries: Vec<&Trie> = summaries.iter().map(|s| &s.trie).collect();
        let mut same = vec![Vec::new(); last.trie.len()];
        same[0] = vec![Some(StepId::ROOT); tries.len()];
        // What dominates a class can change from dump to dump (a loader, a thread, the roots); the
        // class is the same all the same.
        let classes: Vec<BTreeMap<&str, StepId>> = tries[..tries.len() - 1]
            .iter()
            .map(|trie| {
                let steps = (0..trie.len() as u32).rev().map(StepId);
                let named = steps.map(|s| (trie.names.text(trie[s].class), s));
                named
                    .filter(|(name, _)| name.starts_with("class "))
                    .collect()
            })
            .collect();
        let mut work = vec![StepId::ROOT];
        while let Some(step) = work.pop() {
            // The earlier dumps' steps below, by their labels' texts.
            let earlier: Vec<BTreeMap<(&str, &str), StepId>> = tries[..tries.len() - 1]
                .iter()
                .zip(&same[step.0 as usize])
                .map(|(trie, step)| {
                    let children = step.map_or(&[][..], |s| &trie[s].children);
                    children
                        .iter()
                        .map(|&c| (label(trie, &trie[c]), c))
                        .collect()
                })
                .collect();
            for &child in &last.trie[step].children {
                let label = label(&last.trie, &last.trie[child]);
                let mut row: Vec<Option<StepId>> = earlier
                    .iter()
                    .zip(&classes)
                    .map(|(e, classes)| e.get(&label).or_else(|| classes.get(label.1)).copied())
                    .collect();
                row.push(Some(child));
                same[child.0 as usize] = row;
                work.push(child);
            }
        }
        let reachable = summaries
            .iter()
            .map(|s| s.info.reachable_bytes)
            .max()
            .unwrap_or(0);
        let least = (reachable / LEAST_PART).max(LEAST).cast_signed();
        let mut instances: BTreeMap<&str, i64> = BTreeMap::new();
        for (summary, sign) in [(last, 1), (&summaries[0], -1)] {
            for ((class, _), figures) in &summary.classes {
                *instances.entry(class).or_default() +=
                    sign * figures.reachable.objects.cast_signed();
            }
        }
        Some(Self {
            tries,
            same,
            instances,
            least,
        })
    }

    pub(crate) fn last(&self) -> &'a Trie {
        self.tries[self.tries.len() - 1]
    }

    /// A step of the last trie in the first one.
    pub(crate) fn first(&self, step: StepId) -> Option<StepId> {
        *self.same[step.0 as usize].first()?
    }

    /// A figure of a step in each dump, zero where the step is missing or was pooled.
    pub(crate) fn figures(&self, step: StepId, figure: impl Fn(&Step) -> u64) -> Vec<u64> {
        let row = self.same[step.0 as usize].iter().zip(&self.tries);
        row.map(|(same, trie)| same.map_or(0, |s| figure(&trie[s])))
            .collect()
    }

    fn grown(&self, step: StepId) -> i64 {
        difference(&self.figures(step, |s| s.retained_bytes))
    }

    /// Finds every place where something accumulates, the most growth first.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let trie = self.last();
        // What grows may stand beside what shrinks: the most that grows at a step or below it.
        let mut growing = vec![0_i64; trie.len()];
        for step in (0..trie.len() as u32).rev().map(StepId) {
            let below: i64 = trie[step]
                .children
                .iter()
                .map(|&c| growing[c.0 as usize])
                .sum();
            growing[step.0 as usize] = below.max(self.grown(step));
        }
        let mut found: Vec<Candidate> = Vec::new();
        let mut work = vec![StepId::ROOT];
        while let Some(step) = work.pop() {
            let mut more: Vec<StepId> = Vec::new();
            let mut explained = 0;
            for &child in &trie[step].children {
                let growth = self.grown(child);
                explained += growth.max(0);
                if growth >= self.least && self.grew_in_number(child) {
                    more.push(child);
                } else if growing[child.0 as usize] >= self.least {
                    work.push(child);
                }
            }
            // An array or a buffer that grew itself, rather than by what is in it.
            let own = difference(&self.figures(step, |s| s.shallow_bytes));
            if more.is_empty() && own >= self.least && own > explained && step != StepId::ROOT {
                found.push(self.candidate(trie[step].parent, vec![step], true));
            } else if !more.is_empty() {
                found.push(self.candidate(step, more, false));
            }
        }
        self.combine(&mut found);
        found.retain(|c| c.growth() >= self.least);
        // The runtime's own lists (cleaners, finalizers) grow along with what the application keeps:
        // of two that grow alike, the application's field is the one that a person can mend.
        let weight = |c: &Candidate| {
            let own = self.labels(c).iter().any(|l| is_application(l.1));
            c.growth() * if own { 2 } else { 1 }
        };
        found.sort_by_cached_key(|c| (std::cmp::Reverse(weight(c)), c.at, c.named));
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in found {
            if !self.only_moved(&candidate, &kept) {
                kept.push(candidate);
            }
        }
        kept
    }

    /// Whether there are not more objects of the candidate's class, but more that several paths
    /// lead to: what one object dominated before, another refers to now as well. The class as a
    /// whole then grew by much less than the candidate, apart from what candidates of more growth
    /// explain.
    fn only_moved(&self, candidate: &Candidate, greater: &[Candidate]) -> bool {
        let trie = self.last();
        let shared = |&s: &StepId| trie.names.kind(trie[s].via) == LabelKind::Shared;
        if candidate.in_place || !candidate.content.iter().any(shared) {
            return false;
        }
        let class = trie.names.text(trie[candidate.named].class);
        let Some(all) = self.instances.get(class) else {
            return false;
        };
        let explained: i64 = greater
            .iter()
            .flat_map(|c| &c.content)
            .map(|&s| self.more_below(s, class))
            .sum();
        (all - explained) * 2 < difference(&candidate.objects)
    }

    /// How many more objects of a class there are in a step and below it.
    fn more_below(&self, step: StepId, class: &str) -> i64 {
        let trie = self.last();
        let (mut more, mut work) = (0, vec![step]);
        while let Some(step) = work.pop() {
            if trie.names.text(trie[step].class) == class {
                more += difference(&self.figures(step, |s| s.objects));
            }
            work.extend(&trie[step].children);
        }
        more
    }

    /// Whether a step's growth is that of its number of objects, rather than of what each holds.
    fn grew_in_number(&self, step: StepId) -> bool {
        let objects = self.figures(step, |s| s.objects);
        let retained = self.figures(step, |s| s.retained_bytes);
        let (&[first, .., last], &[before, .., after]) = (&objects[..], &retained[..]) else {
            return false;
        };
        if last <= 1 || last <= first {
            return false;
        }
        if first == 0 || before == 0 {
            return true;
        }
        // The number's rate of growth, against at least half of that of the bytes.
        let more = u128::from(last - first) * u128::from(before) * 2;
        more >= u128::from(after.saturating_sub(before)) * u128::from(first)
    }

    fn candidate(&self, at: StepId, content: Vec<StepId>, in_place: bool) -> Candidate {
        let named = if in_place {
            content[0]
        } else {
            self.named(content[0])
        };
        let sum = |steps: &[StepId], figure: &dyn Fn(&Step) -> u64| {
            let mut total = vec![0; self.tries.len()];
            for &step in steps {
                for (sum, figure) in total.iter_mut().zip(self.figures(step, figure)) {
                    *sum += figure;
                }
            }
            total
        };
        Candidate {
            at,
            named,
            in_place,
            retained: sum(&content, &|s| s.retained_bytes),
            objects: self.figures(named, |s| s.objects),
            shallow: self.figures(named, |s| s.shallow_bytes),
            content,
            beside: Vec::new(),
        }
    }

    /// What a reader wants named: below nodes, entries and arrays, what they are there for.
    fn named(&self, content: StepId) -> StepId {
        let trie = self.last();
        let mut best = content;
        let mut at = content;
        while names::is_container(trie.names.text(trie[at].class)) {
            let growing = trie[at]
                .children
                .iter()
                .copied()
                .filter(|&c| self.grown(c) * 8 >= self.grown(content));
            // A map's values rather than its keys, when these are the application's.
            let own = |c: StepId| !names::is_runtime_name(trie.names.text(trie[c].class));
            match growing.max_by_key(|&c| (own(c), self.grown(c), std::cmp::Reverse(c))) {
                Some(c) => {
                    at = c;
                    best = c;
                }
                None => break,
            }
        }
        best
    }

    /// Candidates of one holder that hold one class are one: a table's nodes of two kinds, say.
    fn combine(&self, found: &mut Vec<Candidate>) {
        let trie = self.last();
        let mut merged: BTreeMap<(String, String), Candidate> = BTreeMap::new();
        for candidate in found.drain(..) {
            let key = (
                self.holder(&candidate),
                trie.names.text(trie[candidate.named].class).to_owned(),
            );
            match merged.entry(key) {
                std::collections::btree_map::Entry::Vacant(slot) => {
                    slot.insert(candidate);
                }
                std::collections::btree_map::Entry::Occupied(mut slot) => {
                    let known = slot.get_mut();
                    let (mut larger, smaller) = if known.growth() >= candidate.growth() {
                        (known.clone(), candidate)
                    } else {
                        (candidate, known.clone())
                    };
                    larger.beside.extend(&smaller.content);
                    larger.beside.extend(&smaller.beside);
                    let sums = [
                        (&mut larger.retained, &smaller.retained),
                        (&mut larger.objects, &smaller.objects),
                        (&mut larger.shallow, &smaller.shallow),
                    ];
                    for (to, from) in sums {
                        to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
                    }
                    *known = larger;
                }
            }
        }
        found.extend(merged.into_values());
    }

    /// The references from the root down to the head of what grows.
    pub(crate) fn labels(&self, candidate: &Candidate) -> Vec<Label> {
        let trie = self.last();
        let mut path = trie.path(candidate.at);
        // The head of a chain is held by a field of its own.
        path.extend(candidate.content.first());
        // So is a tree's root: what the tree is made of, its own affair, comes again below.
        if let Some(&head) = candidate.content.first() {
            let again = trie.classes_below(head);
            let is_node = |&s: &StepId| {
                again.contains(&trie[s].class)
                    && !names::is_runtime_name(trie.names.text(trie[s].class))
            };
            if let Some(root) = trie.path(candidate.at).iter().position(is_node) {
                path.truncate(root + 1);
            }
        }
        path.iter()
            .map(|&s| {
                (
                    trie.names.text(trie[s].via).to_owned(),
                    trie.names.kind(trie[s].via),
                )
            })
            .collect()
    }

    /// The field whose content grows.
    fn holder(&self, candidate: &Candidate) -> String {
        let trie = self.last();
        holder(&self.labels(candidate))
            .unwrap_or_else(|| trie.names.text(trie[candidate.at].class).to_owned())
    }
}

pub(crate) fn is_application(kind: LabelKind) -> bool {
    matches!(
        kind,
        LabelKind::ApplicationField | LabelKind::ApplicationStatic
    )
}

/// Of the references down to what grows, the field whose content grows: the nearest one of the
/// application's, else the nearest static one, else the nearest that is no collection's own.
pub(crate) fn holder(path: &[Label]) -> Option<String> {
    let nearest = |wanted: &dyn Fn(LabelKind, &str) -> bool| {
        path.iter()
            .rev()
            .find(|(text, kind)| wanted(*kind, text))
            .map(|(text, _)| text.clone())
    };
    nearest(&|k, _| is_application(k))
        .or_else(|| nearest(&|k, _| k == LabelKind::RuntimeStatic))
        .or_else(|| nearest(&|k, t| k == LabelKind::RuntimeField && !names::is_container(t)))
        .or_else(|| nearest(&|k, _| k == LabelKind::RuntimeField))
}

fn label<'a>(trie: &'a Trie, step: &Step) -> (&'a str, &'a str) {
    (trie.names.text(step.via), trie.names.text(step.class))
}
