//! Tests the trace's file in three situations: the JVM is killed, the file cannot be written, or another process uses
//! the trace.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use heapdiff_trace::{Limits, NewRun, NewTick, Writer};
use testdata::jvm::{Jdk, Target};

use crate::traced::{Traced, number};
use crate::{jdks, launch};

const KILLS: usize = 50;
const TICK: i64 = 500;
/// Limits in milliseconds for the delay with which the agent writes a tick (the data of one time interval) on a busy
/// machine. No tick may be later than `LATE`. In at least three quarters of the runs, the tick must not be later than
/// `MOSTLY_LATE`.
const LATE: i64 = 3000;
const MOSTLY_LATE: i64 = 400;

fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// Kills a JVM at some moment. Checks the trace file that the JVM has left, and checks that the next JVM continues this
/// file.
fn kill(jdk: &Jdk, number: usize) -> i64 {
    let traced = Traced::new();
    let options = traced.options(&format!("interval=4k,tick={TICK}ms"));
    let target = launch(jdk, "Drip", &options)
        .flags(["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
        .start()
        .unwrap();
    traced.wait("SELECT count(*) FROM sqlite_schema WHERE name = 'note'");
    // Each run waits for a different time. So the JVM may be killed at any moment: during the setup, or at any time
    // before, during or after a write to the trace.
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
    // Each tick (the data of one time interval) that was visible before the JVM was killed must still be in the trace.
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
    // A killed JVM should lose at most one tick. On a busy machine, it may lose more. So at least three quarters of the
    // runs, but not all of them, must lose at most one tick.
    let soon = soon.load(Relaxed);
    println!("{soon} of {KILLS} within a tick");
    assert!(soon * 4 >= KILLS * 3, "only {soon} within a tick");
}

/// Returns the lines that the agent has printed on standard error.
fn said(errors: &str) -> Vec<&str> {
    errors.lines().filter(|l| l.contains("heapdiff")).collect()
}

#[test]
fn a_file_size_limit_ends_only_the_trace() {
    for jdk in jdks() {
        let traced = Traced::new();
        // Limit each file's size to 2000 blocks of 512 bytes.
        let mut target = launch(&jdk, "Watched", &traced.options("interval=0,tick=100ms"))
            .flag("-Xmx256m")
            .through(["sh", "-c", "ulimit -f 2000; exec \"$0\" \"$@\""])
            .arg("4")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let mut phase = 1;
        let end = Instant::now() + Duration::from_secs(30);
        while !target.errors().contains("the trace stopped") {
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
fn files_that_cannot_be_traces_are_reported_in_one_line() {
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
            // Nobody can create files in this folder.
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
            // Sampling continues, although the trace has ended.
            let dumped = crate::dumped::Dumped::of(&target);
            assert_eq!(dumped.of_kind("Steady.keep", "Steady$Kept").len(), 100);
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(well && said(&errors).len() == 1, "{errors}");
            assert!(
                errors.contains("the trace stopped") && errors.contains(why),
                "{errors}"
            );
        }
        assert_eq!(std::fs::read(&foreign).unwrap(), before);
        assert_eq!(std::fs::read_to_string(&text).unwrap().len(), 29);
    }
}

#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn may_mount() -> bool {
    let id = std::process::Command::new("id").arg("-u").output().unwrap();
    let is_root = id.stdout.trim_ascii() == b"0";
    if !is_root {
        eprintln!("not root: nothing can be mounted");
    }
    is_root
}

/// Returns true if this process has a private mount namespace, which ends with the process. Otherwise returns false. In
/// this case, if the user is root, first runs the test in another process that has such a namespace.
fn has_own_mounts(test: &str) -> bool {
    const OWN: &str = "HEAPDIFF_TEST_HAS_OWN_MOUNTS";
    if std::env::var_os(OWN).is_some() {
        return true;
    }
    if may_mount() {
        let run = std::process::Command::new("unshare")
            .arg("--mount")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("traced_files::{test}")])
            .env(OWN, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        let well = run.status.success() && said.contains("1 passed");
        assert!(well, "{said}{}", String::from_utf8_lossy(&run.stderr));
    }
    false
}

fn mount(args: &[&str], disk: &Path) {
    let mut mount = std::process::Command::new("mount");
    assert!(mount.args(args).arg(disk).status().unwrap().success());
}

/// A small file system. Dropping this value unmounts it.
struct Disk {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Disk {
    fn new(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).unwrap();
        mount(&["-t", "tmpfs", "-o", options, "none"], &path);
        Self {
            path,
            _folder: folder,
        }
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.path.join("fill")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.path.join("fill")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut unmount = std::process::Command::new("umount");
        let _ = unmount.arg("--lazy").arg(&self.path).status();
    }
}

/// A JVM that writes its trace to a small disk.
struct Recorded<'a> {
    target: Target,
    disk: &'a Disk,
}

