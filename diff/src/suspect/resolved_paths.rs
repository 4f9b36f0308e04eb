//! A suspect's path with the steps that several paths lead to replaced by paths followed in the dump.

use std::collections::BTreeMap;

use hprof::ObjectIndex;

use crate::evidence::context::SuspectContext;
use crate::growth;
use crate::names::{self, Label, LabelKind};
use crate::suspect::shared_paths;
use crate::trie::StepId;

/// The reference paths that replace shared steps: steps whose objects no single reference holds, so that the
/// trie does not say how they are reached.
pub(crate) struct ResolvedPaths {
    /// The labels that replace a step, by the step's place in the path.
    found: BTreeMap<usize, Vec<Label>>,
    /// All paths found for the uppermost shared step, and the step above it.
    ways: Option<(StepId, Vec<Vec<Label>>)>,
}

/// Shared steps of one path that are looked into, from above.
const SHARED_STEPS: usize = 3;

impl ResolvedPaths {
    /// Follows paths to the first of the shared steps; `shared_steps` are places in `steps`.
    pub(crate) fn new(
        context: &SuspectContext<'_>,
        steps: &[StepId],
        shared_steps: &[usize],
    ) -> Self {
        let trie = context.trie();
        // Objects of the runtime's classes that only all GC roots together dominate are of all kinds: the
        // path to one of them says nothing about the others. The exception is one that alone holds most of
        // the growth, such as a list that both a local variable and a field hold.
        let is_one_kind = |step: StepId| {
            trie[step].parent != StepId::ROOT || !names::is_of_all_kinds(context.class(step))
        };
        let mut resolved = Self {
            found: BTreeMap::new(),
            ways: None,
        };
        for &at in shared_steps.iter().take(SHARED_STEPS) {
            let step = &trie[steps[at]];
            let retained = |&&o: &&ObjectIndex| context.snapshot.retained_bytes(o).unwrap_or(0);
            let alone = step
                .samples
                .first()
                .filter(|o| retained(o).cast_signed() >= context.candidate.growth() / 2);
            let paths = match alone {
                _ if is_one_kind(steps[at]) => {
                    shared_paths::find(context.snapshot, &step.samples, step.objects)
                }
                Some(&one) => shared_paths::find(context.snapshot, &[one], 1),
                None => continue,
            };
            let aligned = context.aligned;
            let seen_as = |(text, kind): Label| {
                let kind = aligned.kind_of(&text, kind);
                (text, kind)
            };
            let paths: Vec<Vec<Label>> = paths
                .into_iter()
                .map(|path| path.into_iter().map(seen_as).collect())
                .collect();
            if resolved.ways.is_none() {
                resolved.ways = Some((trie[steps[at]].parent, paths.clone()));
            }
            let is_own = |p: &&Vec<Label>| p.iter().any(|l| growth::is_application(l.1));
            if let Some(best) = paths.iter().find(is_own).or(paths.first()) {
                resolved.found.insert(at, best.clone());
            }
        }
        resolved
    }

    /// The paths to the uppermost shared step, and the step above it.
    pub(crate) fn ways(&self) -> Option<(StepId, &[Vec<Label>])> {
        let (parent, paths) = self.ways.as_ref()?;
        Some((*parent, paths))
    }

    /// Whether the first step is replaced.
    pub(crate) fn covers_root(&self) -> bool {
        self.found.contains_key(&0)
    }

    /// The lowest shared step whose path begins at a static field, and the class that declares the field.
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

    /// The labels from one place on, with those of shared steps replaced.
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
