//! Writes the tables as Markdown.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::Outcome;
use super::dumps::Heap;
use super::measure::Measurement;
use super::plan::Group;

/// Returns the median of each measured figure, or `None` if there were no runs.
pub(super) fn median(runs: &[Measurement]) -> Option<Measurement> {
    fn middle<T: Ord + Copy>(
        runs: &[Measurement],
        figure: impl Fn(&Measurement) -> T,
    ) -> Option<T> {
        let mut figures: Vec<T> = runs.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied()
    }
    Some(Measurement {
        wall: middle(runs, |run| run.wall)?,
        cpu: middle(runs, |run| run.cpu)?,
        anonymous: middle(runs, |run| run.anonymous)?,
        file_backed: middle(runs, |run| run.file_backed)?,
        peak: middle(runs, |run| run.peak)?,
    })
}

/// Returns the number of objects in the first dump, if a command printed it. Prefers heapdiff's count to the count of
/// hprof-slurp, which leaves out class objects.
pub(super) fn objects(outcomes: &[Outcome]) -> Option<u64> {
    let mut done = outcomes.iter().filter(|outcome| !outcome.runs.is_empty());
    let ours = done.clone().find_map(|outcome| {
        let report = report(outcome)?;
        let snapshot = report
            .get("snapshot")
            .or_else(|| report.pointer("/snapshots/0"));
        snapshot?.get("objects")?.as_u64()
    });
    ours.or_else(|| done.find_map(hprof_slurp_count))
}

/// Returns the JSON report that a heapdiff command wrote.
pub(super) fn report(outcome: &Outcome) -> Option<Value> {
    if !outcome.job.ours {
        return None;
    }
    serde_json::from_slice(&fs::read(&outcome.job.report).ok()?).ok()
}

/// Returns the number of instances and arrays that hprof-slurp counted.
pub(super) fn hprof_slurp_count(outcome: &Outcome) -> Option<u64> {
    if outcome.job.ours || outcome.job.group != Group::Histogram {
        return None;
    }
    let text = outcome.job.stdout().ok()?;
    let counts: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("..GC ")?.split_once(" dump: "))
        .filter(|(kind, _)| *kind != "class")
        .filter_map(|(_, count)| count.trim().parse().ok())
        .collect();
    (counts.len() == 3).then(|| counts.iter().sum())
}

/// Returns the table of commands on one pair of dumps, with ratios to the other tools.
pub(super) fn comparison(
    title: &str,
    [before, after]: &[PathBuf; 2],
    runs: u32,
    outcomes: &[Outcome],
) -> Result<String> {
    let objects = objects(outcomes);
    let mut text = format!("# Benchmark: {title}\n\n{}", machine());
    writeln!(
        text,
        "- the dumps have {} and {} bytes; the first contains {} objects",
        fs::metadata(before)?.len(),
        fs::metadata(after)?.len(),
        objects.map_or("unknown".to_owned(), |n| n.to_string()),
    )?;
    writeln!(
        text,
        "- medians of {runs} interleaved runs with a warm page cache\n"
    )?;
    text.push_str(HEAD);
    for outcome in outcomes {
        let name = &outcome.job.name;
        match median(&outcome.runs) {
            Some(figures) => text.push_str(&row(outcome, &figures, objects)?),
            None => {
                let why = outcome.failure.as_deref().unwrap_or("not run");
                writeln!(text, "| {name} | {why} | | | | | | |")?;
            }
        }
    }
    text.push_str(&ratios(outcomes)?);
    Ok(text)
}

const HEAD: &str = "\
| command | wall time s (min to max) | wall time s, page cache cold | CPU time s | anonymous MB | file-backed MB | peak MB | anonymous bytes/object |
|---|---|---|---|---|---|---|---|
";

fn row(outcome: &Outcome, figures: &Measurement, objects: Option<u64>) -> Result<String> {
    let walls = || outcome.runs.iter().map(|run| run.wall);
    let cold = outcome.cold.map_or("-".to_owned(), |c| seconds(c.wall));
    let mut text = String::new();
    writeln!(
        text,
        "| {} | {} ({} to {}) | {cold} | {} | {} | {} | {} | {} |",
        outcome.job.name,
        seconds(figures.wall),
        seconds(walls().min().unwrap_or_default()),
        seconds(walls().max().unwrap_or_default()),
        seconds(figures.cpu),
        megabytes(figures.anonymous),
        megabytes(figures.file_backed),
        megabytes(figures.peak),
        per_object(figures.anonymous, objects),
    )?;
    Ok(text)
}

/// Compares each of our commands with each tool that answers at least a part of the same question.
fn ratios(outcomes: &[Outcome]) -> Result<String> {
    let mut text = String::new();
    let cold = |outcome: &&Outcome| outcome.job.ours && outcome.job.group != Group::Indexed;
    for ours in outcomes.iter().filter(cold) {
        for peer in outcomes.iter().filter(|outcome| !outcome.job.ours) {
            let of_pair =
                |outcome: &Outcome| matches!(outcome.job.group, Group::Diff | Group::Kept);
            // No other tool computes deep sizes or wasted memory, so the jobs of these groups are compared with no
            // tool.
            let alone = matches!(ours.job.group, Group::Sizes | Group::Waste);
            if alone || of_pair(ours) != of_pair(peer) {
                continue;
            }
            let (Some(a), Some(b)) = (median(&ours.runs), median(&peer.runs)) else {
                continue;
            };
            if text.is_empty() {
                text.push_str(
                    "\nEach number is heapdiff's result divided by the result of the other tool. Below 1, heapdiff is better.\n\n",
                );
                text.push_str("| command | compared with | wall time | CPU time | anonymous memory | peak memory |\n");
                text.push_str("|---|---|---|---|---|---|\n");
            }
            writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                ours.job.name,
                peer.job.name,
                share(a.wall.as_secs_f64(), b.wall.as_secs_f64()),
                share(a.cpu.as_secs_f64(), b.cpu.as_secs_f64()),
                share(a.anonymous as f64, b.anonymous as f64),
                share(a.peak as f64, b.peak as f64),
            )?;
        }
    }
    Ok(text)
}

