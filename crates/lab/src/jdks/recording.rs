//! Joins the dumps of a JVM without the agent with a recording of Flight Recorder.

use std::time::Duration;

use anyhow::Result;
use testdata::jvm::{DumpOptions, Jdk, Launch};
use testdata::programs;

use super::Tools;
use super::cell::{Outcome, check_leak};

/// Number of phases between the dumps. It is large, because Flight Recorder takes few samples.
const PHASES: u32 = 10;

/// Records the test program of the matrix. The first stack of the planted leak must contain the leaking method.
pub(super) fn join(jdk: &Jdk, tools: &Tools) -> Outcome {
    println!("JDK {} with Flight Recorder", jdk.version());
    let mut outcome = Outcome::default();
    outcome.check("recording", joined(jdk, tools));
    outcome
}

fn joined(jdk: &Jdk, tools: &Tools) -> Result<()> {
    let settings = match jdk.major() {
        // In JDK 8 and JDK 11, Flight Recorder's default settings record no allocations.
        ..17 => "profile",
        _ => "default,memory-leaks=stack-traces",
    };
    let classes = jdk.compile(&programs::jdks("Jdks.java"))?;
    let record = format!("-XX:StartFlightRecording:settings={settings}");
    let mut target = Launch::class(jdk, classes, "Jdks")
        .flags(["-Xmx256m", &record])
        .timeout(Duration::from_secs(120))
        .start()?;
    target.wait_ready(0)?;
    let file = |name: &str| tools.scratch.join(name).display().to_string();
    let [before, after, recording] = ["before.hprof", "after.hprof", "rec.jfr"].map(file);
    target.dump(before.as_ref(), DumpOptions::default())?;
    for phase in 1..=PHASES {
        target.advance(phase)?;
    }
    target.dump(after.as_ref(), DumpOptions::default())?;
    target.jcmd(["JFR.dump", &format!("filename={recording}")])?;
    target.finish()?;
    let args = [
        &before,
        &after,
        "--recording",
        &recording,
        "--format",
        "json",
        "--no-index",
    ];
    check_leak(&tools.run(&args)?, true)
}
