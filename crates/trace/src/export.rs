//! Exports the tables for other programs.

use std::sync::atomic::Ordering;

use rusqlite::types::ValueRef;

use crate::{Trace, TraceError};

/// The type of a column's values. SQLite allows any value in any column. In a trace, a column contains only values of
/// this type or NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Whole numbers.
    Integer,
    /// Numbers with a fraction.
    Real,
    /// Strings.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Type of the column's values.
    pub kind: ColumnType,
}

/// A table of the trace that can be exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of the table.
    pub name: String,
    /// Columns of the table, in order.
    pub columns: Vec<Column>,
}

impl Trace {
    /// Returns the ordinary tables of the trace, sorted by name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn tables(&self) -> Result<Vec<Table>, TraceError> {
        let text =
            |row: &rusqlite::Row<'_>, at: usize| row.get::<_, String>(at).unwrap_or_default();
        let sql = "SELECT name FROM pragma_table_list
            WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name";
        let names = self.list(sql, (), |row| text(row, 0))?;
        let mut tables = Vec::new();
        for name in names {
            let sql = "SELECT name, type FROM pragma_table_info(?1) ORDER BY cid";
            let columns = self.list(sql, [&name], |row| Column {
                name: text(row, 0),
                kind: match &*text(row, 1) {
                    "INTEGER" => ColumnType::Integer,
                    "REAL" => ColumnType::Real,
                    _ => ColumnType::Text,
                },
            })?;
            tables.push(Table { name, columns });
        }
        Ok(tables)
    }

    /// Returns the number of triggers. A trace written by heapdiff has none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn triggers(&self) -> Result<u64, TraceError> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
        Ok(self.list(sql, (), |_| ())?.len() as u64)
    }

    /// Passes the rows of a table to `take` one at a time, in the order of the table's key, until `take` returns false.
    /// If [original names](Self::set_names) are set, a frame with inlined methods becomes several rows.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn each_row(
        &self,
        table: &Table,
        mut take: impl FnMut(&[ValueRef<'_>]) -> bool,
    ) -> Result<(), TraceError> {
        if let Some(names) = &self.names
            && self.for_each_renamed_row(&**names, table, &mut take)?
        {
            return Ok(());
        }
        self.each_stored_row(table, take)
    }

    /// Passes the rows to `take` as they are stored in the file.
    pub(crate) fn each_stored_row(
        &self,
        table: &Table,
        mut take: impl FnMut(&[ValueRef<'_>]) -> bool,
    ) -> Result<(), TraceError> {
        self.steps.store(0, Ordering::Relaxed);
        let mut run = || {
            let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
            let columns: Vec<String> = table.columns.iter().map(|c| quoted(&c.name)).collect();
            let sql = format!("SELECT {} FROM {}", columns.join(", "), quoted(&table.name));
            let mut query = self.database().connection().prepare(&sql)?;
            let mut rows = query.query(())?;
            while let Some(row) = rows.next()? {
                let values: Result<Vec<_>, _> =
                    (0..columns.len()).map(|i| row.get_ref(i)).collect();
                if !take(&values?) {
                    break;
                }
            }
            Ok(())
        };
        run().map_err(|e| self.error(e))
    }
}
