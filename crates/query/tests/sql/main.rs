//! Tests of queries, on dumps that are in the repository.
#![allow(clippy::unwrap_used)]

mod answers;
mod dumps;
mod mistakes;
mod plans;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use heapdiff_query::{Heap, Limits, ResultColumn, Sink, run};
use heapdiff_tables::{Cell, Error};
use hprof::{Options, Silent, Snapshot};

/// Returns the dump of a shop with a session leak.
fn shop() -> &'static Arc<Heap> {
    static HEAP: OnceLock<Arc<Heap>> = OnceLock::new();
    HEAP.get_or_init(|| opened("after.hprof.gz"))
}

/// Returns a dump that was taken with the agent loaded.
fn sampled() -> &'static Arc<Heap> {
    static HEAP: OnceLock<Arc<Heap>> = OnceLock::new();
    HEAP.get_or_init(|| opened("sampled-after.hprof.gz"))
}

fn opened(name: &str) -> Arc<Heap> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(name);
    let snapshot = Snapshot::open(&path, &Options::default(), &Silent).unwrap();
    Arc::new(Heap::new(snapshot))
}

#[derive(Default)]
struct Kept {
    columns: Vec<ResultColumn>,
    rows: Vec<Vec<String>>,
}

impl Sink for Kept {
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), Error> {
        self.columns = columns.to_vec();
        Ok(())
    }
    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        let text = |cell: &Cell<'_>| match cell {
            Cell::Null => "null".to_owned(),
            other => other.to_string(),
        };
        self.rows.push(cells.iter().map(text).collect());
        Ok(())
    }
}

fn ask(heap: &Arc<Heap>, sql: &str) -> Vec<Vec<String>> {
    let mut kept = Kept::default();
    run(heap, sql, Limits::default(), &mut kept).unwrap_or_else(|e| panic!("{sql}: {e}"));
    kept.rows
}

/// Returns the result of a query that has one row and one column.
fn one(heap: &Arc<Heap>, sql: &str) -> String {
    let rows = ask(heap, sql);
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}");
    rows[0][0].clone()
}
