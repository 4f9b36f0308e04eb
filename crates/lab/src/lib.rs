//! Measures heapdiff: how often its reports are right, and what the program and the agent cost. Each measurement is a
//! task of `cargo xtask`. CI runs short forms of five measurements.
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
mod guard;
pub mod java;
mod jdks;
mod mat;
mod oom;
mod overhead;
mod real;
mod rewrite;
pub mod run;
mod scale;
mod soak;
pub mod tools;

use anyhow::Result;
pub use overhead::async_profiler::ensure as async_profiler;

/// A measurement with its options.
#[derive(Debug, clap::Subcommand)]
pub enum Measurement {
    /// Measure time and memory of heapdiff and other tools, on generated or given dumps
    Bench(bench::Options),
    /// Read a dump of many gigabytes within a memory limit
    Scale(scale::Options),
    /// Measure what the agent and other profilers cost a program
    Overhead(overhead::Options),
    /// Count allocations in a JVM with JaCoCo or async-profiler, and compare counts and coverage
    Beside(beside::Options),
    /// Measure how often reports are right, on programs that leak and on programs that do not
    Accuracy(accuracy::Options),
    /// Measure how often the intervals of stacks contain the true value, on each JDK and collector
    Coverage(coverage::Options),
    /// Compare counted allocations with the program's own, on each JVM, collector and compiler
    Counting(counting::Options),
    /// Run published programs that are made to leak, and print the reports
    Real(real::Options),
    /// Rewrite classes for counting, and verify and compare them: published jars, JDK images, generated methods
    Rewrite(rewrite::Options),
    /// Test dumps by forked children: thousands of dumps, pauses, latency, other readers
    Forks(forks::Options),
    /// Test each OpenJDK from 8 on with each collector and object layout, in a root file system that is made for it
    Jdks(jdks::Options),
    /// Measure how often the predicted interval for the time to OutOfMemoryError is right, on JVMs whose heap fills up
    /// or stays bounded
    Oom(oom::Options),
    /// Let JVMs run out of memory, and measure how often a report names the leak and what the guard costs
    Guard(guard::Options),
    /// Run the agent's stress test for a long time
    Soak(soak::Options),
}

impl Measurement {
    /// Returns the benchmark on small dumps, as CI runs it.
    pub fn short_bench() -> Self {
        Self::Bench(bench::Options::smoke())
    }

    /// Returns the overhead measurement of a short program, as CI runs it.
    pub fn short_overhead() -> Self {
        Self::Overhead(overhead::Options::smoke())
    }

    /// Returns the accuracy measurement of a few programs, as CI runs it.
    pub fn short_accuracy() -> Self {
        Self::Accuracy(accuracy::Options::smoke())
    }

    /// Returns the coverage measurement of one JVM, as CI runs it.
    pub fn short_coverage() -> Self {
        Self::Coverage(coverage::Options::smoke())
    }

    /// Returns the test matrix of JDKs 26 and later with G1, as CI runs it.
    pub fn short_jdks() -> Self {
        Self::Jdks(jdks::Options::short())
    }

    /// Measures, and prints or writes the result.
    ///
    /// # Errors
    /// Returns an error if a program cannot be built or started, or if a figure exceeds its limit.
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Bench(options) => bench::bench(options),
            Self::Scale(options) => scale::scale(options),
            Self::Overhead(options) => overhead::overhead(options),
            Self::Beside(options) => beside::beside(options),
            Self::Accuracy(options) => accuracy::accuracy(options),
            Self::Coverage(options) => coverage::coverage(options),
            Self::Counting(options) => counting::counting(options),
            Self::Real(options) => real::run_programs(options),
            Self::Rewrite(options) => rewrite::rewrite(options),
            Self::Forks(options) => forks::forks(options),
            Self::Jdks(options) => jdks::jdks(options),
            Self::Oom(options) => oom::oom(options),
            Self::Guard(options) => guard::guard(options),
            Self::Soak(options) => soak::soak(options),
        }
    }
}
