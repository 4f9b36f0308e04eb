//! How much of the growth the suspects are, in a sentence that every format has.

use heapdiff_diff::Report;
use heapdiff_units::Size;

/// What stands where there is no suspect.
pub(crate) const NOTHING: &str = "no significant growth";

/// How much of the growth the suspects explain; `None` where the heap did not grow, or by too little to look for.
pub(crate) fn sentence(report: &Report) -> Option<String> {
    let (grown, explained) = (report.grown_bytes(), report.explained_bytes);
    let rest = report.unexplained_bytes();
    if grown == 0 || (explained == 0 && rest == 0) {
        return None;
    }
    let of = format!("{} of the growth of {}", Size(explained), Size(grown));
    // What would tell is said where a good part is missing.
    Some(match (explained, rest > grown / 4) {
        (0, _) => format!(
            "no suspect in this report explains the growth of {}: see the table of classes, and compare with a later dump",
            Size(grown)
        ),
        (_, true) => format!(
            "the suspects explain {of}: see the table of classes for the rest, and compare with a later dump"
        ),
        (_, false) => format!("the suspects explain {of}"),
    })
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
    fn it_says_what_the_figures_show() {
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(10 << 20, 9 << 20),
            is("the suspects explain 9.0 MiB of the growth of 10.0 MiB")
        );
        assert_eq!(
            of(10 << 20, 1 << 20),
            is(
                "the suspects explain 1.0 MiB of the growth of 10.0 MiB: see the table of classes for the rest, \
                and compare with a later dump"
            )
        );
        assert_eq!(
            of(10 << 20, 0),
            is(
                "no suspect in this report explains the growth of 10.0 MiB: see the table of classes, and compare with \
                a later dump"
            )
        );
        // A heap that did not grow, or by next to nothing.
        for (grown, explained) in [(0, 0), (-(1 << 20), 0), (1000, 0)] {
            assert_eq!(of(grown, explained), None);
        }
    }
}
