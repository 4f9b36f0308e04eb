//! Runs published programs that are made to leak, and checks the reports on them.
//!
//! The drivers in `testdata/real` have one source file each. A `pom.xml` beside it names the libraries, which Maven
//! fetches. Each driver runs in three phases, as the scenarios do, with the agent loaded. If a library's own issue
//! tracker describes a leak and its fix, the same driver runs with the version that leaks and with the fixed version.
//! The report on the fixed version must not contain the leak. Programs that look like leaks but have none must not
//! raise an alarm.

mod healthy;
mod programs;
mod recent;
mod recorded;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testdata::jvm::{DumpOptions, Jdk, Launch};

use self::healthy::{HEALTHY, Healthy};
use self::programs::{PROGRAMS, Program};
use self::recent::RECENT;
use crate::{java, run};

/// Minimum percentage of runs in which the report on the last dump alone names the holder among the first three
/// suspects.
const ONE_DUMP: usize = 90;

/// If a suspect of a healthy program grew by more than this number of bytes, it is a false alarm.
const ALARMING: i64 = 500_000;

/// The default collector.
const G1: &str = "G1";

/// Options of `cargo xtask real`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Run only this program
    name: Option<String>,
    /// Use only this JDK (major version)
    #[arg(long)]
    jdk: Option<u32>,
    /// Collector of the programs: G1, Serial, Parallel or Z
    #[arg(long, value_name = "NAME", default_value = G1)]
    collector: String,
    /// Run only the programs that leak, with Flight Recorder instead of the agent, and with ten times the work
    #[arg(long, conflicts_with = "collector")]
    recording: bool,
    #[command(flatten)]
    tested: run::Tested,
    /// Write a table of the results to this Markdown file, instead of printing the reports
    #[arg(short, long)]
    output: Option<PathBuf>,
}

