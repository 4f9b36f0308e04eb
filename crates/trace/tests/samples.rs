//! Tests of individual samples in a trace.
#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use heapdiff_trace::synthetic::Numbered;
use heapdiff_trace::{
    Activity, Collected, Database, EstimatedAmount, Limits, NewRun, NewTick, Sample, Samples,
    Trace, TraceError, Which, Writer, Written,
};

const START: i64 = 1_700_000_000_000;

/// A simulated JVM. The properties of each sample are computed from its uid.
#[derive(Default)]
struct Heap {
    places: RefCell<Vec<u64>>,
    collected: RefCell<Vec<Collected>>,
    told: Cell<bool>,
}

fn sample(uid: u64) -> Sample {
    let number = u32::try_from(uid % 10).unwrap();
    Sample {
        uid,
        class: number,
        stack: number,
        thread: number % 3,
        bytes: uid * 8,
        allocated_ms: uid.cast_signed(),
    }
}

fn collected(uid: u64, collected_ms: i64, recent: bool, chosen: bool) -> Collected {
    Collected {
        sample: sample(uid),
        collected_ms,
        recent,
        chosen,
    }
}

impl Samples for Heap {
    fn places(&self) -> u32 {
        u32::try_from(self.places.borrow().len()).unwrap()
    }

    fn uid(&self, place: u32) -> u64 {
        self.places.borrow()[place as usize]
    }

    fn live(&self, place: u32) -> Option<Sample> {
        let uid = self.uid(place);
        (uid != 0).then(|| sample(uid))
    }

    fn thread(&self, thread: u32) -> Option<Arc<str>> {
        Some(format!("worker-{thread}").into())
    }

    fn collected(&self, anew: bool) -> Option<Vec<Collected>> {
        let told = self.told.replace(true);
        (anew || !told).then(|| self.collected.borrow().clone())
    }
}

impl Heap {
    fn live(&self, uids: impl IntoIterator<Item = u64>) {
        *self.places.borrow_mut() = uids.into_iter().collect();
    }

    fn gone(&self, collected: Vec<Collected>) {
        *self.collected.borrow_mut() = collected;
        self.told.set(false);
    }
}

fn writer(path: &Path, max_bytes: u64) -> Writer {
    let run = NewRun {
        uid: "1-1".to_owned(),
        started_ms: START,
        ..NewRun::default()
    };
    let limits = Limits {
        max_bytes,
        ..Limits::default()
    };
    Writer::create(path, &run, limits).unwrap()
}

fn tick_with(writer: &mut Writer, heap: &Heap, uptime_ms: i64, sites: Vec<Activity>) {
    let tick = NewTick {
        time_ms: START + uptime_ms,
        uptime_ms,
        span_ms: 1000,
        sites,
        ..NewTick::default()
    };
    let written = writer.tick(&Numbered, heap, |_| tick).unwrap();
    assert_eq!(written, Written::Done);
}

fn tick(writer: &mut Writer, heap: &Heap, uptime_ms: i64) {
    tick_with(writer, heap, uptime_ms, Vec::new());
}

