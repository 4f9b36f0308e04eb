//! Prints wasted memory: a table of kinds, then each kind with examples and holders.

use heapdiff_diff::sentence::Waste;
use heapdiff_model::waste::WasteReport;
use heapdiff_model::waste::{WasteExample, WasteRow};
use heapdiff_units::{Size, counted, grouped, percent};

use super::snapshot;
use crate::document::Column::{Figure, Name};
use crate::document::{Column, Document, bold};
use crate::printable::{printable, shorten_middle};
use crate::tables::{change, last};
use crate::view::{Viewed, WasteView};

/// Maximum number of columns for a string.
const TEXT: usize = 48;

pub(crate) fn build(report: &Viewed<WasteReport, WasteView>, doc: &mut Document) {
    for snapshot in &report.snapshots {
        snapshot::heading(snapshot, doc);
    }
    let of = |dump: usize| report.snapshots[dump].reachable_bytes.unwrap_or(0);
    let last = report.snapshots.len().saturating_sub(1);
    let all = &report.waste.bytes_to_win;
    let size = Size(all[last]).to_string();
    let length = size.len();
    let share = percent(all[last], of(last));
    let savings = match last {
        0 => Waste::Savings { size, share },
        _ => Waste::SavingsSince {
            size,
            change: change(all),
            share,
        },
    };
    let sentence = savings.to_string();
    let (size, rest) = sentence.split_at(length);
    doc.gap();
    doc.spans([bold(size), rest.into()]);
    doc.gap();
    kinds(report, of(last), doc);
    let all = all[last];
    let mut has_little = false;
    for (at, row) in report.waste.kinds.iter().enumerate() {
        if is_worth_a_list(row, all) {
            let more_holders = report.more.more_holders.get(at).copied().unwrap_or(0);
            kind((row, more_holders), last > 0, doc);
        } else {
            has_little |= row.objects.iter().any(|&objects| objects > 0);
        }
    }
    if has_little {
        doc.gap();
        doc.note(Waste::SmallKinds);
    }
}

/// True if a kind of wasted memory gets its own section: its savings, or the change of its savings, are at least one
/// per cent of all savings.
fn is_worth_a_list(row: &WasteRow, all: u64) -> bool {
    let first = row.bytes_to_win.first().copied().unwrap_or(0);
    let last = last(&row.bytes_to_win);
    let most = last.max(last.abs_diff(first));
    most > 0 && most.saturating_mul(100) >= all
}

