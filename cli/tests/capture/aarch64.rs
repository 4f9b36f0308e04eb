//! Tests JVMs for aarch64 in an emulator. Without such JVMs, the tests do nothing. Needs root.
//!
//! `cargo xtask machines --target aarch64` creates the folder `target/roots/aarch64`, which is the root (`chroot`) of
//! the JVMs. The environment variable `HEAPDIFF_AARCH64_ROOT` names another such folder. The folder has the emulator
//! (`qemu-aarch64`), the libraries, JVMs in `jvm-*`, and the agent for glibc in `agent`. The program that is tested may
//! be for this machine, or for aarch64 (`HEAPDIFF_BIN`).

use std::env;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use testdata::jvm::{Launch, Target, class_cache};

use crate::support::{BOX, files, folder, instances, is_root, jdks, public_shelf, ready, run};

/// The path of the agent in the root.
const AGENT: &str = "/agent/libheapdiff_agent.so";

/// Returns the root, and the names of the JVMs in it.
#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn aarch64_jvms() -> (PathBuf, Vec<String>) {
    let given = env::var_os("HEAPDIFF_AARCH64_ROOT").map(PathBuf::from);
    let root = given.unwrap_or_else(|| class_cache().with_file_name("roots").join("aarch64"));
    let mut jvms = Vec::new();
    if root.join("qemu-aarch64").is_file() && is_root() {
        jvms = files(&root);
        jvms.retain(|name| name.starts_with("jvm-"));
    }
    if jvms.is_empty() {
        eprintln!("no JVM for aarch64: left out. See `cargo xtask machines --target aarch64`");
    }
    (root, jvms)
}

/// Starts the program `Shelf` in an emulated JVM. Returns the JVM and its `/tmp`.
fn emulated(root: &Path, jvm: &str, agent: Option<&str>) -> (Target, TempDir) {
    let jdk = jdks().remove(0);
    let tmp = folder();
    // Copies the classes to the JVM's `/tmp`. The returned command is not used, because it is for a JVM that sees our
    // root.
    let _ = public_shelf(&jdk, tmp.path());
    // The shell's `$0` is the path of `java` on this machine. The script ignores it and starts the emulated JVM with
    // the same arguments (`$@`).
    let chroot = "mount -t proc proc \"$ROOT/proc\" && mount --bind \"$TMP\" \"$ROOT/tmp\" && \
                  exec chroot \"$ROOT\" /qemu-aarch64 \"/$JVM/bin/java\" \"$@\"";
    let mut launch = Launch::class(&jdk, "/tmp/classes", "Shelf")
        .through(["unshare", "--mount", "sh", "-c", chroot])
        .env("ROOT", root)
        .env("TMP", tmp.path())
        .env("JVM", jvm)
        .flags(["-Xmx256m", "-XX:+UseSerialGC"])
        // JVMs before JDK 25 only sample when a TLAB is full. The usual first TLAB is larger than all that the program
        // allocates.
        .flags(["-XX:TLABSize=16k", "-XX:-ResizeTLAB"])
        .timeout(std::time::Duration::from_secs(300));
    if let Some(options) = agent {
        launch = launch.agent(Path::new(AGENT), options);
    }
    (ready(&launch), tmp)
}

/// Takes a dump and returns the number of samples in it.
fn samples(home: &Path, pid: &str, dump: &str) -> u64 {
    run(
        home,
        &["dump", pid, "-o", dump, "--force", "--timeout", "120s"],
    )
    .well();
    let sites = run(home, &["sites", dump, "--format", "json"])
        .well()
        .stdout;
    let sites: Value = serde_json::from_str(&sites).expect("JSON");
    let samples = &sites["snapshot"]["agent"]["live_samples"];
    samples.as_u64().expect("samples")
}

#[test]
fn an_agent_that_is_loaded_at_the_start_samples() {
    let (root, jvms) = aarch64_jvms();
    for jvm in jvms {
        let (mut target, _tmp) = emulated(&root, &jvm, Some("interval=1k"));
        let (home, pid) = (folder(), target.pid().to_string());
        let home = home.path();
        let before = samples(home, &pid, "before.hprof");
        assert!(before > 100, "{jvm}: {before} samples");
        target.advance(2).expect("more");
        assert!(samples(home, &pid, "after.hprof") > 200, "{jvm}");
        for (dump, boxes) in [("before.hprof", 10_000), ("after.hprof", 20_000)] {
            assert_eq!(instances(&home.join(dump), &[BOX]), [boxes]);
        }
        let done = run(home, &["before.hprof", "after.hprof"]).well();
        assert!(done.stdout.contains("Shelf.boxes"), "{done:?}");
        assert!(done.stdout.contains("allocated in Shelf.main"), "{done:?}");
        assert!(target.is_running());
    }
}

#[test]
fn an_agent_attaches_to_an_emulated_jvm() {
    let (root, jvms) = aarch64_jvms();
    let agent = root.join(AGENT.trim_start_matches('/'));
    let agent = agent.to_str().expect("a path");
    for jvm in jvms {
        let (mut target, _tmp) = emulated(&root, &jvm, None);
        let (home, pid) = (folder(), target.pid().to_string());
        let home = home.path();
        let attach = ["attach", &pid, "interval=1k", "--agent", agent];
        let done = run(home, &[&attach[..], &["--timeout", "120s"]].concat()).well();
        assert!(done.stdout.contains("the agent is loaded;"), "{done:?}");
        target.advance(2).expect("more");
        samples(home, &pid, "a.hprof");
        let done = run(home, &["detach", &pid, "--timeout", "120s"]).well();
        assert!(done.stdout.contains("stopped sampling"), "{done:?}");
        assert!(target.is_running());
    }
}
