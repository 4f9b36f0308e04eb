//! Tests `dump --fork` and `hunt`. A child of the JVM writes the dump. A dump gets its final name only when it is
//! complete, and no other file remains.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command};

use serde_json::Value;
use testdata::cgroup::Group;

use crate::support::{
    BOX, agent, ended, files, first_line, folder, instances, jdks, ready, run, shelf, signal,
    start, until,
};
use crate::trace::library;

#[test]
fn a_forked_child_writes_the_whole_heap() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let home = folder();
        let library = library();
        let agent = library.to_str().expect("a path");
        let dump = |more: &[&str]| {
            let args = [&["dump", &pid, "--fork", "--agent", agent], more].concat();
            run(home.path(), &args)
        };
        let done = dump(&["-o", "forked.hprof"]).well();
        assert!(
            done.stdout.contains("reachable objects of process"),
            "{done:?}"
        );
        // heapdiff compresses the dump, also for standard output.
        dump(&["-o", "packed.hprof.gz"]).well();
        assert_eq!(files(home.path()), ["forked.hprof", "packed.hprof.gz"]);
        assert_eq!(
            fs::read(home.path().join("packed.hprof.gz")).expect("it")[..2],
            [0x1f, 0x8b]
        );
        for name in ["forked.hprof", "packed.hprof.gz"] {
            assert_eq!(instances(&home.path().join(name), &[BOX]), [10_000]);
        }
        dump(&["-o", "forked.hprof"]).failed(2, "the file exists");
        assert!(target.finish().expect("an end"));
    }
}

/// Programs that use almost all the time of a processor. They are ended when this value is dropped.
struct Load(Vec<Child>);

impl Load {
    const ALONE: [&str; 3] = ["taskset", "--cpu-list", "0"];

    fn start() -> Self {
        let spin = || {
            let [program, args @ ..] = Self::ALONE;
            let mut spin = Command::new(program);
            spin.args(args).args(["sh", "-c", "while :; do :; done"]);
            spin.spawn().expect("a shell")
        };
        let load = Self((0..16).map(|_| spin()).collect());
        until("the load", || load.0.iter().all(|spin| has_run(spin.id())));
        load
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for spin in &mut self.0 {
            let _ = spin.kill();
            let _ = spin.wait();
        }
    }
}

/// True if a process has used at least 10 ms of processor time.
fn has_run(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    // In `/proc/PID/stat`, the state follows the process name, which is in parentheses. The code below counts the
    // fields from the state on.
    let user = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(11));
    user.is_some_and(|ticks| ticks != "0")
}

/// Returns the child processes of a JVM.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    let made = threads.flatten().filter_map(|thread| {
        let pids = fs::read_to_string(thread.path().join("children")).ok()?;
        pids.split_whitespace().next()?.parse().ok()
    });
    made.collect()
}

/// A forked child has the lowest priority. If other processes use the processors, the child waits for a long time.
#[test]
fn a_waiting_child_is_reported_once() {
    let jdk = jdks().remove(0);
    let home = folder();
    let library = library();
    let agent = library.to_str().expect("a path");
    let target = ready(&shelf(&jdk).through(Load::ALONE));
    let jvm = target.jvm_pid().expect("a JVM");
    let load = Load::start();
    let pid = jvm.to_string();
    let mut dump = start(
        home.path(),
        &["dump", &pid, "--fork", "--agent", agent, "-o", "a.hprof"],
    );
    let mut rest = BufReader::new(dump.stderr.take().expect("a pipe"));
    let mut line = String::new();
    rest.read_line(&mut line).expect("a line");
    let waits = "heapdiff: the forked child that writes the dump waits for a processor: it got ";
    assert!(line.starts_with(waits), "{line}");
    let child = children(jvm);
    assert_eq!(child.len(), 1, "{child:?}");
    signal("STOP", child[0]);
    let mut line = String::new();
    rest.read_line(&mut line).expect("a line");
    let stopped = format!(
        "dump is stopped; continue it with `kill -CONT {}`\n",
        child[0]
    );
    assert!(line.ends_with(&stopped), "{line}");
    drop(load);
    signal("CONT", child[0]);
    let done = ended(dump).well();
    let mut more = String::new();
    rest.read_to_string(&mut more).expect("text");
    assert_eq!(more, "", "{done:?}");
    assert_eq!(instances(&home.path().join("a.hprof"), &[BOX]), [10_000]);
    assert!(target.finish().expect("an end"));
}

