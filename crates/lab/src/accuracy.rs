//! Measures how often reports are right. Three kinds of programs run on each JDK with the agent loaded: each leak
//! scenario, its fixed twin (the same program without the leak), and each control (a program that seems to leak but
//! does not). Their heaps are dumped and compared with the commands that a user would type.
//!
//! A report on a leak is right if its first suspect has the expected holder, and the first stack of this suspect
//! contains the method that allocates the leaking objects. The report on two dumps and the report on three dumps must
//! both be right. In the report on the last dump alone, the holder has to be among the first three suspects.
//!
//! A false alarm is a suspect with the verdict leak or growth in a program without a leak. Fixed twins are compared
//! with two dumps and with three, controls with three and with four. `--repeat` runs the programs without a leak
//! several times, because rare alarms show only in many runs.

mod explained;
mod judge;
mod one_dump;
mod recorded;
mod report;
mod subject;
mod table;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use testdata::jvm::Jdk;
use testdata::scenarios::fetch_libraries;

use self::judge::Totals;
use self::subject::{Subject, Tools};
use crate::{java, run};

/// The goals: minimum shares of right answers, in percent.
const HOLDER: u32 = 98;
const VERDICT: u32 = 98;
const CLASS: u32 = 95;
const STACK: u32 = 95;
const ONE_DUMP: u32 = 90;

/// The default garbage collector.
const G1: &str = "G1";
const SAMPLING: &str = "interval=4k";

/// Options of `cargo xtask accuracy`.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Run a few scenarios and controls on one JDK
    #[arg(long, conflicts_with_all = ["scenario", "jdk"])]
    smoke: bool,
    /// Use only this JDK (major version); may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Run only this scenario or control; may be repeated
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Collector of the programs: G1, Serial, Parallel or Z
    #[arg(long, value_name = "NAME", default_value = G1)]
    collector: String,
    /// Pass this flag to the JVM, such as -XX:+ZGenerational; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    flag: Vec<String>,
    /// Options of the agent
    #[arg(long, value_name = "OPTIONS", default_value = SAMPLING)]
    sampling: String,
    /// Number of runs of each program without a leak: fixed versions of the scenarios, and controls, which only seem to
    /// leak
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    repeat: u32,
    /// Number of JVMs that run at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    jobs: usize,
    /// Keep the dumps and reports in target/accuracy
    #[arg(long)]
    keep: bool,
    /// Run leaking programs without the agent, and judge only the report on the last dump alone
    #[arg(long, conflicts_with_all = ["smoke", "repeat", "sampling"])]
    one_dump: bool,
    /// With --one-dump: also run Eclipse MAT. PROGRAM is MAT's ParseHeapDump.sh, or takes the same arguments
    #[arg(long, value_name = "PROGRAM", requires = "one_dump")]
    mat: Option<PathBuf>,
    /// Judge only stacks from Flight Recorder's recordings, in runs without the agent
    #[arg(long, conflicts_with_all = ["smoke", "repeat", "sampling", "one_dump"])]
    recording: bool,
    #[command(flatten)]
    recorded: recorded::Options,
    #[command(flatten)]
    tested: run::Tested,
    /// Write the table to this file [default: target/accuracy.md if all programs run on all JDKs with the default
    /// collector, flags and sampling]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Options {
    /// Returns the options of the run in CI.
    pub fn smoke() -> Self {
        Self {
            smoke: true,
            collector: G1.to_owned(),
            sampling: SAMPLING.to_owned(),
            repeat: 1,
            jobs: 2,
            ..Self::default()
        }
    }

    fn jdks(&self) -> Result<Vec<Jdk>> {
        let mut jdks = java::jdks(&self.jdk)?;
        if self.smoke {
            jdks.truncate(1);
        }
        Ok(jdks)
    }

    fn subjects(&self) -> Result<Vec<Subject>> {
        const FEW: [&str; 6] = [
            "session_registry",
            "listeners",
            "tenant_map",
            "churn",
            "weak_cache",
            "table_loaded_once",
        ];
        let mut subjects = subject::all();
        if self.smoke {
            subjects.retain(|subject| FEW.contains(&subject.name()));
        }
        for name in &self.scenario {
            let is_known = subjects.iter().any(|subject| subject.name() == name);
            ensure!(is_known, "there is no scenario named {name}");
        }
        if self.one_dump || (self.recording && !self.recorded.without_leaks) {
            subjects.retain(|subject| matches!(subject, Subject::Leak(_)));
        }
        if !self.scenario.is_empty() {
            subjects.retain(|subject| self.scenario.iter().any(|n| n == subject.name()));
        }
        ensure!(
            !subjects.is_empty(),
            "--one-dump needs programs that leak; --recording also needs programs that leak, except with --without-leaks"
        );
        Ok(subjects)
    }

    fn is_whole(&self) -> bool {
        let is_usual = self.collector == G1 && self.flag.is_empty() && self.sampling == SAMPLING;
        !self.smoke
            && !self.one_dump
            && !self.recording
            && is_usual
            && self.jdk.is_empty()
            && self.scenario.is_empty()
    }
}

