//! Measurements of heapdiff: how often its reports are right, and what the program and the agent cost. Each is a task
//! of `cargo xtask`; CI runs short forms of four of them.
#![allow(
    clippy::print_stdout,
    reason = "a measurement prints its progress and its tables"
)]

mod accuracy;
mod bench;
mod beside;
mod counting;
mod coverage;
mod forks;
pub mod java;
mod mat;
mod overhead;
mod real;
mod rewrite;
pub mod run;
mod scale;
mod soak;
pub mod tools;

use anyhow::Result;

/// A measurement with its options.
#[derive(Debug, clap::Subcommand)]
pub enum Measurement {
    /// Time and memory beside other tools, on generated or given dumps
    Bench(bench::Options),
    /// A dump of many gigabytes read within a limit of memory
    Scale(scale::Options),
    /// What the agent costs a program, beside other profilers
    Overhead(overhead::Options),
    /// Allocations counted in a JVM with JaCoCo or async-profiler: what is counted, and what is covered
    Beside(beside::Options),
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
    /// Dumps by forked children: thousands of them, their pauses, and who reads them
    Forks(forks::Options),
    /// The agent's stress test, for a long time
    Soak(soak::Options),
}

impl Measurement {
    /// The benchmark on small dumps, as CI runs it.
    pub fn short_bench() -> Self {
        Self::Bench(bench::Options::smoke())
    }

    /// The overhead of a short program, as CI runs it.
    pub fn short_overhead() -> Self {
        Self::Overhead(overhead::Options::smoke())
    }

    /// A few leak programs, as CI runs them.
    pub fn short_accuracy() -> Self {
        Self::Accuracy(accuracy::Options::smoke())
    }

    /// One JVM with sampled stacks, as CI runs it.
    pub fn short_coverage() -> Self {
        Self::Coverage(coverage::Options::smoke())
    }

    /// Measures, and prints or writes the result.
    ///
    /// # Errors
    /// When a program cannot be built or started, or a figure misses its limit.
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Bench(options) => bench::bench(options),
            Self::Scale(options) => scale::scale(options),
            Self::Overhead(options) => overhead::overhead(options),
            Self::Beside(options) => beside::beside(options),
            Self::Accuracy(options) => accuracy::accuracy(options),
            Self::Coverage(options) => coverage::coverage(options),
            Self::Counting(options) => counting::counting(options),
            Self::Real(options) => real::real(options),
            Self::Rewrite(options) => rewrite::rewrite(options),
            Self::Forks(options) => forks::forks(options),
            Self::Soak(options) => soak::soak(options),
        }
    }
}
