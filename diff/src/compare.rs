//! Compares dumps: takes summaries and returns a report.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_model::diff::{self, ClassGrowth, Delta, Report, Stack, Suspect, Verdict, difference};
use hprof::Snapshot;

use crate::allocated::{Allocated, Content};
use crate::comparable;
use crate::evidence::context::{Last, SuspectContext};
use crate::evidence::detect::have_held_referents;
use crate::evidence::survival::Survival;
use crate::evidence::usage::Usages;
use crate::growth::{Aligned, Candidate};
use crate::headline::Headline;
use crate::joined::{self, StackSource};
use crate::known::add_known_leaks;
use crate::left_out;
use crate::next_step;
use crate::pending::add_work;
use crate::summary::{ClassFigures, ClassKey, Summary};
use crate::suspect::{self, containers};
use crate::through::through;

/// A leak is moved before larger suspects only if it has at least 1/10 of the growth of all suspects.
const LEADING_PART: i64 = 10;
/// Maximum number of levels of nested application containers that are recognized.
const CONTAINERS: usize = 3;

/// The filter of a report: the classes to include, and the maximum number of suspects.
pub struct Filter<'a> {
    /// Returns true if an item is to be reported. The argument is the item's class names. A class has one name. A
    /// suspect has two: the class that accumulates, and the class that declares the holding field. The classes between
    /// these (mostly collections) are not tested.
    pub classes: &'a dyn Fn(&[&str]) -> bool,
    /// Maximum number of suspects to report.
    pub suspects: usize,
    /// A source of stacks for suspects without samples in the dumps, such as a recording.
    pub recording: Option<&'a dyn StackSource>,
}

impl Default for Filter<'_> {
    /// Includes all classes, and at most ten suspects.
    fn default() -> Self {
        Self {
            classes: &|_| true,
            suspects: 10,
            recording: None,
        }
    }
}

impl std::fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter")
            .field("suspects", &self.suspects)
            .finish_non_exhaustive()
    }
}

/// A comparison of two or more dumps.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub(crate) summaries: &'a [Summary],
    pub(crate) last: Last<'a>,
}

impl<'a> Comparison<'a> {
    /// Creates a comparison from the summaries of all dumps, oldest first, and the last dump, still open. Paths, bounds
    /// and the evidence of detectors are read from the last dump.
    ///
    /// # Errors
    /// Returns [`hprof::Error::Changed`] if the last summary is of another dump.
    pub fn new(summaries: &'a [Summary], last: &'a Snapshot) -> hprof::Result<Self> {
        let summarized = summaries.last().map(|s| (s.info.taken_ms, s.info.bytes));
        let now = last.source().file_bytes();
        if summarized == Some((last.header().taken_ms, now)) {
            let last = Last::Dump(last);
            return Ok(Self { summaries, last });
        }
        Err(hprof::Error::Changed {
            path: last.source().path().to_owned(),
            before: summarized.map_or(0, |(_, bytes)| bytes),
            now,
        })
    }

    /// Creates a comparison from summaries alone, oldest first. The last summary must be read from a summary file,
    /// because this file has the evidence that a comparison otherwise reads from the last dump. Returns `None` if the
    /// summary has no such evidence.
    #[must_use]
    pub fn from_summaries(summaries: &'a [Summary]) -> Option<Self> {
        let last = Last::Summary(summaries.last()?.facts.as_ref()?);
        Some(Self { summaries, last })
    }

    /// Compares the dumps.
    ///
    /// With fewer than two dumps there are no suspects.
    ///
    /// Cost: a walk over the tries, which have some thousand nodes. Then at most some ten thousand objects are read
    /// from the file for each candidate that gets a verdict.
    #[must_use]
    pub fn report(&self, filter: &Filter<'_>) -> Report {
        self.report_and_contents(filter).0
    }

    /// Compares the dumps as [`Self::report`] does, and returns the stacks of all samples. They include the stacks of
    /// the suspects. The stacks are `None` if the last dump has no samples.
    ///
    /// Cost: that of [`Self::report`], and one visit to each sample.
    #[must_use]
    pub fn report_with_stacks(&self, filter: &Filter<'_>) -> (Report, Option<Allocated>) {
        let (report, contents) = self.report_and_contents(filter);
        (report, Allocated::between(self.summaries, &contents))
    }

