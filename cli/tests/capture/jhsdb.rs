//! Tests dumps of a live process that the serviceability agent writes (`jhsdb jmap --binaryheap`), for JVMs that no
//! longer answer.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testdata::jvm::Jdk;

use crate::support::{Done, folder, jdks, ready, run, shelf};

/// Time limit for `jhsdb`.
const LIMIT: Duration = Duration::from_secs(180);

/// Dumps a process with `jhsdb`, which stops the process meanwhile.
fn jhsdb(jdk: &Jdk, pid: u32, folder: &Path) -> Done {
    let mut command = Command::new(jdk.home().join("bin/jhsdb"));
    command
        .args(["jmap", "--binaryheap", "--dumpfile", "live.hprof", "--pid"])
        .arg(pid.to_string())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("jhsdb, which every JDK has");
    let start = Instant::now();
    let mut ended = false;
    while !ended && start.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
        ended = child.try_wait().expect("its state").is_some();
    }
    if !ended {
        child.kill().expect("it ends");
    }
    let done = Done::from(child.wait_with_output().expect("what it says"));
    assert!(ended, "jhsdb took longer than {LIMIT:?}: {done:?}");
    done
}

/// Returns the system setting that forbids us to trace processes that are not our children; `None` if tracing is
/// allowed.
fn forbidden() -> Option<String> {
    const SETTING: &str = "/proc/sys/kernel/yama/ptrace_scope";
    const PTRACE: u32 = 19;
    let scope = std::fs::read_to_string(SETTING).unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").expect("our own state");
    let line = |name| status.lines().find_map(|l| l.strip_prefix(name));
    let capable = line("CapEff:").and_then(|c| u64::from_str_radix(c.trim(), 16).ok());
    let may = capable.is_some_and(|c| c >> PTRACE & 1 == 1);
    let filtered = line("Seccomp:").is_some_and(|mode| mode.trim() != "0");
    match scope.trim() {
        "3" => Some(format!("{SETTING} is 3")),
        "1" | "2" if !may => Some(format!(
            "{SETTING} is {} and we lack CAP_SYS_PTRACE",
            scope.trim()
        )),
        _ if filtered => Some("system calls are filtered (seccomp)".to_owned()),
        _ => None,
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn threads_in_a_jhsdb_dump_have_their_frames() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk));
        let home = folder();
        let done = jhsdb(&jdk, target.pid(), home.path());
        let refused = format!("{}{}", done.stdout, done.stderr).contains("ptrace(PTRACE_ATTACH");
        if refused && let Some(why) = forbidden() {
            eprintln!("not tested on JDK {}: {why}", jdk.version());
            continue;
        }
        let dump = home.path().join("live.hprof");
        assert!(dump.exists(), "JDK {}: {done:?}", jdk.version());
        let threads = ["threads", "live.hprof", "--format", "json", "--no-index"];
        let said = run(home.path(), &threads).well().stdout;
        let report: Value = serde_json::from_str(&said).expect("JSON");
        let threads = report["threads"].as_array().expect("threads");
        let frames = |name: &str| -> Vec<String> {
            let mut found = threads.iter().filter(|t| t["name"] == name);
            let thread = found
                .next()
                .unwrap_or_else(|| panic!("no {name}: {report}"));
            let frames = thread["frames"].as_array().expect("frames").iter();
            frames.map(|f| f["frame"].to_string()).collect()
        };
        // Each thread must be shown with its own frames, not with those of the next thread.
        let main = frames("main");
        let last = main.last().expect("frames of main");
        assert!(last.contains("Shelf.main(Shelf.java:"), "{main:?}");
        assert!(
            main.iter().any(|f| f.contains("FileInputStream.read")),
            "{main:?}"
        );
        let handler = frames("Reference Handler");
        let waits = |f: &String| f.contains("Reference.waitForReferencePendingList");
        assert!(handler.iter().any(waits), "{handler:?}");
        let finalizer = frames("Finalizer");
        assert!(
            finalizer.iter().any(|f| f.contains("FinalizerThread.run")),
            "{finalizer:?}"
        );
        assert!(
            target.finish().expect("its end"),
            "it goes on after the dump"
        );
    }
}
