//! The comparison: summaries in, report out.

use std::collections::BTreeMap;

use hprof::Snapshot;

use crate::growth::{Aligned, Candidate, difference};
use crate::names::LabelKind;
use crate::report::{ClassGrowth, Coverage, Delta, Growth, Report, Suspect, Verdict};
use crate::summary::{ClassFigures, ClassKey, Summary};
use crate::trie::StepId;

/// Which classes a report speaks of.
pub struct Filter<'a> {
    /// Whether a class of this name is to be reported.
    pub class: &'a dyn Fn(&str) -> bool,
    /// The most suspects to report.
    pub suspects: usize,
}

impl std::fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("suspects", &self.suspects).finish_non_exhaustive()
    }
}

/// Summaries of dumps, oldest first.
#[derive(Debug, Default)]
pub struct Comparison {
    summaries: Vec<Summary>,
}

impl Comparison {
    /// Adds a dump, taken later than those before.
    pub fn add(&mut self, summary: Summary) {
        self.summaries.push(summary);
    }

    /// The dumps so far.
    #[must_use]
    pub fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    /// Compares the dumps. `last` is the last dump, still open, in which paths are looked up.
    ///
    /// # Errors
    /// When the last dump cannot be read again.
    pub fn report(&self, last: &Snapshot, filter: &Filter<'_>) -> hprof::Result<Report> {
        let figures = |f: &dyn Fn(&Summary) -> u64| self.summaries.iter().map(f).collect::<Vec<u64>>();
        Ok(Report {
            schema: "heapdiff.diff/1",
            snapshots: self.summaries.iter().map(|s| s.info.clone()).collect(),
            delta: Delta {
                objects: difference(&figures(&|s| s.info.reachable_objects)),
                shallow_bytes: difference(&figures(&|s| s.info.reachable_bytes)),
            },
            classes: self.classes(filter),
            suspects: self.suspects(last, filter)?,
        })
    }

    fn classes(&self, filter: &Filter<'_>) -> Vec<ClassGrowth> {
        let mut lines: BTreeMap<&ClassKey, Vec<ClassFigures>> = BTreeMap::new();
        for (i, summary) in self.summaries.iter().enumerate() {
            for (key, &figures) in &summary.classes {
                let line = lines.entry(key).or_insert_with(|| vec![ClassFigures::default(); self.summaries.len()]);
                line[i] = figures;
            }
        }
        lines.retain(|key, line| (filter.class)(&key.0) && line.windows(2).any(|w| w[0] != w[1]));
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
        // The map's order, by name, decides between equals.
        classes.sort_by_key(|c| std::cmp::Reverse((difference(&c.retained_bytes), difference(&c.shallow_bytes))));
        classes
    }

    fn suspects(&self, _last: &Snapshot, filter: &Filter<'_>) -> hprof::Result<Vec<Suspect>> {
        let Some(aligned) = Aligned::new(&self.summaries).filter(|_| self.summaries.len() > 1) else {
            return Ok(Vec::new());
        };
        let trie = aligned.last();
        let candidates = aligned.candidates();
        let named = |c: &Candidate| (filter.class)(trie.names.text(trie[c.named].class));
        Ok(candidates
            .iter()
            .filter(|c| named(c))
            .take(filter.suspects)
            .zip(1..)
            .map(|(candidate, rank)| self.suspect(&aligned, candidate, rank))
            .collect())
    }

    fn suspect(&self, aligned: &Aligned<'_>, candidate: &Candidate, rank: u32) -> Suspect {
        let trie = aligned.last();
        let steps = trie.path(candidate.named);
        let text = |name| trie.names.text(name).to_owned();
        // What a person wants begins at the nearest class whose static field holds it, or else at
        // the root.
        let start = steps.iter().rposition(|&s| text(trie[s].class).starts_with("class "));
        let (root, below): (String, &[StepId]) = match start {
            Some(i) => (text(trie[steps[i]].class).replacen("class ", "static ", 1), &steps[i + 1..]),
            None => match steps.first() {
                Some(&first) => (format!("{} {}", text(trie[first].via), text(trie[first].class)), &steps[1..]),
                None => (text(trie[StepId::ROOT].via), &[]),
            },
        };
        let (_, holder) = aligned.holder(candidate);
        let growth = Growth {
            objects: difference(&candidate.objects),
            shallow_bytes: difference(&candidate.shallow),
            retained_bytes: candidate.growth(),
        };
        Suspect {
            rank,
            verdict: Verdict::Growth,
            reasons: reasons(candidate, below.iter().any(|&s| trie.names.kind(trie[s].via) == LabelKind::Shared)),
            root,
            path: below.iter().map(|&s| text(trie[s].via)).collect(),
            holder,
            class: text(trie[candidate.named].class),
            objects: candidate.objects.clone(),
            shallow_bytes: candidate.shallow.clone(),
            retained_bytes: candidate.retained.clone(),
            growth,
            stacks: Vec::new(),
            coverage: Coverage {
                samples: 0,
                sampled_bytes: 0,
                growth_bytes: u64::try_from(growth.retained_bytes).unwrap_or(0),
            },
        }
    }
}

fn reasons(candidate: &Candidate, shared: bool) -> Vec<String> {
    let mut reasons = Vec::new();
    if candidate.in_place {
        reasons.push("it grew in place: the same number of objects, each larger".to_owned());
    } else {
        reasons.push("more objects are held there, while what holds them stayed level in number".to_owned());
    }
    if candidate.retained.len() > 2 {
        let rises = candidate.retained.windows(2).filter(|w| w[1] > w[0]).count();
        reasons.push(format!("it grew in {rises} of {} steps between dumps", candidate.retained.len() - 1));
    }
    if shared {
        reasons.push("several paths lead to these objects; removing one would not free them".to_owned());
    }
    reasons
}