fn number(path: &Path, sql: &str) -> i64 {
    let database = Database::open(path).unwrap();
    let connection = database.connection();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn uids(path: &Path, which: Which) -> Vec<u64> {
    let trace = Trace::open(path).unwrap();
    let mut uids = Vec::new();
    let run = trace.runs().unwrap()[0].id;
    trace.each_sample(run, which, |s| uids.push(s.uid)).unwrap();
    assert_eq!(trace.invalid_number_count(), 0);
    uids
}

fn assert_whole(path: &Path) {
    let strays = number(path, "SELECT count(*) FROM pragma_foreign_key_check");
    assert_eq!(strays, 0);
}

#[test]
fn sample_rows_follow_the_live_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (mut writer, heap) = (writer(&path, 16 << 20), Heap::default());
    heap.live([3, 4, 0, 5, 6]);
    tick(&mut writer, &heap, 1000);
    assert_eq!(uids(&path, Which::Live), [3, 4, 5, 6]);
    // Since the first write to the trace, samples 4 and 5 were collected, and sample 7 was taken. Sample 7 has the slot
    // that sample 4 had. Sample 8 was taken and collected between the two writes, so no write recorded it as live.
    heap.live([3, 7, 0, 0, 6]);
    heap.gone(vec![
        collected(4, 1500, true, true),
        collected(5, 1500, true, false),
        collected(8, 1800, true, true),
    ]);
    tick(&mut writer, &heap, 2000);
    assert_eq!(uids(&path, Which::Live), [3, 6, 7]);
    assert_eq!(uids(&path, Which::Recent), [4, 5, 8]);
    assert_eq!(uids(&path, Which::Chosen), [4, 8]);
    // Sample 3 was removed by downsampling. Sample 9 displaces samples 4 and 5 from the list of recent samples, but the
    // random selection keeps sample 4. Sample 9 was collected, but still has the slot that it had as a live sample.
    heap.live([9, 7, 0, 0, 6]);
    heap.gone(vec![
        collected(4, 1500, false, true),
        collected(8, 1800, true, true),
        collected(9, 2900, true, false),
    ]);
    tick(&mut writer, &heap, 3000);
    assert_eq!(uids(&path, Which::Live), [6, 7]);
    assert_eq!(uids(&path, Which::Recent), [8, 9]);
    assert_eq!(uids(&path, Which::Chosen), [4, 8]);
    heap.live([0, 7, 0, 0, 6]);
    tick(&mut writer, &heap, 4000);
    assert_eq!(uids(&path, Which::Recent), [8, 9]);

    let trace = Trace::open(&path).unwrap();
    let (sites, threads) = (trace.sites().unwrap(), trace.threads().unwrap());
    let mut seen = 0;
    for which in [Which::Live, Which::Chosen] {
        trace
            .each_sample(1, which, |s| {
                let site = sites.iter().find(|site| site.id == s.site).unwrap();
                assert_eq!(*site.class, format!("com.acme.C{}", s.uid % 10));
                let thread = s.thread.map(|id| threads[&id].to_string());
                let number = s.uid % 10 % 3;
                assert_eq!(thread, (number > 0).then(|| format!("worker-{number}")));
                assert_eq!((s.bytes, s.allocated_ms), (s.uid * 8, s.uid));
                assert_eq!(s.collected_ms.is_some(), which == Which::Chosen);
                seen += 1;
            })
            .unwrap();
    }
    assert_eq!(seen, 4);
    assert_whole(&path);
}

#[test]
fn many_samples_are_written_over_several_ticks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (mut writer, heap) = (writer(&path, 64 << 20), Heap::default());
    heap.live(1..=25_000);
    for (n, rows) in [(1, 10_000), (2, 20_000), (3, 25_000), (4, 25_000)] {
        tick(&mut writer, &heap, n * 1000);
        assert_eq!(number(&path, "SELECT count(*) FROM sample"), rows);
    }
    assert_eq!(number(&path, "SELECT count(*) FROM note"), 0);
    // All samples change before each write to the trace, but one write adds at most 10,000 rows. Each write begins at
    // the slot where the last write stopped. So each slot gets a row in at least one of the writes.
    let mut least = [u64::MAX; 3];
    for n in 5..12 {
        let first = n * 100_000;
        heap.live(first..first + 25_000);
        tick(&mut writer, &heap, n.cast_signed() * 1000);
        for uid in uids(&path, Which::Live) {
            let part = usize::try_from((uid - first) / 10_000).unwrap();
            least[part] = least[part].min(n);
        }
    }
    assert!(least.iter().all(|&n| n < 12), "{least:?}");
}

