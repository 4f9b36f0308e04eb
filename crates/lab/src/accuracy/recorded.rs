//! Judges the stacks of recordings. Programs that leak run on a stock JVM with Flight Recorder and without the agent,
//! and `heapdiff --recording` compares their three dumps.
//!
//! An answer is right if the first stack of the suspect with the expected holder contains the method that allocates the
//! leaking objects. The answer "by class alone" is the stack that allocated most objects of the suspect's class in the
//! recording. heapdiff ranks stacks with weights that were tuned with half of the programs: those at even positions of
//! the sorted list of names. So the results of the other half are listed separately.
//!
//! With `--without-leaks`, the programs have no leak. They are the fixed twins (the scenarios without their leaks) and
//! the controls (programs that only seem to leak). A second run with the agent finds the true stacks of their suspects.
//! An answer is right if the code that its first stack names is also in one of the agent's stacks, for a suspect with
//! the same holder.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use heapdiff_sites::packages::{is_framework, is_jdk};
use serde::Deserialize;
use testdata::jvm::{Jdk, Launch};
use testdata::programs;
use testdata::scenarios::{self, CONTROL_PHASES, Dumped, Expected, Mode, PHASES, Scenario};

use super::judge::Share;
use super::report::{Report, Suspect};
use super::subject::{Subject, TIMEOUT, Tools};

/// The settings of Flight Recorder.
const SETTINGS: [&str; 3] = ["profile", "default", "default,memory-leaks=stack-traces"];

/// Options of `cargo xtask accuracy --recording`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Options {
    /// Record only with these settings of Flight Recorder; may be repeated
    #[arg(long, value_name = "SETTINGS", value_parser = SETTINGS, requires = "recording")]
    settings: Vec<String>,
    /// Add a thread that allocates this many times as many bytes as all other threads of the program together
    #[arg(long, value_name = "TIMES", requires = "recording")]
    beside: Option<u32>,
    /// Spread the work of each program evenly over this many minutes (JDK 24 or later)
    #[arg(long, value_name = "MINUTES", requires = "recording")]
    minutes: Option<u32>,
    /// Run only programs without a leak: fixed versions of the scenarios, and controls, which only seem to leak
    #[arg(long, requires = "recording")]
    pub(super) without_leaks: bool,
}

impl Options {
    /// Returns the indices in [`SETTINGS`] to use.
    fn settings(&self) -> impl Iterator<Item = usize> {
        let is_used =
            |name: &str| self.settings.is_empty() || self.settings.iter().any(|s| s == name);
        (0..SETTINGS.len()).filter(move |&at| is_used(SETTINGS[at]))
    }

    /// Returns the minimum percentage of right answers. `None` means that the percentage is reported, but has no
    /// minimum.
    fn goal(&self, settings: usize, jdk: u32) -> Option<u32> {
        let is_default = SETTINGS[settings] == "default";
        match self.beside {
            Some(10) => Some(if is_default { 75 } else { 88 }),
            Some(_) => None,
            None if self.minutes.is_some() => None,
            None => Some(if is_default || jdk < 25 { 90 } else { 95 }),
        }
    }
}

/// Minimum percentage of right answers, among the answers with a stated probability of at least 0.9.
const SURE: u32 = 97;
/// Maximum number of percentage points by which the percentage of right answers may be below the stated probability.
const BELOW: u32 = 10;

/// Number of groups of probabilities, each 0.1 wide.
const TENTHS: usize = 10;

/// The results for one program on one JDK.
#[derive(Debug)]
pub(super) struct Judged {
    name: &'static str,
    jdk: u32,
    answers: Result<Vec<Answer>>,
}

/// The first stack of a suspect in a report, and whether the stack is right.
#[derive(Debug)]
struct Answer {
    settings: usize,
    /// True if the first stack is right.
    is_right: bool,
    /// True if the answer "by class alone" is right. This answer is the stack that allocated most objects of the
    /// suspect's class in the recording.
    is_right_by_class: bool,
    /// The probability of the first stack in thousandths. `None` if the report names no stack.
    permille: Option<u64>,
    /// The sentence about the first stack in the report.
    said: String,
}

