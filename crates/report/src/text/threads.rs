//! Prints threads with their stacks.

use heapdiff_diff::{PendingKind, is_jdk_frame};
use heapdiff_model::threads::{FrameRow, Locals, ThreadRow, ThreadsReport};
use heapdiff_units::{Size, counted, grouped};

use super::show::object_line;
use super::snapshot;
use crate::document::{Document, WIDTH, bold};
use crate::printable::printable;

/// Number of frames at the top of a stack that are always shown. A later frame is shown only if one of its local
/// variables is shown.
const FRAMES: usize = 8;
/// Maximum number of lines for one group of pending work, such as tasks in a queue or threads with equal stacks.
const SHAPE: usize = 8;
/// A part of the thread's retained bytes, in thousandths. A local variable is shown only if its object retains more
/// than this part and at least 1 KiB.
const WORTH: u64 = 10;

pub(crate) fn build(report: &ThreadsReport, doc: &mut Document) {
    snapshot::heading(&report.snapshot, doc);
    let totals = &report.totals;
    let mut line = counted(totals.threads, "thread");
    if totals.virtual_threads > 0 {
        line += &format!(", {} of them virtual", grouped(totals.virtual_threads));
    }
    doc.line(line);
    pending(report, doc);
    for thread in &report.threads {
        doc.gap();
        self::thread(thread, doc);
    }
    let listed = report.threads.len() as u64 + report.grouped_threads;
    let rest = totals.threads.saturating_sub(listed);
    doc.add_unlisted_blocks(rest, "more thread");
}

/// Adds the groups of pending work, such as tasks in a queue or threads with equal stacks.
fn pending(report: &ThreadsReport, doc: &mut Document) {
    if report.pending.is_empty() {
        return;
    }
    doc.gap();
    doc.line(bold("Pending work"));
    for group in &report.pending {
        let Some(kind) = PendingKind::by_name(group.kind) else {
            continue;
        };
        doc.gap();
        doc.line(format!(
            "  {}, retained size {}",
            kind.counted(group.count),
            Size(group.retained_bytes)
        ));
        let is_jdk = |line: &&String| kind.is_stack() && is_jdk_frame(line);
        let jdk = group.shape.iter().take_while(is_jdk).count();
        // If all frames are JDK frames, no frame is folded.
        let jdk = if jdk == group.shape.len() { 0 } else { jdk };
        if jdk > 0 {
            doc.note(format!("    at … {}", counted(jdk as u64, "JDK frame")));
        }
        for (at, line) in group.shape[jdk..].iter().take(SHAPE).enumerate() {
            let at = match kind {
                _ if kind.is_stack() => "at ",
                PendingKind::Tasks => "",
                _ if at > 0 => "-> ",
                _ => "",
            };
            doc.one_line(format!("    {at}{}", printable(line)));
        }
        more_frames((group.shape.len() - jdk).saturating_sub(SHAPE), doc);
        if let Some(largest) = &group.largest {
            doc.one_line(format!("    largest: {}", object_line(largest)));
        }
    }
    let more = report.pending_groups - report.pending.len() as u64;
    doc.add_unlisted_blocks(more, "more group");
}

fn thread(thread: &ThreadRow, doc: &mut Document) {
    let name = format!("{:?}", thread.name.as_deref().unwrap_or("(no name)"));
    let mut about = String::new();
    for (is, word) in [
        (thread.is_virtual, " virtual"),
        (thread.daemon == Some(true) && !thread.is_virtual, " daemon"),
    ] {
        if is {
            about += word;
        }
    }
    if let Some(state) = thread.state {
        about += &format!(" {}", state.to_lowercase().replace('_', " "));
    }
    about += &match (thread.retained_bytes, thread.retained_objects) {
        (Some(bytes), Some(objects)) => {
            format!(" retains {} in {}", Size(bytes), counted(objects, "object"))
        }
        _ => " is unreachable".to_owned(),
    };
    let room = WIDTH.saturating_sub(about.chars().count());
    doc.spans([bold(name).within(room), about.into()]);
    let least = thread.retained_bytes.unwrap_or(0) / 1000 * WORTH;
    let is_shown =
        |i: usize, frame: &FrameRow| i < FRAMES || !local_lines(&frame.locals, least).is_empty();
    let mut hidden = 0;
    for (i, frame) in thread.frames.iter().enumerate() {
        if !is_shown(i, frame) {
            hidden += 1;
            continue;
        }
        more_frames(hidden, doc);
        hidden = 0;
        doc.one_line(format!("    at {}", frame.frame));
        locals(&frame.locals, least, doc);
    }
    more_frames(hidden, doc);
    if !local_lines(&thread.other_locals, least).is_empty() {
        doc.line("    references from outside these frames");
        locals(&thread.other_locals, least, doc);
    }
}

