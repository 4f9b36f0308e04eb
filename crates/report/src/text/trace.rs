//! What a trace shows: its runs, and what leaks.

use std::io::{self, Write};

use heapdiff_diff::{Shown, folded};
use heapdiff_units::{Size, counted, grouped, percent, signed, signed_size};

use super::WIDTH;
use super::stacks::interval;
use super::table::{printable, shortened};
use crate::model::{CandidateRow, NoteRow, RunInfo, SlopeRow, TraceInfoReport, TraceTopReport};
use crate::style::Style;
use crate::times::{span, utc};

const INDENT: usize = 13;
/// The most frames that are shown of one stack, unless all are asked for.
const FRAMES: usize = 8;
/// The most stacks that are shown of a candidate, and frames of each.
const PATHS: usize = 3;
const CALLERS: usize = 4;
/// The most notes that are shown of a run.
const NOTES: usize = 5;

pub(crate) fn info(report: &TraceInfoReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let figures = format!(
        "{}, {}, {}",
        Size(report.trace.bytes),
        counted(report.runs.len() as u64, "run"),
        counted(report.sites, "allocation site")
    );
    heading(&report.trace.path, &figures, style, out)?;
    for row in &report.runs {
        writeln!(out)?;
        self::run(&row.run, style, out)?;
        let end = match row.run.ended_ms {
            Some(ms) => format!("ended {}", utc(ms)),
            None => "running, or killed".to_owned(),
        };
        let began = utc(row.run.started_ms);
        line(
            "time",
            &format!("{began} UTC, {}, {end}", span(row.uptime_ms)),
            style,
            out,
        )?;
        let sampled = match (&*row.run.strategy, row.run.interval_bytes) {
            ("bytes", 0) => "every allocation is counted".to_owned(),
            ("bytes", bytes) => format!("one sample every {} allocated", Size(bytes)),
            ("recording", _) => "samples of a flight recording".to_owned(),
            (strategy, _) => format!("samples by {strategy}"),
        };
        let ticks = counted(row.ticks, "tick");
        let samples = counted(row.samples, "sample");
        line(
            "figures",
            &format!("{ticks}, {samples}, {sampled}"),
            style,
            out,
        )?;
        if row.lost_samples > 0 {
            let text = format!(
                "{} of {}",
                counted(row.lost_samples, "sample"),
                Size(row.lost_bytes)
            );
            line("lost", &text, style, out)?;
        }
        let all = counted(row.collections.all, "collection");
        line(
            "heap",
            &format!("{all}, {} of them major", grouped(row.collections.major)),
            style,
            out,
        )?;
        if !row.run.command.is_empty() {
            line("command", &row.run.command, style, out)?;
        }
        for (i, dump) in row.dumps.iter().enumerate() {
            let path = dump.path.as_deref().unwrap_or("(path not known)");
            let label = if i == 0 { "dumps" } else { "" };
            line(label, &format!("{} {path}", utc(dump.time_ms)), style, out)?;
        }
        notes(&row.notes, style, out)?;
    }
    Ok(())
}

