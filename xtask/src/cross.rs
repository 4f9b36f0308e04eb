//! Builds the program and its agents for another C library or processor, with zig as the linker.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::dist::{GLIBC, LINKER};
use crate::install::{EMBED, compressed};
use crate::tryout::output;
use heapdiff_lab::run;
use heapdiff_lab::tools;

/// Returns the target with glibc, with the oldest version that the program supports.
pub(crate) fn glibc(arch: &str) -> String {
    let (major, minor) = GLIBC;
    format!("{arch}-unknown-linux-gnu.{major}.{minor}")
}

/// Returns the target with musl.
pub(crate) fn musl(arch: &str) -> String {
    format!("{arch}-unknown-linux-musl")
}

/// Tools that build for other targets.
pub(crate) struct Cross {
    /// The virtual environment with the tools.
    bin: PathBuf,
    path: OsString,
    profile: &'static str,
}

impl Cross {
    /// Finds the tools, or installs them into the target folder.
    pub(crate) fn ensure(profile: &'static str) -> Result<Self> {
        let python = tools::ensure_python(&run::target_dir().join("zig"), &LINKER)?;
        let bin = std::path::absolute(python.parent().context("a folder")?)?;
        let mut path = vec![bin.clone()];
        path.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let path = std::env::join_paths(path)?;
        Ok(Self { bin, path, profile })
    }

    /// Returns the path of Python in the virtual environment.
    pub(crate) fn python(&self) -> PathBuf {
        self.bin.join("python")
    }

    /// Builds the agents for both C libraries. Returns the environment variables with which the program embeds them.
    pub(crate) fn agents(&self, arch: &str) -> Result<Vec<(String, PathBuf)>> {
        let embed = |(c_library, target): (&str, String)| {
            let library = self.agent(&target)?;
            Ok((format!("{EMBED}_{c_library}"), compressed(&library)?))
        };
        let targets = [("GLIBC", glibc(arch)), ("MUSL", musl(arch))];
        targets.into_iter().map(embed).collect()
    }

    /// Builds the agent, and returns its path. `target` may end with a version of glibc.
    pub(crate) fn agent(&self, target: &str) -> Result<PathBuf> {
        let mut cargo = self.cargo();
        let cargo = run::agent_alone(&mut cargo, self.profile);
        dynamic(for_target(cargo, target)?, target);
        run::run(cargo)?;
        Ok(self.folder(target)?.join(run::AGENT))
    }

    /// Builds the program with these agents, and returns its path.
    pub(crate) fn program(&self, target: &str, agents: &[(String, PathBuf)]) -> Result<PathBuf> {
        let mut cargo = self.cargo();
        cargo.args(["build", "--profile", self.profile, "--locked"]);
        cargo.args(["--package", "heapdiff"]);
        cargo.envs(agents.iter().map(|(name, path)| (name, path)));
        run::run(for_target(&mut cargo, target)?)?;
        Ok(self.folder(target)?.join("heapdiff"))
    }

    /// Builds the dynamic library of a package that is not part of this workspace.
    pub(crate) fn library(&self, package: &Path, target: &str, name: &str) -> Result<PathBuf> {
        let mut cargo = self.cargo();
        cargo.args(["build", "--profile", "release"]);
        cargo.current_dir(package);
        cargo.arg("--target-dir").arg(target_dir()?);
        dynamic(for_target(&mut cargo, target)?, target);
        run::run(&mut cargo)?;
        Ok(target_dir()?
            .join(triple(target))
            .join("release")
            .join(name))
    }

    /// Returns the folder in which cargo puts the products.
    fn folder(&self, target: &str) -> Result<PathBuf> {
        Ok(target_dir()?.join(triple(target)).join(self.profile))
    }

    fn cargo(&self) -> Command {
        let mut command = Command::new(self.bin.join("cargo-zigbuild"));
        command.current_dir(run::root()).env("PATH", &self.path);
        command
    }
}

fn target_dir() -> Result<PathBuf> {
    Ok(std::path::absolute(run::target_dir())?)
}

/// Returns a target without the version of glibc.
fn triple(target: &str) -> &str {
    target.split('.').next().unwrap_or(target)
}

/// Programs for musl are linked statically. A library that a JVM loads must use the C library of the JVM.
fn dynamic(cargo: &mut Command, target: &str) {
    if target.ends_with("musl") {
        let name = triple(target).to_uppercase().replace('-', "_");
        let name = format!("CARGO_TARGET_{name}_RUSTFLAGS");
        cargo.env(name, "-Ctarget-feature=-crt-static");
    }
}

/// Adds the target, and how to get its standard library: the installed one, or one that is built from the installed
/// source.
fn for_target<'c>(cargo: &'c mut Command, target: &str) -> Result<&'c mut Command> {
    let rustc =
        |what| output(Command::new("rustc").args(["--print", what, "--target", triple(target)]));
    let has_std = Path::new(rustc("target-libdir")?.trim_end()).is_dir();
    if !has_std {
        let source = Path::new(rustc("sysroot")?.trim_end()).join("lib/rustlib/src/rust/library");
        ensure!(
            source.is_dir(),
            "the standard library for {0} is missing; run `rustup target add {0}`",
            triple(target)
        );
        cargo.arg("-Zbuild-std=std,panic_abort");
        cargo.env("RUSTC_BOOTSTRAP", "1");
    }
    Ok(cargo.args(["--target", target]))
}
