//! Runs commands, and finds the workspace and its products.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Returns the root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Returns cargo's target folder.
pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns a command that runs the same cargo as this task.
pub fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Runs a command until it ends, with its output on the terminal.
pub fn run(command: &mut Command) -> Result<()> {
    println!("==> {}", command_text(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", command_text(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", command_text(command));
    }
    Ok(())
}

/// Returns the command line as text for messages.
pub fn command_text(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The programs and libraries that were built. Their paths are absolute, because the JVM requires absolute paths.
#[derive(Debug)]
pub struct Products {
    folder: PathBuf,
}

impl Products {
    /// Builds with the Cargo profile `dist`, which installed programs also have. So measurements apply to them.
    pub fn build() -> Result<Self> {
        run(agent_alone(&mut cargo(), DIST))?;
        let mut program = cargo();
        run(program.args([
            "build",
            "--profile",
            DIST,
            "--package",
            "heapdiff",
            "--locked",
        ]))?;
        Self::of(DIST)
    }

    /// Builds with the profile of the tests, so that nothing is built again if the tests ran before. Builds the whole
    /// workspace with its examples. If only a part is built, cargo selects other features and rebuilds shared crates.
    pub fn build_test_profile() -> Result<Self> {
        // Build the tests too, because cargo then selects the same features as for a test run.
        let all = ["--workspace", "--lib", "--bins", "--examples", "--tests"];
        run(cargo().args(["build", "--release", "--locked"]).args(all))?;
        Self::of("release")
    }

    fn of(profile: &str) -> Result<Self> {
        let folder = std::path::absolute(target_dir().join(profile))?;
        Ok(Self { folder })
    }

    /// Builds with the profile for measurements, or with the profile of the tests if the run is only a smoke test.
    pub fn build_for_measurement(smoke: bool) -> Result<Self> {
        if smoke {
            Self::build_test_profile()
        } else {
            Self::build()
        }
    }

    /// Returns the path of the program.
    pub fn heapdiff(&self) -> PathBuf {
        self.program("heapdiff")
    }

    /// Returns the path of the agent's library.
    pub fn agent(&self) -> PathBuf {
        self.folder.join(AGENT)
    }

    /// Returns the path of an example of the library `hprof`.
    pub fn example(&self, name: &str) -> PathBuf {
        self.program(&format!("examples/{name}"))
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder
            .join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }
}

/// The heapdiff program and the agent library that are tested.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Tested {
    /// The heapdiff to run [default: built, with the agent]
    #[arg(long, value_name = "FILE", requires = "agent")]
    heapdiff: Option<PathBuf>,
    /// The agent's library
    #[arg(long, value_name = "FILE", requires = "heapdiff")]
    agent: Option<PathBuf>,
}

impl Tested {
    /// Returns the program and the agent's library. Builds them if they are not given.
    pub fn build_products(&self, smoke: bool) -> Result<(PathBuf, PathBuf)> {
        if let (Some(heapdiff), Some(agent)) = (&self.heapdiff, &self.agent) {
            // The JVM requires an absolute path.
            return Ok((std::path::absolute(heapdiff)?, std::path::absolute(agent)?));
        }
        let built = Products::build_for_measurement(smoke)?;
        Ok((built.heapdiff(), built.agent()))
    }
}

/// File name of the agent's library.
pub const AGENT: &str = "libheapdiff_agent.so";
/// The Cargo profile for programs that are installed, built for a release, or measured.
pub const DIST: &str = "dist";

/// Builds only the cdylib of the agent, not the Rust library that tests link to. With this library, cargo could not
/// optimise across crates, and the program could not share compiled dependencies.
pub fn agent_alone<'c>(cargo: &'c mut Command, profile: &str) -> &'c mut Command {
    cargo
        .args(["rustc", "--profile", profile, "--locked"])
        .args(["--package", "heapdiff-agent", "--lib"])
        .args(["--crate-type", "cdylib"])
}
