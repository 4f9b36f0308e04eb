//! Markdown for a comment on a pull request: a table of suspects, folded details of each, and a table of classes.
//!
//! Names from the heap are written in code spans, in code blocks, or escaped. So `Map<K,V>` shows as it is, and no name
//! is markup or mentions a user.

mod heap;
mod room;

use std::fmt::Write as _;
use std::io::{self, Write};

use heapdiff_diff::sentence::Samples;
use heapdiff_diff::{ClassGrowth, Frames, Report, Shown, SnapshotInfo, Suspect};
use heapdiff_units::{Size, counted, grouped, signed, signed_size};

use crate::document::Column::{Figure, Name, Word};
use crate::document::Table;
use crate::printable::{printable, shorten_middle};
use crate::report::growth;
use crate::text::known_leak;
use crate::view::DiffReport;
use crate::{coverage, kept, series, size, verdict};
pub(crate) use heap::render as render_heap;
use room::{Comment, DETAILS, HEAD, MOST, TABLE};

/// Maximum number of characters of a name.
const NAME: usize = 200;
/// Maximum number of stacks per suspect.
const STACKS: usize = 3;
/// Maximum number of frames per stack.
const FRAMES: usize = 16;
/// Maximum number of characters of a sentence.
const SENTENCE: usize = 1000;
/// Maximum number of steps of a path.
const STEPS: usize = 40;
/// Maximum number of dumps whose names are shown.
const PATHS: usize = 8;

/// Writes the report.
///
/// # Errors
/// Returns an error if the stream fails.
pub(crate) fn render(report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    let (undecided, more) = (report.unchecked_gates_reason(), &report.more);
    let has_more = !more.more_suspects.is_empty();
    let mut text = Comment("## Heap growth\n\n".to_owned());
    for (suspect, headline) in crate::headlines(report) {
        let verdict = verdict(suspect).to_uppercase();
        let headline = prose(&cut(&headline.to_string()));
        let _ = writeln!(text, "**{verdict}** {headline}\n");
    }
    let delta = &report.delta;
    let (objects, bytes) = (signed(delta.objects), signed_size(delta.shallow_bytes));
    let changed = match (delta.objects, delta.shallow_bytes) {
        (0, 0) => "The size of the reachable heap did not change".to_owned(),
        _ => format!("The reachable heap changed by **{bytes}** ({objects} objects)"),
    };
    let _ = writeln!(text, "{changed}: {}.\n", paths(report));
    if let Some(end) = crate::outlook::of_dumps(report) {
        paragraph(&end, &mut text.0);
    }
    warnings(&report.warnings, &mut text);
    if undecided.is_some() {
        let _ = writeln!(text, "> **Warning:** {}\n", prose(crate::UNDECIDED));
    }
    if let Some(explained) = crate::explained::sentence(report) {
        paragraph(&explained, &mut text.0);
    }
    if report.suspects.is_empty()
        && !has_more
        && let Some(nothing) = crate::explained::no_suspects_sentence(report)
    {
        paragraph(&nothing, &mut text.0);
    }
    table_of_suspects(&report.suspects, 0, &mut text);
    if has_more {
        text.0 += "Suspects that grew less are not shown (`--top N` shows more).\n\n";
    }
    if !more.known.is_empty() {
        let known = counted(more.known.len() as u64, "suspect");
        let _ = writeln!(text, "{known} left out as known growth.\n");
    }
    if let Some(left_out) = crate::explained::left_out(report) {
        paragraph(&left_out, &mut text.0);
    }
    all_details(&report.suspects, &mut text);
    classes(&report.classes, more.more_classes, &mut text);
    text.write(out)
}

/// Returns the names of the dumps. If there are more than [`PATHS`] dumps, returns the names of the first seven and of
/// the last, and the number of dumps between them.
fn paths(report: &Report) -> String {
    let all = &report.snapshots;
    let code = |s: &SnapshotInfo| code(&s.path);
    let (first, last) = all.split_at(all.len().min(PATHS - 1));
    let mut paths: Vec<String> = first.iter().map(code).collect();
    if last.len() > 1 {
        let between = last.len() as u64 - 1;
        paths.push(format!("{} …", counted(between, "more dump")));
    }
    paths.extend(last.last().map(code));
    paths.join(" → ")
}

