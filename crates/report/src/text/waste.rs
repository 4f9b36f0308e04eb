//! Waste: a table of kinds, then each kind with examples and holders.

use std::io::{self, Write};

use heapdiff_diff::{WasteExample, WasteRow};
use heapdiff_units::{Size, counted, grouped, percent};

use super::snapshot;
use super::table::{Align, Table, printable, shortened};
use crate::model::WasteReport;
use crate::style::Style;

/// The most columns of a string's text.
const TEXT: usize = 48;

pub(crate) fn render(report: &WasteReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    for snapshot in &report.snapshots {
        let (reachable, garbage) = (snapshot.reachable_bytes, snapshot.unreachable_bytes);
        let all = reachable.unwrap_or(0) + garbage.unwrap_or(0);
        snapshot::heading(snapshot, all, style, out)?;
    }
    let of = |dump: usize| report.snapshots[dump].reachable_bytes.unwrap_or(0);
    let last = report.snapshots.len().saturating_sub(1);
    let all = &report.waste.bytes_to_win;
    let grown = if last > 0 {
        change(all) + " since the first dump, "
    } else {
        String::new()
    };
    writeln!(
        out,
        "\n{} could be saved: {grown}{} of the reachable heap\n",
        style.bold(Size(all[last])),
        percent(all[last], of(last))
    )?;
    kinds(report, of(last), style, out)?;
    let all = all[last];
    let (told, little): (Vec<&WasteRow>, Vec<&WasteRow>) = report
        .waste
        .kinds
        .iter()
        .partition(|row| is_worth_a_list(row, all));
    for row in told {
        kind(row, last > 0, style, out)?;
    }
    if little
        .iter()
        .any(|row| row.objects.iter().any(|&objects| objects > 0))
    {
        let rest = "kinds below 1% of this have no lists (--format json has them)";
        writeln!(out, "\n{}", style.dim(rest))?;
    }
    Ok(())
}

/// Whether a kind has a hundredth of all, or changed by that much.
fn is_worth_a_list(row: &WasteRow, all: u64) -> bool {
    let first = row.bytes_to_win.first().copied().unwrap_or(0);
    let last = last(&row.bytes_to_win);
    let most = last.max(last.abs_diff(first));
    most > 0 && most.saturating_mul(100) >= all
}

/// Last less first, with its sign.
fn change(figures: &[u64]) -> String {
    let (first, last) = (figures.first().copied(), figures.last().copied());
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
    let sign = match last.cmp(&first) {
        std::cmp::Ordering::Less => "-",
        std::cmp::Ordering::Equal => "",
        std::cmp::Ordering::Greater => "+",
    };
    format!("{sign}{}", grouped(last.abs_diff(first)))
}

fn title(kind: &str) -> &'static str {
    match kind {
        "duplicate_strings" => "duplicate strings",
        "duplicate_arrays" => "duplicate arrays of primitives",
        "duplicate_boxes" => "duplicate boxed values",
        "boxed_values" => "boxed values in arrays and collections",
        "empty_collections" => "empty collections",
        "sparse_collections" => "collections at most half full",
        "zero_arrays" => "arrays of nothing but zero or null",
        _ => "arrays whose second half is zero or null",
    }
}

fn last(figures: &[u64]) -> u64 {
    figures.last().copied().unwrap_or(0)
}

/// Columns of figures, where there are several dumps with their change.
fn headings(several: bool, middle: &[(&'static str, Align)]) -> Vec<(&'static str, Align)> {
    let mut columns = vec![("bytes to win", Align::Right)];
    columns.extend(several.then_some(("change", Align::Right)));
    columns.extend_from_slice(middle);
    columns
}

fn figures(several: bool, bytes: &[u64]) -> Vec<String> {
    let mut cells = vec![grouped(last(bytes))];
    cells.extend(several.then(|| change(bytes)));
    cells
}

fn kinds(report: &WasteReport, all: u64, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let several = report.snapshots.len() > 1;
    let mut table = Table::new(&headings(
        several,
        &[
            ("of all", Align::Right),
            ("objects", Align::Right),
            ("their bytes", Align::Right),
            ("what", Align::Left),
        ],
    ));
    for row in &report.waste.kinds {
        let mut cells = figures(several, &row.bytes_to_win);
        cells.extend([
            percent(last(&row.bytes_to_win), all),
            grouped(last(&row.objects)),
            grouped(last(&row.shallow_bytes)),
            title(row.kind).to_owned(),
        ]);
        table.row(cells);
    }
    table.print(style, out)
}

fn kind(row: &WasteRow, several: bool, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    let groups = last(&row.groups);
    let of = match row.kind {
        "duplicate_strings" => counted(groups, "text"),
        "duplicate_arrays" => counted(groups, "content"),
        "duplicate_boxes" => counted(groups, "value"),
        _ if groups == 1 => "1 class".to_owned(),
        _ => format!("{} classes", grouped(groups)),
    };
    let mut name = title(row.kind).to_owned();
    name[..1].make_ascii_uppercase();
    let count = counted(last(&row.objects), "object");
    writeln!(out, "{}: {count} of {of}", style.bold(name))?;
    if !row.examples.is_empty() {
        writeln!(out)?;
        let mut table = Table::new(&[
            ("bytes to win", Align::Right),
            ("objects", Align::Right),
            ("their bytes", Align::Right),
            ("example", Align::Left),
        ]);
        for example in &row.examples {
            table.row(vec![
                grouped(example.bytes_to_win),
                grouped(example.objects),
                grouped(example.shallow_bytes),
                told(example),
            ]);
        }
        table.print(style, out)?;
        let more = groups.saturating_sub(row.examples.len() as u64);
        rest(more, style, out)?;
    }
    if row.holders.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(&headings(
        several,
        &[("objects", Align::Right), ("held by", Align::Left)],
    ));
    for holder in &row.holders {
        let mut cells = figures(several, &holder.bytes_to_win);
        cells.extend([grouped(last(&holder.objects)), holder.holder.clone()]);
        table.row(cells);
    }
    table.print(style, out)?;
    rest(row.more_holders, style, out)
}

fn rest(more: u64, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if more > 0 {
        let rest = format!("and {} more (--top N shows more)", grouped(more));
        writeln!(out, "{}", style.dim(rest))?;
    }
    Ok(())
}

/// An example in a few words.
fn told(example: &WasteExample) -> String {
    let WasteExample { id, class, .. } = example;
    match (&example.text, example.length) {
        (Some(text), _) if class == "java.lang.String" => {
            let text = printable(text);
            format!("\"{}\" @ {id}", shortened(&text, TEXT))
        }
        (Some(text), _) => format!("{class} {text} @ {id}"),
        (None, Some(length)) => {
            let element = class.strip_suffix("[]").unwrap_or(class);
            format!("{element}[{length}] @ {id}")
        }
        (None, None) => format!("{class}, such as {id}"),
    }
}
