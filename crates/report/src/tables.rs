//! Tables that several output formats use, such as text and HTML.

use heapdiff_diff::HeapReport;
use heapdiff_diff::sentence::Waste;
use heapdiff_model::owners::{OwnerFigures, OwnerRow};
use heapdiff_model::unreachable::UnreachableSummary;
use heapdiff_units::{Size, grouped, percent};

use crate::document::Column::{Cut, Figure, Name, Text, Word};
use crate::document::{Column, Table};
use crate::printable::printable;
use crate::report::growth;
use crate::{kept, size};

/// Maximum number of rows of the thread table and of the waste table, unless the user requests all rows.
pub(crate) const ROWS: usize = 5;

/// Returns a table of at most `limit` threads, the thread that retains the most first.
pub(crate) fn threads(heap: &HeapReport, limit: usize) -> Table {
    let columns = [
        ("retained", Figure),
        ("thread", Cut(30)),
        ("largest local variable", Text),
    ];
    let rows = heap.threads.iter().take(limit).map(|thread| {
        vec![
            size(thread.retained_bytes),
            thread
                .name
                .clone()
                .unwrap_or_else(|| "(unnamed)".to_owned()),
            kept::local(thread),
        ]
    });
    Table::new(&columns, rows).titled("Threads with the largest retained size")
}

/// Returns a table of at most `limit` kinds of wasted memory.
pub(crate) fn waste(heap: &HeapReport, limit: usize) -> Table {
    let columns = [
        ("savings", Figure),
        ("objects", Figure),
        ("kind", Word),
        ("mostly held by", Name),
    ];
    let rows = heap.waste.iter().take(limit).map(|row| {
        vec![
            size(row.bytes_to_win),
            grouped(row.objects),
            Waste::title(&row.kind),
            row.holder.clone().unwrap_or_default(),
        ]
    });
    Table::new(&columns, rows).titled("Wasted memory")
}

/// The name of a group of three owners or more.
const SEVERAL: &str = "three owners or more";

/// Returns a table of owners.
pub(crate) fn owners(report: &OwnerFigures, rows: &[OwnerRow]) -> Table {
    let title = match &*report.by {
        "package" => "Memory by package",
        "jar" => "Memory by jar",
        "loader" => "Memory by class loader",
        "thread" => "Memory by thread",
        "bean" => "Memory by bean",
        _ => "Memory by the value of a field",
    };
    let row = |row: &OwnerRow| owner_cells(report, &row.bytes, &row.objects, row.owner.clone());
    Table::new(&owner_columns(report, "owner"), rows.iter().map(row)).titled(title)
}

/// Returns a table of at most `limit` groups of owners (such as packages or jars) that share memory.
pub(crate) fn shared_by(report: &OwnerFigures, limit: usize) -> Table {
    let rows = report.shared.iter().take(limit).map(|row| {
        let name = if row.owners.is_empty() {
            SEVERAL.to_owned()
        } else {
            row.owners.join(" and ")
        };
        owner_cells(report, &row.bytes, &row.objects, name)
    });
    Table::new(&owner_columns(report, "shared by"), rows).titled("Shared memory")
}

/// Returns a table of the largest classes of each owner in the last dump.
pub(crate) fn classes_of_owners(report: &OwnerFigures) -> Table {
    let columns = [
        ("bytes", Figure),
        ("objects", Figure),
        ("class", Name),
        ("owner", Name),
    ];
    let rows = report.owners.iter().flat_map(|owner| {
        owner.classes.iter().map(|class| {
            vec![
                grouped(class.bytes),
                grouped(class.objects),
                class.class.clone(),
                owner.owner.clone(),
            ]
        })
    });
    Table::new(&columns, rows).titled("Largest classes of each owner")
}

