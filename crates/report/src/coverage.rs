//! Sentences about the samples and stacks of a suspect. All formats use them.

use heapdiff_diff::sentence::{Alive, Samples, Whole};
use heapdiff_diff::{Stack, Suspect};
use heapdiff_model::diff::AllocatedAt;
use heapdiff_units::{Probability, Size, counted};

use crate::text::is_worth_mentioning;

/// Returns one sentence that says how many bytes the samples represent, and what limits the samples have.
fn sentence(suspect: &Suspect) -> String {
    let (coverage, whole) = (&suspect.coverage, whole(suspect));
    let covered = Samples::Covered {
        sampled: Size(coverage.sampled_bytes),
        size: Size(coverage.growth_bytes),
        whole,
        samples: coverage.samples,
    };
    let parts = std::iter::once(covered).chain(doubts(suspect));
    let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
    parts.join("; ")
}

/// Returns the sentences about the code that allocated the content, each with its label. There are none if the report
/// has no stacks and no recording.
pub(crate) fn evidence(suspect: &Suspect) -> Vec<(&'static str, String)> {
    let code = suspect.joined.clone().map(|joined| ("code", joined));
    let samples = if !suspect.stacks.is_empty() {
        code.is_none().then(|| sentence(suspect))
    } else {
        let is_known = !suspect.allocated_at.is_empty();
        is_known.then(|| Samples::NotTracked.to_string())
    };
    let samples = samples.map(|sentence| ("sampled", sentence));
    code.into_iter().chain(samples).collect()
}

/// Returns the figures of a stack that allocated objects, dead or alive.
pub(crate) fn allocated_at(at: &AllocatedAt) -> String {
    let samples = counted(at.samples, "sample");
    format!("{} allocated, {samples}", Size(at.estimated_bytes))
}

/// Returns the figure with which the bytes of the samples are compared: the growth, or the retained size in the report
/// of one dump.
const fn whole(suspect: &Suspect) -> Whole {
    if suspect.is_from_single_dump() {
        Whole::Retained
    } else {
        Whole::Growth
    }
}

/// Describes the limits of the samples: lost samples, samples that represent more bytes than were measured, and bytes
/// without samples.
pub(crate) fn doubts(suspect: &Suspect) -> Vec<Samples> {
    if suspect.joined.is_some() {
        return Vec::new();
    }
    let (coverage, whole) = (&suspect.coverage, whole(suspect));
    let all = coverage.growth_bytes;
    let (lost, uncovered) = (coverage.unseen_bytes, coverage.unsampled_bytes);
    let more = coverage.sampled_bytes.saturating_sub(all);
    [
        (lost > 0, Samples::Lost { size: Size(lost) }),
        (is_worth_mentioning(more, all), Samples::MoreThan(whole)),
        (
            is_worth_mentioning(uncovered, all),
            Samples::Uncovered {
                size: Size(uncovered),
                whole,
            },
        ),
    ]
    .into_iter()
    .filter_map(|(is_shown, doubt)| is_shown.then_some(doubt))
    .collect()
}

/// Returns the probability of a stack from a recording, with its evidence. Returns `None` for other stacks.
pub(crate) fn probability(stack: &Stack) -> Option<String> {
    let probability = Probability(stack.probability_permille?);
    Some(match &stack.evidence {
        Some(evidence) => format!("{probability}: {evidence}"),
        None => probability.to_string(),
    })
}

/// Returns the number of objects and samples of a stack, and the share of objects that are alive.
pub(crate) const fn stack(stack: &Stack) -> Samples {
    Samples::Stack {
        objects: stack.estimated_objects,
        samples: stack.samples,
        is_counted: stack.sampled.is_some(),
        alive: if stack.survival_known {
            Alive::Permille(stack.survival_permille)
        } else {
            Alive::Unknown
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn samples_can_exceed_the_growth() {
        let sentence = |sampled_bytes, mut suspect: Suspect| {
            suspect.coverage.samples = 9;
            suspect.coverage.sampled_bytes = sampled_bytes;
            suspect.coverage.growth_bytes = 4096;
            suspect.coverage.unsampled_bytes = 0;
            super::sentence(&suspect)
        };
        let grown = synthetic::suspect(1, "a.B.c", heapdiff_diff::Verdict::Leak, 4096);
        assert_eq!(
            sentence(4096, grown),
            "4.0 KiB of 4.0 KiB growth, in 9 samples"
        );
        assert_eq!(
            sentence(8192, synthetic::heap(1).suspects.remove(0)),
            "8.0 KiB of 4.0 KiB retained, in 9 samples; the samples represent more bytes than the retained size, because they are estimates"
        );
    }
}
