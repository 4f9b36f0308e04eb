//! SQL queries on the objects, classes, references, strings and threads of a heap dump, and export of these tables.
//!
//! The engine is SQLite with virtual tables: rows are created from the analyzed dump on demand. Conditions on classes,
//! ids and sizes are checked before rows are created. `docs/query.md` describes tables and columns, with examples.
//!
//! A query can neither write, nor attach a database, nor load an extension. Memory is bounded. SQLite sorts in
//! temporary files of at most 1 GiB in total.
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
pub use sql::{Limits, check, check_for_dumps, run, run_on_dumps};
pub use tokens::quoted_id;
