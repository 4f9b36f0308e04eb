//! Time and memory of `heapdiff` beside the tools people would use instead.

mod dumps;
mod measure;
mod peers;
mod plan;
mod report;
mod smoke;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::measure::Measurement;
use self::plan::Job;
use crate::run;

pub(crate) use self::report::machine;

/// What `cargo xtask bench` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Size of the generated heaps: 1 (the default) is some 41 million objects and 1.9 GB; with
    /// --linear, that of the first of three, 0.25 by default
    #[arg(long)]
    scale: Option<f64>,
    /// A small heap, one run, and a check that the results make sense
    #[arg(long, conflicts_with_all = ["linear", "dump"])]
    smoke: bool,
    /// How time and memory of `heapdiff top` grow from the base scale to twice and four times it
    #[arg(long, conflicts_with_all = ["dump", "dump2"])]
    linear: bool,
    /// A dump to use instead of a generated one
    #[arg(long, value_name = "FILE", requires = "dump2")]
    dump: Option<PathBuf>,
    /// The later dump of the pair
    #[arg(long, value_name = "FILE", requires = "dump")]
    dump2: Option<PathBuf>,
    /// Runs of each command; the median is reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Folder with hprof-slurp and hprof-analyzer; installed below target/peers if not given
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Leave the other tools out
    #[arg(long, conflicts_with = "peers_only")]
    no_peers: bool,
    /// Leave heapdiff out
    #[arg(long, conflicts_with_all = ["linear", "smoke"])]
    peers_only: bool,
    /// The heapdiff to measure; built if not given
    #[arg(long, value_name = "FILE")]
    heapdiff: Option<PathBuf>,
    /// Seconds after which a command is ended and counts as failed
    #[arg(long, default_value_t = 900)]
    timeout: u64,
    /// Also write the tables to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Options {
    /// What CI runs.
    pub(crate) fn smoke() -> Self {
        Self {
            scale: None,
            smoke: true,
            linear: false,
            dump: None,
            dump2: None,
            runs: 1,
            peers: None,
            no_peers: false,
            peers_only: false,
            heapdiff: None,
            timeout: 120,
            output: None,
        }
    }

    fn scale(&self) -> f64 {
        let default = match (self.smoke, self.linear) {
            (true, _) => dumps::SMOKE_SCALE,
            (_, true) => 0.25,
            _ => 1.0,
        };
        self.scale.unwrap_or(default)
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// A command's runs.
#[derive(Debug)]
struct Outcome {
    job: Job,
    /// Why it has no figures, if it failed.
    failure: Option<String>,
    runs: Vec<Measurement>,
}

/// Runs the benchmark that the options ask for and prints its tables.
pub(crate) fn bench(options: &Options) -> Result<()> {
    let scratch = run::target_dir().join("bench");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let text = if options.linear {
        linear(options, &scratch)?
    } else {
        compare(options, &scratch)?
    };
    println!("{text}");
    if let Some(file) = &options.output {
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Every command on one pair of dumps.
fn compare(options: &Options, scratch: &Path) -> Result<String> {
    let scale = options.scale();
    let [before, after] = match (&options.dump, &options.dump2) {
        (Some(before), Some(after)) => [before.clone(), after.clone()],
        _ => dumps::pair(scale, scratch)?,
    };
    let mut jobs = Vec::new();
    if !options.peers_only {
        let heapdiff = heapdiff(options)?;
        jobs.extend(plan::heapdiff(&heapdiff, &before, &after, scratch));
        plan::write_index(&heapdiff, &before, options.limit())?;
        jobs.extend(plan::indexed(&heapdiff, &before, scratch));
    }
    if !options.no_peers {
        let found = match options.smoke {
            true => peers::present(options.peers.as_deref())
                .into_iter()
                .take(1)
                .collect(),
            false => peers::ensure(options.peers.as_deref())?,
        };
        jobs.extend(plan::peers(&found, &before, &after, scratch));
    }
    let runs = if options.smoke { 1 } else { options.runs };
    let outcomes = interleaved(jobs, runs, &[&before, &after], options.limit())?;
    if options.smoke {
        smoke::check(&outcomes)?;
    }
    let title = match options.dump {
        Some(_) => "given dumps".to_owned(),
        None => format!("generated heap, scale {scale}"),
    };
    report::comparison(&title, &before, &after, runs, &outcomes)
}

/// `heapdiff top` on three sizes.
fn linear(options: &Options, scratch: &Path) -> Result<String> {
    let heapdiff = heapdiff(options)?;
    let mut rows = Vec::new();
    for factor in [1.0, 2.0, 4.0] {
        let dump = dumps::single(options.scale() * factor, scratch)?;
        let job = plan::top(&heapdiff, &dump, scratch);
        let outcomes = interleaved(vec![job], options.runs, &[&dump], options.limit())?;
        if let Some(failure) = outcomes.iter().find_map(|outcome| outcome.failure.as_ref()) {
            bail!("heapdiff top failed: {failure}");
        }
        rows.push((factor, fs::metadata(&dump)?.len(), outcomes));
    }
    report::linear(options.scale(), options.runs, &rows)
}

/// The heapdiff to measure.
fn heapdiff(options: &Options) -> Result<PathBuf> {
    if let Some(given) = &options.heapdiff {
        return Ok(given.clone());
    }
    Ok(run::Products::for_figures(options.smoke)?.heapdiff())
}

/// Runs all jobs in turn, as often as asked, so that a change of the machine's
/// speed meets all of them. A job that fails is not run again.
fn interleaved(jobs: Vec<Job>, runs: u32, warm: &[&Path], limit: Duration) -> Result<Vec<Outcome>> {
    for file in warm {
        warm_up(file)?;
    }
    let mut outcomes: Vec<Outcome> = jobs
        .into_iter()
        .map(|job| Outcome {
            job,
            failure: None,
            runs: Vec::new(),
        })
        .collect();
    for round in 1..=runs {
        for outcome in &mut outcomes {
            if outcome.failure.is_some() {
                continue;
            }
            match outcome.job.measure(limit) {
                Ok(measured) => {
                    println!("  {round}/{runs} {}: {measured}", outcome.job.name);
                    outcome.runs.push(measured);
                }
                Err(error) => {
                    println!("  {round}/{runs} {}: {error:#}", outcome.job.name);
                    outcome.failure = Some(format!("{error:#}"));
                }
            }
        }
    }
    Ok(outcomes)
}

/// Reads a file once, so that every command finds it in the page cache.
fn warm_up(file: &Path) -> Result<()> {
    let mut source =
        fs::File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    std::io::copy(&mut source, &mut std::io::sink())?;
    Ok(())
}
