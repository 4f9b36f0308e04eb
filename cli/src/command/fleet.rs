//! `heapdiff fleet`: collects traces and reports of many JVMs for a company's own query engine.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use heapdiff_fleet::{FleetError, Labels};

use crate::failure::{Exit, Failure, Result, system_message};

const HELP: &str = "\
Examples:
  heapdiff fleet app.db -o fleet --service shop          # add a trace to the folder
  heapdiff fleet reports/a.json reports/b.json -o fleet  # add two reports to the folder

Adding an input again replaces its earlier rows. docs/fleet.md describes the tables, and has a Spark
job that ranks the leaking sites of all hosts.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Fleet {
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

impl Fleet {
    /// Adds the inputs one after the other, and stops at the first error. Inputs that were added before the error stay
    /// added.
    pub(crate) fn run(self) -> Result<Exit> {
        let labels = Labels {
            service: self.service,
            host: self.host,
        };
        for input in &self.inputs {
            let added = heapdiff_fleet::add(input, &self.output, &labels).map_err(failure)?;
            if added.odd > 0 {
                let mut stderr = io::stderr().lock();
                let _ = writeln!(
                    stderr,
                    "warning: {}: {} impossible values were replaced by 0; the trace may be damaged",
                    input.display(),
                    added.odd
                );
            }
            if !self.quiet {
                let (rows, files) = (added.rows, added.files.len());
                let plural = if files == 1 { "" } else { "s" };
                // If standard output is closed, this message is lost. Add the remaining input files nevertheless.
                let _ = writeln!(
                    io::stdout().lock(),
                    "{}: added {rows} rows in {files} file{plural} to {}",
                    input.display(),
                    self.output.display()
                );
            }
        }
        Ok(Exit::Done)
    }
}

fn failure(error: FleetError) -> Failure {
    let exit = match error {
        FleetError::Write { .. } => Exit::Usage,
        _ => Exit::Input,
    };
    let message = match &error {
        FleetError::Read { path, source } => {
            format!("{}: {}", path.display(), system_message(source))
        }
        _ => error.to_string(),
    };
    Failure {
        exit,
        message,
        hint: None,
    }
}
