//! Measures what sampling costs a program: processor time per operation, and memory. Compares runs without an agent,
//! with our agent, and with the tools that people would use instead.
//!
//! All JVMs of a round run side by side. Each JVM waits on its standard input. The JVMs process slices of the same work
//! in turn (A B C A B C ...). So a change of the machine's speed affects all JVMs. A new round starts new JVMs, because
//! two JVMs with the same flags can differ in their compiled code. The configuration `none` exists twice: the
//! difference between its two JVMs is the noise.

pub(crate) mod async_profiler;
mod collections;
mod figures;
mod program;
mod table;
mod tools;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use testdata::jvm::Jdk;

use self::figures::Figures;
use self::program::{PROGRAMS, Program, Running};
use self::tools::Tool;
use crate::{java, run};

/// Options of `cargo xtask overhead`.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Make short runs of a few configurations, and check that the results make sense
    #[arg(long, conflicts_with_all = ["rounds", "slices"])]
    smoke: bool,
    /// Number of rounds; each starts new JVMs, and medians are reported
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Slices of each JVM in a round, after the warm-up
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    slices: u32,
    /// Use only this JDK (major version); may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Run only this program, such as `Orders`; may be repeated
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// Run only configurations whose names begin with this text; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Pass this flag to every JVM, such as -XX:+UseZGC; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    flag: Vec<String>,
    /// The agent's library to measure [default: built]
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Also measure the agent's library of an earlier version
    #[arg(long, value_name = "FILE")]
    earlier: Option<PathBuf>,
    /// Also write the tables to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Options {
    /// Returns the options of the run in CI.
    pub fn smoke() -> Self {
        Self {
            smoke: true,
            rounds: 1,
            slices: 2,
            ..Self::default()
        }
    }

    fn programs(&self) -> Result<Vec<&'static Program>> {
        let asked =
            |p: &&Program| self.program.is_empty() || self.program.iter().any(|n| n == p.name);
        // The run in CI downloads nothing.
        let fits = |p: &&Program| !self.smoke || p.is_smoke();
        let programs: Vec<_> = PROGRAMS.iter().filter(asked).filter(fits).collect();
        ensure!(
            !programs.is_empty(),
            "there is no program named {:?}",
            self.program
        );
        Ok(programs)
    }

    fn jdks(&self) -> Result<Vec<Jdk>> {
        let mut jdks = java::jdks(&self.jdk)?;
        if self.smoke {
            jdks.truncate(1);
        }
        Ok(jdks)
    }
}

/// The results of one tool in all rounds.
#[derive(Debug)]
struct Outcome {
    tool: Tool,
    rounds: Vec<Figures>,
}

/// Measures and prints the tables.
pub(crate) fn overhead(options: &Options) -> Result<()> {
    let scratch = run::target_dir().join("overhead");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let agent = agent(options)?;
    let profiler = if options.smoke {
        Err("this tool is not part of the smoke run".to_owned())
    } else {
        async_profiler::ensure(&scratch).map_err(|error| format!("{error:#}"))
    };
    if let Err(why) = &profiler {
        println!("async-profiler is not measured: {why}");
    }
    let mut text = format!("# Overhead\n\n{}", crate::bench::machine());
    for jdk in options.jdks()? {
        for program in options.programs()? {
            let mut tools = tools::all(
                &jdk,
                (&agent, options.earlier.as_deref()),
                profiler.as_ref().ok(),
                &scratch,
            );
            let asked = |tool: &Tool| {
                options.only.is_empty()
                    || tool.is_baseline()
                    || options
                        .only
                        .iter()
                        .any(|name| tool.name.starts_with(&**name))
            };
            tools.retain(asked);
            if options.smoke {
                tools.retain(|tool| tool.is_baseline() || tool.ours);
            }
            let outcomes = measure(&jdk, program, tools, options, &scratch)?;
            if options.smoke {
                check(&outcomes)?;
            }
            text.push_str(&table::of(&jdk, program, &options.flag, &outcomes)?);
        }
    }
    println!("{text}");
    if let Some(file) = &options.output {
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn measure(
    jdk: &Jdk,
    program: &'static Program,
    tools: Vec<Tool>,
    options: &Options,
    scratch: &Path,
) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> = tools
        .into_iter()
        .map(|tool| Outcome {
            tool,
            rounds: Vec::new(),
        })
        .collect();
    let (rounds, slices) = if options.smoke {
        (1, 2)
    } else {
        (options.rounds, options.slices)
    };
    let compiled = program.compiled(jdk)?;
    for round in 1..=rounds {
        let mut running = Vec::new();
        for (number, outcome) in outcomes.iter().enumerate() {
            let more = options.flag.iter().map(OsStr::new);
            let flags = more.chain(outcome.tool.flags.iter().map(OsString::as_os_str));
            let log = scratch.join(format!("collections-{number}.log"));
            let mut jvm = Running::start(jdk, &compiled, flags, outcome.tool.part, &log)
                .with_context(|| outcome.tool.name.clone())?;
            jvm.warm_up(options.smoke)?;
            running.push((jvm, Figures::default()));
        }
        for slice in 0..slices as usize {
            // The order of the JVMs changes with each slice of the work, so that no JVM is always first.
            let count = running.len();
            for turn in 0..count {
                let (jvm, figures) = &mut running[(turn + slice) % count];
                figures.add(&jvm.slice()?);
            }
        }
        for (outcome, (jvm, mut figures)) in outcomes.iter_mut().zip(running) {
            (figures.peak_bytes, figures.collections) = jvm.finish()?;
            println!(
                "  JDK {} {} {round}/{} {}: {:.3} us of CPU time per operation",
                jdk.major(),
                program.title(),
                rounds,
                outcome.tool.name,
                figures.cpu_micros()
            );
            outcome.rounds.push(figures);
        }
    }
    Ok(outcomes)
}

/// Checks that the results of a small run make sense: each JVM has reported its work, and sampling did not crash the
/// program. With the agent, an operation must take less than three times the processor time. No other timing is
/// checked.
fn check(outcomes: &[Outcome]) -> Result<()> {
    for outcome in outcomes {
        for figures in &outcome.rounds {
            ensure!(
                figures.operations > 0 && figures.allocated > 0 && figures.peak_bytes > 10_000_000,
                "{}: {figures:?}",
                outcome.tool.name
            );
        }
    }
    let cpu = |of: fn(&Tool) -> bool| {
        let outcome = outcomes.iter().find(|outcome| of(&outcome.tool))?;
        figures::median(outcome.rounds.iter().map(Figures::cpu_micros))
    };
    let (Some(none), Some(ours)) = (cpu(Tool::is_baseline), cpu(|tool| tool.ours)) else {
        bail!("no figures");
    };
    ensure!(
        ours < 3.0 * none,
        "{ours:.2} us an operation with the agent, {none:.2} without"
    );
    Ok(())
}

/// Returns the agent to measure.
fn agent(options: &Options) -> Result<PathBuf> {
    if let Some(given) = &options.agent {
        return Ok(given.clone());
    }
    Ok(run::Products::build_for_measurement(options.smoke)?.agent())
}
