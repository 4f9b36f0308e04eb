//! Text for people. The most important part comes first, and lines have at most 100 columns.

mod ages;
mod allocated;
mod count;
mod diff;
mod export;
mod find;
mod heap;
mod histo;
pub(crate) mod owners;
mod path;
mod paths;
mod print;
mod recording;
mod samples;
mod show;
mod sites;
mod sizeof;
mod snapshot;
mod stacks;
mod suspect;
mod threads;
mod top;
mod trace;
mod waste;

use std::io::{self, Write};

pub use self::ages::age;
pub(crate) use self::diff::{more_classes, taken};
pub(crate) use self::path::HolderPath;
pub(crate) use self::print::table;
pub(crate) use self::print::thread_phrase;
pub(crate) use self::snapshot::layout_line;
pub(crate) use self::stacks::{interval, is_worth_mentioning};
pub(crate) use self::suspect::{began, grown_bytes, known_leak, rate};
use crate::document::Document;
use crate::report::Report;
use crate::style::Style;

pub(crate) fn render(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    print::print(&document(report), style, out)
}

pub(crate) fn document(report: &Report) -> Document {
    let mut document = Document::default();
    let doc = &mut document;
    match report {
        Report::Diff(report) => diff::build(report, doc),
        Report::Heap(report) => heap::build(report, doc),
        Report::Count(report) => count::build(report, doc),
        Report::Find(report) => find::build(report, doc),
        Report::Histo(report) => histo::build(report, doc),
        Report::Top(report) => top::build(report, doc),
        Report::Show(report) => show::build(report, doc),
        Report::Paths(report) => paths::build(report, doc),
        Report::Threads(report) => threads::build(report, doc),
        Report::Sites(report) => sites::build(report, doc),
        Report::Allocated(report) => allocated::build(report, doc),
        Report::Recording(report) => recording::build(report, doc),
        Report::Sizeof(report) => sizeof::build(report, doc),
        Report::Owners(report) => owners::build(report, doc),
        Report::Waste(report) => waste::build(report, doc),
        Report::Export(report) => export::build(report, doc),
        // A flame graph has no text form. The rows of a query are not written here: [`crate::rows`] writes them while
        // the query finds them.
        Report::Flame(_) | Report::Query(_) => {}
        Report::TraceInfo(report) => trace::info(report, doc),
        Report::TraceTop(report) => trace::top(report, doc),
        Report::TraceAges(report) => ages::build(report, doc),
        Report::TraceSamples(report) => samples::build(report, doc),
    }
    document
}

#[cfg(test)]
pub(crate) mod tests {
    use heapdiff_diff::LayoutInfo;

    use super::*;
    use crate::document::WIDTH;
    use heapdiff_model::snapshot::SnapshotInfo;

    /// Returns a report as text without colours.
    pub(super) fn text(report: &Report) -> String {
        let style = Style::plain().within(WIDTH);
        printed(style, |doc| *doc = document(report))
    }

    /// Returns blocks as text.
    pub(super) fn printed(style: Style, build: impl FnOnce(&mut Document)) -> String {
        let mut document = Document::default();
        build(&mut document);
        let mut out = Vec::new();
        print::print(&document, style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Returns a dump with 4.0 MiB reachable.
    pub(crate) fn snapshot() -> SnapshotInfo {
        SnapshotInfo {
            path: "a.hprof".to_owned(),
            bytes: 5 << 20,
            taken_ms: 1000,
            id_size: 8,
            layout: LayoutInfo {
                reference: 4,
                header: 12,
                array_header: 16,
                align: 8,
                source: "addresses".into(),
            },
            objects: 1000,
            reachable_objects: Some(900),
            reachable_bytes: Some(4 << 20),
            unreachable_bytes: Some(1 << 20),
            ..SnapshotInfo::default()
        }
    }
}
