//! Measures the CPU time of a scope of the Java library heapdiff-labels, with and without the agent.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use heapdiff_lab::{java, run};
use testdata::jvm::Jdk;
use testdata::programs;

/// Number of measurements in each JVM.
const ROUNDS: &str = "21";
/// Number of JVMs with the agent, and number of JVMs without it. They run alternately.
const JVMS: usize = 3;

/// Prints, for each JDK, the nanoseconds that a scope with two labels takes.
pub(crate) fn labels(agent: Option<PathBuf>) -> Result<()> {
    let agent = match agent {
        Some(agent) => std::path::absolute(agent)?,
        None => run::Products::build()?.agent(),
    };
    for jdk in java::jdks(&[])? {
        let classes = jdk.compile_all(&programs::scope_cost())?;
        let with_agent = format!("-agentpath:{}", agent.display());
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..JVMS {
            times[0].push(measure(&jdk, &classes, None)?);
            times[1].push(measure(&jdk, &classes, Some(&with_agent))?);
        }
        let [without, with] = times.map(|mut times| {
            times.sort_unstable();
            times[JVMS / 2]
        });
        println!(
            "JDK {}: a scope with two labels takes {without} ns without the agent, {with} ns with it",
            jdk.major()
        );
    }
    Ok(())
}

fn measure(jdk: &Jdk, classes: &Path, flag: Option<&str>) -> Result<u64> {
    let done = Command::new(jdk.java())
        .args(flag)
        .arg("-cp")
        .arg(classes)
        .args(["ScopeCost", ROUNDS])
        .output()
        .context("java")?;
    ensure!(done.status.success(), "{done:?}");
    let text = String::from_utf8_lossy(&done.stdout);
    text.trim().parse().with_context(|| text.into_owned())
}
