//! Tests the agent while many classes are loaded and unloaded. JDK 26 and later free the method ids of unloaded
//! classes.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;
use testdata::jvm::{DumpOptions, Jdk, Launch};
use testdata::programs;

use super::Tools;
use super::cell::Outcome;

/// The method of the unloaded classes that allocates arrays. The second constant is the number of its arrays that the
/// program keeps.
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
    // Only the arrays that the program keeps are live. All other objects that the method allocated are dead.
    let live = report(tools, &["sites", &file, "--by", "stack"])?;
    let kept = sum(&live["stacks"], "samples", is_stack);
    ensure!(kept == KEPT, "{kept} live samples of {METHOD}, not {KEPT}");
    let allocated = report(tools, &["sites", &file, "--allocated"])?;
    let (classes, sampled) = (
        u64::from(classes),
        sum(&allocated["stacks"], "samples", is_stack),
    );
    // The JVM itself creates objects for the method. They are sampled too, so there may be more samples than classes.
    ensure!(
        sampled >= classes,
        "{sampled} samples of {METHOD}, not {classes}"
    );
    let counted = sum(&allocated["counted"]["sites"], "objects", is_site);
    ensure!(
        counted == classes,
        "{counted} counted objects of {METHOD}, not {classes}"
    );
    Ok(())
}

/// Runs heapdiff and parses its report.
fn report(tools: &Tools, args: &[&str]) -> Result<Value> {
    let all = [args, &["--format", "json", "--no-index"]].concat();
    Ok(serde_json::from_str(&tools.run(&all)?)?)
}

/// True if the innermost frame of a stack is [`METHOD`].
fn is_stack(row: &Value) -> bool {
    let frame = row["frames"][0].as_str();
    frame.is_some_and(|frame| frame.starts_with(METHOD))
}

/// True if a counted site is in [`METHOD`].
fn is_site(row: &Value) -> bool {
    let (class, method) = (row["class"].as_str(), row["method"].as_str());
    class.zip(method) == METHOD.rsplit_once('.')
}

/// Returns the sum of the figure `key` over the rows for which `is_wanted` returns true.
fn sum(rows: &Value, key: &str, is_wanted: impl Fn(&Value) -> bool) -> u64 {
    let rows = rows.as_array().into_iter().flatten();
    let wanted = rows.filter(|row| is_wanted(row));
    wanted.filter_map(|row| row[key].as_u64()).sum()
}
