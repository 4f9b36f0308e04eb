//! One dump: what keeps most of its heap.

use std::io::{self, Write};

use heapdiff_diff::sentence::{Verdict, Waste, Whole};
use heapdiff_diff::{HeapClass, HeapReport, HeapSuspect, HeapThread, HeapWaste};
use heapdiff_units::{Size, grouped};

use super::WIDTH;
use super::diff::{STACKS, Sampled, line, next, reasons, sampled, warnings, wrapped};
use super::path::HolderPath;
use super::snapshot::heading;
use super::table::{Align, Table, printable};
use crate::style::Style;
use crate::view::{HeapView, Viewed};
use crate::{coverage, kept};

/// Frames of the thread that died that are shown, unless all are asked for.
const FRAMES: usize = 8;
/// Threads, and kinds of waste, that are shown.
const ROWS: usize = 5;

pub(crate) fn render(
    report: &Viewed<HeapReport, HeapView>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let heap = &report.data;
    let info = &heap.snapshot;
    let all = info.reachable_bytes.saturating_add(info.unreachable_bytes);
    heading(&info.into(), all, style, out)?;
    warnings(heap.warnings.iter().map(String::as_str), style, out)?;
    if let Some(died) = &heap.died {
        writeln!(out)?;
        let said = kept::died(died);
        for part in wrapped(&printable(&said), WIDTH) {
            writeln!(out, "{}", style.red(part))?;
        }
        let limit = if report.view.verbose {
            usize::MAX
        } else {
            FRAMES
        };
        for frame in died.frames.iter().take(limit) {
            writeln!(out, "    at {}", style.fitted(&printable(frame), WIDTH - 7))?;
        }
        if let Some(more) = died.frames.len().checked_sub(limit).filter(|&n| n > 0) {
            let more = format!("    … and {} more (-v shows all)", grouped(more as u64));
            writeln!(out, "{}", style.dim(more))?;
        }
    }
    writeln!(out)?;
    writeln!(out, "{}", style.bold("What holds most"))?;
    writeln!(out)?;
    for part in wrapped(&kept::sentence(heap, report.more.left_out), WIDTH) {
        writeln!(out, "{part}")?;
    }
    if !heap.suspects.is_empty() {
        writeln!(out, "{}", Verdict::NoLeak)?;
    }
    for suspect in &heap.suspects {
        writeln!(out)?;
        self::suspect(suspect, report, style, out)?;
    }
    if report.more.more_suspects && !heap.suspects.is_empty() {
        let rest = "and more places, which retain less (--top N shows more)";
        writeln!(out, "\n{}", style.dim(rest))?;
    }
    threads(&heap.threads, report.view.verbose, style, out)?;
    waste(&heap.waste, style, out)?;
    classes(&heap.classes, report.more.more_classes, style, out)
}

fn suspect(
    suspect: &HeapSuspect,
    report: &Viewed<HeapReport, HeapView>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let figures = kept::figures(suspect, &report.data);
    let holder = printable(&suspect.holder);
    let room = WIDTH.saturating_sub(4 + figures.chars().count() + 2);
    let holder = style.fitted(&holder, room);
    writeln!(out, "{:>3} {}  {figures}", suspect.rank, style.bold(holder))?;
    line("class", &suspect.class, style, out)?;
    line("objects", &grouped(suspect.objects), style, out)?;
    let path = HolderPath {
        root: &suspect.root,
        steps: &suspect.path,
        holder: &suspect.holder,
    };
    path.write(report.view.verbose, style, out)?;
    let about: Vec<&str> = suspect.reasons.iter().map(String::as_str).collect();
    reasons("about", &about, style, out)?;
    if !suspect.stacks.is_empty() {
        self::sampled_stacks(suspect, report, style, out)?;
    }
    next(suspect.likely_fix.as_deref(), &suspect.next, style, out)
}

fn sampled_stacks(
    suspect: &HeapSuspect,
    report: &Viewed<HeapReport, HeapView>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let coverage = coverage::of_heap(suspect);
    let stacks = Sampled {
        stacks: &suspect.stacks,
        class: &suspect.class,
        through: suspect.allocated_through.as_ref(),
        coverage: &coverage,
        whole: Whole::Retained,
    };
    let limit = if report.view.verbose {
        usize::MAX
    } else {
        STACKS
    };
    sampled(&stacks, (limit, report.view.verbose), style, out)
}

