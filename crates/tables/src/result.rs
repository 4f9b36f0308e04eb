//! Rows whose number is not known before they are all there: their columns, what takes them, how they end.

use crate::{Cell, Column, Error, Kind};

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// Its type, where it is a table's column; `None` for what is computed, whose values have types of their
    /// own.
    pub kind: Option<Kind>,
}

impl ResultColumn {
    /// As a column of a table that is written; what is computed is taken to be of the kind given.
    #[must_use]
    pub fn as_column(&self, computed: Kind) -> Column {
        Column::new(self.name.clone(), self.kind.unwrap_or(computed))
    }
}

/// How a result ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The rows that were given.
    pub rows: u64,
    /// Whether there are more than the limit.
    pub more: bool,
}

/// What takes a result.
pub trait Sink {
    /// Told the columns before the first row.
    ///
    /// # Errors
    /// When they cannot be taken.
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), Error>;
    /// Takes a row.
    ///
    /// # Errors
    /// When it cannot be taken.
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error>;
}
