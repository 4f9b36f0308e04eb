//! `heapdiff histo`: lists every class of a dump with its objects and bytes.

use std::cmp::Reverse;
use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::samples::{AgentObjects, is_agent_class};
use heapdiff_model::histo::{ClassRow, HistoReport, HistoTotals};
use heapdiff_model::snapshot::SnapshotInfo;
use heapdiff_report::Report;
use hprof::answers::Histogram;
use hprof::records::Classes;
use hprof::sizes::ClassTotal;
use hprof::{ClassIndex, Progress};

use super::dump_info;
use super::opened::open;
use crate::args::input;
use crate::failure::{Failure, Result};
use crate::index;
use crate::job::{Setup, Task};
use crate::progress::Meter;

const ROWS: usize = 30;

const HELP: &str = "\
Examples:
  heapdiff histo app.hprof                      # objects and bytes of each class
  heapdiff histo app.hprof --retained --top 20  # the 20 classes that retain the most";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Histo {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_parser = input())]
    pub(crate) dump: PathBuf,
    /// Also show the bytes that all instances of each class retain together, and sort by these
    /// bytes (slower)
    #[arg(long)]
    pub(crate) retained: bool,
}

impl Task for Histo {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let dump = &self.dump;
        let failed = |e| Failure::input(dump, &e);
        if self.retained {
            let (snapshot, meter) = open(setup, dump)?;
            meter.phase("summing up classes", 0);
            let mut totals = snapshot.histogram();
            let bounds = snapshot.retained_by_classes(&mut totals, &meter);
            let bounds = bounds.map_err(failed)?;
            let own = AgentObjects::find(&snapshot);
            own.subtract_from(&snapshot, &mut totals);
            let info = dump_info::of(&snapshot, &own);
            return Ok(report(setup, info, snapshot.classes(), &totals, &bounds));
        }
        let meter = Meter::new(setup.progress, dump);
        let histogram = match index::read(setup, dump, &meter, Histogram::from_index) {
            Some(histogram) => histogram,
            None => Histogram::open(dump, &setup.analysis, &meter).map_err(failed)?,
        };
        let info = dump_info::info_from_histogram(&histogram);
        let totals = histogram.totals();
        Ok(report(setup, info, histogram.classes(), totals, &[]))
    }
}

fn report(
    setup: &Setup,
    snapshot: SnapshotInfo,
    classes: &Classes,
    totals: &[ClassTotal],
    bounds: &[ClassIndex],
) -> Vec<Report> {
    let graph = snapshot.reachable_objects.is_some();
    let mut rows: Vec<ClassRow> = classes
        .iter()
        .zip(totals)
        .filter(|((_, class), total)| total.all.objects > 0 && !is_agent_class(class))
        .map(|((index, class), total)| ClassRow {
            class: class.name.to_string(),
            loader: (!class.loader.is_null()).then(|| class.loader.to_string()),
            objects: total.all.objects,
            shallow_bytes: total.all.bytes,
            flattened: (total.flattened > 0).then_some(total.flattened),
            retained_bytes: graph.then_some(total.retained_bytes),
            reachable_objects: graph.then_some(total.reachable.objects),
            reachable_bytes: graph.then_some(total.reachable.bytes),
            reachable_shallow_bytes: graph.then_some(total.reachable.bytes),
            is_lower_bound: graph.then(|| bounds.binary_search(&index).is_ok()),
        })
        .collect();
    let sum = HistoTotals {
        classes: rows.len() as u64,
        objects: rows.iter().map(|r| r.objects).sum(),
        shallow_bytes: rows.iter().map(|r| r.shallow_bytes).sum(),
    };
    let bytes = |row: &ClassRow| row.retained_bytes.unwrap_or(row.shallow_bytes);
    rows.sort_by(|a, b| {
        let order = Reverse(bytes(a)).cmp(&Reverse(bytes(b)));
        order.then_with(|| (&a.class, &a.loader).cmp(&(&b.class, &b.loader)))
    });
    rows.truncate(setup.rows(ROWS));
    vec![Report::Histo(HistoReport {
        schema: HistoReport::SCHEMA,
        snapshot,
        totals: sum,
        classes: rows,
    })]
}