/// Runs the programs. Fails if the first suspect of a report is not the expected one.
pub(crate) fn run_programs(options: &Options) -> Result<()> {
    let all = || PROGRAMS.iter().chain(RECENT);
    let is_chosen = |name: &str| options.name.as_deref().is_none_or(|chosen| chosen == name);
    let chosen: Vec<&Program> = all().filter(|p| is_chosen(p.name)).collect();
    let calm: Vec<&Healthy> = HEALTHY.iter().filter(|p| is_chosen(p.name)).collect();
    let names = all().map(|p| p.name).chain(HEALTHY.iter().map(|p| p.name));
    ensure!(
        !chosen.is_empty() || !calm.is_empty(),
        "there is no program of this name; the programs are {}",
        names.collect::<Vec<_>>().join(", ")
    );
    let jdks = java::jdks(options.jdk.as_slice())?;
    let products = options.tested.build_products(false)?;
    if options.recording {
        let output = options.output.as_deref();
        return recorded::run_programs(&chosen, &jdks, &products.0, output);
    }
    let mut page = match &*options.collector {
        G1 => String::from(HEAD),
        other => HEAD.replacen(
            "(interval 4 KiB)",
            &format!("(interval 4 KiB, collector {other})"),
            1,
        ),
    };
    let mut lessons = String::new();
    let mut quiet = String::from(QUIET);
    let mut wrong = Vec::new();
    let (mut runs, mut missed) = (0, Vec::new());
    for program in chosen {
        let leaking = libraries(program, program.versions.map(|of| of.leaking))?;
        write!(
            lessons,
            "- **{}**: {} {}",
            program.name, program.about, program.verdict
        )?;
        if let Some(of) = program.versions {
            write!(
                lessons,
                " Version {} leaks, {} does not: {}.",
                of.leaking, of.mended, of.issue
            )?;
        }
        lessons.push('\n');
        for jdk in &jdks {
            let told = format!("{} on JDK {}", program.name, jdk.major());
            let about = (program.name, program.source);
            let report = one(about, jdk, &leaking, (&options.collector, &products))?;
            let suspects = &report.json["suspects"];
            let alone = place(program, &report.alone["suspects"]);
            page.push_str(&row(program, jdk, suspects, alone));
            if options.output.is_none() {
                println!("{told}:\n\n{}", report.text);
            }
            if let Some(fault) = fault(program, &options.collector, &suspects[0]) {
                wrong.push(format!("{told}: {fault}"));
            }
            runs += 1;
            if alone.is_none_or(|place| place > 3) {
                let told_alone = report.alone["suspects"].as_array().into_iter().flatten();
                let holders: Vec<&str> = told_alone.filter_map(|s| s["holder"].as_str()).collect();
                missed.push(format!("{told}, last dump only: {}", holders.join(", ")));
            }
            let Some(of) = program.versions else {
                continue;
            };
            let mended = libraries(program, Some(of.mended))?;
            let report = one(about, jdk, &mended, (&options.collector, &products))?;
            let alarms = alarms(&report.json["suspects"]);
            if options.output.is_none() && !alarms.is_empty() {
                println!("{told}, version {}:\n\n{}", of.mended, report.text);
            }
            let said = if alarms.is_empty() {
                "nothing".to_owned()
            } else {
                alarms.join("; ")
            };
            writeln!(
                quiet,
                "| {} | {} | {} | {said} |",
                program.name,
                of.mended,
                jdk.major()
            )?;
            if !alarms.is_empty() {
                wrong.push(format!("{told}, version {}: {said}", of.mended));
            }
        }
    }
    let mut healthy = String::from(CALM);
    for program in calm {
        let libraries = java::libraries(&folder(program.name), program.name, None)?;
        for jdk in &jdks {
            let about = (program.name, program.source);
            let report = one(about, jdk, &libraries, (&options.collector, &products))?;
            let suspects = &report.json["suspects"];
            let (name, jdk) = (program.name, jdk.major());
            writeln!(
                healthy,
                "| {name} | {jdk} | {} | {} |",
                verdicts(suspects),
                program.about
            )?;
            let alarms = alarms_above(suspects, ALARMING);
            if !alarms.is_empty() {
                wrong.push(format!("{name} on JDK {jdk}: {}", alarms.join("; ")));
            }
        }
    }
    write!(
        page,
        "{quiet}{healthy}\n## What leaks, and what the report shows\n\n{lessons}"
    )?;
    match &options.output {
        Some(path) => std::fs::write(path, page).with_context(|| path.display().to_string())?,
        None => println!("{page}"),
    }
    println!(
        "one dump: the holder is among the first three suspects in {} of {runs} runs",
        runs - missed.len()
    );
    if missed.len() * 100 > runs * (100 - ONE_DUMP) && options.name.is_none() {
        wrong.append(&mut missed);
    }
    for miss in missed {
        println!("{miss}");
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

const HEAD: &str = "# Published programs that leak

Made by `cargo xtask real -o FILE`. Each program runs with the agent (interval 4 KiB); dumps
are taken after each of three equal phases of work. Each row describes the suspect with the leaking field in the report of three dumps: its rank there, its size in
each dump, how much of its growth the samples explain, the program's frame in the stack that allocated most of it, and the
rank of the same holder in the report of the last dump.
`cargo xtask real tomcat --jdk 17` prints the whole report.

| program | JDK | rank | verdict | holder | class | objects in each dump | retained MiB in each dump | MiB of growth that samples explain | allocated in | rank in last dump |
|---|---|---|---|---|---|---|---|---|---|---|
";

const QUIET: &str = "
## The same work with a version that does not leak

| program | version without the leak | JDK | suspects with the verdict leak or growth |
|---|---|---|---|
";

const CALM: &str = "
## Programs that look like leaks and are not

| program | JDK | verdicts of its suspects | what the program does |
|---|---|---|---|
";

/// Returns the verdicts of all suspects, with the growth of each in bytes.
fn verdicts(suspects: &Value) -> String {
    let suspects = suspects.as_array().into_iter().flatten();
    let all: Vec<String> = suspects
        .map(|s| format!("{} {:+}", s["verdict"].as_str().unwrap_or("none"), grown(s)))
        .collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}

/// Returns the retained bytes of a suspect in the last dump minus its retained bytes in the first dump.
fn grown(suspect: &Value) -> i64 {
    let retained = suspect["retained_bytes"].as_array();
    let end = |of: Option<&Value>| of.and_then(Value::as_i64).unwrap_or(0);
    retained.map_or(0, |of| end(of.last()) - end(of.first()))
}

/// Returns the suspects with the verdict leak or growth.
fn alarms(suspects: &Value) -> Vec<String> {
    alarms_above(suspects, i64::MIN)
}

/// Returns the suspects with the verdict leak or growth that grew by more than `bytes`.
fn alarms_above(suspects: &Value, bytes: i64) -> Vec<String> {
    let suspects = suspects.as_array().into_iter().flatten();
    let alarming = suspects.filter(|s| s["verdict"] == "leak" || s["verdict"] == "growth");
    let alarming = alarming.filter(|s| grown(s) > bytes);
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    alarming
        .map(|s| {
            let (verdict, holder) = (text(&s["verdict"]), text(&s["holder"]));
            format!("{verdict} `{holder}` {}", s["retained_bytes"])
        })
        .collect()
}

fn folder(name: &str) -> PathBuf {
    run::root().join("testdata/real").join(name)
}

/// Fetches the libraries of the program and returns the folder with them.
fn libraries(program: &Program, version: Option<&str>) -> Result<PathBuf> {
    java::libraries(&folder(program.name), program.name, version)
}

/// The reports on the dumps of one leaking program.
struct Answer {
    /// First lines of the text report on all dumps.
    text: String,
    json: Value,
    /// Report on the last dump alone.
    alone: Value,
}

/// Runs a program, and reports on its dumps.
fn one(
    (name, source): (&str, &str),
    jdk: &Jdk,
    libraries: &Path,
    (collector, (heapdiff, agent)): (&str, &(PathBuf, PathBuf)),
) -> Result<Answer> {
    let scratch = run::target_dir().join("real").join("dumps");
    std::fs::create_dir_all(&scratch)?;
    // The program is compiled before it starts, as real programs are. If the JVM ran the source file directly, the Java
    // compiler would retain most of the heap.
    let classes = jdk.compile_with(&folder(name).join(source), libraries)?;
    let class_path = format!("{}:{}/*", classes.display(), libraries.display());
    let main_class = source.trim_end_matches(".java");
    let mut target = Launch::class(jdk, class_path, main_class)
        .flag("-Xmx1g")
        .flag(format!("-XX:+Use{collector}GC"))
        .agent(agent, "interval=4k")
        .timeout(Duration::from_secs(120))
        .start()?;
    let mut dumps = Vec::new();
    for phase in 1..=3 {
        if phase == 1 {
            target.wait_ready(1)?;
        } else {
            target.advance(phase)?;
        }
        let dump = scratch.join(format!("{name}-{phase}.hprof"));
        // There may be a dump of an earlier run, and a JVM does not overwrite files.
        let _ = std::fs::remove_file(&dump);
        target.dump(&dump, DumpOptions::default())?;
        dumps.push(dump);
    }
    drop(target);
    let report = |dumps: &[PathBuf], format: &str, top: &str| -> Result<String> {
        let mut heapdiff = Command::new(heapdiff);
        heapdiff
            .current_dir(&scratch)
            .args(dumps.iter().filter_map(|d| d.file_name()))
            .args(["--top", top, "--no-index", "--format", format]);
        let done = heapdiff.output().context("cannot start heapdiff")?;
        ensure!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        Ok(String::from_utf8(done.stdout)?)
    };
    let text = report(&dumps, "text", "1")?;
    let json: Value = serde_json::from_str(&report(&dumps, "json", "10")?)?;
    let last = &dumps[dumps.len() - 1..];
    let alone: Value = serde_json::from_str(&report(last, "json", "10")?)?;
    for dump in dumps {
        std::fs::remove_file(dump)?;
    }
    Ok(Answer { text, json, alone })
}

/// Returns the position of the first suspect with an accepted holder, counted from 1.
fn place(program: &Program, suspects: &Value) -> Option<usize> {
    let mut listed = suspects.as_array().into_iter().flatten();
    let found = listed.position(|suspect| {
        let holder = suspect["holder"].as_str();
        holder.is_some_and(|holder| program.holders.contains(&holder))
    });
    found.map(|at| at + 1)
}

/// Returns the table row of a program, with the figures of the first suspect that has an accepted holder. `alone` is
/// the position of the first such suspect in the report on a single dump, the last one.
fn row(program: &Program, jdk: &Jdk, suspects: &Value, alone: Option<usize>) -> String {
    let (name, jdk) = (program.name, jdk.major());
    let alone = alone.map_or("not among the ten suspects".to_owned(), |place| {
        place.to_string()
    });
    let Some(place) = place(program, suspects) else {
        return format!(
            "| {name} | {jdk} | not among the ten suspects | | | | | | | | {alone} |\n"
        );
    };
    let suspect = &suspects[place - 1];
    let text = |key: &str| suspect[key].as_str().unwrap_or_default();
    let series = |key: &str, shown: &dyn Fn(u64) -> String| {
        let figures = suspect[key].as_array().into_iter().flatten();
        let shown: Vec<String> = figures.filter_map(Value::as_u64).map(shown).collect();
        shown.join(", ")
    };
    let covered = |key: &str| mebibytes(suspect["coverage"][key].as_u64().unwrap_or(0));
    format!(
        "| {name} | {jdk} | {} | {} | `{}` | `{}` | {} | {} | {} of {} | `{}` | {alone} |\n",
        suspect["rank"],
        text("verdict"),
        text("holder"),
        text("class"),
        series("objects", &|n| n.to_string()),
        series("retained_bytes", &mebibytes),
        covered("sampled_bytes"),
        covered("growth_bytes"),
        innermost_program_frame(program, suspect).map_or("", without_package),
    )
}

/// Returns the mebibytes with one decimal.
fn mebibytes(bytes: u64) -> String {
    let tenths = (bytes * 10 + (1 << 19)) >> 20;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Returns `Foo.bar(Foo.java:3)` for `com.acme.Foo.bar(Foo.java:3)`.
fn without_package(frame: &str) -> &str {
    let name = frame.split('(').next().unwrap_or(frame);
    let class = name.rfind('.').unwrap_or(0);
    name[..class]
        .rfind('.')
        .map_or(frame, |dot| &frame[dot + 1..])
}

/// Returns the innermost frame of the program in the stack that allocated the most bytes.
fn innermost_program_frame<'a>(program: &Program, suspect: &'a Value) -> Option<&'a str> {
    // If no stack of the held objects is known, take the stack that allocated most objects of the class.
    let first = suspect["stacks"]
        .get(0)
        .unwrap_or(&suspect["allocated_at"][0]);
    let frames = first["frames"].as_array().into_iter().flatten();
    let mut frames = frames.filter_map(Value::as_str);
    frames.find(|frame| frame.starts_with(program.allocator))
}

fn fault(program: &Program, collector: &str, suspect: &Value) -> Option<String> {
    for (key, wanted) in [("holder", program.holders), ("class", program.classes)] {
        let found = suspect[key].as_str().unwrap_or("nothing");
        if !wanted.contains(&found) {
            return Some(format!(
                "the {key} of the first suspect is {found}, expected {}",
                wanted.join(" or ")
            ));
        }
    }
    if suspect["verdict"] != "leak" && suspect["verdict"] != "growth" {
        return Some(format!(
            "the verdict of the first suspect is {}",
            suspect["verdict"]
        ));
    }
    if innermost_program_frame(program, suspect).is_none() {
        return Some(format!(
            "the stack of the first suspect has no frame of {}",
            program.allocator
        ));
    }
    if collector == "Z" {
        // With ZGC the agent tracks only a few samples, so the percentage of the growth that these samples represent
        // varies at random.
        return None;
    }
    // The samples should represent about as many bytes as the suspect grew by. If the suspect grew by less than this
    // number of bytes, there are too few samples for the check.
    const ENOUGH: u64 = 1 << 20;
    let figure = |key: &str| suspect["coverage"][key].as_u64().unwrap_or(0);
    if figure("growth_bytes") < ENOUGH {
        return None;
    }
    let permille = figure("sampled_bytes") * 1000 / figure("growth_bytes").max(1);
    (!(700..1300).contains(&permille)).then(|| format!("the samples explain only {permille}/1000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_the_right_holder_is_found() {
        let program = &PROGRAMS[0];
        let suspects = serde_json::json!([{ "holder": "a.B.c" }, { "holder": program.holders[0] }]);
        assert_eq!(place(program, &suspects), Some(2));
        assert_eq!(place(program, &Value::Null), None);
    }

    #[test]
    fn figures_and_frames_are_short() {
        assert_eq!(mebibytes(10 << 20), "10.0");
        assert_eq!(mebibytes(7_550_000), "7.2");
        assert_eq!(
            without_package("com.acme.Foo.bar(Foo.java:3)"),
            "Foo.bar(Foo.java:3)"
        );
        assert_eq!(
            without_package("Foo.bar(Foo.java:3)"),
            "Foo.bar(Foo.java:3)"
        );
    }
}
