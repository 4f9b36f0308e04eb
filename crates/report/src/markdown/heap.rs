//! One dump as Markdown: a table of what holds most, each one's details folded, then threads, waste and classes.

use std::fmt::Write as _;
use std::io::{self, Write};

use heapdiff_diff::{HeapReport, HeapSuspect};
use heapdiff_units::{Size, counted, grouped};

use super::{ENOUGH, STACKS, allocated_at, block, cell, code, frames, html, named, prose};
use crate::kept;
use crate::text::is_noted;

/// Threads, and kinds of waste, that are shown.
const ROWS: usize = 5;

/// Writes the report. `more`: whether there are suspects that are not listed, and the classes that are not.
///
/// # Errors
/// When the stream fails.
pub(crate) fn render(
    report: &HeapReport,
    more: (bool, usize),
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut text = String::from("## What holds most of the heap\n\n");
    let info = &report.snapshot;
    let _ = writeln!(
        text,
        "{}: **{}** reachable, {} objects.\n",
        code(&info.path),
        Size(info.reachable_bytes),
        grouped(info.reachable_objects)
    );
    for warning in report.warnings.iter().chain(&info.warnings) {
        let _ = writeln!(text, "> **Warning:** {}\n", prose(warning));
    }
    if let Some(died) = &report.died {
        let _ = writeln!(text, "> {}\n", prose(&kept::died(died)));
        frames(&died.frames, &mut text);
    }
    let _ = writeln!(text, "{}.\n", prose(&kept::sentence(report)));
    suspects(report, more.0, &mut text);
    rest(report, more.1, &mut text);
    while text.ends_with("\n\n") {
        text.pop();
    }
    out.write_all(text.as_bytes())
}

fn suspects(report: &HeapReport, more: bool, text: &mut String) {
    if report.suspects.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}.\n", prose(kept::NO_LEAK));
    *text += "| # | retained | of the heap | holder | content |\n|--:|--:|--:|---|---|\n";
    for suspect in &report.suspects {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            suspect.rank,
            Size(suspect.retained_bytes),
            kept::part(suspect.retained_bytes, report),
            cell(&suspect.holder),
            cell(&suspect.class),
        );
    }
    text.push('\n');
    if more {
        *text += "More hold less (`--top N` shows more).\n\n";
    }
    let mut left_out = 0;
    for suspect in &report.suspects {
        match text.len() < ENOUGH {
            true => details(suspect, text),
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            text,
            "Details of {} are in other formats.\n",
            counted(left_out, "suspect")
        );
    }
}

fn details(suspect: &HeapSuspect, text: &mut String) {
    let (rank, holder) = (suspect.rank, html(&suspect.holder));
    let bytes = Size(suspect.retained_bytes);
    let _ = writeln!(
        text,
        "<details><summary>{rank}. <code>{holder}</code> {bytes}</summary>\n"
    );
    for reason in &suspect.reasons {
        let _ = writeln!(text, "- {}", prose(reason));
    }
    let _ = writeln!(text, "- {}", counted(suspect.objects, "object"));
    let _ = writeln!(text, "- kept alive by {}\n", code(&suspect.root));
    block(suspect.path.iter().map(|step| named(step)).collect(), text);
    allocated_at(suspect.allocated_through.as_ref(), &suspect.stacks, text);
    let silent = suspect.coverage.unsampled_bytes;
    if !suspect.stacks.is_empty() && is_noted(silent, suspect.retained_bytes) {
        let _ = writeln!(text, "No sample speaks for {} of it.\n", Size(silent));
    }
    let more = suspect.stacks.len().saturating_sub(STACKS) as u64;
    if more > 0 {
        let _ = writeln!(text, "{} in other formats.\n", counted(more, "more stack"));
    }
    text.push_str("</details>\n\n");
}

/// Threads, waste and classes.
fn rest(report: &HeapReport, more_classes: usize, text: &mut String) {
    if !report.threads.is_empty() {
        *text += "| retained | thread | of it |\n|--:|---|---|\n";
        for thread in report.threads.iter().take(ROWS) {
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                Size(thread.retained_bytes),
                cell(thread.name.as_deref().unwrap_or("(unnamed)")),
                cell(&kept::local(thread)),
            );
        }
        text.push('\n');
    }
    if !report.waste.is_empty() {
        *text += "| to win | objects | kind | most of it in |\n|--:|--:|---|---|\n";
        for row in report.waste.iter().take(ROWS) {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                Size(row.bytes_to_win),
                grouped(row.objects),
                row.kind.replace('_', " "),
                cell(row.holder.as_deref().unwrap_or("")),
            );
        }
        text.push('\n');
    }
    if report.classes.is_empty() {
        return;
    }
    let title = "Classes, by their own size";
    let _ = writeln!(
        text,
        "<details><summary>{title}</summary>\n\n| objects | shallow | retained | class |\n|--:|--:|--:|---|"
    );
    for class in &report.classes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            grouped(class.objects),
            Size(class.shallow_bytes),
            Size(class.retained_bytes),
            cell(&class.class),
        );
    }
    if more_classes > 0 {
        let word = if more_classes == 1 {
            "class"
        } else {
            "classes"
        };
        let _ = write!(text, "\nand {} more {word}\n", grouped(more_classes as u64));
    }
    text.push_str("\n</details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn told(report: &HeapReport, more: (bool, usize)) -> String {
        let mut out = Vec::new();
        render(report, more, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_code_and_what_is_left_out_is_told() {
        let mut report = synthetic::heap(2);
        let text = told(&report, (false, 0));
        for parts in [
            "## What holds most of the heap\n",
            "large is not leaking",
            "No sample speaks for 1.0 MiB of it.",
        ] {
            assert!(text.contains(parts), "{text}");
        }
        assert!(
            text.contains("&lt;/script&gt;") && !text.contains("More hold less"),
            "{text}"
        );
        assert!(!text.contains("are in other formats"), "{text}");
        report.suspects[0].coverage.unsampled_bytes = 0;
        report.suspects[1].coverage.unsampled_bytes = 0;
        let text = told(&report, (true, 2));
        assert!(
            text.contains("More hold less (`--top N` shows more)."),
            "{text}"
        );
        assert!(text.contains("and 2 more classes"), "{text}");
        assert!(!text.contains("No sample speaks for"), "{text}");
    }

    #[test]
    fn a_comment_has_room_for_a_long_report() {
        let report = synthetic::heap(1000);
        let text = told(&report, (false, 0));
        assert!(
            text.contains("suspects are in other formats."),
            "{}",
            text.len()
        );
        assert!(!told(&synthetic::heap(1), (false, 0)).contains("suspects are in other formats."));
    }
}
