//! Tests the groups of pending work in dumps of a program with known numbers of waiting threads, tasks and futures.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testdata::programs;

use crate::support::{jdks, run};

/// Returns the number of members (such as threads or tasks) and the retained bytes of a group of pending work. The
/// group is the only group of the given kind whose `shape` (the lines that all members have in common) contains all the
/// given words.
fn group(report: &Value, kind: &str, words: &[&str]) -> (u64, u64) {
    let groups = report["pending"].as_array().expect("groups");
    let is_meant = |group: &&Value| {
        let shape = group["shape"].to_string();
        group["kind"] == kind && words.iter().all(|word| shape.contains(word))
    };
    let found: Vec<&Value> = groups.iter().filter(is_meant).collect();
    assert_eq!(found.len(), 1, "{kind} {words:?}: {report:#}");
    let number = |key: &str| found[0][key].as_u64().expect("a number");
    (number("count"), number("retained_bytes"))
}

#[test]
fn groups_of_pending_work_are_exact() {
    for jdk in jdks() {
        let folder = tempfile::tempdir().expect("a folder");
        let dump = folder.path().join("a.hprof");
        let classes = jdk.compile(&programs::pending()).expect("classes");
        let done = Command::new(jdk.java())
            .arg("-cp")
            .arg(classes)
            .arg("Pending")
            .arg(&dump)
            .output()
            .expect("java");
        assert!(done.status.success(), "{done:?}");
        let dump = dump.to_str().expect("a name");
        let args = ["threads", dump, "--format", "json", "--top", "1000"];
        let text = run(Path::new("/"), &args).well().stdout;
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let count = |kind: &str, words: &[&str]| group(&report, kind, words).0;
        let here = "Pending.waitHere(Pending.java:36)\",\"Pending$$Lambda";
        let there = "Pending.waitHere(Pending.java:36)\",\"Pending.waitThere(Pending.java:43)";
        assert_eq!(count("threads", &[here, "start"]), 12);
        assert_eq!(count("threads", &[there]), 8);
        // JDK versions before 22 write no frames of parked virtual threads to dumps.
        if jdk.major() >= 22 {
            assert_eq!(count("virtual-threads", &[here]), 300);
            assert_eq!(count("virtual-threads", &[there]), 200);
        }
        let (tasks, bytes) = group(
            &report,
            "tasks",
            &["Pending$Task", "in the queue of worker"],
        );
        assert_eq!(tasks, 30);
        // Each task retains its array, the header of the array, and the task object.
        assert!((30 * 1016..30 * 1050).contains(&bytes), "{bytes}");
        assert_eq!(count("tasks", &["Pending$Mail"]), 40);
        let chain = ["thenApply", "thenAccept", "exceptionally"];
        assert_eq!(count("futures", &chain), 40);
        assert_eq!(count("futures", &["thenCompose"]), 15);
        if jdk.major() >= 22 {
            let text = run(Path::new("/"), &[dump]).well().stdout;
            let work = "300 virtual threads with the same stack: Pending.waitHere(Pending.java:36)";
            assert!(text.contains(work), "{text}");
        }
        let main = report["threads"].as_array().expect("threads").iter();
        let main = main.filter(|thread| thread["name"] == "main");
        assert!(main.clone().all(|thread| thread["state"] == "RUNNABLE"));
        assert_eq!(main.count(), 1);
    }
}
