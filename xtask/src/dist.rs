//! `cargo xtask dist`: builds the files that users download, for systems with glibc 2.17 or later, and tests them.

mod archive;
mod glibc;
mod licences;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::archive::Tree;
use crate::install;
use crate::tryout::{self, output, size};
use heapdiff_lab::run::{self, DIST};
use heapdiff_lab::tools;

/// The oldest glibc that the program runs with. It is the glibc of RHEL 7. All supported systems have a later one.
pub(crate) const GLIBC: (u32, u32) = (2, 17);
/// Two Python packages: the cargo plugin that replaces the linker, and the linker itself. The linker has the symbols of
/// the oldest glibc.
pub(crate) const LINKER: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];

/// Options of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder for the files [default: dist, in the target folder]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Builds and packs the files, and tests the packed files.
pub(crate) fn dist(options: &Options) -> Result<()> {
    let folder = match &options.output {
        Some(folder) => std::path::absolute(folder)?,
        None => std::path::absolute(run::target_dir())?.join("dist-files"),
    };
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    println!(
        "Building heapdiff and its agent with full optimisation; the first build takes some minutes."
    );
    let (program, agent) = build()?;
    for file in [&program, &agent] {
        glibc::check(file, GLIBC)?;
    }
    let version = env!("CARGO_PKG_VERSION");
    let scratch = tempfile::tempdir()?;
    let tree = Tree::lay_out(&scratch.path().join("tree"), &program, &agent)?;
    let tarball = tree.tarball(&folder, version)?;
    let package = tree.deb(&folder, version)?;
    for (what, file) in [
        ("program", &program),
        ("agent", &agent),
        ("tar.gz", &tarball),
        (".deb", &package),
    ] {
        println!("{:>12} bytes  {what}", size(file)?);
    }
    let unpacked = scratch.path().join("unpacked");
    try_out(&archive::unpack_tarball(&tarball, &unpacked.join("tar"))?.join("bin/heapdiff"))?;
    try_out(&archive::unpack_deb(&package, &unpacked.join("deb"))?.join("usr/bin/heapdiff"))?;
    // Tests the program alone, without the library beside it.
    let alone = scratch.path().join("heapdiff");
    fs::copy(&program, &alone)?;
    try_out(&alone)?;
    println!("{}\n{}", tarball.display(), package.display());
    Ok(())
}

/// Builds the agent, and then the program with the embedded agent, both linked to the symbols of the oldest glibc.
fn build() -> Result<(PathBuf, PathBuf)> {
    let target = match ARCH {
        "x86_64" | "aarch64" => format!("{ARCH}-unknown-linux-gnu"),
        other => bail!("packages can be built only on x86_64 and aarch64; this machine is {other}"),
    };
    let folder = run::target_dir().join("zig");
    let python = tools::ensure_python(&folder, &LINKER)?;
    let bin = python.parent().context("a folder")?;
    let mut path = vec![std::path::absolute(bin)?];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let path = std::env::join_paths(path)?;
    let (major, minor) = GLIBC;
    let for_target = ["--target".to_owned(), format!("{target}.{major}.{minor}")];
    let zigbuild = || {
        let mut command = Command::new(bin.join("cargo-zigbuild"));
        command.current_dir(run::root()).env("PATH", &path);
        command
    };
    run::run(run::agent_alone(&mut zigbuild(), DIST).args(&for_target))?;
    let built = run::target_dir().join(target).join(DIST);
    let agent = built.join(run::AGENT);
    let carried = install::compressed(&agent)?;
    run::run(
        zigbuild()
            .args([
                "build",
                "--profile",
                DIST,
                "--locked",
                "--package",
                "heapdiff",
            ])
            .args(&for_target)
            .env(install::EMBED, carried),
    )?;
    Ok((built.join("heapdiff"), agent))
}

fn try_out(program: &Path) -> Result<()> {
    let home = tempfile::tempdir()?;
    let version = output(tryout::alone(program, home.path()).arg("--version"))?;
    println!(
        "{} --version prints {}",
        program.display(),
        version.trim_end()
    );
    tryout::compare(program)?;
    tryout::attach(program)
}
