//! The sentences about the samples and stacks of a suspect. All formats share them.

use heapdiff_diff::sentence::{Alive, Samples, Whole};
use heapdiff_diff::{Coverage, HeapSuspect, Stack};
use heapdiff_units::Size;

use crate::text::is_noted;

/// Returns the coverage of a suspect of one dump, whose retained size takes the place of the growth.
pub(crate) const fn of_heap(suspect: &HeapSuspect) -> Coverage {
    let of = &suspect.coverage;
    Coverage {
        samples: of.samples,
        sampled_bytes: of.sampled_bytes,
        growth_bytes: suspect.retained_bytes,
        unseen_bytes: of.unseen_bytes,
        unsampled_bytes: of.unsampled_bytes,
    }
}

/// Returns how much samples cover, with all doubts, as one sentence.
pub(crate) fn sentence(coverage: &Coverage, whole: Whole) -> String {
    let covered = Samples::Covered {
        sampled: Size(coverage.sampled_bytes),
        size: Size(coverage.growth_bytes),
        whole,
        samples: coverage.samples,
    };
    let parts = std::iter::once(covered).chain(doubts(coverage, whole));
    let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
    parts.join("; ")
}

/// Returns what samples do not show, or show wrongly.
pub(crate) fn doubts(coverage: &Coverage, whole: Whole) -> Vec<Samples> {
    let all = coverage.growth_bytes;
    let (lost, uncovered) = (coverage.unseen_bytes, coverage.unsampled_bytes);
    let more = coverage.sampled_bytes.saturating_sub(all);
    [
        (lost > 0, Samples::Lost { size: Size(lost) }),
        (is_noted(more, all), Samples::MoreThan(whole)),
        (
            is_noted(uncovered, all),
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

/// Returns the figures of a stack, without its bytes.
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

    #[test]
    fn samples_can_show_more_than_there_is() {
        let sentence = |sampled_bytes, whole| {
            let coverage = Coverage {
                samples: 9,
                sampled_bytes,
                growth_bytes: 4096,
                unseen_bytes: 0,
                unsampled_bytes: 0,
            };
            super::sentence(&coverage, whole)
        };
        assert_eq!(
            sentence(4096, Whole::Growth),
            "4.0 KiB of 4.0 KiB growth, in 9 samples"
        );
        assert_eq!(
            sentence(8192, Whole::Retained),
            "8.0 KiB of 4.0 KiB retained, in 9 samples; samples show more than the retained size, because they are \
             estimates"
        );
    }
}
