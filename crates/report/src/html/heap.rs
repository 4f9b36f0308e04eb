//! The web page of one dump: what holds most, threads, waste and classes. It has no script: all of it is there, and
//! opens and prints as it is.

use std::io::{self, Write};

use super::{STYLE, figures, layout_of, policy};
use crate::printable::printable;
use crate::view::{HeapView, Viewed};
use crate::{coverage, kept, series, size};
use askama::Template;
use heapdiff_diff::sentence::{Verdict, Waste};
use heapdiff_diff::{Stack, is_application_frame};
use heapdiff_model::heap::HeapReport;
use heapdiff_units::{Size, grouped};

/// The most stacks of one suspect, and classes, on the page.
const STACKS: usize = 10;
const CLASSES: usize = 500;

#[derive(Template)]
#[template(path = "heap.html")]
struct Page<'a> {
    policy: String,
    title: String,
    style: &'a str,
    warnings: Vec<String>,
    reachable: String,
    objects: String,
    garbage: String,
    sentence: String,
    no_leak: String,
    path: String,
    partial: bool,
    layout: String,
    more_suspects: bool,
    died: Option<Died>,
    suspects: Vec<Suspect>,
    threads: Vec<ThreadRow>,
    waste: Vec<WasteRow>,
    classes: Vec<ClassRow>,
    more_classes: Option<String>,
}

struct Died {
    said: String,
    frames: Vec<Frame>,
}

struct Frame {
    text: String,
    runtime: bool,
}

struct Suspect {
    rank: u32,
    open: bool,
    holder: String,
    class: String,
    retained: String,
    part: String,
    reasons: Vec<String>,
    objects: String,
    off_heap: Option<String>,
    also_held_by: Vec<String>,
    root: String,
    path: Vec<Step>,
    fix: Option<String>,
    next: Vec<String>,
    sampled: Option<String>,
    stacks: Vec<StackRow>,
}

struct Step {
    text: String,
    holder: bool,
}

struct StackRow {
    class: String,
    figures: String,
    frames: Vec<Frame>,
}

struct ThreadRow {
    bytes: String,
    name: String,
    about: String,
}

struct WasteRow {
    bytes: String,
    objects: String,
    kind: String,
    holder: String,
}

struct ClassRow {
    objects: String,
    shallow: String,
    retained: String,
    name: String,
}

/// Writes the page.
///
/// # Errors
/// When the stream fails.
pub(crate) fn render(report: &Viewed<HeapReport, HeapView>, out: &mut dyn Write) -> io::Result<()> {
    let heap = &report.data;
    let info = &heap.snapshot;
    let warnings = heap.warnings.iter().chain(&info.warnings);
    let hidden = heap.classes.len().saturating_sub(CLASSES) + report.more.more_classes;
    let page = Page {
        policy: policy(""),
        title: format!("What holds most of the heap: {}", printable(&info.path)),
        style: STYLE,
        warnings: warnings.map(|w| text(w)).collect(),
        reachable: Size(info.reachable_bytes).to_string(),
        objects: grouped(info.reachable_objects),
        garbage: Size(info.unreachable_bytes).to_string(),
        sentence: kept::sentence(heap, report.more.left_out),
        no_leak: Verdict::NoLeak.to_string(),
        path: text(&info.path),
        partial: info.partial,
        layout: layout_of(info),
        more_suspects: report.more.more_suspects && !heap.suspects.is_empty(),
        died: heap.died.as_ref().map(|died| Died {
            said: text(&kept::died(died)),
            frames: frames(&died.frames),
        }),
        suspects: heap.suspects.iter().map(|s| suspect(s, report)).collect(),
        threads: threads(report),
        waste: waste(report),
        classes: classes(report),
        more_classes: (hidden > 0)
            .then(|| format!("{} more classes in other formats", grouped(hidden as u64))),
    };
    let page = page.render().map_err(io::Error::other)?;
    out.write_all(page.as_bytes())
}

fn text(name: &str) -> String {
    printable(name).into_owned()
}

fn frames(frames: &[String]) -> Vec<Frame> {
    let frame = |frame: &String| Frame {
        text: text(frame),
        runtime: !is_application_frame(frame),
    };
    frames.iter().map(frame).collect()
}

fn suspect(suspect: &heapdiff_diff::Suspect, report: &Viewed<HeapReport, HeapView>) -> Suspect {
    let step = |step: &String| Step {
        text: text(step),
        holder: *step == suspect.holder,
    };
    Suspect {
        rank: suspect.rank,
        open: suspect.rank == 1,
        holder: text(&suspect.holder),
        class: text(&suspect.class),
        retained: Size(suspect.retained()).to_string(),
        part: kept::part(suspect.retained(), report.snapshot.reachable_bytes),
        reasons: suspect.reasons.iter().map(|r| text(r)).collect(),
        objects: series(&suspect.objects, "", grouped),
        off_heap: (suspect.off_heap() > 0).then(|| size(suspect.off_heap())),
        also_held_by: suspect.also_held_by.iter().map(|f| text(f)).collect(),
        root: text(&suspect.root),
        path: suspect.path.iter().map(step).collect(),
        fix: suspect.likely_fix.as_deref().map(text),
        next: suspect.next.iter().map(|command| text(command)).collect(),
        sampled: (!suspect.stacks.is_empty()).then(|| coverage::sentence(suspect)),
        stacks: suspect.stacks.iter().take(STACKS).map(stack).collect(),
    }
}

fn stack(stack: &Stack) -> StackRow {
    StackRow {
        class: text(&stack.class),
        figures: figures(stack),
        frames: frames(&stack.frames),
    }
}

fn threads(report: &Viewed<HeapReport, HeapView>) -> Vec<ThreadRow> {
    let rows = report.data.threads.iter().map(|thread| ThreadRow {
        bytes: Size(thread.retained_bytes).to_string(),
        name: text(thread.name.as_deref().unwrap_or("(unnamed)")),
        about: text(&kept::local(thread)),
    });
    rows.collect()
}

fn waste(report: &Viewed<HeapReport, HeapView>) -> Vec<WasteRow> {
    let rows = report.data.waste.iter().map(|row| WasteRow {
        bytes: Size(row.bytes_to_win).to_string(),
        objects: grouped(row.objects),
        kind: Waste::title(&row.kind),
        holder: text(row.holder.as_deref().unwrap_or("")),
    });
    rows.collect()
}

fn classes(report: &Viewed<HeapReport, HeapView>) -> Vec<ClassRow> {
    let rows = report.data.classes.iter().take(CLASSES);
    let rows = rows.map(|class| ClassRow {
        objects: grouped(class.objects),
        shallow: Size(class.shallow_bytes).to_string(),
        retained: Size(class.retained_bytes).to_string(),
        name: text(&class.class),
    });
    rows.collect()
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
    fn names_stay_text_and_nothing_runs() {
        let page = page(false, 0);
        assert!(
            !page.contains("<script") && page.contains("&#60;/script&#62;"),
            "{page}"
        );
        assert!(!page.contains('\u{202e}'));
        assert!(page.contains("What holds most of the heap: a.hprof"));
        assert!(page.contains("a large object need not be a leak"));
    }

    #[test]
    fn what_is_left_out_is_told() {
        let (all, some) = (page(false, 0), page(true, 7));
        for part in [
            "Places that retain less are not shown; --top N shows more.",
            "7 more classes in other formats",
        ] {
            assert!(some.contains(part) && !all.contains(part), "{part}");
        }
    }
}
