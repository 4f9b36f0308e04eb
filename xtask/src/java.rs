//! Finds a JDK, or installs one.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};
use testdata::jvm::Jdk;

use crate::run::run;
use crate::tools::is_root;

/// A JDK that can run the scenarios, the oldest there is; installs one from the distribution
/// if there is none and that is possible.
pub(crate) fn ensure_jdk() -> Result<Jdk> {
    const HINT: &str = "no JDK found: install JDK 17 or later, or set JAVA_HOME";
    let find = || Jdk::all_for_scenarios().into_iter().next();
    if let Some(jdk) = find() {
        return Ok(jdk);
    }
    if !Path::new("/etc/debian_version").is_file() || !is_root() {
        bail!("{HINT} (on Debian and Ubuntu: sudo apt-get install default-jdk-headless)");
    }
    run(Command::new("apt-get").args(["update", "-q"]))?;
    run(Command::new("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends"])
        .arg("default-jdk-headless")
        .env("DEBIAN_FRONTEND", "noninteractive"))?;
    match find() {
        Some(jdk) => Ok(jdk),
        None => bail!("{HINT}"),
    }
}

/// The JDKs of these major versions, one of each; all there are where none is asked for.
pub(crate) fn jdks(majors: &[u32]) -> Result<Vec<Jdk>> {
    ensure_jdk()?;
    let mut jdks = Jdk::all_for_scenarios();
    jdks.retain(|jdk| majors.is_empty() || majors.contains(&jdk.major()));
    // Two of one version would be told apart by nothing in a table.
    jdks.dedup_by_key(|jdk| jdk.major());
    ensure!(!jdks.is_empty(), "no such JDK: {majors:?}");
    Ok(jdks)
}
