//! Prints a comparison: the dumps, the suspects, and the classes that changed.

use heapdiff_diff::sentence::TWO_DUMPS;
use heapdiff_diff::{ClassGrowth, Report, SnapshotInfo, Suspect};
use heapdiff_units::{Size, counted, grouped, later, signed, signed_size};

use super::suspect::{About, suspect, tone};
use crate::HEADLINES;
use crate::document::Column::{Figure, Name};
use crate::document::{Block, Document, bold};
use crate::report::growth;
use crate::tables;
use crate::times::utc;
use crate::unreachable;
use crate::view::{DiffReport, DiffView};

pub(crate) fn build(report: &DiffReport, doc: &mut Document) {
    let warnings = report.all_warnings();
    let DiffReport {
        data: report,
        view,
        more,
    } = report;
    let DiffView {
        more_suspects,
        more_classes,
        known,
        ..
    } = more;
    headlines(report, !more_suspects.is_empty(), doc);
    doc.warnings(warnings);
    let delta = &report.delta;
    if (delta.objects, delta.shallow_bytes) == (0, 0) {
        doc.line("the size of the reachable heap did not change");
    } else {
        let (objects, bytes) = (signed(delta.objects), signed_size(delta.shallow_bytes));
        doc.line(format!(
            "the reachable heap changed by {objects} objects, {bytes}"
        ));
    }
    if let Some(text) = crate::outlook::of_dumps(report) {
        doc.line(text);
    }
    if let Some(unreachable) = &report.unreachable {
        doc.prose(unreachable::sentence(unreachable, "the last dump"));
    }
    let common = common_reason(&report.suspects);
    let explained = crate::explained::sentence(report);
    for sentence in explained.as_deref().into_iter().chain(common) {
        doc.prose(sentence);
    }
    doc.gap();
    if report.suspects.is_empty() && more_suspects.is_empty() {
        let nothing = crate::explained::no_suspects_sentence(report);
        doc.line(nothing.as_deref().unwrap_or("no suspect"));
    } else {
        doc.line(bold("What grew"));
        for one in &report.suspects {
            doc.gap();
            let about = About::Growth { common };
            suspect(one, &about, view.verbose, doc);
        }
        if !more_suspects.is_empty() {
            doc.gap();
            doc.note("and suspects that grew less (--top N shows more)");
        }
    }
    if let Some(hint) = crate::explained::next_time(report) {
        doc.gap();
        doc.prose(hint);
    }
    if let Some(left_out) = crate::explained::left_out(report) {
        doc.gap();
        doc.prose(left_out);
    }
    if !known.is_empty() {
        let known = counted(known.len() as u64, "suspect");
        doc.gap();
        doc.note(format!("{known} left out as known growth (--ignore)"));
    }
    doc.gap();
    dumps(&report.snapshots, doc);
    classes(&report.classes, *more_classes, doc);
    if let Some(owners) = &report.owners {
        let [grown, rest] = tables::owners_sentence(owners);
        doc.gap();
        doc.spans([bold(grown), rest.into()]);
        doc.titled(tables::owners(owners, &owners.owners));
        doc.titled(tables::shared_by(owners, usize::MAX));
    }
}

/// Returns [`TWO_DUMPS`] if there are several suspects and all of them have this reason. The report then prints the
/// reason only once. Any other reason is printed for each suspect, even if all have it: printed once, it would look
/// like a statement about the whole heap.
fn common_reason(suspects: &[Suspect]) -> Option<&'static str> {
    let has = |suspect: &Suspect| suspect.reasons.iter().any(|reason| reason == TWO_DUMPS);
    (suspects.len() > 1 && suspects.iter().all(has)).then_some(TWO_DUMPS)
}

/// Adds the answer of the report: for each of the first suspects, sentences that describe what leaks. `has_more` is
/// true if the report does not list all suspects.
fn headlines(report: &Report, has_more: bool, doc: &mut Document) {
    if report.suspects.is_empty() {
        return;
    }
    for (suspect, headline) in crate::headlines(report) {
        let sentences = std::iter::once(headline.held).chain(headline.allocated);
        let verdict = crate::verdict(suspect);
        doc.0
            .push(Block::Answer((verdict, tone(suspect)), sentences.collect()));
    }
    let below = report.suspects.len().saturating_sub(HEADLINES);
    let rest = match (below, has_more) {
        (0, false) => None,
        (0, true) => Some("and more suspects (--top N shows more)".to_owned()),
        (below, _) => Some(format!(
            "and {} below",
            counted(below as u64, "more suspect")
        )),
    };
    if let Some(rest) = rest.filter(|_| report.suspects.len() >= HEADLINES) {
        doc.spans(["        ".into(), crate::document::dim(rest)]);
    }
    doc.gap();
}

