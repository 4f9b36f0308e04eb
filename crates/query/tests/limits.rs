//! Tests that queries end when they exceed the limit for time or for temporary files. The temporary files of the whole
//! process count towards the limit, so these tests are a separate program.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heapdiff_query::{Error, Heap, Limits, Outcome, ResultColumn, Sink, run};
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

/// The beginning of an SQL statement. It creates two million rows of 200 bytes.
const NUMBERS: &str = "with recursive n(x) as (select 1 union all select x + 1 from n limit 2000000), \
                       m(x, t) as (select x, printf('%200d', x * 7919 % 1000003) from n) ";

fn heap() -> Arc<Heap> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/before.hprof.gz");
    Arc::new(Heap::new(
        Snapshot::open(&path, &Options::default(), &Silent).unwrap(),
    ))
}

/// Returns the result of a query with at most 0.3 s of time, and the time that it took.
fn timed(heap: &Arc<Heap>, sql: &str) -> (Result<Outcome, Error>, Duration) {
    let limits = Limits {
        time: Some(Duration::from_millis(300)),
        ..Limits::default()
    };
    let begin = Instant::now();
    (run(heap, sql, limits, &mut Nothing), begin.elapsed())
}

#[test]
fn a_query_ends_at_its_limits() {
    let heap = heap();
    // Each row of these statements takes about 20 ms. So a time limit that is checked only after every 10,000 steps of
    // SQLite would end them minutes too late.
    for sql in [
        "with recursive n(x) as (select 1 union all select x + 1 from n limit 400) \
         select sum(length(printf('%20000000d', x))) from n",
        "with recursive n(x) as (select 1 union all select x + 1 from n limit 400) \
         select count(*) from n where (select count(*) from refs where target_class = 'x' || n.x) > 0",
    ] {
        let (result, took) = timed(&heap, sql);
        assert!(
            matches!(result, Err(Error::Time { .. })),
            "{sql}: {result:?} after {took:?}"
        );
        assert!(took < Duration::from_millis(1300), "{sql}: {took:?}");
    }
    #[cfg(target_os = "linux")]
    for select in [
        "select x from m order by t, x",
        "select count(*) from (select distinct t, x from m)",
        "select count(*) from (select t, count(*) from m group by t, x)",
        "select count(*) from (select t, x from m union select 'a', 1)",
        "select count(*) from m a join m b on a.t = b.t",
        "select max(r) from (select row_number() over (order by t, x) as r from m)",
        "select count(*) from objects where class in (select t || x from m)",
    ] {
        let limits = Limits {
            temporary_files: Some(8 << 20),
            time: Some(Duration::from_secs(20)),
            ..Limits::default()
        };
        let result = run(&heap, &format!("{NUMBERS}{select}"), limits, &mut Nothing);
        match result {
            Err(e @ Error::TemporaryFiles { limit }) => {
                assert_eq!(limit, 8 << 20, "{select}");
                assert_eq!(
                    e.to_string(),
                    "the query was stopped: its temporary files exceed 8388608 bytes"
                );
            }
            other => panic!("{select}: {other:?}"),
        }
    }
    // A sort is not stopped if its temporary files stay below the limit.
    let limits = Limits {
        temporary_files: Some(256 << 20),
        ..Limits::default()
    };
    let sql = format!("{NUMBERS}select * from (select * from m limit 20000) order by t");
    let outcome = run(&heap, &sql, limits, &mut Nothing).unwrap();
    assert_eq!(outcome.rows, 20_000);
}
