//! The parts of a report that are left out because the last argument is a summary.

use heapdiff_model::diff::{Suspect, left_out};

use crate::compare::Filter;
use crate::evidence::context::{Last, SuspectContext};
use crate::suspect;

/// Returns the parts that the report on a suspect lacks if only a summary of the last dump is available. Returns an
/// empty list if the dump itself is available.
pub(crate) fn parts(
    context: &SuspectContext<'_>,
    suspect: &Suspect,
    filter: &Filter<'_>,
) -> Vec<String> {
    let Last::Summary(facts) = context.last else {
        return Vec::new();
    };
    let place = facts.place(context.candidate.named);
    let content = context.candidate.content.first();
    let of_content = content.and_then(|&step| facts.place(step));
    // If `also_held_by` is empty, the report searches for another holder. The summary may lack the result of this
    // search.
    let is_other_unknown = suspect.also_held_by.is_empty()
        && of_content.is_none_or(|place| !place.is_held_by(&suspect.holder));
    let are_paths_unknown = place.is_none_or(|place| place.paths.is_none());
    let is_content_unknown = place.is_none_or(|place| place.content.is_none());
    let parts = [
        (
            is_other_unknown || (are_paths_unknown && suspect::has_shared_steps(context)),
            left_out::PATHS,
        ),
        (context.lacks_facts(), left_out::EVIDENCE),
        (suspect::names_threads(context, suspect), left_out::THREADS),
        (
            filter.recording.is_some() && suspect.stacks.is_empty() && is_content_unknown,
            left_out::CONTENT,
        ),
        (true, left_out::COMMANDS),
    ];
    let parts = parts.into_iter().filter(|(is_missing, _)| *is_missing);
    parts.map(|(_, part)| part.to_owned()).collect()
}
