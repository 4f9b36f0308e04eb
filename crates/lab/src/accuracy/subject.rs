//! Runs the test programs, takes their dumps, and creates the reports on the dumps. A test program is a leak scenario
//! with its fixed twin (the same program without the leak), or a control (a program that only seems to leak).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testdata::jvm::{DumpOptions, Jdk, Launch, Target};
use testdata::scenarios::{self, CONTROL_PHASES, Control, Dumped, Mode, PHASES, Scenario};

use super::report::{OneDump, Report};

/// Maximum time for a phase of a program or for a dump, even on a busy machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(240);

/// A program to judge. A leak scenario runs twice: leaking and fixed.
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

    /// True if this JDK is recent enough for the program.
    pub(super) fn runs_on(&self, jdk: &Jdk) -> bool {
        match self {
            Subject::Leak(scenario) => scenario.runs_on(jdk),
            Subject::Control(_) => true,
        }
    }

    /// True if the program uses published libraries.
    pub(super) fn libraries(&self) -> bool {
        match self {
            Subject::Leak(scenario) => scenario.libraries,
            Subject::Control(control) => control.libraries,
        }
    }
}

/// Returns every leak scenario and every control.
pub(super) fn all() -> Vec<Subject> {
    let leaks = scenarios::ALL.iter().map(Subject::Leak);
    leaks
        .chain(scenarios::CONTROLS.iter().map(Subject::Control))
        .collect()
}

/// The programs and settings of a run.
#[derive(Debug)]
pub(super) struct Tools<'a> {
    pub(super) heapdiff: &'a Path,
    pub(super) agent: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) keep: bool,
    /// Number of runs of each program without a leak. These programs are the fixed twins of the leak scenarios, and the
    /// controls.
    pub(super) repeat: u32,
    pub(super) collector: &'a str,
    /// Further flags of the JVM.
    pub(super) flags: &'a [String],
    /// The agent's options.
    pub(super) sampling: &'a str,
    pub(super) jdks: &'a [Jdk],
}

