//! A flight recording by allocation stack.

use std::io::{self, Write};

use heapdiff_units::{Size, counted, grouped};

use super::{WIDTH, stacks, table};
use crate::model::{RecordedStack, RecordingReport};
use crate::style::Style;
use crate::times::{span, utc};

const INDENT: usize = 5;

pub(crate) fn render(
    report: &RecordingReport,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let info = &report.recording;
    let figures = format!(
        "{}, {} UTC, {}",
        Size(info.bytes),
        utc(info.from_ms),
        span(info.to_ms.saturating_sub(info.from_ms))
    );
    let room = WIDTH.saturating_sub(figures.chars().count() + 2).max(20);
    let path = table::printable(&info.path);
    writeln!(
        out,
        "{}  {figures}",
        style.bold(table::shortened(&path, room))
    )?;
    let jvm = match (&info.jvm, info.pid) {
        (Some(jvm), Some(pid)) => format!("{}, process {pid}", table::printable(jvm)),
        _ => "the recording does not say of which JVM it is".to_owned(),
    };
    let events: Vec<String> = info
        .events
        .iter()
        .map(|e| format!("{} {}", grouped(e.count), e.name.trim_start_matches("jdk.")))
        .collect();
    let events = format!(
        "{}; {}",
        events.join(", "),
        counted(info.collections, "collection")
    );
    for line in [&*jvm, &events, &meaning(report)] {
        writeln!(out, "{}", style.dim(table::shortened(line, WIDTH)))?;
    }
    let totals = &report.totals;
    let what = match report.measure {
        "allocated" => "allocated",
        _ => "alive",
    };
    let of = report.focus.as_ref().map_or_else(String::new, |focus| {
        format!(", of what matches {}", table::printable(focus))
    });
    let line = format!(
        "{} {what} in {} from {}{of}",
        amount(totals.estimated_bytes, totals.ci95),
        counted(totals.samples, "sample"),
        counted(totals.stacks, "stack"),
    );
    writeln!(out, "\n{}", table::shortened(&line, WIDTH))?;
    for (number, stack) in (1..).zip(&report.stacks) {
        write!(out, "\n{number:>3}  ")?;
        let figures = self::figures(stack, report);
        stacks::lines(
            (&stack.class, &figures),
            &stack.frames,
            &stack.threads,
            (INDENT, report.verbose),
            style,
            out,
        )?;
    }
    let more = totals.stacks.saturating_sub(report.stacks.len() as u64);
    if more > 0 {
        let rest = format!("and {} more stacks (--top N shows more)", grouped(more));
        writeln!(out, "\n{}", style.dim(rest))?;
    }
    Ok(())
}

/// What the figures are of.
fn meaning(report: &RecordingReport) -> String {
    match (report.measure, report.recording.interval_bytes) {
        ("sampled", _) => {
            "objects that the JVM followed and found alive at last: bytes are of these alone"
                .to_owned()
        }
        ("live", Some(bytes)) => format!(
            "alive when it ended; one sample every {} allocated, except those beyond 1,024",
            Size(bytes)
        ),
        (_, Some(bytes)) => format!(
            "allocated while it was recorded, alive or not; one sample every {} allocated",
            Size(bytes)
        ),
        _ => "allocated while it was recorded, alive or not".to_owned(),
    }
}

fn amount(bytes: u64, ci95: Option<[u64; 2]>) -> String {
    match ci95 {
        Some(ci95) => stacks::interval(bytes, ci95),
        None => Size(bytes).to_string(),
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
        // What leaks was allocated all along, what was loaded at the start was not.
        _ => format!(
            "{figures}, allocated {} to {}",
            since(stack.first_ms),
            since(stack.last_ms)
        ),
    }
}

/// Since the recording began.
fn since(ms: u64) -> String {
    match ms {
        0..100_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => span(ms),
    }
}
