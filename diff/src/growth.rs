//! Where it accumulates: the deepest step that stays level in number while what it holds grows.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::OffHeap;
use crate::names::{self, LabelKind, Name};
use crate::shared::Label;
use crate::summary::Summary;
use crate::trie::{Step, StepId, Trie};
use heapdiff_trend::Trend;

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
    /// Memory outside of the heap that direct buffers in the content own, in each dump.
    pub(crate) off_heap: Vec<OffHeap>,
    /// Bytes in the heap and outside of it in each dump; where other paths held the content, in
    /// proportion to the dumps before and after.
    pub(crate) series: Vec<u64>,
    /// How it went from dump to dump.
    pub(crate) trend: Trend,
    /// Dumps in the middle in which other paths held the content, so that they have no figures of it.
    pub(crate) elsewhere: Vec<usize>,
}

impl Candidate {
    pub(crate) fn growth(&self) -> i64 {
        difference(&self.retained)
    }

    /// Takes in what grows in another place that the same field holds; `same`: of the same class.
    fn take_in(&mut self, other: Self, same: bool) {
        self.beside.extend(other.content);
        self.beside.extend(other.beside);
        let add = |to: &mut Vec<u64>, from: Vec<u64>| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = to.saturating_add(from);
            }
        };
        add(&mut self.retained, other.retained);
        if same {
            add(&mut self.objects, other.objects);
            add(&mut self.shallow, other.shallow);
        }
        for (to, from) in self.off_heap.iter_mut().zip(other.off_heap) {
            to.buffers += from.buffers;
            to.bytes = to.bytes.saturating_add(from.bytes);
        }
    }

    /// Bytes in the heap and outside of it, in each dump.
    fn bytes(&self) -> Vec<u64> {
        let both = self.retained.iter().zip(&self.off_heap);
        both.map(|(&heap, off)| heap.saturating_add(off.bytes))
            .collect()
    }

    /// Growth in the heap and outside of it.
    fn all_growth(&self) -> i64 {
        difference(&self.bytes())
    }

    /// What is to be looked at before the others: what grew at every step, then what still grows.
    pub(crate) const fn tier(&self) -> u8 {
        match self.trend {
            Trend::Steady => 0,
            t if t.is_over() => 2,
            _ => 1,
        }
    }
}

/// Last less first.
pub(crate) fn difference(figures: &[u64]) -> i64 {
    match figures {
        [first, .., last] => last.cast_signed() - first.cast_signed(),
        _ => 0,
    }
}

/// The figure so many parts of the way from one to another.
fn between(from: u64, to: u64, (part, all): (usize, usize)) -> u64 {
    let (part, all) = (part as u128, (all as u128).max(1));
    let rest = all.saturating_sub(part);
    u64::try_from((u128::from(from) * rest + u128::from(to) * part) / all).unwrap_or(u64::MAX)
}

