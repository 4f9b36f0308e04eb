//! `heapdiff query`: SQL over a dump.

use std::path::Path;
use std::sync::Arc;

use heapdiff_query::{Heap, Limits, Outcome, Sink};
use heapdiff_report::QueryReport;
use heapdiff_report::rows::{RowError, RowSource};
use hprof::Progress;

use super::{dump_info, open};
use crate::failure::Result;
use crate::job::Setup;

/// A query that runs when its rows are written.
#[derive(Debug)]
struct Query {
    heap: Arc<Heap>,
    sql: String,
    limits: Limits,
}

impl RowSource for Query {
    fn write_to(&self, sink: &mut dyn Sink) -> Result<Outcome, RowError> {
        Ok(heapdiff_query::run(
            &self.heap,
            &self.sql,
            self.limits,
            sink,
        )?)
    }
}

/// Reads the dump. The query runs when its rows are written, so that none has to be kept.
pub(crate) fn run(setup: &Setup, dump: &Path, sql: &str, limits: Limits) -> Result<QueryReport> {
    let (opened, meter) = open(setup, dump)?;
    meter.phase("preparing the query", 0);
    let heap = Heap::new(Arc::clone(&opened.snapshot));
    Ok(QueryReport {
        schema: QueryReport::SCHEMA,
        snapshot: dump_info::of(heap.snapshot(), heap.own()),
        sql: sql.to_owned(),
        max_rows: limits.rows,
        rows: Box::new(Query {
            heap: Arc::new(heap),
            sql: sql.to_owned(),
            limits,
        }),
    })
}
