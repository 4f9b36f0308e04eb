//! The task runner: `cargo xtask ci` is what CI runs, the other tasks are its parts.
#![allow(clippy::print_stdout, reason = "a task runner talks to its terminal")]

mod accuracy;
mod bench;
mod beside;
mod browser;
mod ci;
mod counting;
mod coverage;
mod dist;
mod fleet;
mod forks;
mod fuzz;
mod install;
mod java;
mod junit;
mod languages;
mod mat;
mod metrics;
mod overhead;
mod package;
mod parquet;
mod real;
mod rewrite;
mod run;
mod scale;
mod schemas;
mod shrunk;
mod soak;
mod tools;
mod tryout;

use clap::{Parser, Subcommand};

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
    /// Time and memory beside other tools, on generated or given dumps
    Bench(bench::Options),
    /// Write the schemas of the JSON reports in docs/json, or check them
    Schemas(schemas::Options),
    /// A dump of many gigabytes read within a limit of memory
    Scale(scale::Options),
    /// What the agent costs a program, beside other profilers
    Overhead(overhead::Options),
    /// Allocations counted in a JVM with JaCoCo or async-profiler: what is counted, and what is covered
    Beside(beside::Options),
    /// The HTML report in a headless browser, found or installed
    Browser(browser::Options),
    /// Exported tables read by pyarrow, found or installed below the target folder
    Parquet,
    /// Metrics read by Prometheus's Python client, installed below the target folder
    Metrics,
    /// How often reports are right: leak scenarios, fixed twins and controls
    Accuracy(accuracy::Options),
    /// How often the intervals of stacks cover the truth, on each JDK and collector
    Coverage(coverage::Options),
    /// Counted allocations beside the program's own, on each JVM, collector and compiler
    Counting(counting::Options),
    /// Published programs that are made to leak, and what the reports on them say
    Real(real::Options),
    /// Classes with a call before each allocation: published jars, the JDK's image and generated methods, verified and compared
    Rewrite(rewrite::Options),
    /// Traces of a made-up fleet, ranked by a Spark job
    Fleet,
    /// Dumps by forked children: thousands of them, their pauses, and who reads them
    Forks(forks::Options),
    /// The Java library that fails tests when they leak: its tests and its Maven example, or many assertions in a row
    Java(junit::Options),
    /// The agent's stress test, for a long time
    Soak(soak::Options),
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
        Task::Bench(options) => bench::bench(&options),
        Task::Schemas(options) => schemas::schemas(&options),
        Task::Scale(options) => scale::scale(&options),
        Task::Overhead(options) => overhead::overhead(&options),
        Task::Beside(options) => beside::beside(&options),
        Task::Browser(options) => browser::browser(&options),
        Task::Parquet => parquet::parquet(),
        Task::Metrics => metrics::metrics(),
        Task::Accuracy(options) => accuracy::accuracy(&options),
        Task::Coverage(options) => coverage::coverage(&options),
        Task::Counting(options) => counting::counting(&options),
        Task::Real(options) => real::real(&options),
        Task::Rewrite(options) => rewrite::rewrite(&options),
        Task::Fleet => fleet::fleet(),
        Task::Forks(options) => forks::forks(&options),
        Task::Java(options) => junit::junit(&options),
        Task::Soak(options) => soak::soak(&options),
    }
}
