//! Reads a dump as large as those of large servers, within a memory limit.
//!
//! The machines that run this task are too small for a JVM with a heap of 40 GB. So the dump consists of a real dump of
//! about a gigabyte and copies of its objects. Therefore object sizes and data structures are like those of a real
//! heap. A second dump has a tenth of the copies and is read without a limit. The totals of both dumps must be in
//! proportion.

mod copies;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bench::{self, Measurement};
use crate::run;

/// Options of `cargo xtask scale`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Gigabytes of the dump; the disk also needs room for a second dump of a tenth of this size, and for the data that
    /// does not fit in --max-memory
    #[arg(long, default_value_t = 36, value_name = "GB", value_parser = clap::value_parser!(u64).range(1..))]
    size: u64,
    /// Memory limit of heapdiff for the whole dump
    #[arg(long, default_value = "4G", value_name = "SIZE")]
    max_memory: String,
    /// Scale of the heap that is copied; see `cargo xtask bench`
    #[arg(long, default_value_t = 0.5)]
    scale: f64,
    /// Folder for the dumps [default: in the target folder]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// The heapdiff to measure [default: built]
    #[arg(long, value_name = "FILE")]
    heapdiff: Option<PathBuf>,
    /// Stop a command after this many seconds, and count it as failed
    #[arg(long, default_value_t = 3600)]
    timeout: u64,
    /// Also write the table to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Number of objects and shallow bytes, by class.
type Totals = BTreeMap<String, [i64; 2]>;

/// Writes the large and the small dump, analyzes both, and fails if the totals are not in proportion.
pub(crate) fn scale(options: &Options) -> Result<()> {
    let scratch = match &options.scratch {
        Some(folder) => folder.clone(),
        None => run::target_dir().join("scale"),
    };
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let heapdiff = match &options.heapdiff {
        Some(given) => given.clone(),
        None => run::Products::build_for_measurement(false)?.heapdiff(),
    };
    let base = bench::dump(options.scale, &scratch)?;
    let bytes = fs::metadata(&base)?.len().max(1);
    let copies = (options.size * 1_000_000_000 / bytes).max(20);
    let [tenth, whole] = [("tenth", copies / 10), ("whole", copies)].map(|(name, count)| {
        let file = scratch.join(format!("{name}.hprof"));
        println!("{count} copies: {}", file.display());
        copies::write(&base, count - 1, &file).map(|()| (file, count))
    });
    let (tenth, whole) = (tenth?, whole?);
    let limit = Duration::from_secs(options.timeout);
    let bounded = ["--max-memory", &options.max_memory];
    let asked = |command: &'static str, dump: &Path, more: &[&str]| -> Result<Answer> {
        let answer = run_command(&heapdiff, command, dump, more, limit)?;
        println!("{command} {}: {}", dump.display(), answer.took);
        Ok(answer)
    };
    let mut text = format!(
        "# Results for a dump of {} GB\n\n{}- {copies} copies of a dump of {bytes} bytes, and a tenth of them\n\n\
         | command | dump | memory limit | objects | wall time s | ns/object | CPU time s | anonymous MB | file-backed MB |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        options.size,
        bench::machine(),
    );
    let mut slower = Vec::new();
    for command in ["histo", "top"] {
        let small = asked(command, &tenth.0, &[])?;
        let large = asked(command, &whole.0, &bounded)?;
        small.row(command, "tenth", "none", &mut text);
        large.row(command, "whole", &options.max_memory, &mut text);
        let ratio = large.nanoseconds() / small.nanoseconds();
        slower.push(format!(
            "`{command}` takes {ratio:.2} times as long per object"
        ));
        if command == "histo" {
            let base = totals(&asked(command, &base, &[])?.report)?;
            let parts = [(&base, 1), (&totals(&small.report)?, tenth.1)];
            check_linear_totals(&parts, &totals(&large.report)?, whole.1)?;
        } else {
            retained(&small.report, &large.report)?;
        }
    }
    text += &format!(
        "\nFor the whole dump: {}. Its totals by class are in proportion to those of the dump with a tenth of the objects.\n",
        slower.join(", ")
    );
    println!("{text}");
    if let Some(file) = &options.output {
        fs::write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    for (file, _) in [tenth, whole] {
        fs::remove_file(file)?;
    }
    Ok(())
}

