//! Writes tables row by row as Parquet, CSV or JSON, in bounded memory.
//!
//! A [`Column`] has a name and a type. A row is a slice of borrowed [`Cell`]s. The same rows always give the same
//! bytes: the output does not depend on batches, time or hash order.
//!
//! ```
//! use heapdiff_tables::{Cell, Column, CsvWriter, Kind, RowWriter};
//!
//! let columns = [Column::new("class", Kind::Text), Column::new("shallow_bytes", Kind::Int)];
//! let mut csv = CsvWriter::new(Vec::new(), &columns)?;
//! csv.row(&[Cell::Text("byte[]"), Cell::Int(24)])?;
//! assert_eq!(csv.finish()?, b"class,shallow_bytes\nbyte[],24\n");
//! # Ok::<(), heapdiff_tables::Error>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod csv;
mod json;
mod parquet;
mod result;

use std::borrow::Cow;
use std::fmt;
use std::io;

pub use crate::csv::CsvWriter;
pub use crate::json::JsonRows;
pub use crate::parquet::{ParquetOptions, ParquetWriter};
pub use crate::result::{Outcome, ResultColumn, Sink};

/// The type of a column's cells. A cell of any column may be [`Cell::Null`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A signed integer.
    Int,
    /// An object id: an unsigned 64-bit number. In text it is hexadecimal: `0x7f00`.
    Id,
    /// A floating-point number.
    Double,
    /// A UTF-8 string.
    Text,
}

impl Kind {
    /// Returns the type's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "boolean",
            Self::Int => "integer",
            Self::Id => "id",
            Self::Double => "double",
            Self::Text => "text",
        }
    }
}

/// A column: its name and the type of its cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The name of the column.
    pub name: Cow<'static, str>,
    /// The type of the column's cells.
    pub kind: Kind,
}

impl Column {
    /// Returns a column.
    pub fn new(name: impl Into<Cow<'static, str>>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// One value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An object id.
    Id(u64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    Text(&'a str),
}

impl Cell<'_> {
    /// Returns the type, or `None` for null.
    #[must_use]
    pub const fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Id(_) => Kind::Id,
            Self::Double(_) => Kind::Double,
            Self::Text(_) => Kind::Text,
        })
    }
}

impl fmt::Display for Cell<'_> {
    /// Formats the value as in CSV: null is an empty string, ids are hexadecimal, and a double has enough digits to be
    /// read back exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Null => Ok(()),
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Id(id) => write!(f, "{id:#x}"),
            Self::Double(value) => write!(f, "{value:?}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A destination for rows.
pub trait RowWriter {
    /// Writes the next row, with one cell per column.
    ///
    /// # Errors
    /// Returns an error if the row cannot be written, if the number of cells is wrong, or if a cell has a type that its
    /// column cannot hold.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error>;
}

/// The reason why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A row has more or fewer cells than the table has columns.
    #[error("row {row} has {cells} cells, but the table has {columns} columns")]
    Width {
        /// The row, counted from 1.
        row: u64,
        /// Number of cells in the row.
        cells: usize,
        /// Number of columns in the table.
        columns: usize,
    },
    /// A cell does not have its column's type.
    #[error("column {column}: row {row} contains {found}, but earlier rows contain {expected}")]
    Kind {
        /// The column's name.
        column: String,
        /// The row, counted from 1.
        row: u64,
        /// The column's type.
        expected: &'static str,
        /// The cell's type.
        found: &'static str,
    },
    /// The Parquet writer reported an error.
    #[error("Parquet: {0}")]
    Parquet(String),
}

fn check_width(row: u64, cells: &[Cell<'_>], columns: usize) -> Result<(), Error> {
    if cells.len() == columns {
        return Ok(());
    }
    Err(Error::Width {
        row,
        cells: cells.len(),
        columns,
    })
}