/// Writes as many warnings as fit, and the number of warnings that do not fit.
fn warnings<'a>(warnings: impl IntoIterator<Item = &'a String>, text: &mut Comment) {
    let line = |warning: &String| format!("> **Warning:** {}\n\n", prose(&cut(warning)));
    let left_out = text.add_all(HEAD, warnings.into_iter(), line);
    if left_out > 0 {
        let more = counted(left_out, "more warning");
        let _ = writeln!(text, "> Other output formats show {more}.\n");
    }
}

/// Writes a table with as many suspects as fit, and the number of suspects that do not fit.
fn table_of_suspects(suspects: &[Suspect], reachable: u64, text: &mut Comment) {
    let Some(first) = suspects.first() else {
        return;
    };
    let [verdict, size] = if first.is_from_single_dump() {
        [("retained", Figure), ("of the heap", Figure)]
    } else {
        [("verdict", Word), ("grew by", Figure)]
    };
    let names = [("holder", Name), ("content", Name)];
    let columns = [("#", Figure), verdict, size, names[0], names[1]];
    let row = |suspect: &Suspect| {
        let [verdict, size] = figures(suspect, reachable);
        let (holder, class) = (suspect.holder.clone(), suspect.class.clone());
        vec![suspect.rank.to_string(), verdict, size, holder, class]
    };
    let left_out = table(&Table::new(&columns, suspects.iter().map(row)), TABLE, text);
    text.0.push('\n');
    if left_out > 0 {
        let more = counted(left_out, "more suspect");
        let _ = writeln!(
            text,
            "{more} not shown, because the comment would be too long.\n"
        );
    }
}

/// Returns the texts of two cells in a suspect's row of the table. In a comparison, these are the verdict and the
/// growth. In the report of one dump, they are the retained size and its percentage of the reachable bytes.
fn figures(suspect: &Suspect, reachable: u64) -> [String; 2] {
    if !suspect.is_from_single_dump() {
        let grown = signed_size(suspect.growth.retained_bytes);
        return [verdict(suspect).to_owned(), grown];
    }
    let outside = match suspect.off_heap() {
        0 => String::new(),
        bytes => format!(" + {} off heap", Size(bytes)),
    };
    let retained = size(suspect.retained()) + &outside;
    [retained, kept::part(suspect.retained(), reachable)]
}

/// Writes the rows of a table that fit before position `end`. Returns the number of rows that do not fit.
fn table(table: &Table, end: usize, text: &mut Comment) -> u64 {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let align = table.columns.iter().map(|&(_, kind)| match kind {
        Figure => "--:|",
        _ => "---|",
    });
    let align: String = align.collect();
    text.0 += &line(table.columns.iter().map(|(name, _)| &**name).collect());
    text.0 += &format!("|{align}\n");
    let row = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&table.columns)
            .map(|(text, &(_, kind))| match kind {
                Figure | Word => text.clone(),
                _ => cell(text),
            });
        let cells: Vec<String> = cells.collect();
        line(cells.iter().map(String::as_str).collect())
    };
    text.add_all(end, table.rows.iter(), row)
}

/// Writes the details of as many suspects as fit, and the number of suspects that do not fit.
fn all_details(suspects: &[Suspect], text: &mut Comment) {
    let left_out = text.add_all(DETAILS, suspects.iter(), details);
    if left_out > 0 {
        let _ = writeln!(
            text,
            "Use another output format to see the details of {}.\n",
            counted(left_out, "suspect")
        );
    }
}

