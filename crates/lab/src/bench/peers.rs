//! The other tools of the comparison, and their installation.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::run;

/// A tool to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Prints a class histogram only.
    Slurp,
    /// Prints a class histogram, computes dominators, and writes reports.
    Analyzer,
}

/// An installed tool.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) kind: Kind,
    /// Path of the program.
    pub(super) program: PathBuf,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Slurp, Self::Analyzer];

    /// Returns the name of the tool's cargo package, which is also the name of its program.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slurp => "hprof-slurp",
            Self::Analyzer => "hprof-analyzer",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Slurp => "0.10.0",
            Self::Analyzer => "0.3.2",
        }
    }
}

fn installed_in() -> PathBuf {
    run::root().join("target/peers")
}

/// Returns the tools that are already installed in the folder `given`, or in the default folder.
pub(super) fn present(given: Option<&Path>) -> Vec<Peer> {
    let folder = given.map_or_else(|| installed_in().join("bin"), Path::to_owned);
    let at = |kind: Kind| folder.join(format!("{}{EXE_SUFFIX}", kind.name()));
    Kind::ALL
        .into_iter()
        .map(|kind| Peer {
            kind,
            program: at(kind),
        })
        .filter(|peer| peer.program.is_file())
        .collect()
}

/// Returns all tools. Missing tools are installed unless a folder was given.
pub(super) fn ensure(given: Option<&Path>) -> Result<Vec<Peer>> {
    let here = present(given);
    if given.is_some() || here.len() == Kind::ALL.len() {
        return Ok(here);
    }
    for kind in Kind::ALL {
        if here.iter().any(|peer| peer.kind == kind) {
            continue;
        }
        let package = format!("{}@{}", kind.name(), kind.version());
        let mut install = run::cargo();
        install.args(["install", "--locked", "--root"]);
        run::run(install.arg(installed_in()).arg(package))?;
    }
    Ok(present(None))
}
