//! The report of one dump as Markdown: a table of the largest holders, folded details of each, then threads, waste and
//! classes.

use std::fmt::Write as _;
use std::io::{self, Write};

use heapdiff_diff::HeapReport;
use heapdiff_diff::sentence::Verdict;
use heapdiff_units::{Size, grouped};

use super::{
    Comment, all_details, code, cut, frames, prose, table, table_of_classes, table_of_suspects,
    warnings,
};
use crate::kept;
use crate::tables::{self, ROWS};
use crate::view::DumpReport;

/// Writes the report.
///
/// # Errors
/// Returns an error if the stream fails.
pub(crate) fn render(whole: &DumpReport, out: &mut dyn Write) -> io::Result<()> {
    let report = &whole.data;
    let mut text = Comment("## What holds most of the heap\n\n".to_owned());
    let info = &report.snapshot;
    let _ = writeln!(
        text,
        "{}: **{}** reachable, {} objects.\n",
        code(&info.path),
        Size(info.reachable_bytes),
        grouped(info.reachable_objects)
    );
    warnings(report.warnings.iter().chain(&info.warnings), &mut text);
    if let Some(died) = &report.died {
        let _ = writeln!(text, "> {}\n", prose(&cut(&kept::error_sentence(died))));
        frames(&died.frames, &mut text.0);
    }
    let _ = writeln!(
        text,
        "{}.\n",
        prose(&kept::sentence(report, whole.more.left_out))
    );
    suspects(report, whole.more.more_suspects, &mut text);
    for rows in [tables::threads(report, ROWS), tables::waste(report, ROWS)] {
        if !rows.rows.is_empty() {
            table(&rows, usize::MAX, &mut text);
            text.0.push('\n');
        }
    }
    let classes = tables::classes(report, usize::MAX, false);
    table_of_classes(&classes, whole.more.more_classes, "", &mut text);
    text.write(out)
}

fn suspects(report: &HeapReport, more: bool, text: &mut Comment) {
    if report.suspects.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}.\n", prose(&Verdict::NoLeak.to_string()));
    table_of_suspects(&report.suspects, report.snapshot.reachable_bytes, text);
    if more {
        text.0 += "Places that retain less are not shown (`--top N` shows more).\n\n";
    }
    all_details(&report.suspects, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn rendered(report: &HeapReport, (more_suspects, more_classes): (bool, usize)) -> String {
        let mut whole = crate::tests::heap_report(report.clone());
        whole.more.more_suspects = more_suspects;
        whole.more.more_classes = more_classes;
        let mut out = Vec::new();
        render(&whole, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_code_and_omissions_are_reported() {
        let mut report = synthetic::heap(2);
        let text = rendered(&report, (false, 0));
        for parts in [
            "## What holds most of the heap\n",
            "a large object need not be a leak",
            "1.0 MiB of the retained size is not covered by samples.",
        ] {
            assert!(text.contains(parts), "{text}");
        }
        assert!(
            text.contains("&lt;/script&gt;") && !text.contains("Places that retain less"),
            "{text}"
        );
        assert!(!text.contains("Use another output format"), "{text}");
        report.suspects[0].coverage.unsampled_bytes = 0;
        report.suspects[1].coverage.unsampled_bytes = 0;
        let text = rendered(&report, (true, 2));
        assert!(
            text.contains("Places that retain less are not shown (`--top N` shows more)."),
            "{text}"
        );
        assert!(text.contains("and 2 more classes"), "{text}");
        assert!(!text.contains("not covered by samples"), "{text}");
    }

    #[test]
    fn a_comment_has_room_for_a_long_report() {
        let report = synthetic::heap(1000);
        let text = rendered(&report, (false, 0));
        assert!(text.contains("see the details of "), "{}", text.len());
        assert!(!rendered(&synthetic::heap(1), (false, 0)).contains("see the details of "));
        let mut report = synthetic::heap(1000);
        let huge = "é`|@<".repeat(400);
        report.warnings = vec![huge.clone(); 9];
        report.threads[0].name = Some(huge.clone());
        report.classes = vec![report.classes[0].clone(); 9000];
        for suspect in &mut report.suspects {
            suspect.holder.clone_from(&huge);
            suspect.path = vec![huge.clone(); 60];
        }
        let text = rendered(&report, (false, 0));
        assert!(text.len() < 65_536, "{}", text.len());
    }
}
