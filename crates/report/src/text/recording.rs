//! Prints a flight recording by allocation stack or class.

use heapdiff_model::recording::{RecordedStack, RecordingReport};
use heapdiff_units::{Size, counted, grouped};

use super::sites::more_classes;
use super::stacks::amount;
use crate::document::Column::{Figure, Name};
use crate::document::{Document, Stack, dim};
use crate::times::{span, utc};
use crate::view::{RecordingView, Viewed};

pub(crate) fn build(report: &Viewed<RecordingReport, RecordingView>, doc: &mut Document) {
    let info = &report.recording;
    let told = format!(
        "{}, {} UTC, {}",
        Size(info.bytes),
        utc(info.from_ms),
        span(info.to_ms.saturating_sub(info.from_ms))
    );
    doc.subject(&info.path, &told);
    let jvm = match (&info.jvm, info.pid) {
        (Some(jvm), Some(pid)) => format!("{jvm}, process {pid}"),
        (Some(jvm), None) => jvm.clone(),
        (None, _) => "the recording does not identify its JVM".to_owned(),
    };
    let events: Vec<String> = info
        .events
        .iter()
        .map(|e| format!("{} {}", grouped(e.count), e.name.trim_start_matches("jdk.")))
        .collect();
    let events = format!(
        "events: {}; {}",
        events.join(", "),
        counted(info.collections, "GC")
    );
    for line in [jvm, events, figures_meaning(report)] {
        doc.one_line(dim(line));
    }
    let totals = &report.totals;
    let what = match report.measure {
        "allocated" => "allocated",
        _ => "alive",
    };
    let of = report.focus.as_ref().map_or_else(String::new, |focus| {
        format!(", only stacks that match {focus}")
    });
    doc.gap();
    doc.one_line(format!(
        "{} {what} in {} from {}{of}",
        amount(totals.estimated_bytes, totals.ci95),
        counted(totals.samples, "sample"),
        match report.by {
            "class" => counted(report.more.class_count, "class"),
            _ => counted(totals.stacks, "stack"),
        },
    ));
    if report.by == "class" {
        return by_class(report, doc);
    }
    for (number, stack) in (1..).zip(&report.stacks) {
        doc.gap();
        doc.stack(Stack {
            number: Some(number),
            class: stack.class.clone(),
            figures: figures(stack, report),
            frames: stack.frames.clone(),
            threads: stack.threads.clone(),
            verbose: report.view.verbose,
        });
    }
    let more = totals.stacks.saturating_sub(report.stacks.len() as u64);
    doc.add_unlisted_blocks(more, "more stack");
}

/// Adds the table of classes.
fn by_class(report: &Viewed<RecordingReport, RecordingView>, doc: &mut Document) {
    let rows = &report.classes;
    let (has_interval, has_objects) = (
        rows.iter().any(|row| row.ci95.is_some()),
        rows.iter().any(|row| row.estimated_objects.is_some()),
    );
    let what = match report.measure {
        "allocated" => "allocated",
        _ => "live",
    };
    let mut columns = vec![(what, Figure)];
    if has_interval {
        columns.push(("95 % interval", Name));
    }
    if has_objects {
        columns.push(("objects", Figure));
    }
    columns.extend([("samples", Figure), ("class", Name)]);
    let cells = rows.iter().map(|row| {
        let mut cells = vec![Size(row.estimated_bytes).to_string()];
        if has_interval {
            let ci95 = row
                .ci95
                .map(|[low, high]| format!("{}..{}", Size(low), Size(high)));
            cells.push(ci95.unwrap_or_default());
        }
        if has_objects {
            cells.push(row.estimated_objects.map(grouped).unwrap_or_default());
        }
        cells.extend([grouped(row.samples), row.class.clone()]);
        cells
    });
    doc.gap();
    doc.table(&columns, cells);
    more_classes(report.more.class_count, rows.len(), doc);
}

/// Returns the text that explains the report's figures: which objects they count, and how these objects were sampled.
fn figures_meaning(report: &RecordingReport) -> String {
    // The JVM adds a weight to each sample of `jdk.ObjectAllocationSample`. The sampling interval in the recording
    // belongs to other events and does not apply to these samples.
    let is_weighed = report.event == "jdk.ObjectAllocationSample";
    let interval = report.recording.interval_bytes.filter(|_| !is_weighed);
    match (report.measure, interval) {
        ("sampled", _) => {
            "objects that the JVM tracked and that were alive at the end; bytes count only these objects"
                .to_owned()
        }
        ("live", Some(bytes)) => format!(
            "alive at the end of the recording; one sample every {} allocated, but at most 1,024 samples",
            Size(bytes)
        ),
        ("live", None) => "alive at the end of the recording".to_owned(),
        (_, Some(bytes)) => format!(
            "allocated during the recording, alive or not; one sample every {} allocated",
            Size(bytes)
        ),
        _ => "allocated during the recording, alive or not".to_owned(),
    }
}

