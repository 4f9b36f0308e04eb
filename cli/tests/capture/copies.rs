//! Tests the copy of the agent's library that a JVM in a container loads. Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testdata::jvm::{Jdk, Target};

use crate::elsewhere::contained;
use crate::support::{
    AS_NOBODY, agent, files, folder, is_root, jdks, public_shelf, ready, run, start, until,
};

/// Starts another JVM in the container of a running JVM. Returns the new JVM with its process ID.
fn beside(jdk: &Jdk, pid: u32, as_user: &[&str]) -> (Target, u32) {
    let classes = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let pid = pid.to_string();
    let target = ready(
        &public_shelf(jdk, classes.path())
            .through(["nsenter", "--target", &pid, "--mount", "--pid"])
            .through(as_user),
    );
    let pid = target.jvm_pid().expect("a JVM");
    (target, pid)
}

#[test]
fn the_next_run_removes_the_copy_of_a_killed_run() {
    if !is_root() {
        return;
    }
    let jdk = jdks().remove(0);
    for user in [&[][..], &AS_NOBODY] {
        let (mut target, pid) = contained(&jdk, "50m", user);
        let tmp = PathBuf::from(format!("/proc/{pid}/root/tmp"));
        let (_other, other) = beside(&jdk, pid, user);
        let home = folder();
        let library = agent(&jdk, home.path());
        let attach = |pid: u32, options: &str| {
            let args = ["attach", &pid.to_string(), options, "--agent"].map(str::to_owned);
            [&args[..], &[library.display().to_string()]].concat()
        };
        let attached = |pid, options| {
            let args = attach(pid, options);
            run(
                home.path(),
                &args.iter().map(String::as_str).collect::<Vec<_>>(),
            )
            .well()
        };
        let copies = || {
            let mut names = files(&tmp);
            names.retain(|name| name.contains("heapdiff_agent"));
            names
        };

        let args = attach(pid, "hold=/tmp/go");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut held = start(home.path(), &args);
        until("a library that is loaded", || is_loaded(pid));
        let copy = copies();
        assert_eq!(copy.len(), 1, "{copy:?}");
        // The copy is so old that another run of heapdiff could treat it as abandoned. That run must not remove the
        // copy, because the run that made the copy has not ended.
        aged(&tmp.join(&copy[0]));
        attached(other, "mark=/tmp/mark");
        assert_eq!(copies(), copy);

        held.kill().expect("SIGKILL");
        held.wait().expect("an end");
        assert_eq!(copies(), copy);
        attached(other, "mark=/tmp/mark");
        assert!(copies().is_empty(), "{:?}", copies());

        // The copy of the library is deleted now. The JVM that loaded the copy still works: the agent ends its wait,
        // and accepts another request.
        fs::write(tmp.join("go"), "").expect("a file");
        attached(pid, "mark=/tmp/again");
        assert!(tmp.join("again").exists() && copies().is_empty());
        assert!(target.is_running());
    }
}

fn is_loaded(pid: u32) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.contains("heapdiff_agent")
}

/// Makes a file look as if nobody had written to it for two minutes.
fn aged(path: &Path) {
    let mut aged = Command::new("touch");
    aged.args(["-d", "2 minutes ago"]).arg(path);
    assert!(aged.status().expect("touch").success());
}
