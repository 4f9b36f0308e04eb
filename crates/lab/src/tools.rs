//! Programs that tests and tasks need beside cargo and a JDK: found, or installed where that is possible.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use crate::run::run;

/// A browser that speaks the DevTools protocol.
pub fn ensure_chromium() -> Result<PathBuf> {
    ensure(
        &["chromium", "chromium-browser", "google-chrome"],
        "chromium",
    )
}

/// What reads the formats that reports are written in: `go tool pprof`, `xmllint` with schemas, and `jq`.
pub fn ensure_readers() -> Result<()> {
    ensure(&["go"], "golang-go")?;
    ensure(&["xmllint"], "libxml2-utils")?;
    ensure(&["jq"], "jq")?;
    Ok(())
}

/// Maven, which fetches libraries and builds Java projects.
pub fn ensure_maven() -> Result<()> {
    ensure(&["mvn"], "maven")?;
    Ok(())
}

/// Gradle, which builds Java projects too.
pub fn ensure_gradle() -> Result<()> {
    ensure(&["gradle"], "gradle")?;
    Ok(())
}

/// A Python with these packages, in an environment of its own in `folder`, made there if it is not yet.
pub fn ensure_python(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = ensure(&["python3"], "python3")?;
    let inside = folder.join("bin/python");
    if !inside.is_file() {
        let make = || {
            run(Command::new(&python)
                .args(["-m", "venv", "--clear"])
                .arg(folder))
        };
        // Debian keeps what this needs in a package of its own.
        make().or_else(|_| install("python3-venv").and_then(|()| make()))?;
    }
    run(Command::new(&inside)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(packages))?;
    Ok(inside)
}

/// The first of these programs that is on the path; else a package is installed that has one.
fn ensure(programs: &[&str], package: &str) -> Result<PathBuf> {
    if let Some(found) = programs.iter().find_map(|p| on_path(p)) {
        return Ok(found);
    }
    install(package).with_context(|| format!("no {} found", programs.join(" or ")))?;
    match programs.iter().find_map(|p| on_path(p)) {
        Some(found) => Ok(found),
        None => bail!(
            "{package} is installed, but {} is missing",
            programs.join(" or ")
        ),
    }
}

/// Whether packages are installed without a question: `--yes`, or `CI` as servers set it.
static CONSENT: AtomicBool = AtomicBool::new(false);

/// Notes what was said on the command line.
pub fn consent(given: bool) {
    let on_server = env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    CONSENT.store(given || on_server, Ordering::Relaxed);
}

/// Installs one of the distribution's packages, if whoever runs this may and wants that.
pub fn install(package: &str) -> Result<()> {
    let by_hand = format!("{package} is missing; run `sudo apt-get install {package}`");
    if !Path::new("/etc/debian_version").is_file() || !is_root() {
        bail!("{by_hand} (on Debian and Ubuntu)");
    }
    if !CONSENT.load(Ordering::Relaxed) && !agrees(package)? {
        bail!("{by_hand} (or run this task with --yes)");
    }
    run(Command::new("apt-get").args(["update", "-q"]))?;
    run(Command::new("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends", package])
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Asks; nobody is there to answer without a terminal.
fn agrees(package: &str) -> Result<bool> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Ok(false);
    }
    print!("{package} is missing. Install it now, as root, with apt-get? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Whether packages may be installed.
fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
