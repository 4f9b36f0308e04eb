//! What `heapdiff fleet` is asked.

use std::path::PathBuf;

use clap::Args;
use heapdiff_fleet::Labels;

use crate::job::Fleet;

const AFTER_HELP: &str = "\
Adding an input again replaces what it said before. docs/fleet.md has the tables, and a Spark job
that ranks the leaking sites of all hosts.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct FleetArgs {
    /// Traces (the agent's option trace=FILE), and reports of `heapdiff BEFORE AFTER --format json`
    #[arg(required = true, value_name = "TRACE|REPORT.json")]
    inputs: Vec<PathBuf>,
    /// The fleet's folder; made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The service that the inputs are of [default: the agent's option service, else unknown]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// The host that they are of [default: what the trace says, else unknown]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Nothing on standard output
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
