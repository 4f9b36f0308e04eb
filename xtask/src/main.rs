//! The task runner: `cargo xtask ci` is what CI runs, the other tasks are its parts.
#![allow(clippy::print_stdout, reason = "a task runner talks to its terminal")]

mod browser;
mod ci;
mod dist;
mod fleet;
mod fuzz;
mod install;
mod junit;
mod languages;
mod metrics;
mod package;
mod parquet;
mod schemas;
mod shrunk;
mod tryout;

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
    /// Install what is missing from the distribution's packages without asking (as root; also where CI=true)
    #[arg(long, short, global = true)]
    yes: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install `heapdiff`, one program that carries the agent
    Install(install::Options),
    /// A tar.gz and a .deb with program, agent, man pages, completions and licences, for glibc 2.17 and later
    Dist(dist::Options),
    /// Whether the crates are fit for a registry
    Package(package::Options),
    /// Everything CI checks: format, lints, docs, licences, tests, a smoke run of the benchmark
    Ci(ci::Options),
    /// All tests, on a JDK found or installed
    Test,
    /// Hostile dumps for a while: the seeded harness, then cargo-fuzz where it is installed
    Fuzz(fuzz::Options),
    /// Make the kept dumps in testdata anew
    Dumps,
    /// Compile the Kotlin and Scala programs in testdata anew
    Languages,
    /// Make the program in testdata anew that ProGuard shortened, with its mapping
    Shrunk,
    /// Write the schemas of the JSON reports in docs/json, or check them
    Schemas(schemas::Options),
    /// The HTML report in a headless browser, found or installed
    Browser(browser::Options),
    /// Exported tables read by pyarrow, found or installed below the target folder
    Parquet,
    /// Metrics read by Prometheus's Python client, installed below the target folder
    Metrics,
    /// Traces of a made-up fleet, ranked by a Spark job
    Fleet,
    #[command(flatten)]
    Measure(Measurement),
    /// The Java library that fails tests when they leak: its tests and its Maven example, or many assertions in a row
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
        Task::Test => ci::test(),
        Task::Fuzz(options) => fuzz::fuzz(&options),
        Task::Dumps => ci::dumps(),
        Task::Languages => languages::languages(),
        Task::Shrunk => shrunk::shrunk(),
        Task::Schemas(options) => schemas::schemas(&options),
        Task::Browser(options) => browser::browser(&options),
        Task::Parquet => parquet::parquet(),
        Task::Metrics => metrics::metrics(),
        Task::Fleet => fleet::fleet(),
        Task::Measure(measurement) => measurement.run(),
        Task::Java(options) => junit::junit(&options),
    }
}
