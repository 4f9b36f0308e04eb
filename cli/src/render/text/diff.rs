//! A diff: the dumps, what grew, and the classes that changed.

use std::io::{self, Write};

use heapdiff_diff::{ClassGrowth, SnapshotInfo, Suspect, Verdict};

use super::WIDTH;
use super::table::{Align, Table, printable, shortened};
use crate::command::diff::growth;
use crate::report::DiffReport;
use crate::size::{Size, counted, grouped, signed, signed_size};
use crate::style::Style;

pub(crate) fn render(report: &DiffReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let DiffReport {
        diff: report,
        more_suspects,
        more_classes,
        verbose,
    } = report;
    dumps(&report.snapshots, style, out)?;
    let delta = &report.delta;
    if (delta.objects, delta.shallow_bytes) == (0, 0) {
        writeln!(out, "the reachable heap is as large as it was")?;
    } else {
        let (objects, bytes) = (signed(delta.objects), signed_size(delta.shallow_bytes));
        writeln!(
            out,
            "the reachable heap changed by {objects} objects, {bytes}"
        )?;
    }
    writeln!(out)?;
    if report.suspects.is_empty() && more_suspects.is_empty() {
        writeln!(out, "no growth worth a look")?;
    } else {
        writeln!(out, "{}", style.bold("What grew"))?;
        for suspect in &report.suspects {
            writeln!(out)?;
            self::suspect(suspect, *verbose, style, out)?;
        }
        if !more_suspects.is_empty() {
            let rest = "and more that grew less (--top N shows more)";
            writeln!(out, "\n{}", style.dim(rest))?;
        }
    }
    classes(&report.classes, *more_classes, style, out)
}

fn dumps(snapshots: &[SnapshotInfo], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&[
        ("objects", Align::Right),
        ("reachable", Align::Right),
        ("garbage", Align::Right),
        ("taken", Align::Right),
        ("dump", Align::Left),
    ]);
    let first = snapshots.first().map_or(0, |s| s.taken_ms);
    for (i, snapshot) in snapshots.iter().enumerate() {
        table.row(vec![
            grouped(snapshot.objects),
            Size(snapshot.reachable_bytes).to_string(),
            Size(snapshot.unreachable_bytes).to_string(),
            if i == 0 {
                String::new()
            } else {
                later(snapshot.taken_ms.wrapping_sub(first) as i64)
            },
            snapshot.path.clone(),
        ]);
    }
    table.print(style, out)?;
    if let Some(last) = snapshots.last() {
        let layout = &last.layout;
        let line = super::snapshot::layout_line(
            last.jvm.as_deref(),
            layout.source,
            [layout.reference, layout.header, layout.align],
        );
        writeln!(out, "{}", style.dim(line))?;
    }
    Ok(())
}

/// A time after the first dump: `+12.3 s`, `+5 min`, `-3 h`.
fn later(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let ms = ms.unsigned_abs();
    match ms {
        0..60_000 => format!("{sign}{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..7_200_000 => format!("{sign}{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{sign}{} h", ms / 3_600_000),
        _ => format!("{sign}{} d", ms / 86_400_000),
    }
}

fn suspect(suspect: &Suspect, verbose: bool, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let verdict = match suspect.verdict {
        Verdict::Leak => "leak",
        Verdict::Growth => "growth",
        Verdict::Cache => "cache",
        Verdict::Warmup => "warm-up",
    };
    let verdict = match suspect.verdict {
        Verdict::Leak | Verdict::Growth => style.red(verdict),
        _ => style.yellow(verdict),
    };
    let grown = signed_size(suspect.growth.retained_bytes);
    let holder = printable(&suspect.holder);
    let room = WIDTH.saturating_sub(4 + 8 + grown.len() + 2);
    let holder = shortened(&holder, room);
    writeln!(
        out,
        "{:>3} {verdict:<7} {}  {grown}",
        suspect.rank,
        style.bold(holder)
    )?;
    let objects: Vec<String> = suspect.objects.iter().map(|&n| grouped(n)).collect();
    let retained: Vec<String> = suspect
        .retained_bytes
        .iter()
        .map(|&n| Size(n).to_string())
        .collect();
    line("class", &suspect.class, style, out)?;
    line("objects", &objects.join(" -> "), style, out)?;
    line("retained", &retained.join(" -> "), style, out)?;
    if !suspect.off_heap_bytes.is_empty() {
        let outside = suspect.off_heap_bytes.iter();
        let outside: Vec<String> = outside.map(|&n| Size(n).to_string()).collect();
        line("off heap", &outside.join(" -> "), style, out)?;
    }
    line("root", &suspect.root, style, out)?;
    for (i, step) in suspect.path.iter().enumerate() {
        line(if i == 0 { "path" } else { "" }, step, style, out)?;
    }
    for (i, reason) in suspect.reasons.iter().enumerate() {
        for (j, part) in wrapped(reason, WIDTH - INDENT).iter().enumerate() {
            line(if i + j == 0 { "why" } else { "" }, part, style, out)?;
        }
    }
    allocated(suspect, verbose, style, out)
}

/// Stacks shown of a suspect, unless all are asked for.
const STACKS: usize = 3;

/// The stacks that allocated what grew, and how much of the growth they explain.
fn allocated(
    suspect: &Suspect,
    verbose: bool,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let coverage = &suspect.coverage;
    let limit = match verbose {
        true => usize::MAX,
        false => STACKS,
    };
    for stack in suspect.stacks.iter().take(limit) {
        write!(out, "    {:<8} ", style.dim("from"))?;
        super::stacks::stack(stack, (INDENT, verbose), style, out)?;
    }
    if suspect.stacks.is_empty() {
        return Ok(());
    }
    let mut text = format!(
        "{} of {} growth, in {}",
        Size(coverage.sampled_bytes),
        Size(coverage.growth_bytes),
        counted(coverage.samples, "sample"),
    );
    let more = suspect.stacks.len().saturating_sub(limit);
    if more > 0 {
        text += &format!("; {} more (-v shows them)", counted(more as u64, "stack"));
    }
    line("sampled", &text, style, out)
}

const INDENT: usize = 13;

fn line(label: &str, text: &str, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let text = printable(text);
    let text = shortened(&text, WIDTH - INDENT);
    writeln!(out, "    {:<8} {text}", style.dim(label))
}

/// Words on lines of at most `room`.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |l| l.chars().count());
        if used > 0 && used + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

fn classes(
    classes: &[ClassGrowth],
    more: usize,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(
        out,
        "{}",
        style.bold("Classes, by growth of their own size")
    )?;
    writeln!(out)?;
    let mut table = Table::new(&[
        ("objects", Align::Right),
        ("change", Align::Right),
        ("shallow bytes", Align::Right),
        ("retained bytes", Align::Right),
        ("class", Align::Left),
    ]);
    for class in classes {
        table.row(vec![
            grouped(class.objects.last().copied().unwrap_or(0)),
            signed(growth(&class.objects)),
            signed(growth(&class.shallow_bytes)),
            signed(growth(&class.retained_bytes)),
            class.class.clone(),
        ]);
    }
    table.print(style, out)?;
    if more > 0 {
        let rest = format!(
            "and {} more classes that changed (--top N shows more)",
            grouped(more as u64)
        );
        writeln!(out, "{}", style.dim(rest))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(later(12_345), "+12.3 s");
        assert_eq!(later(-61_000), "-1 min");
        assert_eq!(later(86_400_000 * 3), "+3 d");
    }

    #[test]
    fn reasons_are_wrapped() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
