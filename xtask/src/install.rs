//! `cargo xtask install`: installs one program. On Linux it has the agent embedded, so that `heapdiff attach` works from
//! any folder.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

use heapdiff_lab::run::{self, DIST};

/// The environment variable with which the build script of the program finds the agent.
pub(crate) const EMBED: &str = "HEAPDIFF_EMBED_AGENT";

/// Options of `cargo xtask install`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder whose `bin` receives the program [default: the folder of `cargo install`, ~/.cargo]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Returns the variables with which the build script of the program finds an agent for each C library.
pub(crate) fn embedded(glibc: &Path, musl: &Path) -> Result<[(&'static str, PathBuf); 2]> {
    Ok([
        ("HEAPDIFF_EMBED_AGENT_GLIBC", compressed(glibc)?),
        ("HEAPDIFF_EMBED_AGENT_MUSL", compressed(musl)?),
    ])
}

/// Builds the agent, and lets cargo build and install the program with the agent embedded. Only Linux has an agent.
pub(crate) fn install(options: &Options) -> Result<()> {
    println!("Building heapdiff with full optimisation; the first build takes some minutes.");
    let mut install = run::cargo();
    install.args(["install", "--path", "cli", "--profile", DIST, "--locked"]);
    if cfg!(target_os = "linux") {
        run::run(run::agent_alone(&mut run::cargo(), DIST))?;
        let carried = compressed(&run::target_dir().join(DIST).join(run::AGENT))?;
        install.env(EMBED, carried);
    }
    if let Some(root) = &options.root {
        install.arg("--root").arg(std::path::absolute(root)?);
    }
    run::run(&mut install)
}

/// Compresses the library into a file beside it, which the program embeds. Writes the file only if its content changes,
/// so that the program is not rebuilt needlessly.
pub(crate) fn compressed(library: &Path) -> Result<PathBuf> {
    let content =
        fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(&content)?;
    let packed = encoder.finish()?;
    let mut path = std::path::absolute(library)?.into_os_string();
    path.push(".gz");
    let path = PathBuf::from(path);
    if fs::read(&path).ok().as_ref() != Some(&packed) {
        fs::write(&path, packed).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}

/// For CI: checks that a program with the embedded agent, alone in a folder, can attach to a JVM. The program is built
/// with the profile of the tests.
pub(crate) fn smoke() -> Result<()> {
    let built = run::Products::build_test_profile()?;
    let carried = compressed(&built.agent())?;
    let all = ["--workspace", "--bins", "--lib", "--examples"];
    run::run(
        run::cargo()
            .args(["build", "--release", "--locked"])
            .args(all)
            .env(EMBED, carried),
    )?;
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("heapdiff");
    fs::copy(built.heapdiff(), &program)?;
    crate::tryout::attach(&program)
}