#[test]
fn sample_rows_are_limited_by_the_file_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (mut writer, heap) = (writer(&path, 1 << 20), Heap::default());
    heap.live(1..=9000);
    for n in 1..=3 {
        tick(&mut writer, &heap, n * 1000);
    }
    assert_eq!(number(&path, "SELECT count(*) FROM sample"), 3072);
    assert_eq!(number(&path, "SELECT count(*) FROM note"), 1);
    let dead = (20_000..22_000).map(|uid| collected(uid, 3500, true, false));
    heap.gone(dead.collect());
    tick(&mut writer, &heap, 4000);
    assert_eq!(number(&path, "SELECT count(*) FROM sample"), 4096);
    assert_eq!(uids(&path, Which::Recent).len(), 1024);
    // When samples are gone, their rows make room for other live samples.
    heap.gone(Vec::new());
    heap.live((1..=9000).map(|uid| if uid < 8000 { 0 } else { uid }));
    for n in 5..=6 {
        tick(&mut writer, &heap, n * 1000);
    }
    assert_eq!(uids(&path, Which::Live), (8000..=9000).collect::<Vec<_>>());
    assert_eq!(number(&path, "SELECT count(*) FROM sample"), 1001);
    assert_eq!(number(&path, "SELECT count(*) FROM note"), 1);
    // The rows of another run count towards the limit.
    let run = NewRun {
        uid: "2-2".to_owned(),
        started_ms: START + 60_000,
        ..NewRun::default()
    };
    let limits = Limits {
        max_bytes: 1 << 20,
        ..Limits::default()
    };
    let mut other = Writer::create(&path, &run, limits).unwrap();
    let others = Heap::default();
    others.live(1..=9000);
    tick(&mut other, &others, 61_000);
    assert_eq!(number(&path, "SELECT count(*) FROM sample"), 3072);
}

#[test]
fn pruning_keeps_live_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (mut writer, heap) = (writer(&path, 16 << 20), Heap::default());
    heap.live([1, 2, 3]);
    for n in 1..=20 {
        if n == 3 || n == 15 {
            heap.gone(vec![
                collected(4, 2500, n == 3, true),
                collected(5, 14_500, n == 15, n == 3),
            ]);
        }
        tick(&mut writer, &heap, n * 1000);
    }
    let mut database = Database::create(&path).unwrap();
    database.prune(START + 10_500).unwrap();
    // The run is considered ended, because it has written nothing for years. It is not deleted, because it has newer
    // data.
    assert_eq!(uids(&path, Which::Live), [1, 2, 3]);
    assert_eq!(uids(&path, Which::Chosen), [] as [u64; 0]);
    assert_eq!(uids(&path, Which::Recent), [5]);
    // Deleted samples do not come back.
    heap.gone(vec![
        collected(4, 2500, true, true),
        collected(5, 14_500, true, true),
    ]);
    tick(&mut writer, &heap, 21_000);
    assert_eq!(uids(&path, Which::Chosen), [5]);
    assert_whole(&path);
    database.prune(START + 30_000).unwrap();
    for table in ["run", "sample"] {
        let left = format!("SELECT count(*) FROM {table}");
        assert_eq!(number(&path, &left), 0, "{table}");
    }
}

fn activity(site: u32, live: u64) -> Activity {
    let amount = |samples: u64| EstimatedAmount {
        samples,
        objects: 1.0,
        bytes: 24.0,
    };
    Activity {
        class: site,
        stack: site,
        allocated: amount(1),
        live: amount(live),
        ..Activity::default()
    }
}

