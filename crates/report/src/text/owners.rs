//! Prints memory by owner (such as a package or jar): a table of owners, and a table of memory that several owners
//! share.

use heapdiff_model::owners::OwnedClass;
use heapdiff_units::{Size, counted};

use super::snapshot;
use crate::document::{Document, bold};
use crate::printable::printable;
use crate::tables;
use crate::view::{OwnersReportView, OwnersView};

/// Maximum number of owners whose largest classes are printed.
const DETAILS: usize = 3;

pub(crate) fn build(report: &OwnersReportView, doc: &mut Document) {
    for snapshot in &report.snapshots {
        snapshot::heading(snapshot, doc);
    }
    doc.gap();
    let [owned, rest] = tables::owners_sentence(&report.figures);
    doc.spans([bold(owned), rest.into()]);
    let OwnersView {
        owners,
        rows,
        groups,
        ..
    } = &report.more;
    doc.titled(tables::owners(&report.figures, owners));
    doc.titled(tables::shared_by(&report.figures, *rows));
    let listed = report.figures.shared.len().min(*rows) as u64;
    doc.add_unlisted_count(groups.saturating_sub(listed), "more pair");
    let listed = report.figures.owners.iter();
    let listed = listed.filter(|o| !o.classes.is_empty() && o.kind != "jvm");
    let mut listed = listed.take(DETAILS).peekable();
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

#[cfg(test)]
pub(crate) mod tests {
    use heapdiff_model::owners::{OwnerFigures, OwnerRow, OwnersReport, SharedRow};
    use heapdiff_model::snapshot::SnapshotInfo;

    use super::*;
    use crate::report::Report;
    use crate::text::tests;

    pub(crate) fn report() -> OwnersReportView {
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
        let mut report: OwnersReportView = OwnersReport {
            schema: OwnersReport::SCHEMA,
            snapshots: vec![dump(3000), dump(4000)],
            figures: OwnerFigures {
                by: "package".into(),
                owners: vec![OwnerRow {
                    owner: "com.acme".to_owned(),
                    kind: "package".into(),
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
            },
        }
        .into();
        report.more.rows = 20;
        report.more.owners = report.figures.owners.clone();
        report
    }

    #[test]
    fn owners_and_shared_memory_are_printed_with_their_change() {
        let text = tests::text(&Report::Owners(Box::new(report())));
        for line in [
            "com.acme grew by 1000 B; 2.4 KiB of 3.9 KiB have one owner, 1.5 KiB are shared",
            "2,500  +1,000    62.5%       20  com.acme",
            "1,500       0    37.5%        3  three owners or more",
            "com.acme: 2.0 KiB byte[] (1 object)",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
    #[test]
    fn each_kind_of_owners_has_a_title() {
        for (by, title) in [
            ("package", "Memory by package"),
            ("bean", "Memory by bean"),
            ("field", "Memory by the value of a field"),
        ] {
            let mut report = report();
            report.data.figures.by = by.into();
            let text = tests::text(&Report::Owners(Box::new(report)));
            assert!(text.contains(title), "{title}: {text}");
        }
    }
}
