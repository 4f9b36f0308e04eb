//! Traces: what a JVM allocates, and how much of it is garbage collected, over time, in an SQLite file.
//!
//! The agent writes the file while the JVM runs. Reports and the live view read it at the same time or later.
//! `schema.sql` defines the tables; users may query them directly.
//!
//! # Files
//!
//! The database uses SQLite's WAL mode. Beside it are two files: `-wal`, a log of changes that are not yet in the
//! database, and `-shm`, an index of that log. Writers and readers map the index into memory. The last process that
//! closes the database removes both files. Each tick (the data of one time interval) is one transaction: a reader sees
//! all of it or nothing, and a writer that is killed loses only its current tick. Writes are not synced to disk each
//! time. If the machine crashes, the last ticks may be missing, but the database is intact.
//!
//! The mapped index is the only file access that can crash a process: if somebody truncates the index file, the process
//! gets SIGBUS. A full disk cannot cause this, because SQLite writes each page before it maps it. On btrfs, copy on
//! write is disabled for the index file. If that fails, the trace is refused. Without the index nobody could read while
//! a writer is active. The database itself is never mapped.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ages;
mod amount;
mod class_totals;
mod compared;
mod copy;
mod counted;
mod database;
mod export;
mod export_names;
mod guard;
mod history;
mod outlook;
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

/// The value of `strategy` for runs that were imported from a recording.
pub const RECORDING: &str = "recording";

/// The prefix of the agent's notes about a full sample table. After such a note, samples are taken more rarely.
pub const THINNED: &str = "max_samples reached";

pub use ages::{AGE_GROUPS, AgeSummary, Ages, ObjectAge, SiteAges, SurvivedGcs, survived_shares};
pub use amount::Live;
pub use class_totals::{CountedClass, UNKNOWN_CLASS};
pub use compared::SampledLine;
pub use counted::{Counting, LineCount};
pub use database::{Database, TraceError};
pub use export::{Column, ColumnType, Table};
pub use heapdiff_trend::Trend;
pub use history::{AliveAt, Basis, Began, Points, Steps, Timeline};
pub use outlook::{HeapLimit, HeapOutlook, HeapState, LEAST_FULL_GCS, LimitSource, TimeLeft};
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
