//! Writes any report in any of its formats.

use std::io::{self, Write};

use heapdiff_diff::Allocated;
use heapdiff_model::recording::RecordingReport;
use heapdiff_model::sites::{AllocatedReport, SitesReport};
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_model::trace::FlameReport;
use regex::Regex;

use crate::format::Format;
use crate::pprof::About;
use crate::report::Report;
use crate::stacks::{Names, StackLine, Stacks};
use crate::style::Style;
use crate::svg::Measured;
use crate::view::{DiffReport, DumpReport, FlameView, RecordingView, SitesView, View, Viewed};
use crate::{collapsed, github, html, json, junit, markdown, openmetrics, pprof, sarif, svg, text};

/// Writes a report in a format. For a query, use [`crate::rows`] instead, which also writes the rows.
///
/// # Errors
/// Returns an error if the stream fails, or if the report cannot be written in this format.
pub fn render(
    format: Format,
    report: &Report,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::render(report, style, out),
        Format::Json => json::render(report, out),
        _ => match report {
            Report::Diff(report) => growth(format, report, out),
            Report::Heap(report) => heap(format, report, out),
            Report::Sites(report) => sites(format, report, out),
            Report::Allocated(report) => allocated(format, report, out),
            Report::Flame(report) => flame(format, report, out),
            Report::Recording(report) => recording(format, report, out),
            Report::Owners(report) if format == Format::Html => html::render_owners(report, out),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this report cannot be written in this format",
            )),
        },
    }
}

/// Writes a comparison.
fn growth(format: Format, report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    let (diff, view) = (&report.data, &report.view);
    match format {
        Format::Html => html::render(report, out),
        Format::Md => markdown::render(report, out),
        Format::Junit => junit::render(report, out),
        Format::OpenMetrics => openmetrics::growth(diff, &view.labels, out),
        Format::Sarif => sarif::render(&report.into(), out),
        Format::Github => github::render(&report.into(), out),
        _ => {
            let interval = view.allocated.as_ref().map_or(0, |a| a.interval_bytes);
            let about = About::from_report(diff, interval);
            let has_agent = diff.snapshots.last().is_some_and(|s| s.agent.is_some());
            Drawn::new(view, live(has_agent)).write(format, &about, out)
        }
    }
}

/// Writes the report of one dump.
fn heap(format: Format, report: &DumpReport, out: &mut dyn Write) -> io::Result<()> {
    let (heap, view) = (&report.data, &report.view);
    match format {
        Format::Html => html::render_heap(report, out),
        Format::Md => markdown::render_heap(report, out),
        Format::OpenMetrics => openmetrics::heap(heap, &view.labels, out),
        Format::Sarif => sarif::render(&report.into(), out),
        Format::Github => github::render(&report.into(), out),
        _ => {
            let info = (&heap.snapshot).into();
            let about = of_dump(&info, view.allocated.as_ref(), info.taken_ms);
            let measured = live(heap.snapshot.agent.is_some());
            Drawn::new(view, measured).write(format, &about, out)
        }
    }
}

/// Returns how the live bytes of a dump were determined. If the dump has an agent, they are estimated from samples.
/// Otherwise they are exact, because the dump records the stack of each object.
const fn live(has_agent: bool) -> Measured {
    if has_agent {
        Measured::Estimated
    } else {
        Measured::Exact
    }
}

/// Returns the header data of a profile or flame graph of one dump.
fn of_dump(snapshot: &SnapshotInfo, allocated: Option<&Allocated>, from_ms: u64) -> About {
    About {
        from_ms,
        to_ms: snapshot.taken_ms,
        interval_bytes: allocated.map_or(0, |a| a.interval_bytes),
        dumps: vec![snapshot.path.clone()],
        warnings: snapshot.warnings.clone(),
    }
}

