//! `heapdiff query`: SQL over a dump.

use std::path::PathBuf;
use std::sync::Arc;

use heapdiff_model::query::{QueriedDump, QueryHead};
use heapdiff_query::{Dumps, Heap, Limits, Outcome, Sink};
use heapdiff_report::PendingQuery;
use heapdiff_report::rows::{RowError, RowSource};
use hprof::Progress;

use super::{dump_info, open};
use crate::failure::{Failure, Result};
use crate::job::Setup;

/// A query that runs when its rows are written.
#[derive(Debug)]
struct Query {
    dumps: Dumps,
    sql: String,
    limits: Limits,
}

impl RowSource for Query {
    fn write_to(&self, sink: &mut dyn Sink) -> Result<Outcome, RowError> {
        Ok(heapdiff_query::run_over(
            &self.dumps,
            &self.sql,
            self.limits,
            sink,
        )?)
    }
}

/// Reads the dumps. The query runs when its rows are written, so that none has to be kept.
pub(crate) fn run(
    setup: &Setup,
    paths: &[PathBuf],
    names: &[String],
    sql: &str,
    limits: Limits,
) -> Result<PendingQuery> {
    // All dumps are at hand at once, and share what they may have.
    let mut setup = setup.clone();
    let parts = paths.len().max(1) as u64;
    setup.analysis.max_memory = setup.analysis.max_memory.map(|memory| memory / parts);
    let mut heaps = Vec::with_capacity(paths.len());
    for path in paths {
        let (opened, meter) = open(&setup, path)?;
        meter.phase("preparing the query", 0);
        heaps.push(Arc::new(Heap::new(Arc::clone(&opened.snapshot))));
    }
    let Some(first) = heaps.first().cloned() else {
        return Err(Failure::usage("no dump was given"));
    };
    let info = |heap: &Heap| dump_info::of(heap.snapshot(), heap.own());
    let queried = |(name, heap): (&String, &Arc<Heap>)| QueriedDump {
        name: name.clone(),
        snapshot: info(heap),
    };
    let dumps = names.iter().zip(&heaps).map(queried).collect();
    let snapshot = info(&first);
    let over = if names.is_empty() {
        Dumps::one(first)
    } else {
        Dumps::named(names.iter().cloned().zip(heaps).collect())
            .map_err(|e| Failure::query(&paths[0], e))?
    };
    Ok(PendingQuery {
        head: QueryHead {
            schema: QueryHead::SCHEMA,
            snapshot,
            dumps,
            sql: sql.to_owned(),
        },
        max_rows: limits.rows,
        rows: Box::new(Query {
            dumps: over,
            sql: sql.to_owned(),
            limits,
        }),
    })
}
