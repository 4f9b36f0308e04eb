//! Fetches async-profiler's library, which is packed in a Java archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::{java, run};

const VERSION: &str = "4.0";

/// Returns the library. The first call fetches it with Maven and unpacks it with a JDK's `jar`.
pub fn ensure(scratch: &Path) -> Result<PathBuf> {
    let platform = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        (os, arch) => bail!("async-profiler has no library for {os} on {arch}"),
    };
    let folder = scratch.join(format!("async-profiler-{VERSION}"));
    let inside = format!("{platform}/libasyncProfiler.so");
    let library = folder.join(&inside);
    if library.is_file() {
        return Ok(library);
    }
    let artifact = format!("tools.profiler:async-profiler:{VERSION}:jar");
    java::archive(&artifact, &folder)?;
    let jdk = java::ensure_jdk()?;
    run::run(
        Command::new(jdk.home().join("bin/jar"))
            .arg("xf")
            .arg(folder.join(format!("async-profiler-{VERSION}.jar")))
            .arg(&inside)
            .current_dir(&folder),
    )?;
    ensure!(library.is_file(), "{inside} is not in {artifact}");
    Ok(library)
}