fn figures(stack: &RecordedStack, report: &RecordingReport) -> String {
    let bytes = amount(stack.estimated_bytes, stack.ci95);
    let samples = counted(stack.samples, "sample");
    let figures = match (report.measure, stack.estimated_objects) {
        ("sampled", _) => format!("{samples}, {bytes}"),
        (_, Some(objects)) => format!("{bytes}  {}, {samples}", counted(objects, "object")),
        (_, None) => format!("{bytes}  {samples}"),
    };
    match report.measure {
        "allocated" => figures,
        // The times help to find leaks: a leak allocates objects all the time, but data from the start of the program
        // is allocated only once.
        _ => format!(
            "{figures}, allocated from {} to {}",
            time_since_start(stack.first_ms),
            time_since_start(stack.last_ms)
        ),
    }
}

/// Formats a time since the recording began.
fn time_since_start(ms: u64) -> String {
    match ms {
        0..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => span(ms),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::text;
    use super::*;
    use crate::report::Report;
    use heapdiff_model::recording::{RecordedClass, RecordedTotals, RecordingInfo};

    /// Returns a recording with `stacks` stacks. Only one of them is listed.
    fn report(
        measure: &'static str,
        interval_bytes: Option<u64>,
        stacks: u64,
    ) -> Viewed<RecordingReport, RecordingView> {
        RecordingReport {
            schema: RecordingReport::SCHEMA,
            recording: RecordingInfo {
                path: "r.jfr".to_owned(),
                bytes: 1024,
                to_ms: 1000,
                chunks: 1,
                collections: 2,
                interval_bytes,
                ..RecordingInfo::default()
            },
            event: "jdk.ObjectAllocationInNewTLAB",
            measure,
            by: "stack",
            totals: RecordedTotals {
                stacks,
                samples: 3,
                estimated_bytes: 3000,
                ci95: None,
            },
            stacks: vec![RecordedStack {
                frames: vec!["com.acme.Cache.put(line 31)".to_owned()],
                class: "byte[]".to_owned(),
                samples: 3,
                estimated_bytes: 3000,
                last_ms: 900,
                ..RecordedStack::default()
            }],
            ..RecordingReport::default()
        }
        .into()
    }

    fn told(report: Viewed<RecordingReport, RecordingView>) -> String {
        text(&Report::Recording(Box::new(report)))
    }

    #[test]
    fn the_meaning_of_figures_is_stated_once() {
        let meanings = [
            (
                ("sampled", None),
                "objects that the JVM tracked and that were alive at the end; bytes count only these objects\n",
            ),
            (
                ("live", Some(1024)),
                "alive at the end of the recording; one sample every 1.0 KiB allocated, but at most 1,024 samples\n",
            ),
            (("live", None), "alive at the end of the recording\n"),
            (
                ("allocated", Some(1024)),
                "allocated during the recording, alive or not; one sample every 1.0 KiB allocated\n",
            ),
            (
                ("allocated", None),
                "allocated during the recording, alive or not\n",
            ),
        ];
        for ((measure, interval), words) in meanings {
            let text = told(report(measure, interval, 1));
            let with = meanings.iter().filter(|m| text.contains(m.1)).count();
            assert!(text.contains(words) && with == 1, "{text}");
        }
        // The JVM adds a weight to each sample of this event. The sampling interval belongs to other events and does
        // not apply.
        let mut weighed = report("allocated", Some(1024), 1);
        weighed.event = "jdk.ObjectAllocationSample";
        assert!(told(weighed).contains("alive or not\n"));
    }

    #[test]
    fn the_jvm_and_omissions_are_reported() {
        let unknown = "the recording does not identify its JVM\n";
        let mut named = report("sampled", None, 2);
        assert!(told(report("sampled", None, 1)).contains(unknown));
        named.recording.jvm = Some("OpenJDK 25".to_owned());
        named.focus = Some("put".to_owned());
        let text = told(named);
        assert!(text.contains("\nOpenJDK 25\n") && !text.contains("does not identify"));
        assert!(text.contains(" alive in 3 samples from 2 stacks, only stacks that match put\n"));
        assert!(
            text.ends_with("and 1 more stack (--top N shows more)\n"),
            "{text}"
        );
        let text = told(report("sampled", None, 1));
        assert!(
            text.contains(" alive in 3 samples from 1 stack\n") && !text.contains("only stacks")
        );
        assert!(!text.contains("more stack"), "{text}");
    }

    #[test]
    fn each_class_has_a_line_with_its_known_figures() {
        let by_class = |measure, ci95, estimated_objects| {
            let mut report = report(measure, None, 2);
            report.by = "class";
            report.stacks.clear();
            report.more.class_count = 2;
            report.classes = vec![RecordedClass {
                class: "byte[]".to_owned(),
                samples: 3,
                estimated_bytes: 3072,
                ci95,
                estimated_objects,
            }];
            told(report)
        };
        let text = by_class("allocated", Some([1024, 4096]), Some(1234));
        let table = "\n\nallocated  95 % interval     objects  samples  class\n  \
                     3.0 KiB  1.0 KiB..4.0 KiB    1,234        3  byte[]\n\
                     and 1 more class (--top N shows more)\n";
        assert!(text.ends_with(table), "{text}");
        assert!(
            text.contains(" allocated in 3 samples from 2 classes\n"),
            "{text}"
        );
        assert!(!text.contains("stack"), "{text}");
        // Figures of the measure `sampled` are not estimates, so they have no confidence interval.
        let text = by_class("sampled", None, None);
        let table = "\n\n   live  samples  class\n3.0 KiB        3  byte[]\n";
        assert!(text.contains(table), "{text}");
    }
}
