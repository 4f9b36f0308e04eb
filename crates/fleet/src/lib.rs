//! Traces and reports of many JVMs, as Parquet files that a company's own engine reads.
//!
//! A fleet is a folder with three tables, each a tree of files by service, host and day (UTC), the way
//! Spark, Hive, DuckDB and Trino find partitions:
//!
//! ```text
//! FLEET/sites/service=shop/host=shop-1/day=2026-11-21/RUN.parquet       what was live, by site and hour
//! FLEET/runs/service=shop/host=shop-1/day=2026-11-21/RUN.parquet        heap and collections, by hour
//! FLEET/suspects/service=shop/host=shop-1/day=2026-11-21/REPORT.parquet suspects of diff reports
//! ```
//!
//! Files are named after the run or the report they come from, so adding the same trace again
//! replaces what it said before: nothing is counted twice. Equal inputs give equal bytes.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod files;
mod hours;
mod suspects;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use heapdiff_trace::{Trace, TraceError};

/// What the rows of an input belong to.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// The service; `None`: what the trace says, else `unknown`.
    pub service: Option<String>,
    /// The host; `None`: what the trace says, else `unknown`.
    pub host: Option<String>,
}

/// What was added of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Rows of all tables.
    pub rows: u64,
    /// The files, in the order they were written.
    pub files: Vec<PathBuf>,
    /// Figures of the trace that made no sense and were taken for 0.
    pub odd: u64,
}

/// Why an input could not be added.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The input cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The input.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the fleet cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: heapdiff_tables::Error,
    },
    /// Neither a trace nor a report.
    #[error("{}: neither a trace nor a report; create a report with `heapdiff BEFORE AFTER -o report.json`{why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// More about it, or nothing.
        why: String,
    },
}

/// A report larger than this is none.
const LARGEST_REPORT: u64 = 256 << 20;

/// Adds a trace, or a report of a diff as JSON, to the fleet in a folder.
///
/// A file that is being written goes beside its place and is renamed: readers see whole files. Cost:
/// one pass over the trace's rows; memory for its sites, stacks and ticks.
///
/// # Errors
/// The input is neither, or cannot be read; the folder cannot be written. What was added by then stays,
/// and is replaced when the input is added again.
pub fn add(input: &Path, fleet: &Path, labels: &Labels) -> Result<Added, FleetError> {
    let read = |source| FleetError::Read {
        path: input.to_owned(),
        source,
    };
    let mut start = Vec::new();
    let file = File::open(input).map_err(read)?;
    (&file).take(16).read_to_end(&mut start).map_err(read)?;
    if start.starts_with(heapdiff_trace::SQLITE_START) {
        return hours::add(&Trace::open(input)?, fleet, labels);
    }
    if start.trim_ascii_start().first() != Some(&b'{') {
        return Err(FleetError::Foreign {
            path: input.to_owned(),
            why: String::new(),
        });
    }
    let mut text = start;
    (&file)
        .take(LARGEST_REPORT)
        .read_to_end(&mut text)
        .map_err(read)?;
    suspects::add(input, &text, fleet, labels)
}
