//! Prints what grew between two or more heap dumps of one program, oldest first:
//!
//! ```text
//! cargo run -p heapdiff-diff --example compare -- testdata/sampled-before.hprof.gz testdata/sampled-after.hprof.gz
//! ```

use std::error::Error;
use std::io::{self, Write};

use heapdiff_diff::{Comparison, Filter, Gates, Summary, Suspect};
use hprof::{Options, Silent, Snapshot};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut summaries, mut last) = (Vec::new(), None);
    // A summary needs to know which reference holds each object.
    let mut options = Options::default();
    options.holders = true;
    for path in std::env::args().skip(1) {
        // Only one dump is open at a time: once a summary is finished, it needs neither the dump file nor the object
        // graph.
        drop(last.take());
        let snapshot = Snapshot::open(path.as_ref(), &options, &Silent)?;
        summaries.push(Summary::new(&snapshot, path)?);
        last = Some(snapshot);
    }
    let last = last.ok_or("usage: compare BEFORE AFTER [LATER...]")?;
    let mut out = io::stdout().lock();
    let comparison = Comparison::new(&summaries, &last)?;
    let report = comparison.report(&Filter::default());
    writeln!(
        out,
        "the heap grew by {} objects and {} bytes",
        report.delta.objects, report.delta.shallow_bytes
    )?;
    for suspect in &report.suspects {
        print(&mut out, suspect)?;
    }
    let gates = Gates {
        growth: Some(1 << 20),
        suspect: false,
    };
    if let Some(found) = gates.growth_over_gate(&report, &[], []) {
        writeln!(
            out,
            "\n{} bytes are more than a gate of 1 MiB lets through",
            found.bytes
        )?;
    }
    Ok(())
}

fn print(out: &mut impl Write, suspect: &Suspect) -> io::Result<()> {
    writeln!(
        out,
        "\n{}. {:?}: {} holds {} bytes more of class {}",
        suspect.rank, suspect.verdict, suspect.holder, suspect.growth.retained_bytes, suspect.class
    )?;
    writeln!(out, "   {} -> {}", suspect.root, suspect.path.join(" -> "))?;
    for reason in &suspect.reasons {
        writeln!(out, "   - {reason}")?;
    }
    // If the agent was loaded in the JVM, the dumps show which stacks allocated the growth.
    if let Some(stack) = suspect.stacks.first() {
        writeln!(out, "   most of it was allocated by")?;
        for frame in stack.frames.iter().take(5) {
            writeln!(out, "     {frame}")?;
        }
    }
    Ok(())
}