/// The stacks in `heapdiff sites RECORDING --allocated --format json`.
#[derive(Debug, Deserialize)]
struct Sites {
    stacks: Vec<Site>,
}

#[derive(Debug, Deserialize)]
struct Site {
    class: String,
    frames: Vec<String>,
}

/// Runs a program with each of the settings, and judges the reports.
pub(super) fn judge(jdk: &Jdk, subject: &Subject, tools: &Tools<'_>, asked: &Options) -> Judged {
    let answers = if subject.runs_on(jdk) {
        asked.settings().try_fold(Vec::new(), |mut all, settings| {
            let bench = Bench {
                jdk,
                tools,
                settings,
                asked,
            };
            all.extend(match subject {
                Subject::Leak(scenario) if !asked.without_leaks => bench.leak(scenario)?,
                _ => bench.without_leak(subject)?,
            });
            Ok(all)
        })
    } else {
        Ok(Vec::new())
    };
    Judged {
        name: subject.name(),
        jdk: jdk.major(),
        answers,
    }
}

/// The settings that all runs of a program share.
struct Bench<'a> {
    jdk: &'a Jdk,
    tools: &'a Tools<'a>,
    /// The index in [`SETTINGS`].
    settings: usize,
    asked: &'a Options,
}

impl Bench<'_> {
    fn leak(&self, scenario: &Scenario) -> Result<Vec<Answer>> {
        let mut launch = scenario.launch(self.jdk, Mode::Leak)?;
        let folder = self.folder(scenario.name)?;
        if let Some(minutes) = self.asked.minutes {
            launch = self.paced(launch, u64::from(minutes), &folder)?;
        }
        let report = self.recorded(launch, PHASES, &folder)?;
        let by_class = folder.join("sites.json");
        let mut sites = Command::new(self.tools.heapdiff);
        sites
            .arg("sites")
            .arg(folder.join(RECORDING))
            .args(["--allocated", "--by", "stack"]);
        // A recording without any sample is an error for `heapdiff sites`.
        let sites = match written(&mut sites, &by_class) {
            Ok(()) => serde_json::from_slice(&fs::read(&by_class)?)?,
            Err(_) => Sites { stacks: Vec::new() },
        };
        self.tools.clear(&folder)?;
        let expected = scenario.expected();
        Ok(expected
            .map(|of| Answer::of(of, self.settings, &report, &sites))
            .collect())
    }

    /// Runs a program without a leak, once with Flight Recorder and once with the agent. The program is the fixed
    /// version of a leak scenario, or a control (a program that only seems to leak).
    fn without_leak(&self, subject: &Subject) -> Result<Vec<Answer>> {
        let launch = || match subject {
            Subject::Leak(scenario) => scenario.launch(self.jdk, Mode::Fixed),
            Subject::Control(control) => control.launch(self.jdk),
        };
        let phases = match subject {
            Subject::Leak(_) => PHASES,
            Subject::Control(control) if control.dumped == Dumped::Phases => CONTROL_PHASES,
            // Each dump of this program is from another JVM, but a recording covers only one JVM.
            Subject::Control(_) => return Ok(Vec::new()),
        };
        let folder = self.folder(&format!("{}-fixed", subject.name()))?;
        let report = self.recorded(launch()?, phases, &folder)?;
        let truth = self.tools.dumps(launch()?, phases, &folder)?;
        let truth = self.tools.report(&truth, &folder)?;
        self.tools.clear(&folder)?;
        let stated = report.suspects.iter().filter(|s| !s.stacks.is_empty());
        Ok(stated
            .filter_map(|suspect| Answer::checked(suspect, self.settings, &truth))
            .collect())
    }

    /// Adds a Java agent to the flags of a JVM.
    fn java_agent(
        &self,
        launch: Launch,
        class: &str,
        classes: &Path,
        options: &str,
        folder: &Path,
    ) -> Result<Launch> {
        let classes = std::path::absolute(classes)?;
        let attributes = format!("Class-Path: file://{}/\n", classes.display());
        let jar = self.jdk.agent_jar(class, &attributes, folder)?;
        Ok(launch.flag(format!("-javaagent:{}={options}", jar.display())))
    }

    /// Adds a Java agent that spreads the work of a program over some minutes. A first run counts the program's method
    /// calls.
    fn paced(&self, launch: Launch, minutes: u64, folder: &Path) -> Result<Launch> {
        let classes = self.jdk.compile_for_itself(&programs::paced())?;
        let counts = folder.join("calls.txt");
        let count = format!("count={}", counts.display());
        let counted = self.java_agent(launch.clone(), "Paced", &classes, &count, folder)?;
        let mut target = self.tools.without_agent(counted).start()?;
        target.wait_ready(1)?;
        for phase in 2..=PHASES {
            target.advance(phase)?;
        }
        ensure!(
            target.finish()?,
            "the program failed when its calls were counted"
        );
        let calls = fs::read_to_string(&counts)?;
        let options = format!("{calls}:{}", minutes * 60);
        self.java_agent(launch, "Paced", &classes, &options, folder)
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let name = format!("{name}-recorded-{}", self.settings);
        self.tools.folder(&name, self.jdk)
    }

    /// Runs a program with Flight Recorder, and compares its dumps.
    fn recorded(&self, launch: Launch, phases: u32, folder: &Path) -> Result<Report> {
        let flag = format!(
            "-XX:StartFlightRecording:settings={}",
            SETTINGS[self.settings]
        );
        let minutes = u64::from(self.asked.minutes.unwrap_or(0));
        let mut launch = self.tools.without_agent(launch).flag(flag);
        launch = launch.timeout(TIMEOUT + Duration::from_secs(60 * minutes));
        if let Some(times) = self.asked.beside {
            let classes = self.jdk.compile(&programs::beside())?;
            launch = self.java_agent(launch, "Beside", &classes, &times.to_string(), folder)?;
        }
        let mut target = launch.start()?;
        let dumps = self.tools.dumps_of(&mut target, phases, folder)?;
        let recording = std::path::absolute(folder.join(RECORDING))?;
        let filename = format!("filename={}", recording.display());
        target.jcmd(["JFR.dump", &filename])?;
        drop(target);
        let report = folder.join("recorded.json");
        let mut compare = Command::new(self.tools.heapdiff);
        compare
            .arg("diff")
            .args(&dumps)
            .arg("--recording")
            .arg(&recording);
        written(compare.args(["--no-index"]), &report)?;
        Report::read(&report)
    }
}

