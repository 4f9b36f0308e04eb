//! Runs commands and knows where the workspace is.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs this task.
pub fn cargo() -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Runs a command to its end, its output on the terminal.
pub fn run(command: &mut Command) -> Result<()> {
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
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// What was built; paths are absolute, as the JVM wants them.
#[derive(Debug)]
pub struct Products {
    folder: PathBuf,
}

impl Products {
    /// Built as they are installed: what is measured is that.
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

    /// Built as the tests are; after them there is nothing left to build. The whole workspace with its examples: for
    /// a part of it cargo chooses other features, and builds anew what others share.
    pub fn as_tested() -> Result<Self> {
        // With the tests, whose features are those of all that was built for them.
        let all = ["--workspace", "--lib", "--bins", "--examples", "--tests"];
        run(cargo().args(["build", "--release", "--locked"]).args(all))?;
        Self::of("release")
    }

    fn of(profile: &str) -> Result<Self> {
        let folder = std::path::absolute(target_dir().join(profile))?;
        Ok(Self { folder })
    }

    /// As tested where figures only have to make sense.
    pub fn for_figures(smoke: bool) -> Result<Self> {
        if smoke {
            Self::as_tested()
        } else {
            Self::build()
        }
    }

    /// The program.
    pub fn heapdiff(&self) -> PathBuf {
        self.program("heapdiff")
    }

    /// The agent's library.
    pub fn agent(&self) -> PathBuf {
        self.folder.join(AGENT)
    }

    /// An example of the library `hprof`.
    pub fn example(&self, name: &str) -> PathBuf {
        self.program(&format!("examples/{name}"))
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder
            .join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }
}

/// What is judged or measured.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Tested {
    /// The heapdiff to run; built, with the agent, if not given
    #[arg(long, value_name = "FILE", requires = "agent")]
    heapdiff: Option<PathBuf>,
    /// The agent's library
    #[arg(long, value_name = "FILE", requires = "heapdiff")]
    agent: Option<PathBuf>,
}

impl Tested {
    /// The program and the agent's library, built where they are not given.
    pub fn products(&self, smoke: bool) -> Result<(PathBuf, PathBuf)> {
        if let (Some(heapdiff), Some(agent)) = (&self.heapdiff, &self.agent) {
            // The JVM wants an absolute path.
            return Ok((std::path::absolute(heapdiff)?, std::path::absolute(agent)?));
        }
        let built = Products::for_figures(smoke)?;
        Ok((built.heapdiff(), built.agent()))
    }
}

/// The agent's library.
pub const AGENT: &str = "libheapdiff_agent.so";
/// The profile of what is installed, packed and measured.
pub const DIST: &str = "dist";

/// Builds the agent's library as nothing else than that. Together with the form that tests link to, it could not be
/// optimised across crates, and nothing that it is made of could be shared with the program.
pub fn agent_alone<'c>(cargo: &'c mut Command, profile: &str) -> &'c mut Command {
    cargo
        .args(["rustc", "--profile", profile, "--locked"])
        .args(["--package", "heapdiff-agent", "--lib"])
        .args(["--crate-type", "cdylib"])
}
