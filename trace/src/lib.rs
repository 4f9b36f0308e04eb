//! The trace: what a JVM allocates and what is collected of it, over time, in an SQLite file.
//!
//! The agent writes it while the JVM runs; reports and the live view read it, at the same time or
//! long after. Its tables are those of `schema.sql`, and are for users' own queries as well.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod database;
mod history;
mod rank;
mod read;
#[doc(hidden)]
pub mod synthetic;

pub use database::{Database, TraceError};
pub use history::{Basis, Began, Live, Points, Steps, Timeline, Window};
pub use rank::{By, Candidate, HourlySlope, Ranking, Trending, Verdict, rank, trending};
pub use read::{Amount, Collection, Dump, Frame, Note, Run, Site, SiteTick, Stacks, Tick, Trace};