    /// Returns the report, and the content of each suspect.
    fn report_and_contents(&self, filter: &Filter<'_>) -> (Report, Vec<Content>) {
        let figures =
            |f: &dyn Fn(&Summary) -> u64| self.summaries.iter().map(f).collect::<Vec<u64>>();
        let doubts = comparable::doubts(self.summaries);
        let usages = Usages::of_last(self.last);
        let (mut suspects, contents, explained_bytes) = self.suspects(filter, &usages);
        let grown = difference(&figures(&|s| s.info.reachable_bytes));
        let dump = self.summaries.last().map_or("", |s| &s.info.path);
        for suspect in &mut suspects {
            suspect.headline = Headline::new(suspect, grown).to_string();
            suspect.likely_fix = next_step::likely_fix(suspect);
            // The commands that show details read objects, and a summary has no objects.
            if self.last.dump().is_some() {
                suspect.next = next_step::commands(suspect, dump);
            }
        }
        add_known_leaks(self.last.dump(), &mut suspects);
        if let Some(snapshot) = self.last.dump() {
            add_work(snapshot, &mut suspects);
        }
        let warnings = doubts.iter().map(ToString::to_string);
        let snapshots: Vec<_> = self.summaries.iter().map(|s| s.info.clone()).collect();
        let mut report = Report {
            schema: "heapdiff.diff/1".into(),
            comparable: doubts.is_empty(),
            warnings: warnings.chain(usages.warning()).collect(),
            delta: match self.summaries.len() {
                0 | 1 => Delta::default(),
                _ => Delta {
                    objects: difference(&figures(&|s| s.info.reachable_objects)),
                    shallow_bytes: difference(&figures(&|s| s.info.reachable_bytes)),
                },
            },
            oom: None,
            heap_trend: None,
            explained_bytes,
            noise_bytes: diff::noise(&snapshots),
            snapshots,
            classes: self.classes(filter),
            suspects,
            owners: None,
            unreachable: None,
            recordings: Vec::new(),
            left_out: Vec::new(),
        };
        report.list_left_out();
        if !Summary::are_from_several_jvms(self.summaries) {
            crate::outlook::add(&mut report, None);
        }
        (report, contents)
    }

    fn classes(&self, filter: &Filter<'_>) -> Vec<ClassGrowth> {
        let mut lines: BTreeMap<&ClassKey, Vec<ClassFigures>> = BTreeMap::new();
        for (i, summary) in self.summaries.iter().enumerate() {
            for (key, &figures) in &summary.classes {
                let line = lines
                    .entry(key)
                    .or_insert_with(|| vec![ClassFigures::default(); self.summaries.len()]);
                line[i] = figures;
            }
        }
        lines.retain(|key, line| {
            (filter.classes)(&[&key.0]) && line.windows(2).any(|w| w[0] != w[1])
        });
        let mut classes: Vec<ClassGrowth> = lines
            .into_iter()
            .map(|((class, loader), line)| ClassGrowth {
                class: class.clone(),
                loader: loader.clone(),
                objects: line.iter().map(|f| f.reachable.objects).collect(),
                shallow_bytes: line.iter().map(|f| f.reachable.bytes).collect(),
                retained_bytes: line.iter().map(|f| f.retained_bytes).collect(),
            })
            .collect();
        // The sort is stable, so equal entries keep the map's order, which is by name.
        classes.sort_by_key(|c| {
            std::cmp::Reverse((difference(&c.retained_bytes), difference(&c.shallow_bytes)))
        });
        classes
    }

