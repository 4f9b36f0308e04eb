//! Prints how much of each class was allocated. The figures are counts if the agent counts classes; otherwise they are
//! estimates.

use heapdiff_model::trace::{CandidateRow, TraceTopReport};
use heapdiff_units::{Size, counted, grouped};

use crate::document::Column::{Figure, Name};
use crate::document::{Document, yellow};
use crate::text::sites::more_classes;
use crate::view::{TraceTopView, Viewed};

/// Returns the objects and bytes that were allocated of a candidate's class. A candidate is a possible leak.
pub(super) fn class_allocations(candidate: &CandidateRow) -> String {
    match candidate.counted {
        Some(count) => format!(
            "{} of {} bytes in total, counted",
            counted(count.objects, "object"),
            grouped(count.bytes)
        ),
        None => format!(
            "{}, estimated from samples",
            Size(candidate.allocated_bytes)
        ),
    }
}

/// Adds the table of classes with the most counted bytes.
pub(super) fn add(report: &Viewed<TraceTopReport, TraceTopView>, doc: &mut Document) {
    if report.more.counts_more {
        doc.gap();
        let text = "counts by class are shown only without --focus, --since, ...: they cover the run and all stacks";
        return doc.note(text);
    }
    let Some(all) = &report.counted else {
        return;
    };
    let text = "allocated: all allocations that pass the agent's filters, from its start to the last data point";
    doc.gap();
    doc.note(text);
    if all.unknown_objects > 0 {
        let text = format!(
            "the class of {} is unknown, so the counts by class are too low by this number in total",
            counted(all.unknown_objects, "object")
        );
        doc.line(yellow(text));
    }
    doc.gap();
    let columns = [("objects", Figure), ("bytes", Figure), ("class", Name)];
    let rows = all.rows.iter().map(|row| {
        let class = row.class.clone();
        vec![grouped(row.objects), grouped(row.bytes), class]
    });
    doc.table(&columns, rows);
    more_classes(all.classes, all.rows.len(), doc);
}

#[cfg(test)]
mod tests {
    use crate::document::WIDTH;
    use crate::text::trace::tests::{growing, rendered, top_of};
    use crate::view::{TraceTopView, Viewed};
    use heapdiff_model::sites::{CountRow, CountedClassRow};
    use heapdiff_model::trace::{CountedClasses, TraceTopReport};

    fn by_class(change: impl FnOnce(&mut Viewed<TraceTopReport, TraceTopView>)) -> String {
        let mut report = top_of(vec![growing(1)]);
        report.by = "class";
        report.candidates[0].allocated_bytes = 3 << 20;
        change(&mut report);
        let text = rendered(&report);
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
        text
    }

    #[test]
    fn counted_and_estimated_figures_are_distinguished() {
        let since =
            "allocations that pass the agent's filters, from its start to the last data point";
        let estimated = "    created  3.0 MiB, estimated from samples\n";
        let counted = "    created  1,234 objects of 56,789 bytes in total, counted\n";
        let unknown = "the class of 3 objects is unknown, so the counts by class are too low by this number in total\n";
        let without = by_class(|_| ());
        assert!(without.contains(estimated), "{without}");
        for part in ["counted", since, unknown] {
            assert!(!without.contains(part), "{without}");
        }
        let count = |report: &mut Viewed<TraceTopReport, TraceTopView>, unknown_objects| {
            report.candidates[0].counted = Some(CountRow {
                objects: 1234,
                bytes: 56_789,
            });
            report.counted = Some(CountedClasses {
                classes: 3,
                objects: 2000,
                bytes: 100_000,
                unknown_objects,
                rows: vec![CountedClassRow {
                    class: "byte[]".to_owned(),
                    objects: 1234,
                    bytes: 56_789,
                }],
            });
        };
        let with = by_class(|report| count(report, 0));
        let table = "objects   bytes  class\n  1,234  56,789  byte[]\nand 2 more classes (--top N shows more)\n";
        assert!(
            with.contains(counted) && with.contains(since) && with.ends_with(table),
            "{with}"
        );
        assert!(!with.contains("estimated from samples") && !with.contains(unknown));
        assert!(by_class(|report| count(report, 3)).contains(unknown));
        // Counts by class are not shown for a single frame or stack, because it may allocate several classes, or only
        // some of the objects of a class.
        let frames = rendered(&top_of(vec![growing(1)]));
        assert!(!frames.contains("    created "), "{frames}");
    }

    #[test]
    fn counts_of_a_whole_run_are_not_shown_for_a_part() {
        let more = "counts by class are shown only without --focus, --since";
        let text = by_class(|report| report.more.counts_more = true);
        assert!(
            text.contains(more) && text.contains("estimated from samples"),
            "{text}"
        );
        assert!(!text.contains("counted from"), "{text}");
        assert!(!by_class(|_| ()).contains(more));
    }
}
