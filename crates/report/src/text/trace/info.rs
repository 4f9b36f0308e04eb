//! Prints general data about each run of a trace, such as its time, number of samples, number of GCs, and dumps.

use heapdiff_diff::sentence::{First, Rate, Samples};
use heapdiff_model::trace::{NoteRow, TraceInfoReport};
use heapdiff_units::{Size, counted, grouped};

use super::run;
use crate::document::Document;
use crate::times::{span, utc};

/// Maximum number of notes that are shown for a run.
const NOTES: usize = 5;

pub(crate) fn info(report: &TraceInfoReport, doc: &mut Document) {
    let figures = format!(
        "{}, {}, {}",
        Size(report.trace.bytes),
        counted(report.runs.len() as u64, "run"),
        counted(report.sites, "allocation site")
    );
    doc.subject(&report.trace.path, &figures);
    for row in &report.runs {
        doc.gap();
        run(&row.run, doc);
        let end = match row.run.ended_ms {
            Some(ms) => format!("ended {}", utc(ms)),
            None => "still running, or the JVM was killed".to_owned(),
        };
        let began = utc(row.run.started_ms);
        doc.pair(
            "time",
            format!("{began} UTC, {}, {end}", span(row.uptime_ms)),
        );
        let rate = match row.run.interval_bytes {
            0 => Rate::Each {
                is_filtered: is_filtered(&row.options),
                has_lost: row.lost_samples > 0,
                is_counted: true,
            },
            bytes => Rate::Bytes(bytes),
        };
        let first = First::Same;
        let sentence = Samples::Rate { rate, first };
        let sampled = match (&*row.run.strategy, rate) {
            ("bytes", Rate::Each { .. }) if row.thinned => format!("at first {rate}"),
            ("bytes", _) if row.thinned => format!("at first {sentence}"),
            ("bytes", _) => sentence.to_string(),
            ("recording", _) => "samples from a JFR recording".to_owned(),
            (strategy, _) => format!("samples by {strategy}"),
        };
        let ticks = counted(row.ticks, "tick");
        let samples = counted(row.samples, "sample");
        doc.pair("figures", format!("{ticks}, {samples}, {sampled}"));
        if row.thinned {
            let text = "reduced, because the number of samples reached max_samples";
            doc.pair("rate", text);
        }
        if row.lost_samples > 0 {
            let text = format!(
                "{} ({})",
                counted(row.lost_samples, "sample"),
                Size(row.lost_bytes)
            );
            doc.pair("lost", text);
        }
        let all = counted(row.collections.all, "GC");
        doc.pair(
            "heap",
            format!("{all}, {} of them full", grouped(row.collections.major)),
        );
        if let Some(counting) = &row.counting {
            let jdk = if counting.jdk {
                " and the JDK classes"
            } else {
                ""
            };
            let text = format!(
                "exact for each line of code, from {} to {} of the run, in {} classes{jdk}",
                span(counting.from_uptime_ms),
                span(counting.to_uptime_ms),
                grouped(counting.classes)
            );
            doc.pair("counts", text);
        }
        if !row.run.command.is_empty() {
            doc.pair("command", &row.run.command);
        }
        for (i, dump) in row.dumps.iter().enumerate() {
            let path = dump.path.as_deref().unwrap_or("(path not known)");
            let label = if i == 0 { "dumps" } else { "" };
            doc.pair(label, format!("{} {path}", utc(dump.time_ms)));
        }
        notes(&row.notes, doc);
    }
}

/// True if the agent's options contain a filter on allocations (`include=` or `exclude=`).
fn is_filtered(options: &str) -> bool {
    let options = options.replace("\\,", "");
    let mut keys = options.split(',').map(str::trim_start);
    keys.any(|option| option.starts_with("include=") || option.starts_with("exclude="))
}