pub(crate) fn top(report: &TraceTopReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let window = &report.window;
    let figures = format!(
        "{} UTC, {}",
        utc(window.from_ms),
        span(window.to_uptime_ms.saturating_sub(window.from_uptime_ms)),
    );
    heading(&report.trace.path, &figures, style, out)?;
    run(&report.run, style, out)?;
    let totals = &report.totals;
    let mut text = format!(
        "{} alive in {}; {} allocated",
        interval(totals.live_bytes, totals.ci95),
        counted(totals.live_samples, "sample"),
        Size(totals.allocated_bytes),
    );
    if report.basis != "survivors" {
        text += &format!(", {} collected", Size(totals.collected_bytes));
    }
    writeln!(out, "{}", shortened(&text, WIDTH))?;
    let all = report.collections.all;
    let text = match report.basis {
        "major" => format!(
            "compared: what is alive after each of {} major collections",
            report.collections.major
        ),
        "collections" => format!(
            "compared: the least that is alive between {} ({} major)",
            counted(all, "collection"),
            grouped(report.collections.major)
        ),
        "survivors" if totals.live_samples == 0 => {
            "the recording tells what was allocated, and nothing of what is alive".to_owned()
        }
        "survivors" => {
            "what a recording found alive at last, by when it was allocated: a cache may seem to grow".to_owned()
        }
        _ => "nothing was collected: what looks alive may be garbage".to_owned(),
    };
    writeln!(out, "{}", style.dim(text))?;
    if let Some(focus) = &report.focus {
        let text = format!("only stacks with a frame that matches {}", printable(focus));
        writeln!(out, "{}", style.dim(shortened(&text, WIDTH)))?;
    }
    if totals.lost_samples > 0 {
        let lost = counted(totals.lost_samples, "sample");
        let text = format!(
            "{lost} of {} lost: figures are too low by them",
            Size(totals.lost_bytes)
        );
        writeln!(out, "{}", style.yellow(text))?;
    }
    let shown = report
        .candidates
        .iter()
        .filter(|c| report.verbose || grows(c));
    let mut count = 0;
    for candidate in shown {
        count += 1;
        writeln!(out)?;
        self::candidate(candidate, report, style, out)?;
    }
    writeln!(out)?;
    let of = match report.by {
        "frame" => "allocating frame",
        "site" => "allocation site",
        _ => "class",
    };
    let of = |number: u64| match (report.by, number) {
        ("class", 2..) => format!("{} classes", grouped(number)),
        _ => counted(number, of),
    };
    let rest = totals.growing.saturating_sub(count);
    let steady = totals.candidates - totals.growing;
    let text = match (count, rest) {
        (0, 0) if report.basis == "survivors" => {
            format!("nothing is seen to grow: {}", of(totals.candidates))
        }
        (0, 0) => format!("nothing grows: {}", of(totals.candidates)),
        _ if report.verbose => format!("{} in all", of(totals.candidates)),
        (_, 0) => format!("{} besides do not grow (-v shows them)", of(steady)),
        _ => format!(
            "{} more grow (--top N shows more), {} do not",
            grouped(rest),
            of(steady)
        ),
    };
    writeln!(out, "{}", style.dim(text))
}

fn grows(candidate: &CandidateRow) -> bool {
    matches!(candidate.verdict, "leak" | "growth" | "unclear")
}

fn candidate(
    candidate: &CandidateRow,
    report: &TraceTopReport,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let verdict = match candidate.verdict {
        "leak" => style.red(candidate.verdict),
        _ => style.yellow(candidate.verdict),
    };
    let slope = hourly(&candidate.slope);
    let room = WIDTH.saturating_sub(4 + 8 + slope.chars().count() + 2);
    let class = printable(&candidate.class);
    writeln!(
        out,
        "{:>3} {verdict:<7} {}  {slope}",
        candidate.rank,
        style.bold(shortened(&class, room))
    )?;
    let alive = format!(
        "{} in {}, {}",
        interval(candidate.live_bytes, candidate.ci95),
        counted(candidate.live_objects, "object"),
        counted(candidate.live_samples, "sample")
    );
    line("alive", &alive, style, out)?;
    let mut grew = format!(
        "{}, {} objects: {}",
        signed_size(candidate.growth.bytes),
        signed(candidate.growth.objects),
        candidate.trend,
    );
    if let Some(permille) = candidate.survival_permille {
        let (whole, tenth) = (permille / 10, permille % 10);
        grew += &format!("; {whole}.{tenth} % of what it allocated is left");
    }
    line("grew", &grew, style, out)?;
    if candidate.grew_across_major == Some(false) && grows(candidate) {
        line(
            "",
            "not from the first major collection to the last",
            style,
            out,
        )?;
    }
    if let (Some(ms), Some(uptime), Some(within)) = (
        candidate.began_ms,
        candidate.began_uptime_ms,
        candidate.began_within,
    ) {
        line("since", &since(ms, uptime, within), style, out)?;
    }
    line(
        "history",
        &sparkline(&candidate.series.live_bytes),
        style,
        out,
    )?;
    frames(candidate, report, style, out)
}

/// When growth began.
pub(super) fn since(ms: u64, uptime: u64, within: bool) -> String {
    match within {
        true => format!("{} UTC, {} into the run", utc(ms), span(uptime)),
        false => "the first tick on, perhaps since before".to_owned(),
    }
}

