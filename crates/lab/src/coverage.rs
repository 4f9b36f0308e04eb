//! How often the intervals of stacks cover the truth: a program that knows what each of its stacks allocated, on each
//! JDK and collector, at two intervals, dumped and read as a user would.
//!
//! Intervals of 95 % should cover 93 to 97 of 100 truths, and estimates be off by less than 3 % on average.

mod measure;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use self::measure::{Measured, Setting, Tools};
use crate::{java, run};

/// Collectors by the name in their flag.
const COLLECTORS: [&str; 4] = ["G1", "Serial", "Parallel", "Z"];
/// Mean bytes between samples.
const INTERVALS: [&str; 2] = ["64k", "512k"];

/// What `cargo xtask coverage` takes.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// One short run on one JDK, which only has to work
    #[arg(long, conflicts_with_all = ["jdk", "collector", "repeats"])]
    smoke: bool,
    /// Only this JDK, by its major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Only this collector: G1, Serial, Parallel or Z; may be repeated
    #[arg(long, value_name = "NAME")]
    collector: Vec<String>,
    /// A further flag of the JVM, such as -XX:+ZGenerational; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    flag: Vec<String>,
    /// Runs of each JDK, collector and interval
    #[arg(long, default_value_t = 10, value_name = "N")]
    repeats: u32,
    /// Count allocations as well, and say how much narrower intervals are for it
    #[arg(long)]
    count: bool,
    /// Mebibytes that the program keeps of each object size before each dump
    #[arg(long, default_value_t = 16, value_name = "MIB")]
    size: u32,
    #[command(flatten)]
    tested: run::Tested,
    /// Write the table to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Options {
    /// What CI runs.
    pub fn smoke() -> Self {
        Self {
            smoke: true,
            count: true,
            ..Self::default()
        }
    }

    fn settings(&self) -> Result<Vec<Setting>> {
        for name in &self.collector {
            ensure!(COLLECTORS.contains(&&**name), "no such collector: {name}");
        }
        let mut jdks = java::jdks(&self.jdk)?;
        if self.smoke {
            jdks.truncate(1);
        }
        let mut settings = Vec::new();
        for jdk in jdks {
            for collector in COLLECTORS {
                if !self.collector.is_empty() && !self.collector.iter().any(|c| c == collector) {
                    continue;
                }
                for interval in INTERVALS {
                    settings.push(Setting {
                        jdk: jdk.clone(),
                        collector,
                        flags: self.flag.clone(),
                        interval,
                        counts: self.count,
                    });
                }
            }
        }
        if self.smoke {
            settings.truncate(1);
        }
        Ok(settings)
    }
}

/// Runs what the options ask for and prints the table.
pub(crate) fn coverage(options: &Options) -> Result<()> {
    let settings = options.settings()?;
    let (heapdiff, agent) = options.tested.products(options.smoke)?;
    let scratch = run::target_dir().join("coverage");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let (repeats, size) = if options.smoke {
        (1, 4)
    } else {
        (options.repeats, options.size)
    };
    let tools = Tools {
        heapdiff: &heapdiff,
        agent: &agent,
        scratch: &scratch,
        size,
    };
    let mut found: Vec<Measured> = Vec::new();
    let mut text = String::new();
    for repeat in 1..=repeats {
        for setting in &settings {
            println!("{repeat} of {repeats}: {setting}");
            found.extend(tools.measure(setting, u64::from(repeat))?);
        }
        ensure!(!found.is_empty(), "nothing was measured");
        text = table::of(&found, repeat);
        // A run that is ended early keeps what it measured.
        if let Some(file) = &options.output {
            fs::write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    println!("{text}");
    Ok(())
}
