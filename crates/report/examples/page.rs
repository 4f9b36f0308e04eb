//! Writes a page with made-up data, to test large pages: `cargo run --example page -- SUSPECTS STACKS FILE`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use heapdiff_diff::{History, HistoryGrowth, HistorySeries, HistorySlope};
use heapdiff_report::{DiffReport, html, synthetic};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [suspects, stacks, file] = &args[..] else {
        return Err("usage: page SUSPECTS STACKS FILE".into());
    };
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
