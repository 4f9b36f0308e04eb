//! Tests `heapdiff hunt`, which finds a leak with one command.

use std::fs;
use std::io::{BufRead, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use serde_json::Value;

use crate::support::{
    Done, agent, chmod, ended, files, first_line, folder, jdks, lonely, ready, run, shelf, signal,
    start, until,
};
use crate::trace::library;

#[test]
fn a_hunt_names_what_grew() {
    for jdk in jdks() {
        let home = folder();
        let library = agent(&jdk, home.path());
        let library = library.to_str().expect("a name");
        let mark = home.path().join("mark");
        let options = format!("mark={}", mark.display());
        let mut target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let args = [
            "hunt",
            &pid,
            &options,
            "--agent",
            library,
            "--no-fork",
            "--for",
            "1h",
            "-o",
            "new/found",
            "--format",
            "json",
        ];
        let mut child = start(home.path(), &args);
        let (line, _stderr) = first_line(&mut child);
        assert!(line.contains("the second dump follows in 1h"), "{line}");
        assert!(mark.exists(), "the agent is loaded first");
        target.advance(2).expect("READY");
        // Ctrl-C ends only the wait. The hunt continues.
        signal("INT", child.id());
        let printed = ended(child).well().stdout;

        let found = home.path().join("new/found");
        assert_eq!(
            files(&found),
            ["after.hprof", "before.hprof", "report.json"]
        );
        let kept = fs::read_to_string(found.join("report.json")).expect("a report");
        assert_eq!(kept, printed);
        let report: Value = serde_json::from_str(&kept).expect("JSON");
        let first = &report["suspects"][0];
        assert_eq!(first["holder"], "Shelf.boxes", "{first}");
        assert_eq!(first["growth"]["objects"], 10_000, "{first}");
        assert_eq!(report["snapshots"][1]["path"], "new/found/after.hprof");

        // Existing dumps are not overwritten.
        let again = ["hunt", &pid, "--no-attach", "-o", "new/found"];
        run(home.path(), &again).failed(
            2,
            "-o new/found: the folder already contains a file before.hprof",
        );
        assert!(target.is_running());
    }
}

#[test]
fn a_hunt_has_the_gates_and_formats_of_a_diff() {
    let mut target = ready(&shelf(&jdks()[0]));
    let pid = target.pid().to_string();
    let home = folder();
    let hunt = |more: &[&str]| {
        let args = ["hunt", &pid, "--no-attach", "-q"];
        start(home.path(), &[&args, more].concat())
    };
    let child = hunt(&["--for", "3s", "--fail-on-growth", "100k", "--gz", "1"]);
    let found = home.path().join(format!("hunt-{pid}"));
    until("a dump", || found.join("before.hprof.gz").exists());
    target.advance(2).expect("READY");
    let ended_by_gate = ended(child);
    assert_eq!(ended_by_gate.code, Some(1), "{ended_by_gate:?}");
    let stderr = ended_by_gate.stderr;
    assert!(
        stderr.starts_with("gate tripped: --fail-on-growth"),
        "{stderr}"
    );
    let names = ["after.hprof.gz", "before.hprof.gz", "report.txt"];
    assert_eq!(files(&found), names);
    let report = fs::read_to_string(found.join("report.txt")).expect("a report");
    assert!(report.contains("Shelf.boxes"), "{report}");

    // The next hunt uses another folder. A hunt ends if its JVM ends.
    let child = hunt(&["--for", "1h"]);
    let second = home.path().join(format!("hunt-{pid}-2"));
    until("a dump", || second.join("before.hprof").exists());
    drop(target);
    let nobody = ended(child);
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    let first = format!("the first dump is in hunt-{pid}-2/before.hprof");
    assert!(nobody.stderr.contains(&first), "{nobody:?}");
    assert!(!nobody.stderr.contains("trace top"), "{nobody:?}");
    assert_eq!(files(&second), ["before.hprof"]);
}

#[test]
fn the_second_interrupt_ends_a_hunt() {
    // The heap is large, so that the second dump takes some time.
    let target = ready(&shelf(&jdks()[0]).arg("96"));
    let pid = target.pid().to_string();
    let home = folder();
    let args = [
        "hunt",
        &pid,
        "--no-attach",
        "--for",
        "1h",
        "--gz",
        "9",
        "-o",
        ".",
    ];
    let mut child = start(home.path(), &args);
    let (line, _stderr) = first_line(&mut child);
    assert!(line.contains("Ctrl-C takes it now"), "{line}");
    signal("INT", child.id());
    until("a second dump", || files(home.path()).len() > 1);
    signal("INT", child.id());
    assert_eq!(child.wait().expect("an end").signal(), Some(2));
    assert_eq!(files(home.path()), ["before.hprof.gz"]);
}

#[test]
fn a_hunt_without_a_trace_gives_the_reason() {
    let jdk = &jdks()[0];
    let mut target = ready(&shelf(jdk));
    let pid = target.pid().to_string();
    let home = folder();
    let library = agent(jdk, home.path());
    let library = library.to_str().expect("a path");
    let before = format!("return={}", heapdiff_sites::attach::ALREADY_LOADED);
    for (options, folder, why) in [
        ("", "plain", None),
        (
            &*before,
            "before",
            Some("an agent of another version is already loaded and keeps its options"),
        ),
        (
            "trace=/tmp/own-%p.db",
            "own",
            Some("heapdiff cannot find the trace file that is given in the options"),
        ),
        (
            "",
            "odd,name",
            Some("odd,name has a name that cannot be part of the agent's options"),
        ),
    ] {
        let hunt = [
            "hunt", &pid, options, "--agent", library, "--for", "0", "-o", folder,
        ];
        let hunt: Vec<&str> = hunt.into_iter().filter(|arg| !arg.is_empty()).collect();
        let done = run(home.path(), &hunt).well();
        let said = "the hunt records no trace and cannot end early: ";
        match why {
            None => assert!(!done.stderr.contains(said), "{done:?}"),
            Some(why) => assert!(done.stderr.contains(&format!("{said}{why}")), "{done:?}"),
        }
        let unused = format!(": {options} is not used, because the agent was loaded before");
        assert_eq!(
            done.stderr.contains(&unused),
            folder == "before",
            "{done:?}"
        );
        assert!(home.path().join(folder).join("after.hprof").exists());
    }
    assert!(target.is_running());
}

/// If an agent already samples, it keeps its options and also writes the hunt's trace. If the agent already writes a
/// trace, the hunt uses that trace. The last lines of the output name the files and the next command.
#[test]
fn a_hunt_takes_over_the_agent_of_an_attach() {
    for jdk in jdks() {
        let home = folder();
        let library = library();
        let library = library.to_str().expect("a name");
        let mut target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let hunt = |folder: &str, options: &[&str]| {
            let args = [
                "hunt", &pid, "--agent", library, "--for", "1h", "-o", folder,
            ];
            let mut child = start(home.path(), &[&args, options].concat());
            let (mut lines, mut stderr) = first_line(&mut child);
            while !lines.contains("the second dump follows") {
                assert_ne!(stderr.read_line(&mut lines).expect("a line"), 0, "{lines}");
            }
            (child, lines, stderr)
        };
        let attach = |options: &str| {
            run(home.path(), &["attach", &pid, options, "--agent", library]).well();
        };
        attach("interval=256k");
        let (child, lines, mut stderr) = hunt("first", &[]);
        let trace = home.path().join("first/trace.db");
        let taken_over = format!(
            "the agent was already loaded. Its earlier options still apply, trace={} is added, and its earlier samples are discarded",
            trace.canonicalize().unwrap_or(trace.clone()).display()
        );
        assert!(lines.contains(&taken_over), "{lines}");
        assert!(!lines.contains("cannot end early"), "{lines}");
        target.advance(2).expect("READY");
        signal("INT", child.id());
        assert!(ended(child).well().stdout.contains("Shelf.boxes"));
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).expect("lines");
        for part in [
            "heapdiff: wrote first/before.hprof, after.hprof, report.txt, trace.db\n",
            "too few to find the allocating stacks; for more samples, run `heapdiff hunt ",
            "\nheapdiff: next: heapdiff show first/after.hprof Shelf.boxes\n",
        ] {
            assert!(rest.contains(part), "{part}: {rest}");
        }

        let own = home.path().join("own.db");
        attach(&format!("trace={}", own.display()));
        until("a trace", || own.exists());
        let (child, lines, _stderr) = hunt("second", &[]);
        assert!(
            lines.contains("or as soon as a site has grown by"),
            "{lines}"
        );
        signal("INT", child.id());
        ended(child).well();
        let second = files(&home.path().join("second"));
        assert_eq!(second, ["after.hprof", "before.hprof", "report.txt"]);
        assert!(target.is_running());
    }
}

