//! Writes traces and reports of many JVMs as Parquet files for a company's own query engine.
//!
//! A fleet is a folder with three tables. Each is a tree of files by service, host and day (UTC), in the partition
//! layout of Spark, Hive, DuckDB and Trino:
//!
//! ```text
//! FLEET/sites/service=shop/host=shop-1/day=2026-11-21/RUN.parquet       live objects by site and hour
//! FLEET/runs/service=shop/host=shop-1/day=2026-11-21/RUN.parquet        heap and GCs by hour
//! FLEET/suspects/service=shop/host=shop-1/day=2026-11-21/REPORT.parquet suspects of diff reports
//! ```
//!
//! Each file is named after its run or report. So adding the same trace again replaces its earlier rows, and nothing is
//! counted twice. Equal inputs give equal files.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod files;
mod hours;
mod suspects;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use heapdiff_trace::{Trace, TraceError};

/// The service and the host to which the rows of an input belong.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// The service. If it is `None`, the service in the trace is used, or `unknown` if the trace has none.
    pub service: Option<String>,
    /// The host. If it is `None`, the host in the trace is used, or `unknown` if the trace has none.
    pub host: Option<String>,
}

/// The result of adding an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// The number of rows in all tables.
    pub rows: u64,
    /// Paths of the written files, in the order of writing.
    pub files: Vec<PathBuf>,
    /// Number of implausible figures in the trace. Each of these figures was replaced by 0.
    pub odd: u64,
}

/// The reason why an input could not be added.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The input is a trace that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The input cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The input.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A file in the folder of the fleet cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error.
        source: heapdiff_tables::Error,
    },
    /// The input is neither a trace nor a report.
    #[error("{}: neither a trace nor a report; create a report with `heapdiff BEFORE AFTER -o report.json`{why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Additional information about the file. Empty if there is none.
        why: String,
    },
}

/// Maximum size of a report in bytes. heapdiff writes no larger reports.
const LARGEST_REPORT: u64 = 256 << 20;

/// Adds a trace, or a diff report in JSON, to the fleet in a folder.
///
/// Files are written under a temporary name and then renamed, so readers never see a partial file. Cost: one pass over
/// the trace's rows, and memory for its sites, stacks and ticks.
///
/// # Errors
/// Returns an error if the input is neither a trace nor a report, if it cannot be read, or if the folder cannot be
/// written. Files that were already written stay. Adding the input again replaces them.
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
