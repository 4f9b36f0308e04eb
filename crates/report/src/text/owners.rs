//! Prints memory by owner: a table of owners, and what they share.

use heapdiff_model::owners::{OwnedClass, OwnersReport};
use heapdiff_units::{Size, counted, grouped, percent};

use super::snapshot;
use super::waste::{change, last};
use crate::document::Column::{Figure, Name};
use crate::document::{Document, bold};
use crate::printable::printable;
use crate::view::{OwnersView, Viewed};

/// Maximum number of owners whose largest classes are printed.
const DETAILS: usize = 3;
/// What three owners or more share.
const SEVERAL: &str = "three owners or more";

pub(crate) fn build(report: &Viewed<OwnersReport, OwnersView>, doc: &mut Document) {
    for snapshot in &report.snapshots {
        snapshot::heading(snapshot, doc);
    }
    let several = report.snapshots.len() > 1;
    let heap = report.snapshots.last();
    let heap = heap.and_then(|s| s.reachable_bytes).unwrap_or(0);
    doc.gap();
    let shared = last(&report.shared_bytes);
    let owned = Size(heap.saturating_sub(shared)).to_string();
    let rest = format!(
        " of {} have one owner ({}), {} are shared",
        Size(heap),
        kind(report.by),
        Size(shared)
    );
    doc.spans([bold(owned), rest.into()]);
    let columns = |name| {
        let mut columns = vec![("bytes", Figure)];
        columns.extend(several.then_some(("change", Figure)));
        columns.extend([("of heap", Figure), ("objects", Figure), (name, Name)]);
        columns
    };
    let row = |bytes: &[u64], objects: &[u64], name: String| {
        let mut cells = vec![grouped(last(bytes))];
        cells.extend(several.then(|| change(bytes)));
        cells.extend([
            percent(last(bytes), heap),
            grouped(last(objects)),
            printable(&name).into_owned(),
        ]);
        cells
    };
    doc.gap();
    let owners = report.more.owners.iter();
    doc.table(
        &columns("owner"),
        owners.map(|o| row(&o.bytes, &o.objects, o.owner.clone())),
    );
    if !report.shared.is_empty() {
        doc.gap();
        let shared = report.shared.iter().take(report.more.rows);
        doc.table(
            &columns("shared by"),
            shared.map(|s| {
                let name = match s.owners.is_empty() {
                    true => SEVERAL.to_owned(),
                    false => s.owners.join(" and "),
                };
                row(&s.bytes, &s.objects, name)
            }),
        );
        let listed = report.shared.len().min(report.more.rows) as u64;
        doc.add_unlisted_count(report.more.groups.saturating_sub(listed), "more pair");
    }
    let listed = report.owners.iter().filter(|o| !o.classes.is_empty());
    let mut listed = listed.filter(|o| o.kind != "jvm").take(DETAILS).peekable();
    if listed.peek().is_some() {
        doc.gap();
    }
    for owner in listed {
        let classes: Vec<String> = owner.classes.iter().map(class).collect();
        let line = format!("{}: {}", owner.owner, classes.join(", "));
        doc.line(printable(&line).into_owned());
    }
}

fn class(class: &OwnedClass) -> String {
    let objects = counted(class.objects, "object");
    format!("{} {} ({objects})", Size(class.bytes), class.class)
}

/// Returns the words for a kind of owners.
fn kind(by: &str) -> &'static str {
    match by {
        "package" => "by package",
        "jar" => "by jar",
        "loader" => "by class loader",
        "thread" => "by thread",
        "bean" => "by bean",
        _ => "by the value of a field",
    }
}

#[cfg(test)]
mod tests {
    use heapdiff_model::owners::{OwnerRow, SharedRow};
    use heapdiff_model::snapshot::SnapshotInfo;

    use super::*;
    use crate::report::Report;
    use crate::text::tests;

    #[test]
    fn owners_and_shared_memory_are_printed_with_their_change() {
        let dump = |reachable| SnapshotInfo {
            path: "a.hprof".to_owned(),
            reachable_bytes: Some(reachable),
            unreachable_bytes: Some(0),
            ..SnapshotInfo::default()
        };
        let class = OwnedClass {
            class: "byte[]".to_owned(),
            objects: 1,
            bytes: 2048,
        };
        let mut report: Viewed<OwnersReport, OwnersView> = OwnersReport {
            schema: OwnersReport::SCHEMA,
            snapshots: vec![dump(3000), dump(4000)],
            by: "package",
            owners: vec![OwnerRow {
                owner: "com.acme".to_owned(),
                kind: "package",
                bytes: vec![1500, 2500],
                objects: vec![10, 20],
                classes: vec![class],
            }],
            shared_bytes: vec![1500, 1500],
            shared: vec![SharedRow {
                bytes: vec![1500, 1500],
                objects: vec![3, 3],
                ..SharedRow::default()
            }],
        }
        .into();
        report.more.rows = 20;
        report.more.owners = report.owners.clone();
        let text = tests::text(&Report::Owners(Box::new(report)));
        for line in [
            "2.4 KiB of 3.9 KiB have one owner (by package), 1.5 KiB are shared",
            "2,500  +1,000    62.5%       20  com.acme",
            "1,500       0    37.5%        3  three owners or more",
            "com.acme: 2.0 KiB byte[] (1 object)",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
