//! Exports a table row by row.

use std::sync::Arc;

use heapdiff_tables::{Cell, RowWriter};

use crate::error::Result;
use crate::heap::Heap;
use crate::schema::Table;
use crate::table::{self, Ask};

/// An exported table, with the number of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Export {
    /// The table.
    pub table: Table,
    /// Number of rows.
    pub rows: u64,
}

/// Writes all rows of a table. The ids of all objects are kept in memory, eight bytes for each object. They count
/// towards the dump's memory limit. The rows themselves are not kept in memory.
///
/// # Errors
/// Returns an error if there is too little memory for the ids, or if a row cannot be written.
pub fn rows_of(heap: &Arc<Heap>, table: Table, out: &mut dyn RowWriter) -> Result<Export> {
    let columns = table.column_names().count();
    let mut cursor = table::open(heap, table, &Ask::ALL)?;
    let mut rows = 0;
    while cursor.advance()? {
        let values: Vec<_> = (0..columns).map(|column| cursor.cell(column)).collect();
        let cells: Vec<Cell<'_>> = values.iter().map(|value| value.cell()).collect();
        out.row(&cells)?;
        rows += 1;
    }
    Ok(Export { table, rows })
}
