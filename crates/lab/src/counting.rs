//! Counted allocations beside what the program allocates: the agent's tests, with more of everything, on each JVM that is found or
//! given, and what they found as a table.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use crate::{java, run};

/// What `cargo xtask counting` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A JVM to test beside those that are found, or in the place of one of the same major version: a folder with
    /// bin/java and bin/jcmd; may be repeated
    #[arg(long, value_name = "HOME")]
    java: Vec<PathBuf>,
    /// Only JVMs of this major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// So many times as many allocations as in the tests of each merge
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// Also write the table to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What a test begins a line with that is a row of the table, but for what every row begins with.
const ROW: &str = "counted: ";
const HEAD: &str = "| JVM | setting | threads | counted allocations | allocation sites and classes |\n|---|---|---|---|---|\n";

/// Runs the tests, and shows their table.
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
    // The first row of a test follows the test's name.
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