/// The tries of all dumps, walked together along the last one's.
pub(crate) struct Aligned<'a> {
    summaries: &'a [Summary],
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
            summaries,
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
        found.extend(self.outside(&found));
        self.combine(&mut found);
        found.retain(|c| c.all_growth() >= self.least);
        found.sort_by_cached_key(|c| (std::cmp::Reverse(self.weight(c)), c.at, c.named));
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in found {
            if !self.only_moved(&candidate, &kept) {
                kept.push(candidate);
            }
        }
        for candidate in &mut kept {
            self.follow(candidate);
        }
        kept.sort_by_key(Candidate::tier);
        kept
    }

    /// What a candidate's growth counts for when candidates are ranked. The runtime's own lists
    /// (cleaners, finalizers) grow along with what the application keeps: of two that grow alike, the
    /// application's field is the one that a person can mend.
    pub(crate) fn weight(&self, candidate: &Candidate) -> i64 {
        let own = self.labels(candidate).iter().any(|l| is_application(l.1));
        candidate
            .all_growth()
            .saturating_mul(if own { 2 } else { 1 })
    }

    /// Finds out how a candidate went from dump to dump.
    fn follow(&self, candidate: &mut Candidate) {
        let class = self.last().names.text(self.last()[candidate.named].class);
        let instances: Vec<u64> = self.summaries.iter().map(|s| s.instances(class)).collect();
        let all = [&candidate.content[..], &candidate.beside].concat();
        let count = self.tries.len();
        let is_missing = |i: usize| all.iter().all(|s| self.same[s.0 as usize][i].is_none());
        // The objects are there, so they are only held in another way.
        let are_there = |i: usize| {
            let known = |&j: &usize| !is_missing(j);
            let before = (0..i).rev().find(known)?;
            let after = (i + 1..count).find(known)?;
            Some(instances[i] * 2 >= instances[before].min(instances[after]))
        };
        candidate.elsewhere = (1..count.saturating_sub(1))
            .filter(|&i| is_missing(i) && are_there(i) == Some(true))
            .collect();
        candidate.series = candidate.bytes();
        for &i in &candidate.elsewhere {
            let known = |j: &usize| !candidate.elsewhere.contains(j);
            let before = (0..i).rev().find(known).map_or(0, |j| j);
            let after = (i + 1..count).find(known).map_or(0, |j| j);
            let (from, to) = (candidate.series[before], candidate.series[after]);
            candidate.series[i] = between(from, to, (i - before, after - before));
        }
        candidate.trend = Trend::of(&candidate.series, self.least.cast_unsigned());
    }

    /// Direct buffers that no candidate has, and whose memory outside of the heap grew.
    fn outside(&self, found: &[Candidate]) -> Vec<Candidate> {
        let trie = self.last();
        let Some(last) = self.summaries.last() else {
            return Vec::new();
        };
        let content: BTreeSet<StepId> = found.iter().flat_map(|c| &c.content).copied().collect();
        let steps = last.facts.off_heap.keys().copied();
        steps
            .filter(|&s| s != StepId::ROOT)
            .filter(|&s| trie.above(s).all(|a| !content.contains(&a)))
            .map(|s| self.candidate(trie[s].parent, vec![s], false))
            .filter(|c| c.all_growth() >= self.least)
            .collect()
    }

    /// Memory outside of the heap that direct buffers in these steps and below own, in each dump.
    fn off_heap(&self, steps: &[StepId]) -> Vec<OffHeap> {
        let in_dump = |i: usize| {
            let (facts, trie) = (&self.summaries[i].facts, self.tries[i]);
            let mut sum = OffHeap::default();
            if facts.off_heap.is_empty() {
                return sum;
            }
            let row = |s: &StepId| self.same[s.0 as usize][i];
            let inside: BTreeSet<StepId> = steps.iter().filter_map(row).collect();
            // Where a step was too small to be kept, its buffers were counted for the step above.
            let pooled: BTreeSet<StepId> = steps
                .iter()
                .filter(|s| row(s).is_none())
                .filter_map(|&s| self.last().above(s).find_map(|a| row(&a)))
                .filter(|&a| a != StepId::ROOT)
                .collect();
            for (&step, own) in &facts.off_heap {
                if pooled.contains(&step) || trie.above(step).any(|a| inside.contains(&a)) {
                    sum.buffers += own.buffers;
                    sum.bytes = sum.bytes.saturating_add(own.bytes);
                }
            }
            sum
        };
        (0..self.tries.len()).map(in_dump).collect()
    }

    /// Whether there are not more objects of the candidate's class, but more that several paths
    /// lead to: what one object dominated before, another refers to now as well. The class as a
    /// whole then grew by much less than the candidate, apart from what candidates of more growth
    /// explain.
    fn only_moved(&self, candidate: &Candidate, greater: &[Candidate]) -> bool {
        let trie = self.last();
        let shared = |&s: &StepId| trie.names.kind(trie[s].via) == LabelKind::Shared;
        let class = trie.names.text(trie[candidate.named].class);
        // Or what several paths led to before is held by one alone now.
        let is_new = candidate.objects.first() == Some(&0) && !names::is_runtime_name(class);
        let is_shared = candidate.content.iter().any(shared);
        if candidate.in_place || !(is_shared || is_new) {
            return false;
        }
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
            off_heap: self.off_heap(&content),
            series: Vec::new(),
            trend: Trend::Level,
            elsewhere: Vec::new(),
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

    /// Candidates of one holder that hold one class are one: a table's nodes of two kinds, say. And all of
    /// one field of the application's (or one static one) at one place are: a map's keys, its values, and its table.
    fn combine(&self, found: &mut Vec<Candidate>) {
        let trie = self.last();
        found.sort_by_key(|c| (std::cmp::Reverse(c.all_growth()), c.at, c.named));
        let mut merged: Vec<Candidate> = Vec::new();
        let mut by_class: BTreeMap<(String, Name), usize> = BTreeMap::new();
        let mut by_field: BTreeMap<StepId, usize> = BTreeMap::new();
        for candidate in found.drain(..) {
            let class = trie[candidate.named].class;
            let key = (self.holder(&candidate), class);
            let field = self
                .own_field(&candidate)
                .or_else(|| self.innermost(&candidate, &|k| k == LabelKind::RuntimeStatic));
            let known = by_class.get(&key);
            let known = known.or_else(|| by_field.get(&field?)).copied();
            let at = known.unwrap_or(merged.len());
            by_class.entry(key).or_insert(at);
            if let Some(field) = field {
                by_field.entry(field).or_insert(at);
            }
            match known {
                Some(at) => {
                    let same = trie[merged[at].named].class == class;
                    merged[at].take_in(candidate, same);
                }
                None => merged.push(candidate),
            }
        }
        *found = merged;
    }

    /// The innermost step through a field of the application's, down to the head of what grows.
    pub(crate) fn own_field(&self, candidate: &Candidate) -> Option<StepId> {
        self.innermost(candidate, &is_application)
    }

    fn innermost(
        &self,
        candidate: &Candidate,
        wanted: &dyn Fn(LabelKind) -> bool,
    ) -> Option<StepId> {
        let trie = self.last();
        let path = self.down_to_head(candidate);
        let mut up = path.into_iter().rev();
        up.find(|&s| wanted(trie.names.kind(trie[s].via)))
    }

    /// The steps from below the root down to the head of what grows.
    fn down_to_head(&self, candidate: &Candidate) -> Vec<StepId> {
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
        path
    }

    /// The references from the root down to the head of what grows.
    pub(crate) fn labels(&self, candidate: &Candidate) -> Vec<Label> {
        let trie = self.last();
        let path = self.down_to_head(candidate);
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
        .or_else(|| nearest(&|k, t| k == LabelKind::RuntimeField && !names::is_inside(t)))
        .or_else(|| nearest(&|k, _| k == LabelKind::RuntimeField))
}

fn label<'a>(trie: &'a Trie, step: &Step) -> (&'a str, &'a str) {
    (trie.names.text(step.via), trie.names.text(step.class))
}
