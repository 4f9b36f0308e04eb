//! Prints the lines that describe the dump of a report.

use heapdiff_diff::LayoutInfo;
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_units::{Size, grouped};

use crate::document::Document;
use crate::printable::printable;
use crate::view::View;

/// The word for an object layout that was measured from the distances between objects.
const MEASURED: &str = "addresses";

/// Adds a line with the dump's path and totals, and the object layout as [`layout`] does.
pub(crate) fn heading(snapshot: &SnapshotInfo, doc: &mut Document) {
    let (reachable, garbage) = (snapshot.reachable_bytes, snapshot.unreachable_bytes);
    let all = reachable.unwrap_or(0).saturating_add(garbage.unwrap_or(0));
    heading_with(snapshot, all, doc);
}

/// Like [`heading`], with `shallow_bytes` as the shallow bytes of all objects.
pub(super) fn heading_with(snapshot: &SnapshotInfo, shallow_bytes: u64, doc: &mut Document) {
    let mut totals = format!(
        "{} objects, {}",
        grouped(snapshot.objects),
        Size(shallow_bytes)
    );
    if let (Some(reachable), Some(garbage)) = (snapshot.reachable_bytes, snapshot.unreachable_bytes)
    {
        totals += &format!(
            ": {} reachable, {} unreachable",
            Size(reachable),
            Size(garbage)
        );
    }
    doc.subject(&snapshot.path, &totals);
    layout(snapshot.jvm.as_deref(), &snapshot.layout, doc);
}

/// Adds the object layout. If the layout was measured, only reports with internals (`-v`) show it. If the layout is
/// only assumed, all reports show it, because sizes may be wrong.
pub(super) fn layout(jvm: Option<&str>, layout: &LayoutInfo, doc: &mut Document) {
    let line = layout_line(jvm, layout);
    if layout.source == MEASURED {
        doc.internal(line);
    } else {
        doc.note(line);
    }
}

/// Returns the phrase for objects to which no path from a GC root leads.
pub(super) const fn unheld_phrase(view: &View) -> &'static str {
    if view.holds_weakly {
        "unreachable: no path from a GC root"
    } else {
        "unreachable, or reachable only through references excluded by --refs"
    }
}

/// Returns the JVM and the object layout: the bytes of a reference, the bytes of a header, and the alignment.
pub(crate) fn layout_line(jvm: Option<&str>, layout: &LayoutInfo) -> String {
    let jvm = jvm.map(|version| format!("JVM {}; ", printable(version)));
    let basis = match &*layout.source {
        MEASURED => "measured object layout",
        _ => "assumed object layout",
    };
    let LayoutInfo {
        reference,
        header,
        align,
        ..
    } = layout;
    format!(
        "{}{basis}: references {reference}, headers {header}, alignment {align} bytes",
        jvm.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::style::Style;
    use crate::text::tests::printed;

    fn line(source: &str, style: Style) -> String {
        let mut info = tests::snapshot();
        info.layout.source = source.to_owned().into();
        printed(style, |doc| heading_with(&info, 5 << 20, doc))
    }

    #[test]
    fn only_an_assumed_layout_is_a_warning() {
        let verbose = Style::plain().with_internals(true);
        let (measured, modelled) = (line(MEASURED, verbose), line("assumed", Style::plain()));
        assert!(!line(MEASURED, Style::plain()).contains("object layout"));
        assert_eq!(line("assumed", verbose), modelled);
        let layout = ": references 4, headers 12, alignment 8 bytes";
        assert!(measured.contains(&format!("measured object layout{layout}")));
        assert!(modelled.contains(&format!("assumed object layout{layout}")));
        assert!(!measured.contains("assumed object layout"));
        assert!(!modelled.contains("measured object layout"));
    }

    #[test]
    fn weakly_held_objects_are_not_called_unreachable() {
        let mut view = View::default();
        assert!(
            unheld_phrase(&view)
                .ends_with("or reachable only through references excluded by --refs")
        );
        assert!(!unheld_phrase(&view).contains("no path from a GC root"));
        view.holds_weakly = true;
        assert_eq!(unheld_phrase(&view), "unreachable: no path from a GC root");
        assert!(!unheld_phrase(&view).contains("only through weaker"));
    }
}
