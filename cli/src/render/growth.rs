//! A diff in the formats of other programs, which are made in a crate of their own.

use std::io::{self, Write};

use heapdiff_diff::Allocated;
use heapdiff_report::html::Context;
use heapdiff_report::junit::Checks;
use heapdiff_report::markdown::More;
use heapdiff_report::pprof::About;
use heapdiff_report::{Names, Stacks, collapsed, html, junit, markdown, pprof, svg};
use regex::Regex;

use crate::format::Format;
use crate::gates;
use crate::report::{DiffReport, RecordingReport, SitesReport};

pub(crate) fn render(format: Format, report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
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
                gates: &gates::outcomes(report),
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
pub(crate) fn sites(format: Format, report: &SitesReport, out: &mut dyn Write) -> io::Result<()> {
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
pub(crate) fn recording(
    format: Format,
    report: &RecordingReport,
    out: &mut dyn Write,
) -> io::Result<()> {
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
