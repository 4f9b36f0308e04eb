//! Writes pages with made-up data for tests in a browser. `cargo run --example page -- SUSPECTS STACKS FILE` writes a
//! large page. `cargo run --example page -- DIFF HEAP` writes pages with long names and deep stacks.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use heapdiff_diff::{History, HistoryGrowth, HistorySeries, HistorySlope};
use heapdiff_report::{DiffReport, DumpReport, Format, Report, Style, html, synthetic};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [suspects, stacks, file] => large(suspects, stacks, file),
        [diff, heap] => deep(diff, heap),
        _ => Err("usage: page SUSPECTS STACKS FILE, or page DIFF HEAP".into()),
    }
}

/// Writes pages with long names and deep stacks: a comparison, and the report of one dump.
fn deep(diff: &str, heap: &str) -> Result<(), Box<dyn Error>> {
    let (report, allocated) = synthetic::deep_report();
    let mut report = DiffReport::from(report);
    report.view.allocated = Some(allocated);
    let heap_report = DumpReport::from(synthetic::deep_heap());
    for (file, report) in [
        (diff, Report::Diff(Box::new(report))),
        (heap, Report::Heap(Box::new(heap_report))),
    ] {
        let mut out = BufWriter::new(File::create(file)?);
        heapdiff_report::render(Format::Html, &report, Style::plain(), &mut out)?;
        out.flush()?;
    }
    Ok(())
}

/// Writes a page with many suspects and stacks.
fn large(suspects: &str, stacks: &str, file: &str) -> Result<(), Box<dyn Error>> {
    let (mut report, allocated) =
        synthetic::largest_page_report(suspects.parse()?, stacks.parse()?);
    // Only a few suspects have a history, and only a few have a stack without frames.
    if let [first, second, ..] = &mut report.suspects[..] {
        first.history = Some(History {
            series: HistorySeries {
                time_ms: vec![1_700_000_000_000, 1_700_003_600_000],
                live_objects: vec![10, 20],
                live_bytes: vec![1024, 2048],
            },
            slope: HistorySlope {
                bytes_per_hour: 1024,
                ..HistorySlope::default()
            },
            stacks: 1,
            trend: "steady".into(),
            basis: "major".into(),
            points: 2,
            began_ms: Some(1_700_000_000_000),
            began_uptime_ms: Some(0),
            began_within: Some(false),
            growth: HistoryGrowth {
                objects: 10,
                bytes: 1024,
            },
            survival_permille: 1000,
            survival_known: true,
            surviving_generations: Some(12),
        });
        second.stacks[0].frames.clear();
    }
    let mut report = DiffReport::from(report);
    report.view.allocated = Some(allocated);
    let mut out = BufWriter::new(File::create(file)?);
    html::render(&report, &mut out)?;
    out.flush()?;
    Ok(())
}
