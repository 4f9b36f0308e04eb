//! Tests the whole script docs/kubectl-heapdiff: a user runs it on a laptop, and gets the report. Namespaces of this
//! machine replace the pod.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::elsewhere::contained;
use crate::support::{
    AS_NOBODY, BOX, Done, chmod, ended, files, first_line, instances, is_root, jdks, lonely, run,
    signal,
};
use crate::trace::library;

/// A script that replaces `kubectl`. Its pod is a JVM in its own namespaces. Its debug container is a program in the
/// same process namespace with its own `/tmp`. The script keeps its state in its folder.
const KUBECTL: &str = r#"#!/bin/sh
set -eu
here=$(dirname "$0")
pod=$(cat "$here/pod")
verb=$1
shift
case $verb in
get)
    printf shop
    ;;
debug)
    echo "$@" > "$here/debug"
    until [ "$1" = -- ]; do shift; done
    shift
    # `kubectl debug` does not wait for the container to run, nor to end.
    nsenter --target "$pod" --pid unshare --mount sh -c '
        mount -t proc proc /proc && mount -t tmpfs tmpfs /tmp && exec "$0" "$@"' "$@" < /dev/null > /dev/null 2>&1 &
    echo $! > "$here/debugger"
    ;;
exec)
    until [ "$1" = -- ]; do shift; done
    shift
    # The first is nsenter, which waits for the container.
    debugger=$(cat "/proc/$(cat "$here/debugger")/task/$(cat "$here/debugger")/children" | tr -d ' ')
    [ -n "$debugger" ]
    # What runs there has no signals ignored, as what this runs in the background has.
    exec env --default-signal=INT nsenter --target "$debugger" --pid --mount "$@"
    ;;
esac
"#;

/// The JVM of a pod, and a folder with `kubectl` and `heapdiff`.
struct Laptop {
    path: PathBuf,
    script: PathBuf,
}

impl Laptop {
    fn with(folder: &Path, pod: u32) -> Self {
        let path = folder.join("bin");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("kubectl"), KUBECTL).expect("a script");
        chmod(&path.join("kubectl"), 0o755);
        fs::write(path.join("pod"), pod.to_string()).expect("a file");
        // This folder serves as the image of the debug container. The container does not see the files in our `/tmp`.
        lonely(&path);
        let copied = Command::new("cp").arg(library()).arg(&path).status();
        assert!(copied.expect("a copy").success());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let script = root.expect("a folder").join("docs/kubectl-heapdiff");
        Self { path, script }
    }

    fn command(&self, args: &[&str]) -> Command {
        // These commands and the debug container must react to interrupts, even if the tests themselves run with
        // interrupts ignored (see `support::start`).
        let mut command = Command::new("env");
        let before = std::env::var("PATH").expect("a path");
        command
            .args(["--default-signal=INT", "sh"])
            .arg(&self.script)
            .args(args)
            .env("PATH", format!("{}:{before}", self.path.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        ended(self.command(args).spawn().expect("a run"))
    }
}

#[test]
fn a_pod_without_shell_and_jdk() {
    if !is_root() {
        return;
    }
    let jdk = jdks().remove(0);
    for user in [&[][..], &AS_NOBODY] {
        let (mut target, pod) = contained(&jdk, "60m", user);
        let home = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let laptop = Laptop::with(home.path(), pod);
        let tmp = PathBuf::from(format!("/proc/{pod}/root/tmp"));
        let to_pod = ["--image", "heapdiff", "-n", "prod", "shop-7d9f"];

        let args = [&to_pod[..], &["hunt", "--for", "1h"]].concat();
        let mut hunt = laptop.command(&args).spawn().expect("a run");
        let (line, _stderr) = first_line(&mut hunt);
        assert!(line.contains("the second dump follows in 1h"), "{line}");
        target.advance(2).expect("READY");
        // The user presses Ctrl-C on the laptop.
        signal("INT", hunt.id());
        let done = ended(hunt).well();
        assert!(done.stdout.contains("Shelf.boxes"), "{done:?}");
        let asked = fs::read_to_string(home.path().join("bin/debug")).expect("arguments");
        assert!(asked.contains("--target shop"), "{asked}");
        assert!(asked.contains("--namespace prod"), "{asked}");

        let args = [&to_pod[..], &["dump", "--gz", "1"]].concat();
        let file = home.path().join("before.hprof.gz");
        let out = fs::File::create(&file).expect("a file");
        let mut dump = laptop.command(&args);
        let done = dump.stdout(out).output().expect("a run");
        assert!(done.status.success(), "{done:?}");
        assert_eq!(instances(&file, &[BOX]), [20_000]);

        // An incomplete dump, as a killed container leaves it behind.
        let mut dump = laptop.command(&[&to_pod[..], &["dump"]].concat());
        let whole = dump.output().expect("a run").stdout;
        fs::write(tmp.join("cut.hprof"), &whole[..whole.len() - 40]).expect("a file");
        let repaired = home.path().join("repaired.hprof");
        let out = fs::File::create(&repaired).expect("a file");
        let mut repair = laptop.command(&[&to_pod[..], &["repair", "/tmp/cut.hprof"]].concat());
        let done = repair.stdout(out).output().expect("a run");
        assert!(done.status.success(), "{done:?}");
        let name = repaired.to_str().expect("a name");
        let report = run(home.path(), &["histo", name]).well();
        assert!(report.stdout.contains("20,000"), "{report:?}");
        assert!(report.stderr.contains("lacks its end"), "{report:?}");
        fs::remove_file(tmp.join("cut.hprof")).expect("a file");

        let guard = ["guard", "/tmp", "guard-disk=9m"];
        laptop.run(&[&to_pod[..], &guard].concat()).well();
        let trace = tmp.join("heapdiff-guard-1.db");
        assert!(trace.is_file(), "{:?}", files(&tmp));

        laptop.run(&[&to_pod[..], &["detach"]].concat()).well();
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(tmp.join(format!("heapdiff-guard-1.db{end}")));
        }
        let left = files(&tmp);
        let of_ours = left.iter().any(|name| name.contains("heapdiff"));
        assert!(!of_ours, "{left:?}");
        // The script must pass on heapdiff's messages and exit code.
        let args = ["--image", "i", "--pid", "77777", "shop-7d9f", "detach"];
        laptop.run(&args).failed(3, "there is no process 77777");
        laptop
            .run(&["shop-7d9f", "hunt"])
            .failed(2, "usage: kubectl heapdiff");
        assert!(target.is_running());
    }
}
