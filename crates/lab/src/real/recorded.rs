//! Runs published programs that leak. The JVM runs Flight Recorder instead of the agent, and the programs do ten times
//! the usual work between two dumps. Checks the stacks that heapdiff finds with the recording and the dumps.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testdata::jvm::{DumpOptions, Jdk, Launch};

use super::programs::Program;
use super::{folder, innermost_program_frame, libraries, place, without_package};
use crate::run;

/// The JVM option that starts a flight recording as the documentation recommends.
const FLAG: &str = "-XX:StartFlightRecording:settings=default,memory-leaks=stack-traces";
/// Number of phases of a program between two dumps.
const TIMES: u32 = 10;
/// The name of a program, and its number of phases between two dumps, instead of [`TIMES`] for the other programs. The
/// keys in this program have the same hash code, so ten times the work would take a hundred times as long.
const SLOW: (&str, u32) = ("jooq-mapper", 2);
const DUMPS: u32 = 3;
/// Minimum percentage of right answers, among the answers with a stated probability of at least 0.9.
const SURE: usize = 97;

const HEAD: &str = "# Published programs that leak, with a stock recording

Made by `cargo xtask real --recording -o FILE`. Each program runs without the agent and with
`-XX:StartFlightRecording:settings=default,memory-leaks=stack-traces`. Ten phases of work are between two dumps, and two
in `jooq-mapper`.
An answer is right if the first stack has a frame of the code that allocates the leaking objects.

| program | JDK | right | allocated in | answer |
|---|---|---|---|---|
";

/// The result for the suspect with the expected holder.
struct Answer {
    is_right: bool,
    permille: Option<u64>,
    /// The first frame of the program in the suspect's first stack.
    frame: String,
    said: String,
}

/// Runs the programs, and prints or writes the table. Fails if a program could not be run, or if too few of the answers
/// with a stated probability of at least 0.9 are right ([`SURE`]).
pub(super) fn run_programs(
    programs: &[&Program],
    jdks: &[Jdk],
    heapdiff: &Path,
    output: Option<&Path>,
) -> Result<()> {
    let mut page = HEAD.to_owned();
    let (mut right, mut all) = (0, 0);
    let (mut sure, mut sure_and_right) = (0, 0);
    let mut failed = Vec::new();
    for program in programs {
        for jdk in jdks {
            let answer = one(program, jdk, heapdiff);
            let (name, jdk) = (program.name, jdk.major());
            let answer = match answer {
                Ok(answer) => answer,
                Err(e) => {
                    println!("{name} on JDK {jdk} could not be run: {e:#}");
                    failed.push(format!("{name} on JDK {jdk}"));
                    continue;
                }
            };
            let Some(answer) = answer else {
                writeln!(
                    page,
                    "| {name} | {jdk} | no | | the holder is not among the suspects |"
                )?;
                all += 1;
                continue;
            };
            let told = if answer.is_right { "right" } else { "WRONG" };
            println!("{name} on JDK {jdk}: {told}: {}", answer.said);
            all += 1;
            right += usize::from(answer.is_right);
            if answer.permille >= Some(900) {
                sure += 1;
                sure_and_right += usize::from(answer.is_right);
            }
            let Answer {
                is_right,
                frame,
                said,
                ..
            } = answer;
            let told = if is_right { "yes" } else { "no" };
            writeln!(page, "| {name} | {jdk} | {told} | `{frame}` | {said} |")?;
        }
    }
    page.push_str(&format!(
        "\n{right} of {all} right; stated at 0.9 or more: {sure_and_right} of {sure} right\n"
    ));
    match output {
        Some(path) => std::fs::write(path, page).with_context(|| path.display().to_string())?,
        None => println!("{page}"),
    }
    if !failed.is_empty() {
        bail!("could not be run: {}", failed.join(", "));
    }
    if sure_and_right * 100 < sure * SURE {
        bail!(
            "of answers stated at 0.9 or more, {sure_and_right} of {sure} are right, the goal is {SURE} %"
        );
    }
    Ok(())
}

/// Runs a program. Returns `None` if the report has no suspect with the expected holder.
fn one(program: &Program, jdk: &Jdk, heapdiff: &Path) -> Result<Option<Answer>> {
    let scratch = run::target_dir().join("real").join("recorded");
    let _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir_all(&scratch)?;
    let libraries = libraries(program, program.versions.map(|of| of.leaking))?;
    let classes = jdk.compile_with(&folder(program.name).join(program.source), &libraries)?;
    let class_path = format!("{}:{}/*", classes.display(), libraries.display());
    let main_class = program.source.trim_end_matches(".java");
    let times = if program.name == SLOW.0 {
        SLOW.1
    } else {
        TIMES
    };
    let mut target = Launch::class(jdk, class_path, main_class)
        .flag("-Xmx2g")
        .flag(format!("-Dphases={}", times * DUMPS))
        .flag(FLAG)
        .timeout(Duration::from_secs(900))
        .start()?;
    let mut dumps = Vec::new();
    for phase in 1..=times * DUMPS {
        if phase == 1 {
            target.wait_ready(1)?;
        } else {
            target.advance(phase)?;
        }
        if phase % times == 0 {
            let dump = scratch.join(format!("{phase}.hprof"));
            target.dump(&dump, DumpOptions::default())?;
            dumps.push(dump);
        }
    }
    let recording = scratch.join("rec.jfr");
    target.jcmd(["JFR.dump", &format!("filename={}", recording.display())])?;
    drop(target);
    let report = report(heapdiff, &dumps, &recording)?;
    std::fs::remove_dir_all(&scratch)?;
    let suspects = &report["suspects"];
    Ok(place(program, suspects).map(|place| {
        let suspect = &suspects[place - 1];
        let stack = &suspect["stacks"][0];
        let frame = innermost_program_frame(program, suspect).map(without_package);
        Answer {
            is_right: frame.is_some(),
            permille: stack["probability_permille"].as_u64(),
            frame: frame.unwrap_or_default().to_owned(),
            said: suspect["joined"].as_str().unwrap_or("no stack").to_owned(),
        }
    }))
}

fn report(heapdiff: &Path, dumps: &[PathBuf], recording: &Path) -> Result<Value> {
    let mut compare = Command::new(heapdiff);
    compare.args(dumps).arg("--recording").arg(recording).args([
        "--no-index",
        "--format",
        "json",
        "--progress",
        "never",
    ]);
    let done = compare.output().context("cannot start heapdiff")?;
    let error = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{error}");
    Ok(serde_json::from_slice(&done.stdout)?)
}
