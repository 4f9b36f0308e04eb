//! The service whose heap is dumped, and the two ways to dump it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testdata::jvm::{DumpOptions, Jdk, Launch, Target};
use testdata::programs;

/// What is tested, and where files go meanwhile.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) heapdiff: PathBuf,
    pub(super) agent: PathBuf,
    pub(super) scratch: PathBuf,
}

/// A running service.
pub(super) struct Service {
    pub(super) target: Target,
    /// Entries that it keeps.
    pub(super) entries: u64,
    pub(super) port: u16,
}

/// The longest that a dump may take.
const LONGEST: Duration = Duration::from_secs(1800);

impl Service {
    /// Starts it with so many megabytes of live objects.
    pub(super) fn start(jdk: &Jdk, live: u32, busy: u32, flags: &[String]) -> Result<Self> {
        let classes = jdk.compile(&programs::forks())?;
        let launch = Launch::class(jdk, classes, "Service")
            .flags(flags)
            .arg(live.to_string())
            .arg(busy.to_string())
            .timeout(LONGEST);
        let mut target = launch.start()?;
        let line = target.wait_line("READY")?;
        let mut words = line.split_whitespace().skip(1);
        let mut number = || words.next().context("the line READY has no number");
        let (entries, port) = (number()?.parse()?, number()?.parse()?);
        Ok(Self {
            target,
            entries,
            port,
        })
    }
}

/// Flags that have agents loaded without a warning, where there are such.
pub(super) fn loading(jdk: &Jdk) -> Vec<String> {
    match jdk.major() {
        0..21 => Vec::new(),
        _ => vec!["-XX:+EnableDynamicAgentLoading".to_owned()],
    }
}

impl Tools {
    /// Begins a dump by a forked child.
    pub(super) fn fork(&self, pid: u32, file: &Path) -> Result<Child> {
        let mut command = Command::new(&self.heapdiff);
        command
            .args(["dump", &pid.to_string(), "--fork", "--quiet", "--force"])
            .arg("--agent")
            .arg(&self.agent)
            .arg("-o")
            .arg(file)
            .current_dir(&self.scratch);
        let pipes = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = pipes.stderr(Stdio::piped()).spawn();
        child.context("cannot start heapdiff")
    }

    /// Takes a dump by a forked child; how long that took.
    pub(super) fn forked(&self, pid: u32, file: &Path) -> Result<Duration> {
        let begun = Instant::now();
        let done = self.fork(pid, file)?.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.success(),
            "heapdiff wrote no forked dump: {said}"
        );
        Ok(begun.elapsed())
    }

    /// Has the JVM write a dump; how long that took.
    pub(super) fn ordinary(&self, target: &Target, file: &Path) -> Result<Duration> {
        let begun = Instant::now();
        target.dump(file, DumpOptions::default())?;
        Ok(begun.elapsed())
    }

    /// How many entries a dump holds, by the heapdiff that is tested.
    pub(super) fn entries(&self, file: &Path) -> Result<u64> {
        let mut command = Command::new(&self.heapdiff);
        command.args(["histo", "--format", "json", "--strict", "--no-index"]);
        let done = command.arg(file).output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{}: {said}", file.display());
        let report: serde_json::Value = serde_json::from_slice(&done.stdout)?;
        let classes = report["classes"].as_array().context("no classes")?;
        let entry = classes.iter().find(|row| row["class"] == "Service$Entry");
        let objects = entry.and_then(|row| row["objects"].as_u64());
        objects.context("no Service$Entry in the dump")
    }
}

/// Processes whose parent is this one, those that have ended and were not waited for as well.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let of = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let texts = threads.into_iter().flatten().flatten().filter_map(of);
    texts
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}
