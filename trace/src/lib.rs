//! The trace: what a JVM allocates and what is collected of it, over time, in an SQLite file.
//!
//! The agent writes it while the JVM runs; reports and the live view read it, at the same time or
//! long after. Its tables are those of `schema.sql`, and are for users' own queries as well.

mod database;

pub use database::{Database, TraceError};
