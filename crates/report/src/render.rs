//! From a report to its bytes in a format.

use std::io::{self, Write};

use heapdiff_diff::Allocated;
use regex::Regex;

use crate::format::Format;
use crate::html::Context;
use crate::junit::Checks;
use crate::markdown::More;
use crate::model::{DiffReport, RecordingReport, Report, SitesReport};
use crate::pprof::About;
use crate::stacks::{Names, Stacks};
use crate::style::Style;
use crate::{collapsed, html, json, junit, markdown, pprof, svg, text};

/// Writes a report. The rows of a query are written by [`crate::rows`], as they are found.
///
/// # Errors
/// When the stream fails, and when the report has no such format.
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
            Report::Sites(report) => sites(format, report, out),
            Report::Recording(report) => recording(format, report, out),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "this report cannot be written in this format",
            )),
        },
    }
}

/// What grew.
fn growth(format: Format, report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    let diff = &report.diff;
    match format {
        Format::Html => {
            let context = Context {
                allocated: report.allocated.as_ref(),
                focus: report.focus.as_ref(),
                known: report.known.len(),
                more_suspects: !report.more_suspects.is_empty(),
            };
            html::render(diff, &context, out)
        }
        Format::Md => {
            let more = More {
                suspects: !report.more_suspects.is_empty(),
                classes: report.more_classes,
                known: report.known.len(),
            };
            markdown::render(diff, more, out)
        }
        Format::Junit => {
            let checks = Checks {
                gates: &report.outcomes,
                fails: &|suspect| report.gates.trips(suspect),
                known: &report.known,
            };
            junit::render(diff, &checks, out)
        }
        _ => {
            let interval = report.allocated.as_ref().map_or(0, |a| a.interval_bytes);
            let about = About::of(diff, interval);
            let allocated = report.allocated.as_ref();
            stacks(
                format,
                allocated,
                report.focus.as_ref(),
                &about,
                report.columns,
                out,
            )
        }
    }
}

/// Live bytes of one dump.
fn sites(format: Format, report: &SitesReport, out: &mut dyn Write) -> io::Result<()> {
    let taken = report.snapshot.taken_ms;
    let about = About {
        from_ms: taken,
        to_ms: taken,
        interval_bytes: report.allocated.as_ref().map_or(0, |a| a.interval_bytes),
        dumps: vec![report.snapshot.path.clone()],
    };
    let allocated = report.allocated.as_ref();
    let columns = collapsed::Columns::Growth;
    stacks(
        format,
        allocated,
        report.only.as_ref(),
        &about,
        columns,
        out,
    )
}

/// What a recording found alive, or allocated.
fn recording(format: Format, report: &RecordingReport, out: &mut dyn Write) -> io::Result<()> {
    let info = &report.recording;
    let about = About {
        from_ms: info.from_ms,
        to_ms: info.to_ms,
        interval_bytes: info.interval_bytes.unwrap_or(0),
        dumps: vec![info.path.clone()],
    };
    let (allocated, only) = (report.allocated.as_ref(), report.only.as_ref());
    if let (Format::Pprof, "allocated", Some(allocated)) = (format, report.measure, allocated) {
        // Profiles name what was allocated and what is alive differently.
        let stacks = Stacks::new(allocated, only, Names::Frames);
        let samples: Vec<pprof::HeapSample<'_>> = stacks
            .lines
            .iter()
            .map(|line| pprof::HeapSample {
                frames: line
                    .frames
                    .iter()
                    .rev()
                    .filter_map(|&f| stacks.names.get(f as usize))
                    .map(|f| &**f)
                    .collect(),
                class: stacks.classes.get(line.class as usize).map_or("", |c| c),
                allocated: [line.after.objects, line.after.bytes],
                live: [0, 0],
            })
            .collect();
        return pprof::render_heap(&samples, &about, out);
    }
    let columns = collapsed::Columns::Growth;
    stacks(format, allocated, only, &about, columns, out)
}

/// What is made of all stacks.
fn stacks(
    format: Format,
    allocated: Option<&Allocated>,
    focus: Option<&Regex>,
    about: &About,
    columns: collapsed::Columns,
    out: &mut dyn Write,
) -> io::Result<()> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let Some(allocated) = allocated else {
        return refused("no allocation sites are known");
    };
    let stacks = |names| Stacks::new(allocated, focus, names);
    match format {
        Format::Collapsed => collapsed::render(&stacks(Names::Functions), columns, out),
        Format::Pprof => pprof::render(&stacks(Names::Frames), about, out),
        Format::Svg => svg::render(&stacks(Names::Functions), &about.dumps, out),
        _ => refused("this report cannot be written in this format"),
    }
}
