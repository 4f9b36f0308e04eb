//! Loads and unloads many classes while the agent samples. JDK 26 and later free the method ids of unloaded classes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testdata::jvm::{DumpOptions, Jdk, Launch};
use testdata::programs;

use super::Tools;
use super::cell::Outcome;

/// The method of the unloaded classes that allocates, and the number of its arrays that the program keeps.
const METHOD: &str = "Unloaded$Body.allocate";
const KEPT: u64 = 100;

/// Runs the program with every allocation sampled and counted, and checks the stacks and figures in a dump.
pub(super) fn unload(jdk: &Jdk, tools: &Tools, classes: u32) -> Outcome {
    println!("JDK {}: {classes} classes are unloaded", jdk.version());
    let mut outcome = Outcome::default();
    match run(jdk, tools, classes) {
        Ok(()) => outcome.steps.push("stacks"),
        Err(e) => outcome.faults.push(format!("{e:#}")),
    }
    outcome
}

fn run(jdk: &Jdk, tools: &Tools, classes: u32) -> Result<()> {
    let compiled = jdk.compile(&programs::jdks("Unloaded.java"))?;
    let mut target = Launch::class(jdk, compiled, "Unloaded")
        .flags(["-Xmx256m", "-Xcheck:jni", "-XX:+DisplayVMOutputToStderr"])
        .agent(
            &tools.agent,
            "interval=0,count=on,include=^Unloaded,max_samples=4000000",
        )
        .arg(classes.to_string())
        .timeout(Duration::from_secs(900))
        .start()?;
    target.wait_ready(0)?;
    // The agent copies its counts once a second.
    std::thread::sleep(Duration::from_secs(2));
    let file = tools.scratch.join("unloaded.hprof");
    target.dump(&file, DumpOptions::default())?;
    let (well, errors) = target.finish_with_errors()?;
    ensure!(well, "the JVM ended with an error: {errors}");
    let printed: Vec<&str> = errors
        .lines()
        .filter(|line| !line.starts_with("heapdiff agent:"))
        .take(3)
        .collect();
    ensure!(
        printed.is_empty(),
        "the JVM printed: {}",
        printed.join(" / ")
    );
    let file = file.to_string_lossy();
    // The arrays that the program keeps are the only ones of this method that live.
    let live = rows(
        tools,
        &[
            "sites",
            &file,
            "--by",
            "stack",
            "--format",
            "json",
            "--no-index",
        ],
    )?;
    let kept: u64 = sum(&live, "samples");
    ensure!(kept == KEPT, "{kept} live samples of {METHOD}, not {KEPT}");
    Ok(())
}

/// Returns the stacks of a report whose innermost frame is the method.
fn rows(tools: &Tools, args: &[&str]) -> Result<Vec<Value>> {
    let report: Value = serde_json::from_str(&tools.run(args)?)?;
    let stacks = ["stacks", "sites", "rows"].into_iter();
    let stacks = stacks.filter_map(|key| report[key].as_array()).next();
    let of_method = |row: &&Value| {
        row["frames"][0]
            .as_str()
            .is_some_and(|f| f.starts_with(METHOD))
    };
    Ok(stacks
        .context("no stacks")?
        .iter()
        .filter(of_method)
        .cloned()
        .collect())
}

fn sum(rows: &[Value], key: &str) -> u64 {
    rows.iter().filter_map(|row| row[key].as_u64()).sum()
}
