//! The trace: what a JVM allocates and what is collected of it, over time, in an SQLite file.
//!
//! The agent writes it while the JVM runs; reports and the live view read it, at the same time or
//! long after. Its tables are those of `schema.sql`, and are for users' own queries as well.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod database;
mod export;
mod history;
mod rank;
pub mod read;
mod rollup;
#[doc(hidden)]
pub mod synthetic;
mod write;
mod write_names;

pub use database::{Database, TraceError};
pub use export::{Column, ColumnType, Table};
pub use heapdiff_trend::Trend;
pub use history::{Basis, Began, Live, Points, Steps, Timeline, Window};
pub use rank::{By, Candidate, HourlySlope, Ranking, Trending, Verdict, rank, trending};
pub use read::{Stacks, Trace};
pub use rusqlite::types::ValueRef;
pub use write::{Activity, Amount, ClassChange, Collection, Limits, Run, Tick, Writer, Written};
pub use write_names::{FrameName, Names};