fn details(suspect: &Suspect) -> String {
    let text = &mut String::new();
    let holder = html(&suspect.holder);
    let (verdict, bytes) = if suspect.is_from_single_dump() {
        (String::new(), size(suspect.retained()))
    } else {
        let verdict = format!("{}: ", verdict(suspect));
        (verdict, signed_size(suspect.growth.retained_bytes))
    };
    let rank = suspect.rank;
    let _ = writeln!(
        text,
        "<details><summary>{rank}. {verdict}<code>{holder}</code> {bytes}</summary>\n"
    );
    for reason in &suspect.reasons {
        let _ = writeln!(text, "- {}", prose(&cut(reason)));
    }
    let _ = match suspect.objects[..] {
        [objects] => writeln!(text, "- {}", counted(objects, "object")),
        _ => {
            let objects = series(&suspect.objects, " → ", grouped);
            let retained = series(&suspect.retained_bytes, " → ", size);
            writeln!(text, "- objects {objects}, retained {retained}")
        }
    };
    let _ = writeln!(text, "- kept alive by {}", code(&suspect.root));
    text.push('\n');
    steps(&suspect.path, text);
    allocated_in(suspect, text);
    if suspect.stacks.is_empty() {
        if !suspect.allocated_at.is_empty() {
            paragraph(&Samples::NotTracked.to_string(), text);
        }
        for at in suspect.allocated_at.iter().take(STACKS) {
            let (bytes, class) = (Size(at.estimated_bytes), code(&suspect.class));
            let samples = counted(at.samples, "sample");
            let _ = writeln!(text, "{bytes} of {class} allocated at ({samples}):\n");
            frames(&at.frames, text);
        }
    } else {
        for doubt in coverage::doubts(suspect) {
            paragraph(&doubt.to_string(), text);
        }
    }
    let more = suspect.stacks.len().saturating_sub(STACKS) as u64;
    if more > 0 {
        let _ = writeln!(
            text,
            "Other output formats show {}.\n",
            counted(more, "more stack")
        );
    }
    if let Some(labels) = &suspect.labels {
        let _ = writeln!(text, "{}.\n", prose(&cut(&coverage::labels(labels))));
    }
    if let Some(work) = &suspect.work {
        let _ = writeln!(text, "Pending work: {}.\n", prose(&cut(work)));
    }
    if let Some(known) = &suspect.known {
        let sentence = prose(&cut(&known_leak(known)));
        let _ = writeln!(text, "Known leak: {sentence}. <{}>\n", cut(&known.link));
    }
    if let Some(fix) = &suspect.likely_fix {
        let _ = writeln!(text, "Likely fix: {}.\n", prose(&cut(fix)));
    }
    if !suspect.next.is_empty() {
        block(
            suspect.next.iter().map(|c| name_on_one_line(c)).collect(),
            text,
        );
    }
    text.push_str("</details>\n\n");
    std::mem::take(text)
}

/// Writes the first stacks that allocated the content.
fn allocated_in(suspect: &Suspect, text: &mut String) {
    if let Some(joined) = &suspect.joined {
        let _ = writeln!(text, "{}\n", prose(&cut(&crate::capitalized(joined))));
    }
    if let Some(through) = &suspect.allocated_through {
        let share = crate::share(through, suspect.stacks.len());
        let _ = writeln!(
            text,
            "Allocated through {}: {share}.\n",
            code(&through.frame)
        );
    }
    for stack in suspect.stacks.iter().take(STACKS) {
        // An interval without width means an exact figure: the dump records the stack of each object.
        let basis = if stack.ci95 == [stack.estimated_bytes; 2] {
            counted(stack.estimated_objects, "object")
        } else {
            format!("estimated from {}", counted(stack.samples, "sample"))
        };
        let (bytes, class) = (Size(stack.estimated_bytes), code(&stack.class));
        let _ = match coverage::probability(stack) {
            Some(probability) => writeln!(text, "{class} allocated at, {probability}:\n"),
            None => writeln!(text, "{bytes} of {class} allocated at ({basis}):\n"),
        };
        frames(&stack.frames, text);
    }
}

fn frame(shown: &Shown<'_>) -> String {
    match shown {
        Shown::Frame(frame) => name_on_one_line(frame),
        Shown::Folded(folded) => folded.to_string(),
    }
}

