//! The biggest objects as a table.

use std::io::{self, Write};

use heapdiff_model::top::TopReport;
use heapdiff_units::{Size, counted, grouped, percent};

use super::snapshot;
use super::table::{Align, Table, printable};
use crate::style::Style;

pub(crate) fn render(report: &TopReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let snapshot = &report.snapshot;
    let reachable = snapshot.reachable_bytes.unwrap_or(0);
    let all = reachable + snapshot.unreachable_bytes.unwrap_or(0);
    snapshot::heading(snapshot, all, style, out)?;
    if let Some(under) = &report.under {
        writeln!(
            out,
            "directly dominated by {} ({}, retained size {}):",
            printable(&under.selector),
            counted(under.objects, "object"),
            Size(under.retained_bytes)
        )?;
    }
    writeln!(out)?;
    if report.objects.is_empty() {
        return writeln!(out, "no objects");
    }
    let mut table = Table::new(&[
        ("retained bytes", Align::Right),
        ("share", Align::Right),
        ("objects", Align::Right),
        ("shallow", Align::Right),
        ("id", Align::Left),
        ("class", Align::Left),
    ]);
    for object in &report.objects {
        table.row(vec![
            grouped(object.retained_bytes),
            percent(object.retained_bytes, reachable),
            grouped(object.retained_objects),
            grouped(object.shallow_bytes),
            object.id.clone(),
            object.class.clone(),
        ]);
    }
    table.print(style, out)
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::report::Report;
    use heapdiff_model::top::Under;

    #[test]
    fn what_objects_are_under_is_told_where_it_was_asked() {
        let of = |under| {
            tests::text(&Report::Top(TopReport {
                schema: TopReport::SCHEMA,
                snapshot: tests::snapshot(),
                under,
                objects: Vec::new(),
            }))
        };
        let under = Under {
            selector: "com.acme.Cache".to_owned(),
            objects: 2,
            retained_bytes: 4096,
        };
        let line = "directly dominated by com.acme.Cache (2 objects, retained size 4.0 KiB):\n";
        assert!(of(Some(under)).contains(line) && !of(None).contains("directly dominated"));
    }
}
