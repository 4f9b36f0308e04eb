//! Text for people: what matters first, laid out for 100 columns.

mod allocated;
mod count;
mod diff;
mod export;
mod heap;
mod histo;
mod path;
mod paths;
mod recording;
mod samples;
mod show;
mod sites;
mod sizeof;
mod snapshot;
mod stacks;
pub(crate) mod table;
mod threads;
mod top;
mod trace;
mod waste;

use std::io::{self, Write};

pub(crate) use self::snapshot::layout_line;
pub(crate) use self::stacks::{interval, is_noted};
use crate::report::Report;
use crate::style::Style;
pub(crate) use crate::style::WIDTH;

pub(crate) fn render(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    match report {
        Report::Diff(report) => diff::render(report, style, out),
        Report::Heap(report) => heap::render(report, style, out),
        Report::Count(report) => count::render(report, style, out),
        Report::Histo(report) => histo::render(report, style, out),
        Report::Top(report) => top::render(report, style, out),
        Report::Show(report) => show::render(report, style, out),
        Report::Paths(report) => paths::render(report, style, out),
        Report::Threads(report) => threads::render(report, style, out),
        Report::Sites(report) => sites::render(report, style, out),
        Report::Allocated(report) => allocated::render(report, style, out),
        Report::Recording(report) => recording::render(report, style, out),
        Report::Sizeof(report) => sizeof::render(report, style, out),
        Report::Waste(report) => waste::render(report, style, out),
        Report::Export(report) => export::render(report, style, out),
        // It has no form in text.
        Report::Flame(_) => Ok(()),
        // Its rows are written as they are found, see [`crate::rows`].
        Report::Query(_) => Ok(()),
        Report::TraceInfo(report) => trace::info(report, style, out),
        Report::TraceTop(report) => trace::top(report, style, out),
        Report::TraceSamples(report) => samples::render(report, style, out),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use heapdiff_diff::LayoutInfo;

    use super::*;
    use heapdiff_model::snapshot::SnapshotInfo;

    /// What is written of a report, without colours.
    pub(super) fn text(report: &Report) -> String {
        let mut out = Vec::new();
        render(report, Style::plain().within(WIDTH), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// A dump with 4.0 MiB reachable.
    pub(crate) fn snapshot() -> SnapshotInfo {
        SnapshotInfo {
            path: "a.hprof".to_owned(),
            bytes: 5 << 20,
            taken_ms: 1000,
            id_size: 8,
            jvm: None,
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
            partial: false,
            warnings: Vec::new(),
            assumed_roots: None,
            agent: None,
        }
    }
}