/// Returns the columns of a table, in this order: the savings, the change of the savings (only if there are several
/// dumps), and the columns in `middle`.
fn headings(several: bool, middle: &[(&'static str, Column)]) -> Vec<(&'static str, Column)> {
    let mut columns = vec![("savings", Figure)];
    columns.extend(several.then_some(("change", Figure)));
    columns.extend_from_slice(middle);
    columns
}

fn figures(several: bool, bytes: &[u64]) -> Vec<String> {
    let mut cells = vec![grouped(last(bytes))];
    cells.extend(several.then(|| change(bytes)));
    cells
}

fn kinds(report: &Viewed<WasteReport, WasteView>, all: u64, doc: &mut Document) {
    let several = report.snapshots.len() > 1;
    let columns = [
        ("of heap", Figure),
        ("objects", Figure),
        ("shallow bytes", Figure),
        ("kind", Name),
    ];
    let rows = report.waste.kinds.iter().map(|row| {
        let mut cells = figures(several, &row.bytes_to_win);
        cells.extend([
            percent(last(&row.bytes_to_win), all),
            grouped(last(&row.objects)),
            grouped(last(&row.shallow_bytes)),
            Waste::title(row.kind),
        ]);
        cells
    });
    doc.table(&headings(several, &columns), rows);
}

fn kind((row, more_holders): (&WasteRow, u64), several: bool, doc: &mut Document) {
    doc.gap();
    let groups = last(&row.groups);
    let of = match row.kind {
        "duplicate_strings" | "duplicate_arrays" | "duplicate_boxes" => {
            format!("with {}", counted(groups, "distinct value"))
        }
        _ => format!("of {}", counted(groups, "class")),
    };
    let mut name = Waste::title(row.kind);
    name[..1].make_ascii_uppercase();
    let count = counted(last(&row.objects), "object");
    doc.spans([bold(name), format!(": {count} {of}").into()]);
    if !row.examples.is_empty() {
        doc.gap();
        let columns = [
            ("savings", Figure),
            ("objects", Figure),
            ("shallow bytes", Figure),
            ("example", Name),
        ];
        let rows = row.examples.iter().map(|example| {
            vec![
                grouped(example.bytes_to_win),
                grouped(example.objects),
                grouped(example.shallow_bytes),
                example_phrase(example),
            ]
        });
        doc.table(&columns, rows);
        let more = groups.saturating_sub(row.examples.len() as u64);
        rest(more, doc);
    }
    if row.holders.is_empty() {
        return;
    }
    doc.gap();
    let rows = row.holders.iter().map(|holder| {
        let mut cells = figures(several, &holder.bytes_to_win);
        cells.extend([grouped(last(&holder.objects)), holder.holder.clone()]);
        cells
    });
    let columns = [("objects", Figure), ("held by", Name)];
    doc.table(&headings(several, &columns), rows);
    rest(more_holders, doc);
}

fn rest(more: u64, doc: &mut Document) {
    if more > 0 {
        doc.note(format!("and {} more (--top N shows more)", grouped(more)));
    }
}

/// Describes an example in a few words.
fn example_phrase(example: &WasteExample) -> String {
    let WasteExample { id, class, .. } = example;
    match (&example.text, example.length) {
        (Some(text), _) if class == "java.lang.String" => {
            let text = printable(text);
            format!("\"{}\" @ {id}", shorten_middle(&text, TEXT))
        }
        (Some(text), _) => format!("{class} {text} @ {id}"),
        (None, Some(length)) => {
            let element = class.strip_suffix("[]").unwrap_or(class);
            format!("{element}[{length}] @ {id}")
        }
        (None, None) => format!("{class}, such as {id}"),
    }
}

#[cfg(test)]
mod tests {
    use heapdiff_model::waste::{WasteGrowth, WasteHolderRow};

    use super::super::tests;
    use super::*;
    use crate::report::Report;

    fn row(kind: &'static str, bytes: Vec<u64>, more: u64) -> (WasteRow, u64) {
        let same = |n: u64| vec![n; bytes.len()];
        let row = WasteRow {
            kind,
            objects: same(8),
            shallow_bytes: same(400_000),
            groups: same(1 + more),
            examples: vec![WasteExample {
                id: "0x10".to_owned(),
                class: "byte[]".to_owned(),
                length: Some(16),
                text: None,
                objects: 8,
                shallow_bytes: 400_000,
                bytes_to_win: 1000,
            }],
            holders: vec![WasteHolderRow {
                holder: "com.acme.Cache.all".to_owned(),
                objects: same(8),
                bytes_to_win: same(1000),
            }],
            bytes_to_win: bytes,
        };
        (row, more)
    }

    fn example_phrase(rows: Vec<(WasteRow, u64)>, all: Vec<u64>) -> String {
        let (kinds, more_holders) = rows.into_iter().unzip();
        let mut report: Viewed<WasteReport, WasteView> = WasteReport {
            schema: WasteReport::SCHEMA,
            snapshots: all.iter().map(|_| tests::snapshot()).collect(),
            waste: WasteGrowth {
                bytes_to_win: all,
                kinds,
            },
        }
        .into();
        report.more.more_holders = more_holders;
        tests::text(&Report::Waste(Box::new(report)))
    }

    #[test]
    fn savings_are_shown_for_one_dump_and_for_several() {
        let one = example_phrase(vec![row("zero_arrays", vec![1 << 20], 0)], vec![1 << 20]);
        assert!(
            one.contains("\n1.0 MiB could be saved: 25.0% of the reachable heap\n"),
            "{one}"
        );
        assert!(
            one.contains("  savings  of heap") && !one.contains("change"),
            "{one}"
        );
        assert!(!one.contains("since the first dump"), "{one}");
        let rows = vec![row("zero_arrays", vec![1000, 1 << 20], 0)];
        let two = example_phrase(rows, vec![1000, 1 << 20]);
        let grown = "1.0 MiB could be saved, +1,047,576 since the first dump: 25.0% of the reachable heap\n";
        assert!(two.contains(grown), "{two}");
        let none = example_phrase(Vec::new(), vec![0]);
        assert!(!none.contains("1.0 MiB could be saved") && none.contains("0 B could be saved"));
    }

    #[test]
    fn each_kind_has_its_name() {
        let names = [
            ("duplicate_arrays", "duplicate arrays of primitives"),
            ("duplicate_boxes", "duplicate boxed values"),
            ("boxed_values", "boxed values as elements"),
            ("sparse_collections", "collections at most half full"),
            ("zero_arrays", "arrays of zeros or nulls"),
            ("long_arrays", "arrays at most half full"),
        ];
        for (kind, name) in names {
            let text = example_phrase(vec![row(kind, vec![1000], 0)], vec![1000]);
            let said = names.iter().filter(|n| text.contains(n.1)).count();
            assert!(text.contains(name) && said == 1, "{text}");
        }
    }

    #[test]
    fn omissions_are_reported() {
        let kinds = |little: u64| {
            vec![
                row("zero_arrays", vec![100_000], 0),
                row("boxed_values", vec![little], 2),
            ]
        };
        let said =
            "categories below 1% of the total have no list here (--format json has all lists)\n";
        let few = example_phrase(kinds(10), vec![100_010]);
        assert!(
            few.ends_with(said) && !few.contains("--top N shows more"),
            "{few}"
        );
        let more = example_phrase(kinds(50_000), vec![150_000]);
        assert_eq!(
            more.matches("and 2 more (--top N shows more)\n").count(),
            2,
            "{more}"
        );
        assert!(!more.contains("have no list"), "{more}");
    }
}