impl Tools<'_> {
    /// Runs a leaking scenario. Returns the reports on its first two dumps, on all three, and on the last alone.
    pub(super) fn leak(&self, jdk: &Jdk, scenario: &Scenario) -> Result<([Report; 2], OneDump)> {
        let (dumps, folder) = self.run_for_dumps(jdk, scenario, Mode::Leak)?;
        let last = dumps.last().context("no dumps")?;
        let one = OneDump::read(&self.written(std::slice::from_ref(last), &folder)?)?;
        Ok((self.reports(&dumps, &folder)?, one))
    }

    /// Runs a leaking scenario without the agent. Returns its last dump, the report on that dump, and the folder with
    /// the dump.
    pub(super) fn run_last_dump_only(
        &self,
        jdk: &Jdk,
        scenario: &Scenario,
    ) -> Result<(PathBuf, OneDump, PathBuf)> {
        let folder = self.folder(&format!("{}-alone", scenario.name), jdk)?;
        let mut target = self
            .without_agent(scenario.launch(jdk, Mode::Leak)?)
            .start()?;
        target.wait_ready(1)?;
        for phase in 2..=PHASES {
            target.advance(phase)?;
        }
        let dump = folder.join("last.hprof");
        target.dump(&dump, DumpOptions::default())?;
        drop(target);
        let one = OneDump::read(&self.written(std::slice::from_ref(&dump), &folder)?)?;
        Ok((dump, one, folder))
    }

    /// Runs a fixed scenario. Returns the reports on its first two dumps and on all three.
    pub(super) fn run_fixed(&self, jdk: &Jdk, scenario: &Scenario) -> Result<[Report; 2]> {
        let (dumps, folder) = self.run_for_dumps(jdk, scenario, Mode::Fixed)?;
        self.reports(&dumps, &folder)
    }

    /// Returns the dumps of a scenario, and the folder that contains the dumps.
    fn run_for_dumps(
        &self,
        jdk: &Jdk,
        scenario: &Scenario,
        mode: Mode,
    ) -> Result<(Vec<PathBuf>, PathBuf)> {
        let name = format!("{}-{}", scenario.name, mode.argument());
        let folder = self.folder(&name, jdk)?;
        let launch = scenario.launch(jdk, mode)?;
        Ok((self.dumps(launch, PHASES, &folder)?, folder))
    }

    /// Runs a control. Returns the reports on its first three dumps and on all four.
    pub(super) fn run_control(&self, jdk: &Jdk, control: &Control) -> Result<[Report; 2]> {
        let folder = self.folder(control.name, jdk)?;
        let dumps = match control.dumped {
            Dumped::Phases => self.dumps(control.launch(jdk)?, CONTROL_PHASES, &folder)?,
            Dumped::Runs => self.dump_per_run(control, &[jdk], &folder)?,
            Dumped::Jdks => {
                let others = self.jdks.iter().filter(|other| *other != jdk);
                let jdks: Vec<&Jdk> = std::iter::once(jdk).chain(others).collect();
                self.dump_per_run(control, &jdks, &folder)?
            }
        };
        self.reports(&dumps, &folder)
    }

    /// Returns two reports: one on all dumps except the last one, and one on all dumps.
    fn reports(&self, dumps: &[PathBuf], folder: &Path) -> Result<[Report; 2]> {
        let (_, but_the_last) = dumps.split_last().context("no dumps")?;
        let reports = [
            self.report(but_the_last, folder)?,
            self.report(dumps, folder)?,
        ];
        self.clear(folder)?;
        Ok(reports)
    }

    /// Removes the folder of a test subject after its evaluation, unless the dumps are to be kept.
    pub(super) fn clear(&self, folder: &Path) -> Result<()> {
        if self.keep {
            return Ok(());
        }
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
    }

    pub(super) fn folder(&self, name: &str, jdk: &Jdk) -> Result<PathBuf> {
        let folder = self.scratch.join(format!("{name}-{}", jdk.major()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    fn measured(&self, launch: Launch) -> Launch {
        self.without_agent(launch).agent(self.agent, self.sampling)
    }

    /// Adds the JVM flags for a run without the agent.
    pub(super) fn without_agent(&self, launch: Launch) -> Launch {
        let collector = format!("-XX:+Use{}GC", self.collector);
        launch.flag(collector).flags(self.flags).timeout(TIMEOUT)
    }

    /// Runs the control once for each dump. Each run uses the next JDK of the list. Its heap is dumped after its last
    /// phase.
    fn dump_per_run(
        &self,
        control: &Control,
        jdks: &[&Jdk],
        folder: &Path,
    ) -> Result<Vec<PathBuf>> {
        let mut dumps = Vec::new();
        for (number, jdk) in (1..=CONTROL_PHASES).zip(jdks.iter().cycle()) {
            let mut target = self.measured(control.launch(jdk)?).start()?;
            target.wait_ready(1)?;
            for phase in 2..=CONTROL_PHASES {
                target.advance(phase)?;
            }
            let dump = folder.join(format!("{number}.hprof"));
            target.dump(&dump, DumpOptions::default())?;
            dumps.push(dump);
        }
        Ok(dumps)
    }

    /// Runs a program with the agent, and takes its dumps.
    pub(super) fn dumps(&self, launch: Launch, phases: u32, folder: &Path) -> Result<Vec<PathBuf>> {
        self.dumps_of(&mut self.measured(launch).start()?, phases, folder)
    }

    /// Lets a program run through its phases, and takes a dump after each phase.
    ///
    /// Reports compare the times between dumps. On a busy machine, one phase may take much longer than the next one. So
    /// each dump is delayed until the time since the last dump is at least as long as the times before.
    pub(super) fn dumps_of(
        &self,
        target: &mut Target,
        phases: u32,
        folder: &Path,
    ) -> Result<Vec<PathBuf>> {
        let mut dumps = Vec::new();
        let (mut last, mut longest): (Option<Instant>, _) = (None, Duration::ZERO);
        for phase in 1..=phases {
            match phase {
                1 => target.wait_ready(phase)?,
                _ => target.advance(phase)?,
            }
            if let Some(last) = last {
                thread::sleep(longest.saturating_sub(last.elapsed()));
                longest = longest.max(last.elapsed());
            }
            last = Some(Instant::now());
            let dump = folder.join(format!("{phase}.hprof"));
            target.dump(&dump, DumpOptions::default())?;
            dumps.push(dump);
        }
        Ok(dumps)
    }

    /// Returns the report on these dumps.
    pub(super) fn report(&self, dumps: &[PathBuf], folder: &Path) -> Result<Report> {
        Report::read(&self.written(dumps, folder)?)
    }

    /// Writes the report on these dumps, and returns its file.
    fn written(&self, dumps: &[PathBuf], folder: &Path) -> Result<PathBuf> {
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
        Ok(file)
    }
}
