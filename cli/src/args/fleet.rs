//! What `heapdiff fleet` is asked.

use std::path::PathBuf;

use clap::Args;
use heapdiff_fleet::Labels;

use crate::job::Fleet;

const AFTER_HELP: &str = "\
Adding an input again replaces its earlier rows. docs/fleet.md describes the tables, and has a Spark
job that ranks the leaking sites of all hosts.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct FleetArgs {
    /// Traces (agent option trace=FILE) and reports (`heapdiff BEFORE AFTER -o report.json`)
    #[arg(required = true, value_name = "TRACE|REPORT.json")]
    inputs: Vec<PathBuf>,
    /// Folder of Parquet files to add to; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Service name to record [default: value of the agent option `service`, or "unknown"]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Host name to record [default: from the trace, else unknown]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print nothing to standard output
    #[arg(short, long)]
    quiet: bool,
}

impl FleetArgs {
    pub(super) fn fleet(self) -> Fleet {
        Fleet {
            inputs: self.inputs,
            folder: self.output,
            labels: Labels {
                service: self.service,
                host: self.host,
            },
            quiet: self.quiet,
        }
    }
}
