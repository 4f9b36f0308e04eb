//! Tests that the guard's dumps are completed after the JVM has ended, and that they contain the leaked objects with
//! their stacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use heapdiff_trace::Trace;
use hprof::{Options, Silent, Snapshot};
use testdata::jvm::{Jdk, Launch};
use testdata::programs;

use crate::dumped::Dumped;
use crate::{collectors, library};

/// Maximum time until the forked child has written its dump.
const WRITTEN: Duration = Duration::from_secs(120);

fn launch(jdk: &Jdk, collector: &str, options: &str) -> Launch {
    let classes = jdk.compile(&programs::agent("Guarded.java")).unwrap();
    Launch::class(jdk, classes, "Guarded")
        .flags(["-Xmx48m", collector])
        .agent(&library(), options)
}

/// Returns the files in the folder whose names end with `end`.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect()
}

/// Waits until the folder contains a complete dump, and returns its path.
fn complete_dump(folder: &Path) -> PathBuf {
    let started = Instant::now();
    loop {
        if let Some(dump) = files(folder, ".hprof").pop() {
            return dump;
        }
        assert!(
            started.elapsed() < WRITTEN,
            "no dump in {}",
            folder.display()
        );
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_jvm_that_runs_out_of_memory_leaves_a_dump_and_a_trace() {
    let jdks = Jdk::all_for_agent();
    for (number, jdk) in jdks.iter().enumerate() {
        let mut collectors = collectors(jdk);
        if number + 1 < jdks.len() {
            // The newest JDK runs with all collectors.
            collectors.truncate(1);
        }
        for collector in collectors {
            let folder = tempfile::tempdir().unwrap();
            let to = folder.path().join("new");
            let options = format!("interval=16k,guard=80%,guard-to={}", to.display());
            let target = launch(jdk, collector, &options).start().unwrap();
            let (well, errors) = target.finish_with_errors().unwrap();
            assert!(!well && errors.contains("OutOfMemoryError"), "{errors}");
            assert!(errors.contains("guard on (heap 80 %)"), "{errors}");
            let trace = files(&to, ".db").pop().expect("a trace");
            assert!(Trace::open(&trace).is_ok(), "{}", trace.display());
            if collector == "-XX:+UseZGC" {
                let why = "guard: no dumps, only the trace: the heap is in shared memory";
                assert!(errors.contains(why), "{errors}");
                assert!(files(&to, ".hprof").is_empty());
                continue;
            }
            assert_eq!(errors.matches("; writing ").count(), 1, "once: {errors}");
            let dump = complete_dump(&to);
            assert!(files(&to, ".part").is_empty());
            let snapshot = Snapshot::open(&dump, &Options::default(), &Silent).unwrap();
            assert!(snapshot.warnings().is_empty(), "{:?}", snapshot.warnings());
            let class = snapshot.classes().by_name("Guarded$Order");
            let orders = snapshot.instances(class).len();
            assert!(orders > 50_000, "{orders} on {} {collector}", jdk.version());
            let dumped = Dumped::read(&dump).expect("the dump has the agent's class");
            let stacks = dumped.of_kind("Guarded.book", "Guarded$Order");
            assert!(!stacks.is_empty(), "the dump has stacks");
        }
    }
}

#[test]
fn a_dump_is_sent_through_a_named_pipe() {
    let jdk = Jdk::all_for_agent().pop().expect("a JDK");
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let (done, dump) = mpsc::channel();
    let read = pipe.clone();
    // This thread waits until the agent opens the pipe. If the agent never opens the pipe, the test fails after
    // [`WRITTEN`], while this thread still waits.
    thread::spawn(move || {
        let snapshot = Snapshot::open(&read, &Options::default(), &Silent);
        let _ = done.send(Box::new(snapshot));
    });
    let to = folder.path().display();
    let options = format!("guard=80%,guard-to={to},guard-pipe={}", pipe.display());
    let target = launch(&jdk, "-XX:+UseSerialGC", &options).start().unwrap();
    let (_, errors) = target.finish_with_errors().unwrap();
    assert!(errors.contains("guard: dumps go to "), "{errors}");
    let snapshot = dump.recv_timeout(WRITTEN).expect("a dump").unwrap();
    assert!(snapshot.warnings().is_empty(), "{:?}", snapshot.warnings());
    let class = snapshot.classes().by_name("Guarded$Order");
    let orders = snapshot.instances(class).len();
    assert!(orders > 50_000, "{orders}");
    // A static field holds all orders. The child sends the values of static fields last.
    let bytes = orders as u64 * snapshot.instance_bytes(class[0]);
    assert!(snapshot.unreachable_bytes() < bytes / 2);
    assert!(files(folder.path(), ".hprof").is_empty());
}

#[test]
fn a_dump_that_would_be_too_large_is_refused() {
    let jdk = Jdk::all_for_agent().pop().expect("a JDK");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display();
    let options = format!("guard=80%,guard-disk=1m,guard-to={to}");
    let target = launch(&jdk, "-XX:+UseSerialGC", &options).start().unwrap();
    let (_, errors) = target.finish_with_errors().unwrap();
    assert!(errors.contains("no dump: the dump may have"), "{errors}");
    assert!(files(folder.path(), ".hprof").is_empty() && files(folder.path(), ".part").is_empty());
    assert_eq!(files(folder.path(), ".db").len(), 1);
}
