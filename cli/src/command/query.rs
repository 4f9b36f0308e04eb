//! `heapdiff query`: SQL over a dump.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapdiff_query::{Heap, Limits};
use hprof::Progress;

use super::open;
use crate::failure::Result;
use crate::job::Setup;
use crate::report::{QueryReport, SnapshotInfo};

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
