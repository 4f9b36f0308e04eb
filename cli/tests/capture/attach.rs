//! Tests the loading of the agent, and the messages about it.

use std::fs;
use std::time::Duration;

use crate::support::{
    agent, files, first_line, folder, heapdiff, jdks, lonely, ready, run, shelf, start,
};

#[test]
fn an_agent_is_loaded_with_its_options() {
    for jdk in jdks() {
        let home = folder();
        let library = agent(&jdk, home.path());
        let library = library.to_str().expect("a name");
        let mut target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let mark = home.path().join("mark");
        let options = format!("interval=64k,mark={}", mark.display());
        let done = run(home.path(), &["attach", &pid, &options, "--agent", library]).well();
        assert!(done.stdout.contains("the agent is loaded"), "{done:?}");
        assert_eq!(fs::read_to_string(&mark).expect("the mark"), options);

        let attach =
            |options: &str| run(home.path(), &["attach", &pid, options, "--agent", library]);
        attach("return=98").failed(3, "another agent already samples allocations in this JVM");
        attach("return=203").failed(3, "another agent already samples allocations in this JVM");
        attach("return=202").failed(3, "the agent rejected its options");
        attach("return=204").failed(3, "the agent could not start");
        attach("return=201").failed(3, "the agent is loaded already");
        let done = attach("return=7").failed(3, "the agent refused the command with code 7");
        assert!(done.stderr.contains("the JVM's standard error"), "{done:?}");
        attach("return=-1").failed(3, "the agent refused the command with code -1");
        attach(&"x".repeat(2000)).failed(2, "longer than 1023 bytes");
        assert!(target.is_running());

        // heapdiff finds the agent library in both places: at the path in the environment variable `HEAPDIFF_AGENT`,
        // and in the folder of the program.
        let from = |path: &str| {
            heapdiff(home.path(), &["attach", &pid, "-q"])
                .env("HEAPDIFF_AGENT", path)
                .output()
                .expect("a run")
        };
        assert!(from(library).status.success());
        assert_eq!(from("/no/such/agent.so").status.code(), Some(2));
        let bin = home.path().join("bin");
        let program = lonely(&bin);
        let beside = || {
            let run = std::process::Command::new(&program)
                .args(["attach", &pid])
                .output();
            run.expect("a run").status.code()
        };
        assert_eq!(beside(), Some(2), "there is none");
        fs::copy(library, bin.join("libheapdiff_agent.so")).expect("a copy");
        assert_eq!(beside(), Some(0));
        // The second attach must reach the library that the JVM has already loaded. Another library would report that a
        // different agent is already sampling.
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
        let paths = maps.lines().filter(|line| line.contains("heapdiff_agent"));
        assert!(paths.clone().count() > 0);
        for line in paths {
            assert!(line.ends_with(library), "{line}");
        }
    }
}

/// The agent may need a long time, for example to change tens of thousands of classes. The message to the user gives
/// this reason, and says where progress is shown.
#[test]
fn a_slow_agent_is_reported() {
    let jdk = jdks().remove(0);
    let home = folder();
    let library = agent(&jdk, home.path());
    let library = library.to_str().expect("a name");
    let mut target = ready(&shelf(&jdk));
    let pid = target.pid().to_string();
    let go = home.path().join("go");
    let options = format!("hold={}", go.display());
    let args = ["attach", &pid, &options, "--agent", library];
    let mut attached = start(home.path(), &args);
    let (line, _rest) = first_line(&mut attached);
    assert!(
        line.contains("the agent has not finished after 5s")
            && line.contains("standard error shows"),
        "{line}"
    );
    fs::write(&go, "").expect("a file");
    assert!(attached.wait().expect("an end").success());
    // With -q nothing is printed.
    let done = run(home.path(), &["attach", &pid, "-q", "--agent", library]).well();
    assert_eq!((&*done.stderr, &*done.stdout), ("", ""));
    assert!(target.is_running());
}

