//! Tables written row by row, as Parquet, CSV or JSON, in bounded memory.
//!
//! A table's columns are named and typed once ([`Column`]); each row is a slice of [`Cell`]s, borrowed from
//! whoever makes them. What is written does not depend on how it was batched, on time or on order of
//! hashing: equal rows give equal bytes.
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

/// The type of a column's cells. Every column may hold [`Cell::Null`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// True or false.
    Bool,
    /// A signed whole number.
    Int,
    /// An object's id: 64 bits without a sign, `0x7f00` in text.
    Id,
    /// A number with a fraction.
    Double,
    /// UTF-8.
    Text,
}

impl Kind {
    /// The type's name in reports.
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
    /// The name, as headings show it.
    pub name: Cow<'static, str>,
    /// What its cells are.
    pub kind: Kind,
}

impl Column {
    /// A column.
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
    /// None.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// An object's id.
    Id(u64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(&'a str),
}

impl Cell<'_> {
    /// The type; `None` of nothing.
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
    /// As in CSV: nothing for null, ids in hexadecimal, doubles so that they read back the same.
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

/// What takes rows.
pub trait RowWriter {
    /// Takes the next row: one cell for each column.
    ///
    /// # Errors
    /// When the row cannot be written, has another number of cells than the table has columns, or a cell is
    /// of a type that its column cannot hold.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error>;
}

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output refused it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A row has more or fewer cells than the table has columns.
    #[error("row {row} has {cells} cells, but the table has {columns} columns")]
    Width {
        /// The row, from one.
        row: u64,
        /// Its cells.
        cells: usize,
        /// The table's columns.
        columns: usize,
    },
    /// A cell is not of its column's type.
    #[error("column {column}: row {row} contains {found}, but earlier rows contain {expected}")]
    Kind {
        /// The column's name.
        column: String,
        /// The row, from one.
        row: u64,
        /// The column's type.
        expected: &'static str,
        /// The cell's.
        found: &'static str,
    },
    /// The Parquet writer refused it.
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
