//! Measures how often a JVM that runs out of memory leaves a dump or a trace whose report names the leak. Also measures
//! what the guard costs the JVM. The guard is the agent's option to dump the heap before the JVM dies. Some JVMs throw
//! OutOfMemoryError. The kernel kills other JVMs at the limit of their control group.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testdata::cgroup::Group;
use testdata::jvm::Jdk;

use crate::run::{Tested, root};
use crate::{java, run};

/// Options of `cargo xtask guard`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    tested: Tested,
    /// Number of JVMs for each collector and cause, with the guard and without
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Use only this collector, such as G1; may be repeated
    #[arg(long, value_name = "NAME")]
    collector: Vec<String>,
    /// Only JVMs that die for this cause
    #[arg(long)]
    cause: Option<Cause>,
    /// Major version of the JDK [default: the latest that is found]
    #[arg(long, value_name = "MAJOR")]
    jdk: Option<u32>,
    /// Skip the JVMs that run without the guard for comparison
    #[arg(long)]
    no_baseline: bool,
}

/// The reason why a JVM dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Cause {
    /// It throws OutOfMemoryError.
    Heap,
    /// The kernel kills it at the limit of its control group.
    Container,
    /// The test kills the JVM and the child that writes its dump, at some moment of the dump. Then the test kills
    /// `heapdiff repair`, too.
    Kill,
}

const COLLECTORS: [&str; 4] = ["G1", "Parallel", "Serial", "Shenandoah"];
/// Kilobytes per second that the program keeps. The runs use these rates in turn.
const RATES: [u32; 3] = [12 << 10, 8 << 10, 4 << 10];
const HEAP_MIB: u32 = 96;
/// Memory limit of the control group. The heap and the other memory of the JVM together become larger than this.
const GROUP_MIB: u64 = 200;
const GROUP_HEAP_MIB: u32 = 190;
/// The guard dumps the heap if at least this percentage of the control group's memory is in use.
const GROUP_SHARE: &str = "60%";
/// If a dump does not grow for this time, the test stops waiting for the dump.
const GIVEN_UP: Duration = Duration::from_secs(10);

/// The kind of file that is left after the JVM's death, and whose report names the leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Dump,
    /// An incomplete dump, after `heapdiff repair`.
    Repaired,
    Trace,
    Nothing,
}

/// How a JVM died.
struct Death {
    lived: Duration,
    /// The longest pause that the program measured, in milliseconds.
    pause_ms: u64,
    left: Left,
    /// The guard's last message.
    said: String,
}

