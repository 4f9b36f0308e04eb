//! SQL over the objects, classes, references, strings and threads of a heap dump, and export of these tables.
//!
//! The engine is SQLite; the tables are virtual: rows are made from the analysed dump as they are asked for,
//! and what a query says of class, id and sizes is looked up instead of scanned (`docs/query.md` has tables,
//! columns and examples).
//!
//! Nothing can be written, attached or loaded by a query, whatever it says. Memory is bounded but for what
//! SQLite sorts, which goes to temporary files of at most 1 GiB in all.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bounds;
mod describe;
mod dumps;
mod error;
mod export;
mod fields;
mod filter;
mod functions;
mod heap;
mod oql;
mod schema;
mod sql;
mod sums;
mod table;
mod tokens;
mod value;
mod vtab;

pub use dumps::{Dumps, check_names};
pub use error::{Error, Result};
pub use export::{Export, rows_of};
pub use heap::Heap;
pub use heapdiff_tables::{Outcome, ResultColumn, Sink};
pub use schema::Table;
pub use sql::{Limits, check, check_over, run, run_over};
