//! The trace's file under everything that can happen to one.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use testdata::jvm::Jdk;

use crate::traced::Traced;
use crate::{jdks, launch};

const KILLS: usize = 50;
const TICK: i64 = 500;
/// What a busy machine adds to a tick now and then, and what it adds mostly.
const LATE: i64 = 3000;
const MOSTLY_LATE: i64 = 400;

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// Kills a JVM at a moment, looks at what it has left, and at what the next one makes of that.
fn kill(jdk: &Jdk, number: usize) -> i64 {
    let traced = Traced::new();
    let options = traced.options(&format!("interval=4k,tick={TICK}ms"));
    let target = launch(jdk, "Drip", &options)
        .flags(["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
        .start()
        .unwrap();
    traced.wait("SELECT count(*) FROM sqlite_schema WHERE name = 'note'");
    // Anywhere in a tick, while the agent sets up and later.
    std::thread::sleep(Duration::from_millis((number as u64 * 379) % 2300));
    let seen = traced.number("SELECT count(*) FROM tick");
    let killed = wall_ms();
    drop(target);
    traced.assert_whole();
    assert!(traced.number("SELECT count(*) FROM run") <= 1);
    let started = traced.number("SELECT ifnull(max(started_ms), 0) FROM run");
    let last = traced.number("SELECT ifnull(max(time_ms), 0) FROM tick");
    let gap = killed - last.max(started);
    assert!(
        seen == 0 || gap <= TICK + LATE,
        "kill {number}: {gap} ms are missing"
    );
    let holes = "SELECT count(*) FROM tick WHERE uptime_ms - span_ms NOT IN
                 (SELECT uptime_ms FROM tick UNION SELECT 0)";
    assert_eq!(traced.number(holes), 0, "kill {number}");
    assert_eq!(
        traced.number("SELECT count(*) FROM run WHERE ended_ms IS NOT NULL"),
        0
    );
    // What anybody has seen is there for good.
    assert!(traced.number("SELECT count(*) FROM tick") >= seen);
    if seen == 0 { 0 } else { gap }
}

#[test]
fn a_killed_jvm_loses_a_tick_at_most() {
    let jdks = jdks();
    let (next, soon) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= KILLS {
                        break;
                    }
                    if kill(&jdks[number % jdks.len()], number) <= TICK + MOSTLY_LATE {
                        soon.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    // Two ticks are never missing but for want of a processor.
    let soon = soon.load(Relaxed);
    println!("{soon} of {KILLS} within a tick");
    assert!(soon * 4 >= KILLS * 3, "only {soon} within a tick");
}

/// Lines of the agent on standard error.
fn said(errors: &str) -> Vec<&str> {
    errors.lines().filter(|l| l.contains("heapdiff")).collect()
}

#[test]
fn a_full_disk_ends_the_trace_and_nothing_else() {
    for jdk in jdks() {
        let traced = Traced::new();
        // No file may pass 2000 blocks (of 512 bytes): writing more fails as on a full disk.
        let mut target = launch(&jdk, "Watched", &traced.options("interval=0,tick=100ms"))
            .flag("-Xmx256m")
            .through(["sh", "-c", "ulimit -f 2000; exec \"$0\" \"$@\""])
            .arg("4")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let mut phase = 1;
        let end = Instant::now() + Duration::from_secs(30);
        while !target.errors().contains("the trace ends here") {
            assert!(Instant::now() < end, "{}", target.errors());
            phase += 1;
            target.advance(phase).unwrap();
        }
        target.advance(phase + 1).unwrap();
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{errors}");
        assert_eq!(said(&errors).len(), 1, "{errors}");
        println!("{errors}");
        traced.assert_whole();
        assert!(traced.number("SELECT count(*) FROM tick") > 0);
    }
}

#[test]
fn what_cannot_be_a_trace_is_told_in_one_line() {
    for jdk in jdks() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "these are no ticks, but words").unwrap();
        let foreign = folder.path().join("other.db");
        let other = rusqlite::Connection::open(&foreign).unwrap();
        other.execute_batch("CREATE TABLE mine (x)").unwrap();
        drop(other);
        let before = std::fs::read(&foreign).unwrap();
        let held = Traced::new();
        drop(heapdiff_trace::Database::create(&held.path()).unwrap());
        let holder = rusqlite::Connection::open(held.path()).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        for (path, why) in [
            (folder.path().join("none/t.db"), "unable to open"),
            (folder.path().to_owned(), "unable to open"),
            // Nobody may make files there.
            ("/sys/t.db".into(), "unable to open"),
            ("/dev/null".into(), "heapdiff agent"),
            (text.clone(), "not a database"),
            (foreign.clone(), "not a heapdiff trace"),
            (held.path(), "locked"),
        ] {
            let options = format!("interval=0,trace={}", path.display());
            let mut target = launch(&jdk, "Steady", &options)
                .flag("-Xmx128m")
                .arg("100")
                .start()
                .unwrap();
            target.wait_ready(1).unwrap();
            let end = Instant::now() + Duration::from_secs(20);
            while target.errors().is_empty() {
                assert!(Instant::now() < end, "{} is a trace", path.display());
                std::thread::sleep(Duration::from_millis(20));
            }
            // Sampling goes on.
            let dumped = crate::dumped::Dumped::of(&target);
            assert_eq!(dumped.of_kind("Steady.keep", "Steady$Kept").len(), 100);
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(well && said(&errors).len() == 1, "{errors}");
            assert!(
                errors.contains("the trace ends here") && errors.contains(why),
                "{errors}"
            );
        }
        assert_eq!(std::fs::read(&foreign).unwrap(), before);
        assert_eq!(std::fs::read_to_string(&text).unwrap().len(), 29);
    }
}

/// A disk that nobody can write to, not even root: it is mounted so, where only the JVM sees it.
#[test]
#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn a_folder_that_is_read_only_costs_one_warning() {
    let id = std::process::Command::new("id").arg("-u").output().unwrap();
    if id.stdout.trim_ascii() != b"0" {
        eprintln!("not root: nothing can be mounted");
        return;
    }
    let jdks = jdks();
    let folder = tempfile::tempdir().unwrap();
    let mount = folder.path().join("disk");
    std::fs::create_dir(&mount).unwrap();
    let script = format!(
        "mount -t tmpfs none '{0}' && mount -o remount,ro '{0}' && exec \"$0\" \"$@\"",
        mount.display()
    );
    let options = format!("interval=0,trace={}/t.db", mount.display());
    let mut target = launch(&jdks[0], "Steady", &options)
        .flag("-Xmx128m")
        .through(["unshare", "-m", "sh", "-c", &script])
        .arg("100")
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while target.errors().is_empty() {
        assert!(Instant::now() < end, "nothing is said");
        std::thread::sleep(Duration::from_millis(20));
    }
    let dumped = crate::dumped::Dumped::of(&target);
    assert_eq!(dumped.of_kind("Steady.keep", "Steady$Kept").len(), 100);
    target.advance(2).unwrap();
    let (well, errors) = target.finish_with_errors().unwrap();
    assert!(well && said(&errors).len() == 1, "{errors}");
    assert!(
        errors.contains("t.db") && errors.contains("the trace ends here"),
        "{errors}"
    );
    assert!(std::fs::read_dir(&mount).unwrap().next().is_none());
}

