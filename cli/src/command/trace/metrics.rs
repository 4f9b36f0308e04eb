//! `heapdiff trace metrics`: prints figures of a run as OpenMetrics.

use std::path::PathBuf;

use clap::Args;
use heapdiff_report::openmetrics::{TraceMetrics, TraceSite, trace_metrics};
use heapdiff_trace::TimeLeft;
use heapdiff_units::Size;

use super::read::RunArgs;
use super::top::Top;
use crate::args::labels::{label, labels};
use crate::failure::{Exit, Result};
use crate::job::Setup;
use crate::write::{failed, replace, write_out};

const HELP: &str = "\
Examples:
  heapdiff trace metrics app.db                               # print metrics of the last run
  heapdiff trace metrics app.db -o /var/lib/node/heap.prom    # write a file for node_exporter

heapdiff ui serves the same metrics at the address /metrics below its URL.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Metrics {
    /// Trace that the agent wrote (agent option trace=FILE)
    trace: PathBuf,
    #[command(flatten)]
    run: RunArgs,
    /// Maximum heap, such as 2GiB [default: the smaller of -Xmx and the container's limit]
    #[arg(long, value_name = "SIZE")]
    heap_limit: Option<Size>,
    /// Label for each metric, such as zone=eu; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Metrics {
    /// Prints the metrics, or writes them to a file.
    pub(crate) fn run(self) -> Result<Exit> {
        let own = [
            "rank", "verdict", "class", "place", "pid", "host", "service",
        ];
        labels(&self.label, &own)?;
        let top = Top::of_run(self.trace, self.run, self.heap_limit);
        let (report, outlook, last) = top.read(&Setup::default())?;
        let run = &report.run;
        let metrics = TraceMetrics {
            labels: TraceMetrics::labels(run.pid, &run.host, run.service.as_deref()),
            last_tick_ms: report.window.to_ms,
            heap_used: last.map(|tick| tick.heap_used),
            heap_limit: outlook.limit.map(|limit| limit.bytes),
            full_gcs: outlook.full_gcs,
            bytes_per_hour: outlook.slope.map(|slope| slope.slope),
            oom_ms: outlook
                .left
                .map(|left: TimeLeft| [left.at_ms, left.from_ms, left.to_ms]),
            sites: report
                .candidates
                .iter()
                .map(|c| TraceSite {
                    rank: c.rank,
                    verdict: c.verdict,
                    class: c.class.clone(),
                    place: c.frame.clone(),
                    live_bytes: Some(c.live_bytes),
                    bytes_per_hour: c.slope.bytes_per_hour,
                })
                .collect(),
        };
        let text = trace_metrics(&[metrics], &self.label);
        match &self.output {
            None => write_out(text.as_bytes())?,
            Some(path) => replace(path, |out| out.write_all(text.as_bytes()))
                .map_err(|e| failed(path.display(), &e))?,
        }
        Ok(Exit::Done)
    }
}
