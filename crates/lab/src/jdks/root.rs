//! Creates the root file system with the JDKs, and runs commands in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::run;

/// The keyring file of Debian's package `debian-archive-keyring`, which contains the keys that sign Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Returns the folder of a JDK, as a path inside the root file system.
pub(super) fn home(major: u32) -> String {
    format!("/usr/lib/jvm/java-{major}-openjdk-amd64")
}

/// Converts the path of a file inside the root file system to the path of the same file outside. `root` is the folder
/// that contains the root file system.
fn inside(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// True if the root file system in the folder `root` contains these JDKs with their compilers.
pub(super) fn is_complete(root: &Path, majors: &[u32]) -> bool {
    let javac = |major: &u32| inside(root, Path::new(&home(*major))).join("bin/javac");
    majors.iter().map(javac).all(|javac| javac.is_file())
}

/// Creates the root file system with these JDKs, unless it exists.
pub(super) fn make(root: &Path, majors: &[u32], mirror: Option<&str>) -> Result<()> {
    if is_complete(root, majors) {
        return Ok(());
    }
    if !root.join("usr/bin/apt-get").exists() {
        let mirror = match mirror {
            Some(mirror) => mirror.to_owned(),
            None => configured_mirror()?,
        };
        fs::create_dir_all(root).with_context(|| root.display().to_string())?;
        let mut bootstrap = Command::new("debootstrap");
        bootstrap.args(["--variant=minbase", &format!("--keyring={KEYRING}"), "sid"]);
        run::run(bootstrap.arg(root).arg(mirror)).context("install the package debootstrap")?;
    }
    let apt = |more: &[&str]| -> Result<Command> {
        let mut command = enter(root, &[])?;
        command
            .args(["apt-get", "-o", "Acquire::Retries=3"])
            .args(more);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        Ok(command)
    };
    // The package index of sid is valid for a week. An expired index is accepted, but its signature is still checked.
    let expired = ["-o", "Acquire::Check-Valid-Until=false"];
    if run::run(apt(&["update"])?.arg("--error-on=any")).is_err() {
        run::run(apt(&expired)?.args(["update", "--error-on=any"]))?;
    }
    let packages = majors
        .iter()
        .map(|major| format!("openjdk-{major}-jdk-headless"));
    let mut install = apt(&["install", "--yes", "--no-install-recommends"])?;
    run::run(install.args(packages))?;
    run::run(apt(&["clean"])?.env("DEBIAN_FRONTEND", "noninteractive"))?;
    ensure!(
        is_complete(root, majors),
        "{}: a JDK is missing",
        root.display()
    );
    Ok(())
}

/// Returns the Debian mirror that apt uses on this machine.
fn configured_mirror() -> Result<String> {
    let mut apt = Command::new("apt-get");
    apt.args([
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Origin: Debian",
        "Label: Debian",
    ]);
    let listed = apt.output().context("cannot start apt-get")?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let first = text.lines().next().map(str::to_owned);
    first.context("apt has no Debian mirror on this machine: give one with --mirror")
}

/// Returns a command that runs a program inside the root file system. The caller adds the program and its arguments to
/// the command. The folders in `shared` have the same paths inside. When the command ends, its mounts are removed.
/// Signals that this process ignores get their default handling in the command, because a JVM with -Xcheck:jni prints a
/// message for ignored signals.
pub(super) fn enter(root: &Path, shared: &[&Path]) -> Result<Command> {
    const SCRIPT: &str = r#"
set -e
root=$1 count=$2
shift 2
mount -t proc proc "$root/proc"
while [ "$count" -gt 0 ]; do
    mount --rbind "$1" "$root$1"
    shift
    count=$((count - 1))
done
exec chroot "$root" env --default-signal "$@"
"#;
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        SCRIPT,
        "sh",
    ]);
    command.arg(root).arg(shared.len().to_string());
    for folder in shared {
        let place = inside(root, folder);
        fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
        command.arg(folder);
    }
    // Replace or remove settings that refer to locales, folders or libraries of this machine, because the root file
    // system may lack them.
    command.env("LC_ALL", "C.UTF-8");
    for name in ["TMPDIR", "JAVA_HOME", "LD_PRELOAD", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    Ok(command)
}
