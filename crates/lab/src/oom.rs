//! Measures how often the predicted interval of the time to OutOfMemoryError contains the true time, on JVMs whose heap
//! fills up. Also measures how often JVMs with a bounded heap get such a prediction.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testdata::jvm::Jdk;

use crate::run::{Tested, root};
use crate::{java, run};

/// Options of `cargo xtask oom`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    tested: Tested,
    /// Number of programs that leak; the same number of programs with a bounded heap run, too
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    programs: u32,
    /// Approximate seconds until a heap is full
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(5..))]
    seconds: u32,
    /// Number of JVMs that run at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
}

const LEAKS: [&str; 6] = ["linear", "steps", "accelerating", "noisy", "two", "random"];
const BOUNDED: [&str; 3] = ["cache", "sawtooth", "warm-up"];
const COLLECTORS: [&str; 4] = ["Serial", "Parallel", "G1", "Shenandoah"];
/// The program's lifetime is cut at these percentages. The time to OutOfMemoryError is estimated from the trace up to
/// the cut.
const CUTS: [u64; 2] = [50, 75];
const HEAP_MIB: u32 = 96;
/// Live data of the program without the leak, in MiB.
const BASE_MIB: u32 = 12;

/// A program to run.
#[derive(Clone, Copy)]
struct Subject {
    shape: &'static str,
    collector: &'static str,
    seed: u32,
}

/// An estimate and the true time, in milliseconds after the end of the trace data that the estimate used.
struct Estimate {
    cut: u64,
    /// The interval of the estimated time. `None` if there was no estimate.
    interval: Option<[u64; 2]>,
    outlook: String,
    truth: u64,
}

/// Runs the programs, and prints each estimate and the totals.
pub(crate) fn oom(options: &Options) -> Result<()> {
    let (heapdiff, agent) = options.tested.build_products(false)?;
    let jdk = java::ensure_jdk()?;
    let classes = jdk.compile(&root().join("testdata/java/oom/Leaking.java"))?;
    let folder = tempfile::tempdir()?;
    let lab = Lab {
        heapdiff: &heapdiff,
        agent: &agent,
        jdk: &jdk,
        classes: &classes,
        folder: folder.path(),
        seconds: options.seconds,
    };
    let collectors = lab.collectors();
    ensure!(!collectors.is_empty(), "no collector starts");
    let subject = |shapes: &[&'static str], i: u32| {
        let i = i as usize;
        Subject {
            shape: shapes[i % shapes.len()],
            collector: collectors[(i / shapes.len() + i % shapes.len()) % collectors.len()],
            seed: i as u32,
        }
    };
    let leaks = (0..options.programs).map(|i| subject(&LEAKS, i));
    let bounded = (0..options.programs).map(|i| subject(&BOUNDED, i));
    let subjects: Vec<Subject> = leaks.chain(bounded).collect();
    let mut estimates = Vec::new();
    let mut alerts = 0;
    println!("shape         collector   cut  true time    interval");
    for together in subjects.chunks(options.jobs as usize) {
        let results = thread::scope(|scope| {
            let threads: Vec<_> = together
                .iter()
                .map(|subject| scope.spawn(|| lab.run(subject)))
                .collect();
            threads
                .into_iter()
                .map(|t| {
                    t.join()
                        .unwrap_or_else(|_| anyhow::bail!("a thread panicked"))
                })
                .collect::<Vec<_>>()
        });
        for (subject, result) in together.iter().zip(results) {
            let result =
                result.with_context(|| format!("{} {}", subject.shape, subject.collector))?;
            for estimate in result {
                println!("{}", line(subject, &estimate));
                if BOUNDED.contains(&subject.shape) {
                    alerts += usize::from(estimate.interval.is_some());
                } else {
                    estimates.push(estimate);
                }
            }
        }
    }
    summary(&estimates);
    println!("bounded programs: {alerts} with a time to OutOfMemoryError");
    Ok(())
}

fn line(subject: &Subject, estimate: &Estimate) -> String {
    let seconds = |ms: u64| format!("{:.1} s", ms as f64 / 1000.0);
    let told = match estimate.interval {
        Some([from, to]) => {
            let is_covered = (from..=to).contains(&estimate.truth);
            let missed = if is_covered { "" } else { "  missed" };
            format!("{} to {}{missed}", seconds(from), seconds(to))
        }
        None => estimate.outlook.clone(),
    };
    format!(
        "{:12}  {:10} {:3} %  {:>9}    {told}",
        subject.shape,
        subject.collector,
        estimate.cut,
        seconds(estimate.truth)
    )
}

