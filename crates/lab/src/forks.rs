//! Tests heap dumps that forked children write. A JVM under load is dumped many times, and some processes are killed.
//! Afterwards the JVM must not have more open files, threads or child processes than before. The program's pauses and
//! its clients' latency are compared with those of the JVM's own dump. Other programs must be able to read the dumps.
//! The content must equal that of the JVM's own dump.

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

/// Options of `cargo xtask forks`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Parts to run [default: all]
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Also test this JVM; it replaces a found JVM of the same major version. A folder with bin/java and bin/jcmd; may
    /// be repeated
    #[arg(long, value_name = "HOME")]
    java: Vec<PathBuf>,
    /// Test only JDKs of this major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Test only this collector, such as G1; may be repeated
    #[arg(long, value_name = "NAME")]
    collector: Vec<String>,
    /// Dumps of each JVM and collector, for `many`
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Kill a process during every Nth dump, for `many`
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    kill_every: u32,
    /// Megabytes of live objects, for `pauses`; may be repeated
    #[arg(long, value_name = "MB", default_values_t = [200, 1000, 4000])]
    live: Vec<u32>,
    /// Megabytes of live objects of the service, for `latency`
    #[arg(long, value_name = "MB", default_value_t = 500)]
    service: u32,
    /// Pass this flag to the JVM in `pauses` and `latency`, such as -XX:+UseTransparentHugePages; may be repeated
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    flag: Vec<String>,
    #[command(flatten)]
    tested: run::Tested,
    /// Folder of other programs that read dumps, for `readers` [default: installed in the target folder]
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Also write the tables to this file, and pictures beside it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Compare objects and sizes of each dump with those of the JVM's own (the agent's tests, on each JVM)
    Same,
    /// Take many dumps of a JVM under load, and kill some of them
    Many,
    /// Measure how long the program pauses, by the log of JDK 17 and later
    Pauses,
    /// Measure the latency for clients of a service
    Latency,
    /// Read a dump with other programs
    Readers,
}

const PARTS: [Part; 5] = [
    Part::Same,
    Part::Many,
    Part::Pauses,
    Part::Latency,
    Part::Readers,
];

/// The collectors for which forked dumps are possible, with the JVM flags that select them.
const COLLECTORS: [(&str, &[&str]); 4] = [
    ("G1", &["-XX:+UseG1GC"]),
    ("Parallel", &["-XX:+UseParallelGC"]),
    ("Serial", &["-XX:+UseSerialGC"]),
    // Shenandoah is experimental in JDK 11.
    (
        "Shenandoah",
        &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"],
    ),
];

/// Runs the selected parts of the measurement and prints their tables.
pub(crate) fn forks(options: &Options) -> Result<()> {
    let jdks = java::for_agent(&options.java, &options.jdk)?;
    let parts = if options.parts.is_empty() {
        &PARTS[..]
    } else {
        &options.parts
    };
    if parts.contains(&Part::Same) {
        run_agent_tests(&jdks)?;
    }
    let scratch = run::target_dir().join("forks");
    fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let scratch = tempfile::tempdir_in(fs::canonicalize(scratch)?)?;
    let (heapdiff, agent) = match parts {
        [Part::Same] => return Ok(()),
        _ => options.tested.build_products(false)?,
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
                    let row = many::dump_repeatedly(jdk, (name, flags), tools, count, kills)?;
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
                    "JDK {}, {} MB of live objects: latency of requests during a dump",
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

/// Runs the agent's tests of forked dumps with each JVM.
fn run_agent_tests(jdks: &[Jdk]) -> Result<()> {
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
