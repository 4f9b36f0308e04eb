//! Tests of a run whose JVM is alive although another process considers the run ended.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use heapdiff_trace::synthetic::Numbered;
use heapdiff_trace::{
    Activity, ClassTotal, Collected, Database, EstimatedAmount, Limits, NewRun, NewTick, Sample,
    Samples, Trace, Which, Writer, Written,
};

const START: i64 = 1_700_000_000_000;
const MINUTE: i64 = 60_000;
/// Three hours in milliseconds. A JVM that writes nothing for this long is considered ended.
const LATER: i64 = 3 * 60 * MINUTE;
const GONE: &str = "another process deleted the run from the trace";

/// A test implementation of [`Samples`]: two slots, each with a live sample.
struct Two;

impl Samples for Two {
    fn places(&self) -> u32 {
        2
    }

    fn uid(&self, place: u32) -> u64 {
        u64::from(place) + 1
    }

    fn live(&self, place: u32) -> Option<Sample> {
        Some(Sample {
            uid: self.uid(place),
            class: place,
            stack: place,
            ..Sample::default()
        })
    }

    fn thread(&self, _: u32) -> Option<Arc<str>> {
        None
    }

    fn collected(&self, _: bool) -> Option<Vec<Collected>> {
        None
    }
}

fn writer(path: &Path, uid: &str, started_ms: i64, limits: Limits) -> Writer {
    let run = NewRun {
        uid: uid.to_owned(),
        started_ms,
        ..NewRun::default()
    };
    Writer::create(path, &run, limits).unwrap()
}

/// Returns the writer of the first of two JVMs, which stays alive.
fn first(path: &Path) -> Writer {
    writer(path, "1-1", START, Limits::default())
}

fn tick(time_ms: i64, uptime_ms: i64, span_ms: i64, sites: &[u32]) -> NewTick {
    let amount = EstimatedAmount {
        samples: 1,
        objects: 1.0,
        bytes: 24.0,
    };
    let activity = |&site: &u32| Activity {
        class: site,
        stack: site,
        live: amount,
        ..Activity::default()
    };
    let total = |&class: &u32| ClassTotal {
        class,
        objects: 1,
        bytes: 24,
    };
    NewTick {
        time_ms,
        uptime_ms,
        span_ms,
        sites: sites.iter().map(activity).collect(),
        class_totals: sites.iter().map(total).collect(),
        ..NewTick::default()
    }
}

/// Writes the data of one period of the first of two JVMs. Returns true if the writer requested the complete state and
/// not only the changes.
fn lives(writer: &mut Writer, uptime_ms: i64, span_ms: i64, sites: &[u32]) -> bool {
    let mut told_anew = false;
    let written = writer.tick(&Numbered, &Two, |anew| {
        told_anew = anew;
        tick(START + uptime_ms, uptime_ms, span_ms, sites)
    });
    assert_eq!(written.unwrap(), Written::Done);
    told_anew
}

/// Opens the file as another JVM, with a size limit that the file exceeds.
fn other(path: &Path, uid: &str, time_ms: i64) -> Writer {
    let limits = Limits {
        max_bytes: 1,
        ..Limits::default()
    };
    let mut other = writer(path, uid, time_ms - 20_000, limits);
    let written = other.tick(&Numbered, &(), |_| tick(time_ms, 20_000, 20_000, &[]));
    assert_eq!(written.unwrap(), Written::Done);
    other
}

