//! Compares values in a trace with values that the JVM itself reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdiff_trace::Database;
use testdata::jvm::{DumpOptions, Launch, Selection, Target};
use testdata::programs;

use crate::{CHECKED, collectors, jdks, launch, library};

/// A temporary folder that contains a trace.
pub(crate) struct Traced {
    folder: tempfile::TempDir,
}

impl Traced {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("trace.db")
    }

    pub(crate) fn options(&self, more: &str) -> String {
        format!("trace={},{more}", self.path().display())
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        number(&self.path(), sql)
    }

    fn text(&self, sql: &str) -> String {
        let database = Database::open(&self.path()).unwrap();
        let connection = database.connection();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Returns a list of all GCs in the trace as text, for error messages.
    fn collections(&self) -> String {
        self.text(
            "SELECT ifnull(group_concat(uptime_ms || ' ms: ' || collector || ', ' || cause || ', major ' || major
             || ', pause ' || pause_us || ' us, ' || before_bytes || ' to ' || after_bytes, char(10)), '')
             FROM collection ORDER BY id",
        )
    }

    /// Waits until a query returns a number other than 0.
    pub(crate) fn wait(&self, sql: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        // Queries fail until the agent has created the trace's tables.
        while Database::open(&self.path()).is_err() || self.number(sql) == 0 {
            assert!(Instant::now() < end, "never true: {sql}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the trace contains a tick (the data of one time interval) that begins after this call.
    pub(crate) fn wait_tick(&self) {
        let now = self.number("SELECT ifnull(max(id), 0) FROM tick");
        self.wait(&format!("SELECT ifnull(max(id), 0) > {now} + 1 FROM tick"));
    }

    pub(crate) fn assert_whole(&self) {
        assert_eq!(self.text("PRAGMA integrity_check"), "ok");
        assert_eq!(
            self.number("SELECT count(*) FROM pragma_foreign_key_check"),
            0
        );
    }
}

pub(crate) fn number(path: &Path, sql: &str) -> i64 {
    let database = Database::open(path).unwrap();
    let connection = database.connection();
    let number = connection.query_row(sql, [], |row| row.get(0));
    number.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Returns a query for the sum of a column over the sites that allocate a class.
fn of_class(column: &str, class: &str) -> String {
    format!(
        "SELECT ifnull(sum({column}), 0) FROM site_tick JOIN site ON site.id = site
         JOIN class ON class.id = class WHERE name = '{class}'"
    )
}

/// Returns a query for the sum of a column over the allocation sites of a class. For each site, the query uses the
/// value in the last tick that contains the site.
fn live(column: &str, class: &str) -> String {
    format!(
        "SELECT ifnull(sum(n), 0) FROM (SELECT max(tick), {column} AS n FROM site_tick
         JOIN site ON site.id = site JOIN class ON class.id = class
         WHERE name = '{class}' GROUP BY site)"
    )
}

/// Returns a query for an aggregate over the live samples of a class that the trace lists. `figure` is the aggregate in
/// SQL.
fn listed(figure: &str, class: &str) -> String {
    format!(
        "SELECT ifnull({figure}, 0) FROM sample JOIN site ON site.id = site
         JOIN class ON class.id = class WHERE name = '{class}' AND collected_ms IS NULL"
    )
}

#[test]
fn exact_when_every_allocation_is_sampled() {
    for jdk in jdks() {
        for collector in collectors(&jdk) {
            let traced = Traced::new();
            let options = traced.options("interval=0,tick=200ms");
            let mut target = launch(&jdk, "Steady", &options)
                .flags([collector, "-Xmx128m"])
                .arg("1000")
                .start()
                .unwrap();
            target.wait_ready(1).unwrap();
            target.advance(2).unwrap();
            target.histogram(Selection::Live).unwrap();
            let what = format!("JDK {} {collector}", jdk.version());
            // A frame may still hold the last dropped object, so one sample may be missing here.
            traced.wait(&format!(
                "SELECT ({}) >= 5999",
                of_class("collected_objects", "Steady$Dropped")
            ));
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(well && errors.is_empty(), "{what}: {errors}");
            for (class, allocated, alive) in
                [("Steady$Kept", 2000, 2000), ("Steady$Dropped", 6000, 0)]
            {
                for column in ["samples", "objects"] {
                    let column = format!("allocated_{column}");
                    assert_eq!(
                        traced.number(&of_class(&column, class)),
                        allocated,
                        "{what}"
                    );
                }
                let left = traced.number(&live("live_objects", class));
                assert!(
                    (alive..=alive + 1).contains(&left),
                    "{what}: {left} of {class} live"
                );
                let size = traced.number(&of_class("allocated_bytes", class)) / allocated;
                assert!((32..=48).contains(&size), "{what}: {size}");
                let bytes = traced.number(&live("live_bytes", class));
                assert_eq!(bytes, left * size, "{what}");
                // The trace lists single samples and also contains totals. The number and the bytes of the listed
                // samples must equal the totals.
                let one_by_one = |figure| traced.number(&listed(figure, class));
                let (count, sum) = (one_by_one("count(*)"), one_by_one("sum(bytes)"));
                assert_eq!((count, sum), (left, bytes), "{what}: {class}");
            }
            assert_eq!(traced.number("SELECT sum(lost_samples) FROM tick"), 0);
            // `newest_collected_ms` covers all collected samples, not only the samples that the trace lists.
            let newest = traced.number("SELECT max(newest_collected_ms) FROM tick");
            let listed = "SELECT max(allocated_ms) FROM sample WHERE collected_ms IS NOT NULL";
            let last = traced.number("SELECT max(uptime_ms) FROM tick");
            assert!(
                (traced.number(listed)..last).contains(&newest),
                "{what}: {newest}"
            );
            assert_eq!(
                traced.number("SELECT count(*) FROM run WHERE ended_ms IS NOT NULL"),
                1
            );
            traced.assert_whole();
        }
    }
}

/// Returns the values of the management beans. The program prints them.
fn beans(target: &mut Target) -> (BTreeMap<String, i64>, Vec<i64>) {
    let line = target.wait_line("BEANS").unwrap();
    let counts = line
        .split(';')
        .skip(1)
        .map(|bean| bean.split_once('=').unwrap())
        .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
        .collect();
    let line = target.wait_line("USED").unwrap();
    let used = line
        .split(';')
        .skip(1)
        .map(|n| n.parse().unwrap())
        .collect();
    (counts, used)
}

#[test]
fn totals_equal_those_of_the_mx_beans() {
    for jdk in jdks() {
        for collector in collectors(&jdk) {
            let what = format!("JDK {} {collector}", jdk.version());
            let traced = Traced::new();
            let options = traced.options("interval=64k,tick=200ms");
            let mut target = launch(&jdk, "Watched", &options)
                .flags([collector, "-Xmx256m", "-Xms256m"])
                .arg("40")
                .start()
                .unwrap();
            let asked = "SELECT count(*) FROM collection WHERE cause = 'System.gc()' AND major
                         AND after_bytes BETWEEN 20 << 20 AND 120 << 20";
            let newest = |column: &str| {
                traced.number(&format!(
                    "SELECT {column} FROM tick ORDER BY id DESC LIMIT 1"
                ))
            };
            // If the agent's values differ from the JVM's values, try again. On a busy machine, the values may differ
            // for two reasons. The trace's thread may see several GCs at once, without the cause of each GC. Or the JVM
            // may load classes or run a GC between the two readings.
            let mut phase = 1;
            loop {
                let (counts, used) = beans(&mut target);
                target.wait_ready(phase).unwrap();
                traced.wait_tick();
                let seen = ["heap_used", "metaspace_used", "loaded_classes"].map(newest);
                println!("{what}: {counts:?} {used:?} {seen:?}");
                // The tolerances allow for the size of the collector's regions and pages, and for allocations and class
                // loading between the two readings.
                let mut near = seen.iter().zip(&used).zip([8 << 20, 256 << 10, 50]);
                let are_near = near.all(|((a, b), most)| (a - b).abs() <= most);
                let are_counted = counts.iter().all(|(name, count)| {
                    let rows = traced.number(&format!(
                        "SELECT count(*) FROM collection WHERE collector = '{name}'"
                    ));
                    // Beans whose names end in `Pauses` count only the pauses of concurrent cycles. The trace does not
                    // contain GCs of these beans.
                    name.ends_with("Pauses") || rows == *count
                });
                if are_near && are_counted && traced.number(asked) > 0 {
                    break;
                }
                assert!(phase < 6, "{what}:\n{}", traced.collections());
                phase += 1;
                target.proceed().unwrap();
            }
            assert!(target.finish().unwrap());
            // The agent does not know the cause of the first GCs, during the JVM's initialization.
            let unknown = "SELECT count(*) FROM collection WHERE cause = '' AND uptime_ms > 1500";
            assert_eq!(
                traced.number(unknown),
                0,
                "{what}:\n{}",
                traced.collections()
            );
            // Each phase keeps 40 MB and drops 80 MB. The tolerance is four standard errors plus 3 %. The standard
            // error is an upper bound, computed for one sample per 64 KiB. The 3 % are for allocations that the JVM
            // does not sample. At a GC, a thread forgets how much it has allocated in its TLAB since its last sample.
            let bytes = traced.number(&of_class("allocated_bytes", "byte[]"));
            let phases = i64::from(phase);
            let truth = phases * (40 * ((1 << 20) + 16) + 80_000 * 1016);
            let error = 4.0 * (f64::from(phase) * 80_000.0 * 1016.0 * 65_536.0).sqrt();
            #[allow(clippy::cast_precision_loss, reason = "small")]
            let off = (bytes - truth) as f64;
            #[allow(clippy::cast_precision_loss, reason = "small")]
            let lost = truth as f64 * 0.03;
            assert!(
                off < error + lost && off > -error - lost,
                "{what}: {bytes} of {truth}"
            );
        }
    }
}

#[test]
fn without_the_management_module() {
    for jdk in jdks() {
        let traced = Traced::new();
        let mut target = launch(&jdk, "Steady", &traced.options("interval=16k,tick=200ms"))
            .flags(["--limit-modules", "java.base", "-Xmx128m"])
            .arg("1000")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        traced.wait_tick();
        // Without management beans, nothing reports the GCs that ran before the trace began.
        target.advance(2).unwrap();
        traced.wait_tick();
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && errors.is_empty(), "{errors}");
        for column in [
            "heap_used",
            "heap_committed",
            "metaspace_used",
            "metaspace_committed",
            "loaded_classes",
        ] {
            let none = format!("SELECT count(*) FROM tick WHERE {column} <= 0");
            assert_eq!(traced.number(&none), 0, "{column}");
        }
        let asked = "SELECT count(*) FROM collection WHERE cause = 'System.gc()' AND major AND pause_us > 0";
        assert!(traced.number(asked) >= 1);
        assert_eq!(traced.number("SELECT count(*) FROM note"), 1);
    }
}

#[test]
fn downsampling_is_noted_and_live_figures_follow() {
    for jdk in jdks() {
        let traced = Traced::new();
        let options = traced.options("interval=0,tick=200ms,max_samples=8000,classes=off");
        let mut target = launch(&jdk, "Steady", &options)
            .flag("-Xmx128m")
            .arg("10000")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        target.advance(2).unwrap();
        traced.wait_tick();
        assert!(target.finish().unwrap());
        assert!(traced.number("SELECT count(*) FROM note WHERE text LIKE 'max_samples%'") >= 1);
        let live_objects = traced.number(&live("live_objects", "Steady$Kept"));
        let lost = traced.number("SELECT sum(lost_bytes) FROM tick") / 32;
        println!("{live_objects} of 20000 live, {lost} lost");
        // Samples that were dropped while the agent's thread was busy are counted as lost. The trace does not show how
        // many of the lost samples are live.
        assert!(live_objects <= 23_000 && live_objects + lost >= 17_000);
        let samples = traced.number(&live("live_samples", "Steady$Kept"));
        assert!(samples <= 8000);
        // The trace no longer lists discarded samples.
        let listed = traced.number(&listed("count(*)", "Steady$Kept"));
        assert_eq!(listed, samples);
    }
}

#[test]
fn classes_stacks_and_dumps() {
    for jdk in jdks() {
        let traced = Traced::new();
        let mut target = launch(
            &jdk,
            "Loaders",
            &traced.options("interval=4k,tick=200ms,service=shop"),
        )
        .flags(CHECKED)
        .start()
        .unwrap();
        target.wait_ready(1).unwrap();
        let dump = traced.path().with_extension("hprof");
        target.dump(&dump, DumpOptions::default()).unwrap();
        traced.wait("SELECT count(*) FROM dump");
        target.advance(2).unwrap();
        traced.wait_tick();
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well && errors.is_empty(), "{errors}");
        let classes = |column| {
            traced.number(&format!(
                "SELECT sum({column}) FROM class_tick JOIN class ON class.id = class WHERE name = 'Loaders$Plugin'"
            ))
        };
        assert!(classes("loaded") >= 90 && classes("unloaded") >= 39);
        let through = "WITH RECURSIVE up (site, stack) AS (
                 SELECT id, stack FROM site
                 UNION ALL SELECT up.site, stack.parent FROM up JOIN stack ON stack.id = up.stack)
             SELECT count(DISTINCT site) FROM up JOIN stack ON stack.id = up.stack
             JOIN frame ON frame.id = frame JOIN class ON class.id = class
             WHERE class.name = 'Loaders' AND method = 'main' AND file = 'Loaders.java' AND line > 0";
        assert!(traced.number(through) > 0);
        assert_eq!(traced.text("SELECT service FROM run"), "shop");
        assert!(
            traced
                .text("SELECT command FROM run")
                .starts_with("Loaders")
        );
        assert!(traced.text("SELECT flags FROM run").contains("-Xcheck:jni"));
        // The id of the run is the same in the trace and in a dump.
        let dumped = crate::dumped::Dumped::read(&dump).unwrap();
        assert_eq!(traced.text("SELECT uid FROM run"), dumped.run);
    }
}

#[test]
fn attached_late_with_a_trace() {
    for jdk in jdks() {
        let traced = Traced::new();
        let classes = jdk.compile(&programs::agent("Watched.java")).unwrap();
        let mut target = Launch::class(&jdk, classes, "Watched")
            .flags(["-Xmx256m", "-XX:+UseParallelGC"])
            .arg("20")
            .start()
            .unwrap();
        let (before, _) = beans(&mut target);
        target.wait_ready(1).unwrap();
        let answer = target.load_agent(&library(), &traced.options("interval=64k,tick=200ms"));
        assert!(answer.unwrap().contains("return code: 0"));
        traced.wait("SELECT count(*) FROM tick");
        target.proceed().unwrap();
        let (after, _) = beans(&mut target);
        target.wait_ready(2).unwrap();
        assert!(target.finish().unwrap());
        for (name, count) in after {
            let rows = traced.number(&format!(
                "SELECT count(*) FROM collection WHERE collector = '{name}'"
            ));
            assert_eq!(rows, count - before[&name], "{name}");
        }
    }
}
