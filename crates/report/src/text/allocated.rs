//! Prints all objects that were allocated since the agent's start, including dead objects.

use heapdiff_diff::sentence::{Alive, Samples};
use heapdiff_model::sites::{AllocatedReport, AllocatedStackRow};
use heapdiff_units::{counted, grouped};

use super::sites::{large_objects, more_classes, origin, other_stacks};
use super::stacks::amount;
use super::{count, snapshot};
use crate::document::Column::{Figure, Name};
use crate::document::{Document, Stack};
use crate::times::span;
use crate::view::Viewed;
use heapdiff_diff::samples::FORGOTTEN;

pub(crate) fn build(report: &Viewed<AllocatedReport>, doc: &mut Document) {
    snapshot::heading(&report.snapshot, doc);
    let totals = &report.totals;
    origin(Some(&report.agent), totals.unseen_bytes, doc);
    doc.gap();
    let (things, from) = match totals.samples {
        Some(samples) => (counted(samples, "sample"), counted(totals.rows, "stack")),
        None => (
            counted(totals.objects, "object"),
            counted(totals.rows, "class"),
        ),
    };
    doc.one_line(Samples::Allocated {
        amount: amount(totals.bytes, totals.ci95),
        span: span(report.span_ms),
        things,
        from,
        focus: report.focus.clone(),
    });
    if report.by == "class" {
        return by_class(report, doc);
    }
    other_stacks(totals.other_stacks_bytes, totals.bytes, doc);
    large_objects(totals.undersampled_bytes, false, doc);
    for (number, row) in (1..).zip(&report.stacks) {
        doc.gap();
        doc.stack(Stack {
            number: Some(number),
            class: match &row.classes[..] {
                [] => FORGOTTEN.to_owned(),
                classes => classes.join(", "),
            },
            figures: figures(row),
            frames: row.frames.clone(),
            threads: Vec::new(),
            verbose: report.view.verbose,
        });
    }
    let more = totals.rows.saturating_sub(report.stacks.len() as u64);
    doc.add_unlisted_blocks(more, "more stack");
    if let Some(counted) = &report.counted {
        doc.gap();
        count::in_dump(counted, doc);
    }
}

fn figures(row: &AllocatedStackRow) -> String {
    let stack = Samples::Stack {
        objects: row.estimated_objects,
        samples: row.samples,
        is_counted: row.sampled.is_some(),
        alive: row
            .survival_permille
            .map_or(Alive::Omitted, Alive::Permille),
    };
    format!("{}  {stack}", amount(row.estimated_bytes, row.ci95))
}

