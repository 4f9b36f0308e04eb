//! The agent's stress test, for as long as asked.

use anyhow::{Result, ensure};
use testdata::jvm::Jdk;

use crate::{java, run};

/// How long.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Minutes in all, about; shared out among JDKs and collectors
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
}

/// JVMs that the longest of the stress tests starts one after the other for each JDK: one for each
/// collector, and two with options of their own. The other tests run beside it.
const JVMS: u64 = 7;

/// Runs the stress tests of the agent and shows their figures: samples, what was dropped, memory.
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
