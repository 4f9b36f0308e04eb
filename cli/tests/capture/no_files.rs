//! Tests `hunt --no-files`: both dumps are in memory. No file is left behind, whichever process is killed.

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command};
use std::time::Duration;

use serde_json::Value;
use testdata::cgroup::Group;
use testdata::jvm::Target;

use crate::elsewhere::contained;
use crate::support::{
    self, AS_NOBODY, agent, ended, files, first_line, folder, heapdiff, is_root, jdks, ready, run,
    shelf, signal, until,
};
use crate::trace::library;

/// Environment variables for the folders that heapdiff may write to.
const FOLDERS: [(&str, &str); 3] = [
    ("TMPDIR", "tmp"),
    ("XDG_CACHE_HOME", "cache"),
    ("HOME", "home"),
];

/// Starts a hunt without files in the background. All folders that it may write to are in `home`.
fn hunt(home: &Path, pid: &str, more: &[&str]) -> Child {
    let library = library();
    let agent = library.to_str().expect("a path");
    let args = [&["hunt", pid, "--no-files", "--agent", agent], more].concat();
    begun(home, &heapdiff(home, &args))
}

fn begun(home: &Path, plain: &Command) -> Child {
    let variables = FOLDERS.map(|(name, below)| {
        let below = home.join(below);
        fs::create_dir_all(&below).expect("a folder");
        format!("{name}={}", below.display())
    });
    support::begun(home, plain, &variables)
}

/// Starts a hunt without files, and waits until it has the first dump. Returns the process and its standard error.
fn waiting(home: &Path, pid: u32) -> (Child, BufReader<ChildStderr>) {
    let args = ["--for", "1h", "--format", "json"];
    let mut child = hunt(home, &pid.to_string(), &args);
    let (line, stderr) = first_line(&mut child);
    assert!(line.contains("the second dump follows in 1h"), "{line}");
    (child, stderr)
}

/// Returns all files in the folder and in its subfolders.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .flat_map(|entry| {
            if entry.path().is_dir() {
                all_files(&entry.path())
            } else {
                vec![entry.path()]
            }
        })
        .collect()
}

/// Returns the open files of a process.
fn open(pid: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).expect("files");
    let links = files.flatten().flat_map(|file| fs::read_link(file.path()));
    links.map(|link| link.display().to_string()).collect()
}

fn open_of(pid: u32, what: &str) -> usize {
    open(pid).iter().filter(|link| link.contains(what)).count()
}

/// Returns the child processes of a process.
fn children(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(pid)
    };
    ids.filter(is_child).collect()
}

/// Returns the numbers of pipes, memory files and child processes in a JVM. If a dump left any of these behind, the
/// numbers would be higher.
fn of_dumps(pid: u32) -> [usize; 3] {
    [
        open_of(pid, "pipe:"),
        open_of(pid, "memfd:heapdiff"),
        children(pid).len(),
    ]
}

fn report(printed: &str) -> Value {
    serde_json::from_str(printed).expect("JSON")
}

/// Checks that the first suspect is the growing field of the program.
fn names_what_grew(report: &Value) {
    let first = &report["suspects"][0];
    assert_eq!(first["holder"], "Shelf.boxes", "{first}");
    assert_eq!(first["growth"]["objects"], 10_000, "{first}");
    assert_eq!(report["snapshots"][0]["path"], "before (memory)");
    assert_eq!(report["snapshots"][1]["path"], "after (memory)");
}

