//! Cursors that create the rows of each table on demand.

mod allocated;
mod classes;
mod counted_sites;
mod object_sums;
mod objects;
mod refs;
mod roots;
mod samples;
mod strings;
mod threads;

use std::sync::Arc;

use hprof::ObjectId;

use crate::bounds::Stop;
use crate::error::Result;
use crate::filter::{Constraint, Op};
use crate::heap::Heap;
use crate::schema::{Columns, Table};
use crate::value::{Scalar, Value};

/// Assumed number of values in the list of an `IN` condition. While SQLite plans a query, the real number is unknown.
const LISTED: u64 = 25;

/// A request for rows of a table, made by SQLite.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// A bit set of the columns that the query reads.
    pub(crate) used: u64,
    /// True if SQLite wants the rows sorted by class.
    pub(crate) by_class: bool,
    /// Comparisons by which the table may skip rows. SQLite checks all comparisons again.
    pub(crate) constraints: Vec<Constraint>,
    /// A flag that is set if the search must end.
    pub(crate) stop: Stop,
}

impl Ask {
    /// A request for all rows and all columns.
    pub(crate) const ALL: Self = Self {
        used: u64::MAX,
        by_class: false,
        constraints: Vec::new(),
        stop: Stop::NEVER,
    };

    pub(crate) const fn uses(&self, column: usize) -> bool {
        self.used >> column & 1 != 0
    }

    /// Returns the ids that a condition (`=` or `IN`) allows in the column. Returns `None` if no condition limits the
    /// column to a list of ids.
    pub(crate) fn ids(&self, column: usize) -> Option<Vec<ObjectId>> {
        let of_column = self.constraints.iter().filter(|c| c.column == column);
        let mut lists = of_column.filter_map(|c| match (c.op, &c.value) {
            (Op::Eq, &Scalar::Int(id)) => Some(vec![ObjectId(id.cast_unsigned())]),
            (Op::In, Scalar::List(list)) => ids(list),
            _ => None,
        });
        lists.next()
    }

    /// Returns the operator of a condition that compares ids in this column, or `None` if there is no such condition.
    /// Works also while SQLite plans a query and the compared values are still unknown.
    pub(crate) fn id_lookup_op(&self, column: usize) -> Option<Op> {
        let mut of_column = self.constraints.iter();
        let found = of_column.find(|c| c.column == column && c.op.is_for_ids());
        found.map(|c| c.op)
    }

    /// Returns true if no row can match, because a column that is never null is compared with null.
    pub(crate) fn matches_nothing(&self) -> bool {
        self.constraints.iter().any(|c| c.value == Scalar::Null)
    }
}

/// Returns the ids in a list. Returns `None` if the list contains a value that is not an integer but may equal an
/// integer, such as `1.0`.
fn ids(list: &[Scalar]) -> Option<Vec<ObjectId>> {
    let mut ids = Vec::with_capacity(list.len());
    for value in list {
        match *value {
            Scalar::Int(id) => ids.push(ObjectId(id.cast_unsigned())),
            // The list may contain nulls and strings. Skip them, because no id equals them.
            Scalar::Null | Scalar::Text(_) => {}
            Scalar::List(_) | Scalar::Other => return None,
        }
    }
    Some(ids)
}

/// An iterator over rows.
pub(crate) trait Cursor {
    /// Moves to the next row. The first call moves to the first row. Returns false after the last row.
    fn advance(&mut self) -> Result<bool>;
    /// Returns a cell of the current row.
    fn cell(&self, column: usize) -> Value<'_>;
    /// Returns the row id of the current row: a number that is the same in every scan of the table. SQLite uses the row
    /// id to detect a row that matches both terms of an `OR`.
    ///
    /// Returns `None` if every scan returns all rows of the table in the same order. The position of the row then
    /// serves as its id.
    fn rowid(&self) -> Option<i64> {
        None
    }
}

/// Opens a cursor over the rows of a table.
pub(crate) fn open(heap: &Arc<Heap>, table: Table, ask: &Ask) -> Result<Box<dyn Cursor>> {
    let heap = heap.clone();
    Ok(match table {
        Table::Objects => Box::new(objects::Objects::new(heap, ask)),
        Table::Classes => Box::new(classes::Classes::new(heap, ask)),
        Table::Refs => Box::new(refs::Refs::new(heap, ask)),
        Table::Roots => Box::new(roots::Roots::new(heap)),
        Table::Strings => Box::new(strings::Strings::new(heap, ask)),
        Table::Threads => Box::new(threads::Threads::new(heap)),
        Table::Frames => Box::new(threads::Frames::new(heap)),
        Table::Samples => Box::new(samples::Samples::new(heap, ask)),
        Table::Allocated => Box::new(allocated::AllocatedClasses::new(heap)),
        Table::CountedSites => Box::new(counted_sites::CountedSites::new(heap)),
        Table::ObjectSums => Box::new(object_sums::ObjectSums::new(heap, ask)),
    })
}

/// Returns true if the table can skip rows by a comparison of this column with this operator.
pub(crate) fn accepts(table: Table, column: usize, op: Op) -> bool {
    match table {
        Table::Objects => objects::accepts(column, op),
        Table::Classes => classes::accepts(column, op),
        Table::Refs => refs::accepts(column, op),
        Table::Strings => strings::accepts(column, op),
        Table::Roots
        | Table::Threads
        | Table::Frames
        | Table::Samples
        | Table::Allocated
        | Table::CountedSites
        | Table::ObjectSums => false,
    }
}

/// Returns the estimated cost of a request, and the estimated number of rows. A cost of 1 is the cost of reading one
/// object. While SQLite plans a query, it may not know yet with which value a column is compared. Such a value is
/// [`Scalar::Other`].
pub(crate) fn cost(heap: &Heap, table: Table, ask: &Ask) -> (f64, u64) {
    let (cost, rows) = match table {
        Table::Objects => objects::cost(heap, ask),
        Table::Classes => classes::cost(heap, ask),
        Table::Refs => refs::cost(heap, ask),
        Table::Strings => strings::cost(heap, ask),
        Table::Roots => small(heap.snapshot().gc_roots().len()),
        Table::Threads => small(100),
        Table::Frames => small(1000),
        Table::ObjectSums => small(heap.snapshot().classes().len()),
        Table::Samples | Table::Allocated | Table::CountedSites => samples::cost(heap),
    };
    (cost.max(1.0), rows.max(1))
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn small(rows: usize) -> (f64, u64) {
    (rows as f64, rows as u64)
}

/// Returns the index of the column with this name, which must exist.
const fn place(columns: Columns, name: &str) -> usize {
    let mut at = 0;
    while at < columns.len() {
        if is_same(columns[at].0.as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no such column")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
