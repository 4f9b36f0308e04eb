//! `heapdiff query`: SQL over a dump.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapdiff_query::{Error, Heap, Limits};
use hprof::Progress;

use super::open;
use crate::args::Setup;
use crate::failure::{Exit, Failure, Result};
use crate::report::{QueryReport, SnapshotInfo};
use heapdiff_report::text::printable;

/// Reads the dump. The query runs when its rows are written, so that none has to be kept.
pub(crate) fn run(setup: &Setup, dump: &Path, sql: &str, limits: Limits) -> Result<QueryReport> {
    let (opened, meter) = open(setup, dump)?;
    meter.phase("preparing the query", 0);
    let heap = Heap::new(Arc::clone(&opened.snapshot));
    Ok(QueryReport {
        schema: QueryReport::SCHEMA,
        snapshot: SnapshotInfo::of(heap.snapshot(), heap.own()),
        sql: sql.to_owned(),
        heap: Arc::new(heap),
        limits,
        dump: PathBuf::from(dump),
    })
}

/// Why a query has no result, for whoever wrote it.
pub(crate) fn of_query(dump: &Path, error: Error) -> Failure {
    let usage = |message: String| Failure::usage(printable(&message));
    match error {
        Error::Sql {
            ref text,
            column,
            ref hint,
            ..
        } => {
            let mark = " ".repeat(column - 1);
            let mut lines = format!("{}\n          {mark}^", printable(text));
            if let Some(hint) = hint {
                lines.push_str("\n          ");
                lines.push_str(&printable(hint));
            }
            usage(error.to_string()).with_hint(lines)
        }
        Error::Heap(error) => Failure::input(dump, &error),
        Error::Memory { .. } => {
            usage(error.to_string()).with_hint("--max-memory says how much it may have")
        }
        Error::Output(error) => Failure {
            exit: Exit::Usage,
            message: error.to_string(),
            hint: None,
        },
        other => usage(other.to_string()),
    }
}
