//! Prints the histogram as a table.

use std::collections::HashMap;

use heapdiff_model::histo::HistoReport;
use heapdiff_units::{Size, counted, grouped};

use super::snapshot;
use crate::document::Column::{Figure, Name};
use crate::document::Document;

pub(crate) fn build(report: &HistoReport, doc: &mut Document) {
    let totals = &report.totals;
    snapshot::heading_with(&report.snapshot, totals.shallow_bytes, doc);
    doc.gap();
    let retained = report.snapshot.reachable_bytes.is_some();
    let mut columns = vec![("objects", Figure), ("shallow bytes", Figure)];
    if retained {
        columns.extend([("reachable bytes", Figure), ("retained bytes", Figure)]);
    }
    columns.push(("class", Name));
    // If several classes have the same name, their loaders are shown to distinguish them.
    let mut names: HashMap<&str, u32> = HashMap::new();
    for row in &report.classes {
        *names.entry(&row.class).or_default() += 1;
    }
    let rows = report.classes.iter().map(|row| {
        let mut cells = vec![grouped(row.objects), grouped(row.shallow_bytes)];
        if retained {
            cells.push(row.reachable_shallow_bytes.map(grouped).unwrap_or_default());
            let bytes = row.retained_bytes.map(grouped).unwrap_or_default();
            cells.push(match row.is_lower_bound {
                Some(true) => format!("at least {bytes}"),
                _ => bytes,
            });
        }
        let ambiguous = names.get(&*row.class).is_some_and(|&n| n > 1);
        cells.push(match &row.loader {
            Some(loader) if ambiguous => format!("{} (loader {loader})", row.class),
            _ => row.class.clone(),
        });
        cells
    });
    doc.table(&columns, rows);
    let shown = report.classes.len() as u64;
    if shown < totals.classes {
        let objects: u64 = report.classes.iter().map(|r| r.objects).sum();
        let bytes: u64 = report.classes.iter().map(|r| r.shallow_bytes).sum();
        more_classes_with(
            totals.classes - shown,
            totals.objects - objects,
            totals.shallow_bytes - bytes,
            doc,
        );
    }
}

/// Adds the number of classes that are not listed, with their objects and bytes.
pub(super) fn more_classes_with(classes: u64, objects: u64, bytes: u64, doc: &mut Document) {
    doc.note(format!(
        "and {} with {}, {} (--top N shows more)",
        counted(classes, "more class"),
        counted(objects, "object"),
        Size(bytes)
    ));
}

#[cfg(test)]
mod tests {
    use super::super::tests::{snapshot, text};
    use super::*;
    use crate::report::Report;
    use heapdiff_model::histo::{ClassRow, HistoTotals};

    #[test]
    fn classes_that_are_left_out_are_counted() {
        let of = |classes: u64| {
            text(&Report::Histo(HistoReport {
                schema: HistoReport::SCHEMA,
                snapshot: snapshot(),
                totals: HistoTotals {
                    classes,
                    objects: 7 + 4 * (classes - 1),
                    shallow_bytes: 700 + 512 * (classes - 1),
                },
                classes: vec![ClassRow {
                    class: "com.acme.Entry".to_owned(),
                    objects: 7,
                    shallow_bytes: 700,
                    retained_bytes: Some(900),
                    ..ClassRow::default()
                }],
            }))
        };
        let (all, less, two) = (of(1), of(2), of(3));
        assert!(!all.contains(" more class") && !all.contains("--top N shows more"));
        let one = "and 1 more class with 4 objects, 512 B (--top N shows more)\n";
        assert!(less.ends_with(one), "{less}");
        let both = "and 2 more classes with 8 objects, 1.0 KiB (--top N shows more)\n";
        assert!(two.ends_with(both), "{two}");
    }
}
