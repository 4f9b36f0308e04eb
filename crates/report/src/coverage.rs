//! Sentences about the samples and stacks of a suspect. All formats use them.

use heapdiff_diff::sentence::{Alive, Samples, Whole};
use heapdiff_diff::{Stack, Suspect};
use heapdiff_model::diff::AllocatedAt;
use heapdiff_model::labels::{LabelShare, Labels};
use heapdiff_units::{Probability, Size, counted, grouped, percent};

use crate::text::is_worth_mentioning;

/// Maximum number of allocation labels that a sentence names. It applies if no label belongs to at least half of the
/// surviving bytes.
const LABELS: usize = 3;

/// Returns one sentence with the number of bytes that the samples represent, and with the reasons to doubt this number.
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

/// Returns the sentences about the code that allocated the suspect's objects, each with its label. Returns no sentence
/// if the report has neither stacks nor a recording.
pub(crate) fn evidence(suspect: &Suspect) -> Vec<(&'static str, String)> {
    let code = suspect.joined.clone().map(|joined| ("code", joined));
    let samples = if !suspect.stacks.is_empty() {
        code.is_none().then(|| sentence(suspect))
    } else {
        let is_known = !suspect.allocated_at.is_empty();
        is_known.then(|| Samples::NotTracked.to_string())
    };
    let samples = samples.map(|sentence| ("sampled", sentence));
    let labels = suspect.labels.as_ref();
    let labels = labels.map(|labels| ("labels", self::labels(labels)));
    labels.into_iter().chain(code).chain(samples).collect()
}

/// Returns a sentence about the labels of the surviving bytes. It names the labels that at least half of these bytes
/// share. If there are no such labels, it names the [`LABELS`] labels with the most bytes.
pub(crate) fn labels(labels: &Labels) -> String {
    let percent = |permille| percent(permille, 1000);
    let text = |share: &LabelShare| {
        let labels = share.labels.iter();
        let labels: Vec<String> = labels.map(|l| format!("{} {}", l.key, l.value)).collect();
        labels.join(", ")
    };
    if let Some(common) = &labels.common {
        return format!(
            "{} of the surviving bytes came from {} ({} of {}; {} of all sampled live bytes)",
            percent(common.permille),
            text(common),
            grouped(common.samples),
            counted(labels.samples, "sample"),
            percent(common.live_permille)
        );
    }
    let shares = labels.shares.iter().take(LABELS);
    if labels.samples < Labels::FEW_SAMPLES {
        let samples = shares.map(|share| format!("{} {}", text(share), share.samples));
        let samples: Vec<String> = samples.collect();
        return format!(
            "too few samples for shares: {} of {}",
            samples.join(", "),
            counted(labels.samples, "sample")
        );
    }
    let shares: Vec<String> = shares
        .map(|share| format!("{} {}", text(share), percent(share.permille)))
        .collect();
    format!(
        "no label has half of the surviving bytes: {} ({})",
        shares.join(", "),
        counted(labels.samples, "sample")
    )
}

/// Returns the bytes and samples of a stack. They include objects that are dead.
pub(crate) fn allocated_at(at: &AllocatedAt) -> String {
    let samples = counted(at.samples, "sample");
    format!("{} allocated, {samples}", Size(at.estimated_bytes))
}

/// Returns the figure with which the bytes of the samples are compared. In a comparison of dumps, this is the growth.
/// In the report of one dump, it is the retained size.
const fn whole(suspect: &Suspect) -> Whole {
    if suspect.is_from_single_dump() {
        Whole::Retained
    } else {
        Whole::Growth
    }
}

/// Returns the reasons to doubt the samples: lost samples, bytes without samples, or samples that represent more bytes
/// than the growth or the retained size.
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

/// Returns the number of objects and samples of a stack, and the share of its objects that are alive.
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
    use heapdiff_model::labels::Label;

    use super::*;
    use crate::synthetic;

    #[test]
    fn a_sentence_names_common_labels_or_those_with_the_most_bytes() {
        let share = |labels: &[(&str, &str)], permille, samples| LabelShare {
            labels: labels
                .iter()
                .map(|&(key, value)| Label {
                    key: key.to_owned(),
                    value: value.to_owned(),
                })
                .collect(),
            permille,
            samples,
            live_permille: 410,
        };
        let both = [("tenant", "acme"), ("route", "POST /book")];
        let mut labels = Labels {
            common: Some(share(&both, 930, 28)),
            shares: vec![
                share(&both[..1], 480, 14),
                share(&both[1..], 310, 9),
                share(&[("tenant", "globex")], 200, 6),
                share(&[("tenant", "other")], 10, 1),
            ],
            samples: 30,
        };
        assert_eq!(
            super::labels(&labels),
            "93.0% of the surviving bytes came from tenant acme, route POST /book (28 of 30 samples; 41.0% of all sampled live bytes)"
        );
        labels.common = None;
        assert_eq!(
            super::labels(&labels),
            "no label has half of the surviving bytes: tenant acme 48.0%, route POST /book 31.0%, tenant globex 20.0% (30 samples)"
        );
        labels.samples = 9;
        assert_eq!(
            super::labels(&labels),
            "too few samples for shares: tenant acme 14, route POST /book 9, tenant globex 6 of 9 samples"
        );
        let mut suspect = synthetic::suspect(1, "a.B.c", heapdiff_diff::Verdict::Leak, 4096);
        suspect.labels = Some(labels);
        assert_eq!(evidence(&suspect)[0].0, "labels");
    }

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
            "8.0 KiB of 4.0 KiB retained, in 9 samples; the estimate from the samples is more than the retained size, because it has a sampling error"
        );
    }
}
