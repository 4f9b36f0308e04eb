//! Tests `heapdiff hunt --recording`, and hunts of JVMs that cannot load the agent. These hunts record with Flight
//! Recorder.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testdata::jvm::{Jdk, Launch, Target};

use crate::support::{
    ended, files, first_line, folder, jdks, ready, run, shelf, signal, start, until,
};
use crate::trace::library;

/// With small thread-local allocation buffers (TLABs), Flight Recorder takes more samples of the `Shelf$Box` objects.
const TLABS: [&str; 3] = ["-XX:TLABSize=4k", "-XX:MinTLABSize=2k", "-XX:-ResizeTLAB"];
const NO_LOADING: &str = "-XX:-EnableDynamicAgentLoading";

fn sampled(jdk: &Jdk) -> Launch {
    shelf(jdk).flags(TLABS)
}

/// Returns the list of recordings that run in the JVM.
fn recordings(target: &Target) -> String {
    target.jcmd(["JFR.check"]).expect("recordings")
}

fn begin(target: &Target, options: &[&str]) {
    let answer = target.jcmd([&["JFR.start"], options].concat());
    let answer = answer.expect("a recording");
    assert!(answer.contains("Started recording"), "{answer}");
}

/// Runs a hunt during which the number of `Shelf$Box` objects grows. Returns its JSON report and its standard error.
fn hunted(home: &Path, target: &mut Target, phase: u32, args: &[&str]) -> (Value, String) {
    let pid = target.pid().to_string();
    let all = ["hunt", &pid, "--for", "1h", "--format", "json"];
    let mut child = start(home, &[&all, args].concat());
    let (mut lines, mut stderr) = first_line(&mut child);
    while !lines.contains("the second dump follows") {
        use std::io::BufRead;
        assert_ne!(stderr.read_line(&mut lines).expect("a line"), 0, "{lines}");
    }
    target.advance(phase).expect("READY");
    signal("INT", child.id());
    let done = ended(child).well();
    stderr.read_to_string(&mut lines).expect("lines");
    let report = serde_json::from_str(&done.stdout).expect("JSON");
    (report, lines)
}

/// Checks that heapdiff matched the report with a recording of this JVM.
fn check_joined(report: &Value) {
    let suspect = &report["suspects"][0];
    assert_eq!(suspect["holder"], "Shelf.boxes", "{suspect}");
    assert!(suspect["joined"].is_string(), "{suspect}");
    let recording = &report["recordings"][0];
    assert_eq!(recording["matched"], "dump-event", "{recording}");
}

/// Checks that the first stack of the first suspect comes from a recording, and begins with `frame`.
fn check_stack(report: &Value, frame: &str) {
    let suspect = &report["suspects"][0];
    let stack = &suspect["stacks"][0];
    assert_eq!(stack["source"], "recording", "{suspect}");
    assert_eq!(stack["frames"][0], frame, "{suspect}");
}

#[test]
fn a_hunt_records_in_place_of_the_agent() {
    for jdk in jdks() {
        let home = folder();
        let mut target = ready(&sampled(&jdk));
        // A killed hunt left the first recording behind, so it is stopped. The second recording belongs to a hunt that
        // still runs.
        begin(&target, &["name=heapdiff-1-left"]);
        begin(&target, &["name=heapdiff-99999999999-used"]);
        // The user's recording has no stacks of live objects, so the hunt starts another recording.
        begin(&target, &["name=mine", "settings=default"]);
        let args = ["--recording", "-o", "it's a hunt"];
        let (report, lines) = hunted(home.path(), &mut target, 2, &args);
        check_joined(&report);
        let wrote =
            "heapdiff: wrote it's a hunt/before.hprof, after.hprof, report.json, recording.jfr\n";
        assert!(lines.contains(wrote), "{lines}");
        assert!(!lines.contains("too few to find"), "{lines}");
        let left = recordings(&target);
        assert!(
            left.contains("name=mine") && left.contains("-used"),
            "{left}"
        );
        assert_eq!(left.matches("name=").count(), 2, "{left}");

        // `jcmd` changes the `%p` in the name of this folder. So the recording is written elsewhere and copied to the
        // folder.
        let args = ["--recording", "-o", "100%p"];
        let (report, _) = hunted(home.path(), &mut target, 3, &args);
        check_joined(&report);
        let names = [
            "after.hprof",
            "before.hprof",
            "recording.jfr",
            "report.json",
        ];
        assert_eq!(files(&home.path().join("100%p")), names);
        assert_eq!(recordings(&target).matches("name=").count(), 2);
    }
}

