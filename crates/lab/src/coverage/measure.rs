//! Makes one run: starts a JVM, takes two dumps, and compares the estimates in the reports with the true values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use testdata::jvm::{DumpOptions, Jdk, Launch, Target};
use testdata::programs;

/// The settings of a JVM.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) jdk: Jdk,
    pub(super) collector: &'static str,
    pub(super) flags: Vec<String>,
    pub(super) interval: &'static str,
    /// True if the agent also counts allocations.
    pub(super) counts: bool,
}

impl Setting {
    /// If the agent counts allocations, waits until it has copied the counts. It copies them once a second.
    fn wait_until_copied(&self) {
        if self.counts {
            std::thread::sleep(Duration::from_millis(1500));
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            jdk,
            collector,
            flags,
            interval,
            counts,
        } = self;
        write!(f, "JDK {}, {collector}", jdk.major())?;
        flags.iter().try_for_each(|flag| write!(f, " {flag}"))?;
        write!(f, ", {interval}")?;
        f.write_str(if *counts { ", counted" } else { "" })
    }
}

/// A quantity, such as live bytes, and the dumps from which heapdiff estimates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    /// Live bytes, from a dump. The agent was loaded when the JVM started.
    Sites,
    /// Growth between two dumps. The agent was loaded when the JVM started.
    Diff,
    /// Growth between two dumps. The agent was attached to the running JVM before the first dump.
    AttachedDiff,
    /// Live bytes, from the second dump alone. The agent was attached to the running JVM.
    AttachedSites,
    /// Allocated bytes, from a dump. The agent was loaded when the JVM started.
    Allocated,
    /// Allocated bytes, from a dump. The agent was attached to the running JVM.
    AttachedAllocated,
}

impl Asked {
    pub(super) const ALL: [Self; 6] = [
        Self::Sites,
        Self::Diff,
        Self::AttachedDiff,
        Self::AttachedSites,
        Self::Allocated,
        Self::AttachedAllocated,
    ];
}

/// The estimate for one stack, and the true value.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) setting: String,
    pub(super) asked: Asked,
    /// True if allocations were counted.
    pub(super) counted: bool,
    /// The allocating method.
    pub(super) stack: String,
    pub(super) truth: u64,
    /// `None` if the report does not contain the stack.
    pub(super) found: Option<Stack>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Stack {
    frames: Vec<String>,
    pub(super) samples: u64,
    pub(super) estimated_bytes: u64,
    pub(super) ci95: [u64; 2],
    /// The estimate from samples alone. Present only if exact counts improved the estimate.
    #[serde(default)]
    sampled: Option<Sampled>,
    #[serde(default)]
    survival_permille: Option<u64>,
    /// `None` in reports on allocated bytes.
    #[serde(default)]
    survival_known: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
struct Sampled {
    estimated_bytes: u64,
    ci95: [u64; 2],
}

impl Stack {
    /// Returns the estimate from samples alone.
    pub(super) fn without_counts(&self) -> Self {
        let mut alone = self.clone();
        if let Some(sampled) = alone.sampled.take() {
            (alone.estimated_bytes, alone.ci95) = (sampled.estimated_bytes, sampled.ci95);
        }
        alone
    }

    /// True if the report states the percentage of the stack's objects that are alive.
    pub(super) fn has_survival(&self) -> bool {
        self.survival_known
            .unwrap_or(self.survival_permille.is_some())
    }
}

#[derive(Debug, Deserialize)]
struct Suspect {
    stacks: Vec<Stack>,
}

#[derive(Debug, Deserialize)]
struct Report {
    #[serde(default)]
    stacks: Vec<Stack>,
    #[serde(default)]
    suspects: Vec<Suspect>,
}

impl Report {
    fn stacks(self) -> impl Iterator<Item = Stack> {
        let suspects = self.suspects.into_iter().flat_map(|s| s.stacks);
        self.stacks.into_iter().chain(suspects)
    }
}

/// The programs and settings of all runs.
#[derive(Debug)]
pub(super) struct Tools<'a> {
    pub(super) heapdiff: &'a Path,
    pub(super) agent: &'a Path,
    pub(super) scratch: &'a Path,
    /// Mebibytes of objects that the program keeps before each dump, for each object size.
    pub(super) size: u32,
}

type Bytes = BTreeMap<String, u64>;