/// The measurements for one size of a heap.
pub(super) struct Size {
    /// Size of the heap, divided by the size of the smallest heap.
    pub(super) factor: f64,
    /// Size of the dump in bytes.
    pub(super) bytes: u64,
    pub(super) objects: Option<u64>,
    pub(super) outcomes: Vec<Outcome>,
}

/// Returns a table that shows how the time and memory of one command grow with the size of the dump.
pub(super) fn linear(base: f64, runs: u32, sizes: &[Size]) -> Result<String> {
    let mut text = format!(
        "# `heapdiff top` by size of the heap\n\n{}- base scale {base}; medians of {runs} runs with a warm page cache\n\n",
        machine()
    );
    text.push_str(
        "| size | dump MB | objects | wall s | wall ns/object | anonymous MB | anonymous bytes/object | \
         growth of objects | growth of wall time | growth of anonymous memory |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut first: Option<(f64, Measurement)> = None;
    for size in sizes {
        let (factor, objects) = (size.factor, size.objects);
        let figures = size
            .outcomes
            .iter()
            .find_map(|outcome| median(&outcome.runs));
        let Some(figures) = figures else { continue };
        let count = objects.unwrap_or(0) as f64;
        let (base_count, base_figures) = *first.get_or_insert((count, figures));
        writeln!(
            text,
            "| {factor}x | {} | {} | {} | {:.0} | {} | {} | {} | {} | {} |",
            megabytes(size.bytes),
            objects.map_or("unknown".to_owned(), |n| n.to_string()),
            seconds(figures.wall),
            figures.wall.as_secs_f64() * 1e9 / count.max(1.0),
            megabytes(figures.anonymous),
            per_object(figures.anonymous, objects),
            share(count, base_count),
            share(figures.wall.as_secs_f64(), base_figures.wall.as_secs_f64()),
            share(figures.anonymous as f64, base_figures.anonymous as f64),
        )?;
    }
    Ok(text)
}

/// Returns a table of the time of the commands `top` and `diff` with different numbers of threads. Each entry of `rows`
/// has two outcomes for each number of threads: first `top`, then `diff`.
pub(super) fn threads(counts: &[usize], runs: u32, rows: &[(Heap, Vec<Outcome>)]) -> String {
    let mut text = format!(
        "# Threads\n\n{}- medians of {runs} runs with a warm page cache; the sequential share follows from Amdahl's law\n\n\
         | heap | command | threads | wall s | CPU s | speed-up | sequential share |\n|---|---|---|---|---|---|---|\n",
        machine()
    );
    for (heap, outcomes) in rows {
        for (command, name) in ["top", "diff"].into_iter().enumerate() {
            let mut alone = None;
            for (outcome, &threads) in outcomes.iter().skip(command).step_by(2).zip(counts) {
                let Some(figures) = median(&outcome.runs) else {
                    continue;
                };
                let wall = figures.wall.as_secs_f64();
                let first: f64 = *alone.get_or_insert(wall);
                let sequential = match threads {
                    1 => "-".to_owned(),
                    n => format!("{:.0} %", 100.0 * sequential_share(first / wall, n)),
                };
                let _ = writeln!(
                    text,
                    "| {heap} | {name} | {threads} | {wall:.2} | {} | {:.2} | {sequential} |",
                    seconds(figures.cpu),
                    first / wall,
                );
            }
        }
    }
    text
}

/// Returns the serial fraction of the work, from 0 to 1, by the Karp-Flatt metric. `speed_up` is the speed-up with
/// `threads` threads.
fn sequential_share(speed_up: f64, threads: usize) -> f64 {
    let ideal = 1.0 / threads as f64;
    ((1.0 / speed_up - ideal) / (1.0 - ideal)).clamp(0.0, 1.0)
}

/// Returns the processor, memory, kernel and commit of this run, if they are known.
pub(crate) fn machine() -> String {
    let field = |file: &str, key: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field("/proc/cpuinfo", "model name").unwrap_or("unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map_or("unknown".to_owned(), |kb| format!("{} GB", kb / 1_000_000));
    let commit = Command::new("git")
        .current_dir(crate::run::root())
        .args(["describe", "--always", "--dirty"])
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    format!(
        "- {processor}, {cores} cores, {memory} memory\n- commit {}\n",
        commit.trim()
    )
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

pub(super) fn per_object(bytes: u64, objects: Option<u64>) -> String {
    match objects {
        Some(objects) if objects > 0 => format!("{:.1}", bytes as f64 / objects as f64),
        _ => "-".to_owned(),
    }
}

fn share(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 {
        format!("{:.2}", ours / theirs)
    } else {
        "-".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequential_share_follows_from_the_speed_up() {
        let share = |speed_up| (100.0 * sequential_share(speed_up, 2)).round();
        assert_eq!((share(2.0), share(1.0), share(1.6)), (0.0, 100.0, 25.0));
    }

    #[test]
    fn the_median_is_taken_figure_by_figure() {
        let run = |wall, anonymous| Measurement {
            wall: Duration::from_secs(wall),
            anonymous,
            ..Measurement::default()
        };
        let middle = median(&[run(3, 10), run(1, 30), run(2, 20)]).expect("there are runs");
        assert_eq!((middle.wall.as_secs(), middle.anonymous), (2, 20));
        assert!(median(&[]).is_none());
    }
}
