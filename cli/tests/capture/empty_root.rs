//! Tests a statically linked program in a root that has no other file: no loader, no library, no shell. Needs root.
//!
//! `cargo xtask machines` builds such a program. The environment variable `HEAPDIFF_BIN` contains its path.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use testdata::jvm::Target;

use crate::musl::{Musl, musl_root};
use crate::support::{Done, files, folder, is_root, jdks, lonely, ready, shelf};

/// A folder that serves as the root of the program, with `/proc` and an empty `/tmp`.
struct EmptyRoot(TempDir);

impl EmptyRoot {
    /// Returns `None` if the program does not start without its libraries.
    #[expect(clippy::print_stderr, reason = "what is left out is said")]
    fn create() -> Option<Self> {
        if !is_root() {
            return None;
        }
        let root = folder();
        lonely(root.path());
        for name in ["proc", "tmp"] {
            fs::create_dir(root.path().join(name)).expect("a folder");
        }
        let root = Self(root);
        let starts = root.run(&["--version"]).code == Some(0);
        if !starts {
            eprintln!("the program is not linked statically: left out. See `cargo xtask machines`");
        }
        starts.then_some(root)
    }

    fn run(&self, args: &[&str]) -> Done {
        let chroot = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" /heapdiff \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", chroot]);
        command.arg(self.0.path()).args(args);
        Done::from(command.output().expect("a run"))
    }

    fn check_jvm(&self, jvm: &mut Target) {
        let pid = jvm.jvm_pid().expect("a JVM").to_string();
        let done = self.run(&["attach", &pid, "interval=1k"]).well();
        assert!(done.stdout.contains("the agent is loaded;"), "{done:?}");
        self.run(&["count", &pid, "--for", "0"]).well();
        let dump = ["dump", &pid, "--fork", "-o", "/a.hprof", "--force"];
        self.run(&dump).well();
        let done = self.run(&["sites", "/a.hprof"]).well();
        assert!(done.stdout.contains("one sample every 1.0 KiB"), "{done:?}");
        self.run(&["hunt", &pid, "--for", "0", "-o", "/hunted"])
            .well();
        let hunted = self.0.path().join("hunted");
        let dumps = files(&hunted);
        assert!(dumps.contains(&"after.hprof".to_owned()), "{dumps:?}");
        fs::remove_dir_all(hunted).expect("the folder");
        self.run(&["detach", &pid]).well();
        assert!(jvm.is_running());
    }
}

#[test]
fn a_static_program_compares_dumps() {
    let Some(root) = EmptyRoot::create() else {
        return;
    };
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    for name in ["before.hprof.gz", "after.hprof.gz"] {
        fs::copy(dumps.join(name), root.0.path().join(name)).expect("a copy");
    }
    let done = root.run(&["/before.hprof.gz", "/after.hprof.gz"]).well();
    let holder = "com.acme.shop.SessionRegistry.sessions";
    assert!(done.stdout.contains(holder), "{done:?}");
}

#[test]
fn a_static_program_attaches_to_jvms_with_either_c_library() {
    let Some(root) = EmptyRoot::create() else {
        return;
    };
    for jdk in jdks() {
        root.check_jvm(&mut ready(&shelf(&jdk)));
    }
    if let Some(musl) = musl_root() {
        root.check_jvm(&mut Musl::start(&musl, None).target);
    }
}
