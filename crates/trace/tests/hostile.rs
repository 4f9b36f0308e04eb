//! Tests that reading a malicious or damaged trace returns an answer or an error in limited time.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use heapdiff_trace::synthetic::{LINES, Scene, count, write};
use heapdiff_trace::{
    By, CountedLine, HeapOutlook, Points, Steps, Timeline, Trace, TraceError, Which, Window, rank,
};

/// Runs every kind of query on a trace.
fn read(path: &Path) -> Result<u64, TraceError> {
    let trace = Trace::open(path)?;
    let stacks = trace.stacks()?;
    trace.threads()?;
    for site in trace.sites()? {
        let frames = site.stack.map_or(0, |stack| stacks.frames(stack).len());
        assert!(frames <= 1024);
    }
    for run in trace.runs()? {
        for window in [
            Window::ALL,
            Window {
                from_ms: 9000,
                to_ms: 7000,
            },
            Window {
                from_ms: 30_000,
                to_ms: 90_000,
            },
        ] {
            let all = |_: &CountedLine| true;
            if let Some(top) = trace.top_lines(run.id, window, (3, all))? {
                assert!(top.rows.len() <= 3);
                trace.sampled_lines(&run, top.part, &top.rows)?;
            }
            let timeline = Timeline::of(&trace, &run, window)?;
            let _ = HeapOutlook::of(&timeline, trace.heap_limit(&run)?);
            for by in [By::Site, By::Class] {
                let ranking = rank(&trace, &timeline, by)?;
                for candidate in &ranking.candidates {
                    let sites: Vec<i64> = candidate.sites.iter().map(|s| s.id).collect();
                    let steps = Steps::of(&trace, &timeline, &sites)?;
                    let _ = steps.growth_start(&timeline, &Points::of(&timeline));
                    assert!(steps.series(&timeline, 60).len() <= 60);
                }
            }
        }
        for which in [Which::Live, Which::Recent, Which::Chosen] {
            trace.each_sample(run.id, which, |_| ())?;
        }
        trace.each_counted_class(run.id, |_| ())?;
        trace.notes(run.id)?;
        trace.dumps(run.id)?;
    }
    Ok(trace.invalid_number_count())
}

fn made(folder: &Path, sql: &str) -> std::path::PathBuf {
    let path = folder.join("t.db");
    let _ = fs::remove_file(&path);
    write(
        &path,
        &Scene {
            ticks: 60,
            ..Scene::default()
        },
    )
    .unwrap();
    count(&path, &LINES).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA journal_mode = DELETE;")
        .unwrap();
    connection.execute_batch(sql).unwrap();
    path
}

/// SQL that adds the optional table with allocation counts by class.
const COUNTS: &str = "CREATE TABLE class_total (run, class, objects, bytes);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO class_total SELECT 1, 'com.acme.C' || i, i, 24 * i FROM n;";

#[test]
fn senseless_figures_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    for (sql, odd) in [
        ("", false),
        ("UPDATE stack SET parent = id", false),
        (
            "UPDATE stack SET parent = (SELECT max(id) FROM stack)",
            false,
        ),
        ("DELETE FROM frame; DELETE FROM class", false),
        ("DELETE FROM tick WHERE id % 3 = 0", false),
        (
            "DELETE FROM collection; DELETE FROM tick WHERE id > 1",
            false,
        ),
        ("DELETE FROM run", false),
        (
            "UPDATE site_tick SET live_bytes = -5, allocated_bytes = -1",
            true,
        ),
        (
            "UPDATE site_tick SET live_bytes = 9223372036854775807, collected_objects = 9223372036854775807",
            true,
        ),
        (
            "UPDATE site_tick SET live_bytes = 'much', live_bytes_variance = 'more', live_objects = x'00ff'",
            true,
        ),
        ("UPDATE site_tick SET live_bytes_variance = 9e999", true),
        ("UPDATE site_tick SET live_bytes_variance = -1", true),
        ("UPDATE tick SET uptime_ms = 0", false),
        (
            "UPDATE tick SET uptime_ms = 9223372036854775807, span_ms = -1",
            true,
        ),
        ("UPDATE tick SET uptime_ms = -uptime_ms, run = 'x'", false),
        ("UPDATE collection SET uptime_ms = 5, major = 'yes'", true),
        (
            "UPDATE run SET started_ms = -1, uid = x'ff', jvm = x'fffe00', command = char(0, 27, 8238)",
            true,
        ),
        (
            "UPDATE class SET name = name || printf('%.*c', 1000000, 'x')",
            false,
        ),
        (
            "UPDATE sample SET bytes = -1, allocated_ms = 'x', collected_ms = x'00'",
            true,
        ),
        (
            "UPDATE sample SET site = 99, thread = 99; DELETE FROM thread",
            false,
        ),
        ("UPDATE tick SET time_ms = 0 WHERE id % 2", false),
        (
            "UPDATE tick SET id = -id; UPDATE site_tick SET tick = -tick",
            false,
        ),
        ("UPDATE tick SET uptime_ms = 60000 - uptime_ms", false),
        (
            "CREATE TABLE heap_limit (run, heap_bytes, container_bytes); INSERT INTO heap_limit VALUES (1, -1, 'x')",
            true,
        ),
        ("UPDATE class_total SET run = 'x', class = x'00'", false),
        ("UPDATE class_total SET class = 'twice'", false),
        (
            "UPDATE class_total SET class = printf('%.*c', 1000000, 'x') WHERE objects < 9",
            false,
        ),
        ("UPDATE class_total SET objects = -1", true),
        ("UPDATE class_total SET bytes = 9223372036854775807", true),
        (
            "UPDATE class_total SET objects = 'many', bytes = x'00', class = NULL",
            true,
        ),
        ("UPDATE counting SET from_ms = -1, jdk = 'yes'", true),
        ("UPDATE counted_amount SET objects = -1", true),
        (
            "UPDATE counted_amount SET objects = 9223372036854775807, array_bytes = 'much'",
            true,
        ),
        ("UPDATE counted_amount SET site = 'x' WHERE site = 1", true),
        ("UPDATE counted_amount SET site = 99 WHERE site = 1", false),
        ("UPDATE counted_span SET span_ms = -1", true),
        ("UPDATE counted_span SET uptime_ms = -5", false),
        ("UPDATE counted_span SET uptime_ms = 5", false),
        (
            "UPDATE counted_site SET line = 'x', object_bytes = -1",
            true,
        ),
        (
            "UPDATE counted_site SET class = printf('%.*c', 1000000, 'x') WHERE id = 1",
            false,
        ),
        ("DELETE FROM counted_site", false),
    ] {
        let path = made(folder.path(), &format!("{COUNTS}{sql}"));
        let found = read(&path).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(found > 0, odd, "{sql}: {found}");
    }
}

