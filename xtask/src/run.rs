//! Runs commands and knows where the workspace is.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Runs a command to its end, its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("==> {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// The command line, for people.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Builds the program and the agent's library; where they are, absolute as the JVM wants it.
pub(crate) fn build_products() -> Result<(PathBuf, PathBuf)> {
    let packages = ["--package", "heapdiff", "--package", "heapdiff-agent"];
    run(cargo()
        .args(["build", "--release", "--locked"])
        .args(packages))?;
    let folder = std::path::absolute(target_dir().join("release"))?;
    let program = format!("heapdiff{}", env::consts::EXE_SUFFIX);
    Ok((folder.join(program), folder.join("libheapdiff_agent.so")))
}
