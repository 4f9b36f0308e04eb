//! Counts allocations in a JVM where other tools change or observe the same code: JaCoCo and async-profiler. In some
//! runs a tool is loaded before the agent, in others after the agent. Each tool is started and stopped while the agent
//! counts. The counts must be the same as without the other tools, and JaCoCo's coverage must be the same as without
//! counts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testdata::jvm::{Jdk, Launch};
use testdata::programs;

use crate::overhead::async_profiler;
use crate::{java, run};

const JACOCO: &str = "0.8.13";

/// Options of `cargo xtask beside`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    tested: run::Tested,
    /// Use only this JDK (major version); may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
}

/// Number of counted objects by method, line and allocated class.
type Counts = BTreeMap<(String, u64, String), u64>;
/// The executed probes of JaCoCo, by the checksum and name of the class.
type Coverage = BTreeMap<(u64, String), Vec<u8>>;

struct Bench {
    jdk: Jdk,
    heapdiff: PathBuf,
    agent: PathBuf,
}

/// Counts allocations on each JDK, with all combinations of the agent, JaCoCo and async-profiler that are tested. Fails
/// if another tool changes the counts, or if the agent changes JaCoCo's coverage.
pub(crate) fn beside(options: &Options) -> Result<()> {
    let scratch = run::target_dir().join("beside");
    let archive = scratch.join(format!("org.jacoco.agent-{JACOCO}-runtime.jar"));
    if !archive.is_file() {
        let artifact = format!("org.jacoco:org.jacoco.agent:{JACOCO}:jar:runtime");
        java::archive(&artifact, &scratch)?;
    }
    let profiler = async_profiler::ensure(&run::target_dir().join("overhead"))?;
    let (heapdiff, agent) = options.tested.build_products(false)?;
    for jdk in java::jdks(&options.jdk)? {
        let bench = Bench {
            jdk,
            heapdiff: heapdiff.clone(),
            agent: agent.clone(),
        };
        bench.all(&archive, &profiler, &scratch)?;
    }
    Ok(())
}

fn flag(before: &str, file: &Path, after: &str) -> OsString {
    let mut flag = OsString::from(before);
    flag.push(file);
    flag.push(after);
    flag
}

impl Bench {
    fn all(&self, jacoco: &Path, profiler: &Path, scratch: &Path) -> Result<()> {
        let name = format!("JDK {}", self.jdk.version());
        let file = scratch.join("covered.exec");
        let coverage = flag(
            "-javaagent:",
            jacoco,
            &format!("=append=false,destfile={}", file.display()),
        );
        let ours = flag("-agentpath:", &self.agent, "=count=on");
        let out = scratch.join("profile.txt");
        let profile = |event: &str| {
            let options = format!("=start,{event},collapsed,file={}", out.display());
            flag("-agentpath:", profiler, &options)
        };
        let alone = self.counted(&[], true)?;
        ensure!(alone.len() > 20, "{name}: {alone:?}");
        ensure!(
            self.counted(std::slice::from_ref(&coverage), false)?
                .is_empty()
        );
        let covered = covered(&file)?;
        let met: u32 = covered
            .values()
            .flatten()
            .map(|byte| byte.count_ones())
            .sum();
        println!(
            "{name}: {} sites, {met} executed probes in {} classes",
            alone.len(),
            covered.len()
        );
        let with_coverage: [(&str, &[OsString]); 3] = [
            ("JaCoCo", std::slice::from_ref(&coverage)),
            (
                "JaCoCo first, then the agent with count=on",
                &[coverage.clone(), ours.clone()],
            ),
            (
                "the agent with count=on first, then JaCoCo",
                &[ours.clone(), coverage.clone()],
            ),
        ];
        for (what, flags) in with_coverage {
            ensure!(
                self.counted(flags, true)? == alone,
                "{name}, {what}: the counts differ"
            );
            ensure!(
                self::covered(&file)? == covered,
                "{name}, {what}: the coverage differs"
            );
            println!("{name}, {what}: counts and coverage are the same");
        }
        for event in ["event=itimer", "event=alloc,alloc=1"] {
            let counts = self.counted(&[profile(event)], true)?;
            ensure!(counts == alone, "{name}, {event}: the counts differ");
            let stacks = std::fs::read_to_string(&out).context("no profile")?;
            let seen = stacks
                .lines()
                .filter(|line| line.contains("Counted"))
                .count();
            ensure!(seen > 0, "{name}, {event}: the profile is empty");
            println!("{name}, async-profiler {event}: counts are the same, {seen} stacks");
        }
        Ok(())
    }

