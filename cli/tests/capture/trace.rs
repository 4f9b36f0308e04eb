//! Tests a program that begins to leak after a while, with the real agent. The trace shows when the growth began, and a
//! hunt detects the growth.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use testdata::jvm::Jdk;
pub(crate) use testdata::programs::agent_library as library;

use crate::support::{ended, files, folder, jdks, run, start, until};

/// Starts `Late` with more flags and piped output.
fn late(jdk: &Jdk, flags: &[&str], args: [&str; 2]) -> Child {
    let classes = jdk.compile(&testdata::programs::late()).expect("classes");
    let mut command = Command::new(jdk.java());
    command.args(["-Xmx64m", "-XX:+UseSerialGC"]).args(flags);
    command.arg("-cp").arg(classes).arg("Late").args(args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("a JVM")
}

/// Returns the first line that begins with `start`, without `start`.
fn line(lines: &mut impl BufRead, start: &str) -> String {
    let mut line = String::new();
    while !line.starts_with(start) {
        line.clear();
        assert!(lines.read_line(&mut line).expect("text") > 0, "no {start}");
    }
    line[start.len()..].trim().to_owned()
}

fn dump(home: &Path, pid: u32, name: &str) {
    run(home, &["dump", &pid.to_string(), "-o", name, "-q"]).well();
}

fn first_leak(report: &Value) -> &Value {
    let suspects = report["suspects"].as_array().expect("suspects");
    let found = suspects.iter().find(|s| s["holder"] == "Late.audit");
    found.unwrap_or_else(|| panic!("{report:#}"))
}

#[test]
fn growth_that_begins_late_is_dated() {
    for jdk in jdks() {
        let home = folder();
        let trace = home.path().join("t.db");
        let agent = format!(
            "-agentpath:{}=interval=8k,trace={},tick=500ms",
            library().display(),
            trace.display()
        );
        let mut jvm = late(&jdk, &[&agent], ["5000", "9000"]);
        let mut lines = BufReader::new(jvm.stdout.take().expect("a pipe"));
        line(&mut lines, "READY 1");
        // The agent creates its trace while the program already runs.
        let written = || heapdiff_trace::Trace::open(&trace).and_then(|t| t.runs());
        until("a trace", || written().is_ok_and(|runs| !runs.is_empty()));
        dump(home.path(), jvm.id(), "before.hprof");
        let began: u64 = line(&mut lines, "LEAK ").parse().expect("a time");
        line(&mut lines, "READY 2");
        // A dump of all objects runs no GC.
        let all = [
            "dump",
            &jvm.id().to_string(),
            "--all",
            "-o",
            "all.hprof",
            "-q",
        ];
        run(home.path(), &all).well();
        dump(home.path(), jvm.id(), "after.hprof");
        drop(jvm.stdin.take());
        assert!(jvm.wait().expect("an end").success());

        let args = [
            "before.hprof",
            "after.hprof",
            "--trace",
            "t.db",
            "--format",
            "json",
        ];
        let report = run(home.path(), &args).well().stdout;
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let history = &first_leak(&report)["history"];
        assert_eq!(history["survival_known"], true, "{history}");
        // The leak adds objects between all GCs, so its objects have many different ages.
        assert!(
            history["surviving_generations"].as_u64() > Some(5),
            "{history}"
        );
        let dated = history["began_ms"]
            .as_u64()
            .unwrap_or_else(|| panic!("{history:#}"));
        let told = heapdiff_trace::Trace::open(&trace).expect("a trace");
        let id = told.runs().expect("runs")[0].id;
        // The time at which growth began may be wrong by at most three ticks (recorded periods of the trace). Ticks
        // take longer on a busy machine, so the test uses their real length.
        let ticks = told.ticks(id).expect("ticks");
        let near = ticks.iter().filter(|t| t.time_ms.abs_diff(began) < 10_000);
        let longest = near.map(|t| t.span_ms).max();
        let longest = longest.expect("ticks").clamp(500, 2000);
        assert!(
            dated.abs_diff(began) <= 3 * longest,
            "{dated} is not {began}: {history:#}"
        );
        // The agent detects dumps of live objects by their GCs, and heapdiff records these dumps, too. Nevertheless the
        // trace must contain only one row for each dump.
        let dumps = told.dumps(id).expect("dumps");
        let paths: Vec<_> = dumps.iter().filter_map(|d| d.path.clone()).collect();
        let taken = ["before.hprof", "all.hprof", "after.hprof"];
        let taken = taken.map(|name| home.path().join(name).display().to_string());
        assert_eq!((&paths[..], dumps.len()), (&taken[..], 3), "{dumps:?}");
        assert_eq!(history["began_within"], true);
        assert_eq!(history["basis"], "major", "{history:#}");
        assert!(
            history["slope"]["ci95"][0].as_i64() > Some(0),
            "{history:#}"
        );
        let text = run(home.path(), &args[..4]).well().stdout;
        assert!(
            text.contains("    history ") && text.contains("    since "),
            "{text}"
        );

        // If `trace top` analyzes the trace without a dump, the result is the same.
        let top = run(home.path(), &["trace", "top", "t.db", "--format", "json"]).well();
        let top: Value = serde_json::from_str(&top.stdout).expect("JSON");
        let first = &top["candidates"][0];
        assert_eq!(first["verdict"], "leak", "{first:#}");
        let leaf = first["frames"][0].as_str().expect("a frame");
        assert!(
            leaf.starts_with("Late.remember(") || leaf.contains("ArrayList"),
            "{first:#}"
        );

        // A missing trace is reported before the dumps are read.
        let other = ["before.hprof", "before.hprof", "--trace", "none.db"];
        run(home.path(), &other).failed(3, "none.db: No such file");
    }
}

/// Returns the number of phases that `heapdiff hunt` recorded as notes in the trace, and checks how each note begins.
fn phases(trace: &heapdiff_trace::Trace) -> usize {
    let run = &trace.runs().expect("runs")[0];
    let notes = trace.notes(run.id).expect("notes");
    let told: Vec<&str> = notes
        .iter()
        .filter_map(|note| note.text.strip_prefix("hunt: "))
        .collect();
    let starts = [
        "the first dump is being taken",
        "the first dump is taken; the second follows in 1h, or as soon as a site has grown by 200.0 KiB",
        "an allocation site has grown by at least the size of --enough: byte[] allocated in Late.remember(Late.java:",
        "both dumps are taken",
    ];
    for (told, start) in told.iter().zip(starts) {
        assert!(told.starts_with(start), "{told}");
    }
    assert_eq!(told.len(), starts.len(), "{told:?}");
    told.len()
}

#[test]
fn a_hunt_ends_when_enough_grew() {
    for jdk in jdks() {
        let home = folder();
        let mut jvm = late(&jdk, &["-XX:+EnableDynamicAgentLoading"], ["1000", "60000"]);
        let mut lines = BufReader::new(jvm.stdout.take().expect("a pipe"));
        line(&mut lines, "READY 1");
        let pid = jvm.id().to_string();
        let library = library();
        let library = library.to_str().expect("a path");
        let args = [
            "hunt",
            &pid,
            "interval=8k,tick=500ms",
            "--agent",
            library,
            "--for",
            "1h",
            "-o",
            "found",
            "--enough",
            "200k",
            "--format",
            "json",
        ];
        let hunt = start(home.path(), &args);
        let found = home.path().join("found");
        until("a dump", || found.join("before.hprof").exists());
        let hunt = ended(hunt).well();
        let said = hunt.stderr;
        jvm.kill().expect("an end");
        jvm.wait().expect("an end");
        assert!(
            said.contains(
                "heapdiff: an allocation site has grown by at least the size of --enough: byte[] allocated in Late.remember(Late.java:"
            ),
            "{said}"
        );
        let trace = heapdiff_trace::Trace::open(&found.join("trace.db")).expect("a trace");
        let run = &trace.runs().expect("runs")[0];
        assert_eq!(phases(&trace), 4);
        // The agent detects the dumps, too. Nevertheless the trace contains only one row for each dump, with its path,
        // in order.
        let dumps = trace.dumps(run.id).expect("dumps");
        let paths: Vec<_> = dumps.iter().map(|d| d.path.as_deref()).collect();
        let taken = ["before.hprof", "after.hprof"].map(|name| found.join(name));
        let taken: Vec<_> = taken.iter().map(|path| path.to_str()).collect();
        assert_eq!(paths, taken, "{dumps:?}");
        assert!(
            dumps[0].uptime_ms + 10_000 <= dumps[1].uptime_ms,
            "{dumps:?}"
        );
        let names = files(&found);
        for name in ["after.hprof", "before.hprof", "report.json", "trace.db"] {
            assert!(names.iter().any(|n| n == name), "{names:?}");
        }
        let kept = fs::read_to_string(found.join("report.json")).expect("a report");
        assert_eq!(kept, hunt.stdout);
        let report: Value = serde_json::from_str(&kept).expect("JSON");
        let leak = first_leak(&report);
        assert!(
            leak["history"]["growth"]["bytes"].as_i64() >= Some(200 << 10),
            "{leak:#}"
        );
    }
}

/// Starts a hunt with the real agent that waits for growth of 200 KiB.
fn hunting(home: &Path, pid: &str, wait: &str) -> Child {
    let library = library();
    let library = library.to_str().expect("a path");
    let options = "interval=8k,tick=500ms";
    let args = [
        "hunt", pid, options, "--agent", library, "--for", wait, "-o", "found",
    ];
    start(home, &[&args[..], &["--enough", "200k"]].concat())
}

#[test]
fn a_full_cache_that_turns_over_does_not_end_a_hunt() {
    let jdk = &jdks()[0];
    let home = folder();
    let classes = jdk.compile(&testdata::programs::full()).expect("classes");
    let mut command = Command::new(jdk.java());
    command.args([
        "-Xmx64m",
        "-XX:+UseSerialGC",
        "-XX:+EnableDynamicAgentLoading",
        "-cp",
    ]);
    let command = command.arg(classes).arg("Full");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut jvm = command.spawn().expect("a JVM");
    let mut lines = BufReader::new(jvm.stdout.take().expect("a pipe"));
    line(&mut lines, "READY 1");
    let hunt = ended(hunting(home.path(), &jvm.id().to_string(), "18s"));
    jvm.kill().expect("an end");
    jvm.wait().expect("an end");
    let hunt = hunt.well();
    assert!(
        !hunt
            .stderr
            .contains("an allocation site has grown by at least"),
        "{hunt:?}"
    );
    assert!(!hunt.stderr.contains("records no trace"), "{hunt:?}");
    // If only the trace is considered, the full cache seems to grow.
    let top = ["trace", "top", "found/trace.db", "--format", "json"];
    let top: Value = serde_json::from_str(&run(home.path(), &top).well().stdout).expect("JSON");
    let first = &top["candidates"][0];
    assert!(
        first["growth"]["bytes"].as_i64() >= Some(200 << 10),
        "{first:#}"
    );
}

#[test]
fn a_jvm_that_dies_in_a_hunt_leaves_its_trace() {
    let jdk = &jdks()[0];
    let home = folder();
    let mut jvm = late(jdk, &["-XX:+EnableDynamicAgentLoading"], ["1000", "60000"]);
    let mut lines = BufReader::new(jvm.stdout.take().expect("a pipe"));
    line(&mut lines, "READY 1");
    let hunt = hunting(home.path(), &jvm.id().to_string(), "1h");
    let found = home.path().join("found");
    until("a dump", || found.join("before.hprof").exists());
    let written = || heapdiff_trace::Trace::open(&found.join("trace.db")).and_then(|t| t.runs());
    until("a trace", || written().is_ok_and(|runs| !runs.is_empty()));
    jvm.kill().expect("an end");
    jvm.wait().expect("an end");
    let done = ended(hunt);
    assert_eq!(done.code, Some(3), "{done:?}");
    for said in [
        "has ended",
        "`heapdiff trace top found/trace.db`",
        "the first dump is in found/before.hprof",
    ] {
        assert!(done.stderr.contains(said), "{said}: {done:?}");
    }
    run(home.path(), &["trace", "info", "found/trace.db"]).well();
}
