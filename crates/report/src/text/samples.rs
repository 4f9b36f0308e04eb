//! Prints single samples of a trace.

use heapdiff_model::trace::{SampleReportRow, TraceSamplesReport};
use heapdiff_units::{Size, counted, grouped};

use super::trace::run;
use crate::document::Document;
use crate::times::{span, utc};
use crate::view::Viewed;

/// Maximum number of lines of a stack, unless the user requests all.
const FRAMES: usize = 4;

pub(crate) fn build(report: &Viewed<TraceSamplesReport>, doc: &mut Document) {
    let figures = format!("{} UTC, {}", utc(report.at_ms), span(report.at_uptime_ms));
    doc.subject(&report.trace.path, &figures);
    run(&report.run, doc);
    let totals = &report.totals;
    let samples = match report.which {
        "live" => counted(totals.samples, "live sample"),
        "recent" => format!(
            "{} of the objects that were freed last",
            counted(totals.samples, "sample")
        ),
        _ => format!(
            "{} of randomly chosen freed objects",
            counted(totals.samples, "sample")
        ),
    };
    let order = match (report.by, report.which) {
        ("age", "live") => "oldest first",
        ("age", _) => "longest-lived first",
        _ => "largest first",
    };
    let mut only = String::new();
    if let Some(focus) = &report.focus {
        only += &format!(" that match {focus}");
    }
    if let Some(thread) = &report.thread {
        only += &format!(", in threads that match {thread}");
    }
    if let Some(label) = &report.label {
        only += &format!(", with labels that match {label}");
    }
    let bytes = Size(totals.bytes);
    doc.one_line(format!("{samples}{only}: {bytes}"));
    if report.samples.len() > 1 {
        doc.note(order);
    }
    for (number, sample) in (1..).zip(&report.samples) {
        doc.gap();
        self::sample(number, sample, report.view.verbose, doc);
    }
    let more = totals.samples.saturating_sub(report.samples.len() as u64);
    if more > 0 {
        doc.gap();
        doc.note(format!("{} more (--top N shows more)", grouped(more)));
    }
}

fn sample(number: u64, sample: &SampleReportRow, verbose: bool, doc: &mut Document) {
    let figures = match sample.collected_ms {
        None => format!("{}, {} old", Size(sample.bytes), span(sample.age_ms)),
        Some(_) => format!("{}, lived {}", Size(sample.bytes), span(sample.age_ms)),
    };
    doc.ranked(number, None, &sample.class, &figures);
    doc.pair("uid", sample.uid);
    let at = |what, ms, uptime| format!("{what} {} UTC, {} into the run", utc(ms), span(uptime));
    let when = at("allocated", sample.allocated_ms, sample.allocated_uptime_ms);
    doc.pair("time", when);
    if let (Some(ms), Some(uptime)) = (sample.collected_ms, sample.collected_uptime_ms) {
        doc.pair("", at("collected", ms, uptime));
    }
    let thread = sample.thread.as_deref().unwrap_or("(unknown)");
    doc.pair("thread", thread);
    let labels = sample.labels.iter();
    let labels: Vec<String> = labels.map(|l| format!("{}={}", l.key, l.value)).collect();
    if !labels.is_empty() {
        doc.pair("labels", labels.join(", "));
    }
    doc.frames("from", &sample.frames, verbose, FRAMES);
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::super::trace::tests::{run_info, trace_file};
    use super::*;
    use crate::report::Report;
    use heapdiff_model::trace::{RunInfo, SampleTotals};

    /// Returns the text of a report that lists two samples. `which` is the kind of samples, `by` is their order, and
    /// `all` is the number of samples of the run.
    fn rendered(which: &'static str, by: &'static str, all: u64) -> String {
        let collected = (which != "live").then_some(5000);
        let row = || SampleReportRow {
            uid: 7,
            class: "byte[]".to_owned(),
            bytes: 1024,
            allocated_ms: 3000,
            allocated_uptime_ms: 2000,
            collected_ms: collected,
            collected_uptime_ms: collected.map(|ms| ms - 1000),
            age_ms: 2000,
            ..SampleReportRow::default()
        };
        text(&Report::TraceSamples(
            TraceSamplesReport {
                schema: TraceSamplesReport::SCHEMA,
                trace: trace_file(),
                run: RunInfo {
                    started_ms: 1000,
                    ..run_info("bytes", 1024)
                },
                which,
                by,
                at_ms: 9000,
                at_uptime_ms: 8000,
                totals: SampleTotals {
                    samples: all,
                    bytes: 1024 * all,
                },
                samples: vec![row(), row()],
                ..TraceSamplesReport::default()
            }
            .into(),
        ))
    }

    #[test]
    fn the_kind_and_order_of_samples_are_stated() {
        let orders = ["oldest first", "longest-lived first", "largest first"];
        let kinds = [
            "2 live samples: ",
            "2 samples of the objects that were freed last: ",
            "2 samples of randomly chosen freed objects: ",
        ];
        for (which, by, kind, order) in [
            ("live", "age", 0, 0),
            ("recent", "age", 1, 1),
            ("chosen", "age", 2, 1),
            ("live", "bytes", 0, 2),
            ("chosen", "bytes", 2, 2),
        ] {
            let text = rendered(which, by, 2);
            let said = |words: [&str; 3]| words.map(|w| text.contains(w));
            assert_eq!(said(kinds), [0, 1, 2].map(|at| at == kind), "{text}");
            assert_eq!(said(orders), [0, 1, 2].map(|at| at == order), "{text}");
            assert!(
                text.contains("allocated 1970-01-01 00:00:03 UTC, 2s into the run"),
                "{text}"
            );
            let collected = text.contains("collected 1970-01-01 00:00:05 UTC, 4s into the run");
            assert_eq!(collected, which != "live", "{text}");
            assert!(!text.contains("--top N shows more"), "{text}");
        }
        assert!(rendered("live", "age", 5).ends_with("\n3 more (--top N shows more)\n"));
    }
}
