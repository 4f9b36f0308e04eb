//! The biggest objects as a table.

use std::io::{self, Write};

use super::snapshot;
use super::table::{Align, Table};
use crate::report::TopReport;
use crate::size::{grouped, percent};
use crate::style::Style;

pub(crate) fn render(report: &TopReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let snapshot = &report.snapshot;
    let reachable = snapshot.reachable_bytes.unwrap_or(0);
    let all = reachable + snapshot.unreachable_bytes.unwrap_or(0);
    snapshot::heading(snapshot, all, style, out)?;
    writeln!(out)?;
    let mut table = Table::new(&[
        ("retained bytes", Align::Right),
        ("of all", Align::Right),
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