/// Returns a table of unreachable objects by class. It contains only objects to which no other unreachable object
/// refers. The bytes of an object include the objects that it would hold.
pub(crate) fn unreachable_holders(summary: &UnreachableSummary) -> Table {
    let columns = [
        ("bytes", Figure),
        ("share", Figure),
        ("objects", Figure),
        ("class", Name),
    ];
    let rows = summary.holders.iter().map(|class| {
        vec![
            grouped(class.bytes),
            percent(class.bytes, summary.bytes),
            grouped(class.objects),
            class.class.clone(),
        ]
    });
    Table::new(&columns, rows).titled("Unreachable objects, by the class that would hold them")
}

/// Returns the first sentence of a report on owners, in two parts. The first part is the more important one.
pub(crate) fn owners_sentence(report: &OwnerFigures) -> [String; 2] {
    let heap = reachable(report);
    let shared = last(&report.shared_bytes);
    let owned = Size(heap.saturating_sub(shared)).to_string();
    let rest = format!(
        " of {} have one owner, {} are shared",
        Size(heap),
        Size(shared)
    );
    if report.shared_bytes.len() < 2 {
        return [owned, rest];
    }
    let named = report.owners.iter().filter(|row| row.kind != "other");
    let most = named.max_by_key(|row| growth(&row.bytes));
    let grown = most.map(|row| (&row.owner, growth(&row.bytes)));
    let headline = match grown.filter(|(_, bytes)| *bytes > 0) {
        Some((owner, bytes)) => format!("{owner} grew by {}", Size(bytes.unsigned_abs())),
        None => "no owner grew".to_owned(),
    };
    [
        printable(&headline).into_owned(),
        format!("; {owned}{rest}"),
    ]
}

fn reachable(report: &OwnerFigures) -> u64 {
    let owned = report.owners.iter().map(|row| last(&row.bytes));
    owned.fold(last(&report.shared_bytes), u64::saturating_add)
}

fn owner_columns(report: &OwnerFigures, name: &'static str) -> Vec<(&'static str, Column)> {
    let mut columns = vec![("bytes", Figure)];
    columns.extend((report.shared_bytes.len() > 1).then_some(("change", Figure)));
    columns.extend([("of heap", Figure), ("objects", Figure), (name, Name)]);
    columns
}

fn owner_cells(report: &OwnerFigures, bytes: &[u64], objects: &[u64], name: String) -> Vec<String> {
    let mut cells = vec![grouped(last(bytes))];
    cells.extend((report.shared_bytes.len() > 1).then(|| change(bytes)));
    cells.extend([
        percent(last(bytes), reachable(report)),
        grouped(last(objects)),
        name,
    ]);
    cells
}

/// Returns a table of at most `limit` classes. If `is_exact` is true, figures are exact bytes; otherwise they are
/// rounded sizes.
pub(crate) fn classes(heap: &HeapReport, limit: usize, is_exact: bool) -> Table {
    let (bytes, columns): (fn(u64) -> String, _) = if is_exact {
        (grouped, ["shallow bytes", "retained bytes"])
    } else {
        (size, ["shallow", "retained"])
    };
    let [shallow, retained] = columns;
    let columns = [
        ("objects", Figure),
        (shallow, Figure),
        (retained, Figure),
        ("class", Name),
    ];
    let rows = heap.classes.iter().take(limit).map(|class| {
        vec![
            grouped(class.objects),
            bytes(class.shallow_bytes),
            bytes(class.retained_bytes),
            class.class.clone(),
        ]
    });
    Table::new(&columns, rows).titled("Classes, by shallow size")
}

/// Returns the last figure minus the first, with a sign unless it is 0.
pub(crate) fn change(figures: &[u64]) -> String {
    let (first, last) = (figures.first().copied(), figures.last().copied());
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
    let sign = match last.cmp(&first) {
        std::cmp::Ordering::Less => "-",
        std::cmp::Ordering::Equal => "",
        std::cmp::Ordering::Greater => "+",
    };
    format!("{sign}{}", grouped(last.abs_diff(first)))
}

pub(crate) fn last(figures: &[u64]) -> u64 {
    figures.last().copied().unwrap_or(0)
}