    /// Returns the suspects, the content of each suspect, and the number of bytes of heap growth that the suspects
    /// explain together.
    fn suspects(&self, filter: &Filter<'_>, usages: &Usages) -> (Vec<Suspect>, Vec<Content>, u64) {
        let (last, summaries) = (self.last, self.summaries);
        let Some(mut aligned) = Aligned::new(summaries).filter(|_| summaries.len() > 1) else {
            return (Vec::new(), Vec::new(), 0);
        };
        // The verdicts change the order of suspects. So verdicts are computed for twice as many candidates as are
        // reported.
        let looked_into = filter.suspects.saturating_mul(2);
        let candidates = find_with_containers(last, &mut aligned, looked_into, Aligned::candidates);
        let told = judge_candidates(last, summaries, filter, &aligned, candidates, looked_into);
        let mut explaining: Vec<&Candidate> = Vec::new();
        let mut suspects: Vec<(Suspect, Content, (bool, i64))> = told
            .iter()
            .filter_map(|(candidate, suspect)| {
                let context = SuspectContext::new(last, summaries, &aligned, candidate);
                let mut suspect = suspect.clone();
                let content = Content::of(candidate, &aligned, suspect.coverage.growth_bytes);
                let survival = self.attribute(&mut suspect, &content);
                let is_told = suspect::add_verdict(&context, &mut suspect, survival, usages);
                // The verdict is final here, so the stacks of a recording cannot change it.
                if is_told {
                    joined::join(filter.recording, &mut suspect, &context);
                    suspect.left_out = left_out::parts(&context, &suspect, filter);
                }
                is_told.then_some((suspect, content, candidate))
            })
            .map(|(suspect, content, candidate)| {
                explaining.push(candidate);
                let order = order(&suspect, aligned.weight(candidate));
                (suspect, content, order)
            })
            .collect();
        suspects.sort_by_key(|s| s.2);
        let (mut suspects, contents): (Vec<Suspect>, Vec<Content>) = suspects
            .into_iter()
            .map(|(s, content, _)| (s, content))
            .unzip();
        suspect::fold_collections(&mut suspects, suspect::grew_with_content);
        leak_first(&mut suspects);
        suspects.truncate(filter.suspects);
        for (suspect, rank) in suspects.iter_mut().zip(1..) {
            suspect.rank = rank;
        }
        (suspects, contents, aligned.explained_growth(&explaining))
    }

    /// Adds to the suspect the stacks that allocated its growth. Returns the survival of the first dump's samples, if
    /// it is known.
    fn attribute(&self, suspect: &mut Suspect, content: &Content) -> Option<Survival> {
        let [first, .., last] = self.summaries else {
            return None;
        };
        let allocated = last.allocated.as_ref()?;
        let before = first.allocated.as_ref();
        let before = before.map(|a| (a, &first.trie, &content.first[..]));
        let growing = allocated.growing(&last.trie, &content.last, before, content.growth_bytes);
        (suspect.stacks, suspect.coverage) = (growing.stacks, growing.coverage);
        suspect.labels = growing.labels;
        if suspect.stacks.is_empty()
            && let Some((first, ..)) = before
        {
            suspect.allocated_at = allocated.allocated_at(&suspect.class, first);
        }
        let outside = difference(&suspect.off_heap_bytes);
        if outside > suspect.growth.retained_bytes {
            move_buffer_stacks_first(&mut suspect.stacks);
        }
        suspect.allocated_through = through(&suspect.stacks);
        let taken = [first.info.taken_ms, last.info.taken_ms];
        allocated.survival(&last.trie, &content.last, before?, taken, &suspect.stacks)
    }
}

/// Moves the stacks that allocated direct buffers to the front. Used if the suspect grew more outside of the heap than
/// inside.
fn move_buffer_stacks_first(stacks: &mut [Stack]) {
    stacks.sort_by_key(|stack| !stack.class.starts_with("java.nio.Direct"));
}

/// Finds candidates with `find`. Looks for containers (application classes that store other objects) among the classes
/// whose fields hold the first `looked_into` candidates. If there are new containers, records them in `aligned` and
/// calls `find` again, at most [`CONTAINERS`] times. Returns the result of the last call.
pub(crate) fn find_with_containers<'a>(
    last: Last<'_>,
    aligned: &mut Aligned<'a>,
    looked_into: usize,
    find: impl Fn(&Aligned<'a>) -> Vec<Candidate>,
) -> Vec<Candidate> {
    let mut candidates = find(aligned);
    for _ in 0..CONTAINERS {
        let judged = &candidates[..looked_into.min(candidates.len())];
        let containers = containers::container_classes(last, aligned, judged);
        if !aligned.mark_containers(containers) {
            break;
        }
        candidates = find(aligned);
    }
    candidates
}