fn threads(
    threads: &[HeapThread],
    verbose: bool,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if threads.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{}\n",
        style.bold("Threads with the largest retained size")
    )?;
    let mut table = Table::new(&[
        ("retained", Align::Right),
        ("thread", Align::Left),
        ("largest local variable", Align::Left),
    ]);
    let limit = if verbose { usize::MAX } else { ROWS };
    for thread in threads.iter().take(limit) {
        let name = thread.name.as_deref().unwrap_or("(unnamed)");
        table.row(vec![
            Size(thread.retained_bytes).to_string(),
            style.fitted(&printable(name), 30).into_owned(),
            kept::local(thread),
        ]);
    }
    table.print(style, out)
}

fn waste(waste: &[HeapWaste], style: Style, out: &mut dyn Write) -> io::Result<()> {
    if waste.is_empty() {
        return Ok(());
    }
    let title = "Wasted memory";
    writeln!(out, "\n{}\n", style.bold(title))?;
    let mut table = Table::new(&[
        ("savings", Align::Right),
        ("objects", Align::Right),
        ("kind", Align::Left),
        ("mostly held by", Align::Left),
    ]);
    for row in waste.iter().take(ROWS) {
        table.row(vec![
            Size(row.bytes_to_win).to_string(),
            grouped(row.objects),
            Waste::title(&row.kind),
            row.holder.clone().unwrap_or_default(),
        ]);
    }
    table.print(style, out)
}

fn classes(
    classes: &[HeapClass],
    more: usize,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}\n", style.bold("Classes, by shallow size"))?;
    let mut table = Table::new(&[
        ("objects", Align::Right),
        ("shallow bytes", Align::Right),
        ("retained bytes", Align::Right),
        ("class", Align::Left),
    ]);
    for class in classes {
        table.row(vec![
            grouped(class.objects),
            grouped(class.shallow_bytes),
            grouped(class.retained_bytes),
            class.class.clone(),
        ]);
    }
    table.print(style, out)?;
    let all = (classes.len() + more) as u64;
    super::sites::more_classes(all, classes.len(), style, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn report(suspects: u32) -> Viewed<HeapReport, HeapView> {
        crate::tests::heap_report(synthetic::heap(suspects))
    }

    fn told(report: &Viewed<HeapReport, HeapView>) -> String {
        let mut out = Vec::new();
        render(report, Style::plain().within(WIDTH), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_fit_whatever_names_there_are() {
        let mut report = report(2);
        let long = "deep.".repeat(60);
        report.data.suspects[0].class = long.clone();
        report.data.classes[0].class = long;
        let text = told(&report);
        let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
        assert!(widest.chars().count() <= WIDTH, "{widest}");
        assert!(!text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn large_is_not_called_leaking() {
        let no_leak =
            "a large object need not be a leak: two dumps show what grows (heapdiff BEFORE AFTER)";
        assert!(told(&report(1)).contains(no_leak));
        assert!(!told(&report(0)).contains("a large object need not be a leak"));
    }

    #[test]
    fn parts_are_there_where_the_dump_has_them() {
        let parts = [
            "Threads with the largest retained size",
            "Wasted memory",
            "Classes, by shallow size",
            "an allocation failed in thread",
            "… and 4 more (-v shows all)",
        ];
        let mut report = report(1);
        let text = told(&report);
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        report.view.verbose = true;
        assert!(!told(&report).contains(parts[4]));
        report.data.threads.clear();
        report.data.waste.clear();
        report.data.classes.clear();
        report.data.died = None;
        let text = told(&report);
        assert!(!parts.iter().any(|part| text.contains(part)), "{text}");
    }

    #[test]
    fn what_is_left_out_is_told() {
        let mut report = report(1);
        let all = told(&report);
        report.more.more_suspects = true;
        report.more.more_classes = 7;
        let text = told(&report);
        for part in [
            "and more places, which retain less (--top N shows more)",
            "and 7 more classes (--top N shows more)",
        ] {
            assert!(text.contains(part) && !all.contains(part), "{text}");
        }
    }
}
