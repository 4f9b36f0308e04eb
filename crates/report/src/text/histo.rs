//! The histogram as a table.

use std::collections::HashMap;
use std::io::{self, Write};

use heapdiff_units::{Size, counted, grouped};

use super::snapshot;
use super::table::{Align, Table};
use crate::model::HistoReport;
use crate::style::Style;

pub(crate) fn render(report: &HistoReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let totals = &report.totals;
    snapshot::heading(&report.snapshot, totals.shallow_bytes, style, out)?;
    writeln!(out)?;
    let retained = report.snapshot.reachable_bytes.is_some();
    let mut columns = vec![("objects", Align::Right), ("shallow bytes", Align::Right)];
    if retained {
        columns.push(("retained bytes", Align::Right));
    }
    columns.push(("class", Align::Left));
    let mut table = Table::new(&columns);
    // Classes of one name are told apart by their loaders.
    let mut names: HashMap<&str, u32> = HashMap::new();
    for row in &report.classes {
        *names.entry(&row.class).or_default() += 1;
    }
    for row in &report.classes {
        let mut cells = vec![grouped(row.objects), grouped(row.shallow_bytes)];
        if retained {
            cells.push(row.retained_bytes.map(grouped).unwrap_or_default());
        }
        let ambiguous = names.get(&*row.class).is_some_and(|&n| n > 1);
        cells.push(match &row.loader {
            Some(loader) if ambiguous => format!("{} (loader {loader})", row.class),
            _ => row.class.clone(),
        });
        table.row(cells);
    }
    table.print(style, out)?;
    let shown = report.classes.len() as u64;
    if shown < totals.classes {
        let objects: u64 = report.classes.iter().map(|r| r.objects).sum();
        let bytes: u64 = report.classes.iter().map(|r| r.shallow_bytes).sum();
        let rest = format!(
            "and {} more classes with {}, {} (--top N shows more)",
            grouped(totals.classes - shown),
            counted(totals.objects - objects, "object"),
            Size(totals.shallow_bytes - bytes)
        );
        writeln!(out, "{}", style.dim(rest))?;
    }
    Ok(())
}
