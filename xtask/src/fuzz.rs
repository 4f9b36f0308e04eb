//! Fuzzes the parsers of input files with hostile input. Uses the project's own harness, which runs on the stable
//! compiler and derives inputs from a seed, and also cargo-fuzz if it is installed.

mod soak;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use heapdiff_lab::run;

/// The targets in `fuzz/`.
const TARGETS: [&str; 12] = [
    "outline",
    "gzip",
    "segments",
    "histogram",
    "redaction",
    "repair",
    "snapshot",
    "diff",
    "kept",
    "recording",
    "join",
    "class",
];

/// The small dumps and recordings that fuzzing starts from. The harness writes them.
const SEEDS: &str = "fuzz/corpus/seeds";

/// Maximum input size in bytes. The largest seed recording is truncated to this size.
const LONGEST: usize = 24_000;

/// Options of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Seconds that the harness runs, and seconds that each target of cargo-fuzz runs. With --executions, each target
    /// runs this long in each round
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Seed of the harness [default: the time, so that runs differ]
    #[arg(long)]
    seed: Option<u64>,
    /// Run only the harness
    #[arg(long)]
    harness: bool,
    /// Run only these targets of cargo-fuzz
    #[arg(long, value_delimiter = ',', value_parser = TARGETS)]
    targets: Vec<String>,
    /// Build with the profile of the tests, so that nothing is rebuilt; integer overflow is not checked
    #[arg(long)]
    as_tested: bool,
    /// Run the targets in turn for a long time (a soak), round after round, until they have processed this many inputs
    /// in total. Failing inputs are kept and the other targets continue. A table is printed after each round. The
    /// harness runs before the targets if its seed files are missing, otherwise it does not run
    #[arg(long, value_name = "N", conflicts_with = "harness")]
    executions: Option<u64>,
    /// Start no new round of the targets after this many minutes
    #[arg(long, default_value_t = 480, requires = "executions")]
    minutes: u64,
}

impl Options {
    /// Returns the options of a short run that is the same each time.
    pub(crate) fn smoke() -> Self {
        Self {
            seconds: 10,
            seed: Some(2),
            harness: true,
            targets: Vec::new(),
            as_tested: true,
            executions: None,
            minutes: 0,
        }
    }

    fn targets(&self) -> Vec<&str> {
        if self.targets.is_empty() {
            TARGETS.to_vec()
        } else {
            self.targets.iter().map(String::as_str).collect()
        }
    }
}

pub(crate) fn fuzz(options: &Options) -> Result<()> {
    if options.executions.is_none() || !run::root().join(SEEDS).exists() {
        harness(options)?;
    }
    if let Some(executions) = options.executions {
        ensure!(
            has_cargo_fuzz(),
            "a long fuzzing run needs cargo-fuzz and a nightly toolchain"
        );
        let most = Duration::from_secs(options.minutes * 60);
        return soak::soak(&options.targets(), executions, options.seconds, most);
    }
    if options.harness || !has_cargo_fuzz() {
        return Ok(());
    }
    for target in options.targets() {
        run::run(&mut libfuzzer(target, options.seconds)?)?;
    }
    Ok(())
}

fn harness(options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |d| d.as_secs())
    });
    let mut harness = run::cargo();
    harness
        .args(["test", "--workspace", "--locked"])
        .args(["--test", "fuzz_smoke"]);
    if options.as_tested {
        harness.arg("--release");
    } else {
        // Build with checks of integer overflow, which the release build of the tests does not have.
        harness.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    }
    run::run(
        harness
            .args(["--", "--nocapture"])
            .env("FUZZ_SECONDS", options.seconds.to_string())
            .env("FUZZ_SEED", seed.to_string())
            .env("FUZZ_CORPUS", run::root().join(SEEDS)),
    )
}

/// Returns the command that runs one target with cargo-fuzz, which keeps new inputs in its corpus.
fn libfuzzer(target: &str, seconds: u64) -> Result<Command> {
    let found = run::root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&found).with_context(|| format!("{}", found.display()))?;
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fuzz", "run", target])
        // Put the corpus folder first, because libFuzzer writes new inputs to the first folder.
        .arg(found)
        .args([SEEDS, "--"])
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-rss_limit_mb=1024"])
        .arg(format!("-max_len={LONGEST}"))
        .current_dir(run::root());
    // The target `snapshot` reads half of its inputs with a memory limit, which creates temporary files. On a disk,
    // these are twenty times slower than in memory.
    let in_memory = Path::new("/dev/shm");
    if in_memory.is_dir() {
        command.env("TMPDIR", in_memory);
    }
    Ok(command)
}

fn has_cargo_fuzz() -> bool {
    let status = Command::new("cargo")
        .args(["+nightly", "fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}
