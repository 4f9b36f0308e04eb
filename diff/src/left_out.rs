//! The parts of a report that are left out because the last argument is a summary.

use heapdiff_model::diff::Suspect;

use crate::compare::Filter;
use crate::evidence::context::{Last, SuspectContext};
use crate::suspect;

/// The evidence about one suspect that a summary lacks.
#[derive(Debug)]
pub(crate) struct Missing {
    /// Holder, class and path identify the suspect.
    holder: String,
    class: String,
    path: Vec<String>,
    paths: bool,
    threads: bool,
    content: bool,
    evidence: bool,
}

impl Missing {
    /// Returns the evidence about a suspect that the summary of the last dump lacks. Returns `None` if the dump is
    /// open.
    pub(crate) fn new(
        context: &SuspectContext<'_>,
        suspect: &Suspect,
        filter: &Filter<'_>,
    ) -> Option<Self> {
        let Last::Summary(facts) = context.last else {
            return None;
        };
        let place = facts.place(context.candidate.named);
        let content = context.candidate.content.first();
        let of_content = content.and_then(|&step| facts.place(step));
        // Another holder is searched only if the paths to shared trie nodes name none.
        let is_other_unknown = suspect.also_held_by.is_empty()
            && of_content.is_none_or(|place| !place.is_held_by(&suspect.holder));
        Some(Self {
            holder: suspect.holder.clone(),
            class: suspect.class.clone(),
            path: suspect.path.clone(),
            paths: is_other_unknown
                || place.is_none_or(|place| place.paths.is_none())
                    && suspect::has_shared_steps(context),
            evidence: context.lacks_facts(),
            threads: suspect::names_threads(context, suspect),
            content: filter.recording.is_some()
                && suspect.stacks.is_empty()
                && place.is_none_or(|place| place.content.is_none()),
        })
    }

    fn is_of(&self, suspect: &Suspect) -> bool {
        self.holder == suspect.holder && self.class == suspect.class && self.path == suspect.path
    }
}

/// Returns the parts of a report on these suspects that are left out. Empty if the last dump is open.
pub(crate) fn parts(suspects: &[Suspect], missing: &[Missing]) -> Vec<String> {
    let missing: Vec<&Missing> = missing
        .iter()
        .filter(|missing| suspects.iter().any(|suspect| missing.is_of(suspect)))
        .collect();
    let any = |part: &dyn Fn(&Missing) -> bool| missing.iter().any(|missing| part(missing));
    let parts = [
        (any(&|missing| missing.paths), "references on other paths"),
        (
            any(&|missing| missing.evidence),
            "limits and known leak patterns of small suspects",
        ),
        (
            any(&|missing| missing.threads),
            "names and states of threads",
        ),
        (
            any(&|missing| missing.content),
            "stacks of the recording for small suspects",
        ),
        (!missing.is_empty(), "next commands"),
    ];
    let parts = parts.into_iter().filter(|(is_missing, _)| *is_missing);
    parts.map(|(_, part)| part.to_owned()).collect()
}
