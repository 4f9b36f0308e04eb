//! What an export wrote.

use std::io::{self, Write};

use heapdiff_units::{Size, grouped};

use super::snapshot;
use super::table::{Align, Table};
use crate::report::ExportReport;
use crate::style::Style;

pub(super) fn render(report: &ExportReport, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let info = &report.snapshot;
    let all = info.reachable_bytes.unwrap_or(0) + info.unreachable_bytes.unwrap_or(0);
    snapshot::heading(info, all, style, out)?;
    writeln!(out)?;
    let mut table = Table::new(&[
        ("table", Align::Left),
        ("rows", Align::Right),
        ("size", Align::Right),
        ("file", Align::Left),
    ]);
    for file in &report.files {
        table.row(vec![
            file.table.to_owned(),
            grouped(file.rows),
            Size(file.bytes).to_string(),
            file.path.clone(),
        ]);
    }
    table.print(style, out)
}
