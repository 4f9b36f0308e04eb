//! Prints the names of the files that an export wrote.

use heapdiff_model::export::ExportReport;
use heapdiff_units::{Size, grouped};

use super::snapshot;
use crate::document::Column::{Figure, Name};
use crate::document::Document;

pub(super) fn build(report: &ExportReport, doc: &mut Document) {
    snapshot::heading(&report.snapshot, doc);
    doc.gap();
    let columns = [
        ("table", Name),
        ("rows", Figure),
        ("size", Figure),
        ("file", Name),
    ];
    let rows = report.files.iter().map(|file| {
        vec![
            file.table.to_owned(),
            grouped(file.rows),
            Size(file.bytes).to_string(),
            file.path.clone(),
        ]
    });
    doc.table(&columns, rows);
}
