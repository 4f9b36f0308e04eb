//! Samples of a trace, one by one.

use std::io::{self, Write};

use heapdiff_units::{Size, counted, grouped};

use super::trace::{heading, line, run, stack};
use super::{WIDTH, table};
use crate::model::{SampleReportRow, TraceSamplesReport};
use crate::style::Style;
use crate::times::{span, utc};

/// The most lines of one stack, unless all are asked for.
const FRAMES: usize = 4;

pub(crate) fn render(
    report: &TraceSamplesReport,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let figures = format!("{} UTC, {}", utc(report.at_ms), span(report.at_uptime_ms));
    heading(&report.trace.path, &figures, style, out)?;
    run(&report.run, style, out)?;
    let totals = &report.totals;
    let samples = match report.which {
        "live" => counted(totals.samples, "live sample"),
        "recent" => format!("{} collected last", counted(totals.samples, "sample")),
        _ => format!(
            "{} chosen of all collected",
            counted(totals.samples, "sample")
        ),
    };
    let order = match (report.by, report.which) {
        ("age", "live") => "the oldest first",
        ("age", _) => "those that lived longest first",
        _ => "the largest first",
    };
    let mut only = String::new();
    if let Some(focus) = &report.focus {
        only.push_str(&format!(" that match {}", table::printable(focus)));
    }
    if let Some(thread) = &report.thread {
        only.push_str(&format!(" of threads {}", table::printable(thread)));
    }
    let bytes = Size(totals.bytes);
    let text = format!("{samples}{only}: {bytes}");
    writeln!(out, "{}", table::shortened(&text, WIDTH))?;
    if report.samples.len() > 1 {
        writeln!(out, "{}", style.dim(order))?;
    }
    for (number, sample) in (1..).zip(&report.samples) {
        writeln!(out)?;
        self::sample(number, sample, report.verbose, style, out)?;
    }
    let more = totals.samples.saturating_sub(report.samples.len() as u64);
    if more > 0 {
        let rest = format!("{} more (--top N shows more)", grouped(more));
        writeln!(out, "\n{}", style.dim(rest))?;
    }
    Ok(())
}

fn sample(
    number: u64,
    sample: &SampleReportRow,
    verbose: bool,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let figures = match sample.collected_ms {
        None => format!("{}, {} old", Size(sample.bytes), span(sample.age_ms)),
        Some(_) => format!("{}, lived {}", Size(sample.bytes), span(sample.age_ms)),
    };
    let room = WIDTH.saturating_sub(4 + figures.chars().count() + 2);
    let class = table::printable(&sample.class);
    writeln!(
        out,
        "{number:>3} {}  {figures}",
        style.bold(table::shortened(&class, room))
    )?;
    line("uid", &sample.uid.to_string(), style, out)?;
    let at = |what, ms, uptime| format!("{what} {} UTC, {} into the run", utc(ms), span(uptime));
    let when = at("allocated", sample.allocated_ms, sample.allocated_uptime_ms);
    line("time", &when, style, out)?;
    if let (Some(ms), Some(uptime)) = (sample.collected_ms, sample.collected_uptime_ms) {
        line("", &at("collected", ms, uptime), style, out)?;
    }
    let thread = sample.thread.as_deref().unwrap_or("(not known)");
    line("thread", thread, style, out)?;
    let limit = match verbose {
        true => usize::MAX,
        false => FRAMES,
    };
    stack(&sample.frames, ("from", limit), style, out)
}
