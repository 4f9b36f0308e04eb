//! Prints strings and arrays that contain a text or bytes.

use heapdiff_diff::STDIN;
use heapdiff_model::find::{FindReport, FoundHolder, FoundObject};
use heapdiff_units::{Size, grouped};

use super::snapshot;
use crate::document::Column::{Figure, Name};
use crate::document::{Column, Document};
use crate::printable::printable;

/// The text for a referrer without a field name.
const NOTHING: &str = "(no field)";
/// Width of a field, in columns.
const FIELD: usize = 42;
/// Width of the content, in columns.
const CONTENT: usize = 32;

pub(crate) fn build(report: &FindReport, doc: &mut Document) {
    snapshot::heading(&report.snapshot, doc);
    let pattern = match &*report.pattern {
        other if other.starts_with('/') || other.starts_with("hex:") => printable(other).into(),
        text => format!("{text:?}"),
    };
    if report.objects == 0 {
        return doc.line(format!("no string and no array contains {pattern}"));
    }
    let size = Size(report.shallow_bytes);
    doc.line(match report.objects {
        1 => format!("1 string or array contains {pattern} (shallow size {size})"),
        objects => format!(
            "{} strings and arrays contain {pattern} (shallow size {size})",
            grouped(objects)
        ),
    });
    if report.unreachable > 0 {
        let count = grouped(report.unreachable);
        doc.line(format!("unreachable objects among them: {count}"));
    }
    doc.gap();
    let columns = [("objects", Figure), ("shallow", Figure), ("held by", Name)];
    let row = |row: &FoundHolder| {
        let field = row.field.clone().unwrap_or_else(|| NOTHING.to_owned());
        vec![grouped(row.objects), grouped(row.shallow_bytes), field]
    };
    doc.table(&columns, report.holders.iter().map(row));
    let more = report.holder_count - report.holders.len() as u64;
    doc.add_unlisted_count(more, "more field");
    doc.gap();
    let columns = [
        ("id", Name),
        ("class", Name),
        ("held by", Column::Cut(FIELD)),
        ("content", Column::Cut(CONTENT)),
    ];
    let row = |row: &FoundObject| {
        let class = row.class.rsplit('.').next().unwrap_or(&row.class);
        vec![
            row.id.clone(),
            class.to_owned(),
            row.field.clone().unwrap_or_else(|| NOTHING.to_owned()),
            row.excerpt
                .trim_end_matches(['\0', '…'])
                .escape_debug()
                .to_string(),
        ]
    };
    doc.table(&columns, report.matches.iter().map(row));
    let more = report.objects - report.matches.len() as u64;
    doc.add_unlisted_count(more, "more object");
    if let Some(first) = report.matches.first()
        && report.snapshot.path != STDIN
    {
        let path = heapdiff_diff::quoted(&printable(&report.snapshot.path));
        doc.gap();
        doc.line(format!("next: heapdiff paths {path} {}", first.id));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::report::Report;

    #[test]
    fn unreachable_objects_are_counted() {
        let text = tests::text(&Report::Find(FindReport {
            snapshot: tests::snapshot(),
            pattern: "a b".to_owned(),
            objects: 1,
            shallow_bytes: 24,
            unreachable: 1,
            ..FindReport::default()
        }));
        assert!(
            text.contains("1 string or array contains \"a b\" (shallow size 24 B)\n"),
            "{text}"
        );
        assert!(
            text.contains("unreachable objects among them: 1\n"),
            "{text}"
        );
    }
}
