//! The service whose heap is dumped, and the two ways to dump it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testdata::jvm::{DumpOptions, Jdk, Launch, Target};
use testdata::programs;

/// The tested heapdiff and agent, and the folder for temporary files.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) heapdiff: PathBuf,
    pub(super) agent: PathBuf,
    pub(super) scratch: PathBuf,
}

/// A running service.
pub(super) struct Service {
    pub(super) target: Target,
    /// Number of entries that the service keeps.
    pub(super) entries: u64,
    pub(super) port: u16,
}

/// Maximum duration of a dump.
const LONGEST: Duration = Duration::from_secs(1800);

impl Service {
    /// Starts the service with `live` megabytes of live objects.
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
        let mut number = || {
            words
                .next()
                .context("the service printed READY without a number")
        };
        let (entries, port) = (number()?.parse()?, number()?.parse()?);
        Ok(Self {
            target,
            entries,
            port,
        })
    }
}

/// Returns the flags that let the JVM load agents without a warning. Empty if the JVM does not know these flags.
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

    /// Takes a dump by a forked child, and returns the duration of the dump.
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

    /// Lets the JVM itself write a dump, and returns the duration of the dump.
    pub(super) fn ordinary(&self, target: &Target, file: &Path) -> Result<Duration> {
        let begun = Instant::now();
        target.dump(file, DumpOptions::default())?;
        Ok(begun.elapsed())
    }

    /// Returns the number of entries of the service in a dump, counted by the tested heapdiff.
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
        objects.context("the dump contains no Service$Entry object")
    }
}

/// Returns the child processes of `pid`, including zombies.
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
