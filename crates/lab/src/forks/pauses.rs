//! Measures how long a program pauses for a dump. The times come from the JVM's own safepoint log.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use super::service::{Service, Tools, loading};

pub(super) const HEAD: &str = "\
## Pauses of the program

The total time of each pause with G1, from the JVM's safepoint log.

| JVM | live MB | pause of forked dumps, ms | pause per live GB, ms | pause of `GC.heap_dump`, ms | how many times longer | total time of a forked dump, s | total time of `GC.heap_dump`, s |
|---|---|---|---|---|---|---|---|
";

/// Number of forked dumps of each JVM.
const TIMES: usize = 3;

/// Takes forked dumps and dumps by the JVM itself, and returns a row of the table with the pauses.
pub(super) fn pauses(jdk: &Jdk, live: u32, more: &[String], tools: &Tools) -> Result<String> {
    if jdk.major() < 17 {
        return Ok(format!(
            "| {} (its log does not name the operations) | {live} | | | | | | |\n",
            jdk.major()
        ));
    }
    let log = tools
        .scratch
        .join(format!("pauses-{}-{live}.log", jdk.major()));
    let mut flags = loading(jdk);
    let heap = live * 2;
    flags.extend([
        "-XX:+UseG1GC".to_owned(),
        format!("-Xms{heap}m"),
        format!("-Xmx{heap}m"),
        format!("-Xlog:safepoint:file={}", log.display()),
    ]);
    flags.extend_from_slice(more);
    let service = Service::start(jdk, live, 0, &flags)?;
    let file = tools.scratch.join("pauses.hprof");
    let mut whole = Vec::new();
    for _ in 0..TIMES {
        whole.push(tools.forked(service.target.pid(), &file)?.as_secs_f64());
        fs::remove_file(&file)?;
    }
    let ordinary = tools.ordinary(&service.target, &file)?.as_secs_f64();
    fs::remove_file(&file)?;
    ensure!(service.target.finish()?, "the JVM ended with an error");
    let (forks, dumps) = (
        safepoint_durations(&log, "HeapWalkOperation")?,
        safepoint_durations(&log, "HeapDumper")?,
    );
    ensure!(
        forks.len() == TIMES && !dumps.is_empty(),
        "{}",
        log.display()
    );
    let worst = forks.iter().copied().fold(0.0, f64::max);
    let dump: f64 = dumps.iter().sum();
    let list = |values: &[f64], digits: usize| {
        let shown: Vec<String> = values.iter().map(|v| format!("{v:.digits$}")).collect();
        shown.join(", ")
    };
    Ok(format!(
        "| {} | {live} | {} | {:.0} | {dump:.0} | {:.0} | {} | {ordinary:.1} |\n",
        jdk.version(),
        list(&forks, 1),
        worst / f64::from(live) * 1000.0,
        dump / worst,
        list(&whole, 1),
    ))
}

/// Reads the JVM's log. Returns the duration of each safepoint with the name `operation`, in milliseconds.
fn safepoint_durations(log: &Path, operation: &str) -> Result<Vec<f64>> {
    let text = fs::read_to_string(log)?;
    let named = format!("\"{operation}\"");
    let total = |line: &str| -> Result<f64> {
        let after = line
            .split("Total: ")
            .nth(1)
            .context("the log line has no `Total`")?;
        let nanos: f64 = after.split_whitespace().next().unwrap_or("").parse()?;
        Ok(nanos / 1e6)
    };
    text.lines()
        .filter(|l| l.contains(&named))
        .map(total)
        .collect()
}
