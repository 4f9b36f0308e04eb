//! Finds the places in the heap where objects accumulate. A trie node represents all objects of one class that one
//! reference holds. A place is the deepest trie node whose number of objects does not change while their content grows.

mod align;
mod candidate;
mod largest;
mod share;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use self::candidate::Candidate;
use crate::names::Label;
use crate::names::{self, LabelKind, Name};
use crate::summary::Summary;
use crate::summary::stats::OffHeap;
use crate::trie::{Step, StepId, Trie};
use heapdiff_model::diff::{difference, least};
use heapdiff_sites::packages::is_jdk;
use heapdiff_trend::{Course, Trend};

/// Minimum number of samples that the agent must have taken. With fewer samples, periods with almost no allocation
/// cannot be recognized.
const ENOUGH_FOR_WORK: u64 = 1_000;

/// A reference with this suffix in its label leads from a class to the array of constants that the JVM resolved for the
/// class.
const RESOLVED: &str = ".<resolved_references>";

/// Interpolates between two figures. Returns `from` if `part` is 0, and `to` if `part` equals `all`.
fn interpolate(from: u64, to: u64, part: u64, all: u64) -> u64 {
    let (part, all) = (u128::from(part), u128::from(all).max(1));
    let rest = all.saturating_sub(part);
    u64::try_from((u128::from(from) * rest + u128::from(to) * part) / all).unwrap_or(u64::MAX)
}

/// The tries of all dumps, aligned with the trie of the last dump.
pub(crate) struct Aligned<'a> {
    summaries: &'a [Summary],
    tries: Vec<&'a Trie>,
    /// For each node of the last trie, the corresponding node in the trie of each dump. In the last trie, this is the
    /// node itself.
    same: Vec<Vec<Option<StepId>>>,
    /// Growth of the number of reachable instances of each class, on all paths together.
    instances: BTreeMap<&'a str, i64>,
    /// Minimum growth in bytes; smaller growth is noise.
    least: i64,
    /// Application classes that are containers. Their fields are treated as internals, like the fields of JDK
    /// collections.
    containers: BTreeSet<String>,
}