    /// Runs three phases of the program, and returns the allocations that were counted during the second phase. The
    /// result is empty if `counts` is false.
    fn counted(&self, flags: &[OsString], counts: bool) -> Result<Counts> {
        let classes = self.jdk.compile(&programs::agent("Counted.java"))?;
        let mut target = Launch::class(&self.jdk, classes, "Counted")
            .flag("-XX:+EnableDynamicAgentLoading")
            .flags(flags)
            .arg("4")
            .arg("2000")
            .arg("plain")
            .timeout(Duration::from_secs(120))
            .start()?;
        target.wait_ready(1)?;
        target.advance(2)?;
        let mut report = Value::Null;
        if counts {
            let mut counting = Command::new(&self.heapdiff)
                .args(["count", &target.pid().to_string(), "--for", "120s"])
                .args(["--format", "json", "--agent"])
                .arg(&self.agent)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .context("cannot start heapdiff")?;
            let errors = counting
                .stderr
                .take()
                .context("the standard error of the process is not a pipe")?;
            let mut told = String::new();
            for line in BufReader::new(errors).lines() {
                let line = line?;
                told.push_str(&line);
                if line.contains("counting for") {
                    break;
                }
            }
            let advanced = target.advance(3);
            let pid = counting.id().to_string();
            Command::new("kill").args(["-INT", &pid]).status()?;
            let done = counting.wait_with_output()?;
            advanced?;
            ensure!(done.status.success(), "count failed: {told}");
            report = serde_json::from_slice(&done.stdout)?;
        } else {
            target.advance(3)?;
        }
        target.advance(4)?;
        ensure!(target.finish()?, "the program failed");
        let mut sums = Counts::new();
        for site in report["sites"].as_array().into_iter().flatten() {
            let text = |key: &str| site[key].as_str().unwrap_or_default().to_owned();
            let method = text("method");
            // The result does not include the code that runs while counting begins, or the method that JaCoCo adds to
            // each class.
            if text("class") == "Counted" && method != "main" && method != "$jacocoInit" {
                let key = (
                    method,
                    site["line"].as_u64().unwrap_or(0),
                    text("allocated"),
                );
                *sums.entry(key).or_default() += site["objects"].as_u64().unwrap_or(0);
            }
        }
        Ok(sums)
    }
}

/// Reads the executed probes from a file that JaCoCo wrote.
fn covered(file: &Path) -> Result<Coverage> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let mut rest = bytes.as_slice();
    let mut all = Coverage::new();
    while let Some((&kind, after)) = rest.split_first() {
        rest = after;
        match kind {
            // A block of this kind is the header of the file: a magic number and a version.
            0x01 => drop(take(&mut rest, 4)?),
            // The block describes a session: its name, its start and its end.
            0x10 => {
                text(&mut rest)?;
                take(&mut rest, 16)?;
            }
            0x11 => {
                let id = take(&mut rest, 8)?;
                let id = u64::from_be_bytes(id.try_into()?);
                let name = text(&mut rest)?;
                let mut probes = 0_usize;
                for shift in (0..28).step_by(7) {
                    let byte = take(&mut rest, 1)?[0];
                    probes |= usize::from(byte & 0x7f) << shift;
                    if byte < 0x80 {
                        break;
                    }
                }
                let met = take(&mut rest, probes.div_ceil(8))?;
                all.insert((id, name), met.to_vec());
            }
            other => bail!("{}: unknown block {other}", file.display()),
        }
    }
    ensure!(!all.is_empty(), "the coverage file contains no class");
    Ok(all)
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Result<&'b [u8]> {
    let (taken, after) = rest
        .split_at_checked(count)
        .context("the file ends too early")?;
    *rest = after;
    Ok(taken)
}

fn text(rest: &mut &[u8]) -> Result<String> {
    let length = take(rest, 2)?;
    let length = u16::from_be_bytes(length.try_into()?);
    Ok(String::from_utf8(take(rest, length.into())?.to_vec())?)
}
