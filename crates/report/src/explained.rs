//! The sentence that states how much of the growth belongs to the suspects. All formats use it.

use heapdiff_diff::Report;
use heapdiff_diff::sentence::Verdict;
use heapdiff_units::Size;

/// Returns the sentence that says how much of the growth belongs to the suspects; `None` if there is no growth to
/// explain.
pub(crate) fn sentence(report: &Report) -> Option<String> {
    let (grown, explained) = (report.grown_bytes(), report.explained_bytes);
    let rest = report.unexplained_bytes();
    if grown == 0 || (explained == 0 && rest == 0) {
        return None;
    }
    let is_partial = rest > grown / 4;
    let (grown, of_suspects) = (Size(grown), Size(explained));
    let sentence = match (explained, is_partial) {
        (0, _) => Verdict::Unexplained { grown },
        (_, true) => Verdict::PartlyExplained {
            explained: of_suspects,
            grown,
        },
        (_, false) => Verdict::Explained {
            explained: of_suspects,
            grown,
        },
    };
    Some(sentence.to_string())
}

/// Returns the sentence that replaces the list of suspects if there are none; `None` if the heap grew by more than the
/// noise limit.
pub(crate) fn no_suspects_sentence(report: &Report) -> Option<String> {
    let has_growth = report.unexplained_bytes() > 0;
    (!has_growth).then(|| Verdict::NoGrowth.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn of(grown: i64, explained: u64) -> Option<String> {
        let mut report = synthetic::report(Vec::new(), 1);
        report.delta.shallow_bytes = grown;
        report.explained_bytes = explained;
        sentence(&report)
    }

    #[test]
    fn the_sentence_matches_the_figures() {
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(10 << 20, 9 << 20),
            is("the suspects explain 9.0 MiB of the growth of 10.0 MiB")
        );
        assert_eq!(
            of(10 << 20, 1 << 20),
            is(
                "the suspects account for only 1.0 MiB of the growth of 10.0 MiB: the table of classes shows the rest"
            )
        );
        assert_eq!(
            of(10 << 20, 0),
            is("no suspect explains the growth of 10.0 MiB: the table of classes shows what grew")
        );
        // The heap shrank, kept its size, or grew by very little.
        for (grown, explained) in [(0, 0), (-(1 << 20), 0), (1000, 0)] {
            assert_eq!(of(grown, explained), None);
        }
    }
}
