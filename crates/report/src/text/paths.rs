//! Prints paths from GC roots as a tree. The indentation increases only after a branch.

use heapdiff_model::paths::{Alternatives, Hidden, PathLine, PathsReport};
use heapdiff_units::{Size, counted, grouped};

use super::snapshot;
use crate::document::{Document, Span, Tone, WIDTH};
use crate::printable::printable;
use crate::view::Viewed;

/// Width of the number of selected objects, in columns.
const NUMBER: usize = 12;
/// Number of columns between the number of selected objects and the path.
const GAP: usize = 2;
/// The reference from a class loader to a class that it defined.
const LOADED: &str = "<loaded class>";

pub(crate) fn build(report: &Viewed<PathsReport>, doc: &mut Document) {
    snapshot::heading(&report.snapshot, doc);
    doc.line(format!(
        "paths to {selector}: {objects}, {bytes}",
        selector = report.selector,
        objects = counted(report.selected.objects, "object"),
        bytes = Size(report.selected.shallow_bytes)
    ));
    if !report.excluded.is_empty() {
        let excluded = report.excluded.join(", ");
        doc.line(format!("without {}", printable(&excluded)));
    }
    if report.without_path > 0 {
        let few = counted(report.without_path, "object");
        let verb = if report.without_path == 1 {
            "has"
        } else {
            "have"
        };
        doc.line(if report.excluded.is_empty() {
            let why = snapshot::unheld_phrase(&report.view);
            format!("{few} {verb} no path: {why}")
        } else {
            format!("{few} {verb} no other path")
        });
    }
    doc.gap();
    if report.tree.is_empty() && report.hidden.lines == 0 {
        return;
    }
    tree(&report.tree, report.hidden, doc);
    if let Some(found) = &report.alternatives {
        alternatives(found, report.selected.objects, doc);
    }
}

fn tree(lines: &[PathLine], hidden: Hidden, doc: &mut Document) {
    doc.note(format!("{:>NUMBER$}  path", "objects"));
    let mut above: Vec<Above> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        while above.len() > line.depth as usize {
            close(&mut above, doc);
        }
        let level = above.last().map_or(0, |a| a.level_below);
        self::line(line, level, doc);
        let below = lines[i + 1..]
            .iter()
            .take_while(|next| next.depth > line.depth)
            .filter(|next| next.depth == line.depth + 1);
        let branches = below.count() + usize::from(line.hidden.lines > 0) > 1;
        above.push(Above {
            level_below: level + usize::from(branches),
            hidden: line.hidden,
        });
    }
    while !above.is_empty() {
        close(&mut above, doc);
    }
    more(hidden, 0, doc);
}

fn alternatives(found: &Alternatives, selected: u64, doc: &mut Document) {
    doc.gap();
    if found.held_by_roots > 0 {
        let directly = counted(found.held_by_roots, "object");
        doc.line(format!("GC roots hold {directly} directly"));
    }
    let paths = counted(found.count, "path");
    match (found.count, found.more) {
        (0, _) => return,
        (1, false) => doc.line("all paths have a common reference".to_owned()),
        (_, more) => {
            let more = if more {
                "there are more"
            } else {
                "there are no more"
            };
            doc.line(format!("{paths} without a common reference ({more}):"));
            doc.gap();
            tree(&found.tree, found.hidden, doc);
            doc.gap();
        }
    }
    let freed = match selected - found.held_by_roots {
        _ if found.held_by_roots > 0 => "the other objects",
        1 => "the object",
        _ => "the objects",
    };
    let Some(cut) = &found.cut else {
        doc.line(format!(
            "at least four references must be removed to free {freed}"
        ));
        return;
    };
    doc.line(match cut.len() {
        1 => format!("remove this reference to free {freed}:"),
        count => format!("remove these {count} references to free {freed}:"),
    });
    for line in cut {
        let field = field(&line.via);
        let source = format!("  {} @ {} {field}", line.class, line.id);
        doc.line(format!("{source} = {} @ {}", line.to_class, line.to_id));
    }
    if cut.iter().any(|line| line.via == LOADED) {
        doc.line(format!(
            "the JVM removes {LOADED} only when it unloads the class loader"
        ));
    }
}

/// A line of the tree that was written, but whose descendants are not all written yet.
struct Above {
    /// Indentation of the children of this line, in levels.
    level_below: usize,
    hidden: Hidden,
}

fn close(above: &mut Vec<Above>, doc: &mut Document) {
    if let Some(line) = above.pop() {
        more(line.hidden, line.level_below, doc);
    }
}