/// Writes the live bytes of one dump by stack.
fn sites(
    format: Format,
    report: &Viewed<SitesReport, SitesView>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let about = of_dump(
        &report.snapshot,
        report.view.allocated.as_ref(),
        report.snapshot.taken_ms,
    );
    Drawn::new(&report.view, live(report.agent.is_some())).write(format, &about, out)
}

/// Writes the bytes that were allocated before a dump, by stack.
fn allocated(
    format: Format,
    report: &Viewed<AllocatedReport>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let from_ms = report.snapshot.taken_ms.saturating_sub(report.span_ms);
    let about = of_dump(&report.snapshot, report.view.allocated.as_ref(), from_ms);
    Drawn::new(&report.view, Measured::Allocated).write(format, &about, out)
}

/// Writes the live or allocated bytes of a flight recording by stack.
fn recording(
    format: Format,
    report: &Viewed<RecordingReport, RecordingView>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let info = &report.recording;
    let about = About {
        from_ms: info.from_ms,
        to_ms: info.to_ms,
        interval_bytes: info.interval_bytes.unwrap_or(0),
        dumps: vec![info.path.clone()],
        warnings: info.warnings.clone(),
    };
    let measured = match report.measure {
        "allocated" => Measured::Allocated,
        "sampled" => Measured::Followed,
        _ => Measured::Estimated,
    };
    Drawn::new(&report.view, measured).write(format, &about, out)
}

/// Writes the stacks of a trace.
fn flame(
    format: Format,
    report: &Viewed<FlameReport, FlameView>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let allocated = report.view.allocated.as_ref();
    let about = About {
        from_ms: report.from_ms,
        to_ms: report.to_ms,
        interval_bytes: allocated.map_or(0, |a| a.interval_bytes),
        dumps: vec![report.more.title.clone()],
        warnings: report.warnings.clone(),
    };
    Drawn::new(&report.view, report.more.measured).write(format, &about, out)
}

/// All stacks, together with the options for drawing them.
struct Drawn<'a> {
    allocated: Option<&'a Allocated>,
    measured: Measured,
    focus: Option<&'a Regex>,
    reverse: bool,
    columns: collapsed::Columns,
}

impl<'a> Drawn<'a> {
    const fn new(view: &'a View, measured: Measured) -> Self {
        Self {
            allocated: view.allocated.as_ref(),
            measured,
            focus: view.focus.as_ref(),
            reverse: view.reverse,
            columns: view.columns,
        }
    }

    fn write(&self, format: Format, about: &About, out: &mut dyn Write) -> io::Result<()> {
        let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        let Some(allocated) = self.allocated else {
            return refused("no allocation sites are known");
        };
        let stacks = |names| {
            let stacks = Stacks::new(allocated, self.focus, names);
            if self.reverse {
                stacks.reversed()
            } else {
                stacks
            }
        };
        match format {
            Format::Collapsed => collapsed::render(&stacks(Names::Functions), self.columns, out),
            // Profiles have one set of sample types for allocated bytes, and another set for live bytes.
            Format::Pprof if self.measured == Measured::Allocated => {
                allocated_profile(&stacks(Names::Frames), about, out)
            }
            Format::Pprof => pprof::render(&stacks(Names::Frames), about, out),
            Format::Svg => {
                let stacks = stacks(Names::Functions);
                let (dumps, warnings) = (&about.dumps, &about.warnings);
                svg::render(&stacks, self.measured, self.focus, dumps, warnings, out)
            }
            Format::Html => {
                let page = html::StackPage {
                    allocated,
                    measured: self.measured,
                    focus: self.focus,
                    reverse: self.reverse,
                    of: &about.dumps,
                    warnings: &about.warnings,
                };
                html::render_stacks(&page, out)
            }
            _ => refused("this report cannot be written in this format"),
        }
    }
}

