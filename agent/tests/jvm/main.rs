//! Tests the agent in real JVMs: with every JDK of this machine and each of its collectors.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stdout, reason = "tests show their figures")]

mod beside;
mod births;
mod count_on;
mod counted;
mod crowd;
mod debugged;
mod dumped;
mod estimates;
mod forked;
mod forked_virtual;
mod full_heap;
mod generational_z;
mod guarded;
mod header;
mod kinds;
mod labelled;
mod lifecycle;
mod living;
mod loading;
mod rounds;
mod source_lines;
mod stress;
mod traced;
mod traced_counts;
mod traced_files;
mod traced_samples;
mod used;

use std::path::Path;
use std::process::Command;

use testdata::jvm::{Jdk, Launch};
use testdata::programs;
use testdata::programs::agent_library as library;

/// Flags that make the JVM check each JNI call and report forbidden calls on standard error, which the tests read.
const CHECKED: [&str; 2] = ["-Xcheck:jni", "-XX:+DisplayVMOutputToStderr"];

/// Compiles a program of `testdata/java/agent`. Returns a launch of this program with the agent.
fn launch(jdk: &Jdk, program: &str, options: &str) -> Launch {
    let classes = jdk
        .compile(&programs::agent(&format!("{program}.java")))
        .unwrap();
    Launch::class(jdk, classes, program).agent(&library(), options)
}

/// Returns the JDKs to test. Fails if there are none.
fn jdks() -> Vec<Jdk> {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "a JDK of 17 or later is needed");
    jdks
}

/// Returns the flags that select each collector of the newest JDK. For other JDKs, returns only the flags of G1 and
/// ZGC, unless the environment variable `HEAPDIFF_ROUNDS` is `all`.
fn collectors(jdk: &Jdk) -> Vec<&'static str> {
    let all = [
        "-XX:+UseG1GC",
        "-XX:+UseZGC",
        "-XX:+UseSerialGC",
        "-XX:+UseParallelGC",
        "-XX:+UseShenandoahGC",
    ];
    let newest = jdks().iter().map(Jdk::major).max();
    let all = match std::env::var("HEAPDIFF_ROUNDS") {
        Ok(rounds) if rounds == "all" => &all[..],
        _ if Some(jdk.major()) == newest => &all[..],
        _ => &all[..2],
    };
    let starts = |flag: &&str| {
        let run = Command::new(jdk.java()).args([flag, "-version"]).output();
        run.unwrap().status.success()
    };
    all.iter().copied().filter(starts).collect()
}

/// Compiles C code with the JDK's headers.
fn cc(jdk: &Jdk, source: &Path, flags: &[&str], out: &Path) {
    let include = jdk.home().join("include");
    let run = Command::new("cc")
        .arg("-I")
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(out)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
}