/// The file name of the recording.
const RECORDING: &str = "rec.jfr";

/// Runs a heapdiff command that writes a JSON report to `file`.
fn written(command: &mut Command, file: &Path) -> Result<()> {
    let output = command
        .args(["--format", "json", "--progress", "never", "-o"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .context("cannot start heapdiff")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "heapdiff: {}: {error}",
        output.status
    );
    Ok(())
}

impl Answer {
    fn of(expected: Expected, settings: usize, report: &Report, sites: &Sites) -> Self {
        let suspects = &report.suspects;
        let suspect = suspects.iter().find(|s| expected.accepts_holder(&s.holder));
        let stack = suspect.and_then(|s| s.stacks.first());
        let is_right =
            |frames: &[String]| expected.accepts_stack(frames.iter().map(String::as_str));
        let of_class = |s: &&Site| suspect.is_some_and(|suspect| suspect.class == s.class);
        let by_class = sites.stacks.iter().find(of_class);
        Self {
            settings,
            is_right: stack.is_some_and(|stack| is_right(&stack.frames)),
            is_right_by_class: by_class.is_some_and(|site| is_right(&site.frames)),
            permille: stack.and_then(|stack| stack.probability_permille),
            said: match suspect {
                None => "the holder is not a suspect".to_owned(),
                Some(suspect) => suspect.joined.clone().unwrap_or_default(),
            },
        }
    }
}

impl Answer {
    /// Compares the first stack of a suspect with the agent's stacks. Returns `None` if the agent has no stacks for a
    /// suspect with this holder.
    fn checked(suspect: &Suspect, settings: usize, truth: &Report) -> Option<Self> {
        let stack = suspect.stacks.first()?;
        let mut same = truth.suspects.iter().filter(|s| s.holder == suspect.holder);
        let truth = same.find(|s| !s.stacks.is_empty())?;
        let method = |frame: &str| frame.split('(').next().unwrap_or(frame).to_owned();
        let mut frames = stack.frames.iter();
        let named = frames.find(|frame| !is_jdk(frame) && !is_framework(frame));
        let named = method(named?);
        let mut frames = truth.stacks.iter().flat_map(|stack| &stack.frames);
        Some(Self {
            settings,
            is_right: frames.any(|frame| method(frame) == named),
            is_right_by_class: false,
            permille: stack.probability_permille,
            said: suspect.joined.clone().unwrap_or_default(),
        })
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {} {}:", self.jdk, self.name)?;
        match &self.answers {
            Err(error) => return write!(f, " could not be run: {error:#}"),
            Ok(answers) if answers.is_empty() => return write!(f, " no answer"),
            Ok(answers) => {
                for answer in answers {
                    let permille = answer.permille.unwrap_or(0);
                    write!(
                        f,
                        " {}{permille}",
                        if answer.is_right { "" } else { "WRONG " }
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Sums over some of the [`Answer`]s, such as those of one JDK.
#[derive(Debug, Default)]
struct Sums {
    right: Share,
    by_class: Share,
    tenths: [Share; TENTHS],
    /// Sum of the squared differences between the stated probability and the truth (1 for a right answer, 0 for a wrong
    /// one).
    squares: f64,
}

impl Sums {
    #[allow(clippy::cast_precision_loss, reason = "at most 1,000")]
    fn add(&mut self, answer: &Answer) {
        self.right.count(answer.is_right);
        self.by_class.count(answer.is_right_by_class);
        if let Some(permille) = answer.permille {
            let tenth = usize::try_from(permille / 100).unwrap_or(0).min(TENTHS - 1);
            self.tenths[tenth].count(answer.is_right);
            let truth = f64::from(u8::from(answer.is_right));
            self.squares += (permille as f64 / 1000.0 - truth).powi(2);
        }
    }

    fn stated(&self) -> u32 {
        self.tenths.iter().map(|tenth| tenth.all).sum()
    }
}

/// Returns the names of the programs at even positions of the sorted list of all programs that leak. The weights with
/// which heapdiff ranks the stacks of a recording were tuned with these programs.
fn tuned() -> BTreeSet<&'static str> {
    let names: BTreeSet<&str> = scenarios::ALL.iter().map(|s| s.name).collect();
    names.into_iter().step_by(2).collect()
}

/// Adds up those answers for which `is_meant` returns true.
fn sums<'a>(judged: &'a [Judged], is_meant: impl Fn(&Judged, &Answer) -> bool + 'a) -> Sums {
    let mut sums = Sums::default();
    for one in judged {
        for answer in one.answers.as_ref().ok().into_iter().flatten() {
            if is_meant(one, answer) {
                sums.add(answer);
            }
        }
    }
    sums
}

/// Returns the tables as Markdown.
pub(super) fn table(
    jdks: &[Jdk],
    collector: &str,
    asked: &Options,
    judged: &[Judged],
) -> Result<String> {
    let versions: Vec<&str> = jdks.iter().map(Jdk::version).collect();
    let tuned = tuned();
    let mut text = format!(
        "# Stacks from recordings\n\nJDK {}, {collector}, no agent",
        versions.join(" and ")
    );
    if let Some(times) = asked.beside {
        write!(text, ", while other code allocates {times} times as much")?;
    }
    if let Some(minutes) = asked.minutes {
        write!(text, ", runs of {minutes} minutes")?;
    }
    text.push_str(if asked.without_leaks {
        ". Programs without a leak: fixed versions of the leaks, and control programs.\n\n"
    } else {
        ". Each leak has three dumps and one recording.\n\n"
    });
    text.push_str(
        "| JDK | settings | first stack is correct | the same, for programs that did not determine the weights | stack that allocated most objects of the class is correct |\n\
         |---|---|---|---|---|\n",
    );
    for jdk in jdks.iter().map(Jdk::major) {
        for settings in asked.settings() {
            let is_own = |j: &Judged, a: &Answer| j.jdk == jdk && a.settings == settings;
            let own = sums(judged, is_own);
            let others = sums(judged, |j, a| is_own(j, a) && !tuned.contains(j.name));
            let name = SETTINGS[settings];
            let (right, by_class) = (own.right, own.by_class);
            writeln!(
                text,
                "| {jdk} | {name} | {right} | {} | {by_class} |",
                others.right
            )?;
        }
    }
    let all = sums(judged, |_, _| true);
    let rest = sums(judged, |j, _| !tuned.contains(j.name));
    let mut wrong = String::new();
    for one in judged {
        for answer in one.answers.as_ref().ok().into_iter().flatten() {
            if !answer.is_right {
                let (said, jdk, name) = (&answer.said, one.jdk, SETTINGS[answer.settings]);
                writeln!(wrong, "- {}, JDK {jdk}, {name}: {said}", one.name)?;
            }
        }
    }
    text.push_str(
        "\n| stated probability | correct answers | correct answers for programs that did not determine the weights |\n|---|---|---|\n",
    );
    for (tenth, (all, rest)) in all.tenths.iter().zip(&rest.tenths).enumerate().rev() {
        if all.all > 0 {
            writeln!(text, "| 0.{tenth} | {all} | {rest} |")?;
        }
    }
    let brier = |sums: &Sums| sums.squares / f64::from(sums.stated().max(1));
    writeln!(
        text,
        "\nBrier score of the {} answers with a probability: {:.3}; only programs that did not determine the weights: {:.3}\n\n{wrong}",
        all.stated(),
        brier(&all),
        brier(&rest)
    )?;
    for one in judged {
        if let Err(error) = &one.answers {
            writeln!(
                text,
                "- {}, JDK {}: could not be run: {error:#}",
                one.name, one.jdk
            )?;
        }
    }
    Ok(text)
}

/// Returns an error that lists the goals that were missed.
pub(super) fn goals(asked: &Options, judged: &[Judged]) -> Result<()> {
    let mut missed = Vec::new();
    let jdks: BTreeSet<u32> = judged.iter().map(|j| j.jdk).collect();
    if !asked.without_leaks {
        for (jdk, settings) in jdks
            .iter()
            .flat_map(|&jdk| asked.settings().map(move |s| (jdk, s)))
        {
            let right = sums(judged, |j, a| j.jdk == jdk && a.settings == settings).right;
            let goal = asked.goal(settings, jdk).unwrap_or(0);
            if right.percent().is_some_and(|percent| percent < goal) {
                let name = SETTINGS[settings];
                missed.push(format!(
                    "JDK {jdk}, {name}: {right} right, the goal is {goal} %"
                ));
            }
        }
    }
    let tenths = sums(judged, |_, _| true).tenths;
    for (tenth, share) in (0..).zip(tenths) {
        let goal = if tenth == 9 {
            SURE
        } else {
            (tenth * 10_u32).saturating_sub(BELOW)
        };
        if share.percent().is_some_and(|percent| percent < goal) {
            missed.push(format!(
                "answers with the probability 0.{tenth}: {share} are correct, the goal is {goal} %"
            ));
        }
    }
    let failed = judged.iter().filter(|j| j.answers.is_err()).count();
    if failed > 0 {
        missed.push(format!("{failed} could not be run"));
    }
    if !missed.is_empty() {
        bail!("{}", missed.join("; "));
    }
    Ok(())
}