#[test]
fn growth_is_named_and_no_file_is_written() {
    for jdk in jdks() {
        let home = folder();
        let mut target = ready(&shelf(&jdk));
        let pid = target.pid();
        let before = of_dumps(pid);
        let (child, _stderr) = waiting(home.path(), pid);
        let first_to_go = format!("/proc/{}/oom_score_adj", child.id());
        let first_to_go = fs::read_to_string(first_to_go).expect("a number");
        assert_eq!(first_to_go.trim(), "1000", "before the JVM");
        // The first dump no longer exists; only its summary is kept.
        assert_eq!(open_of(child.id(), "memfd:"), 0, "{:?}", open(child.id()));
        assert_eq!(of_dumps(pid), before);
        assert_eq!(all_files(home.path()), [] as [PathBuf; 0]);
        target.advance(2).expect("READY");
        signal("INT", child.id());
        let done = ended(child).well();
        names_what_grew(&report(&done.stdout));
        assert_eq!(all_files(home.path()), [] as [PathBuf; 0]);
        assert_eq!(of_dumps(pid), before);
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn no_file_is_left_in_a_container() {
    if !is_root() {
        return;
    }
    for jdk in jdks() {
        for user in [&[][..], &AS_NOBODY] {
            let home = folder();
            let (mut target, pid) = contained(&jdk, "100m", user);
            let tmp = PathBuf::from(format!("/proc/{pid}/root/tmp"));
            let (child, _stderr) = waiting(home.path(), pid);
            target.advance(2).expect("READY");
            signal("INT", child.id());
            let done = ended(child).well();
            names_what_grew(&report(&done.stdout));
            assert_eq!(all_files(home.path()), [] as [PathBuf; 0]);
            let left = files(&tmp);
            // These two files belong to the JVM: its socket and its performance counters.
            let own = |name: &String| name == ".java_pid1" || name.starts_with("hsperfdata_");
            assert!(left.iter().all(own), "{left:?}");
            assert!(target.is_running());
        }
    }
}

/// Starts a program whose dump takes some time.
fn large() -> Target {
    ready(&shelf(&jdks()[0]).arg("96"))
}

#[test]
fn a_killed_hunt_leaves_nothing_behind() {
    let mut target = large();
    let pid = target.pid();
    let home = folder();
    let quick = ["--for", "0", "--format", "json"];
    ended(hunt(home.path(), &pid.to_string(), &quick)).well();
    let before = of_dumps(pid);
    let mut seen = 0;
    for millis in [0, 10, 20, 30, 50, 80, 120, 200] {
        let child = hunt(home.path(), &pid.to_string(), &quick);
        std::thread::sleep(Duration::from_millis(millis));
        seen += usize::from(of_dumps(pid) != before);
        signal("KILL", child.id());
        let _ = ended(child);
        until("nothing is left in the JVM", || of_dumps(pid) == before);
        assert_eq!(all_files(home.path()), [] as [PathBuf; 0]);
        assert!(target.is_running());
    }
    assert!(seen > 0, "no hunt was killed while it took a dump");
    ended(hunt(home.path(), &pid.to_string(), &quick)).well();
    assert_eq!(of_dumps(pid), before);
    assert!(target.finish().expect("an end"));
}

#[test]
fn a_killed_child_or_jvm_is_reported() {
    let target = large();
    let pid = target.pid();
    let home = folder();
    let before = of_dumps(pid);
    let child = hunt(home.path(), &pid.to_string(), &["--for", "0"]);
    until("a child", || !children(pid).is_empty());
    for writer in children(pid) {
        signal("KILL", writer);
    }
    ended(child).failed(3, "the agent wrote no dump");
    assert_eq!(of_dumps(pid), before);
    let child = hunt(home.path(), &pid.to_string(), &["--for", "1h", "-q"]);
    until("a child", || !children(pid).is_empty());
    signal("KILL", pid);
    ended(child).failed(3, "has ended");
    assert_eq!(all_files(home.path()), [] as [PathBuf; 0]);
}

#[test]
fn requests_that_need_files_are_refused() {
    let jdk = jdks().remove(0);
    let home = folder();
    let target = ready(&shelf(&jdk).flag("-XX:+UseZGC"));
    let pid = target.pid().to_string();
    let done = ended(hunt(home.path(), &pid, &["--for", "0"]));
    let done = done.failed(3, "the heap is in shared memory");
    let hint = "leave out --no-files: the JVM then writes the dumps to files itself";
    assert!(done.stderr.contains(hint), "{done:?}");
    let hint = "leave out trace=, or leave out --no-files";
    assert!(!done.stderr.contains(hint), "{done:?}");
    assert!(!done.stderr.contains("the dumps are files"), "{done:?}");
    let done = ended(hunt(home.path(), &pid, &["trace=/tmp/t.db"]));
    let done = done.failed(2, "--no-files does not work with trace=");
    assert!(done.stderr.contains(hint), "{done:?}");
    assert!(target.finish().expect("an end"));
    // Replaces the agent by one that does not support pipes but reports success.
    let target = ready(&shelf(&jdk));
    let pid = target.pid().to_string();
    let other = folder();
    let stub = agent(&jdk, other.path());
    let args = ["hunt", &pid, "--no-files", "--for", "0", "--agent"];
    let done = run(
        home.path(),
        &[&args[..], &[stub.to_str().expect("a path")]].concat(),
    );
    done.failed(3, "the agent wrote nothing");
    assert_eq!(all_files(home.path()), [] as [PathBuf; 0]);
    assert!(target.finish().expect("an end"));
}

#[test]
fn a_dump_without_enough_memory_is_given_up() {
    let Some(group) = Group::of(120 << 20) else {
        return;
    };
    let target = large();
    let pid = target.pid();
    let home = folder();
    let before = of_dumps(pid);
    let library = library();
    let agent = library.to_str().expect("a path");
    let args = ["hunt", &pid.to_string(), "--no-files", "--agent", agent];
    let plain = heapdiff(home.path(), &args);
    let done = ended(begun(home.path(), &group.within(&plain)));
    let done = done.failed(3, "not enough memory for the dump: the container has");
    let hint = "leave out --no-files: the dumps are then written to files";
    assert!(done.stderr.contains(hint), "{done:?}");
    assert_eq!(of_dumps(pid), before);
    assert!(target.finish().expect("an end"));
}