fn number(path: &Path, sql: &str) -> i64 {
    let database = Database::open(path).unwrap();
    let connection = database.connection();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

const FIRST: &str = "SELECT count(*) FROM run WHERE uid = '1-1'";

#[test]
fn a_deleted_run_is_restored_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let mut first = first(&path);
    assert!(!lives(&mut first, 1000, 1000, &[0, 1, 2]));
    let second = other(&path, "2-1", START + LATER);
    assert_eq!(number(&path, FIRST), 0, "nothing tells that it lives");
    assert!(lives(&mut first, LATER + 1000, LATER, &[0, 1]));
    assert!(!lives(&mut first, LATER + 2000, 1000, &[1]));
    drop(second);
    let trace = Trace::open(&path).unwrap();
    let runs = trace.runs().unwrap();
    let run = runs.iter().find(|run| run.uid == "1-1").unwrap();
    assert_eq!(
        (run.id, run.started_ms),
        (1, START.unsigned_abs()),
        "it is the same run"
    );
    let notes = trace.notes(run.id).unwrap();
    let told: Vec<_> = notes.iter().filter(|n| n.text.contains(GONE)).collect();
    assert_eq!(told.len(), 1, "{notes:?}");
    let mut uids = Vec::new();
    trace
        .each_sample(run.id, Which::Live, |s| uids.push(s.uid))
        .unwrap();
    assert_eq!(uids, [1, 2]);
    for (sql, expected) in [
        ("SELECT count(*) FROM tick WHERE run = 1", 2),
        (
            "SELECT sum(live_objects) FROM site_tick WHERE tick = (SELECT min(id) FROM tick WHERE run = 1)",
            2,
        ),
        ("SELECT sum(objects) FROM class_total WHERE run = 1", 3),
        (
            "SELECT count(*) FROM note WHERE run <> 1 AND text LIKE '%considered ended%'",
            0,
        ),
        ("SELECT count(*) FROM pragma_foreign_key_check", 0),
    ] {
        assert_eq!(number(&path, sql), expected, "{sql}");
    }
    first.end(START + LATER + 3000).unwrap();
    assert_eq!(
        number(&path, "SELECT count(*) FROM run WHERE ended_ms > 0"),
        1
    );
}

/// If the run with the highest id is deleted, the next run gets the same id. The writer of the deleted run must not
/// write to that run.
#[test]
fn a_deleted_run_writes_nothing_to_the_run_with_its_id() {
    for goes_on in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let mut first = first(&path);
        lives(&mut first, 1000, 1000, &[1]);
        let mut database = Database::create(&path).unwrap();
        database.prune(START + LATER).unwrap();
        let _second = other(&path, "2-1", START + LATER);
        assert_eq!(number(&path, "SELECT id FROM run"), 1);
        if goes_on {
            assert!(lives(&mut first, LATER + 1000, LATER, &[1]));
        }
        first.end(START + LATER + 2000).unwrap();
        let ended = "SELECT count(*) FROM run WHERE uid = '1-1' AND ended_ms IS NOT NULL";
        assert_eq!(number(&path, ended), i64::from(goes_on));
        let running = "SELECT count(*) FROM run WHERE ended_ms IS NULL AND id = 1";
        assert_eq!(number(&path, running), 1);
        let ticks = "SELECT count(*) FROM tick WHERE run = 1";
        assert_eq!(number(&path, ticks), 1);
    }
}

/// A run is considered ended if nothing was written for ten minutes more than the length of its last recorded period.
/// So after a period of one hour, the run is considered ended after one hour and ten minutes.
#[test]
fn a_run_is_alive_until_its_next_tick_is_overdue() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let hour = 60 * MINUTE;
    let mut first = first(&path);
    lives(&mut first, hour, hour, &[1]);
    drop(other(&path, "2-1", START + 2 * hour + 5 * MINUTE));
    assert_eq!(number(&path, FIRST), 1);
    drop(other(&path, "3-1", START + 2 * hour + 15 * MINUTE));
    assert_eq!(number(&path, FIRST), 0, "the next one is overdue");
}

/// The run itself stays in the trace, but the names of its classes and stacks were deleted, because it has no live
/// objects.
#[test]
fn deleted_names_are_looked_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let mut first = first(&path);
    lives(&mut first, 1000, 1000, &[1, 2]);
    lives(&mut first, 2000, 1000, &[2]);
    let stranger = rusqlite::Connection::open(&path).unwrap();
    stranger
        .execute_batch(
            "PRAGMA foreign_keys = OFF; DELETE FROM site_tick; DELETE FROM class_tick; DELETE FROM sample;
             DELETE FROM site; DELETE FROM stack; DELETE FROM frame; DELETE FROM class;
             INSERT INTO class (name) VALUES ('com.acme.Other')",
        )
        .unwrap();
    drop(stranger);
    assert!(!lives(&mut first, LATER, LATER, &[1]));
    for (sql, expected) in [
        ("SELECT count(*) FROM pragma_foreign_key_check", 0),
        (
            "SELECT count(*) FROM site_tick JOIN site ON site.id = site JOIN class ON class.id = class
             WHERE name = 'com.acme.C1'",
            1,
        ),
        ("SELECT count(*) FROM sample", 2),
    ] {
        assert_eq!(number(&path, sql), expected, "{sql}");
    }
}
