//! `heapdiff waste`: reports wasted memory, and the objects that hold it.

use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::WasteSummary;
use heapdiff_diff::samples::AgentObjects;
use heapdiff_model::waste::WasteReport;
use heapdiff_report::{Report, View, Viewed, WasteView};
use hprof::Snapshot;

use super::dump_info;
use super::opened::open_after;
use crate::args::input;
use crate::failure::{Failure, Result};
use crate::job::{Setup, Task};

/// Maximum number of examples and holders for each kind of waste.
const ROWS: usize = 5;

const HELP: &str = "\
Examples:
  heapdiff waste app.hprof                  # how much memory could be saved, and where
  heapdiff waste monday.hprof friday.hprof  # how the waste grew

Savings are the bytes that would be free if equal strings, arrays and boxes were shared, empty
collections were not allocated, and arrays had no unused capacity. Each byte is counted in one
category only; unreachable objects are not counted. A holder is the field of an application class
that holds wasted memory.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Waste {
    /// Heap dump (HPROF), gzipped or not; several dumps of one program, oldest first, show how the
    /// waste grew
    #[arg(required = true, value_name = "DUMP")]
    #[arg(value_parser = input())]
    dumps: Vec<PathBuf>,
}

impl Waste {
    /// Creates the task that reports the waste of one dump.
    pub(super) fn new(dump: PathBuf) -> Self {
        Self { dumps: vec![dump] }
    }
}

impl Task for Waste {
    /// Each dump is reduced to its summary before the next dump is opened.
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let rows = setup.top.unwrap_or(ROWS);
        let (mut snapshots, mut summaries) = (Vec::new(), Vec::new());
        let mut previous: Option<Snapshot> = None;
        for dump in &self.dumps {
            let (snapshot, meter) = open_after(previous.take(), setup, dump, true)?;
            let own = AgentObjects::find(&snapshot);
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
        Ok(vec![Report::Waste(Box::new(Viewed {
            data: report,
            view: View::default(),
            more: WasteView {
                more_holders: compared.more_holders,
            },
        }))])
    }
}
