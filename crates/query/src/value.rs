//! Values of table cells, owned or borrowed.

use std::borrow::Cow;

use heapdiff_tables::Cell;

/// A cell, as a table's cursor returns it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Id(u64),
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// Converts a count or a number of bytes. The result fits, because no heap has 2⁶³ objects or bytes.
    pub(crate) fn size(size: u64) -> Self {
        Self::Int(i64::try_from(size).unwrap_or(i64::MAX))
    }

    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Converts an id; the null id becomes null.
    pub(crate) const fn id(id: u64) -> Self {
        match id {
            0 => Self::Null,
            id => Self::Id(id),
        }
    }

    pub(crate) fn or_null<T>(option: Option<T>, value: impl FnOnce(T) -> Self) -> Self {
        option.map_or(Self::Null, value)
    }

    pub(crate) fn cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Bool(value) => Cell::Bool(*value),
            Self::Int(value) => Cell::Int(*value),
            Self::Id(id) => Cell::Id(*id),
            Self::Text(text) => Cell::Text(text),
        }
    }
}

/// A value with which a query compares a column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Scalar {
    Null,
    Int(i64),
    Text(String),
    /// All values in the list of an `IN`.
    List(Vec<Scalar>),
    /// A fraction or a blob. Tables cannot look up such a value.
    Other,
}
