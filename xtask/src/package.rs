//! Checks that the crates can be published: the metadata that a registry requires is there, and each crate can be
//! packed.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::tryout::output;
use heapdiff_lab::run;

/// Options of `cargo xtask package`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Also build each crate from its package (takes some minutes)
    #[arg(long)]
    pub(crate) verify: bool,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate of this workspace.
#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
    /// The registries to which the crate may be published. If the list is empty, the crate must not be published. If
    /// there is no list, any registry is allowed.
    publish: Option<Vec<String>>,
}

/// Packs every crate that may be published, that is, whose `publish` list is not empty.
pub(crate) fn package(options: &Options) -> Result<()> {
    let metadata =
        output(run::cargo().args(["metadata", "--no-deps", "--format-version", "1", "--locked"]))?;
    let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata")?;
    let mut pack = run::cargo();
    // Pack the files in the folders of the crates even if they are not committed.
    pack.args([
        "package",
        "--workspace",
        "--locked",
        "--allow-dirty",
        "--quiet",
    ]);
    for package in &metadata.packages {
        if package.publish.as_ref().is_some_and(Vec::is_empty) {
            pack.args(["--exclude", &package.name]);
        } else {
            check(package)?;
        }
    }
    if !options.verify {
        pack.arg("--no-verify");
    }
    run::run(&mut pack)
}

/// Fails if a crate lacks metadata that a registry requires or shows.
fn check(package: &Package) -> Result<()> {
    let name = &package.name;
    for (what, value) in [
        ("description", &package.description),
        ("license", &package.license),
        ("repository", &package.repository),
    ] {
        ensure!(value.is_some(), "{name} has no {what}");
    }
    ensure!(
        matches!(package.keywords.len(), 1..=5) && package.keywords.iter().all(|k| k.len() <= 20),
        "{name}: needs one to five keywords of at most 20 letters"
    );
    ensure!(
        matches!(package.categories.len(), 1..=5),
        "{name}: needs one to five categories"
    );
    Ok(())
}
