//! Finds programs that tests and tasks need in addition to cargo and a JDK. If a program is missing, installs it if
//! possible.

use std::env;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use crate::run::run;

/// Returns a browser that supports the DevTools protocol.
pub fn ensure_chromium() -> Result<PathBuf> {
    ensure(
        &["chromium", "chromium-browser", "google-chrome"],
        "chromium",
    )
}

/// Ensures that the programs that read our report formats are installed: `go tool pprof`, `xmllint` with schemas, and
/// `jq`.
pub fn ensure_readers() -> Result<()> {
    ensure(&["go"], "golang-go")?;
    ensure(&["xmllint"], "libxml2-utils")?;
    ensure(&["jq"], "jq")?;
    Ok(())
}

/// Ensures that Maven is installed. It fetches libraries and builds Java projects.
pub fn ensure_maven() -> Result<()> {
    ensure(&["mvn"], "maven")?;
    Ok(())
}

/// Ensures that Gradle is installed. It builds Java projects, as Maven does.
pub fn ensure_gradle() -> Result<()> {
    ensure(&["gradle"], "gradle")?;
    Ok(())
}

/// Returns a Python with these packages, in a virtual environment in `folder`. Creates the environment if it does not
/// exist.
pub fn ensure_python(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = ensure(&["python3"], "python3")?;
    let inside = folder.join("bin/python");
    if !inside.is_file() {
        let make = || {
            run(Command::new(&python)
                .args(["-m", "venv", "--clear"])
                .arg(folder))
        };
        // Debian has the `venv` module in a separate package.
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

/// Returns the first of these programs that is on the `PATH`. If none is there, installs the package.
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

/// True if packages are installed without asking the user: with `--yes`, or if `CI` is set, as on CI servers.
static CONSENT: AtomicBool = AtomicBool::new(false);

/// Sets `CONSENT`. `given` is true if the command line has `--yes`.
pub fn consent(given: bool) {
    let on_server = env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    CONSENT.store(given || on_server, Ordering::Relaxed);
}

/// Installs a package of the distribution, if the user has the rights and agrees.
pub fn install(package: &str) -> Result<()> {
    let by_hand = format!("{package} is missing; run `sudo apt-get install {package}`");
    if !Path::new("/etc/debian_version").is_file() || !is_root() {
        bail!("{by_hand} (on Debian and Ubuntu)");
    }
    if !CONSENT.load(Ordering::Relaxed) && !ask_to_install(package)? {
        bail!("{by_hand} (or run this task with --yes)");
    }
    run(Command::new("apt-get").args(["update", "-q"]))?;
    run(Command::new("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends", package])
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Downloads packages of the distribution for a processor architecture, such as `arm64`, and unpacks them into a
/// folder. Installs nothing, and changes no setting of apt-get.
pub fn download(folder: &Path, packages: &[&str], architecture: &str) -> Result<()> {
    let apt = ensure(&["apt-get"], "apt")?;
    let scratch = std::path::absolute(folder.join("apt"))?;
    for below in ["state/lists/partial", "cache/archives/partial", "packages"] {
        fs::create_dir_all(scratch.join(below))?;
    }
    let get = |task: &[&str]| {
        let mut get = Command::new(&apt);
        get.current_dir(scratch.join("packages")).arg("--quiet");
        for option in [
            format!("APT::Architecture={architecture}"),
            format!("APT::Architectures={architecture}"),
            format!("Dir::State={}", scratch.join("state").display()),
            format!("Dir::Cache={}", scratch.join("cache").display()),
            "Dir::State::status=/dev/null".to_owned(),
            // apt-get normally downloads as the user `_apt`, which may have no access to the folder.
            "APT::Sandbox::User=root".to_owned(),
        ] {
            get.args(["-o", &option]);
        }
        run(get.args(task))
    };
    get(&["update"])?;
    get(&[&["download"], packages].concat())?;
    for package in fs::read_dir(scratch.join("packages"))? {
        let package = package?.path();
        run(Command::new("dpkg-deb").arg("-x").arg(package).arg(folder))?;
    }
    Ok(fs::remove_dir_all(scratch)?)
}

/// Asks the user. Without a terminal the answer is no.
fn ask_to_install(package: &str) -> Result<bool> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Ok(false);
    }
    print!("{package} is missing. Install it now, as root, with apt-get? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Returns a program on the `PATH`. If the program is missing, the error names the package to install.
pub fn find(program: &str, package: &str) -> Result<PathBuf> {
    on_path(program)
        .with_context(|| format!("{program} is missing; run `apt-get install {package}`"))
}

/// Returns the file of a program that is on the `PATH`.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// True if the user may install packages.
pub(crate) fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