impl<'a> Aligned<'a> {
    pub(crate) fn new(summaries: &'a [Summary]) -> Option<Self> {
        let last = summaries.last()?;
        let tries: Vec<&Trie> = summaries.iter().map(|s| &s.trie).collect();
        let same = align::rows(&tries);
        let reachable = summaries
            .iter()
            .map(|s| s.info.reachable_bytes)
            .max()
            .unwrap_or(0);
        let least = least(reachable).cast_signed();
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
            containers: BTreeSet::new(),
        })
    }

    /// Adds application classes to the set of containers (classes that store other objects). A report then names the
    /// field that holds a container, instead of the container's own fields. Returns true if any of the classes was not
    /// in the set.
    pub(crate) fn mark_containers(&mut self, classes: impl IntoIterator<Item = String>) -> bool {
        let known = self.containers.len();
        self.containers.extend(classes);
        self.containers.len() > known
    }

    /// True if a class is an application container, or is nested in an application container. For example, nodes are
    /// often nested in the class of their container.
    pub(crate) fn is_container(&self, class: &str) -> bool {
        let outer = class.match_indices('$').map(|(at, _)| &class[..at]);
        !self.containers.is_empty() && outer.chain([class]).any(|c| self.containers.contains(c))
    }

    /// Returns the kind of the label `name`, which is a name in the last dump. Fields of application containers are
    /// treated as JDK fields.
    pub(crate) fn kind(&self, name: Name) -> LabelKind {
        let names = &self.last().names;
        self.kind_of(names.text(name), names.kind(name))
    }

    /// Returns the kind of a label, given its text and the kind that its trie stores. Only fields of application
    /// containers have another kind: they are treated as JDK fields.
    pub(crate) fn kind_of(&self, text: &str, kind: LabelKind) -> LabelKind {
        let declaring = text.rsplit_once('.').map(|(class, _)| class);
        match kind {
            LabelKind::ApplicationField if declaring.is_some_and(|c| self.is_container(c)) => {
                LabelKind::RuntimeField
            }
            kind => kind,
        }
    }

    pub(crate) fn last(&self) -> &'a Trie {
        self.tries[self.tries.len() - 1]
    }

    /// Returns the trie node of the first dump that corresponds to a trie node of the last dump.
    pub(crate) fn first(&self, step: StepId) -> Option<StepId> {
        *self.same[step.0 as usize].first()?
    }

    /// Returns a figure of a trie node in each dump. The figure is 0 in a dump without the trie node, which may have
    /// been too small to be stored.
    pub(crate) fn figures(&self, step: StepId, figure: impl Fn(&Step) -> u64) -> Vec<u64> {
        let row = self.same[step.0 as usize].iter().zip(&self.tries);
        row.map(|(same, trie)| same.map_or(0, |s| figure(&trie[s])))
            .collect()
    }

    /// Returns the growth of the bytes that a trie node retains.
    pub(crate) fn grown(&self, step: StepId) -> i64 {
        difference(&self.figures(step, |s| s.retained_bytes))
    }

    /// Returns every place in the heap where objects accumulate, sorted by trend and then by growth, descending.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let trie = self.last();
        // For each trie node, the larger of two numbers: the growth of the trie node itself, and the sum of the growth
        // of its children. A child that shrinks can hide the growth of its sibling.
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
                // Skip resolved constants: the JVM adds them when code runs for the first time.
                if trie.names.text(trie[child].via).ends_with(RESOLVED) {
                    continue;
                }
                let growth = self.grown(child);
                explained += growth.max(0);
                if growth >= self.least && self.grew_by_count(child) {
                    let below = trie[child].children.iter();
                    let below: i64 = below.map(|&c| growing[c.0 as usize]).sum();
                    let is_local = self.is_thread_local_map(child) && below * 2 >= growth;
                    // If `child` is the map of a thread's thread locals, continue the search below `child`. Each thread
                    // local in the map has its own holder.
                    if is_local { &mut work } else { &mut more }.push(child);
                } else if growing[child.0 as usize] >= self.least {
                    work.push(child);
                }
            }
            // The array or buffer itself became larger, while its content did not grow.
            let own = difference(&self.figures(step, |s| s.shallow_bytes));
            if more.is_empty() && own >= self.least && own > explained && step != StepId::ROOT {
                found.push(self.candidate(trie[step].parent, vec![step], true));
            } else if self.is_thread_local_map(step) {
                let each = more
                    .into_iter()
                    .map(|one| self.candidate(step, vec![one], false));
                found.extend(each);
            } else if !more.is_empty() {
                found.push(self.candidate(step, more, false));
            }
        }
        found.extend(self.uncovered_buffers(&found, self.least));
        self.estimate_missing(&mut found);
        self.merge_related(&mut found);
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

    /// Returns how much of the growth of reachable bytes the candidates explain. A candidate inside the content of
    /// another one is not counted again. The result is at most the total growth, even if something else shrank.
    pub(crate) fn explained_growth(&self, candidates: &[&Candidate]) -> u64 {
        let trie = self.last();
        let steps = |c: &&'_ Candidate| [&c.content[..], &c.beside].concat();
        let whole = candidates.iter().filter(|c| !c.is_rest);
        let all: BTreeSet<StepId> = whole.flat_map(steps).collect();
        let is_inside = |s: StepId| trie.above(trie[s].parent).any(|a| all.contains(&a));
        let counted = candidates
            .iter()
            .filter(|c| !steps(c).into_iter().all(is_inside));
        let sum: u64 = counted
            .map(|c| u64::try_from(c.growth()).unwrap_or(0))
            .fold(0, u64::saturating_add);
        let reachable: Vec<u64> = self
            .summaries
            .iter()
            .map(|s| s.info.reachable_bytes)
            .collect();
        sum.min(u64::try_from(difference(&reachable)).unwrap_or(0))
    }

    /// Returns the growth by which candidates are ranked. It is doubled if a field of the application holds the
    /// candidate. The JDK's own lists (cleaners, finalizers) grow along with the application's objects. If a JDK list
    /// and an application field grow equally, the field should come first, because a programmer can fix it.
    pub(crate) fn weight(&self, candidate: &Candidate) -> i64 {
        let own = self.labels(candidate).iter().any(|l| is_application(l.1));
        candidate
            .all_growth()
            .saturating_mul(if own { 2 } else { 1 })
    }

    /// Estimates the figures of candidates in dumps that have no corresponding trie node. The estimate is the number of
    /// all instances of the candidate's class in the dump, minus the instances in all other trie nodes. The figures of
    /// all trie nodes of a class then add up to the total of the class.
    fn estimate_missing(&self, found: &mut [Candidate]) {
        found.sort_by_key(|c| (std::cmp::Reverse(c.all_growth()), c.at, c.named));
        let mut given: BTreeMap<(Name, usize), u64> = BTreeMap::new();
        for candidate in found {
            let trie = self.last();
            let class = trie[candidate.named].class;
            let text = trie.names.text(class);
            let Some((&last, shallow, retained)) = candidate.objects.last().and_then(|last| {
                let shallow = candidate.shallow.last()?;
                Some((last, *shallow, *candidate.retained.last()?))
            }) else {
                continue;
            };
            if !names::is_application_class_name(text) || candidate.in_place || last == 0 {
                continue;
            }
            for i in 0..self.tries.len().saturating_sub(1) {
                let steps = candidate.content.iter().chain([&candidate.named]);
                if steps.clone().any(|s| self.same[s.0 as usize][i].is_some()) {
                    continue;
                }
                let given = given.entry((class, i)).or_default();
                let left = self
                    .unaligned_instances(text, i)
                    .saturating_sub(*given)
                    .min(last);
                if left == 0 {
                    continue;
                }
                *given += left;
                candidate.objects[i] = left;
                candidate.shallow[i] = interpolate(0, shallow, left, last);
                candidate.retained[i] = interpolate(0, retained, left, last);
                candidate.by_class.push(i);
            }
        }
    }

    /// Returns an estimate for an earlier dump: the number of instances of a class in trie nodes that are not aligned
    /// with the last dump. Some instances are in no trie node. The estimate assumes that the earlier dump has as many
    /// of these as the last dump.
    fn unaligned_instances(&self, class: &str, dump: usize) -> u64 {
        let of_class = |trie: &Trie, is_counted: &dyn Fn(StepId) -> bool| -> u64 {
            let steps = (1..trie.len() as u32).map(StepId);
            let steps = steps.filter(|&s| trie.names.text(trie[s].class) == class && is_counted(s));
            steps.map(|s| trie[s].objects).sum()
        };
        let Some(end) = self.tries.len().checked_sub(1) else {
            return 0;
        };
        let aligned: BTreeSet<StepId> = self.same.iter().filter_map(|row| row[dump]).collect();
        let then = self.summaries[dump].instances(class);
        let now = self.summaries[end].instances(class);
        let then = then.saturating_sub(of_class(self.tries[dump], &|s| aligned.contains(&s)));
        let now = now.saturating_sub(of_class(self.tries[end], &|_| true));
        then.saturating_sub(now)
    }

    /// Computes the bytes of a candidate in each dump, and their trend.
    pub(crate) fn follow(&self, candidate: &mut Candidate) {
        let class = self.last().names.text(self.last()[candidate.named].class);
        let instances: Vec<u64> = self.summaries.iter().map(|s| s.instances(class)).collect();
        let all = [&candidate.content[..], &candidate.beside].concat();
        let count = self.tries.len();
        let by_class = std::mem::take(&mut candidate.by_class);
        let is_missing = |i: usize| {
            !by_class.contains(&i) && all.iter().all(|s| self.same[s.0 as usize][i].is_none())
        };
        // True if the candidate's objects existed in dump `i`, although its trie nodes are missing there. Then the
        // objects were on other paths. The test uses the nearest known dump before `i` and the nearest known dump after
        // it. Dump `i` must have at least half of the smaller number of instances in these two. `None` if one of the
        // two dumps does not exist.
        let are_there = |i: usize| {
            let known = |&j: &usize| !is_missing(j);
            let before = (0..i).rev().find(known)?;
            let after = (i + 1..count).find(known)?;
            Some(instances[i] * 2 >= instances[before].min(instances[after]))
        };
        candidate.elsewhere = (1..count.saturating_sub(1))
            .filter(|&i| is_missing(i) && are_there(i) == Some(true))
            .collect();
        candidate.by_class = by_class;
        candidate.series = candidate.bytes();
        let elsewhere = &candidate.elsewhere;
        for &i in elsewhere {
            let known = |j: &usize| !elsewhere.contains(j);
            let from = (0..i).rev().find(known).map_or(0, |j| j);
            let to = (i + 1..count).find(known).map_or(0, |j| j);
            let (part, all) = ((i - from) as u64, (to - from) as u64);
            for figures in [
                &mut candidate.series,
                &mut candidate.retained,
                &mut candidate.objects,
                &mut candidate.shallow,
            ] {
                figures[i] = interpolate(figures[from], figures[to], part, all);
            }
        }
        candidate.trend = self.trend_of(&candidate.series).trend;
    }

    /// Returns the trend of figures, one for each dump, over the time between the dumps. If the bytes that the program
    /// allocated in this time are known, they also influence the trend.
    pub(crate) fn trend_of(&self, figures: &[u64]) -> Course {
        let times = self.summaries.iter().map(|s| s.info.taken_ms);
        let timed = times.zip(figures.iter().copied());
        let noise = self.least.cast_unsigned();
        match self.work() {
            Some(work) => {
                let points = timed
                    .zip(work)
                    .map(|((time, figure), work)| (time, work, figure));
                Course::from_work(&points.collect::<Vec<_>>(), noise)
            }
            None => Course::from_points(&timed.collect::<Vec<_>>(), noise),
        }
    }

    /// Returns the number of bytes that the program had allocated at each dump, since the agent's start. Returns `None`
    /// if there are fewer than [`ENOUGH_FOR_WORK`] samples, or if the dumps are not all of one JVM.
    fn work(&self) -> Option<Vec<u64>> {
        let of_dumps = self.summaries.iter().map(|s| s.allocated.as_ref());
        let of_dumps = of_dumps.collect::<Option<Vec<_>>>()?;
        let one_jvm = of_dumps.windows(2).all(|w| w[1].same_jvm(w[0]).is_some());
        let taken: u64 = of_dumps.last()?.samples.totals.iter().map(|t| t.0).sum();
        let mut done = 0;
        let work = of_dumps.iter().map(|a| {
            // Allocated bytes never fall, but an estimate of them can be a little lower than an earlier one.
            done = a.samples.allocated.iter().sum::<u64>().max(done);
            done
        });
        (one_jvm && taken >= ENOUGH_FOR_WORK).then(|| work.collect())
    }

    /// Returns candidates for direct buffers whose memory outside of the heap grew by at least `least` bytes. Leaves
    /// out buffers in the content of the candidates in `found`. If a candidate in `found` is below a returned one in
    /// the trie, its figures are subtracted from those of the returned candidate.
    fn uncovered_buffers(&self, found: &[Candidate], least: i64) -> Vec<Candidate> {
        let trie = self.last();
        let Some(last) = self.summaries.last() else {
            return Vec::new();
        };
        let content: BTreeSet<StepId> = found.iter().flat_map(|c| &c.content).copied().collect();
        let steps = last.stats.off_heap.keys().copied();
        let of_others = |candidate: &mut Candidate, step: StepId| {
            let is_below = |c: &&Candidate| {
                let heads = &mut c.content.iter();
                heads.any(|&s| trie.above(s).any(|above| above == step))
            };
            for other in found.iter().filter(is_below) {
                candidate.is_rest = true;
                for (own, theirs) in candidate.retained.iter_mut().zip(&other.retained) {
                    *own = own.saturating_sub(*theirs);
                }
                for (own, theirs) in candidate.off_heap.iter_mut().zip(&other.off_heap) {
                    own.buffers = own.buffers.saturating_sub(theirs.buffers);
                    own.bytes = own.bytes.saturating_sub(theirs.bytes);
                }
            }
        };
        let outside = |c: &Candidate| c.off_heap.iter().map(|o| o.bytes).collect::<Vec<_>>();
        steps
            .filter(|&s| s != StepId::ROOT)
            .filter(|&s| trie.above(s).all(|a| !content.contains(&a)))
            .map(|s| {
                let mut candidate = self.candidate(trie[s].parent, vec![s], false);
                of_others(&mut candidate, s);
                candidate
            })
            .filter(|c| difference(&outside(c)) >= least)
            .collect()
    }

    /// Returns, for each dump, the memory outside of the heap that direct buffers in these trie nodes and their
    /// descendants own.
    fn off_heap(&self, steps: &[StepId]) -> Vec<OffHeap> {
        let in_dump = |i: usize| {
            let (stats, trie) = (&self.summaries[i].stats, self.tries[i]);
            let mut sum = OffHeap::default();
            if stats.off_heap.is_empty() {
                return sum;
            }
            let row = |s: &StepId| self.same[s.0 as usize][i];
            let inside: BTreeSet<StepId> = steps.iter().filter_map(row).collect();
            // If a trie node was too small to be stored in a dump, count the buffers at its nearest ancestor in this
            // dump.
            let pooled: BTreeSet<StepId> = steps
                .iter()
                .filter(|s| row(s).is_none())
                .filter_map(|&s| self.last().above(s).find_map(|a| row(&a)))
                .filter(|&a| a != StepId::ROOT)
                .collect();
            for (&step, own) in &stats.off_heap {
                if pooled.contains(&step) || trie.above(step).any(|a| inside.contains(&a)) {
                    sum.buffers += own.buffers;
                    sum.bytes = sum.bytes.saturating_add(own.bytes);
                }
            }
            sum
        };
        (0..self.tries.len()).map(in_dump).collect()
    }

    /// True if the candidate's objects existed before, and only the paths to them changed: a second path was added, or
    /// one of two paths disappeared. Then the candidate grew, but its class did not. The test: the class gained less
    /// than half as many objects as the candidate. First, the growth in `greater` (candidates with a higher rank) is
    /// subtracted from the growth of the class.
    fn only_moved(&self, candidate: &Candidate, greater: &[Candidate]) -> bool {
        let trie = self.last();
        let shared = |&s: &StepId| trie.names.kind(trie[s].via) == LabelKind::Shared;
        let class = trie.names.text(trie[candidate.named].class);
        // A trie node that is new in the last dump may hold old objects: several paths led to them before, and now one
        // path does.
        let is_new = candidate.objects.first() == Some(&0) && !is_jdk(class);
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
            .map(|&s| self.subtree_count_growth(s, class))
            .sum();
        (all - explained) * 2 < difference(&candidate.objects)
    }

    /// Returns the growth of the number of objects of a class, in a trie node and in all trie nodes below it.
    fn subtree_count_growth(&self, step: StepId, class: &str) -> i64 {
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

    /// True if a trie node belongs to the maps in which threads hold the values of their thread locals.
    fn is_thread_local_map(&self, step: StepId) -> bool {
        let trie = self.last();
        let class = trie.names.text(trie[step].class);
        class.starts_with("java.lang.ThreadLocal$ThreadLocalMap")
    }

    /// True if a trie node grew because it has more objects, rather than because each of its objects holds more.
    fn grew_by_count(&self, step: StepId) -> bool {
        let objects = self.figures(step, |s| s.objects);
        let retained = self.figures(step, |s| s.retained_bytes);
        match (&objects[..], &retained[..]) {
            (&[n0, .., n1], &[b0, .., b1]) => share::grew_more_by_count([n0, n1], [b0, b1]),
            _ => false,
        }
    }

    fn candidate(&self, at: StepId, content: Vec<StepId>, in_place: bool) -> Candidate {
        let named = if in_place {
            content[0]
        } else {
            self.reported_step(content[0])
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
            is_rest: false,
            retained: sum(&content, &|s| s.retained_bytes),
            objects: self.figures(named, |s| s.objects),
            shallow: self.figures(named, |s| s.shallow_bytes),
            off_heap: self.off_heap(&content),
            series: Vec::new(),
            trend: Trend::Level,
            by_class: Vec::new(),
            elsewhere: Vec::new(),
            content,
            beside: Vec::new(),
            counted: vec![named],
        }
    }

    /// Returns the trie node that a report names for a candidate's content. Usually this is the trie node of the
    /// content itself. If the content consists of internal objects of a collection (its nodes, entries or arrays), this
    /// is the trie node of the objects that these internal objects hold.
    fn reported_step(&self, content: StepId) -> StepId {
        let trie = self.last();
        let mut best = content;
        let mut at = content;
        let is_container = |s: StepId| {
            let class = trie.names.text(trie[s].class);
            names::is_collection_part(class) || self.is_container(class)
        };
        while is_container(at) {
            let growing = trie[at]
                .children
                .iter()
                .copied()
                .filter(|&c| self.grown(c) * 8 >= self.grown(content));
            // If several trie nodes grow, such as a map's keys and values, prefer those of an application class.
            let own = |c: StepId| {
                let class = trie.names.text(trie[c].class);
                names::is_application_class_name(class)
                    && !names::is_collection_part(class)
                    && !self.is_container(class)
            };
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

    /// Merges candidates that a reader would regard as one:
    ///
    /// - candidates of one holder and one class, such as two kinds of nodes in a table;
    /// - candidates below one application field or one static field of the JDK, such as the keys, values and table of a
    ///   map. The field may be one trie node, or several trie nodes that are reached through the same fields.
    fn merge_related(&self, found: &mut Vec<Candidate>) {
        let trie = self.last();
        found.sort_by_key(|c| (std::cmp::Reverse(c.all_growth()), c.at, c.named));
        let mut merged: Vec<Candidate> = Vec::new();
        let mut by_class: BTreeMap<(String, Name), usize> = BTreeMap::new();
        let mut by_field: BTreeMap<StepId, usize> = BTreeMap::new();
        let mut by_fields: BTreeMap<Vec<Name>, usize> = BTreeMap::new();
        // For each candidate in `merged`: the trie nodes of the fields that hold it and the candidates merged into it.
        // Only application fields and static fields of the JDK count. `None` if one of these candidates has no such
        // field.
        let mut tops: Vec<Option<BTreeSet<StepId>>> = Vec::new();
        for candidate in found.drain(..) {
            let class = trie[candidate.named].class;
            let key = (self.holder(&candidate), class);
            let field = self
                .application_field_step(&candidate)
                .or_else(|| self.innermost(&candidate, &|k| k == LabelKind::RuntimeStatic));
            let known = by_class.get(&key);
            let fields = self.own_fields(&candidate);
            let known = known.or_else(|| by_field.get(&field?));
            let known = known.or_else(|| by_fields.get(&fields)).copied();
            let at = known.unwrap_or(merged.len());
            by_class.entry(key).or_insert(at);
            if let Some(field) = field {
                by_field.entry(field).or_insert(at);
            }
            if !fields.is_empty() {
                by_fields.entry(fields).or_insert(at);
            }
            match known {
                Some(at) => {
                    let same = trie[merged[at].named].class == class;
                    merged[at].merge(candidate, same);
                    match (&mut tops[at], field) {
                        (Some(fields), Some(field)) => drop(fields.insert(field)),
                        (fields, _) => *fields = None,
                    }
                }
                None => {
                    merged.push(candidate);
                    tops.push(field.map(|field| BTreeSet::from([field])));
                }
            }
        }
        for (candidate, tops) in merged.iter_mut().zip(tops) {
            if let Some(tops) = tops.filter(|_| !candidate.beside.is_empty()) {
                self.limit_to_fields(candidate, &tops);
            }
        }
        *found = merged;
    }

    /// Limits the retained bytes of a candidate to the retained bytes of the fields that hold it. Without the limit,
    /// bytes could be counted several times: if nodes of a structure hold further nodes, the content of a node is part
    /// of the retained bytes of each of its ancestors.
    fn limit_to_fields(&self, candidate: &mut Candidate, fields: &BTreeSet<StepId>) {
        let trie = self.last();
        let above = |s: StepId| trie.above(trie[s].parent).any(|a| fields.contains(&a));
        let mut most = vec![0_u64; candidate.retained.len()];
        for &field in fields.iter().filter(|&&f| !above(f)) {
            for (most, bytes) in most
                .iter_mut()
                .zip(self.figures(field, |s| s.retained_bytes))
            {
                *most = most.saturating_add(bytes);
            }
        }
        for (retained, most) in candidate.retained.iter_mut().zip(most) {
            *retained = (*retained).min(most);
        }
    }

    /// Returns the innermost trie node that a field of an application class holds, on the path from the root to the top
    /// object of the growing structure.
    pub(crate) fn application_field_step(&self, candidate: &Candidate) -> Option<StepId> {
        self.innermost(candidate, &is_application)
    }

    /// Returns the fields of application classes on the path from the root to the top object of the growing structure.
    fn own_fields(&self, candidate: &Candidate) -> Vec<Name> {
        let trie = self.last();
        let path = self.steps_to_head(candidate);
        let fields = path.into_iter().map(|s| trie[s].via);
        fields.filter(|&f| is_application(self.kind(f))).collect()
    }

    fn innermost(
        &self,
        candidate: &Candidate,
        wanted: &dyn Fn(LabelKind) -> bool,
    ) -> Option<StepId> {
        let trie = self.last();
        let path = self.steps_to_head(candidate);
        let mut up = path.into_iter().rev();
        up.find(|&s| wanted(self.kind(trie[s].via)))
    }

    /// Returns the trie nodes on the path from the root down to the top object (the head) of the growing structure. The
    /// root itself is left out.
    fn steps_to_head(&self, candidate: &Candidate) -> Vec<StepId> {
        let trie = self.last();
        let mut path = trie.path(candidate.at);
        // Include the first trie node of the candidate's content. If the growing structure is a chain, this node
        // represents the objects of the chain, and its label names the field that holds the head.
        path.extend(candidate.content.first());
        // If the growing structure is a tree of application objects, the path ends at the tree's root. Objects on the
        // path are nodes of the tree if their class occurs again below the head, which is the first trie node of the
        // candidate's content.
        if let Some(&head) = candidate.content.first() {
            let again = trie.classes_below(head);
            let is_node = |&s: &StepId| {
                again.contains(&trie[s].class) && !is_jdk(trie.names.text(trie[s].class))
            };
            if let Some(root) = trie.path(candidate.at).iter().position(is_node) {
                path.truncate(root + 1);
            }
        }
        if self.tries.len() == 1
            && let Some(root) = path.iter().position(|&s| self.is_root_of_tree(s))
        {
            path.truncate(root + 1);
        }
        path
    }

    /// Returns the references from the root down to the top object of the growing structure.
    pub(crate) fn labels(&self, candidate: &Candidate) -> Vec<Label> {
        let trie = self.last();
        let path = self.steps_to_head(candidate);
        path.iter()
            .map(|&s| {
                (
                    trie.names.text(trie[s].via).to_owned(),
                    self.kind(trie[s].via),
                )
            })
            .collect()
    }

    /// Returns the name of the field whose content grows. If there is no field, returns the class that holds the
    /// candidate's content.
    fn holder(&self, candidate: &Candidate) -> String {
        let trie = self.last();
        holder(&self.labels(candidate))
            .unwrap_or_else(|| trie.names.text(trie[candidate.at].class).to_owned())
    }
}

/// True if a label names a field that an application class declares.
pub(crate) fn is_application(kind: LabelKind) -> bool {
    matches!(
        kind,
        LabelKind::ApplicationField | LabelKind::ApplicationStatic
    )
}

/// Returns the field whose content grows, chosen among the references on the path to the candidate's content. It is the
/// first of these that the path has:
///
/// - the nearest field of an application class;
/// - the nearest static field;
/// - the nearest field that is not internal to a collection;
/// - the nearest field.
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

/// Returns the reference and the class of a trie node, as strings.
fn label<'a>(trie: &'a Trie, step: &Step) -> (&'a str, &'a str) {
    (trie.names.text(step.via), trie.names.text(step.class))
}

#[cfg(test)]
mod tests;