impl<'a> Recorded<'a> {
    /// Starts a JVM whose agent samples every allocation.
    fn start(jdk: &Jdk, disk: &'a Disk, strategy: &str) -> Self {
        let options = format!("{strategy},tick=200ms,trace={}/t.db", disk.path.display());
        let mut target = launch(jdk, "Steady", &options)
            .flag("-Xmx128m")
            .arg("1000")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        Self { target, disk }
    }

    fn number(&self, sql: &str) -> i64 {
        number(&self.disk.path.join("t.db"), sql)
    }

    /// Waits until the agent has printed `count` lines, the last of which contains `text`.
    fn said(&self, count: usize, text: &str) {
        let end = Instant::now() + Duration::from_secs(40);
        loop {
            let errors = self.target.errors();
            let said = said(&errors);
            if said.len() == count && said[count - 1].contains(text) {
                break;
            }
            assert!(said.len() <= count, "{errors}");
            assert!(Instant::now() < end, "no {text}: {errors}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Checks that the trace contains everything that was allocated until the end of a phase.
    fn assert_all(&self, phase: i64) {
        for (class, each) in [("Steady$Kept", 1000), ("Steady$Dropped", 3000)] {
            let sql = format!(
                "SELECT ifnull(sum(allocated_objects), 0) FROM site_tick JOIN site ON site.id = site
                 JOIN class ON class.id = class WHERE name = '{class}'"
            );
            let end = Instant::now() + Duration::from_secs(20);
            while self.number(&sql) != each * phase {
                assert!(Instant::now() < end, "{} of {class}", self.number(&sql));
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        assert_eq!(self.number("SELECT count(*) FROM run"), 1);
        let strays = "SELECT count(*) FROM pragma_foreign_key_check";
        assert_eq!(self.number(strays), 0);
        let holes = "SELECT count(*) FROM tick WHERE uptime_ms - span_ms NOT IN
                     (SELECT uptime_ms FROM tick UNION SELECT 0)";
        assert_eq!(self.number(holes), 0);
    }

    /// Returns the number of ticks that last at least 9.5 seconds, and the number of the trace's notes about a disk
    /// that was full for 10 to 19 seconds.
    fn gaps(&self) -> (i64, i64) {
        (
            self.number("SELECT count(*) FROM tick WHERE span_ms >= 9500"),
            self.number(
                "SELECT count(*) FROM note WHERE text LIKE 'the disk was full, so the trace has only one data point for 1_s'",
            ),
        )
    }
}

const NO_ROOM: &str = "t.db: the disk is full; the trace continues when there is space again";
const ROOM: &str = "t.db: the disk has space again after 1";

#[test]
fn a_trace_goes_on_once_its_disk_has_room() {
    if !has_own_mounts("a_trace_goes_on_once_its_disk_has_room") {
        return;
    }
    let jdk = &jdks()[0];
    std::thread::scope(|scope| {
        scope.spawn(|| goes_on(jdk, "interval=0"));
        scope.spawn(|| {
            let counted = goes_on(jdk, COUNTING);
            assert_eq!(counted, 4000);
        });
    });
}

/// Options with which the agent also counts all allocations of each class.
const COUNTING: &str = "strategy=class,rate=1";

/// Checks that a trace continues after its disk was full. Also checks what the agent prints if the disk is full at the
/// end. With [`COUNTING`], returns the number of counted objects of `Steady$Kept`; otherwise returns 0.
fn goes_on(jdk: &Jdk, strategy: &str) -> i64 {
    let disk = Disk::new("size=8m");
    let mut on = Recorded::start(jdk, &disk, strategy);
    on.assert_all(1);
    assert_eq!(on.gaps(), (0, 0));
    disk.fill();
    on.target.advance(2).unwrap();
    on.said(1, NO_ROOM);
    on.target.advance(3).unwrap();
    disk.make_room();
    on.said(2, ROOM);
    on.assert_all(3);
    on.target.advance(4).unwrap();
    on.assert_all(4);
    assert_eq!(on.gaps(), (1, 1));
    // The full disk has not affected the list of live samples: it is still complete.
    let live =
        "SELECT count(*) FROM sample JOIN site ON site.id = site JOIN class ON class.id = class
                WHERE collected_ms IS NULL AND name = 'Steady$Kept'";
    assert_eq!(on.number(live), 4000);
    let counted = match strategy {
        COUNTING => "SELECT objects FROM class_total WHERE class = 'Steady$Kept'",
        _ => "SELECT count(*) FROM sqlite_schema WHERE name = 'class_total'",
    };
    let counted = on.number(counted);
    // The disk is full again, until the JVM ends.
    disk.fill();
    on.target.advance(5).unwrap();
    on.said(3, NO_ROOM);
    let (well, errors) = on.target.finish_with_errors().unwrap();
    let said = said(&errors);
    assert!(well && said.len() == 4, "{errors}");
    let last = "the trace stopped: ";
    assert!(
        said[3].contains(last) && said[3].contains("s is missing"),
        "{errors}"
    );
    assert!(!errors.contains("sampling continues"), "{errors}");
    counted
}

#[test]
fn a_trace_begins_once_its_disk_has_room() {
    if !has_own_mounts("a_trace_begins_once_its_disk_has_room") {
        return;
    }
    let jdk = &jdks()[0];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let disk = Disk::new("size=4m");
            begins_once(jdk, &disk, || ());
        });
        scope.spawn(|| {
            // The file system has three inodes: one for the folder, one for the file that fills the disk, and one for
            // the trace. No inode is left for the trace's log.
            let disk = Disk::new("size=4m,nr_inodes=3");
            begins_once(jdk, &disk, || {
                mount(&["-o", "remount,nr_inodes=100"], &disk.path)
            });
        });
    });
}

fn begins_once(jdk: &Jdk, disk: &Disk, has_room: impl Fn()) {
    disk.fill();
    let on = Recorded::start(jdk, disk, "interval=0");
    on.said(1, NO_ROOM);
    has_room();
    disk.make_room();
    on.said(2, ROOM);
    on.assert_all(1);
    assert_eq!(on.gaps(), (1, 1));
    let (well, errors) = on.target.finish_with_errors().unwrap();
    assert!(well && said(&errors).len() == 2, "{errors}");
}

/// Nobody can write to the disk, not even root: it is mounted read-only in a mount namespace that only the JVM sees.
#[test]
fn a_folder_that_is_read_only_costs_one_warning() {
    if !may_mount() {
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
        errors.contains("t.db") && errors.contains("the trace stopped"),
        "{errors}"
    );
    assert!(std::fs::read_dir(&mount).unwrap().next().is_none());
}

/// Another process deletes the JVM's run from the trace, because the trace is larger than the limit of this process.
/// The clock of this process is days ahead, so the run seems to have ended.
#[test]
fn a_run_deleted_by_another_process_is_restored() {
    let traced = Traced::new();
    let options = traced.options(&format!("{COUNTING},tick=3s"));
    let mut target = launch(&jdks()[0], "Steady", &options)
        .flag("-Xmx128m")
        .arg("1000")
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let kept = "SELECT ifnull(sum(objects), 0) FROM class_total WHERE class = 'Steady$Kept'";
    traced.wait("SELECT count(*) FROM sqlite_schema WHERE name = 'class_total'");
    traced.wait(&format!("SELECT ({kept}) = 1000"));
    let ahead = wall_ms() + 3 * 24 * 3600 * 1000;
    let run = NewRun {
        uid: "ahead".to_owned(),
        started_ms: ahead,
        ..NewRun::default()
    };
    let limits = Limits {
        max_bytes: 1,
        ..Limits::default()
    };
    // Let the other process act right after the JVM has written to its trace. The clock of the other process is days
    // ahead, so it sees a trace to which the JVM has written nothing for days.
    traced.wait_tick();
    let mut other = Writer::create(&traced.path(), &run, limits).unwrap();
    let tick = |_| NewTick {
        time_ms: ahead,
        ..NewTick::default()
    };
    other.tick(&(), &(), tick).unwrap();
    other.end(ahead).unwrap();
    traced.wait(
        "SELECT count(*) FROM note WHERE text LIKE '%another process deleted the run from the trace%'",
    );
    // After the other process deleted the run, the agent writes it again. The agent reports all live objects again,
    // although they have not changed. The allocation counts again include everything since the JVM's start.
    let live = "SELECT ifnull(sum(n), 0) FROM (SELECT max(tick), live_objects AS n FROM site_tick JOIN site ON site.id = site
                JOIN class ON class.id = class WHERE name = 'Steady$Kept' GROUP BY site)";
    let listed =
        "SELECT count(*) FROM sample JOIN site ON site.id = site JOIN class ON class.id = class
                  WHERE collected_ms IS NULL AND name = 'Steady$Kept'";
    for sql in [live, listed, kept] {
        assert_eq!(traced.number(sql), 1000, "{sql}");
    }
    target.advance(2).unwrap();
    traced.wait(&format!("SELECT ({live}) = 2000 AND ({kept}) = 2000"));
    let (well, errors) = target.finish_with_errors().unwrap();
    assert!(well && said(&errors).is_empty(), "{errors}");
    let ended = "SELECT count(*) FROM run WHERE ended_ms IS NOT NULL AND uid <> 'ahead'";
    assert_eq!(traced.number(ended), 1);
    traced.assert_whole();
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
        // A third connection locks the trace's file for longer than the interval at which the agent writes (100 ms).
        // The delayed data becomes part of the data of a longer interval.
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
