//! Tests `ps`, which lists JVMs, and `status`, which shows the state of the agent in one JVM.

use crate::support::{Done, folder, jdks, ready, run, shelf};
use crate::trace::library;

/// Returns the line of a process in the output of `ps`, split into columns.
fn columns(done: &Done, pid: &str) -> Vec<String> {
    let lines = done.stdout.lines();
    let mut lines = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
    lines
        .find(|columns: &Vec<String>| columns.first().is_some_and(|first| first == pid))
        .unwrap_or_else(|| panic!("no line of {pid}: {done:?}"))
}

#[test]
fn jvms_are_listed_with_heap_and_agent() {
    for jdk in jdks() {
        let home = folder();
        let target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let library = library();
        let library = library.to_str().expect("a path");
        let run = |args: &[&str]| run(home.path(), args).well();
        let status = |expected: &str| {
            let done = run(&["status", &pid]);
            assert!(done.stdout.contains(expected), "{expected}: {done:?}");
            done
        };
        let before = run(&["ps"]);
        let line = columns(&before, &pid);
        assert!(line.iter().any(|column| column == "MiB"), "{line:?}");
        assert!(line.iter().all(|column| column != "loaded"), "{line:?}");
        let done = status(&format!("not loaded; `heapdiff attach {pid}` loads it"));
        assert!(done.stdout.contains(" used at the last GC"), "{done:?}");

        run(&["attach", &pid, "--agent", library]);
        status("agent   samples allocations\n");
        let line = columns(&run(&["ps"]), &pid);
        assert!(line.iter().any(|column| column == "loaded"), "{line:?}");
        let trace = home.path().join("t.db");
        let options = format!("trace={},count=on", trace.display());
        run(&["attach", &pid, &options, "--agent", library]);
        status("agent   samples allocations, counts allocations, writes a trace\n");
        run(&["detach", &pid]);
        status("agent   loaded, but does nothing now");
        assert!(target.finish().expect("an end"));
    }
}

#[test]
fn a_process_that_is_no_jvm_has_no_status() {
    let home = folder();
    let pid = std::process::id().to_string();
    run(home.path(), &["status", &pid]).failed(3, "is not a HotSpot JVM");
    run(home.path(), &["status", "no.such.Main"])
        .failed(3, "no JVM has a main class or jar with `no.such.Main`");
}

/// A JVM that runs a source file with a very long name. The name contains escape sequences, a line end, and a character
/// that changes the direction of text.
#[test]
fn hostile_names_cannot_control_a_terminal() {
    let home = folder();
    let name = format!(
        "Odd\x1b[2J\x1b]0;title\x07\n\u{202e}{}.java",
        "x".repeat(200)
    );
    let source = home.path().join(&name);
    std::fs::copy(testdata::programs::shelf(), &source).expect("a copy");
    let launch = testdata::jvm::Launch::source(&jdks()[0], &source);
    let targets = [ready(&launch), ready(&launch)];
    let library = library();
    let library = library.to_str().expect("a path");
    let pid = targets[0].pid().to_string();
    let shown = "Odd\u{fffd}[2J\u{fffd}]0;title\u{fffd}\u{fffd}\u{fffd}xxx";
    for (args, code) in [
        (&["ps"][..], 0),
        (&["status", &pid], 0),
        // The names of both JVMs contain the text of this selector, so the exit code is 2.
        (&["status", "Odd\u{fffd}"], 2),
        (&["status", "Odd\x1b[2J\x07"], 3),
        (&["attach", &pid, "--agent", library], 0),
        (&["dump", &pid, "-o", "a.hprof"], 0),
        (
            &[
                "count",
                &pid,
                "--for",
                "1s",
                "--agent",
                library,
                "--progress",
                "always",
            ],
            0,
        ),
        (
            &[
                "hunt", &pid, "--for", "1s", "--agent", library, "-o", "hunt",
            ],
            0,
        ),
        (&["detach", &pid], 0),
    ] {
        let done = run(home.path(), args);
        assert_eq!(done.code, Some(code), "{done:?}");
        let text = format!("{}{}", done.stdout, done.stderr);
        let steers = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
        assert!(!text.contains(steers), "{text:?}");
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest < Some(400), "{text}");
        if args[0] != "hunt" {
            assert!(text.contains(shown), "{args:?}: {text}");
        }
    }
}