#[test]
fn a_jvm_that_loads_no_agent_is_recorded() {
    for jdk in jdks() {
        let home = folder();
        let library = library();
        let library = library.to_str().expect("a name");
        let mut target = ready(&sampled(&jdk).flag(NO_LOADING));
        let args = ["interval=64k", "--agent", library, "-o", "found"];
        let (report, lines) = hunted(home.path(), &mut target, 2, &args);
        check_joined(&report);
        let why = "did not load the agent: Dynamic agent loading is not enabled.";
        assert!(lines.contains(why), "{lines}");
        let instead = "; so the hunt records with Flight Recorder instead, without a trace, without the agent options interval=64k\n";
        assert!(lines.contains(instead), "{lines}");
        assert_eq!(recordings(&target).matches("name=").count(), 0);

        let pid = target.pid().to_string();
        let args = [
            "hunt", &pid, "--agent", library, "--fork", "--for", "0", "-o", "forked",
        ];
        run(home.path(), &args).failed(3, "did not load the agent");
        assert_eq!(files(home.path()), ["found"]);
    }
}

#[test]
fn the_users_recording_is_used_and_continues() {
    for jdk in jdks() {
        let home = folder();
        let mut target = ready(&sampled(&jdk));
        // These events are not `ObjectAllocationSample`, so Flight Recorder does not limit their number per second.
        let events = "jdk.ObjectAllocationInNewTLAB#enabled=true";
        begin(&target, &["name=mine", "settings=profile", events]);
        let args = ["--recording", "-o", "found"];
        let (report, lines) = hunted(home.path(), &mut target, 2, &args);
        check_joined(&report);
        check_stack(&report, "Shelf.main(line 32)");
        assert!(
            lines.contains("the hunt uses the running recording mine"),
            "{lines}"
        );
        let left = recordings(&target);
        assert_eq!(left.matches("name=").count(), 1, "{left}");
        assert!(
            left.contains("name=mine") && left.contains("(running)"),
            "{left}"
        );
    }
}

#[test]
fn a_given_recording_is_read_after_the_second_dump() {
    let home = folder();
    let mut target = ready(&shelf(&jdks()[0]));
    let pid = target.pid().to_string();
    let args = [
        "hunt", &pid, "--for", "1h", "-o", "found", "--format", "json",
    ];
    let given = ["--no-attach", "--recording", "mine.collapsed"];
    let mut child = start(home.path(), &[&args[..], &given].concat());
    let (line, _stderr) = first_line(&mut child);
    let late = "mine.collapsed does not exist yet; the hunt reads it after the second dump";
    assert!(line.contains(late), "{line}");
    until("a dump", || home.path().join("found/before.hprof").exists());
    target.advance(2).expect("READY");
    let stacks = home.path().join("mine.collapsed");
    fs::write(stacks, "Shelf.main;Shelf$Box 45\n").expect("a file");
    signal("INT", child.id());
    let done = ended(child).well();
    let report: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(report["recordings"][0]["matched"], "none", "{report}");
    check_stack(&report, "Shelf.main");
    let names = ["after.hprof", "before.hprof", "report.json"];
    assert_eq!(files(&home.path().join("found")), names);
}

