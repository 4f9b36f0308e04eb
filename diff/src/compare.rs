//! The comparison: summaries in, report out.

use std::collections::BTreeMap;

use hprof::Snapshot;

use crate::attribution::Attribution;
use crate::growth::{self, Aligned, Candidate, difference};
use crate::names::{self, LabelKind};
use crate::report::{ClassGrowth, Coverage, Delta, Growth, Report, Suspect, Verdict};
use crate::shared::{self, Label};
use crate::summary::{ClassFigures, ClassKey, Summary};
use crate::trie::StepId;

/// Which classes a report speaks of.
pub struct Filter<'a> {
    /// Whether what bears these class names is to be reported: a class has one, a suspect that of
    /// what accumulates and that of the class that declares the holding field. The classes between
    /// (collections, mostly) have no say.
    pub classes: &'a dyn Fn(&[&str]) -> bool,
    /// The most suspects to report.
    pub suspects: usize,
}

impl std::fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter")
            .field("suspects", &self.suspects)
            .finish_non_exhaustive()
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
    /// None at present; kept for what will need to read the dump again.
    pub fn report(&self, last: &Snapshot, filter: &Filter<'_>) -> hprof::Result<Report> {
        let figures =
            |f: &dyn Fn(&Summary) -> u64| self.summaries.iter().map(f).collect::<Vec<u64>>();
        Ok(Report {
            schema: "heapdiff.diff/1",
            snapshots: self.summaries.iter().map(|s| s.info.clone()).collect(),
            delta: Delta {
                objects: difference(&figures(&|s| s.info.reachable_objects)),
                shallow_bytes: difference(&figures(&|s| s.info.reachable_bytes)),
            },
            classes: self.classes(filter),
            suspects: self.suspects(last, filter),
        })
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
        // The map's order, by name, decides between equals.
        classes.sort_by_key(|c| {
            std::cmp::Reverse((difference(&c.retained_bytes), difference(&c.shallow_bytes)))
        });
        classes
    }

    fn suspects(&self, last: &Snapshot, filter: &Filter<'_>) -> Vec<Suspect> {
        let Some(aligned) = Aligned::new(&self.summaries).filter(|_| self.summaries.len() > 1)
        else {
            return Vec::new();
        };
        let mut suspects: Vec<Suspect> = aligned
            .candidates()
            .iter()
            .map(|candidate| {
                let (mut suspect, holder) = suspect(&aligned, candidate, last);
                self.attribute(&mut suspect, &aligned, candidate);
                (suspect, holder)
            })
            .filter(|(s, holder)| (filter.classes)(&[&s.class, holder]))
            .map(|(suspect, _)| suspect)
            .take(filter.suspects)
            .collect();
        for (suspect, rank) in suspects.iter_mut().zip(1..) {
            suspect.rank = rank;
        }
        suspects
    }

    /// Adds the stacks that allocated what grew.
    fn attribute(&self, suspect: &mut Suspect, aligned: &Aligned<'_>, candidate: &Candidate) {
        let [first, .., last] = &self.summaries[..] else {
            return;
        };
        let Some(allocated) = &last.allocated else {
            return;
        };
        let content = [&candidate.content[..], &candidate.beside].concat();
        let before = Attribution::aligned(content.iter().map(|&step| aligned.first(step)));
        let before = first
            .allocated
            .as_ref()
            .map(|a| (a, &first.trie, &before[..]));
        let growth = suspect.coverage.growth_bytes;
        (suspect.stacks, suspect.coverage) = allocated.stacks(&last.trie, &content, before, growth);
    }
}