fn more_frames(hidden: usize, doc: &mut Document) {
    if hidden > 0 {
        let more = counted(hidden as u64, "more frame");
        doc.note(format!("    ... {more}"));
    }
}

/// Returns a line for each local variable that retains more than `least` bytes and at least 1 KiB.
fn local_lines(locals: &Locals, least: u64) -> Vec<String> {
    let large = locals
        .largest
        .iter()
        .filter(|l| l.retained_bytes > least.max(1023));
    large
        .map(|local| {
            let object = local.object.as_ref().map(object_line).unwrap_or_default();
            format!("       - {} {object}", Size(local.retained_bytes))
        })
        .collect()
}

fn locals(locals: &Locals, least: u64, doc: &mut Document) {
    for line in local_lines(locals, least) {
        doc.one_line(bold(line));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;
    use crate::report::Report;
    use heapdiff_model::threads::{LocalRow, PendingRow, ThreadTotals};

    #[test]
    fn pending_work_is_shown_by_its_kind() {
        let group = |kind: &'static str, shape: &[&str]| PendingRow {
            kind,
            count: 2,
            retained_bytes: 2048,
            shape: shape.iter().map(|&line| line.to_owned()).collect(),
            largest: None,
        };
        let text = tests::text(&Report::Threads(ThreadsReport {
            snapshot: tests::snapshot(),
            pending: vec![
                group(
                    "virtual-threads",
                    &["java.lang.Object.wait(X)", "a.B.c(B.java:1)"],
                ),
                group("threads", &["java.lang.Object.wait(X)"]),
                group("tasks", &["a.Mail", "in the queue of mailer"]),
                group("futures", &["a.F", "thenApply a.G"]),
                group("coroutines", &["a.K.load(K.kt:9)"]),
                group("subscriptions", &["FluxMap"]),
                group("pipelines", &["a.Channel"]),
            ],
            pending_groups: 9,
            ..ThreadsReport::default()
        }));
        for line in [
            "  2 virtual threads with the same stack, retained size 2.0 KiB\n    at … 1 JDK frame\n    at a.B.c(B.java:1)\n",
            "  2 threads with the same stack, retained size 2.0 KiB\n    at java.lang.Object.wait(X)\n",
            "  2 queued tasks, retained size 2.0 KiB\n    a.Mail\n    in the queue of mailer\n",
            "  2 incomplete futures, retained size 2.0 KiB\n    a.F\n    -> thenApply a.G\n",
            "  2 suspended coroutines, retained size 2.0 KiB\n    a.K.load(K.kt:9)\n",
            "  2 Reactor subscriptions, retained size 2.0 KiB\n    FluxMap\n",
            "  2 Netty channels, retained size 2.0 KiB\n    a.Channel\n",
            "and 2 more groups (--top N shows more)\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    /// Returns the text of a report about `threads` threads, which lists only one of them. A JNI local of the listed
    /// thread holds `outside` bytes. The thread has no frames.
    fn rendered(threads: u64, virtual_threads: u64, outside: u64) -> String {
        let local = LocalRow {
            kind: "JNI local",
            object: None,
            retained_bytes: outside,
        };
        tests::text(&Report::Threads(ThreadsReport {
            schema: ThreadsReport::SCHEMA,
            snapshot: tests::snapshot(),
            totals: ThreadTotals {
                threads,
                virtual_threads,
            },
            threads: vec![ThreadRow {
                name: Some("main".to_owned()),
                daemon: Some(false),
                retained_bytes: Some(8192),
                retained_objects: Some(9),
                other_locals: Locals {
                    count: 1,
                    largest: vec![local],
                },
                ..ThreadRow::default()
            }],
            ..ThreadsReport::default()
        }))
    }

    #[test]
    fn omitted_and_virtual_threads_are_counted() {
        let (all, some) = (rendered(1, 0, 0), rendered(3, 2, 0));
        assert!(some.contains("\n3 threads, 2 of them virtual\n"), "{some}");
        assert!(
            some.ends_with("\nand 2 more threads (--top N shows more)\n"),
            "{some}"
        );
        assert!(
            all.contains("\n1 thread\n") && !all.contains("of them virtual"),
            "{all}"
        );
        assert!(!all.contains("--top N shows more"), "{all}");
    }

    #[test]
    fn much_memory_held_outside_of_frames_is_shown() {
        assert!(
            rendered(1, 0, 4096)
                .contains("    references from outside these frames\n       - 4.0 KiB")
        );
        assert!(!rendered(1, 0, 512).contains("from outside these frames"));
    }
}