/// Runs the JVMs, and prints a line for each JVM and the totals.
pub(crate) fn guard(options: &Options) -> Result<()> {
    let (heapdiff, agent) = options.tested.build_products(false)?;
    let jdks = java::for_agent(&[], options.jdk.as_slice())?;
    let jdk = jdks.last().context("no JDK")?;
    let classes = java::ensure_jdk()?.compile(&root().join("testdata/java/guard/Dying.java"))?;
    let lab = Lab {
        heapdiff,
        agent,
        jdk,
        classes,
    };
    let is_chosen = |name: &&str| {
        options.collector.is_empty() || options.collector.iter().any(|chosen| chosen == name)
    };
    let mut lines = Vec::new();
    for cause in [Cause::Heap, Cause::Container, Cause::Kill] {
        if options.cause.is_some_and(|chosen| chosen != cause) {
            continue;
        }
        for collector in COLLECTORS.into_iter().filter(is_chosen) {
            if cause == Cause::Kill {
                for number in 1..=options.runs {
                    let found = lab.kill(collector, number)?;
                    println!("Kill {collector} {number}: {found}");
                }
                continue;
            }
            let (mut guarded, mut plain) = (Vec::new(), Vec::new());
            for (number, rate) in (1..=options.runs).zip(RATES.into_iter().cycle()) {
                let death = lab.run((cause, rate), collector, true)?;
                println!(
                    "{cause:?} {collector} {number} ({} MiB/s): {:?}, {} ms, pause {} ms; {}",
                    rate >> 10,
                    death.left,
                    death.lived.as_millis(),
                    death.pause_ms,
                    death.said
                );
                guarded.push(death);
                if !options.no_baseline {
                    plain.push(lab.run((cause, rate), collector, false)?);
                }
            }
            lines.push(line(cause, collector, &guarded, &plain));
        }
    }
    println!("JDK {}", jdk.version());
    if lines.is_empty() {
        return Ok(());
    }
    println!(
        "| cause | collector | JVMs | dump | repaired dump | trace | nothing | time to death, ms (median, 90 %, most) | without guard | longest pause, ms | without guard |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

fn line(cause: Cause, collector: &str, guarded: &[Death], plain: &[Death]) -> String {
    let count = |left| guarded.iter().filter(|death| death.left == left).count();
    let lived = |deaths: &[Death]| spread(deaths.iter().map(|d| d.lived.as_millis() as u64));
    let pauses = |deaths: &[Death]| spread(deaths.iter().map(|d| d.pause_ms));
    format!(
        "| {cause:?} | {collector} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        guarded.len(),
        count(Left::Dump),
        count(Left::Repaired),
        count(Left::Trace),
        count(Left::Nothing),
        lived(guarded),
        lived(plain),
        pauses(guarded),
        pauses(plain)
    )
}

/// Returns the median, the 90th percentile and the maximum of the figures, as text.
fn spread(figures: impl Iterator<Item = u64>) -> String {
    let mut figures: Vec<u64> = figures.collect();
    figures.sort_unstable();
    let at = |percent: usize| figures.get((figures.len() * percent / 100).min(figures.len() - 1));
    if figures.is_empty() {
        return "-".to_owned();
    }
    let shown = [at(50), at(90), at(100)].map(|figure| figure.copied().unwrap_or(0));
    format!("{}, {}, {}", shown[0], shown[1], shown[2])
}

struct Lab<'a> {
    heapdiff: PathBuf,
    agent: PathBuf,
    jdk: &'a Jdk,
    classes: PathBuf,
}

impl Lab<'_> {
    fn run(&self, (cause, rate): (Cause, u32), collector: &str, is_guarded: bool) -> Result<Death> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        let trace = at.join("trace.db");
        let java = self.java((cause, rate), collector, at, is_guarded);
        let group = match cause {
            Cause::Container => Some(group(GROUP_MIB)?),
            _ => None,
        };
        let mut java = group
            .as_ref()
            .map(|group| group.within(&java))
            .unwrap_or(java);
        let (out, log) = (at.join("out"), at.join("log"));
        java.stdout(File::create(&out)?).stderr(File::create(&log)?);
        java.stdin(Stdio::null());
        let started = Instant::now();
        let status = java.status().context("the JVM cannot be started")?;
        let lived = started.elapsed();
        ensure!(
            !status.success(),
            "the program ended before its memory was full"
        );
        let pauses = fs::read_to_string(&out)?;
        let pauses = pauses
            .lines()
            .filter_map(|line| line.strip_prefix("pause "));
        let pause_ms = pauses.filter_map(|ms| ms.parse().ok()).max().unwrap_or(0);
        let said = fs::read_to_string(&log)?;
        let said = said.lines().rfind(|line| line.contains("guard: "));
        Ok(Death {
            lived,
            pause_ms,
            left: if is_guarded {
                self.left(at, &trace)?
            } else {
                Left::Nothing
            },
            said: said.unwrap_or_default().to_owned(),
        })
    }

    /// Returns the command that starts the program.
    fn java(
        &self,
        (cause, rate): (Cause, u32),
        collector: &str,
        folder: &Path,
        is_guarded: bool,
    ) -> Command {
        let heap = match cause {
            Cause::Heap | Cause::Kill => HEAP_MIB,
            Cause::Container => GROUP_HEAP_MIB,
        };
        let share = match cause {
            Cause::Heap | Cause::Kill => "guard=90%".to_owned(),
            Cause::Container => format!("guard-container={GROUP_SHARE}"),
        };
        let guard = match is_guarded {
            true => format!(",{share},guard-to={}", folder.display()),
            false => String::new(),
        };
        let mut java = Command::new(self.jdk.java());
        java.arg(format!("-XX:+Use{collector}GC"))
            .arg(format!("-Xmx{heap}m"))
            // The JVM without a guard writes a trace, too, so that the measured difference is the cost of the guard
            // alone.
            .arg(format!(
                "-agentpath:{}=interval=64k,trace={}{guard}",
                self.agent.display(),
                folder.join("trace.db").display()
            ))
            .arg("-cp")
            .arg(&self.classes)
            .args(["Dying", &rate.to_string()]);
        java
    }

    /// Kills a JVM and the child that writes its dump, and then the command that repairs the dump. Fails if the report
    /// on an incomplete dump has no warning, or if an incomplete file has the name of a complete one.
    fn kill(&self, collector: &str, number: u32) -> Result<&'static str> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        let group = group(1024)?;
        let mut java = group.within(&self.java((Cause::Kill, RATES[0]), collector, at, true));
        java.stdout(Stdio::null()).stderr(Stdio::null());
        let mut java = java.stdin(Stdio::null()).spawn()?;
        let is_begun = || Ok::<_, anyhow::Error>(with_ending(at, ".part")?.is_some());
        while !is_begun()? && java.try_wait()?.is_none() {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(u64::from(number * 61 % 1500)));
        group.kill();
        java.wait()?;
        let Some(part) = with_ending(at, ".part")? else {
            let dump = with_ending(at, ".hprof")?.context("neither a dump nor a part")?;
            ensure!(!self.is_warned_of(&dump)?, "a complete dump has a warning");
            return Ok("complete");
        };
        ensure!(with_ending(at, ".hprof")?.is_none(), "two dumps");
        let [killed, repaired] = ["killed", "repaired"].map(|name| at.join(name));
        let repair = |to: &Path| {
            let mut command = Command::new(&self.heapdiff);
            command.arg("repair").arg(&part).arg("-o").arg(to);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let mut child = repair(&killed).spawn()?;
        sleep(Duration::from_millis(u64::from(number * 7 % 120)));
        child.kill()?;
        child.wait()?;
        if !repair(&repaired).status()?.success() {
            let mut report = Command::new(&self.heapdiff);
            let output = report.args(["top", "--no-index"]).arg(&part).output()?;
            ensure!(!killed.exists(), "repair wrote a dump without objects");
            ensure!(
                !output.status.success(),
                "`top` printed a report for a dump without objects"
            );
            return Ok("no objects yet");
        }
        ensure!(
            !killed.exists() || fs::read(&killed)? == fs::read(&repaired)?,
            "an incomplete file has the name of a complete dump"
        );
        for file in [&part, &repaired] {
            ensure!(
                self.is_warned_of(file)?,
                "{} has no warning",
                file.display()
            );
        }
        Ok("incomplete, with a warning")
    }

    fn is_warned_of(&self, dump: &Path) -> Result<bool> {
        let mut command = Command::new(&self.heapdiff);
        command
            .args(["top", "--no-index", "--format", "json"])
            .arg(dump);
        let report = json(&mut command)?;
        let warnings = report["snapshot"]["warnings"].as_array();
        Ok(warnings.is_some_and(|warnings| !warnings.is_empty()))
    }

    /// Waits until the dump is complete or has stopped growing for [`GIVEN_UP`]. Then looks for a file whose report
    /// names the leak, and returns the kind of this file. The order is: the dump, the repaired dump, the trace.
    fn left(&self, folder: &Path, trace: &Path) -> Result<Left> {
        let mut seen = (0, Instant::now());
        while let Some(part) = with_ending(folder, ".part")? {
            let bytes = fs::metadata(&part).map_or(0, |data| data.len());
            if bytes != seen.0 {
                seen = (bytes, Instant::now());
            }
            if seen.1.elapsed() > GIVEN_UP {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        if let Some(dump) = with_ending(folder, ".hprof")?
            && self.is_named_in(&dump)?
        {
            return Ok(Left::Dump);
        }
        if let Some(part) = with_ending(folder, ".part")? {
            let repaired = folder.join("repaired");
            let mut command = Command::new(&self.heapdiff);
            command.arg("repair").arg(part).arg("-o").arg(&repaired);
            if command.output()?.status.success() && self.is_named_in(&repaired)? {
                return Ok(Left::Repaired);
            }
        }
        let mut command = Command::new(&self.heapdiff);
        command
            .args(["trace", "top", "--format", "json"])
            .arg(trace);
        let report = json(&mut command)?;
        let frames = &report["candidates"][0]["frames"];
        let is_named = frames.as_array().is_some_and(|frames| {
            let mut frames = frames.iter().filter_map(Value::as_str);
            frames.any(|frame| frame.starts_with("Dying.book("))
        });
        Ok(if is_named { Left::Trace } else { Left::Nothing })
    }

    /// True if the first suspect in the report of a dump is the leak.
    fn is_named_in(&self, dump: &Path) -> Result<bool> {
        let mut command = Command::new(&self.heapdiff);
        command.args(["--no-index", "--format", "json"]).arg(dump);
        Ok(json(&mut command)?["suspects"][0]["holder"] == "Dying.orders")
    }
}

fn group(mebibytes: u64) -> Result<Group> {
    Group::of(mebibytes << 20).context("this system allows no control group here")
}

fn with_ending(folder: &Path, end: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn json(command: &mut Command) -> Result<Value> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        run::command_text(command),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}
