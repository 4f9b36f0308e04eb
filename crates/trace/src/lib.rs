//! The trace: what a JVM allocates and what is collected of it, over time, in an SQLite file.
//!
//! The agent writes it while the JVM runs; reports and the live view read it, at the same time or
//! long after. Its tables are those of `schema.sql`, and are for users' own queries as well.
//!
//! # Files
//!
//! SQLite in WAL mode: beside the database there is `-wal`, the log of what is not in it yet, and `-shm`, an index
//! of that log which writers and readers share by mapping it. The last to close takes both away. A tick is one
//! transaction, so a reader sees all of it or nothing, and a writer that is killed loses the tick it was in. What
//! was written is not forced to the disk each time: when the machine itself goes down the last ticks may be
//! missing, but the database is whole.
//!
//! The mapped index is the one place where a file can harm a process: SIGBUS when somebody truncates it. A full disk cannot, for
//! SQLite writes each page before it maps it; on btrfs, which copies what is written to, the index is asked to be written in place, and
//! where that is not to be had a trace is refused. Without the index there would be no reading beside a writer. The database itself is
//! never mapped.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod amount;
mod class_totals;
mod compared;
mod counted;
mod database;
mod export;
mod export_names;
mod guard;
mod history;
mod place;
mod rank;
pub mod read;
mod read_counted;
mod read_samples;
mod read_stacks;
mod rollup;
mod room;
mod side_writer;
#[cfg(feature = "synthetic")]
#[doc(hidden)]
pub mod synthetic;
mod tick;
mod window;
mod write;
mod write_names;
mod write_samples;

/// The `strategy` of runs that were imported from a recording.
pub const RECORDING: &str = "recording";

/// How the agent's notes begin that tell of a full table: samples are drawn more rarely from there on.
pub const THINNED: &str = "max_samples reached";

pub use amount::Live;
pub use class_totals::{CountedClass, UNKNOWN_CLASS};
pub use compared::SampledLine;
pub use counted::{Counting, LineCount};
pub use database::{Database, TraceError};
pub use export::{Column, ColumnType, Table};
pub use heapdiff_trend::Trend;
pub use history::{AliveAt, Basis, Began, Points, Steps, Timeline};
pub use place::{SQLITE_START, is_trace};
pub use rank::{
    By, Candidate, HourlySlope, PerWork, Ranking, Standing, Trending, Verdict, rank, rank_groups,
    trending,
};
pub use read::Trace;
pub use read_counted::{CountedLine, CountedPart, CountedRun, TopLines};
pub use read_samples::{SampleRow, Which};
pub use read_stacks::{Innermost, Stacks};
pub use rusqlite::types::ValueRef;
pub use side_writer::{DumpTaken, SideWriter};
pub use tick::{
    Activity, ClassChange, ClassTotal, EstimatedAmount, Limits, NewCollection, NewRun, NewTick,
    Written,
};
pub use window::Window;
pub use write::Writer;
pub use write_names::{FrameName, Names};
pub use write_samples::{Collected, Sample, Samples};