/// Writes the first steps of a path.
fn steps(path: &[String], text: &mut String) {
    let mut lines: Vec<String> = path
        .iter()
        .take(STEPS)
        .map(|step| name_on_one_line(step))
        .collect();
    if path.len() > STEPS {
        lines.push(format!("… and {} more", path.len() - STEPS));
    }
    block(lines, text);
}

fn classes(classes: &[ClassGrowth], more: usize, text: &mut Comment) {
    let columns = [
        ("objects", Figure),
        ("shallow", Figure),
        ("retained", Figure),
        ("class", Name),
    ];
    let rows = classes.iter().map(|class| {
        vec![
            signed(growth(&class.objects)),
            signed_size(growth(&class.shallow_bytes)),
            signed_size(growth(&class.retained_bytes)),
            class.class.clone(),
        ]
    });
    let table = Table::new(&columns, rows).titled("Classes, by growth of shallow size");
    table_of_classes(&table, more, " that changed", text);
}

/// Writes a table with as many classes as fit, and the number of classes that do not fit.
fn table_of_classes(classes: &Table, more: usize, of: &str, text: &mut Comment) {
    if classes.rows.is_empty() {
        return;
    }
    let title = classes.title;
    let _ = writeln!(text, "<details><summary>{title}</summary>\n");
    let more = more as u64 + table(classes, MOST, text);
    if more > 0 {
        let _ = writeln!(text, "\nand {}{of}", counted(more, "more class"));
    }
    text.0 += "\n</details>\n";
}

/// Writes a sentence as a paragraph.
fn paragraph(sentence: &str, text: &mut String) {
    let _ = writeln!(text, "{}\n", crate::capitalized(sentence));
}

/// Removes the middle of a sentence that is too long.
fn cut(sentence: &str) -> String {
    shorten_middle(sentence, SENTENCE).into_owned()
}

/// Returns a name on one line. The middle of a long name is removed.
fn name_on_one_line(name: &str) -> String {
    shorten_middle(&printable(name), NAME).into_owned()
}

/// Returns the length of the longest sequence of backticks in a text.
fn ticks(text: &str) -> usize {
    let runs = text.split(|c| c != '`');
    runs.map(str::len).max().unwrap_or(0)
}

/// Returns a code span. Its fence has more backticks than any sequence of backticks in the name.
fn code(name: &str) -> String {
    let name = name_on_one_line(name);
    let fence = "`".repeat(ticks(&name) + 1);
    match name.starts_with(['`', ' ']) || name.ends_with(['`', ' ']) {
        true => format!("{fence} {name} {fence}"),
        false if name.is_empty() => String::new(),
        false => format!("{fence}{name}{fence}"),
    }
}

/// Returns a code span for a cell of a Markdown table. In a table, a vertical bar ends the cell even inside code, so
/// vertical bars are escaped.
fn cell(name: &str) -> String {
    code(name).replace('|', "\\|")
}

/// Writes the first frames of a stack.
fn frames(frames: &[String], text: &mut String) {
    let (shown, more) = Frames::Folded(FRAMES).of(frames);
    let mut lines: Vec<String> = shown.iter().map(frame).collect();
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    if shown.is_empty() {
        lines.push(Samples::NoStack.to_string());
    }
    block(lines, text);
}

