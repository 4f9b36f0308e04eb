//! Measures time and memory of `heapdiff` and of the tools that people would use instead.

mod dumps;
mod goals;
mod measure;
mod peers;
mod plan;
mod report;
mod smoke;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::dumps::Heap;
use self::plan::Job;
use crate::run;

pub(crate) use self::measure::{Measurement, measure};
pub(crate) use self::report::machine;

/// Returns one dump of the mixed heap, which is generated if the file does not exist yet.
pub(crate) fn dump(scale: f64, scratch: &Path) -> Result<PathBuf> {
    dumps::make_mixed_dump(scale, scratch)
}

/// Returns other programs that read dumps. If no folder is given, missing programs are installed.
pub(crate) fn readers(folder: Option<&Path>) -> Result<Vec<(&'static str, PathBuf)>> {
    let peers = peers::ensure(folder)?;
    let named = |peer: peers::Peer| (peer.kind.name(), peer.program);
    Ok(peers.into_iter().map(named).collect())
}

/// Options of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Scale of the generated heaps: 1 (the default) is about 41 million objects and 1.9 GB. With --linear: scale of
    /// the smallest of four heaps, 0.25 by default
    #[arg(long)]
    scale: Option<f64>,
    /// Run once on a small heap, and check that the results make sense
    #[arg(long, conflicts_with_all = ["linear", "dump"])]
    smoke: bool,
    /// Measure only this shape of heap; may be repeated
    #[arg(long, value_enum, conflicts_with_all = ["smoke", "linear", "dump"])]
    heap: Vec<Heap>,
    /// Measure `heapdiff top` on the base scale and on 2, 4 and 10 times that scale
    #[arg(long, conflicts_with_all = ["dump", "dump2"])]
    linear: bool,
    /// Measure the speed-up from more threads
    #[arg(long, conflicts_with_all = ["linear", "smoke", "dump", "dump2"])]
    threads: bool,
    /// Also run each command with the dumps out of the page cache
    #[arg(long, conflicts_with_all = ["linear", "smoke", "threads"])]
    cold: bool,
    /// Use this dump instead of a generated one
    #[arg(long, value_name = "FILE", requires = "dump2")]
    dump: Option<PathBuf>,
    /// The later dump of the pair
    #[arg(long, value_name = "FILE", requires = "dump")]
    dump2: Option<PathBuf>,
    /// Runs of each command; the median is reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Folder with hprof-slurp and hprof-analyzer [default: installed in target/peers]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Do not run the other tools
    #[arg(long, conflicts_with = "peers_only")]
    no_peers: bool,
    /// Do not run heapdiff
    #[arg(long, conflicts_with_all = ["linear", "smoke"])]
    peers_only: bool,
    /// The heapdiff to measure [default: built]
    #[arg(long, value_name = "FILE")]
    heapdiff: Option<PathBuf>,
    /// Stop a command after this many seconds, and count it as failed
    #[arg(long, default_value_t = 900)]
    timeout: u64,
    /// Also write the tables to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Options {
    /// Returns the options of the run in CI.
    pub fn smoke() -> Self {
        Self {
            scale: None,
            smoke: true,
            heap: Vec::new(),
            linear: false,
            threads: false,
            cold: false,
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

    fn heaps(&self) -> &[Heap] {
        match (self.smoke, self.heap.as_slice()) {
            (true, _) => &[Heap::Mixed],
            (_, []) => &Heap::MEASURED,
            (_, heaps) => heaps,
        }
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// The runs of one command.
#[derive(Debug)]
struct Outcome {
    job: Job,
    /// The reason why the command failed, or `None`. The table of results shows the reason instead of measurements.
    failure: Option<String>,
    runs: Vec<Measurement>,
    /// A run that began without the dumps in the page cache.
    cold: Option<Measurement>,
}

/// Runs the benchmark that the options select, and prints its tables.
pub(crate) fn bench(options: &Options) -> Result<()> {
    let scratch = run::target_dir().join("bench");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let text = if options.linear {
        linear(options, &scratch)?
    } else if options.threads {
        threads(options, &scratch)?
    } else {
        compare(options, &scratch)?
    };
    println!("{text}");
    if let Some(file) = &options.output {
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Runs every command on a pair of dumps of each heap.
fn compare(options: &Options, scratch: &Path) -> Result<String> {
    let scale = options.scale();
    if let (Some(before), Some(after)) = (&options.dump, &options.dump2) {
        let pair = [before.clone(), after.clone()];
        let outcomes = bench_pair(options, &pair, scratch)?;
        return report::comparison("given dumps", &pair, options.runs, &outcomes);
    }
    let mut heaps = Vec::new();
    let mut tables = String::new();
    for &heap in options.heaps() {
        let pair = dumps::make_dump_pair(heap, scale, scratch)?;
        let outcomes = bench_pair(options, &pair, scratch)?;
        if options.smoke {
            smoke::check(&outcomes)?;
        }
        let title = format!("{heap} heap, scale {scale}");
        tables += &report::comparison(&title, &pair, options.runs, &outcomes)?;
        tables.push('\n');
        heaps.push((heap, outcomes));
    }
    Ok(format!("{}\n{tables}", goals::of(&heaps)))
}

/// Runs every command on one pair of dumps.
fn bench_pair(options: &Options, pair: &[PathBuf; 2], scratch: &Path) -> Result<Vec<Outcome>> {
    let [before, after] = pair;
    let mut jobs = Vec::new();
    if !options.peers_only {
        let heapdiff = heapdiff(options)?;
        jobs.extend(plan::heapdiff(&heapdiff, before, after, scratch));
        plan::keep_summaries(&heapdiff, before, after, options.limit())?;
        jobs.extend(plan::cached_comparisons(&heapdiff, before, after, scratch));
        plan::write_index(&heapdiff, before, options.limit())?;
        jobs.extend(plan::indexed(&heapdiff, before, scratch));
    }
    if !options.no_peers {
        let found = if options.smoke {
            peers::present(options.peers.as_deref())
                .into_iter()
                .take(1)
                .collect()
        } else {
            peers::ensure(options.peers.as_deref())?
        };
        jobs.extend(plan::peers(&found, before, after, scratch));
    }
    let files = [before.as_path(), after.as_path()];
    let mut outcomes = interleaved(jobs, options.runs, &files, options.limit())?;
    if options.cold {
        for outcome in outcomes.iter_mut().filter(|o| o.failure.is_none()) {
            files
                .iter()
                .try_for_each(|file| drop_from_page_cache(file))?;
            let measured = outcome.job.measure(options.limit())?;
            println!("  cold {}: {measured}", outcome.job.name);
            outcome.cold = Some(measured);
        }
    }
    Ok(outcomes)
}

/// Measures `heapdiff top` and a comparison with 1, 2, 4, ... threads.
fn threads(options: &Options, scratch: &Path) -> Result<String> {
    let heapdiff = heapdiff(options)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let counts: Vec<usize> = (0..).map(|n| 1 << n).take_while(|&n| n <= cores).collect();
    let mut rows = Vec::new();
    for &heap in options.heaps() {
        let [before, after] = dumps::make_dump_pair(heap, options.scale(), scratch)?;
        let jobs = counts
            .iter()
            .flat_map(|&n| plan::with_threads(&heapdiff, &before, &after, scratch, n))
            .collect();
        let outcomes = interleaved(jobs, options.runs, &[&before, &after], options.limit())?;
        rows.push((heap, outcomes));
    }
    Ok(report::threads(&counts, options.runs, &rows))
}

/// Measures `heapdiff top` on four sizes of a heap.
fn linear(options: &Options, scratch: &Path) -> Result<String> {
    let heapdiff = heapdiff(options)?;
    let mut rows = Vec::new();
    for factor in [1.0, 2.0, 4.0, 10.0] {
        let dump = dumps::make_mixed_dump(options.scale() * factor, scratch)?;
        let job = plan::top(&heapdiff, &dump, scratch);
        let outcomes = interleaved(vec![job], options.runs, &[&dump], options.limit())?;
        if let Some(failure) = outcomes.iter().find_map(|outcome| outcome.failure.as_ref()) {
            bail!("heapdiff top failed: {failure}");
        }
        // The next run with a larger heap overwrites this output, so it is read now.
        let objects = report::objects(&outcomes);
        let bytes = fs::metadata(&dump)?.len();
        rows.push(report::Size {
            factor,
            bytes,
            objects,
            outcomes,
        });
    }
    report::linear(options.scale(), options.runs, &rows)
}

/// Returns the heapdiff to measure.
fn heapdiff(options: &Options) -> Result<PathBuf> {
    if let Some(given) = &options.heapdiff {
        return Ok(given.clone());
    }
    Ok(run::Products::build_for_measurement(options.smoke)?.heapdiff())
}

/// Runs all jobs one after the other, `runs` times, so that a change of the machine's speed affects all of them. A job
/// that failed is not run again.
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
            cold: None,
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

/// Drops a file from the page cache, except for pages in use.
fn drop_from_page_cache(file: &Path) -> Result<()> {
    let open = fs::File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    open.sync_all()?;
    #[cfg(target_os = "linux")]
    return nix::fcntl::posix_fadvise(
        &open,
        0,
        0,
        nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED,
    )
    .with_context(|| format!("cannot remove {} from the page cache", file.display()));
    #[cfg(not(target_os = "linux"))]
    anyhow::bail!("a cold page cache can be measured only on Linux");
}