/// A candidate as it is reported, not ranked yet, and the class that declares its holder.
fn suspect(aligned: &Aligned<'_>, candidate: &Candidate, last: &Snapshot) -> (Suspect, String) {
    let trie = aligned.last();
    let text = |name| trie.names.text(name).to_owned();
    let steps = trie.path(candidate.named);
    let labels: Vec<Label> = steps
        .iter()
        .map(|&s| (text(trie[s].via), trie.names.kind(trie[s].via)))
        .collect();
    // What a person wants begins at the nearest class whose static field holds it, or else at the
    // root.
    let start = steps
        .iter()
        .rposition(|&s| text(trie[s].class).starts_with("class "));
    let mut root = match (start, steps.first()) {
        (Some(i), _) => text(trie[steps[i]].class).replacen("class ", "static ", 1),
        (None, Some(&first)) => format!("{} {}", labels[0].0, text(trie[first].class)),
        (None, None) => text(trie[StepId::ROOT].via),
    };
    let mut path: Vec<Label> = labels[start.map_or(1, |i| i + 1).min(labels.len())..].to_vec();
    let mut down_to_head = aligned.labels(candidate);
    let mut reasons = reasons(candidate);
    // Where paths part, the trie ends; one of them is followed in the dump.
    // How many ways lead to the class whose static field it is does not matter.
    let parting = steps
        .iter()
        .position(|&s| trie.names.kind(trie[s].via) == LabelKind::Shared)
        .filter(|&at| start.is_none_or(|class| at > class));
    // Below the roots together, objects of the runtime's classes are of all kinds and origins: what
    // one of them hangs on says nothing of the others, unless it holds most of what grew.
    let is_one_kind = |step: StepId| {
        trie[step].parent != StepId::ROOT
            || !names::is_runtime_name(trie.names.text(trie[step].class))
    };
    let sample = |step: StepId| match is_one_kind(step) {
        true => trie[step].samples.first().map(|&o| (o, false)),
        false => trie[step]
            .largest
            .filter(|&(retained, _)| retained.cast_signed() >= candidate.growth() / 2)
            .map(|(_, object)| (object.0, true)),
    };
    if let Some(at) = parting
        && let Some((sample, alone)) = sample(steps[at])
    {
        let found = shared::paths(last, sample, alone);
        let is_own = |p: &[Label]| p.iter().any(|l| growth::is_application(l.1));
        if let Some(best) = found.iter().find(|p| is_own(p)).or(found.first()) {
            let spliced = |path: &[Label], at: usize| [&path[..at], best, &path[at + 1..]].concat();
            if let Some(at) = down_to_head.iter().position(|l| l.1 == LabelKind::Shared) {
                down_to_head = spliced(&down_to_head, at);
            }
            if let Some(at) = path.iter().position(|l| l.1 == LabelKind::Shared) {
                path = spliced(&path, at);
            } else {
                path = [best, &path[..]].concat();
            }
            if let Some((first, LabelKind::ApplicationStatic | LabelKind::RuntimeStatic)) =
                path.first()
                && let Some((class, _)) = first.rsplit_once('.')
            {
                root = format!("static {class}");
            }
        }
        let ways: Vec<String> = found
            .iter()
            .filter_map(|p| p.first())
            .map(|l| l.0.clone())
            .collect();
        reasons.push(match ways.len() {
            0 | 1 => "several paths lead to these objects, so removing one would not free them"
                .to_owned(),
            _ => format!(
                "held on several paths, by {}: removing one would not free them",
                ways.join(" and ")
            ),
        });
    }
    if parting.is_some() && reasons.len() == 1 {
        reasons.push("no single object holds them; several paths lead to each".to_owned());
    }
    let growth = Growth {
        objects: difference(&candidate.objects),
        shallow_bytes: difference(&candidate.shallow),
        retained_bytes: candidate.growth(),
    };
    let field = growth::holder(&down_to_head);
    let holder = field.clone().unwrap_or_else(|| match candidate.at {
        StepId::ROOT => labels[0].0.clone(),
        at => text(trie[at].class),
    });
    let declaring = field.as_ref().and_then(|f| f.rsplit_once('.'));
    let holder_class = declaring.map_or(&*holder, |(class, _)| class);
    let holder_class = holder_class.trim_start_matches("class ").to_owned();
    let suspect = Suspect {
        rank: 0,
        verdict: Verdict::Growth,
        reasons,
        root,
        holder,
        path: path.into_iter().map(|l| l.0).collect(),
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
            unseen_bytes: 0,
        },
    };
    (suspect, holder_class)
}

fn reasons(candidate: &Candidate) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.push(if candidate.in_place {
        "it grew in place: the same number of objects, each larger".to_owned()
    } else {
        "more objects are held there, while what holds them stayed level in number".to_owned()
    });
    if candidate.retained.len() > 2 {
        let rises = candidate
            .retained
            .windows(2)
            .filter(|w| w[1] > w[0])
            .count();
        reasons.push(format!(
            "it grew in {rises} of {} steps between dumps",
            candidate.retained.len() - 1
        ));
    }
    reasons
}
