//! `heapdiff trace info`: shows what a trace contains.

use std::path::PathBuf;

use clap::Args;
use heapdiff_model::trace::{Collections, CountingRow, DumpRow, RunRow, TraceInfoReport};
use heapdiff_report::Report;
use heapdiff_trace::read::Tick;
use heapdiff_trace::{CountedRun, THINNED};

use super::lines;
use super::read::{file, notes, open_named, run_info};
use crate::failure::{Failure, Result};
use crate::job::{Setup, Task};

const HELP: &str = "\
Examples:
  heapdiff trace info app.db                # what the trace contains
  heapdiff trace info app.db --format json  # the contents of the trace as JSON";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Info {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
}

impl Task for Info {
    fn run(&self, setup: &Setup) -> Result<Vec<Report>> {
        let trace = open_named(setup.analysis.mapping.as_ref(), &self.trace)?;
        let failed = |e| Failure::trace(&e);
        let mut rows = Vec::new();
        for (number, run) in (1..).zip(trace.runs().map_err(failed)?) {
            let ticks = trace.ticks(run.id).map_err(failed)?;
            let collections = trace.collections(run.id).map_err(failed)?;
            let sum =
                |figure: fn(&Tick) -> u64| ticks.iter().map(figure).fold(0, u64::saturating_add);
            let dumps = trace.dumps(run.id).map_err(failed)?;
            rows.push(RunRow {
                ticks: ticks.len() as u64,
                uptime_ms: ticks.last().map_or(0, |t| t.uptime_ms),
                collections: Collections {
                    major: collections.iter().filter(|c| c.major).count() as u64,
                    all: collections.len() as u64,
                },
                samples: sum(|t| t.samples),
                lost_samples: sum(|t| t.lost_samples),
                lost_bytes: sum(|t| t.lost_bytes),
                counting: trace.counted_run(run.id).map_err(failed)?.map(counting),
                dumps: dumps
                    .into_iter()
                    .map(|d| DumpRow {
                        time_ms: d.time_ms,
                        path: d.path,
                    })
                    .collect(),
                thinned: trace.last_note(run.id, THINNED).map_err(failed)?.is_some(),
                notes: notes(&trace, &run)?,
                flags: run.flags.clone(),
                options: run.options.clone(),
                run: run_info(number, &run),
            });
        }
        let sites = trace.sites().map_err(failed)?.len() as u64;
        Ok(vec![Report::TraceInfo(TraceInfoReport {
            schema: TraceInfoReport::SCHEMA,
            trace: file(&trace),
            sites,
            runs: rows,
        })])
    }
}

fn counting(run: CountedRun) -> CountingRow {
    CountingRow {
        from_uptime_ms: run.from_ms,
        to_uptime_ms: run.to_ms,
        jdk: run.jdk,
        classes: run.classes,
        missed: lines::uncounted_in_run(&run),
    }
}