impl Tools<'_> {
    /// Runs the program twice: once started with the agent, and once with the agent attached later.
    pub(super) fn measure(&self, setting: &Setting, seed: u64) -> Result<Vec<Measured>> {
        let mut found = Vec::new();
        for attached in [false, true] {
            let files = ["before", "after"].map(|name| self.scratch.join(format!("{name}.hprof")));
            let (before, after) = self.dumps(setting, seed, attached, &files)?;
            let grown: Bytes = after
                .iter()
                .map(|(stack, &bytes)| {
                    let earlier = before.get(stack).copied().unwrap_or(0);
                    (stack.clone(), bytes.saturating_sub(earlier))
                })
                .collect();
            let [first, last] = &files;
            let sites = self.report(&["sites"], &[last])?;
            let diff = self.report(&["diff"], &[first, last])?;
            let allocated = self.report(&["sites", "--allocated"], &[last])?;
            // A report on one dump contains nothing that was allocated before the agent was loaded.
            let (asked, of_dump) = if attached {
                (
                    [
                        Asked::AttachedSites,
                        Asked::AttachedDiff,
                        Asked::AttachedAllocated,
                    ],
                    &grown,
                )
            } else {
                ([Asked::Sites, Asked::Diff, Asked::Allocated], &after)
            };
            let told = [(of_dump, sites), (&grown, diff), (of_dump, allocated)];
            for (asked, (truth, report)) in asked.into_iter().zip(told) {
                let mut stacks: BTreeMap<String, Stack> = BTreeMap::new();
                for stack in report.stacks() {
                    if let Some(method) = stack.frames.first().and_then(|f| method(f)) {
                        stacks.entry(method.to_owned()).or_insert(stack);
                    }
                }
                found.extend(truth.iter().map(|(stack, &truth)| Measured {
                    setting: setting.to_string(),
                    asked,
                    counted: setting.counts,
                    stack: stack.clone(),
                    truth,
                    found: stacks.get(stack).cloned(),
                }));
            }
            for file in &files {
                std::fs::remove_file(file)
                    .with_context(|| format!("cannot remove {}", file.display()))?;
            }
        }
        Ok(found)
    }

    /// Makes the JVM write two dumps. Returns, for each dump, the number of bytes that each stack had allocated by
    /// then.
    fn dumps(
        &self,
        setting: &Setting,
        seed: u64,
        attached: bool,
        [first, last]: &[std::path::PathBuf; 2],
    ) -> Result<(Bytes, Bytes)> {
        let classes = setting.jdk.compile(&programs::agent("Shares.java"))?;
        let count = if setting.counts { ",count=on" } else { "" };
        let options = format!("interval={}{count}", setting.interval);
        let mut launch = Launch::class(&setting.jdk, classes, "Shares")
            .flag(format!("-XX:+Use{}GC", setting.collector))
            .flags(&setting.flags)
            .flag("-Xmx1g")
            .arg(seed.to_string())
            .arg(self.size.to_string());
        if !attached {
            launch = launch.agent(self.agent, &options);
        }
        let mut target = launch.start()?;
        let before = read_true_values(&mut target)?;
        if attached {
            target.load_agent(self.agent, &options)?;
        }
        setting.wait_until_copied();
        target.dump(first, DumpOptions::default())?;
        target.proceed()?;
        let after = read_true_values(&mut target)?;
        setting.wait_until_copied();
        target.dump(last, DumpOptions::default())?;
        Ok((before, after))
    }

    fn report(&self, command: &[&str], dumps: &[&std::path::PathBuf]) -> Result<Report> {
        let output = Command::new(self.heapdiff)
            .args(command)
            .args(dumps)
            .args(["--format", "json", "--top", "1000"])
            .args(["--no-index", "--progress", "never"])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.heapdiff.display()))?;
        ensure!(
            output.status.success(),
            "heapdiff {command:?}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).context("the report cannot be read")
    }
}

/// Reads the exact bytes of each stack, which the test program prints before it waits. They are the true values for the
/// estimates in the report.
fn read_true_values(target: &mut Target) -> Result<Bytes> {
    let mut bytes = Bytes::new();
    for line in target.lines_until_ready()? {
        if let Some((stack, figure)) = line.split_once(' ')
            && let Ok(figure) = figure.parse()
        {
            bytes.insert(stack.to_owned(), figure);
        }
    }
    ensure!(
        bytes.len() == STACKS,
        "the program printed an unexpected number of stacks: {}",
        bytes.len()
    );
    Ok(bytes)
}

/// Number of stacks in the program: 12 large ones and 64 small ones.
const STACKS: usize = 76;

/// Returns the method name `few24` for the frame `Shares.few24(Shares.java:30)`.
fn method(frame: &str) -> Option<&str> {
    let method = frame.strip_prefix("Shares.")?.split_once('(')?.0;
    let is_measured = |prefix: &&str| method.starts_with(prefix);
    let found = ["few", "many", "rare"].iter().any(is_measured);
    found.then_some(method)
}
