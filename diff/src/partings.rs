//! What stands for the steps of a path at which paths part.

use std::collections::BTreeMap;

use hprof::ObjectIndex;

use crate::case::Case;
use crate::growth;
use crate::names::{self, LabelKind};
use crate::shared::{self, Label};
use crate::trie::StepId;

/// Where paths part, the trie ends; one of them is followed in the dump.
pub(crate) struct Filled {
    /// By the step's place in the path, what stands for it.
    found: BTreeMap<usize, Vec<Label>>,
    /// The paths from the uppermost step that was looked into, and the step above it.
    ways: Option<(StepId, Vec<Vec<Label>>)>,
}

/// So many partings of one path are looked into, from above.
const PARTINGS: usize = 3;

impl Filled {
    /// Looks into the first of the partings, places in `steps`.
    pub(crate) fn new(case: &Case<'_>, steps: &[StepId], partings: &[usize]) -> Self {
        let trie = case.trie();
        // Below the roots together, objects of the runtime's classes are of all kinds and origins: what
        // one of them hangs on says nothing of the others, unless it alone holds most of what grew: a
        // list that a local variable holds beside its field.
        let is_one_kind = |step: StepId| {
            trie[step].parent != StepId::ROOT || !names::is_of_all_kinds(case.class(step))
        };
        let mut filled = Self {
            found: BTreeMap::new(),
            ways: None,
        };
        for &at in partings.iter().take(PARTINGS) {
            let step = &trie[steps[at]];
            let retained = |&&o: &&ObjectIndex| case.snapshot.retained_bytes(o).unwrap_or(0);
            let alone = step
                .samples
                .first()
                .filter(|o| retained(o).cast_signed() >= case.candidate.growth() / 2);
            let paths = match alone {
                _ if is_one_kind(steps[at]) => {
                    shared::paths(case.snapshot, &step.samples, step.objects)
                }
                Some(&one) => shared::paths(case.snapshot, &[one], 1),
                None => continue,
            };
            if filled.ways.is_none() {
                filled.ways = Some((trie[steps[at]].parent, paths.clone()));
            }
            let is_own = |p: &&Vec<Label>| p.iter().any(|l| growth::is_application(l.1));
            if let Some(best) = paths.iter().find(is_own).or(paths.first()) {
                filled.found.insert(at, best.clone());
            }
        }
        filled
    }

    /// The paths from the uppermost step at which they part, and the step above it.
    pub(crate) fn ways(&self) -> Option<(StepId, &[Vec<Label>])> {
        let (parent, paths) = self.ways.as_ref()?;
        Some((*parent, paths))
    }

    /// Whether something stands for the first step.
    pub(crate) fn covers_root(&self) -> bool {
        self.found.contains_key(&0)
    }

    /// The lowest parting whose path begins at a static field, and the class that declares the field.
    pub(crate) fn at_static(&self) -> Option<(usize, &str)> {
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
    pub(crate) fn path(&self, labels: &[Label], begin: usize) -> Vec<Label> {
        let mut path = Vec::new();
        for (at, label) in labels.iter().enumerate().skip(begin) {
            match self.found.get(&at) {
                Some(found) => path.extend_from_slice(found),
                _ => path.push(label.clone()),
            }
        }
        path
    }
}
