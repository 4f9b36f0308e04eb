//! Dumps by forked children: that many of them leave nothing behind in a JVM under load, whoever is killed; how long the
//! program stands still, and what its clients notice, beside the JVM's own dump; that other programs read them; and that
//! they say what the JVM says, also on JVMs that are given.

mod latency;
mod many;
mod pauses;
mod picture;
mod readers;
mod service;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use crate::{java, run};
use service::Tools;

/// What `cargo xtask forks` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Which parts; all if not given
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// A JVM to test beside those that are found, or in the place of one of the same major version: a folder with
    /// bin/java and bin/jcmd; may be repeated
    #[arg(long, value_name = "HOME")]
    java: Vec<PathBuf>,
    /// Only JDKs of this major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Only this collector, such as G1; may be repeated
    #[arg(long, value_name = "NAME")]
    collector: Vec<String>,
    /// Dumps of each JVM and collector, for `many`
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Every so many dumps somebody is killed at any moment
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    kill_every: u32,
    /// Megabytes of live objects, for `pauses`; may be repeated
    #[arg(long, value_name = "MB", default_values_t = [200, 1000, 4000])]
    live: Vec<u32>,
    /// Megabytes of live objects of the service, for `latency`
    #[arg(long, value_name = "MB", default_value_t = 500)]
    service: u32,
    /// A further flag of the JVM for `pauses` and `latency`, such as -XX:+UseTransparentHugePages; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    flag: Vec<String>,
    #[command(flatten)]
    tested: run::Tested,
    /// Folder of other programs that read dumps, for `readers`; installed below the target folder if not given
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Also write the tables to this file, and pictures beside it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Each dump's objects and sizes beside the JVM's own: the agent's tests, on each JVM
    Same,
    /// Many dumps of a JVM under load, some of which are killed
    Many,
    /// How long the program stands still, by the log of JDK 17 and later
    Pauses,
    /// What clients of a service notice
    Latency,
    /// Other programs read a dump
    Readers,
}

const PARTS: [Part; 5] = [
    Part::Same,
    Part::Many,
    Part::Pauses,
    Part::Latency,
    Part::Readers,
];

/// A collector with a heap that a child has a copy of, and its flags.
const COLLECTORS: [(&str, &[&str]); 4] = [
    ("G1", &["-XX:+UseG1GC"]),
    ("Parallel", &["-XX:+UseParallelGC"]),
    ("Serial", &["-XX:+UseSerialGC"]),
    // It is experimental in JDK 11.
    (
        "Shenandoah",
        &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"],
    ),
];

/// Runs the parts, and shows their tables.
pub(crate) fn forks(options: &Options) -> Result<()> {
    let jdks = java::for_agent(&options.java, &options.jdk)?;
    let parts = if options.parts.is_empty() {
        &PARTS[..]
    } else {
        &options.parts
    };
    if parts.contains(&Part::Same) {
        same(&jdks)?;
    }
    let scratch = run::target_dir().join("forks");
    fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let scratch = tempfile::tempdir_in(fs::canonicalize(scratch)?)?;
    let (heapdiff, agent) = match parts {
        [Part::Same] => return Ok(()),
        _ => options.tested.products(false)?,
    };
    let tools = Tools {
        heapdiff,
        agent,
        scratch: scratch.path().to_owned(),
    };
    let mut text = String::new();
    let mut failed = Vec::new();
    for part in parts {
        let (part, wrong) = match part {
            Part::Same => continue,
            Part::Many => options.many(&jdks, &tools)?,
            Part::Pauses => (options.pauses(&jdks, &tools)?, Vec::new()),
            Part::Latency => (options.latency(&jdks, &tools)?, Vec::new()),
            Part::Readers => (
                readers::readers(&jdks, &tools, options.peers.as_deref())?,
                Vec::new(),
            ),
        };
        println!("\n{part}");
        writeln!(text, "{part}")?;
        failed.extend(wrong);
    }
    if let Some(file) = &options.output {
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

impl Options {
    fn many(&self, jdks: &[Jdk], tools: &Tools) -> Result<(String, Vec<String>)> {
        let mut table = many::Table::new(self.count);
        for jdk in jdks {
            for (name, flags) in COLLECTORS {
                let is_wanted = |wanted: &String| wanted.eq_ignore_ascii_case(name);
                if self.collector.is_empty() || self.collector.iter().any(is_wanted) {
                    let (count, kills) = (self.count, self.kill_every);
                    let row = many::many(jdk, (name, flags), tools, count, kills)?;
                    table.add(&row)?;
                }
            }
        }
        Ok(table.end())
    }

    fn pauses(&self, jdks: &[Jdk], tools: &Tools) -> Result<String> {
        let mut text = pauses::HEAD.to_owned();
        for jdk in jdks {
            for &live in &self.live {
                let row = pauses::pauses(jdk, live, &self.flag, tools)?;
                println!("{row}");
                text += &row;
            }
        }
        Ok(text)
    }

    fn latency(&self, jdks: &[Jdk], tools: &Tools) -> Result<String> {
        let mut text = latency::HEAD.to_owned();
        for jdk in jdks {
            let measured = latency::latency(jdk, self.service, &self.flag, tools)?;
            println!("{}", measured.rows);
            text += &measured.rows;
            if let Some(file) = &self.output {
                let name = format!("forks-latency-{}.svg", jdk.major());
                let title = format!(
                    "JDK {}, {} MB of live objects: latency while a dump is taken",
                    jdk.major(),
                    self.service
                );
                let picture = picture::svg(&title, &measured.series)?;
                let beside = file.parent().unwrap_or(Path::new("."));
                fs::write(beside.join(&name), picture)?;
            }
        }
        for jdk in jdks {
            let major = jdk.major();
            write!(
                text,
                "\n![latency on JDK {major}](forks-latency-{major}.svg)\n"
            )?;
        }
        Ok(text)
    }
}

/// The agent's tests of forked dumps, with each JVM.
fn same(jdks: &[Jdk]) -> Result<()> {
    let homes: Vec<&Path> = jdks.iter().map(Jdk::home).collect();
    let homes = std::env::join_paths(homes)?;
    run::run(
        run::cargo()
            .args(["test", "--release", "--locked"])
            .args(["--package", "heapdiff-agent", "--test", "jvm"])
            .args(["--", "--nocapture", "forked::"])
            .env(testdata::jvm::HOMES, homes),
    )
}
