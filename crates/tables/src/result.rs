//! Results of queries. The number of rows is unknown until the last row.

use crate::{Cell, Column, Error, Kind};

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultColumn {
    /// The name.
    pub name: String,
    /// The type of the column, if it is a column of a table. `None` for a computed column, whose values may have
    /// different types.
    pub kind: Option<Kind>,
}

impl ResultColumn {
    /// Converts the column to a column of the output table. A computed column gets the type `computed`.
    #[must_use]
    pub fn as_column(&self, computed: Kind) -> Column {
        Column::new(self.name.clone(), self.kind.unwrap_or(computed))
    }
}

/// The outcome of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Number of rows returned.
    pub rows: u64,
    /// True if there are more rows than the limit.
    pub more: bool,
}

/// A destination for a query result.
pub trait Sink {
    /// Receives the columns, before the first row.
    ///
    /// # Errors
    /// Returns an error if the columns cannot be processed.
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), Error>;
    /// Receives a row.
    ///
    /// # Errors
    /// Returns an error if the row cannot be processed.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error>;
}
