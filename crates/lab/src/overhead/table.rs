//! Writes the tables as Markdown.

use std::fmt::Write;

use anyhow::{Context, Result};
use testdata::jvm::Jdk;

use super::Outcome;
use super::figures::{Figures, median};
use super::program::Program;

/// Returns the table of one program on one JDK. The column `overhead` compares medians with the median without a tool.
/// The spread is the range from the lowest to the highest overhead of a round.
pub(super) fn of(
    jdk: &Jdk,
    program: &Program,
    flags: &[String],
    outcomes: &[Outcome],
) -> Result<String> {
    let base = outcomes.iter().find(|outcome| outcome.tool.is_baseline());
    let base = base.context("there is no run without a tool to compare with")?;
    let middle = |outcome: &Outcome, of: fn(&Figures) -> f64| {
        median(outcome.rounds.iter().map(of)).context("no rounds")
    };
    let (none, bytes) = (
        middle(base, Figures::cpu_micros)?,
        middle(base, Figures::bytes)?,
    );
    let none_peak = middle(base, Figures::peak_megabytes)?;
    let mut text = format!(
        "\n## {} on JDK {}{}{}\n\n{}.\nEach operation allocates {:.0} bytes, and the program allocates {:.2} GB per second of CPU time. Measured in {} rounds of {} slices.\n\n",
        program.title(),
        jdk.version(),
        if flags.is_empty() { "" } else { ", " },
        flags.join(" "),
        program.about,
        bytes,
        bytes / none / 1e3,
        base.rounds.len(),
        base.rounds.first().map_or(0, |figures| figures.slices),
    );
    text.push_str(
        "| tool | CPU us/operation | overhead | overhead, min to max | overhead us/sample | peak MB | additional MB | young GCs | other GCs | allocation stalls |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes {
        let (cpu, peak) = (
            middle(outcome, Figures::cpu_micros)?,
            middle(outcome, Figures::peak_megabytes)?,
        );
        let percent = |cpu: f64| 100.0 * (cpu / none - 1.0);
        let rounds = || outcome.rounds.iter().map(Figures::cpu_micros);
        let least = percent(rounds().fold(f64::INFINITY, f64::min));
        let most = percent(rounds().fold(0.0, f64::max));
        let sample = outcome.tool.interval.map_or_else(String::new, |interval| {
            #[allow(clippy::cast_precision_loss, reason = "small")]
            let samples = bytes / interval as f64;
            format!("{:.1}", (cpu - none) / samples)
        });
        writeln!(
            text,
            "| {} | {cpu:.3} | {:+.1} % | {least:+.1} to {most:+.1} % | {sample} | {peak:.0} | {:+.0} | {:.0} | {:.0} | {:.0} |",
            outcome.tool.name,
            percent(cpu),
            peak - none_peak,
            middle(outcome, |figures| f64::from(figures.collections.young))?,
            middle(outcome, |figures| f64::from(figures.collections.other))?,
            middle(outcome, |figures| f64::from(figures.collections.stalls))?,
        )?;
    }
    Ok(text)
}
