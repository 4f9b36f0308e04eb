//! Prints the report of one dump: the largest holders of its heap.

use heapdiff_diff::Died;
use heapdiff_diff::sentence::Verdict;
use heapdiff_units::grouped;

use super::snapshot::heading;
use super::suspect::{About, suspect};
use crate::document::{Document, Span, Tone, WIDTH, bold};
use crate::kept;
use crate::tables::{self, ROWS};
use crate::unreachable;
use crate::view::DumpReport;

/// Maximum number of frames shown for the thread that ran out of memory, unless the user requests all frames.
const FRAMES: usize = 8;

pub(crate) fn build(report: &DumpReport, doc: &mut Document) {
    let (heap, verbose) = (&report.data, report.view.verbose);
    heading(&(&heap.snapshot).into(), doc);
    doc.warnings(heap.warnings.iter().map(String::as_str));
    if let Some(died) = &heap.died {
        self::died(died, verbose, doc);
    }
    if let Some(unreachable) = &heap.unreachable {
        doc.prose(unreachable::sentence(unreachable, "the dump"));
    }
    doc.gap();
    doc.line(bold("What holds most"));
    doc.gap();
    doc.prose(kept::sentence(heap, report.more.left_out));
    if !heap.suspects.is_empty() {
        doc.line(Verdict::NoLeak);
    }
    for one in &heap.suspects {
        doc.gap();
        suspect(one, &About::Heap(heap), verbose, doc);
    }
    if report.more.more_suspects && !heap.suspects.is_empty() {
        doc.gap();
        doc.note("and more places, which retain less (--top N shows more)");
    }
    let threads = if verbose { usize::MAX } else { ROWS };
    doc.titled(tables::threads(heap, threads));
    doc.titled(tables::waste(heap, ROWS));
    if !heap.classes.is_empty() {
        doc.titled(tables::classes(heap, usize::MAX, true));
        doc.add_unlisted_count(report.more.more_classes as u64, "more class");
    }
}

fn died(died: &Died, verbose: bool, doc: &mut Document) {
    doc.gap();
    doc.prose(Span::new(Tone::Red, kept::error_sentence(died)));
    let limit = if verbose { usize::MAX } else { FRAMES };
    for frame in died.frames.iter().take(limit) {
        doc.spans(["    at ".into(), Span::from(frame).within(WIDTH - 7)]);
    }
    let more = died.frames.len().saturating_sub(limit);
    if more > 0 {
        let more = grouped(more as u64);
        doc.note(format!("    … and {more} more (-v shows all)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::synthetic;
    use crate::text::tests::printed;

    fn report(suspects: u32) -> DumpReport {
        crate::tests::heap_report(synthetic::heap(suspects))
    }

    fn rendered(report: &DumpReport) -> String {
        printed(Style::plain().within(WIDTH), |doc| build(report, doc))
    }

    #[test]
    fn long_names_do_not_make_lines_too_long() {
        let mut report = report(2);
        let long = "deep.".repeat(60);
        report.data.suspects[0].class = long.clone();
        report.data.classes[0].class = long;
        let text = rendered(&report);
        let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
        assert!(widest.chars().count() <= WIDTH, "{widest}");
        assert!(!text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn large_objects_are_not_called_leaks() {
        let no_leak =
            "a large object need not be a leak: two dumps show what grows (heapdiff BEFORE AFTER)";
        assert!(rendered(&report(1)).contains(no_leak));
        assert!(!rendered(&report(0)).contains("a large object need not be a leak"));
    }

    #[test]
    fn sections_appear_only_with_data() {
        let parts = [
            "Threads with the largest retained size",
            "Wasted memory",
            "Classes, by shallow size",
            "an allocation failed in thread",
            "… and 4 more (-v shows all)",
        ];
        let mut report = report(1);
        let text = rendered(&report);
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        report.view.verbose = true;
        assert!(!rendered(&report).contains(parts[4]));
        report.data.threads.clear();
        report.data.waste.clear();
        report.data.classes.clear();
        report.data.died = None;
        let text = rendered(&report);
        assert!(!parts.iter().any(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn omissions_are_reported() {
        let mut report = report(1);
        let all = rendered(&report);
        report.more.more_suspects = true;
        report.more.more_classes = 7;
        let text = rendered(&report);
        for part in [
            "and more places, which retain less (--top N shows more)",
            "and 7 more classes (--top N shows more)",
        ] {
            assert!(text.contains(part) && !all.contains(part), "{text}");
        }
    }
}
