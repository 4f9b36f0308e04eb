//! Runs the agent's stress test for a given time.

use anyhow::{Result, ensure};
use testdata::jvm::Jdk;

use crate::{java, run};

/// Options of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Total minutes, approximately; divided among JDKs and collectors
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
}

/// Number of JVMs that the longest stress test starts for each JDK, one after the other: one for each collector, and
/// two with special options. The other stress tests run at the same time.
const JVMS: u64 = 7;

/// Runs the agent's stress tests and prints their figures: samples, dropped samples, memory.
pub(crate) fn soak(options: &Options) -> Result<()> {
    let home = java::ensure_jdk()?;
    let jdks = Jdk::all_for_scenarios().len() as u64;
    ensure!(jdks > 0, "no JDK found");
    let seconds = (options.minutes * 60 / (JVMS * jdks)).max(2);
    println!("{seconds} s for each JVM");
    run::run(
        run::cargo()
            .args([
                "test",
                "--release",
                "--locked",
                "--package",
                "heapdiff-agent",
            ])
            .args(["--test", "jvm", "--", "--nocapture", "stress::"])
            .env("JAVA_HOME", home.home())
            .env("HEAPDIFF_SOAK_SECONDS", seconds.to_string()),
    )
}
