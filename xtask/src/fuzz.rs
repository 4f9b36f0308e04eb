//! Hostile input: the seeded harness on the stable compiler, and cargo-fuzz where it is installed.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::run;

/// The targets in `fuzz/`.
const TARGETS: [&str; 7] = [
    "outline",
    "gzip",
    "histogram",
    "snapshot",
    "diff",
    "kept",
    "recording",
];

/// The small dumps and recordings that fuzzing starts from, written by the harness.
const SEEDS: &str = "fuzz/corpus/seeds";

/// How long.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Seconds for the harness, and for each target of cargo-fuzz
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Seed of the harness; the time unless given, so that runs differ
    #[arg(long)]
    seed: Option<u64>,
    /// Only the harness
    #[arg(long)]
    harness: bool,
    /// Built as the tests are, so that nothing is built for it: overflow is not checked
    #[arg(long)]
    as_tested: bool,
}

impl Options {
    /// A short run, the same each time.
    pub(crate) fn smoke() -> Self {
        Self {
            seconds: 10,
            seed: Some(2),
            harness: true,
            as_tested: true,
        }
    }
}

pub(crate) fn fuzz(options: &Options) -> Result<()> {
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
        // Overflow is checked here, unlike in the release tests.
        harness.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    }
    run::run(
        harness
            .args(["--", "--nocapture"])
            .env("FUZZ_SECONDS", options.seconds.to_string())
            .env("FUZZ_SEED", seed.to_string())
            .env("FUZZ_CORPUS", run::root().join(SEEDS)),
    )?;
    if options.harness || !has_cargo_fuzz() {
        return Ok(());
    }
    for target in TARGETS {
        let found = run::root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&found).with_context(|| format!("{}", found.display()))?;
        run::run(
            Command::new("cargo")
                .args(["+nightly", "fuzz", "run", target])
                // What is found goes to the first folder.
                .arg(found)
                .args([SEEDS, "--"])
                .arg(format!("-max_total_time={}", options.seconds))
                .args(["-timeout=10", "-rss_limit_mb=1024"])
                .current_dir(run::root()),
        )?;
    }
    Ok(())
}

fn has_cargo_fuzz() -> bool {
    let status = Command::new("cargo")
        .args(["+nightly", "fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}
