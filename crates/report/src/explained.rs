//! The sentence that states how much of the growth belongs to the suspects. All formats use it.

use heapdiff_diff::Report;
use heapdiff_diff::sentence::Verdict;
use heapdiff_units::Size;

/// Returns the sentence that says how much of the growth belongs to the suspects. Returns `None` if the heap did not
/// grow. Also returns `None` if the heap grew by less than the noise limit and no growth belongs to suspects.
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

/// Returns the sentence that replaces an empty list of suspects. Returns `None` if the heap grew by more than the noise
/// limit.
pub(crate) fn no_suspects_sentence(report: &Report) -> Option<String> {
    let has_growth = report.unexplained_bytes() > 0;
    (!has_growth).then(|| Verdict::NoGrowth.to_string())
}

/// Returns a hint with the cheapest way to get allocation stacks in the next comparison. Returns `None` if the report
/// has stacks, recordings or agent data, or has no suspects. Also returns `None` if the JVM is older than JDK 11.
pub(crate) fn next_time(report: &Report) -> Option<String> {
    let last = report.snapshots.last()?;
    let has_stacks =
        |s: &heapdiff_diff::Suspect| !s.stacks.is_empty() || !s.allocated_at.is_empty();
    let is_known = report.suspects.iter().any(has_stacks)
        || !report.recordings.is_empty()
        || last.agent.is_some();
    if is_known || report.suspects.is_empty() {
        return None;
    }
    let settings = match major(last.jvm.as_deref()) {
        Some(..=10) => return None,
        Some(11..=16) => "profile",
        _ => "default,memory-leaks=stack-traces",
    };
    Some(format!(
        "for stacks next time: -XX:StartFlightRecording:settings={settings}, JFR.dump after the last heap dump, \
         --recording FILE"
    ))
}

/// Returns the sentence that lists the parts of the report that are left out because the last argument is a summary.
/// Returns `None` if nothing is left out.
pub(crate) fn left_out(report: &Report) -> Option<String> {
    let last = report.snapshots.last()?;
    let parts = report.left_out.join(", ");
    (!parts.is_empty()).then(|| format!("left out, because {} is a summary: {parts}", last.path))
}

/// Returns the major version of a JVM from its `java.vm.version`, such as `17.0.15+6`. JDK 8 has the version of its
/// HotSpot there, such as `25.402-b06`.
fn major(version: Option<&str>) -> Option<u32> {
    let version = version?;
    if version.contains("-b") && !version.contains('+') {
        return Some(8);
    }
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn a_report_without_stacks_names_a_way_to_have_them() {
        let of = |jvm: Option<&str>| {
            let mut suspect = synthetic::suspect(1, "a.B.c", heapdiff_diff::Verdict::Leak, 4096);
            suspect.stacks.clear();
            let mut report = synthetic::report(vec![suspect], 1);
            for snapshot in &mut report.snapshots {
                snapshot.agent = None;
                snapshot.jvm = jvm.map(str::to_owned);
            }
            report
        };
        let settings = |jvm| {
            let sentence = next_time(&of(jvm))?;
            let (_, rest) = sentence.split_once("settings=")?;
            Some(rest.split(", JFR").next()?.to_owned())
        };
        let usual = Some("default,memory-leaks=stack-traces".to_owned());
        assert_eq!(settings(None), usual);
        assert_eq!(settings(Some("25.0.1+8-LTS")), usual);
        assert_eq!(settings(Some("17.0.15+6")), usual);
        assert_eq!(settings(Some("11.0.2+9")), Some("profile".to_owned()));
        assert_eq!(settings(Some("25.402-b06")), None);
        let mut joined = of(None);
        joined.recordings.push(Default::default());
        assert_eq!(next_time(&joined), None);
        let mut none = of(None);
        none.suspects.clear();
        assert_eq!(next_time(&none), None);
    }

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
