//! Tables that several formats share.

use heapdiff_diff::HeapReport;
use heapdiff_diff::sentence::Waste;
use heapdiff_units::grouped;

use crate::document::Column::{Cut, Figure, Name, Text, Word};
use crate::document::Table;
use crate::{kept, size};

/// Maximum number of rows of the thread table and of the waste table, unless the user requests all rows.
pub(crate) const ROWS: usize = 5;

/// Returns at most `limit` threads, the most retained bytes first.
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

/// Returns at most `limit` kinds of waste.
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