#[test]
fn a_refusal_suggests_an_ordinary_dump_and_leaves_no_file() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk).flag("-XX:+UseZGC"));
        let pid = target.pid().to_string();
        let home = folder();
        let library = library();
        let agent = library.to_str().expect("a path");
        let args = [
            "dump",
            &pid,
            "--fork",
            "--agent",
            agent,
            "-o",
            "forked.hprof",
        ];
        let done = run(home.path(), &args).failed(3, "the heap is in shared memory");
        assert!(done.stderr.contains("leave out --fork"), "{done:?}");
        assert!(files(home.path()).is_empty());
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn a_container_without_room_for_a_child_is_left_alone() {
    let Some(group) = Group::of(1 << 30) else {
        return;
    };
    let jdk = jdks().remove(0);
    // A JVM that uses much memory but has few objects, so that its dump is small. A large dump would fill the memory,
    // too, if `/tmp` is in memory.
    let large = shelf(&jdk).flags(["-Xms256m", "-XX:+AlwaysPreTouch"]);
    let target = ready(&large.through(group.entrance()));
    let pid = target.jvm_pid().expect("a JVM").to_string();
    let home = folder();
    let library = library();
    let agent = library.to_str().expect("a path");
    let args = ["dump", &pid, "--fork", "--agent", agent, "-o", "a.hprof"];
    // Almost none of the JVM's memory belongs to files, so the kernel cannot reclaim it.
    group.leave(32 << 20);
    let done = run(home.path(), &args).failed(3, "there is not enough memory for a child");
    assert!(done.stderr.contains("leave out --fork"), "{done:?}");
    assert!(files(home.path()).is_empty());
    group.leave(512 << 20);
    run(home.path(), &args).well();
    // If the kernel would kill the JVM together with the child when memory runs out, at least half of the JVM's size
    // must be free. In this test, less memory is free.
    let again = [&args[..], &["--force"]].concat();
    if group.kill_together(true) {
        let half = resident(&pid) / 2;
        group.leave(half - (8 << 20));
        let done = run(home.path(), &again).failed(3, "there is not enough memory for a child");
        assert!(done.stderr.contains("leave out --fork"), "{done:?}");
        group.kill_together(false);
        group.leave(half - (8 << 20));
        run(home.path(), &again).well();
    }
    assert!(target.finish().expect("an end"));
}

/// Returns the resident memory of a process in bytes.
fn resident(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.expect("a number") << 10
}

#[test]
fn an_agent_that_cannot_fork_is_reported() {
    let jdk = jdks().remove(0);
    let home = folder();
    let stub = agent(&jdk, home.path());
    let target = ready(&shelf(&jdk));
    let pid = target.pid().to_string();
    let stub = stub.to_str().expect("a path");
    let before = files(home.path());
    // This stub reports success, but writes no file.
    let args = [
        "dump",
        &pid,
        "--fork",
        "--agent",
        stub,
        "-o",
        "forked.hprof",
    ];
    run(home.path(), &args).failed(2, "forked.hprof");
    assert_eq!(files(home.path()), before);
    assert!(target.finish().expect("an end"));
}

/// Returns two numbers from the log of the JVM: how often the JVM paused to fork, and how often it paused to write a
/// dump itself.
fn stops(log: &Path) -> (usize, usize) {
    let text = fs::read_to_string(log).expect("the JVM's log");
    let times = |name: &str| text.matches(&format!("\"{name}\"")).count();
    (times("HeapWalkOperation"), times("HeapDumper"))
}

/// The message that the JVM itself wrote the dump.
const STOOD_STILL: &str = "the JVM wrote this dump itself and was paused meanwhile";

