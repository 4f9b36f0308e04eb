//! The web page of one dump: largest holders, threads, waste and classes.
//!
//! The HTML contains all data except the table of classes, so these data are visible without JavaScript. The script
//! adds the table, folds frames, and filters suspects.

use std::io::{self, Write};

use super::section::Section;
use super::sentences::{evidence, figures, path_of};
use super::{
    CLASS_BYTES, CLASSES, FOLDING, STYLE, base, class_bytes, first, json, layout_of, left_out,
    policy, text, wrapped,
};
use crate::document::unlisted_count;
use crate::tables;
use crate::text::known_leak;
use crate::view::DumpReport;
use crate::{kept, series};
use askama::Template;
use heapdiff_diff::is_application_frame;
use heapdiff_diff::sentence::{Samples, Verdict};
use heapdiff_model::heap::{HeapClass, HeapReport};
use heapdiff_units::{Size, grouped};
use serde::Serialize;

/// Maximum number of stacks shown per suspect.
const STACKS: usize = 10;
/// Script of this page. It comes after the shared scripts that it uses.
const SCRIPT: &str = include_str!("../../assets/heap.js");

#[derive(Template)]
#[template(path = "heap.html")]
struct Page<'a> {
    policy: String,
    title: String,
    style: &'a str,
    heap: &'a HeapReport,
    sentence: String,
    layout: String,
    more_suspects: bool,
    sections: Vec<Section>,
    /// Sentences about classes that the table does not list.
    more_classes: Vec<String>,
    script: &'a str,
    /// The classes as JSON.
    report: String,
}

/// The part of the report that the script shows.
#[derive(Serialize)]
struct Embedded<'a> {
    classes: &'a [HeapClass],
    /// Number of classes, listed or not.
    all_classes: usize,
}

/// Writes the page.
///
/// # Errors
/// Returns an error if the stream fails.
pub(crate) fn render(report: &DumpReport, out: &mut dyn Write) -> io::Result<()> {
    let heap = &report.data;
    let info = &heap.snapshot;
    let classes = first(&heap.classes, CLASS_BYTES, |c| {
        class_bytes(&c.class, c.loader.as_deref(), 1)
    });
    let more_classes = [
        left_out(heap.classes.len() - classes.len(), "class"),
        unlisted_count(report.more.more_classes as u64, "more class"),
    ];
    let script = wrapped(&[&base(), FOLDING, CLASSES, SCRIPT]);
    let mut sections = vec![
        Section::new("threads", "Threads", tables::threads(heap, usize::MAX)),
        Section::new("waste", "Waste", tables::waste(heap, usize::MAX)),
    ];
    sections.retain(|section| !section.rows.is_empty());
    let page = Page {
        policy: policy(&script),
        title: format!("What holds most of the heap: {}", text(&info.path)),
        style: STYLE,
        heap,
        sentence: kept::sentence(heap, report.more.left_out),
        layout: layout_of(info),
        more_suspects: report.more.more_suspects && !heap.suspects.is_empty(),
        sections,
        more_classes: more_classes.into_iter().flatten().collect(),
        script: &script,
        report: json(&Embedded {
            classes,
            all_classes: heap.classes.len() + report.more.more_classes,
        })?,
    };
    let page = page.render().map_err(io::Error::other)?;
    out.write_all(page.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn page(more_suspects: bool, more_classes: usize) -> String {
        let mut report = crate::tests::heap_report(synthetic::heap(2));
        report.more.more_suspects = more_suspects;
        report.more.more_classes = more_classes;
        let mut out = Vec::new();
        render(&report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_stay_text() {
        let page = page(false, 0);
        assert_eq!(
            page.matches("<script").count(),
            2,
            "one of data, one that runs"
        );
        assert!(page.contains("&#60;/script&#62;"), "{page}");
        // The HTML must not contain this character, which reorders the text around it. In the embedded data it may
        // occur, because the script replaces it before it shows the data.
        let html = page.split("<script").next().unwrap();
        assert!(!html.contains('\u{202e}'));
        assert!(page.contains("What holds most of the heap: a.hprof"));
        assert!(page.contains("a large object need not be a leak"));
    }

    #[test]
    fn omissions_are_reported() {
        let (all, some) = (page(false, 0), page(true, 7));
        for part in [
            "Places that retain less are not shown; --top N shows more.",
            "and 7 more classes (--top N shows more)",
            "\"all_classes\":8}",
        ] {
            assert!(some.contains(part) && !all.contains(part), "{part}");
        }
    }

    /// Returns the page of one suspect, without its script.
    fn about(change: impl Fn(&mut heapdiff_diff::Suspect)) -> String {
        let mut report = crate::tests::heap_report(synthetic::heap(1));
        change(&mut report.data.suspects[0]);
        let mut out = Vec::new();
        render(&report, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        page.split("<script").next().unwrap().to_owned()
    }

    #[test]
    fn sentences_are_those_of_the_text_report() {
        let joined = "allocating code unknown: no matching sample";
        let code = format!("<dt>code</dt><dd><bdi>{joined}</bdi></dd>");
        let plain = about(|_| ());
        for (part, page) in [
            (&*code, about(|s| s.joined = Some(joined.to_owned()))),
            (
                &*code,
                about(|s| {
                    s.joined = Some(joined.to_owned());
                    s.stacks.clear();
                }),
            ),
            (
                "<p class=\"dim\">(no stack was recorded)</p>",
                about(|s| s.stacks[0].frames.clear()),
            ),
            (
                "; 2 more stacks in JSON",
                about(|s| s.stacks = vec![s.stacks[0].clone(); STACKS + 2]),
            ),
            (
                "2.0 MiB, 50.0 %, and 3.0 MiB off heap</span>",
                about(|s| s.off_heap_bytes = vec![3 << 20]),
            ),
            (
                "data-pill=\"t\u{fffd}imer\">t\u{fffd}imer<",
                about(|s| s.detector = Some("t\u{202e}imer".into())),
            ),
        ] {
            assert!(page.contains(part), "{part}: {page}");
            assert!(!plain.contains(part), "{part}");
        }
        assert!(plain.contains("<dt>sampled</dt>"));
        assert!(!about(|s| s.stacks.clear()).contains("<dt>sampled</dt>"));
    }
}
