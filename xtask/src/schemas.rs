//! The schemas of the JSON reports in `docs/json`, generated from the structs of `heapdiff-model`.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};

use heapdiff_lab::run;

/// Options of `cargo xtask schemas`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Write nothing, and fail if a file is not up to date
    #[arg(long)]
    pub(crate) check: bool,
}

/// The end of a schema's file name.
const SUFFIX: &str = ".schema.json";

/// Writes the schema of each report, or checks that the files are up to date.
pub(crate) fn schemas(options: &Options) -> Result<()> {
    let folder = run::root().join("docs/json");
    let mut stale = Vec::new();
    let mut names = BTreeSet::new();
    for (name, schema) in heapdiff_model::schemas::all() {
        let name = format!("{name}{SUFFIX}");
        let path = folder.join(&name);
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        if fs::read_to_string(&path).is_ok_and(|written| written == text) {
            names.insert(name);
            continue;
        }
        if !options.check {
            fs::write(&path, text).with_context(|| path.display().to_string())?;
            println!("{}", path.display());
        }
        stale.push(name.clone());
        names.insert(name);
    }
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !names.contains(&name) {
            bail!("no report has the schema docs/json/{name}: delete this file");
        }
    }
    if options.check && !stale.is_empty() {
        let stale = stale.join(", ");
        bail!("not up to date in docs/json: {stale}; run `cargo xtask schemas`");
    }
    Ok(())
}
