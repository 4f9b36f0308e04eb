//! Writes the list of the libraries in a program (SBOM, software bill of materials) in CycloneDX's JSON format.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::committed;
use super::licences::manifests;
use crate::cross::Target;
use heapdiff_lab::{run, tools};

const PLUGIN: &str = "cargo-cyclonedx";
const VERSION: &str = "0.5.9";

/// Checks that the cargo plugin for SBOMs is installed. Call this before the builds, because they take long.
pub(super) fn check_plugin() -> Result<()> {
    ensure!(
        tools::on_path(PLUGIN).is_some(),
        "{PLUGIN} is missing; run `cargo install --locked {PLUGIN}@{VERSION}`"
    );
    Ok(())
}

/// Writes the list of the libraries in the program for a target.
pub(super) fn write(target: Target, file: &Path) -> Result<()> {
    // The plugin writes a file beside the manifest of each crate. Only the file of the program is used.
    let name = format!("sbom-of-{}", target.triple());
    run::run(
        Command::new(PLUGIN)
            .current_dir(run::root())
            .args(["cyclonedx", "--manifest-path", "cli/Cargo.toml"])
            .args(["--format", "json", "--spec-version", "1.5"])
            .args(["--no-build-deps", "--target", target.triple()])
            .args(["--override-filename", &name])
            .env("SOURCE_DATE_EPOCH", committed()?.to_string()),
    )?;
    let name = format!("{name}.json");
    let list = fs::read_to_string(run::root().join("cli").join(&name));
    let list = list.with_context(|| format!("{PLUGIN} wrote no list"));
    for manifest in manifests()? {
        // Remove the file that the plugin wrote. Crates that the program does not use have no such file.
        let _ = fs::remove_file(manifest.with_file_name(&name));
    }
    // If a fixed time is set, the plugin writes no random numbers. Then only the path of this checkout must be
    // replaced.
    let root = format!("path+file://{}/", run::root().display());
    let text = list?.replace(&root, "path+file:///heapdiff/");
    fs::write(file, text).with_context(|| file.display().to_string())
}