fn notes(notes: &[NoteRow], doc: &mut Document) {
    let first = notes.len().saturating_sub(NOTES);
    for (i, note) in notes[first..].iter().enumerate() {
        let label = if i == 0 { "notes" } else { "" };
        doc.pair(label, format!("{} {}", utc(note.time_ms), note.text));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{run_info, trace_file};
    use super::*;
    use crate::style::Style;
    use crate::text::tests::printed;
    use heapdiff_model::count::CountedMissed;
    use heapdiff_model::trace::{Collections, CountingRow, DumpRow, RunInfo, RunRow};

    #[test]
    fn counters_are_shown_if_there_are_any() {
        let with = |counting| {
            let row = RunRow {
                run: run_info("bytes", 1024),
                ticks: 3,
                uptime_ms: 3000,
                collections: Collections { major: 0, all: 0 },
                samples: 5,
                counting,
                ..RunRow::default()
            };
            let report = TraceInfoReport {
                schema: TraceInfoReport::SCHEMA,
                trace: trace_file(),
                sites: 1,
                runs: vec![row],
            };
            printed(Style::plain(), |doc| info(&report, doc))
        };
        let of = |jdk| CountingRow {
            from_uptime_ms: 120,
            to_uptime_ms: 60_000,
            jdk,
            classes: 1234,
            missed: CountedMissed::default(),
        };
        let exact = "    counts   exact for each line of code, from 120ms to 1m of the run, in 1,234 classes";
        let jdk = " and the JDK classes";
        let text = with(Some(of(false)));
        assert!(
            text.contains(&format!("{exact}\n")) && !text.contains(jdk),
            "{text}"
        );
        let text = with(Some(of(true)));
        assert!(text.contains(&format!("{exact}{jdk}\n")), "{text}");
        assert!(!with(None).contains("by line of code"));
    }

    #[test]
    fn facts_about_a_run_are_reported() {
        let with = |options: &str, run: RunInfo, lost_samples, path: Option<&str>, thinned| {
            let row = RunRow {
                run,
                options: options.to_owned(),
                ticks: 3,
                uptime_ms: 3000,
                collections: Collections { major: 1, all: 4 },
                samples: 5,
                lost_samples,
                lost_bytes: 1024,
                dumps: vec![DumpRow {
                    time_ms: 1000,
                    path: path.map(str::to_owned),
                }],
                thinned,
                ..RunRow::default()
            };
            let report = TraceInfoReport {
                schema: TraceInfoReport::SCHEMA,
                trace: trace_file(),
                sites: 1,
                runs: vec![row],
            };
            printed(Style::plain(), |doc| info(&report, doc))
        };
        let of = |run, lost_samples, path, thinned| with("", run, lost_samples, path, thinned);
        let parts = [
            "still running, or the JVM was killed",
            "every allocation is counted",
            "one sample every 1.0 KiB allocated",
            "samples from a JFR recording",
            "(path not known)",
            "2 samples (1.0 KiB)",
            "at first every allocation",
            "at first one sample every 1.0 KiB allocated",
            "reduced, because the number of samples reached max_samples",
        ];
        let told = |text: &str| parts.map(|part| text.contains(part));
        let ended = |strategy, interval| RunInfo {
            ended_ms: Some(9000),
            ..run_info(strategy, interval)
        };
        let [yes, no] = [true, false];
        let dump = Some("a.hprof");
        let text = of(run_info("bytes", 1024), 0, dump, false);
        assert_eq!(
            told(&text),
            [yes, no, yes, no, no, no, no, no, no],
            "{text}"
        );
        let text = of(ended("bytes", 0), 0, None, false);
        assert_eq!(
            told(&text),
            [no, yes, no, no, yes, no, no, no, no],
            "{text}"
        );
        // Lost and filtered allocations are not counted.
        let text = of(ended("bytes", 0), 2, None, false);
        assert_eq!(
            told(&text),
            [no, no, no, no, yes, yes, no, no, no],
            "{text}"
        );
        assert!(text.contains(", every allocation except lost ones is counted\n"));
        for (options, filtered) in [
            ("interval=0,include=^com\\.pet", true),
            ("exclude=byte,interval=0", true),
            ("interval=0,service=a\\,include=b", false),
        ] {
            let text = with(options, ended("bytes", 0), 0, None, false);
            let past = "every allocation that passes the filters is counted";
            assert_eq!(text.contains(past), filtered, "{text}");
            assert_eq!(told(&text)[1], !filtered, "{text}");
        }
        let text = of(ended("recording", 0), 0, dump, false);
        assert_eq!(told(&text), [no, no, no, yes, no, no, no, no, no], "{text}");
        // After the table of samples was full, the agent took fewer samples, so the initial rate no longer applies.
        let text = of(ended("bytes", 0), 0, dump, true);
        assert_eq!(
            told(&text),
            [no, no, no, no, no, no, yes, no, yes],
            "{text}"
        );
        let text = of(ended("bytes", 1024), 0, dump, true);
        assert_eq!(
            told(&text),
            [no, no, yes, no, no, no, no, yes, yes],
            "{text}"
        );
        assert!(text.contains("4 GCs, 1 of them full"), "{text}");
        assert!(!text.contains(" alive in "), "{text}");
    }
}
