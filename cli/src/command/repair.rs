//! `heapdiff repair`: writes a whole dump from a truncated or damaged one, or from a dump and its segments.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use heapdiff_report::printable;
use heapdiff_units::{Size, counted, grouped};
use hprof::Source;
use hprof::repair::{Repair, Repaired};

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
  heapdiff repair cut.hprof -o whole.hprof   # the disk was full, or the JVM was killed
  heapdiff repair died.hprof -o whole.hprof  # also reads died.hprof.p0, died.hprof.p1, ...

The output has all records that are complete, and an end. If GC roots may be missing, all classes
and all threads that were alive become GC roots. The output contains a mark. If heapdiff finds the
mark, it warns that parts are missing. Other programs ignore the mark.

IN is not changed. If nothing is missing in IN, OUT is not written.

Exit codes: 0 = done, or nothing to repair, 2 = wrong usage, 3 = nothing can be repaired.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RepairArgs {
    /// Heap dump (HPROF), gzipped or not; `-` is standard input
    #[arg(value_name = "IN", value_parser = input())]
    dump: PathBuf,
    /// File for the whole dump, gzipped if its name ends in .gz; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT even if it is a heap dump, JFR recording or trace
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    progress: Wanted,
}

impl RepairArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let to = DumpFile::new(&self.output)?;
        to.check_terminal()?;
        interrupt::handle();
        let meter = Meter::new(self.progress, &self.dump);
        let input = |e| Failure::input(&self.dump, &e);
        let source = Source::open(&self.dump).map_err(input)?;
        let repair = Repair::new(&source, &meter).map_err(input)?;
        let mut bytes = 0;
        // A reader of standard output expects a dump, even if the input needs no repair.
        if repair.is_needed() || to == DumpFile::Stdout {
            let written = to.write(Kind::Dump, |out| {
                bytes = repair.write(out, &meter)?;
                Ok(())
            });
            drop(meter);
            inputs::exit_if_changed();
            written.map_err(|e| write::failed(&to, &e))?;
        } else {
            drop(meter);
            inputs::exit_if_changed();
        }
        messages::print_input_warnings(&self.dump, repair.warnings(), self.progress);
        if self.progress.quiet {
            return Ok(Exit::Done);
        }
        let text = message(&self.dump, &to, &repair, bytes);
        if to == DumpFile::Stdout {
            // Ignore errors: if standard error is closed, there is no other place for the message.
            let _ = io::stderr().write_all(text.as_bytes());
        } else {
            write::print(&text)?;
        }
        Ok(Exit::Done)
    }
}

/// Returns the message about the repair: what was missing, and what was added.
fn message(dump: &Path, to: &DumpFile<'_>, repair: &Repair<'_>, bytes: u64) -> String {
    let dump = dump.display().to_string();
    let dump = printable(&dump);
    if !repair.is_needed() {
        // A dump that was repaired earlier contains a record of the repair. heapdiff reports this record as a warning
        // with `partial` set.
        return if repair.warnings().iter().any(|warning| warning.partial) {
            format!("{dump} was repaired before: nothing more to repair\n")
        } else {
            format!("{dump} is complete: nothing to repair\n")
        };
    }
    let to = to.to_string();
    let mut text = format!("{dump}: wrote {} ({})\n", printable(&to), Size(bytes));
    if !repair.is_damaged() {
        text += "\nmissing  nothing: all parts of the dump were complete\n";
        return text;
    }
    let repaired = repair.repaired();
    let mut effects = Vec::new();
    if repaired.lacks_roots() {
        effects.push("objects held only by stack frames or JNI count as unreachable".to_owned());
    }
    let sections = [
        ("missing", missing(repaired)),
        ("added", added(repaired)),
        ("effect", effects),
    ];
    for (title, lines) in sections {
        for (number, line) in lines.iter().enumerate() {
            let title = if number == 0 { title } else { "" };
            let line_break = if number == 0 { "\n" } else { "" };
            let _ = writeln!(text, "{line_break}{title:<9}{line}");
        }
    }
    text
}

fn missing(repaired: &Repaired) -> Vec<String> {
    let mut lines = Vec::new();
    if repaired.lacks_end {
        lines.push("the end of the dump, with an unknown number of objects".to_owned());
    }
    if repaired.left_out > 0 {
        let bytes = grouped(repaired.left_out);
        let records = repaired.places.saturating_add(repaired.records);
        let records = counted(records, "record");
        lines.push(format!(
            "{bytes} bytes of incomplete or damaged data, in {records}"
        ));
    }
    if repaired.parts > 0 {
        lines.push("segments or compressed data that could not be read".to_owned());
    }
    if repaired.lacks_roots() {
        lines.push(match repaired.roots {
            0 => "all GC roots".to_owned(),
            roots => format!(
                "an unknown number of GC roots ({} were read)",
                grouped(roots)
            ),
        });
    }
    lines
}

fn added(repaired: &Repaired) -> Vec<String> {
    let mut lines = Vec::new();
    if repaired.class_roots > 0 {
        let classes = counted(repaired.class_roots, "class");
        lines.push(format!("GC roots for {classes}"));
    }
    if repaired.thread_roots > 0 {
        let threads = counted(repaired.thread_roots, "thread");
        lines.push(format!("GC roots for {threads} that were alive"));
    }
    lines.push("a record that ends the dump, if there was none".to_owned());
    lines.push("a mark, from which heapdiff warns that parts are missing".to_owned());
    lines
}
