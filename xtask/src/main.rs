//! Runs the tasks of this repository. `cargo xtask ci` runs everything that CI runs. Its steps can also be run as
//! single tasks.
#![allow(clippy::print_stdout, reason = "the tasks print to the terminal")]

mod browser;
mod ci;
mod cross;
mod dist;
mod fleet;
mod fuzz;
mod install;
mod junit;
mod known;
mod labels;
mod languages;
mod machines;
mod metrics;
mod package;
mod parquet;
mod pending;
mod schemas;
mod shrunk;
mod tests;
mod tryout;
mod windows;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use heapdiff_lab::{Measurement, tools};

/// Tasks of this repository
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    subcommand_required = true
)]
struct Cli {
    /// Install missing packages of the distribution without asking (as root; the default if CI=true)
    #[arg(long, short, global = true)]
    yes: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install `heapdiff`, one program, with the agent embedded on Linux
    Install(install::Options),
    /// Build the files of a release: archives and Debian packages with program, agent, man pages, completions and
    /// licences, lists of libraries (SBOM) and checksums
    Dist(dist::Options),
    /// Check that the crates can be published to a registry
    Package(package::Options),
    /// Run all checks of CI: format, lints, docs, licences, tests, a smoke run of the benchmark
    Ci(ci::Options),
    /// Run all tests, on a JDK that is found or installed
    Test,
    /// Fuzz with hostile dumps: the seeded harness, then cargo-fuzz if it is installed
    Fuzz(fuzz::Options),
    /// Regenerate the dumps in testdata
    Dumps {
        /// Regenerate only the files `joined*`: dumps, and recordings of the same run that tests combine with them
        #[arg(long)]
        joined: bool,
    },
    /// Recompile the Kotlin and Scala programs in testdata
    Languages,
    /// Compare groups of pending work with programs that use Kotlin's coroutines, Reactor and Netty,
    /// which Maven fetches
    Pending {
        /// Number of runs of each program
        #[arg(long, default_value_t = 10)]
        rounds: u32,
    },
    /// Check that reports name the known leaks of libraries, which Maven fetches
    Known {
        /// Run only the programs whose class contains this text
        only: Option<String>,
    },
    /// Measure the CPU time of a scope of labels, without and with the agent
    Labels {
        /// The agent's library to measure [default: build it]
        #[arg(long, value_name = "FILE")]
        agent: Option<PathBuf>,
    },
    /// Rebuild the program in testdata that ProGuard shortened, with its mapping
    Shrunk,
    /// Write the schemas of the JSON reports in docs/json, or check them
    Schemas(schemas::Options),
    /// Test the HTML report in a headless browser, which is found or installed
    Browser(browser::Options),
    /// Read exported tables with pyarrow, which is found or installed in the target folder
    Parquet,
    /// Read metrics with Prometheus's Python client, which is installed in the target folder
    Metrics,
    /// Test the program on other machines: in a root with musl, in an empty root, and emulated on aarch64
    Machines(machines::Options),
    /// Rank traces of a simulated fleet with a Spark job
    Fleet,
    /// Build the program for Windows and test it with wine
    Windows(windows::Options),
    #[command(flatten)]
    Measure(Measurement),
    /// Test the Java libraries, with their Maven example, or run many assertions in a row
    Java(junit::Options),
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    tools::consent(cli.yes);
    match cli.task {
        Task::Install(options) => install::install(&options),
        Task::Dist(options) => dist::dist(&options),
        Task::Package(options) => package::package(&options),
        Task::Ci(options) => ci::ci(&options),
        Task::Test => tests::test(),
        Task::Fuzz(options) => fuzz::fuzz(&options),
        Task::Dumps { joined } => ci::dumps(joined),
        Task::Languages => languages::languages(),
        Task::Pending { rounds } => pending::pending(rounds),
        Task::Known { only } => known::known(only.as_deref()),
        Task::Labels { agent } => labels::labels(agent),
        Task::Shrunk => shrunk::shrunk(),
        Task::Schemas(options) => schemas::schemas(&options),
        Task::Browser(options) => browser::browser(&options),
        Task::Parquet => parquet::parquet(),
        Task::Metrics => metrics::metrics(),
        Task::Machines(options) => machines::machines(&options),
        Task::Fleet => fleet::fleet(),
        Task::Windows(options) => windows::windows(&options),
        Task::Measure(measurement) => measurement.run(),
        Task::Java(options) => junit::junit(&options),
    }
}