fn frames(
    candidate: &CandidateRow,
    report: &TraceTopReport,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let limit = match report.verbose {
        true => usize::MAX,
        false => FRAMES,
    };
    if candidate.paths.is_empty() {
        return stack(&candidate.frames, ("from", limit), style, out);
    }
    let stacks = counted(candidate.stacks, "stack");
    match &candidate.frame {
        Some(frame) => line("at", frame, style, out)?,
        None => line(
            "from",
            &format!("{stacks}; those with most alive:"),
            style,
            out,
        )?,
    }
    if candidate.frame.is_some() {
        line(
            "",
            &format!("on {stacks}; those with most alive:"),
            style,
            out,
        )?;
    }
    let (shown, callers_shown) = match report.verbose {
        true => (usize::MAX, usize::MAX),
        false => (PATHS, CALLERS),
    };
    for path in candidate.paths.iter().take(shown) {
        // What all of them have in common is said above.
        let at = candidate.frame.as_ref();
        let at = at.and_then(|at| path.frames.iter().position(|f| f == at));
        let callers = at.map_or(&path.frames[..], |at| &path.frames[at + 1..]);
        let share = percent(path.live_bytes, candidate.live_bytes);
        stack(callers, (&share, callers_shown), style, out)?;
    }
    Ok(())
}

/// A stack from its leaf on, its first line with a label; where not all is asked for, frames of the runtime are
/// folded and so many lines shown.
pub(super) fn stack(
    frames: &[String],
    (label, limit): (&str, usize),
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let shown = match limit {
        usize::MAX => frames.iter().map(|f| Shown::Frame(f)).collect(),
        _ => folded(frames),
    };
    if shown.is_empty() {
        return line(label, "(no Java frame)", style, out);
    }
    for (i, part) in shown.iter().take(limit).enumerate() {
        let label = if i == 0 { label } else { "" };
        match part {
            Shown::Frame(frame) => line(label, frame, style, out)?,
            Shown::Folded(1) => line(label, "… a frame of the runtime", style, out)?,
            Shown::Folded(count) => line(
                label,
                &format!("… {count} frames of the runtime"),
                style,
                out,
            )?,
        }
    }
    let more = shown.len().saturating_sub(limit);
    match more {
        0 => Ok(()),
        _ => line("", &format!("… and {more} more (-v shows all)"), style, out),
    }
}

/// `+1.2 GiB/h (1.1 GiB to 1.3 GiB)`.
pub(super) fn hourly(slope: &SlopeRow) -> String {
    let size = |bytes: i64| signed_size(bytes);
    let interval = match slope.ci95 {
        Some([low, high]) if low == high => String::new(),
        Some([low, high]) => format!(" ({} to {})", size(low), size(high)),
        None => " (too few collections for an interval)".to_owned(),
    };
    format!("{}/h{interval}", size(slope.bytes_per_hour))
}

/// A line of blocks, as high as the figures.
pub(super) fn sparkline(figures: &[u64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = figures.iter().copied().max().unwrap_or(0).max(1);
    let block = |&figure: &u64| {
        let at = u128::from(figure) * 7 / u128::from(most);
        BLOCKS[usize::try_from(at).unwrap_or(7).min(7)]
    };
    figures.iter().map(block).collect()
}

pub(super) fn heading(
    path: &str,
    figures: &str,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let room = WIDTH.saturating_sub(figures.chars().count() + 2).max(20);
    let path = printable(path);
    writeln!(out, "{}  {figures}", style.bold(shortened(&path, room)))
}

pub(super) fn run(run: &RunInfo, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let service = run
        .service
        .as_ref()
        .map_or_else(String::new, |s| format!("{s}, "));
    // Recordings do not tell it.
    let host = match &*run.host {
        "" => String::new(),
        host => format!(" on {host}"),
    };
    let text = format!(
        "run {}: {service}process {}{host}, {}",
        run.number, run.pid, run.jvm
    );
    let text = printable(&text);
    writeln!(out, "{}", style.dim(shortened(&text, WIDTH)))
}

fn notes(notes: &[NoteRow], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let first = notes.len().saturating_sub(NOTES);
    for (i, note) in notes[first..].iter().enumerate() {
        let label = if i == 0 { "notes" } else { "" };
        line(
            label,
            &format!("{} {}", utc(note.time_ms), note.text),
            style,
            out,
        )?;
    }
    Ok(())
}

pub(super) fn line(label: &str, text: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let text = printable(text);
    let text = shortened(&text, WIDTH - INDENT);
    writeln!(out, "    {:<8} {text}", style.dim(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_blocks() {
        assert_eq!(sparkline(&[0, 1, 4, 7]), "▁▂▅█");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[u64::MAX, 0]), "█▁");
    }
}