fn by_class(report: &AllocatedReport, doc: &mut Document) {
    doc.note(Samples::AllocatedColumns);
    doc.gap();
    let columns = [("objects", Figure), ("bytes", Figure), ("class", Name)];
    let rows = report.classes.iter();
    let rows = rows.map(|row| vec![grouped(row.objects), grouped(row.bytes), row.class.clone()]);
    doc.table(&columns, rows);
    more_classes(report.totals.rows, report.classes.len(), doc);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use crate::text::sites::tests::agent;
    use crate::text::tests::printed;
    use crate::text::tests::snapshot;
    use heapdiff_diff::SampledBytes;
    use heapdiff_model::count::{CountTotals, CountedInDump, CountedMissed};
    use heapdiff_model::sites::{AllocatedTotals, CountedClassRow};

    fn report(by: &'static str, rows: u64, undersampled_bytes: u64) -> Viewed<AllocatedReport> {
        let is_class = by == "class";
        let stack = AllocatedStackRow {
            frames: vec!["com.acme.Web.get(Web.java:7)".to_owned()],
            samples: 3,
            estimated_bytes: 2048,
            ci95: Some([1024, 4096]),
            estimated_objects: 9,
            survival_permille: Some(160),
            ..AllocatedStackRow::default()
        };
        let class = CountedClassRow {
            class: "byte[]".to_owned(),
            objects: 1234,
            bytes: 56_789,
        };
        AllocatedReport {
            schema: AllocatedReport::SCHEMA,
            snapshot: snapshot(),
            by,
            span_ms: 61_000,
            totals: AllocatedTotals {
                rows,
                samples: (!is_class).then_some(30),
                bytes: 4096,
                objects: 1234,
                undersampled_bytes,
                ..AllocatedTotals::default()
            },
            agent: agent(),
            stacks: if is_class { Vec::new() } else { vec![stack] },
            classes: if is_class { vec![class] } else { Vec::new() },
            ..AllocatedReport::default()
        }
        .into()
    }

    fn rendered(report: &Viewed<AllocatedReport>) -> String {
        printed(Style::plain(), |doc| build(report, doc))
    }

    #[test]
    fn allocations_are_shown_by_stack_and_by_class() {
        let counted = "allocated: all allocations since the agent's start that pass its filters";
        let text = rendered(&report("stack", 3, 0));
        let all = "4.0 KiB allocated in 1m1s: 30 samples from 3 stacks\n";
        let row = "  1  (class not remembered)  2.0 KiB (1.0 KiB..4.0 KiB)  9 objects, 3 samples, 16 % alive\n";
        let rest = "and 2 more stacks (--top N shows more)";
        for part in [all, row, rest] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains(counted), "{text}");
        let text = rendered(&report("class", 3, 0));
        let all = "4.0 KiB allocated in 1m1s: 1,234 objects from 3 classes\n";
        let row = "  1,234  56,789  byte[]\n";
        let rest = "and 2 more classes (--top N shows more)";
        for part in [counted, all, row, rest] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!rendered(&report("class", 1, 0)).contains("(--top N shows more)"));
        assert!(rendered(&report("class", 2, 0)).contains("and 1 more class (--top"));
    }

    #[test]
    fn counts_are_shown_below_the_estimates() {
        let mut both = report("stack", 1, 0);
        let estimates = rendered(&both);
        for says in ["executed allocations", " before the dump", "counted 0"] {
            assert!(!estimates.contains(says), "{estimates}");
        }
        both.counted = Some(CountedInDump {
            millis: 1000,
            jdk: true,
            totals: CountTotals::default(),
            missed: CountedMissed::default(),
            ..CountedInDump::default()
        });
        let text = rendered(&both);
        let counted = "\nallocations counted: 0 objects (0 B) at 0 allocation sites, during 1s; the count ended 0s before the dump\n";
        assert!(
            text.starts_with(&*estimates) && text.contains(counted),
            "{text}"
        );
    }

    #[test]
    fn several_classes_and_too_few_samples_are_reported() {
        let few = "the true size of large objects may be up to 50 % more than 8.0 KiB";
        assert!(!rendered(&report("stack", 1, 0)).contains("where objects are large"));
        assert!(!rendered(&report("stack", 1, 0)).contains(", only stacks that match"));
        let mut both = report("stack", 1, 8192);
        both.stacks[0].classes = vec!["byte[]".to_owned(), "char[]".to_owned()];
        both.focus = Some("Web".to_owned());
        let text = rendered(&both);
        assert!(text.contains(few), "{text}");
        assert!(text.contains("  1  byte[], char[]  2.0 KiB"), "{text}");
        assert!(
            text.contains("9 objects, 3 samples, 16 % alive\n"),
            "{text}"
        );
        both.stacks[0].sampled = Some(SampledBytes::default());
        let text = rendered(&both);
        assert!(text.contains(", 3 samples and counts, 16 %"), "{text}");
        both.stacks[0].sampled = None;
        both.stacks[0].survival_permille = None;
        let unknown = rendered(&both);
        assert!(
            unknown.contains("9 objects, 3 samples\n") && !unknown.contains("alive"),
            "{unknown}"
        );
        assert!(
            text.contains(" from 1 stack, only stacks that match Web\n"),
            "{text}"
        );
    }
}
