//! Tests that heapdiff rejects processes to which it cannot attach: the message gives the reason, and the process stays
//! alive.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{files, folder, jdks, ready, run, shelf, signal};

const ASKED: [&[&str]; 3] = [
    &["dump"],
    &["attach", "--agent", "/dev/null"],
    &["hunt", "--no-attach", "--for", "1s"],
];

fn refused(pid: u32, code: i32, why: &str) {
    let home = folder();
    for args in ASKED {
        let pid = pid.to_string();
        run(home.path(), &[args, &[&*pid]].concat()).failed(code, why);
        assert_eq!(files(home.path()), [] as [&str; 0]);
    }
}

#[test]
fn a_process_that_is_no_jvm_survives() {
    let mut sleep = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .expect("sleep");
    let pid = sleep.id();
    // Just after the fork, the process still has the name of its parent. Wait until the process has its own name.
    crate::support::until("its own name", || {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n")
    });
    refused(
        pid,
        3,
        &format!("process {pid} (sleep) is not a HotSpot JVM"),
    );
    let ended = sleep.try_wait().expect("a state");
    sleep.kill().expect("an end");
    sleep.wait().expect("an end");
    assert_eq!(ended, None, "it was killed");
    refused(pid, 3, &format!("there is no process {pid}"));
}

#[test]
fn an_ended_process_is_reported() {
    let mut child = Command::new("true").spawn().expect("true");
    let pid = child.id();
    // After a process has ended, its ID stays in use until the parent of the process waits for it.
    crate::support::until("an end", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| s.contains(") Z "))
    });
    refused(pid, 3, &format!("process {pid} (true) has ended"));
    child.wait().expect("an end");
}

#[test]
fn the_other_jvms_are_named() {
    let target = ready(&shelf(&jdks()[0]));
    let home = folder();
    let done = run(home.path(), &["dump", "NoSuchMainClassAnywhere"]);
    let done = done.failed(
        3,
        "no JVM has a main class or jar with `NoSuchMainClassAnywhere` in its name",
    );
    assert!(done.stderr.contains("main class"), "{done:?}");
    drop(target);
}

#[test]
fn the_id_of_a_thread_is_refused() {
    let target = ready(&shelf(&jdks()[0]));
    let pid = target.pid();
    let thread = files(Path::new(&format!("/proc/{pid}/task")))
        .iter()
        .filter_map(|id| id.parse().ok())
        .find(|&id| id != pid)
        .expect("a JVM has threads");
    refused(
        thread,
        3,
        &format!("{thread} is a thread of the process {pid}"),
    );
}

#[test]
fn disabled_attaching_is_reported_without_a_signal() {
    for jdk in jdks() {
        let off = "-XX:+DisableAttachMechanism";
        let launches = [
            shelf(&jdk).flag(off),
            shelf(&jdk).env("JAVA_TOOL_OPTIONS", off),
            shelf(&jdk).env("JDK_JAVA_OPTIONS", off),
        ];
        for launch in launches {
            let mut target = ready(&launch);
            refused(
                target.pid(),
                3,
                "was started with -XX:+DisableAttachMechanism",
            );
            assert!(target.is_running());
            assert!(target.finish().expect("an end"));
        }
    }
}

#[test]
fn a_jvm_that_does_not_answer_is_given_up() {
    for jdk in jdks() {
        let home = folder();
        // The JVM reads the option from a file, so its command line does not show the option.
        let options = home.path().join("options");
        fs::write(&options, "-XX:+DisableAttachMechanism").expect("a file");
        let mut target = ready(&shelf(&jdk).flag(format!("@{}", options.display())));
        let pid = target.pid().to_string();
        let done = run(home.path(), &["dump", &pid, "--timeout", "500ms"]);
        done.failed(3, "did not answer within 500ms");
        assert_eq!(files(home.path()), ["options"]);
        assert!(!Path::new(&format!("/tmp/.attach_pid{pid}")).exists());
        assert!(target.is_running());
    }
}

#[test]
fn a_jvm_that_the_signal_would_end_gets_no_signal() {
    for jdk in jdks() {
        let mut target = ready(&shelf(&jdk).flag("-Xrs"));
        let home = folder();
        let pid = target.pid().to_string();
        // With -Xrs, the JVM listens from the start. Its socket can be missing only because somebody has cleaned up
        // `/tmp`.
        run(home.path(), &["dump", &pid, "-o", "a.hprof"]).well();
        fs::remove_file(format!("/tmp/.java_pid{pid}")).expect("a socket");
        run(home.path(), &["dump", &pid]).failed(3, "does not handle SIGQUIT");
        assert!(target.is_running());
    }
}

#[test]
fn a_removed_socket_is_created_again() {
    for jdk in jdks() {
        let target = ready(&shelf(&jdk));
        let home = folder();
        let pid = target.pid().to_string();
        run(home.path(), &["dump", &pid, "-o", "a.hprof"]).well();
        fs::remove_file(format!("/tmp/.java_pid{pid}")).expect("a socket");
        run(home.path(), &["dump", &pid, "-o", "b.hprof"]).well();
    }
}

#[test]
fn a_stopped_jvm_is_reported() {
    let mut target = ready(&shelf(&jdks()[0]));
    let pid = target.pid();
    signal("STOP", pid);
    refused(pid, 3, "is stopped, so it cannot answer");
    signal("CONT", pid);
    let home = folder();
    run(home.path(), &["dump", &pid.to_string()]).well();
    assert!(target.is_running());
}

#[test]
fn a_jvm_that_has_just_started_is_waited_for() {
    for jdk in jdks() {
        for _ in 0..5 {
            let mut target = shelf(&jdk).start().expect("a JVM");
            let pid = target.pid();
            let maps = format!("/proc/{pid}/maps");
            // From this moment on, heapdiff can recognize the process as a JVM. But the JVM handles signals only much
            // later.
            crate::support::until("libjvm.so", || {
                fs::read_to_string(&maps).is_ok_and(|text| text.contains("libjvm.so"))
            });
            let home = folder();
            run(home.path(), &["dump", &pid.to_string(), "-o", "a.hprof"]).well();
            assert_eq!(files(home.path()), ["a.hprof"]);
            target.wait_ready(1).expect("it lives");
        }
    }
}

#[test]
fn a_dead_socket_is_skipped() {
    let jdk = jdks().remove(0);
    let target = ready(&shelf(&jdk));
    let pid = target.pid();
    // A killed JVM leaves its socket behind. A new JVM with the same process ID may find this socket.
    let socket = format!("/tmp/.java_pid{pid}");
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let home = folder();
    run(home.path(), &["dump", &pid.to_string(), "-o", "a.hprof"]).well();
    // A regular file with the name of the JVM's socket does not prevent attaching either.
    let second = ready(&shelf(&jdk));
    let file = format!("/tmp/.java_pid{}", second.pid());
    fs::write(&file, "").expect("a file");
    let asked = ["dump", &second.pid().to_string(), "-o", "b.hprof"];
    run(home.path(), &asked).well();
    assert_eq!(files(home.path()), ["a.hprof", "b.hprof"]);
    drop((target, second));
    for left in [socket, file] {
        let _ = fs::remove_file(left);
    }
}