#[test]
fn a_hunt_forks_children_if_possible() {
    for jdk in jdks() {
        for (flag, args, (forks, dumps)) in [
            ("-XX:+UseG1GC", "", (2, 0)),
            ("-XX:+UseG1GC", "--no-fork", (0, 2)),
            ("-XX:+UseG1GC", "--all", (0, 2)),
            ("-XX:+UseG1GC", "--no-attach", (0, 2)),
            ("-XX:+UseZGC", "", (0, 2)),
        ] {
            let home = folder();
            let log = home.path().join("log");
            let logged = format!("-Xlog:safepoint:file={}", log.display());
            let target = ready(&shelf(&jdk).flags([flag, &logged]));
            let pid = target.pid().to_string();
            let library = library();
            let agent = ["--agent", library.to_str().expect("a path")];
            let hunt = ["hunt", &pid, "--no-trace", "--for", "0", "-o", "found"];
            let agent: &[&str] = if args == "--no-attach" { &[] } else { &agent };
            let more: Vec<&str> = [args].into_iter().filter(|arg| !arg.is_empty()).collect();
            let done = run(home.path(), &[&hunt, agent, &more].concat()).well();
            let made = stops(&log);
            // A child that waits for a lock is replaced, so there may be more forks than dumps.
            let is_right = made.1 == dumps && made.0 >= forks && made.0 <= forks * 10;
            assert!(is_right, "{flag} {args}: {made:?} {done:?}");
            let told = done.stderr.matches(STOOD_STILL).count();
            // Forking would fail again for the second dump, so the reason is printed only for the first dump.
            let is_told = forks == 0 && args.is_empty();
            assert_eq!(told, usize::from(is_told), "{flag} {args}: {done:?}");
            if is_told {
                let why = "found/before.hprof: the JVM wrote this dump itself and was paused meanwhile, because a forked child could not: the heap is in shared memory";
                assert!(done.stderr.contains(why), "{done:?}");
                let must = ["hunt", &pid, "--fork", "--no-trace", "--for", "0", "-o"];
                let must = run(home.path(), &[&must, &["must"][..], agent].concat());
                must.failed(3, "the heap is in shared memory");
                assert!(!home.path().join("must").exists(), "nothing is left");
            }
            for name in ["before.hprof", "after.hprof"] {
                assert_eq!(
                    instances(&home.path().join("found").join(name), &[BOX]),
                    [10_000]
                );
            }
            assert!(target.finish().expect("an end"));
        }
    }
}

#[test]
fn growth_between_forked_dumps_is_named_with_its_stacks() {
    for jdk in jdks() {
        let home = folder();
        let library = library();
        // The agent is loaded when the JVM starts, because a thread is sampled only after it has allocated as many
        // bytes as the JVM's own interval.
        let launch = shelf(&jdk).agent(&library, "interval=256");
        let mut target = ready(&launch);
        let pid = target.pid().to_string();
        let args = [
            "hunt",
            &pid,
            "--agent",
            library.to_str().expect("a path"),
            "--fork",
            "--no-trace",
            "--for",
            "1h",
            "--gz",
            "1",
            "-o",
            "found",
            "--format",
            "json",
        ];
        let mut child = start(home.path(), &args);
        let (line, _stderr) = first_line(&mut child);
        assert!(line.contains("the second dump follows"), "{line}");
        target.advance(2).expect("READY");
        signal("INT", child.id());
        let printed = ended(child).well().stdout;
        let found = home.path().join("found");
        assert_eq!(
            files(&found),
            ["after.hprof.gz", "before.hprof.gz", "report.json"]
        );
        let report: Value = serde_json::from_str(&printed).expect("JSON");
        let first = &report["suspects"][0];
        assert_eq!(first["holder"], "Shelf.boxes", "{first}");
        assert_eq!(first["growth"]["objects"], 10_000, "{first}");
        let stacks = first["stacks"].as_array().expect("stacks");
        assert!(!stacks.is_empty(), "JDK {}: {first:#}", jdk.version());
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn a_hunt_falls_back_and_gives_the_reason() {
    let jdk = jdks().remove(0);
    let home = folder();
    let stub = agent(&jdk, home.path());
    let stub = stub.to_str().expect("a path");
    let target = ready(&shelf(&jdk));
    let pid = target.pid().to_string();
    for (more, told) in [(&[][..], true), (&["-q"], false), (&["--no-fork"], false)] {
        let args = ["hunt", &pid, "--agent", stub, "--for", "0", "--no-trace"];
        let done = run(home.path(), &[&args, more].concat()).well();
        let why = "the JVM wrote this dump itself and was paused meanwhile, because a forked child could not: the agent wrote nothing";
        assert_eq!(done.stderr.contains(why), told, "{done:?}");
    }
    let second = home.path().join(format!("hunt-{pid}-2"));
    assert_eq!(instances(&second.join("before.hprof"), &[BOX]), [10_000]);
    // If the user requests `--fork`, a fork that fails is an error.
    let args = ["hunt", &pid, "--agent", stub, "--for", "0", "--fork"];
    run(home.path(), &args).failed(2, "before.hprof");
    assert!(target.finish().expect("an end"));
}