#[test]
fn a_hunt_that_cannot_start_leaves_no_folder() {
    let jdk = &jdks()[0];
    let target = ready(&shelf(jdk));
    let pid = target.pid().to_string();
    let home = folder();
    let bin = folder();
    let output = Command::new(lonely(bin.path()))
        .args(["hunt", &pid, "--for", "1s"])
        .current_dir(home.path())
        .env_remove("HEAPDIFF_AGENT")
        .output();
    let done = Done::from(output.expect("a run"));
    let done = done.failed(2, "libheapdiff_agent.so is not next to");
    assert!(done.stderr.contains("--agent"), "{done:?}");
    let library = agent(jdk, home.path());
    chmod(&library, 0o644);
    let library = library.to_str().expect("a name");
    let trace = "trace=/no/such/folder/t.db";
    let args = ["hunt", &pid, trace, "--agent", library, "--for", "1s"];
    run(home.path(), &args).failed(3, "cannot write this file: No such file or directory");
    let args = ["hunt", &pid, "return=98", "--agent", library, "--for", "1s"];
    let done = run(home.path(), &args).failed(3, "another agent already samples allocations");
    assert!(done.stderr.contains("--no-attach"), "{done:?}");
    assert_eq!(files(home.path()), ["libheapdiff_agent.so"]);
    // If the JVM has loaded heapdiff's own agent before, a hunt is still possible.
    let args = ["hunt", &pid, "return=201", "--agent", library, "--for", "0"];
    run(home.path(), &args).well();
}
