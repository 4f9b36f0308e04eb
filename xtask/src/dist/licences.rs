//! Writes one text with the licences of all crates that are linked into the program and the agent. Most licences
//! require that their text accompanies the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::tryout::output;
use heapdiff_lab::run;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    /// The registry or repository of the crate. `None` for crates of this workspace.
    source: Option<String>,
    manifest_path: PathBuf,
}

/// Returns a list of all crates with their versions, licences and sources. After the list, each licence text appears
/// once, with the crates that it applies to.
pub(super) fn text() -> Result<String> {
    let linked = linked()?;
    let metadata = metadata()?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata.packages {
        let name = format!("{} {}", package.name, package.version);
        if package.source.is_none() || !linked.contains(&name) {
            continue;
        }
        let licence = package.license.as_deref().unwrap_or("see its text");
        let source = package.repository.as_deref().unwrap_or("https://crates.io");
        writeln!(list, "{name}: {licence}; {source}")?;
        for text in texts_in(package.manifest_path.parent().context("a folder")?)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    ensure!(!texts.is_empty(), "found no licences");
    // Add the licence of uPlot, which draws the charts of the live view.
    let uplot = texts_in(&run::root().join("crates/ui/assets/uplot"))?;
    ensure!(!uplot.is_empty(), "the licence of uPlot was not found");
    for text in uplot {
        texts.entry(text).or_default().push("uPlot".to_owned());
    }
    let mut whole = format!(
        "heapdiff is made with these crates, unchanged, under these licences; their sources are on crates.io.\n\
         SQLite, which is in the public domain, is part of libsqlite3-sys.\n\n{list}"
    );
    for (text, names) in texts {
        let line = "-".repeat(80);
        write!(
            whole,
            "\n{line}\n{}\n{line}\n\n{}\n",
            names.join(", "),
            text.trim_end()
        )?;
    }
    Ok(whole)
}

fn metadata() -> Result<Metadata> {
    let text = output(run::cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&text).context("cargo metadata")
}

/// Returns the paths of the manifests of this workspace.
pub(super) fn manifests() -> Result<Vec<PathBuf>> {
    let packages = metadata()?.packages.into_iter();
    let ours = packages.filter(|package| package.source.is_none());
    Ok(ours.map(|package| package.manifest_path).collect())
}

/// Returns names and versions of the crates that are linked, without build dependencies.
fn linked() -> Result<BTreeSet<String>> {
    let tree = output(run::cargo().args([
        "tree",
        "--locked",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--edges",
        "normal,no-proc-macro",
        "--package",
        "heapdiff",
        "--package",
        "heapdiff-agent",
    ]))?;
    let names = tree.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        Some(format!("{name} {}", rest.split_whitespace().next()?))
    });
    Ok(names.collect())
}

/// Returns the licence texts beside a crate's manifest.
fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"]
            .iter()
            .any(|begin| name.starts_with(begin));
        if is_licence && path.is_file() {
            found.push(String::from_utf8_lossy(&fs::read(&path)?).replace('\r', ""));
        }
    }
    found.sort();
    Ok(found)
}