fn line(line: &PathLine, level: usize, doc: &mut Document) {
    let mut text = match (&line.root, &line.via) {
        (Some("static"), _) => String::new(),
        (Some(root), _) => format!("({root}) "),
        (None, Some(via)) => format!("{} = ", field(via)),
        (None, None) => String::new(),
    };
    if line.strength != "strong" {
        text = format!("({} reference) {text}", line.strength);
    }
    text += &line.class;
    match &line.id {
        Some(id) => text += &format!(" @ {id}"),
        None => text += &format!(" x {}", grouped(line.objects)),
    }
    if let Some(loader) = &line.loader {
        text += &format!(" (loader: {loader})");
    }
    if line.folded {
        text += " (a chain of these objects)";
    }
    let indent = level.min(20) * 2;
    let number = format!("{:>NUMBER$}  {:indent$}", grouped(line.selected), "");
    let tone = if line.selected_here > 0 {
        Tone::Bold
    } else {
        Tone::Plain
    };
    let text = Span::new(tone, text).within(WIDTH - NUMBER - GAP - indent);
    doc.spans([number.into(), text]);
}

/// Returns the name of a field without its class, which the line above contains: `.entries`. References that are not
/// fields are returned unchanged.
fn field(via: &str) -> String {
    match via.rsplit_once('.') {
        Some((_, name)) if !via.starts_with(['[', '<']) => format!(".{name}"),
        _ => via.to_owned(),
    }
}

fn more(hidden: Hidden, level: usize, doc: &mut Document) {
    if hidden.lines == 0 {
        return;
    }
    let indent = level.min(20) * 2;
    doc.note(format!(
        "{:>NUMBER$}  {:indent$}and {} (--top N shows more)",
        grouped(hidden.selected),
        "",
        counted(hidden.lines, "more line")
    ));
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use heapdiff_model::paths::CutLine;

    use super::*;
    use crate::report::Report;
    use heapdiff_model::show::SelectedTotals;

    #[test]
    fn missing_paths_and_omissions_are_reported() {
        let of = |without_path: u64, lines: u64| {
            tests::text(&Report::Paths(
                PathsReport {
                    schema: PathsReport::SCHEMA,
                    snapshot: tests::snapshot(),
                    selector: "com.acme.Entry".to_owned(),
                    selected: SelectedTotals {
                        objects: 9,
                        shallow_bytes: 900,
                    },
                    without_path,
                    tree: vec![PathLine {
                        root: Some("static"),
                        strength: "strong",
                        class: "com.acme.Registry".to_owned(),
                        objects: 1,
                        selected: 9 - without_path,
                        selected_bytes: 100,
                        hidden: Hidden { lines, selected: 3 },
                        ..PathLine::default()
                    }],
                    ..PathsReport::default()
                }
                .into(),
            ))
        };
        let why = "no path: unreachable, or reachable only through references excluded by --refs\n";
        assert!(of(1, 0).contains(&format!("1 object has {why}")));
        assert!(of(2, 0).contains(&format!("2 objects have {why}")));
        assert!(!of(0, 2).contains("reachable only through"));
        assert!(of(0, 2).contains("  and 2 more lines (--top N shows more)\n"));
        assert!(!of(2, 0).contains("--top N shows more"));
    }

    #[test]
    fn alternatives_report_roots_and_large_cuts() {
        let text = |found: Alternatives| {
            tests::text(&Report::Paths(
                PathsReport {
                    snapshot: tests::snapshot(),
                    selected: SelectedTotals {
                        objects: 9,
                        shallow_bytes: 900,
                    },
                    alternatives: Some(found),
                    tree: vec![PathLine::default()],
                    ..PathsReport::default()
                }
                .into(),
            ))
        };
        let large = text(Alternatives {
            count: 2,
            more: true,
            held_by_roots: 1,
            ..Alternatives::default()
        });
        assert!(large.contains("GC roots hold 1 object directly\n"));
        assert!(large.contains("2 paths without a common reference (there are more):\n"));
        let end = "at least four references must be removed to free the other objects\n";
        assert!(large.contains(end));
        let rooted = text(Alternatives {
            held_by_roots: 9,
            cut: Some(Vec::new()),
            ..Alternatives::default()
        });
        assert!(rooted.ends_with("GC roots hold 9 objects directly\n"));
        let class = text(Alternatives {
            count: 2,
            cut: Some(vec![CutLine {
                via: LOADED.to_owned(),
                ..CutLine::default()
            }]),
            ..Alternatives::default()
        });
        let end = "the JVM removes <loaded class> only when it unloads the class loader\n";
        assert!(class.ends_with(end));
    }

    #[test]
    fn fields_are_shown_without_their_class() {
        assert_eq!(field("com.acme.Foo.entries"), ".entries");
        assert_eq!(field("[12]"), "[12]");
        assert_eq!(field("<class loader>"), "<class loader>");
    }
}