#[test]
fn signals_stop_the_recording() {
    for jdk in jdks() {
        // The heap is large, so that the second dump takes some time.
        let target = ready(&shelf(&jdk).arg("96"));
        let pid = target.pid().to_string();
        let home = folder();
        let args = |folder| {
            [
                "hunt",
                &pid,
                "--recording",
                "--for",
                "1h",
                "--gz",
                "9",
                "-o",
                folder,
            ]
        };
        let mut child = start(home.path(), &args("waits"));
        let (line, _stderr) = first_line(&mut child);
        assert!(line.contains("Ctrl-C takes it now"), "{line}");
        assert!(recordings(&target).contains("name=heapdiff-"));
        signal("TERM", child.id());
        assert_eq!(child.wait().expect("an end").signal(), Some(15));
        assert_eq!(recordings(&target).matches("name=").count(), 0);
        assert_eq!(files(&home.path().join("waits")), ["before.hprof.gz"]);

        let dumps = home.path().join("dumps");
        let mut child = start(home.path(), &args("dumps"));
        let (line, _stderr) = first_line(&mut child);
        assert!(line.contains("Ctrl-C takes it now"), "{line}");
        signal("INT", child.id());
        until("a second dump", || files(&dumps).len() > 1);
        signal("INT", child.id());
        assert_eq!(child.wait().expect("an end").signal(), Some(2));
        // The JVM runs the command `JFR.check` only after the dump is complete.
        assert_eq!(recordings(&target).matches("name=").count(), 0);
        assert_eq!(files(&dumps), ["before.hprof.gz"]);
    }
}

#[test]
fn a_recording_ends_with_its_jvm() {
    let target = ready(&shelf(&jdks()[0]));
    let pid = target.pid().to_string();
    let home = folder();
    let args = ["hunt", &pid, "--recording", "--for", "1h", "-o", "found"];
    let mut child = start(home.path(), &args);
    let (line, mut stderr) = first_line(&mut child);
    assert!(line.contains("the second dump follows"), "{line}");
    drop(target);
    assert_eq!(ended(child).code, Some(3));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("lines");
    for part in [
        "has ended",
        "the first dump is in found/before.hprof",
        "the recording ended with the JVM and was not saved",
    ] {
        assert!(rest.contains(part), "{part}: {rest}");
    }
    assert_eq!(files(&home.path().join("found")), ["before.hprof"]);
}

#[test]
fn a_jvm_without_flight_recorder_is_only_dumped() {
    for jdk in jdks()
        .iter()
        .filter(|jdk| jdk.home().join("jmods").is_dir())
    {
        let home = folder();
        let small = home.path().join("small");
        let linked = Command::new(jdk.home().join("bin/jlink"))
            .args(["--add-modules", "java.base", "--output"])
            .arg(&small)
            .output()
            .expect("jlink");
        assert!(linked.status.success(), "{linked:?}");
        let classes = jdk.compile(&testdata::programs::shelf()).expect("classes");
        let mut child = Command::new(small.join("bin/java"))
            .arg("-cp")
            .arg(classes)
            .arg("Shelf")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a JVM");
        let mut printed = [0; 7];
        let out = child.stdout.as_mut().expect("a pipe");
        out.read_exact(&mut printed).expect("READY 1");
        let pid = child.id().to_string();
        let args = ["hunt", &pid, "--recording", "--for", "0", "-o", "found"];
        let done = run(home.path(), &args).well();
        child.kill().expect("an end");
        child.wait().expect("an end");
        let why = "the hunt has no recording, so the report has no allocating stacks: ";
        assert!(done.stderr.contains(why), "{done:?}");
        assert!(
            done.stderr.contains("Module jdk.jfr not found."),
            "{done:?}"
        );
        let names = ["after.hprof", "before.hprof", "report.txt"];
        assert_eq!(files(&home.path().join("found")), names);
        fs::remove_dir_all(small).expect("an end");
    }
}