#[test]
fn two_jvms_on_one_file() {
    for jdk in jdks() {
        let traced = Traced::new();
        let options = traced.options("interval=0,tick=100ms,service=%p");
        let start = |n: &str| {
            let target = launch(&jdk, "Steady", &options)
                .flag("-Xmx128m")
                .arg(n)
                .start();
            target.unwrap()
        };
        let (mut a, mut b) = (start("1000"), start("500"));
        a.wait_ready(1).unwrap();
        b.wait_ready(1).unwrap();
        traced.wait("SELECT count(DISTINCT run) = 2 FROM tick");
        // A third holds the file for longer than a tick: what happens meanwhile is in a longer one.
        let holder = rusqlite::Connection::open(traced.path()).unwrap();
        holder.busy_timeout(Duration::from_secs(5)).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        a.advance(2).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        holder.execute_batch("ROLLBACK").unwrap();
        drop(holder);
        traced.wait("SELECT count(DISTINCT run) = 2 FROM tick WHERE span_ms > 1500");
        let (well, errors) = a.finish_with_errors().unwrap();
        assert!(well && errors.is_empty(), "{errors}");
        let (well, errors) = b.finish_with_errors().unwrap();
        assert!(well && errors.is_empty(), "{errors}");
        let kept = "SELECT sum(allocated_objects) FROM site_tick JOIN site ON site.id = site
                    JOIN class ON class.id = class WHERE name = 'Steady$Kept'";
        assert_eq!(traced.number(kept), 2500);
        let runs = "SELECT count(*) FROM run WHERE ended_ms IS NOT NULL";
        assert_eq!(traced.number(runs), 2);
        traced.assert_whole();
    }
}
