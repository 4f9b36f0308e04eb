//! Programs that tests and tasks need beside cargo and a JDK: found, or installed where that is possible.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::run::run;

/// A browser that speaks the DevTools protocol.
pub(crate) fn ensure_chromium() -> Result<PathBuf> {
    ensure(
        &["chromium", "chromium-browser", "google-chrome"],
        "chromium",
    )
}

/// What reads the formats that reports are written in: `go tool pprof`, and `xmllint` with schemas.
pub(crate) fn ensure_readers() -> Result<()> {
    ensure(&["go"], "golang-go")?;
    ensure(&["xmllint"], "libxml2-utils")?;
    Ok(())
}

/// A Python with pyarrow, in an environment of its own below the target folder.
pub(crate) fn ensure_pyarrow() -> Result<PathBuf> {
    let folder = crate::run::target_dir().join("pyarrow");
    let python = folder.join("bin/python");
    let works = || {
        let check = Command::new(&python)
            .args(["-c", "import pyarrow.parquet"])
            .output();
        check.is_ok_and(|done| done.status.success())
    };
    if !works() {
        let system = ensure(&["python3"], "python3-venv")?;
        run(Command::new(system).args(["-m", "venv"]).arg(&folder))?;
        run(Command::new(&python).args(["-m", "pip", "install", "-q", "pyarrow"]))?;
    }
    Ok(python)
}

/// The first of these programs that is on the path; else a package is installed that has one.
fn ensure(programs: &[&str], package: &str) -> Result<PathBuf> {
    if let Some(found) = programs.iter().find_map(|p| on_path(p)) {
        return Ok(found);
    }
    let wanted = programs.join(" or ");
    if !Path::new("/etc/debian_version").is_file() || !is_root() {
        bail!("no {wanted} found (on Debian: sudo apt-get install {package})");
    }
    run(Command::new("apt-get").args(["update", "-q"]))?;
    run(Command::new("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends", package])
        .env("DEBIAN_FRONTEND", "noninteractive"))?;
    match programs.iter().find_map(|p| on_path(p)) {
        Some(found) => Ok(found),
        None => bail!("{package} is installed, and no {wanted} is there"),
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Whether packages may be installed.
pub(crate) fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
