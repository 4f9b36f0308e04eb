//! `heapdiff redact`: writes a copy of a dump without its sensitive contents, or reports which sensitive contents a
//! dump has.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_diff::{pattern, redaction_rules};
use heapdiff_units::{Size, grouped};
use hprof::Source;
use hprof::redaction::{Amount, Left, Redacted, Redaction, Rules};
use regex::Regex;

use crate::args::input;
use crate::dump_file::DumpFile;
use crate::failure::{Exit, Failure, Result};
use crate::inputs;
use crate::interrupt;
use crate::messages;
use crate::progress::{Meter, Wanted};
use crate::write::{self, Kind};

const HELP: &str = "\
Examples:
  heapdiff redact app.hprof -o safe.hprof.gz  # write a copy for other people
  heapdiff redact safe.hprof.gz --check       # list the sensitive content of this dump

Replaced: the characters of short strings become letters from à to ÿ (equal strings stay equal; the
keys are random and not stored). Long strings and all other arrays become zeros, and so do fields
that can hold a hash of content. If the dump is damaged, nothing after the damage is copied.

Kept: names of classes, fields, methods and source files, object ids, sizes, references and lengths.
Numbers in fields are not changed, unless --numbers is given. SECURITY.md explains what the kept
data can reveal.

Exit codes: 0 = done, 1 = --check found content that `heapdiff redact` replaces, 2 = wrong usage,
3 = the dump could not be read.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Redact {
    /// Heap dump (HPROF), gzipped or not; `-` is standard input
    #[arg(value_name = "IN", value_parser = input())]
    dump: PathBuf,
    /// File for the redacted dump, gzipped if its name ends in .gz; `-` is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "check")]
    output: Option<PathBuf>,
    /// Report how much sensitive content is left, and what redact keeps on purpose: in OUT, or in
    /// IN without -o
    #[arg(long)]
    check: bool,
    /// Also replace the numbers in fields, except lengths in JDK collections, strings and buffers
    #[arg(long)]
    numbers: bool,
    /// With --numbers, keep the numbers in fields whose name, CLASS.FIELD, matches; may be repeated
    #[arg(long, value_name = "RE", value_parser = pattern, requires = "numbers")]
    keep_numbers: Vec<Regex>,
    /// Replace OUT even if it is a heap dump, JFR recording or trace
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    progress: Wanted,
    /// Refuse damaged or truncated dumps (exit code 3)
    #[arg(long)]
    strict: bool,
}

impl Redact {
    pub(crate) fn run(self) -> Result<Exit> {
        let is_standard = |path: &Path| path.as_os_str() == "-";
        let to = match self.output.as_deref() {
            Some(to) if is_standard(to) && self.check => {
                let message = "--check cannot check a dump that is written to standard output";
                return Err(Failure::usage(message).with_hint("write it to a file with -o FILE"));
            }
            Some(to) => Some(DumpFile::new(to)?),
            None => None,
        };
        interrupt::handle();
        if let Some(to) = &to {
            redact(&self, to)?;
        }
        let written = match to {
            Some(DumpFile::Stdout) => return Ok(Exit::Done),
            Some(DumpFile::File { path, .. }) => path,
            None => &self.dump,
        };
        if self.check {
            check(&self, written)
        } else {
            Ok(Exit::Done)
        }
    }
}

fn redact(job: &Redact, to: &DumpFile<'_>) -> Result<()> {
    to.check_terminal()?;
    let meter = Meter::new(job.progress, &job.dump);
    let input = |e| Failure::input(&job.dump, &e);
    let source = Source::open(&job.dump).map_err(input)?;
    let redaction = Redaction::new(&source, rules(job)).map_err(input)?;
    let mut done = Redacted::default();
    let mut refused = false;
    let written = to.write(Kind::Report, |out| {
        done = redaction.write(out, &meter)?;
        refused = job.strict && done.warnings.iter().any(|w| w.partial);
        // If this closure returns an error, no incomplete file appears under the final name.
        if refused {
            Err(io::Error::other("the dump is damaged"))
        } else {
            Ok(())
        }
    });
    drop(meter);
    inputs::exit_if_changed();
    match written {
        Err(_) if refused => return Err(messages::damaged_failure(&job.dump.display())),
        written => written.map_err(|e| write::failed(to, &e))?,
    }
    messages::print_input_warnings(&job.dump, &done.warnings, job.progress);
    Ok(())
}

fn rules(job: &Redact) -> Rules<'static> {
    Rules {
        keep_numbers: job.keep_numbers.clone(),
        ..redaction_rules(job.numbers)
    }
}

/// Reports which sensitive contents a dump contains.
fn check(job: &Redact, dump: &Path) -> Result<Exit> {
    let meter = Meter::new(job.progress, dump);
    let input = |e| Failure::input(dump, &e);
    let source = Source::open(dump).map_err(input)?;
    let redaction = Redaction::new(&source, rules(job)).map_err(input)?;
    let done = redaction
        .check(&meter)
        .map_err(|e| write::failed("the check", &e))?;
    drop(meter);
    inputs::exit_if_changed();
    if job.output.is_none() {
        messages::print_input_warnings(dump, &done.warnings, job.progress);
    }
    if job.strict && done.warnings.iter().any(|w| w.partial) {
        return Err(messages::damaged_failure(&dump.display()));
    }
    write::print(&left_message(dump, &done.left))?;
    Ok(if done.left.is_clean() {
        Exit::Done
    } else {
        Exit::Gate
    })
}

fn left_message(dump: &Path, left: &Left) -> String {
    let taken = [
        (
            "strings and other content of byte and char arrays",
            left.texts,
        ),
        ("content of other arrays of numbers", left.arrays),
        ("other constant-pool strings", left.unused_names),
        ("hashes of strings and keys", left.hashes),
        ("thread names in the agent's tables", left.table_texts),
        ("numbers in fields", left.numbers),
        ("bytes that are not valid records", left.unknown),
    ];
    let kept = [
        (
            "names of classes, fields, methods and source files",
            left.kept_names,
        ),
        ("numbers in fields", left.kept_numbers),
        (
            "numbers in fields that --keep-numbers keeps",
            left.requested_numbers,
        ),
        (
            "JVM version, and strings that are in every JVM ",
            left.kept_texts,
        ),
        ("numbers and names in the agent's tables", left.kept_tables),
    ];
    let dump = dump.display();
    let mut text = if left.is_clean() {
        format!("{dump}: fully redacted\n")
    } else {
        format!("{dump}: not redacted\n")
    };
    for (title, amounts) in [
        (
            "still in the dump (`heapdiff redact` replaces this)",
            &taken[..],
        ),
        ("kept on purpose", &kept),
    ] {
        let there: Vec<&(&str, Amount)> = amounts.iter().filter(|(_, a)| a.count > 0).collect();
        if !there.is_empty() {
            let _ = writeln!(text, "\n{title:<64}{:>14}{:>12}", "number", "bytes");
        }
        for (what, amount) in there {
            let (count, bytes) = (grouped(amount.count), Size(amount.bytes).to_string());
            let _ = writeln!(text, "  {what:<62}{count:>14}{bytes:>12}");
        }
    }
    text
}
