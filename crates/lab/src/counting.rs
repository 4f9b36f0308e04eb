//! Compares counted allocations with the allocations that the program really makes. Runs the agent's tests with larger
//! numbers, on each JVM that is found or that the user names, and prints a table of the results.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use crate::{java, run};

/// Options of `cargo xtask counting`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Also test this JVM; it replaces a found JVM of the same major version. A folder with bin/java and bin/jcmd; may
    /// be repeated
    #[arg(long, value_name = "HOME")]
    java: Vec<PathBuf>,
    /// Test only JVMs of this major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Multiply the number of allocations in the tests by this factor
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// Also write the table to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The prefix of a test's output lines that are rows of the table.
const ROW: &str = "counted: ";
const HEAD: &str = "| JVM | program and settings | threads | counted allocations | pairs of allocation site and class |\n|---|---|---|---|---|\n";

/// Runs the tests and prints their table.
pub(crate) fn counting(options: &Options) -> Result<()> {
    let jdks = java::for_agent(&options.java, &options.jdk)?;
    let homes: Vec<&Path> = jdks.iter().map(Jdk::home).collect();
    let homes = std::env::join_paths(homes)?;
    let majors: Vec<String> = jdks.iter().map(|jdk| jdk.major().to_string()).collect();
    let mut cargo = run::cargo();
    cargo
        .args(["test", "--release", "--locked"])
        .args(["--package", "heapdiff-agent", "--test", "jvm", "--"])
        .args(["--nocapture", "--test-threads", "1"])
        .args(["counted::", "count_on::", "births::"])
        .env(testdata::jvm::HOMES, homes)
        .env("HEAPDIFF_COUNT_TIMES", options.times.to_string())
        .env("HEAPDIFF_COUNT_MAJORS", majors.join(","))
        .stderr(Stdio::inherit());
    let run = cargo.output().context("cargo")?;
    let said = String::from_utf8_lossy(&run.stdout);
    println!("{said}");
    let mut table = HEAD.to_owned();
    // The test harness prints the test's name without a line break, so the first row follows on the same line.
    let rows = said.lines().filter_map(|line| line.split_once(ROW));
    for (_, row) in rows {
        writeln!(table, "{row}")?;
    }
    println!("{table}");
    if let Some(file) = &options.output {
        fs::write(file, &table).with_context(|| file.display().to_string())?;
    }
    ensure!(
        run.status.success(),
        "a count differs from the program's own count"
    );
    Ok(())
}
