//! Tests that a query ends if it needs too much memory. SQLite's limit is per process, so this test is a separate
//! program.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use heapdiff_query::{Error, Heap, Limits, ResultColumn, Sink, run};
use heapdiff_tables::{Cell, Error as TableError};
use hprof::{Options, Silent, Snapshot};

struct Nothing;

impl Sink for Nothing {
    fn columns(&mut self, _: &[ResultColumn]) -> Result<(), TableError> {
        Ok(())
    }
    fn row(&mut self, _: &[Cell<'_>]) -> Result<(), TableError> {
        Ok(())
    }
}

#[test]
fn memory_is_limited() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/before.hprof.gz");
    let snapshot = Snapshot::open(&path, &Options::default(), &Silent).unwrap();
    let heap = Arc::new(Heap::new(snapshot));
    let limits = Limits {
        memory: Some(16 << 20),
        ..Limits::default()
    };
    let sorted = "select * from objects order by class desc, shallow_bytes, id";
    run(&heap, sorted, limits, &mut Nothing).unwrap();
    let endless = "select group_concat(printf('%1000d', id), '') from objects";
    match run(&heap, endless, limits, &mut Nothing) {
        Err(Error::Memory { limit }) => assert_eq!(limit, 16 << 20),
        other => panic!("{other:?}"),
    }
}
