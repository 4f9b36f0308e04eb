//! `heapdiff waste`: memory that a program could do without, and who holds it.

use std::path::PathBuf;

use heapdiff_diff::WasteSummary;
use heapdiff_diff::samples::AgentObjects;
use heapdiff_model::waste::WasteReport;
use heapdiff_report::{View, Viewed, WasteView};
use hprof::Snapshot;

use super::dump_info;
use super::open_after;
use crate::failure::{Failure, Result};
use crate::job::Setup;

/// The most examples and holders of each kind of waste.
const ROWS: usize = 5;

/// Each dump is reduced to its summary before the next is opened.
pub(crate) fn run(setup: &Setup, dumps: &[PathBuf]) -> Result<Viewed<WasteReport, WasteView>> {
    let rows = setup.top.unwrap_or(ROWS);
    let (mut snapshots, mut summaries) = (Vec::new(), Vec::new());
    let mut previous: Option<Snapshot> = None;
    for dump in dumps {
        let (snapshot, meter) = open_after(previous.take(), setup, dump, true)?;
        let own = AgentObjects::of(&snapshot);
        let summary = WasteSummary::new(&snapshot, &own, rows, &meter);
        summaries.push(summary.map_err(|e| Failure::input(dump, &e))?);
        snapshots.push(dump_info::of(&snapshot, &own));
        previous = Some(snapshot);
    }
    let compared = WasteSummary::compared(&summaries, rows);
    let report = WasteReport {
        schema: WasteReport::SCHEMA,
        snapshots,
        waste: compared.waste,
    };
    Ok(Viewed {
        data: report,
        view: View::default(),
        more: WasteView {
            more_holders: compared.more_holders,
        },
    })
}