fn allocated_profile(stacks: &Stacks, about: &About, out: &mut dyn Write) -> io::Result<()> {
    let sample = |line| -> pprof::HeapSample<'_> {
        let line: &StackLine = line;
        pprof::HeapSample {
            frames: line.frames.iter().rev().map(|&f| stacks.name(f)).collect(),
            class: stacks.class(line),
            allocated: [line.after.objects, line.after.bytes],
            live: [0, 0],
        }
    };
    let samples: Vec<pprof::HeapSample<'_>> = stacks.lines.iter().map(sample).collect();
    pprof::render_heap(&samples, about, out)
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::{Gates, Verdict};

    use super::*;
    use crate::synthetic::{allocated, report, suspect};

    fn rendered(format: Format, report: DiffReport) -> String {
        let mut out = Vec::new();
        let report = Report::Diff(Box::new(report));
        render(format, &report, Style::plain(), &mut out).unwrap();
        String::from_utf8_lossy(&out).into_owned()
    }

    fn diff(doubt: Option<&str>, gates: Gates, allow_partial: bool) -> DiffReport {
        let mut diff = report(vec![suspect(1, "a.B.c", Verdict::Leak, 4096)], 0);
        if let Some(doubt) = doubt {
            diff.add_warning(doubt.to_owned());
        }
        let mut report = crate::tests::diff_report(diff);
        report.view.allocated = Some(allocated(&[("a.Main.main", "X", [1, 5])]));
        report.more.gates = gates;
        report.more.outcomes = vec![crate::junit::Gate {
            name: "--fail-on-suspect".to_owned(),
            tripped: None,
        }];
        report.more.allow_partial = allow_partial;
        report
    }

    const GATE: Gates = Gates {
        growth: None,
        suspect: true,
    };

    #[test]
    fn every_format_warns_about_incomparable_dumps() {
        let why = "x.hprof is damaged <b>";
        for format in [
            Format::Text,
            Format::Json,
            Format::Html,
            Format::Md,
            Format::Junit,
            Format::Sarif,
            Format::Github,
            Format::Svg,
        ] {
            let said = rendered(format, diff(Some(why), Gates::default(), false));
            let begins = "x.hprof is damaged";
            assert!(said.contains(begins), "{format:?}: {said}");
            let silent = rendered(format, diff(None, Gates::default(), false));
            assert!(!silent.contains(begins), "{format:?}");
            let warned = silent.to_lowercase().contains("warning:");
            assert!(!warned, "{format:?}: {silent}");
        }
    }

    #[test]
    fn an_svg_states_whether_its_figures_are_estimates() {
        let svg = |has_agent: bool| {
            let mut report = diff(None, Gates::default(), false);
            let agent = heapdiff_diff::AgentInfo {
                interval_bytes: 1024,
                live_samples: 5,
                sites: 1,
                started_ms: 0,
                pid: 1,
            };
            let last = report.data.snapshots.last_mut().unwrap();
            last.agent = has_agent.then_some(agent);
            rendered(Format::Svg, report)
        };
        let estimated = "Estimated from allocation samples";
        assert!(svg(true).contains(estimated) && !svg(true).contains("Exact: the dump"));
        assert!(svg(false).contains("Exact: the dump") && !svg(false).contains(estimated));
    }

    #[test]
    fn impossible_formats_are_refused() {
        let refused = |format, allocated: bool| {
            let mut report = diff(None, Gates::default(), false);
            report.view.allocated = report.view.allocated.filter(|_| allocated);
            let report = Report::Diff(Box::new(report));
            let refused = render(format, &report, Style::plain(), &mut Vec::new());
            refused.err().map(|e| e.to_string())
        };
        let told = refused(Format::Svg, false);
        assert_eq!(told.as_deref(), Some("no allocation sites are known"));
        let told = refused(Format::Csv, true);
        assert_eq!(
            told.as_deref(),
            Some("this report cannot be written in this format")
        );
        assert_eq!(
            refused(Format::Svg, true),
            None,
            "allocation sites are known, and it can be written in this format"
        );
    }

    #[test]
    fn without_a_stack_those_of_the_class_are_shown() {
        let sentence = "he agent tracks no sample of these objects";
        for format in [Format::Text, Format::Md, Format::Junit] {
            let told = |stacks: bool, at: usize| {
                let mut named = diff(None, Gates::default(), false);
                let suspect = &mut named.data.suspects[0];
                if !stacks {
                    suspect.stacks.clear();
                }
                let one = heapdiff_diff::AllocatedAt {
                    frames: vec!["com.acme.Cache.fill(Cache.java:31)".to_owned()],
                    samples: 17,
                    estimated_bytes: 70_000,
                };
                suspect.allocated_at = vec![one; at];
                rendered(format, named)
            };
            let said = told(false, 1);
            for part in [
                sentence,
                "com.acme.Cache.fill(Cache.java:31)",
                "17 samples",
                "68.4 KiB",
            ] {
                assert!(said.contains(part), "{format:?}, {part}: {said}");
            }
            for silent in [told(true, 1), told(false, 0)] {
                assert!(!silent.contains(sentence), "{format:?}: {silent}");
            }
        }
        let mut many = diff(None, Gates::default(), false);
        many.data.suspects[0].stacks.clear();
        let one = heapdiff_diff::AllocatedAt {
            frames: Vec::new(),
            samples: 1,
            estimated_bytes: 4096,
        };
        many.data.suspects[0].allocated_at = vec![one; 5];
        let said = rendered(Format::Text, many);
        assert!(said.contains("3 more stacks (-v shows all)"), "{said}");
    }

    #[test]
    fn the_frame_with_most_allocations_comes_first() {
        let through = heapdiff_diff::Through {
            frame: "com.acme.Cache.put(Cache.java:31)".to_owned(),
            estimated_bytes: 4000,
            permille: 976,
            stacks: 1,
        };
        let mut named = diff(None, Gates::default(), false);
        named.data.suspects[0].allocated_through = Some(through);
        let share = "97.6 % of the bytes that the stacks allocated, on 1 of 1 stacks";
        for format in [Format::Text, Format::Md, Format::Junit] {
            let mut again = diff(None, Gates::default(), false);
            again.data.clone_from(&named.data);
            let said = rendered(format, again);
            assert!(
                said.contains(share) && said.contains("com.acme.Cache.put("),
                "{format:?}: {said}"
            );
            let silent = rendered(format, diff(None, Gates::default(), false));
            assert!(
                !silent.contains("of the bytes that the stacks allocated"),
                "{format:?}: {silent}"
            );
        }
    }

    #[test]
    fn gates_are_not_decided_on_dumps_that_cannot_be_compared() {
        let why = Some("x.hprof is damaged");
        for (format, undecided) in [
            (Format::Text, "gates were not checked"),
            (Format::Html, "gates were not checked"),
            (Format::Md, "gates were not checked"),
            (
                Format::Junit,
                "<error message=\"not checked: x.hprof is damaged\"",
            ),
        ] {
            let says = |report| rendered(format, report).contains(undecided);
            assert!(says(diff(why, GATE, false)), "{format:?}");
            assert!(!says(diff(why, GATE, true)), "{format:?}: --allow-partial");
            assert!(
                !says(diff(why, Gates::default(), false)),
                "{format:?}: no gate"
            );
            assert!(
                !says(diff(None, GATE, false)),
                "{format:?}: nothing is wrong"
            );
        }
        let junit = |report| rendered(Format::Junit, report);
        let undecided = junit(diff(why, GATE, false));
        assert!(
            undecided.contains("errors=\"2\"") && undecided.contains("failures=\"0\""),
            "{undecided}"
        );
        let decided = junit(diff(why, GATE, true));
        assert!(
            decided.contains("errors=\"0\"") && decided.contains("failures=\"1\""),
            "{decided}"
        );
    }
}
