//! Judges the stacks of recordings: leaks run on a stock JVM with Flight Recorder and without the agent, and `heapdiff
//! --recording` compares their three dumps.
//!
//! An answer is right if the first stack of the suspect with the expected holder contains the method that allocates the
//! leaking objects. The answer by class alone takes the stack that allocated most objects of the suspect's class in the
//! recording. The weights of the join were set with the programs at even places of the sorted list of names, so the
//! results of the others are listed separately.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use testdata::jvm::Jdk;
use testdata::scenarios::{Expected, Mode, PHASES, Scenario};

use super::judge::Share;
use super::report::Report;
use super::subject::{Subject, Tools};

/// The settings of Flight Recorder.
pub(super) const SETTINGS: [&str; 3] = ["profile", "default", "default,memory-leaks=stack-traces"];

/// Number of classes of probabilities, each one tenth wide.
const TENTHS: usize = 10;

/// The results for one program on one JDK: one for each of the settings.
#[derive(Debug)]
pub(super) struct Judged {
    name: &'static str,
    jdk: u32,
    answers: Result<Vec<Answer>>,
}

/// The answer on one leak.
#[derive(Debug)]
struct Answer {
    settings: usize,
    /// True if the first stack is right.
    is_right: bool,
    /// True if the stack by class alone is right.
    is_right_by_class: bool,
    /// The probability of the first stack in thousandths. `None` if no stack is stated.
    permille: Option<u64>,
    /// The first stack's sentence.
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

/// Runs a leaking program with each of the settings, and judges the reports.
pub(super) fn judge(jdk: &Jdk, subject: &Subject, tools: &Tools<'_>) -> Judged {
    let run = |scenario: &Scenario| -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for settings in 0..SETTINGS.len() {
            answers.extend(run(jdk, scenario, settings, tools)?);
        }
        Ok(answers)
    };
    Judged {
        name: subject.name(),
        jdk: jdk.major(),
        answers: match subject {
            Subject::Leak(scenario) if scenario.runs_on(jdk) => run(scenario),
            _ => Ok(Vec::new()),
        },
    }
}

fn run(jdk: &Jdk, scenario: &Scenario, settings: usize, tools: &Tools<'_>) -> Result<Vec<Answer>> {
    let folder = tools.folder(&format!("{}-recorded-{settings}", scenario.name), jdk)?;
    let flag = format!("-XX:StartFlightRecording:settings={}", SETTINGS[settings]);
    let launch = tools
        .without_agent(scenario.launch(jdk, Mode::Leak)?)
        .flag(flag);
    let mut target = launch.start()?;
    let dumps = tools.dumps_of(&mut target, PHASES, &folder)?;
    let recording = std::path::absolute(folder.join("rec.jfr"))?;
    target.jcmd([
        "JFR.dump".to_owned(),
        format!("filename={}", recording.display()),
    ])?;
    drop(target);
    let report = folder.join("3.json");
    let mut compare = Command::new(tools.heapdiff);
    compare
        .arg("diff")
        .args(&dumps)
        .arg("--recording")
        .arg(&recording);
    written(compare.args(["--no-index"]), &report)?;
    let report = Report::read(&report)?;
    let by_class = folder.join("sites.json");
    let mut sites = Command::new(tools.heapdiff);
    sites
        .arg("sites")
        .arg(&recording)
        .args(["--allocated", "--by", "stack"]);
    // A recording without any sample is an error for `sites`.
    let sites = match written(&mut sites, &by_class) {
        Ok(()) => serde_json::from_slice(&fs::read(&by_class)?)?,
        Err(_) => Sites { stacks: Vec::new() },
    };
    tools.clear(&folder)?;
    let expected = scenario.expected();
    Ok(expected
        .map(|of| Answer::of(of, settings, &report, &sites))
        .collect())
}

/// Runs heapdiff, which writes a JSON report to `file`.
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

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {} {}:", self.jdk, self.name)?;
        match &self.answers {
            Err(error) => return write!(f, " could not be run: {error:#}"),
            Ok(answers) if answers.is_empty() => return write!(f, " needs another JDK"),
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

/// Answers of some runs.
#[derive(Debug, Default)]
struct Sums {
    right: Share,
    by_class: Share,
    tenths: [Share; TENTHS],
    /// Sum of the squared differences of the stated probability and the truth.
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

/// Returns the tables as Markdown.
pub(super) fn table(jdks: &[Jdk], collector: &str, judged: &[Judged]) -> Result<String> {
    let versions: Vec<&str> = jdks.iter().map(Jdk::version).collect();
    let names: BTreeSet<&str> = judged.iter().map(|j| j.name).collect();
    let even: BTreeSet<&str> = names.iter().copied().step_by(2).collect();
    let mut text = format!(
        "# Stacks from recordings\n\nJDK {}, {collector}, no agent. Each leak has three dumps and one recording.\n\n\
         | JDK | settings | first stack right | of these, programs not used for weights | by class alone |\n\
         |---|---|---|---|---|\n",
        versions.join(" and ")
    );
    let (mut all, mut rest) = (Sums::default(), Sums::default());
    let mut wrong = String::new();
    for jdk in jdks {
        for (settings, name) in SETTINGS.iter().enumerate() {
            let (mut own, mut others) = (Sums::default(), Sums::default());
            for one in judged.iter().filter(|j| j.jdk == jdk.major()) {
                let answers = one.answers.as_ref().ok().into_iter().flatten();
                for answer in answers.filter(|a| a.settings == settings) {
                    own.add(answer);
                    all.add(answer);
                    if !even.contains(one.name) {
                        others.add(answer);
                        rest.add(answer);
                    }
                    if !answer.is_right {
                        let (said, jdk) = (&answer.said, one.jdk);
                        writeln!(wrong, "- {}, JDK {jdk}, {name}: {said}", one.name)?;
                    }
                }
            }
            let (right, by_class) = (own.right, own.by_class);
            let major = jdk.major();
            writeln!(
                text,
                "| {major} | {name} | {right} | {} | {by_class} |",
                others.right
            )?;
        }
    }
    text.push_str(
        "\n| stated probability | right | programs not used for weights |\n|---|---|---|\n",
    );
    for (tenth, (all, rest)) in all.tenths.iter().zip(&rest.tenths).enumerate().rev() {
        if all.all > 0 {
            writeln!(text, "| 0.{tenth} | {all} | {rest} |")?;
        }
    }
    let brier = |sums: &Sums| sums.squares / f64::from(sums.stated().max(1));
    writeln!(
        text,
        "\nBrier score of the {} stated answers: {:.3}; of programs not used for weights: {:.3}\n\n{wrong}",
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

/// Returns an error if an answer with a probability of at least 0.9 is wrong in more than 3 % of the cases.
pub(super) fn goal(judged: &[Judged]) -> Result<()> {
    let answers = judged
        .iter()
        .filter_map(|j| j.answers.as_ref().ok())
        .flatten();
    let mut sure = Share::default();
    for answer in answers.filter(|answer| answer.permille >= Some(900)) {
        sure.count(answer.is_right);
    }
    if sure.percent().is_some_and(|percent| percent < 97) {
        bail!("of answers stated at 0.9 or more, {sure} are right, the goal is 97 %");
    }
    Ok(())
}
