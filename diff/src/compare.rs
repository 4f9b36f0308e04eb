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
    let mut reasons = reasons(candidate);
    // How many ways lead to the class whose static field it is does not matter.
    let partings: Vec<usize> = (0..steps.len())
        .filter(|&at| trie.names.kind(trie[steps[at]].via) == LabelKind::Shared)
        .filter(|&at| start.is_none_or(|class| at > class))
        .collect();
    let filled = Filled::new(aligned, &steps, &partings, last);
    let begin = match (filled.at_static(), start) {
        (Some((at, class)), _) => {
            root = format!("static {class}");
            at
        }
        (None, Some(class)) => class + 1,
        (None, None) if filled.found.contains_key(&0) => 0,
        (None, None) => 1.min(labels.len()),
    };
    let path = filled.path(&labels, begin);
    let down_to_head = filled.path(&aligned.labels(candidate), 0);
    if let Some(ways) = filled.ways() {
        reasons.push(match ways {
            [] | [_] => "several paths lead to these objects, so removing one would not free them"
                .to_owned(),
            _ => format!(
                "held on several paths, by {}: removing one would not free them",
                ways.join(" and ")
            ),
        });
    }
    if !partings.is_empty() && reasons.len() == 1 {
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
        },
    };
    (suspect, holder_class)
}

/// Where paths part, the trie ends; one of them is followed in the dump.
struct Filled {
    /// By the step's place in the path, what stands for it.
    found: BTreeMap<usize, Vec<Label>>,
    /// The references at which the uppermost paths part, if it was looked for them.
    ways: Option<Vec<String>>,
}

/// So many partings of one path are looked into, from above.
const PARTINGS: usize = 3;

impl Filled {
    fn new(aligned: &Aligned<'_>, steps: &[StepId], partings: &[usize], last: &Snapshot) -> Self {
        let trie = aligned.last();
        // Below the roots together, objects of the runtime's classes are of all kinds and origins: what
        // one of them hangs on says nothing of the others.
        let is_one_kind = |step: StepId| {
            trie[step].parent != StepId::ROOT
                || !names::is_runtime_name(trie.names.text(trie[step].class))
        };
        let mut filled = Self {
            found: BTreeMap::new(),
            ways: None,
        };
        for &at in partings.iter().take(PARTINGS) {
            if !is_one_kind(steps[at]) {
                continue;
            }
            let paths = shared::paths(last, &trie[steps[at]].samples, trie[steps[at]].objects);
            if filled.ways.is_none() {
                let ways = paths.iter().filter_map(|p| p.first());
                filled.ways = Some(ways.map(|l| l.0.clone()).collect());
            }
            let is_own = |p: &&Vec<Label>| p.iter().any(|l| growth::is_application(l.1));
            if let Some(best) = paths.iter().find(is_own).or(paths.first()) {
                filled.found.insert(at, best.clone());
            }
        }
        filled
    }

    fn ways(&self) -> Option<&[String]> {
        self.ways.as_deref()
    }

    /// The lowest parting whose path begins at a static field, and the class that declares the field.
    fn at_static(&self) -> Option<(usize, &str)> {
        self.found
            .iter()
            .rev()
            .find_map(|(&at, path)| match path.first()? {
                (field, LabelKind::ApplicationStatic | LabelKind::RuntimeStatic) => {
                    Some((at, field.rsplit_once('.')?.0))
                }
                _ => None,
            })
    }

    /// The labels from one place on, with what was found in the place of the partings.
    fn path(&self, labels: &[Label], begin: usize) -> Vec<Label> {
        let mut path = Vec::new();
        for (at, label) in labels.iter().enumerate().skip(begin) {
            match self.found.get(&at) {
                Some(found) if label.1 == LabelKind::Shared => path.extend_from_slice(found),
                _ => path.push(label.clone()),
            }
        }
        path
    }
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
