//! Tests a JVM that uses the C library musl. Without such a JVM, the tests do nothing. Needs root.
//!
//! `cargo xtask machines` creates the folder `target/roots/musl`, which is the root (`chroot`) of the JVM. The
//! environment variable `HEAPDIFF_MUSL_ROOT` names another such folder. The folder has the loader, the libraries, a JVM
//! in `jre`, and the agent for musl in `agent`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use testdata::jvm::{Launch, Target, class_cache};

use crate::support::{BOX, files, folder, instances, is_root, jdks, public_shelf, ready, run};
use crate::trace::library;

/// Returns the folder that is the root of a JVM with musl, if it exists.
#[expect(clippy::print_stderr, reason = "what is left out is said")]
pub(crate) fn musl_root() -> Option<PathBuf> {
    let given = env::var_os("HEAPDIFF_MUSL_ROOT").map(PathBuf::from);
    let root = given.unwrap_or_else(|| class_cache().with_file_name("roots").join("musl"));
    let found = root.join("jre/bin/java").is_file();
    if !found {
        eprintln!("no JVM with musl: left out. `cargo xtask machines` fetches one");
    }
    (found && is_root()).then(|| fs::canonicalize(root).expect("the folder"))
}

/// A JVM with musl, whose root is `root`.
pub(crate) struct Musl {
    pub(crate) target: Target,
    /// The folder that the JVM sees as its `/tmp`. It contains the classes of the program.
    tmp: TempDir,
}

impl Musl {
    pub(crate) fn start(root: &Path, agent: Option<&str>) -> Self {
        let jdk = jdks().remove(0);
        let tmp = folder();
        // Copies the classes. The returned `Launch` is not used, because it is for a JVM with the same root folder as
        // this process.
        let _ = public_shelf(&jdk, tmp.path());
        // The shell's `$0` is the path of another JVM's program. The script ignores this path.
        let chroot = "mount -t proc proc \"$ROOT/proc\" && mount --bind \"$TMP\" \"$ROOT/tmp\" && \
                      exec chroot \"$ROOT\" /jre/bin/java \"$@\"";
        let mut launch = Launch::class(&jdk, "/tmp/classes", "Shelf")
            .through(["unshare", "--mount", "sh", "-c", chroot])
            .env("ROOT", root)
            .env("TMP", tmp.path())
            .flag("-Xmx256m");
        if let Some(agent) = agent {
            launch = launch.agent(Path::new(agent), "interval=1k");
        }
        Self {
            target: ready(&launch),
            tmp,
        }
    }

    fn pid(&self) -> String {
        self.target.jvm_pid().expect("a JVM").to_string()
    }

    /// Runs each command that needs the loaded agent. The commands get no path of the agent, so they must find the
    /// agent in the JVM.
    fn check_agent_is_found(&mut self, home: &Path) {
        let pid = self.pid();
        run(home, &["count", &pid, "--for", "0"]).well();
        run(home, &["dump", &pid, "--fork", "-o", "a.hprof", "--force"]).well();
        assert_eq!(instances(&home.join("a.hprof"), &[BOX]), [10_000]);
        let done = run(home, &["detach", &pid]).well();
        assert!(done.stdout.contains("stopped sampling"), "{done:?}");
        let done = run(home, &["attach", &pid, "interval=2k"]).well();
        assert!(done.stdout.contains("the agent is loaded;"), "{done:?}");
        run(home, &["hunt", &pid, "--for", "0", "-o", "hunted"]).well();
        fs::remove_dir_all(home.join("hunted")).expect("the folder");
        run(home, &["hunt", &pid, "--for", "0", "--no-files"]).well();
        assert!(self.target.is_running());
    }

    /// Returns the names of heapdiff's files in the `/tmp` of the JVM.
    fn left_over(&self) -> Vec<String> {
        let mut names = files(self.tmp.path());
        names.retain(|name| name.contains("heapdiff"));
        names
    }
}

/// The library is copied into the JVM's root and removed after loading. musl recognizes a loaded library only by its
/// inode, and a removed file can no longer be looked up by its path.
#[test]
fn an_agent_whose_file_was_removed_is_found() {
    let Some(root) = musl_root() else { return };
    let home = folder();
    let mut jvm = Musl::start(&root, None);
    let agent = root.join("agent/libheapdiff_agent.so");
    let agent = agent.to_str().expect("a path");
    let attach = ["attach", &jvm.pid(), "interval=1k", "--agent", agent];
    run(home.path(), &attach).well();
    assert_eq!(jvm.left_over(), [""; 0]);
    jvm.check_agent_is_found(home.path());
    assert_eq!(jvm.left_over(), [""; 0]);
}

/// An upgrade replaces the file from which the JVM loaded the library.
#[test]
fn an_agent_whose_file_was_replaced_is_found() {
    let Some(root) = musl_root() else { return };
    let home = folder();
    let place = tempfile::tempdir_in(&root).expect("a folder");
    let file = place.path().join("libheapdiff_agent.so");
    let agent = root.join("agent/libheapdiff_agent.so");
    fs::copy(&agent, &file).expect("a copy");
    let inside = Path::new("/").join(file.strip_prefix(&root).expect("a path inside"));
    let mut jvm = Musl::start(&root, Some(inside.to_str().expect("a path")));
    fs::remove_file(&file).expect("the file");
    fs::copy(&agent, &file).expect("a copy");
    jvm.check_agent_is_found(home.path());
}

/// A JVM with musl cannot load an agent for glibc. heapdiff reports this error before the JVM tries to load the agent.
#[test]
fn an_agent_for_the_other_c_library_is_refused() {
    let Some(root) = musl_root() else { return };
    let home = folder();
    let mut jvm = Musl::start(&root, None);
    let pid = jvm.pid();
    let glibc = library();
    let glibc = glibc.to_str().expect("a path");
    let refused = "(Shelf) uses musl, and ";
    let done = run(home.path(), &["attach", &pid, "--agent", glibc]).failed(3, refused);
    let why = "libheapdiff_agent.so was built for glibc; leave out --agent";
    assert!(done.stderr.contains(why), "{done:?}");
    run(home.path(), &["detach", &pid]).failed(3, "no agent is loaded");
    // If the JVM cannot load the agent, a hunt records with Flight Recorder instead.
    let hunt = ["hunt", &pid, "--for", "0", "-o", "hunted", "--agent", glibc];
    let done = run(home.path(), &hunt).well();
    let records = "so the hunt records with Flight Recorder instead";
    assert!(done.stderr.contains(records), "{done:?}");
    // A JVM with glibc refuses the agent for musl.
    let other = ready(&public_shelf(&jdks().remove(0), home.path()));
    let musl = root.join("agent/libheapdiff_agent.so");
    let musl = musl.to_str().expect("a path");
    let attach = ["attach", &other.pid().to_string(), "--agent", musl];
    run(home.path(), &attach).failed(3, "(Shelf) uses glibc, and ");
    assert!(jvm.target.is_running());
}