/// Returns the candidates that need a verdict, each with its suspect. Candidates with the same path to the same holding
/// field are merged, because all objects that a holder dominates are its content.
pub(crate) fn judge_candidates(
    last: Last<'_>,
    summaries: &[Summary],
    filter: &Filter<'_>,
    aligned: &Aligned<'_>,
    candidates: Vec<Candidate>,
    count: usize,
) -> Vec<(Candidate, Suspect)> {
    let of = |candidate: &Candidate| {
        suspect::of(&SuspectContext::new(last, summaries, aligned, candidate))
    };
    let mut told: Vec<(Candidate, Suspect)> = Vec::new();
    let mut more: BTreeSet<usize> = BTreeSet::new();
    for candidate in candidates {
        if told.len() >= count {
            break;
        }
        if have_held_referents(&SuspectContext::new(last, summaries, aligned, &candidate)) {
            continue;
        }
        let (suspect, declaring) = of(&candidate);
        if !(filter.classes)(&[&suspect.class, &declaring]) {
            continue;
        }
        let way = path_to_field(&suspect);
        let same = told
            .iter()
            .position(|t| way.is_some() && self::path_to_field(&t.1) == way);
        match same {
            Some(at) => {
                let (known, known_suspect) = &mut told[at];
                known.merge(candidate, known_suspect.class == suspect.class);
                aligned.follow(known);
                more.insert(at);
            }
            None => told.push((candidate, suspect)),
        }
    }
    for at in more {
        told[at].1 = of(&told[at].0).0;
    }
    told
}

/// Returns the root of a suspect and the references from it down to the field that holds the suspect. Returns `None` if
/// no field holds it.
fn path_to_field(suspect: &Suspect) -> Option<(&str, &[String])> {
    let at = suspect.path.iter().rposition(|p| *p == suspect.holder)?;
    Some((&suspect.root, &suspect.path[..=at]))
}

/// Moves the first leak to the front if it has at least a tenth of the growth of all suspects.
fn leak_first(suspects: &mut [Suspect]) {
    let all = suspects.iter().map(|s| s.growth_with_off_heap().max(0));
    let all = all.fold(0, i64::saturating_add);
    let first = suspects.iter().position(|s| s.verdict == Verdict::Leak);
    if let Some(at) = first
        && suspects[at]
            .growth_with_off_heap()
            .saturating_mul(LEADING_PART)
            >= all
    {
        suspects[..=at].rotate_right(1);
    }
}

/// Returns the sort key of suspects. Leaks and growth come before caches and warm-up. Each group is sorted by size, and
/// the size of a leak counts double.
fn order(suspect: &Suspect, weight: i64) -> (bool, i64) {
    let harmless = matches!(suspect.verdict, Verdict::Cache | Verdict::Warmup);
    let factor = match suspect.verdict {
        Verdict::Leak => 2,
        _ => 1,
    };
    let weight = weight.saturating_mul(factor);
    (harmless, weight.saturating_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_direct_buffers_come_first() {
        let stack = |class: &str, bytes| Stack {
            class: class.to_owned(),
            samples: 1,
            estimated_bytes: bytes,
            ci95: [bytes; 2],
            estimated_objects: 1,
            survival_permille: 1000,
            survival_known: true,
            ..Stack::default()
        };
        let mut stacks = [
            stack("byte[]", 3000),
            stack("java.nio.DirectByteBuffer", 640),
            stack("java.nio.DirectByteBuffer", 64),
            stack("com.acme.Chunk", 24),
        ];
        move_buffer_stacks_first(&mut stacks);
        assert_eq!(
            stacks.each_ref().map(|s| s.estimated_bytes),
            [640, 64, 3000, 24]
        );
    }
}
