//! `heapdiff redact`: a dump without its contents, in a file of its own, and what is left in one.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use heapdiff_diff::redaction_rules;
use heapdiff_units::{Size, grouped};
use hprof::Source;
use hprof::bytes::GzipBlocks;
use hprof::redaction::{Amount, Left, Redacted, Redaction, Rules};

use crate::failure::{Exit, Failure, Result};
use crate::inputs;
use crate::interrupt;
use crate::job::{Place, Redact};
use crate::messages;
use crate::progress::Meter;
use crate::write;

pub(crate) fn run(job: &Redact) -> Result<Exit> {
    interrupt::handle();
    let written = match &job.to {
        Some(to) => {
            redact(job, to)?;
            match to {
                Place::File { path, .. } => path.as_path(),
                Place::Stdout => return Ok(Exit::Done),
            }
        }
        None => &job.dump,
    };
    if job.what.check {
        check(job, written)
    } else {
        Ok(Exit::Done)
    }
}

fn redact(job: &Redact, to: &Place) -> Result<()> {
    if *to == Place::Stdout && io::stdout().is_terminal() {
        let message = "a dump cannot be written to a terminal";
        return Err(Failure::usage(message).with_hint("write it to a file with -o FILE"));
    }
    let meter = Meter::new(job.progress, &job.dump);
    let input = |e| Failure::input(&job.dump, &e);
    let source = Source::open(&job.dump).map_err(input)?;
    let redaction = Redaction::of(&source, rules(job)).map_err(input)?;
    let mut done = Redacted::default();
    let mut refused = false;
    let mut write = |out: &mut (dyn Write + Send)| {
        done = redaction.write(out, &meter)?;
        refused = job.what.strict && done.warnings.iter().any(|w| w.partial);
        // No file appears of a dump that is refused.
        if refused {
            Err(io::Error::other("the dump is damaged"))
        } else {
            Ok(())
        }
    };
    let (place, written) = match to {
        Place::Stdout => {
            let mut out = io::BufWriter::new(io::stdout());
            let written = write(&mut out).and_then(|()| out.flush());
            ("standard output".to_owned(), written)
        }
        Place::File { path, gzip: false } => {
            (path.display().to_string(), write::replace(path, write))
        }
        Place::File { path, gzip: true } => {
            let written = write::replace(path, |out| {
                let mut blocks = GzipBlocks::new(out);
                write(&mut blocks)?;
                blocks.finish().map(drop)
            });
            (path.display().to_string(), written)
        }
    };
    drop(meter);
    inputs::end_if_changed();
    match written {
        Err(_) if refused => return Err(messages::refused(&job.dump.display())),
        written => written.map_err(|e| write::failed(&place, &e))?,
    }
    messages::of_input(&job.dump, &done.warnings, job.progress);
    Ok(())
}

fn rules(job: &Redact) -> Rules<'static> {
    Rules {
        keep_numbers: job.what.keep_numbers.clone(),
        ..redaction_rules(job.what.numbers)
    }
}

/// Prints what is left in a dump.
fn check(job: &Redact, dump: &Path) -> Result<Exit> {
    let meter = Meter::new(job.progress, dump);
    let input = |e| Failure::input(dump, &e);
    let source = Source::open(dump).map_err(input)?;
    let redaction = Redaction::of(&source, rules(job)).map_err(input)?;
    let done = redaction
        .check(&meter)
        .map_err(|e| write::failed("the check", &e))?;
    drop(meter);
    inputs::end_if_changed();
    if job.to.is_none() {
        messages::of_input(dump, &done.warnings, job.progress);
    }
    if job.what.strict && done.warnings.iter().any(|w| w.partial) {
        return Err(messages::refused(&dump.display()));
    }
    write::print(&told(dump, &done.left))?;
    Ok(if done.left.is_clean() {
        Exit::Done
    } else {
        Exit::Gate
    })
}

fn told(dump: &Path, left: &Left) -> String {
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
            "numbers in fields kept by --keep-numbers",
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