/// If the names of classes and stacks alone fill the trace up to its maximum size, samples are not stored.
#[test]
fn names_have_priority_over_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (mut writer, heap) = (writer(&path, 1 << 20), Heap::default());
    heap.live(1..=2000);
    let mut most = 0;
    for n in 1..=300_u32 {
        let sites = (0..200).map(|i| activity(n * 200 + i, 1));
        tick_with(&mut writer, &heap, i64::from(n) * 1000, sites.collect());
        most = most.max(number(&path, "SELECT count(*) FROM sample"));
    }
    assert_eq!(most, 2000);
    assert_eq!(number(&path, "SELECT count(*) FROM sample"), 0);
    assert_eq!(number(&path, "SELECT count(*) FROM thread"), 0);
    let told = "SELECT count(*) FROM note WHERE text LIKE '%no longer stored'";
    assert_eq!(number(&path, told), 1);
    assert!(std::fs::metadata(&path).unwrap().len() <= 2 << 20);
    assert_whole(&path);
}

/// Two days of changing samples stay within the size limit, and their names are kept.
#[test]
fn a_busy_trace_stays_under_the_cap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let cap = 1 << 20;
    let run = NewRun {
        uid: "1-1".to_owned(),
        started_ms: START,
        ..NewRun::default()
    };
    let limits = Limits {
        retain: Duration::from_secs(24 * 3600),
        max_bytes: cap,
    };
    let mut writer = Writer::create(&path, &run, limits).unwrap();
    let heap = Heap::default();
    let mut next = 1;
    let mut dead: Vec<Collected> = Vec::new();
    for n in 1..=960_i64 {
        let uptime = n * 180_000;
        // Before each write to the trace, 100 of the 3,000 slots get new samples.
        let mut places = heap.places.borrow().clone();
        places.resize(3000, 0);
        for place in (0..3000).filter(|p| p % 30 == usize::try_from(n % 30).unwrap()) {
            if places[place] != 0 {
                dead.push(collected(places[place], uptime, true, n % 2 == 0));
            }
            places[place] = next;
            next += 1;
        }
        dead.drain(..dead.len().saturating_sub(512));
        heap.gone(dead.clone());
        heap.live(places);
        let number_of = |i: i64| u32::try_from((n * 7 + i * 13) % 300).unwrap();
        let sites = (0..20).map(|i| activity(number_of(i), 1));
        tick_with(&mut writer, &heap, uptime, sites.collect());
        if n % 60 == 0 {
            let file = std::fs::metadata(&path).unwrap().len();
            assert!(file <= cap, "{file} bytes after {n} ticks");
            assert_whole(&path);
        }
    }
    assert_eq!(uids(&path, Which::Live).len(), 3000);
    assert_eq!(uids(&path, Which::Recent).len(), 512);
}

/// A trace of version 1 can be read without changing the file. The next writer adds the missing tables.
#[test]
fn older_traces_are_read_and_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.pragma_update(None, "application_id", 0x6864_7472)
        .unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    old.execute_batch(include_str!("../src/schema.sql"))
        .unwrap();
    let add = "INSERT INTO run VALUES (1, 'old', 1, 'h', NULL, 5, 6, '', '', '', '', 0, 'bytes')";
    old.execute(add, []).unwrap();
    drop(old);
    assert_eq!(uids(&path, Which::Live), [] as [u64; 0]);
    let trace = Trace::open(&path).unwrap();
    assert!(!trace.has_samples() && trace.threads().unwrap().is_empty());
    drop(trace);
    let (mut writer, heap) = (writer(&path, 16 << 20), Heap::default());
    heap.live([1]);
    tick(&mut writer, &heap, 1000);
    assert_eq!(
        number(&path, "SELECT count(*) FROM sample WHERE run = 2"),
        1
    );
    assert_eq!(number(&path, "PRAGMA user_version"), 3);
    let told = "SELECT count(*) FROM tick WHERE newest_collected_ms IS NULL";
    assert_eq!(number(&path, told), 1);
    assert!(Trace::open(&path).unwrap().has_samples());
    drop(writer);
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 4).unwrap();
    drop(newer);
    for result in [Database::open(&path), Database::create(&path)] {
        assert!(matches!(result, Err(TraceError::Version { found: 4, .. })));
    }
}