fn summary(estimates: &[Estimate]) {
    for cut in CUTS {
        let of_cut = || estimates.iter().filter(|e| e.cut == cut);
        let given: Vec<(u64, [u64; 2])> = of_cut()
            .filter_map(|e| Some((e.truth, e.interval?)))
            .collect();
        let covered = given
            .iter()
            .filter(|(truth, [from, to])| (from..=to).contains(&truth));
        let mut widths: Vec<f64> = given
            .iter()
            .map(|(truth, [from, to])| to.saturating_sub(*from) as f64 / (*truth).max(1) as f64)
            .collect();
        widths.sort_by(f64::total_cmp);
        let width = widths.get(widths.len() / 2).copied().unwrap_or(0.0);
        println!(
            "after {cut} % of the time: {} programs, {} estimates, {} contain the true time, median width {:.0} % of it",
            of_cut().count(),
            given.len(),
            covered.count(),
            width * 100.0
        );
    }
}

struct Lab<'a> {
    heapdiff: &'a Path,
    agent: &'a Path,
    jdk: &'a Jdk,
    classes: &'a Path,
    folder: &'a Path,
    seconds: u32,
}

impl Lab<'_> {
    /// Returns the collectors that the JVM has.
    fn collectors(&self) -> Vec<&'static str> {
        let starts = |collector: &&str| {
            let mut java = Command::new(self.jdk.java());
            java.arg(format!("-XX:+Use{collector}GC")).arg("-version");
            java.stdout(Stdio::null()).stderr(Stdio::null());
            java.status().is_ok_and(|status| status.success())
        };
        COLLECTORS.into_iter().filter(starts).collect()
    }

    /// Runs a program, and estimates its time to OutOfMemoryError from the first parts of its trace.
    fn run(&self, subject: &Subject) -> Result<Vec<Estimate>> {
        let Subject {
            shape,
            collector,
            seed,
        } = subject;
        let trace = self.folder.join(format!("{shape}-{collector}-{seed}.db"));
        let rate = (HEAP_MIB - BASE_MIB) * 1024 / self.seconds;
        // The time limit of the program: a bounded program runs for the planned time. A program that leaks may take
        // longer than planned.
        let most = if BOUNDED.contains(shape) {
            self.seconds
        } else {
            5 * self.seconds
        };
        let mut program = Command::new(self.jdk.java());
        program
            .args([format!("-Xmx{HEAP_MIB}m"), format!("-XX:+Use{collector}GC")])
            // With a small young generation, as many full GCs happen in a short run as in a program that runs for
            // hours.
            .args(["-Xmn8m", "-XX:MaxTenuringThreshold=2"])
            .arg(format!(
                "-agentpath:{}=trace={},tick=200ms",
                self.agent.display(),
                trace.display()
            ))
            .arg("-cp")
            .arg(self.classes)
            .args([
                "Leaking",
                shape,
                &rate.to_string(),
                &most.to_string(),
                &seed.to_string(),
            ])
            .stderr(Stdio::null());
        let output = program.output().context("the program cannot be started")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default();
        let (how, end_ms) = last
            .split_once(' ')
            .context("the program printed no time")?;
        let end_ms: u64 = end_ms.parse()?;
        ensure!(
            (how == "oom") != BOUNDED.contains(shape),
            "the program ended with `{last}`"
        );
        let started = self.report(&trace, None)?["run"]["started_ms"]
            .as_u64()
            .context("no start")?;
        let lived = end_ms.saturating_sub(started);
        let mut estimates = Vec::new();
        for cut in CUTS {
            let report = self.report(&trace, Some(lived * cut / 100))?;
            let to_ms = report["window"]["to_ms"].as_u64().context("no window")?;
            let bound = |key: &str| report["oom"][key].as_u64();
            let trend = &report["heap_after_full_gcs"];
            estimates.push(Estimate {
                cut,
                interval: bound("from_ms").zip(bound("to_ms")).map(|(a, b)| [a, b]),
                outlook: format!(
                    "{} ({} full GCs)",
                    trend["outlook"].as_str().unwrap_or_default(),
                    trend["full_gcs"]
                ),
                truth: end_ms.saturating_sub(to_ms),
            });
        }
        fs::remove_file(&trace)?;
        Ok(estimates)
    }

    /// Returns the report on a trace up to the given time.
    fn report(&self, trace: &Path, until_ms: Option<u64>) -> Result<Value> {
        let mut command = Command::new(self.heapdiff);
        command.args(["trace", "top", "--format", "json", "--top", "0"]);
        if let Some(ms) = until_ms {
            command.arg("--until").arg(format!("+{ms}ms"));
        }
        let output = command.arg(trace).output()?;
        let what = run::command_text(&command);
        ensure!(
            output.status.success(),
            "{what} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
