//! What is run: a leak with its fixed twin, or a control; its dumps and their reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use testdata::jvm::{DumpOptions, Jdk, Launch};
use testdata::scenarios::{self, CONTROL_PHASES, Control, Mode, PHASES, Scenario};

use super::report::Report;

/// A leak scenario, to be run in both modes, or a control.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    Leak(&'static Scenario),
    Control(&'static Control),
}

impl Subject {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Subject::Leak(scenario) => scenario.name,
            Subject::Control(control) => control.name,
        }
    }
}

/// Every subject.
pub(super) fn all() -> Vec<Subject> {
    let leaks = scenarios::ALL.iter().map(Subject::Leak);
    leaks
        .chain(scenarios::CONTROLS.iter().map(Subject::Control))
        .collect()
}

/// What the subjects are run with.
#[derive(Debug)]
pub(super) struct Tools<'a> {
    pub(super) heapdiff: &'a Path,
    pub(super) agent: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) keep: bool,
}

impl Tools<'_> {
    /// Reports of a scenario's first two dumps and of all three.
    pub(super) fn scenario(
        &self,
        jdk: &Jdk,
        scenario: &Scenario,
        mode: Mode,
    ) -> Result<[Report; 2]> {
        let name = format!("{}-{}", scenario.name, mode.argument());
        self.reports(&name, jdk, scenario.launch(jdk, mode)?, PHASES)
    }

    /// Reports of a control's first three dumps and of all four.
    pub(super) fn control(&self, jdk: &Jdk, control: &Control) -> Result<[Report; 2]> {
        self.reports(control.name, jdk, control.launch(jdk)?, CONTROL_PHASES)
    }

    /// Reports of all dumps but the last, and of all.
    fn reports(&self, name: &str, jdk: &Jdk, launch: Launch, phases: u32) -> Result<[Report; 2]> {
        let folder = self.scratch.join(format!("{name}-{}", jdk.major()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let dumps = self.dumps(launch, phases, &folder)?;
        let (_, but_the_last) = dumps.split_last().context("no dumps")?;
        let reports = [
            self.report(but_the_last, &folder)?,
            self.report(&dumps, &folder)?,
        ];
        if !self.keep {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        Ok(reports)
    }

    fn dumps(&self, launch: Launch, phases: u32, folder: &Path) -> Result<Vec<PathBuf>> {
        let launch = launch.flag("-XX:+UseG1GC").agent(self.agent, "interval=4k");
        let mut target = launch.start()?;
        let mut dumps = Vec::new();
        for phase in 1..=phases {
            match phase {
                1 => target.wait_ready(phase)?,
                _ => target.advance(phase)?,
            }
            let dump = folder.join(format!("{phase}.hprof"));
            target.dump(&dump, DumpOptions::default())?;
            dumps.push(dump);
        }
        Ok(dumps)
    }

    fn report(&self, dumps: &[PathBuf], folder: &Path) -> Result<Report> {
        let file = folder.join(format!("{}.json", dumps.len()));
        let output = Command::new(self.heapdiff)
            .arg("diff")
            .args(dumps)
            .args(["--format", "json", "--no-index", "--progress", "never"])
            .arg("-o")
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.heapdiff.display()))?;
        ensure!(
            output.status.success(),
            "heapdiff: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Report::read(&file)
    }
}