/// Writes a code block. Its fence has more backticks than any sequence of backticks in a line.
fn block(lines: Vec<String>, text: &mut String) {
    let longest = lines.iter().map(|l| ticks(l)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(text, "{fence}text\n{}\n{fence}\n", lines.join("\n"));
}

/// Escapes a name for HTML.
fn html(name: &str) -> String {
    let mut text = String::new();
    for c in name_on_one_line(name).chars() {
        match c {
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '"' => text += "&quot;",
            '@' => text += "@<!-- -->",
            _ => text.push(c),
        }
    }
    text
}

/// Escapes a sentence that may contain names. No name in the result acts as markup or mentions a GitHub user.
fn prose(sentence: &str) -> String {
    let mut text = String::new();
    for c in printable(sentence).chars() {
        match c {
            '@' => text += "@<!-- -->",
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&'
            | '!' => {
                text.push('\\');
                text.push(c);
            }
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use heapdiff_diff::Verdict;

    use super::*;
    use crate::synthetic::{HOSTILE, largest_page_report, report};
    use crate::tests::{diff_report, suspect};
    use crate::view::DiffView;

    fn rendered(report: &Report) -> String {
        let mut out = Vec::new();
        render(&diff_report(report.clone()), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_code() {
        assert_eq!(code("Map<K,V>"), "`Map<K,V>`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(cell("a|b"), "`a\\|b`");
        assert_eq!(prose("a_b <c>"), "a\\_b \\<c\\>");
        assert_eq!(html("<@x>"), "&lt;@<!-- -->x&gt;");
        let mut text = String::new();
        block(vec!["```".into()], &mut text);
        assert_eq!(text, "````text\n```\n````\n\n");
    }

    #[test]
    fn hostile_names_stay_names() {
        let mut suspect = suspect(1, HOSTILE, Verdict::Leak, 4096);
        suspect
            .reasons
            .push(format!("held by {HOSTILE}\n<img src=x>"));
        suspect.class = HOSTILE.into();
        let text = rendered(&report(vec![suspect], 2));
        // `<script>` may appear only in code.
        let mut fenced = false;
        for line in text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            if fenced {
                continue;
            }
            // The name contains a backtick, so two backticks enclose its code span.
            let outside: String = line.split("``").step_by(2).collect();
            assert!(!outside.replace("\\<", "").contains("<script"), "{line}");
            assert!(!outside.replace("\\<", "").contains("<img"), "{line}");
            assert!(!line.contains('\u{202e}'));
        }
        assert!(!fenced);
        for row in text.lines().filter(|l| l.starts_with("| 1 ")) {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 6, "{row}");
        }
    }

    #[test]
    fn a_comment_has_room_for_a_large_report() {
        let (mut report, _) = largest_page_report(10, 1);
        report.classes.truncate(15);
        for suspect in &mut report.suspects {
            suspect.path = vec![format!("com.acme.{}.field", "x".repeat(500)); 30];
        }
        let text = rendered(&report);
        assert!((30_000..65_536).contains(&text.len()), "{}", text.len());
        assert!(text.contains("Use another output format"));
        report.suspects.truncate(1);
        assert!(!rendered(&report).contains("Use another output format"));
    }

    #[test]
    fn a_comment_has_room_for_any_report() {
        let huge = "é`|@<".repeat(400);
        let (mut report, _) = largest_page_report(500, 1);
        report.classes.truncate(1000);
        for suspect in &mut report.suspects {
            suspect.holder.clone_from(&huge);
            suspect.class.clone_from(&huge);
            suspect.root.clone_from(&huge);
            suspect.reasons = vec![huge.clone(); 3];
            suspect.path = vec![huge.clone(); 60];
            suspect.stacks.truncate(1);
            suspect.stacks[0].frames = vec![huge.clone(); 40];
        }
        report.snapshots = vec![report.snapshots[0].clone(); 30];
        for snapshot in &mut report.snapshots {
            snapshot.path.clone_from(&huge);
        }
        report.warnings = vec![huge.clone(); 50];
        for class in &mut report.classes {
            class.class.clone_from(&huge);
        }
        let text = rendered(&report);
        assert!(text.len() < 65_536, "{}", text.len());
        for part in [
            "> Other output formats show ",
            "more suspects not shown, because the comment would be too long.",
            "see the details of ",
            " more classes that changed",
            "22 more dumps …",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("\n</details>\n"));
        let mut small = super::tests::report(vec![suspect(1, "a.B.c", Verdict::Leak, 4096)], 2);
        let text = rendered(&small);
        assert!(!text.contains("… and 20 more"), "{text}");
        for part in [
            "> Other output formats show ",
            "because the comment would be too long.",
            "see the details of ",
            " more classes that changed",
            " more dumps …",
        ] {
            assert!(!text.contains(part), "{part}: {text}");
        }
        small.suspects[0].path = vec!["a.B.next".to_owned(); 60];
        assert!(rendered(&small).contains("… and 20 more"));
    }

    #[test]
    fn changes_and_omissions_are_reported() {
        let told = |report: &Report, more: DiffView| {
            let mut out = Vec::new();
            let mut report = diff_report(report.clone());
            report.more = more;
            render(&report, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let grown = report(vec![suspect(1, "a.B.c", Verdict::Leak, 4096)], 2);
        let mut level = report(Vec::new(), 0);
        (level.delta.objects, level.delta.shallow_bytes) = (0, 0);
        level.explained_bytes = 0;
        let one = || suspect(1, "a.B.c", Verdict::Leak, 4096);
        let left_out = || DiffView {
            more_suspects: vec![one()],
            known: vec![(one(), String::new())],
            ..DiffView::default()
        };
        // Each sentence is tested with two reports: one that must contain it, and one that must not.
        let (grew, same) = (
            told(&grown, DiffView::default()),
            told(&level, DiffView::default()),
        );
        let (cut, more) = (told(&grown, left_out()), told(&level, left_out()));
        let of_classes = DiffView {
            more_classes: 4,
            ..DiffView::default()
        };
        let fewer = told(&grown, of_classes);
        for (sentence, with, without) in [
            (
                "The size of the reachable heap did not change",
                &same,
                &grew,
            ),
            ("The reachable heap changed by **", &grew, &same),
            ("No significant growth found.", &same, &grew),
            ("No significant growth found.", &same, &more),
            ("| # | verdict | grew by | holder | content |", &grew, &same),
            (
                "Suspects that grew less are not shown (`--top N` shows more).",
                &cut,
                &grew,
            ),
            ("1 suspect left out as known growth.", &cut, &grew),
            ("- kept alive by `static com.acme.Registry`", &grew, &same),
            ("Classes, by growth of shallow size", &grew, &same),
            ("and 4 more classes that changed", &fewer, &grew),
        ] {
            assert!(with.contains(sentence), "{sentence}: {with}");
            assert!(!without.contains(sentence), "{sentence}: {without}");
        }
    }

    #[test]
    fn stacks_are_shown_as_far_as_samples_cover_them() {
        let told = |change: &dyn Fn(&mut Suspect)| {
            let mut suspect = suspect(1, "a.B.c", Verdict::Leak, 100_000);
            change(&mut suspect);
            rendered(&report(vec![suspect], 0))
        };
        let runtime = |count: usize| {
            move |s: &mut Suspect| {
                let own = s.stacks[0].frames.clone();
                let frames = std::iter::repeat_n("java.util.HashMap.put(HashMap.java:1)", count);
                s.stacks[0].frames = frames.map(str::to_owned).chain(own).collect();
            }
        };
        let plain = told(&|_| ());
        let none = told(&|s| s.stacks.clear());
        let silent = |bytes: u64| told(&|s| s.coverage.unsampled_bytes = bytes);
        let frameless = told(&|s| s.stacks[0].frames.clear());
        let estimated = told(&|s| s.stacks[0].ci95[0] -= 1);
        assert!(plain.contains("of `com.acme.Entry` allocated at (12,500 objects):"));
        for (sentence, with, without) in [
            (
                "of `com.acme.Entry` allocated at (estimated from 10 samples):",
                &estimated,
                &plain,
            ),
            ("of `com.acme.Entry` allocated at", &plain, &none),
            ("(no stack was recorded)", &frameless, &plain),
            ("… 1 JDK frame", &told(&runtime(2)), &told(&runtime(3))),
            ("… 2 JDK frames", &told(&runtime(3)), &told(&runtime(2))),
            (
                "9.8 KiB of the growth is not covered by samples.",
                &silent(10_000),
                &silent(900),
            ),
        ] {
            assert!(with.contains(sentence), "{sentence}: {with}");
            assert!(!without.contains(sentence), "{sentence}: {without}");
        }
    }
}