/// Measures the accuracy on the test programs that the options select, prints the table, and fails if the results are
/// below a goal.
pub(crate) fn accuracy(options: &Options) -> Result<()> {
    let jdks = options.jdks()?;
    let subjects = options.subjects()?;
    if subjects.iter().any(|subject| subject.libraries()) {
        fetch_libraries()?;
    }
    let (heapdiff, agent) = options.tested.build_products(options.smoke)?;
    let scratch = run::target_dir().join("accuracy");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let tools = Tools {
        heapdiff: &heapdiff,
        agent: &agent,
        scratch: &scratch,
        keep: options.keep,
        repeat: options.repeat.max(1),
        collector: &options.collector,
        flags: &options.flag,
        sampling: &options.sampling,
        jdks: &jdks,
    };
    let workers = options.jobs.max(1);
    if options.one_dump {
        let judge = |jdk: &Jdk, subject: &Subject| {
            one_dump::judge(jdk, subject, &tools, options.mat.as_deref())
        };
        let judged = run_all(&jdks, &subjects, workers, judge);
        let text = one_dump::table(&jdks, &judged)?;
        println!("{text}");
        if let Some(file) = &options.output {
            write(file, &text)?;
        }
        return one_dump::goal(&judged);
    }
    if options.recording {
        let asked = &options.recorded;
        let judge = |jdk: &Jdk, subject: &Subject| recorded::judge(jdk, subject, &tools, asked);
        let judged = run_all(&jdks, &subjects, workers, judge);
        let text = recorded::table(&jdks, &options.collector, asked, &judged)?;
        println!("{text}");
        if let Some(file) = &options.output {
            write(file, &text)?;
        }
        return recorded::goals(asked, &judged);
    }
    let judge = |jdk: &Jdk, subject: &Subject| judge::judge(jdk, subject, &tools);
    let judgements = run_all(&jdks, &subjects, workers, judge);
    let totals = Totals::from_judgements(&judgements);
    let flags: String = options.flag.iter().map(|flag| format!(" {flag}")).collect();
    let with = format!(
        "with the agent ({sampling}), the collector {collector}{flags}",
        sampling = options.sampling,
        collector = options.collector
    );
    let text = table::of(&jdks, &with, &judgements, &totals)?;
    println!("{text}");
    let usual = run::target_dir().join("accuracy.md");
    let output = options
        .output
        .as_deref()
        .or(options.is_whole().then_some(&*usual));
    if let Some(file) = output {
        write(file, &text)?;
    }
    goals(&totals)
}

fn write(file: &Path, text: &str) -> Result<()> {
    let beside = file.with_extension("new");
    fs::write(&beside, text).with_context(|| format!("cannot write {}", beside.display()))?;
    fs::rename(&beside, file).with_context(|| format!("cannot write {}", file.display()))
}

fn goals(totals: &Totals) -> Result<()> {
    let mut missed = Vec::new();
    for (what, share, goal) in [
        ("holder first", totals.holder_first, HOLDER),
        ("verdict", totals.verdict, VERDICT),
        ("class", totals.class, CLASS),
        ("stack first", totals.stack_first, STACK),
        (
            "holder among the first three suspects of one dump",
            totals.one_dump,
            ONE_DUMP,
        ),
    ] {
        if share.percent().is_some_and(|percent| percent < goal) {
            missed.push(format!("{what} in {share}, the goal is {goal} %"));
        }
    }
    if totals.failed > 0 {
        missed.push(format!("{} could not be run", totals.failed));
    }
    if totals.alarms > 0 {
        missed.push(format!("{} false alarms", totals.alarms));
    }
    if !missed.is_empty() {
        bail!("{}", missed.join("; "));
    }
    Ok(())
}

/// Runs `judge` for each JDK and subject, and returns the judgements: all subjects on the first JDK, then all subjects
/// on the next JDK, and so on.
fn run_all<J: Display + Send>(
    jdks: &[Jdk],
    subjects: &[Subject],
    workers: usize,
    judge: impl Fn(&Jdk, &Subject) -> J + Sync,
) -> Vec<J> {
    let jobs: Vec<(&Jdk, &Subject)> = jdks
        .iter()
        .flat_map(|jdk| subjects.iter().map(move |subject| (jdk, subject)))
        .collect();
    let done: Mutex<Vec<(usize, J)>> = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((at, (jdk, subject))) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(at).map(|job| (at, job))
                } {
                    let judgement = judge(jdk, subject);
                    println!("  {judgement}");
                    let mut done = done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    done.push((at, judgement));
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, judgement)| judgement).collect()
}