#[test]
fn a_library_without_an_agent_is_reported() {
    for jdk in jdks() {
        let home = folder();
        let mut target = ready(&shelf(&jdk));
        let pid = target.pid().to_string();
        let no_library = home.path().join("text.so");
        fs::write(&no_library, "no library").expect("a file");
        let attach = |path: &str| run(home.path(), &["attach", &pid, "--agent", path]);
        let done = attach(no_library.to_str().expect("a name"));
        done.failed(3, "did not load the agent: ");
        let jvms_own = jdk.home().join("lib/libzip.so");
        attach(jvms_own.to_str().expect("a name")).failed(3, "Agent_OnAttach is not available");
        attach("missing.so").failed(2, "--agent: missing.so: No such file");
        assert!(target.is_running());
        assert_eq!(files(home.path()), ["text.so"]);
    }
}

#[test]
fn agents_may_be_forbidden() {
    for jdk in jdks() {
        let home = folder();
        let library = agent(&jdk, home.path());
        let launch = shelf(&jdk).flag("-XX:-EnableDynamicAgentLoading");
        let target = ready(&launch);
        let pid = target.pid().to_string();
        let path = library.to_str().expect("a name");
        let done = run(home.path(), &["attach", &pid, "--agent", path]);
        let done = done.failed(
            3,
            "did not load the agent: Dynamic agent loading is not enabled",
        );
        assert!(done.stderr.contains("-agentpath"), "{done:?}");
        // Dumps do not need the agent.
        run(home.path(), &["dump", &pid]).well();
    }
}

#[test]
fn the_library_is_found_and_copied() {
    let home = folder();
    let bin = home.path().join("bin");
    let program = lonely(&bin);
    let agent = |args: &[&str]| {
        let mut command = std::process::Command::new(&program);
        let done = command
            .arg("agent")
            .args(args)
            .current_dir(home.path())
            .env_remove("HEAPDIFF_AGENT")
            .output();
        crate::support::Done::from(done.expect("a run"))
    };
    let none = agent(&[]).failed(2, "libheapdiff_agent.so is not next to");
    assert!(none.stderr.contains("cargo xtask install"), "{none:?}");

    let beside = bin.join("libheapdiff_agent.so");
    fs::write(&beside, "the library").expect("a file");
    let beside = fs::canonicalize(beside).expect("its path");
    assert_eq!(agent(&[]).well().stdout, format!("{}\n", beside.display()));
    // Write the library to a file, to a folder, and over an existing file.
    for (output, file) in [
        ("a.so", "a.so"),
        (".", "libheapdiff_agent.so"),
        ("a.so", "a.so"),
    ] {
        let done = agent(&["-o", output]).well();
        let file = fs::canonicalize(home.path().join(file)).expect("the copy");
        assert_eq!(done.stdout, format!("{}\n", file.display()));
        assert_eq!(fs::read(&file).expect("the copy"), b"the library");
        fs::write(file, "old").expect("a file");
    }
    agent(&["-o", "no/such/a.so"]).failed(2, "cannot write -o no/such/a.so");
    agent(&["--agent", "no.so"]).failed(2, "--agent: no.so");
}

/// Attaches to a JVM that is starting, at three moments: before it has loaded libjvm, before it handles signals, and
/// before it accepts agents. heapdiff tries again until it succeeds.
#[test]
fn a_jvm_that_was_just_started() {
    for jdk in jdks() {
        let home = folder();
        let library = agent(&jdk, home.path());
        let library = library.to_str().expect("a name");
        for millis in [0, 5, 10, 15, 20, 25, 30, 40, 50, 60] {
            let mut target = shelf(&jdk).start().expect("a JVM");
            std::thread::sleep(Duration::from_millis(millis));
            let pid = target.pid().to_string();
            let done = run(home.path(), &["attach", &pid, "--agent", library]).well();
            assert!(done.stdout.contains("the agent is loaded"), "{done:?}");
            target.wait_ready(1).expect("READY");
        }
    }
}