/// Returns the time of the first dump if `at` is 0. Otherwise returns the time between the first dump and the dump at
/// index `at`.
pub(crate) fn taken(snapshots: &[SnapshotInfo], at: usize) -> String {
    let time = |at: usize| snapshots.get(at).map_or(0, |s| s.taken_ms);
    match at {
        0 => utc(time(0)),
        _ => later(time(at).wrapping_sub(time(0)).cast_signed()),
    }
}

fn dumps(snapshots: &[SnapshotInfo], doc: &mut Document) {
    let columns = [
        ("objects", Figure),
        ("reachable", Figure),
        ("unreachable", Figure),
        ("taken", Figure),
        ("dump", Name),
    ];
    let rows = snapshots.iter().enumerate().map(|(i, snapshot)| {
        vec![
            grouped(snapshot.objects),
            Size(snapshot.reachable_bytes).to_string(),
            Size(snapshot.unreachable_bytes).to_string(),
            taken(snapshots, i),
            snapshot.path.clone(),
        ]
    });
    doc.table(&columns, rows);
    if let Some(last) = snapshots.last() {
        super::snapshot::layout(last.jvm.as_deref(), &last.layout, doc);
    }
}

fn classes(classes: &[ClassGrowth], more: usize, doc: &mut Document) {
    if classes.is_empty() {
        return;
    }
    doc.gap();
    let columns = [
        ("objects", Figure),
        ("change", Figure),
        ("shallow bytes", Figure),
        ("retained bytes", Figure),
        ("class", Name),
    ];
    let rows = classes.iter().map(|class| {
        vec![
            grouped(class.objects.last().copied().unwrap_or(0)),
            signed(growth(&class.objects)),
            signed(growth(&class.shallow_bytes)),
            signed(growth(&class.retained_bytes)),
            class.class.clone(),
        ]
    });
    doc.table(&columns, rows);
    if more > 0 {
        doc.note(more_classes(more));
    }
}

/// Returns the sentence about classes that the table does not list.
pub(crate) fn more_classes(more: usize) -> String {
    let more = counted(more as u64, "more class");
    format!("and {more} that changed (--top N shows more)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::text::tests::printed;

    fn joined(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn suspects_without_a_headline_are_counted() {
        use crate::synthetic::{report, suspect};

        let text = |listed: u32, more: usize| {
            let one = |rank| suspect(rank, "a.B.c", heapdiff_diff::Verdict::Leak, 4096);
            let suspects = (1..=listed).map(one).collect();
            let mut report = crate::tests::diff_report(report(suspects, 3));
            report.more.more_suspects = (0..more).map(|_| one(9)).collect();
            printed(Style::plain(), |doc| build(&report, doc))
        };
        assert!(text(4, 0).contains("\n        and 1 more suspect below\n"));
        assert!(text(3, 1).contains("\n        and more suspects (--top N shows more)\n"));
        for (listed, more) in [(3, 0), (1, 1)] {
            assert!(!text(listed, more).contains("more suspect"));
        }
    }

    #[test]
    fn omissions_are_reported() {
        use crate::synthetic::{report, suspect};

        let said = |known: usize, more: usize, classes: usize, delta: i64| {
            let one = || suspect(1, "a.B.c", heapdiff_diff::Verdict::Leak, 4096);
            let mut diff = report(vec![one()], 3);
            diff.delta.objects = delta;
            diff.delta.shallow_bytes = 0;
            let mut report = crate::tests::diff_report(diff);
            report.more.more_suspects = (0..more).map(|_| one()).collect();
            report.more.more_classes = classes;
            let rule = "holder a.B.c".to_owned();
            report.more.known = (0..known).map(|_| (one(), rule.clone())).collect();
            joined(&printed(Style::plain(), |doc| build(&report, doc)))
        };
        let parts = [
            "1 suspect left out as known growth (--ignore)",
            "and suspects that grew less (--top N shows more)",
            "and 7 more classes that changed (--top N shows more)",
            "the reachable heap changed by +5 objects",
        ];
        let told = |text: &str| parts.map(|part| text.contains(part));
        assert_eq!(told(&said(1, 0, 0, 0)), [true, false, false, false]);
        assert_eq!(told(&said(0, 1, 0, 0)), [false, true, false, false]);
        assert_eq!(told(&said(0, 0, 7, 0)), [false, false, true, false]);
        assert_eq!(told(&said(0, 0, 0, 5)), [false, false, false, true]);
        let same = "the size of the reachable heap did not change";
        assert!(said(0, 0, 0, 0).contains(same) && !said(0, 0, 0, 5).contains(same));
    }
}