/// The output of a command, and its time and memory.
struct Answer {
    report: Value,
    objects: u64,
    took: Measurement,
}

impl Answer {
    fn nanoseconds(&self) -> f64 {
        self.took.wall.as_secs_f64() * 1e9 / self.objects.max(1) as f64
    }

    fn row(&self, command: &str, dump: &str, limit: &str, text: &mut String) {
        *text += &format!(
            "| {command} | {dump} | {limit} | {} | {:.1} | {:.0} | {:.1} | {} | {} |\n",
            self.objects,
            self.took.wall.as_secs_f64(),
            self.nanoseconds(),
            self.took.cpu.as_secs_f64(),
            self.took.anonymous / 1_000_000,
            self.took.file_backed / 1_000_000,
        );
    }
}

fn run_command(
    heapdiff: &Path,
    command: &str,
    dump: &Path,
    more: &[&str],
    limit: Duration,
) -> Result<Answer> {
    let output = dump.with_extension("json");
    let mut run = Command::new(heapdiff);
    run.arg(command).arg(dump).args(more);
    // `histo` lists all classes. `top` lists fewer objects, because each row contains a path. The dump consists of
    // copies of one heap, and 1000 rows are just enough for the largest object of each copy.
    let top = if command == "histo" { "100000" } else { "1000" };
    run.args([
        "--top",
        top,
        "--format",
        "json",
        "--no-index",
        "--progress",
        "never",
    ]);
    run.arg("-o").arg(&output);
    let (status, took) = bench::measure(&mut run, limit)?;
    ensure!(status.success(), "{command} {}: {status}", dump.display());
    let report: Value = serde_json::from_slice(&fs::read(&output)?)?;
    fs::remove_file(&output)?;
    let objects = report.pointer("/snapshot/objects").and_then(Value::as_u64);
    Ok(Answer {
        report,
        objects: objects.context("the report counts no objects")?,
        took,
    })
}

fn totals(report: &Value) -> Result<Totals> {
    let mut totals = Totals::new();
    for class in report["classes"].as_array().context("no classes")? {
        let name = class["class"].as_str().context("a class without a name")?;
        let figure = |key: &str| class[key].as_i64().with_context(|| format!("no {key}"));
        let found = totals.entry(name.to_owned()).or_default();
        found[0] += figure("objects")?;
        found[1] += figure("shallow_bytes")?;
    }
    Ok(totals)
}

/// Fails if the totals of a class do not grow linearly with the number of copies.
fn check_linear_totals(parts: &[(&Totals, u64); 2], whole: &Totals, copies: u64) -> Result<()> {
    let [(one, _), (some, count)] = *parts;
    let mut wrong = Vec::new();
    for (class, figures) in whole {
        let [first, then] = [one, some].map(|t| t.get(class).copied().unwrap_or_default());
        for (i, what) in ["objects", "shallow bytes"].into_iter().enumerate() {
            let step = (then[i] - first[i]) as f64 / (count - 1) as f64;
            let expected = first[i] as f64 + step * (copies - 1) as f64;
            // Accept a small difference. The size of an object is normally the distance to the next object. If a class
            // object follows, the size model calculates the size instead.
            if (figures[i] as f64 - expected).abs() > 0.000_1 * expected + 1.0 {
                wrong.push(format!(
                    "{class}: {} {what}, expected {expected:.0}",
                    figures[i]
                ));
            }
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        bail!(
            "these totals of the whole dump are not in proportion to those of the dump with a tenth of the objects:\n{}",
            wrong.join("\n")
        )
    }
}

/// Fails if the two dumps report different retained sizes for the largest message queue.
fn retained(tenth: &Value, whole: &Value) -> Result<()> {
    let largest = |report: &Value| -> Option<(String, i64)> {
        let objects = report["objects"].as_array()?;
        let of_copies = objects
            .iter()
            .find(|o| o["class"] == "BigHeap$MessageQueue")?;
        Some((
            of_copies["class"].to_string(),
            of_copies["retained_bytes"].as_i64()?,
        ))
    };
    let (small, large) = (largest(tenth), largest(whole));
    ensure!(
        small.is_some() && small == large,
        "{small:?} in the tenth, {large:?} in the whole"
    );
    Ok(())
}
