//! Finds a JDK, or installs one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{on_path, run};

/// The folder of a JDK; installs one from the distribution if there is none and that is possible.
pub(crate) fn ensure_jdk() -> Result<PathBuf> {
    if let Some(home) = find() {
        return Ok(home);
    }
    const HINT: &str = "no JDK found: install JDK 17 or later, or set JAVA_HOME";
    if !Path::new("/etc/debian_version").is_file() || !is_root() {
        bail!("{HINT} (on Debian and Ubuntu: sudo apt-get install default-jdk-headless)");
    }
    run(Command::new("apt-get").args(["update", "-q"]))?;
    run(Command::new("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends"])
        .arg("default-jdk-headless")
        .env("DEBIAN_FRONTEND", "noninteractive"))?;
    match find() {
        Some(home) => Ok(home),
        None => bail!("{HINT}"),
    }
}

/// The first JDK in `JAVA_HOME`, on the PATH or in the usual folder.
fn find() -> Option<PathBuf> {
    let named = env::var_os("JAVA_HOME").map(PathBuf::from);
    let on_path = on_path("javac")
        .and_then(|javac| fs::canonicalize(javac).ok())
        .and_then(|javac| Some(javac.parent()?.parent()?.to_owned()));
    let mut usual: Vec<PathBuf> = fs::read_dir("/usr/lib/jvm")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    usual.sort();
    named.into_iter().chain(on_path).chain(usual).find(|home| {
        ["java", "javac", "jcmd"]
            .iter()
            .all(|tool| home.join("bin").join(tool).is_file())
    })
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
