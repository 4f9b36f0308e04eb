//! Fuzzes all targets in turn, until they have processed a given number of inputs in total. Also ends after a time
//! limit, which is a night (eight hours) by default.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::libfuzzer;
use heapdiff_lab::run;

/// Sums over all runs of one fuzz target.
#[derive(Debug, Default, PartialEq, Eq)]
struct Total {
    executions: u64,
    /// Number of inputs that were added to the corpus.
    kept: u64,
    edges: u64,
    peak_mb: u64,
    /// Number of runs that ended with a failing input.
    failed: u64,
}

impl Total {
    fn add(&mut self, run: &Self) {
        self.executions += run.executions;
        self.kept += run.kept;
        self.edges = self.edges.max(run.edges);
        self.peak_mb = self.peak_mb.max(run.peak_mb);
        self.failed += run.failed;
    }
}

/// Runs each target for `seconds`, round after round (a soak). Starts no new round after `executions` inputs have been
/// processed in total, or after the time `most`. A failing input stays in `fuzz/artifacts`, and the other targets
/// continue.
pub(super) fn soak(targets: &[&str], executions: u64, seconds: u64, most: Duration) -> Result<()> {
    let start = Instant::now();
    let artifacts = run::root().join("fuzz/artifacts");
    fs::create_dir_all(&artifacts).with_context(|| format!("{}", artifacts.display()))?;
    let mut totals: BTreeMap<&str, Total> = BTreeMap::new();
    let reached = |totals: &BTreeMap<&str, Total>| totals.values().map(|t| t.executions).sum();
    while reached(&totals) < executions && start.elapsed() < most {
        for &target in targets {
            let log = artifacts.join(format!("{target}.log"));
            let one = one_run(target, seconds, &log)?;
            totals.entry(target).or_default().add(&one);
        }
        println!("{}", table(&totals, start.elapsed()));
    }
    let failed: u64 = totals.values().map(|t| t.failed).sum();
    ensure!(
        failed == 0,
        "{failed} runs failed; their inputs are in fuzz/artifacts"
    );
    let inputs: u64 = reached(&totals);
    if inputs < executions {
        bail!("only {inputs} of {executions} inputs ran within the time limit");
    }
    Ok(())
}

/// Runs a fuzz target once. The fuzzer's output goes to the log.
fn one_run(target: &str, seconds: u64, log: &Path) -> Result<Total> {
    let file = File::create(log).with_context(|| format!("{}", log.display()))?;
    let mut command = libfuzzer(target, seconds)?;
    let status = command
        .arg("-print_final_stats=1")
        .stderr(file)
        .status()
        .with_context(|| format!("cannot start {}", run::command_text(&command)))?;
    let text = fs::read(log).with_context(|| format!("{}", log.display()))?;
    let mut total = read(&String::from_utf8_lossy(&text));
    // If the target processed no input at all, it could not be built or started. Then the whole series of runs ends
    // with an error.
    ensure!(total.executions > 0, "{target}: see {}", log.display());
    total.failed = u64::from(!status.success());
    Ok(total)
}

/// Reads the figures from libFuzzer's output.
fn read(text: &str) -> Total {
    let stat = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name));
        line.and_then(|l| l.trim().parse().ok()).unwrap_or(0)
    };
    let edges = text.lines().rev().find_map(|line| {
        let (_, after) = line.split_once(" cov: ")?;
        after.split_whitespace().next()?.parse().ok()
    });
    Total {
        executions: stat("stat::number_of_executed_units:"),
        kept: stat("stat::new_units_added:"),
        edges: edges.unwrap_or(0),
        peak_mb: stat("stat::peak_rss_mb:"),
        failed: 0,
    }
}

/// Returns the totals as a Markdown table.
fn table(totals: &BTreeMap<&str, Total>, took: Duration) -> String {
    let mut text = format!(
        "\nafter {} min\n\n| fuzz target | executions | inputs in the corpus | covered edges | peak memory, MB | failed runs |\n\
         |---|---|---|---|---|---|\n",
        took.as_secs() / 60
    );
    let row = |name: &str, t: &Total| {
        format!(
            "| {name} | {} | {} | {} | {} | {} |\n",
            t.executions, t.kept, t.edges, t.peak_mb, t.failed
        )
    };
    for (name, total) in totals {
        text += &row(name, total);
    }
    let executions: u64 = totals.values().map(|t| t.executions).sum();
    text + &format!("| all | {executions} | | | | |\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_output_of_the_fuzzer() {
        let text = "#2\tINITED cov: 300 ft: 301 corp: 1/1b exec/s: 0 rss: 40Mb\n\
                    #4096\tNEW    cov: 651 ft: 900 corp: 12/3Kb lim: 4 exec/s: 42 rss: 90Mb L: 3/9 MS: 1\n\
                    Done 7126355 runs in 171 second(s)\n\
                    stat::number_of_executed_units: 7126355\n\
                    stat::average_exec_per_sec:     41674\n\
                    stat::new_units_added:          2932\n\
                    stat::slowest_unit_time_sec:    0\n\
                    stat::peak_rss_mb:              492\n";
        let expected = Total {
            executions: 7_126_355,
            kept: 2932,
            edges: 651,
            peak_mb: 492,
            failed: 0,
        };
        assert_eq!(read(text), expected);
        assert_eq!(read("error: no such target"), Total::default());
    }

    #[test]
    fn runs_add_up_and_stay_in_the_table() {
        let run = Total {
            executions: 10,
            kept: 2,
            edges: 7,
            peak_mb: 30,
            failed: 1,
        };
        let mut total = Total::default();
        total.add(&run);
        total.add(&Total {
            edges: 5,
            peak_mb: 31,
            failed: 0,
            ..run
        });
        let text = table(&BTreeMap::from([("gzip", total)]), Duration::from_secs(125));
        assert!(text.contains("after 2 min"), "{text}");
        assert!(
            text.contains("| gzip | 20 | 4 | 7 | 31 | 1 |\n| all | 20 |"),
            "{text}"
        );
    }
}
