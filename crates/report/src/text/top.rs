//! Prints a table of the objects that retain the most.

use heapdiff_model::top::{TopObject, TopReport};
use heapdiff_units::{Size, counted, grouped, percent};

use super::snapshot;
use crate::document::Column::{Figure, Name};
use crate::document::Document;
use crate::{tables, unreachable};

pub(crate) fn build(report: &TopReport, doc: &mut Document) {
    let reachable = report.snapshot.reachable_bytes.unwrap_or(0);
    snapshot::heading(&report.snapshot, doc);
    if let Some(under) = &report.under {
        doc.line(format!(
            "directly dominated by {selector} ({objects}, retained size {size}):",
            selector = under.selector,
            objects = counted(under.objects, "object"),
            size = Size(under.retained_bytes)
        ));
    }
    let mut whole = reachable;
    if let Some(unreachable) = &report.unreachable {
        doc.prose(unreachable::sentence(unreachable, "the dump"));
        whole = unreachable.bytes;
    }
    doc.gap();
    if report.objects.is_empty() {
        return doc.line("no objects");
    }
    let columns = [
        ("retained bytes", Figure),
        ("share", Figure),
        ("objects", Figure),
        ("shallow", Figure),
        ("id", Name),
        ("class", Name),
    ];
    let row = |object: &TopObject| {
        vec![
            grouped(object.retained_bytes),
            percent(object.retained_bytes, whole),
            grouped(object.retained_objects),
            grouped(object.shallow_bytes),
            object.id.clone(),
            object.class.clone(),
        ]
    };
    doc.table(&columns, report.objects.iter().map(row));
    if let Some(unreachable) = &report.unreachable {
        doc.titled(tables::unreachable_holders(unreachable));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::report::Report;
    use heapdiff_model::top::Under;

    #[test]
    fn the_selected_dominator_is_shown_on_request() {
        let of = |under| {
            tests::text(&Report::Top(TopReport {
                schema: TopReport::SCHEMA,
                snapshot: tests::snapshot(),
                under,
                unreachable: None,
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