#[test]
fn views_instead_of_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i";
    for sql in [
        format!(
            "DROP TABLE note; CREATE VIEW note AS {endless} AS run, i AS time_ms, 'x' AS text, i AS id FROM n"
        ),
        format!(
            "CREATE VIEW class_total AS {endless} AS run, i AS class, i AS objects, i AS bytes FROM n"
        ),
        "CREATE VIRTUAL TABLE class_total USING fts5 (run, class)".to_owned(),
        "CREATE VIRTUAL TABLE heap_limit USING fts5 (run, heap_bytes)".to_owned(),
        format!(
            "DROP TABLE counted_amount; CREATE VIEW counted_amount AS {endless} AS span, i AS site, i AS objects FROM n"
        ),
        "DROP TABLE counting; CREATE VIRTUAL TABLE counting USING fts5 (run, jdk)".to_owned(),
        "DROP TABLE dump".to_owned(),
        "DROP TABLE sample".to_owned(),
        "DROP TABLE dump; CREATE VIRTUAL TABLE dump USING fts5 (id, run)".to_owned(),
    ] {
        let path = made(folder.path(), &sql);
        assert!(
            matches!(read(&path), Err(TraceError::Table { .. })),
            "{sql}"
        );
    }
    // In the first two databases, a table lacks a column. In the third one, a table has a generated column whose value
    // is too large.
    let path = made(
        folder.path(),
        "CREATE TABLE class_total (run, class, objects)",
    );
    assert!(matches!(read(&path), Err(TraceError::Sqlite { .. })));
    let path = made(folder.path(), "ALTER TABLE note DROP COLUMN text");
    assert!(matches!(read(&path), Err(TraceError::Sqlite { .. })));
    let path = made(
        folder.path(),
        "ALTER TABLE note RENAME COLUMN text TO old; ALTER TABLE note ADD COLUMN text AS (zeroblob(2000000000))",
    );
    assert!(matches!(read(&path), Err(TraceError::Sqlite { .. })));
}

#[test]
fn damaged_files_end_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path(), &format!("{COUNTS} VACUUM"));
    let whole = fs::read(&path).unwrap();
    let mut seed = 99_u64;
    let mut next = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let start = Instant::now();
    let mut read_well = 0;
    for round in 0..150 {
        let mut bytes = whole.clone();
        for _ in 0..1 + next() % 24 {
            // In every second round, only the first 64 bytes of a page are damaged. So the headers of pages are damaged
            // more often than the contents.
            let page = next() % (bytes.len() / 4096) * 4096;
            let at = page + next() % if round % 2 == 0 { 4096 } else { 64 };
            if at >= 100 {
                bytes[at] = next() as u8;
            }
        }
        if round % 10 == 0 {
            bytes.truncate(next() % bytes.len());
        }
        fs::write(&path, &bytes).unwrap();
        read_well += usize::from(read(&path).is_ok());
    }
    assert!(read_well < 150, "some damage is found");
    assert!(
        start.elapsed() < Duration::from_secs(300),
        "{:?}",
        start.elapsed()
    );
}
