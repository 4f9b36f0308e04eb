//! Measures how often the 95 % confidence intervals in reports on stacks contain the true value. The measured program
//! records the bytes that each of its stacks allocates. It runs on each JDK and collector with two sampling intervals.
//! Its heap is dumped, and the dump is read with the commands that a user would type.
//!
//! Intervals of 95 % should contain 93 to 97 of 100 true values, and the mean error of the estimates should be below 3
//! %.

mod measure;
mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use self::measure::{Measured, Setting, Tools};
use crate::{java, run};

/// Collectors, named as in the JVM's flags.
const COLLECTORS: [&str; 4] = ["G1", "Serial", "Parallel", "Z"];
/// Mean number of bytes between two samples.
const INTERVALS: [&str; 2] = ["64k", "512k"];

/// Options of `cargo xtask coverage`.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Make one short run on one JDK, to check that everything works
    #[arg(long, conflicts_with_all = ["jdk", "collector", "repeats"])]
    smoke: bool,
    /// Use only this JDK (major version); may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Use only this collector: G1, Serial, Parallel or Z; may be repeated
    #[arg(long, value_name = "NAME")]
    collector: Vec<String>,
    /// Pass this flag to the JVM, such as -XX:+ZGenerational; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    flag: Vec<String>,
    /// Runs of each JDK, collector and interval
    #[arg(long, default_value_t = 10, value_name = "N")]
    repeats: u32,
    /// Also count allocations, and show how much narrower the intervals become
    #[arg(long)]
    count: bool,
    /// Mebibytes of each object size that the program keeps before each dump
    #[arg(long, default_value_t = 16, value_name = "MIB")]
    size: u32,
    #[command(flatten)]
    tested: run::Tested,
    /// Write the table to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Options {
    /// Returns the options of the run in CI.
    pub fn smoke() -> Self {
        Self {
            smoke: true,
            count: true,
            ..Self::default()
        }
    }

    fn settings(&self) -> Result<Vec<Setting>> {
        for name in &self.collector {
            ensure!(
                COLLECTORS.contains(&&**name),
                "there is no collector named {name}"
            );
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

/// Makes the runs that the options select, and prints the table.
pub(crate) fn coverage(options: &Options) -> Result<()> {
    let settings = options.settings()?;
    let (heapdiff, agent) = options.tested.build_products(options.smoke)?;
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
        // The table is written after each combination of JDK, collector and interval, so that an interrupted run keeps
        // its results.
        if let Some(file) = &options.output {
            fs::write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    println!("{text}");
    Ok(())
}
