//! The steps that CI runs, in the order in which it runs them.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use tempfile::NamedTempFile;

use heapdiff_lab::{Measurement, java, run};

use crate::{browser, fuzz, install, junit, metrics, package, parquet, schemas, tests};

/// Options of `cargo xtask ci`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Begin with this step, for example after it failed
    #[arg(long, value_name = "STEP")]
    from: Option<Step>,
    /// Run only this step
    #[arg(long, value_name = "STEP", conflicts_with = "from")]
    only: Option<Step>,
}

/// A step, in the order in which CI runs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, clap::ValueEnum)]
enum Step {
    Fmt,
    Clippy,
    Doc,
    Schemas,
    Deny,
    Test,
    Junit,
    Browser,
    Parquet,
    Metrics,
    Fuzz,
    Bench,
    Overhead,
    Accuracy,
    Coverage,
    Jdks,
    Install,
    Package,
}

impl Step {
    fn run(self) -> Result<()> {
        match self {
            Self::Fmt => run::run(run::cargo().args(["fmt", "--all", "--check"])),
            // Clippy uses the release profile, like the tests. So the build scripts and macros are compiled only once
            // for both.
            Self::Clippy => run::run(
                run::cargo()
                    .args(["clippy", "--workspace", "--all-targets"])
                    .args(["--locked", "--release", "--", "-D", "warnings"]),
            ),
            Self::Doc => run::run(
                run::cargo()
                    .args(["doc", "--workspace", "--no-deps", "--locked", "--release"])
                    .args(["--document-private-items"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            ),
            Self::Schemas => schemas::schemas(&schemas::Options { check: true }),
            // Advisories are not checked. For them, cargo-deny clones the advisory database from GitHub, which some
            // machines that run this task cannot reach.
            Self::Deny => {
                run::run(run::cargo().args(["deny", "check", "licenses", "bans", "sources"]))
            }
            Self::Test => tests::test(),
            Self::Junit => junit::junit(&junit::Options::default()),
            Self::Browser => browser::browser(&browser::Options::plain()),
            Self::Parquet => parquet::parquet(),
            Self::Metrics => metrics::metrics(),
            Self::Fuzz => fuzz::fuzz(&fuzz::Options::smoke()),
            Self::Bench => Measurement::short_bench().run(),
            Self::Overhead => Measurement::short_overhead().run(),
            Self::Accuracy => Measurement::short_accuracy().run(),
            Self::Coverage => Measurement::short_coverage().run(),
            Self::Jdks => Measurement::short_jdks().run(),
            Self::Install => install::smoke(),
            Self::Package => package::package(&package::Options { verify: false }),
        }
    }
}

/// The step with the tests of the Java libraries. These tests wait most of the time, so the step runs in parallel with
/// the following steps, up to the step before [`FIRST_MEASURED`].
const BESIDE: Step = Step::Junit;
/// The first step that measures time. No other step runs in parallel with it or with later steps.
const FIRST_MEASURED: Step = Step::Bench;

/// Runs everything that has to pass before a change is merged, and prints how long each step took.
pub(crate) fn ci(options: &Options) -> Result<()> {
    if let Some(step) = options.only {
        return step.run();
    }
    let mut beside = None;
    for &step in Step::value_variants() {
        if options.from.is_some_and(|first| step < first) {
            continue;
        }
        if step == BESIDE {
            beside = Some(Beside::start(step)?);
            continue;
        }
        if step == FIRST_MEASURED
            && let Some(beside) = beside.take()
        {
            beside.end()?;
        }
        let start = Instant::now();
        step.run()?;
        println!("==> {step:?} took {} s", start.elapsed().as_secs());
    }
    Ok(())
}

/// A step that runs in its own process, in parallel with other steps. Its output is printed when it ends.
struct Beside {
    step: Step,
    child: Child,
    output: NamedTempFile,
    start: Instant,
}

impl Beside {
    fn start(step: Step) -> Result<Self> {
        let output = NamedTempFile::new()?;
        let name = step.to_possible_value().context("a name")?;
        println!("==> {step:?} runs beside the following steps");
        let child = Command::new(std::env::current_exe()?)
            .args(["ci", "--only", name.get_name()])
            .stdin(Stdio::null())
            .stdout(output.reopen()?)
            .stderr(output.reopen()?)
            .spawn()?;
        Ok(Self {
            step,
            child,
            output,
            start: Instant::now(),
        })
    }

    /// Waits for the step, and prints its output.
    fn end(mut self) -> Result<()> {
        let status = self.child.wait()?;
        let (step, seconds) = (self.step, self.start.elapsed().as_secs());
        print!("{}", std::fs::read_to_string(self.output.path())?);
        ensure!(status.success(), "{step:?} failed: {status}");
        println!("==> {step:?} took {seconds} s, beside other steps");
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // If another step failed, this step may still run. Wait for it instead of killing it, because its JVMs would
        // continue to run.
        let _ = self.child.wait();
    }
}

/// Regenerates the dumps and the recordings in testdata. If `joined` is true, regenerates only the files `joined*`.
/// These are dumps, and recordings of the same run. In the recordings, tests find the code that allocated the dumps'
/// objects.
pub(crate) fn dumps(joined: bool) -> Result<()> {
    java::ensure_jdk()?;
    let folder = run::root().join("testdata");
    let mut files = Vec::new();
    if !joined {
        let library = run::Products::build()?.agent();
        files.extend(testdata::regenerate_dumps(&folder)?);
        files.extend(testdata::make_sampled_dumps(&folder, &library, 9)?);
        files.push(testdata::make_recording(&folder)?);
    }
    let profiler = heapdiff_lab::async_profiler(&run::target_dir().join("overhead"))?;
    files.extend(testdata::make_joined(&folder, &profiler)?);
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}
