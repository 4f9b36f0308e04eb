//! Arguments of `heapdiff ui`.

use std::path::PathBuf;

use clap::Args;

use super::common::NamesArgs;
use crate::failure::Result;
use crate::job::UiJob;

const AFTER_HELP: &str = "\
Prints a URL with a secret token; the page is served on 127.0.0.1 only, and anybody with the URL can
see it. The server needs no network and writes no files. Traces may be complete or still being
written. One web page shows all traces. Ctrl-C stops the server.";

#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    override_usage = "heapdiff ui [OPTIONS] TRACE...\n       heapdiff ui [OPTIONS] REPORT.json"
)]
pub(super) struct UiArgs {
    /// Traces that the agent writes (agent option trace=FILE), or one JSON report
    #[arg(required = true, value_name = "TRACE|REPORT.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    names: NamesArgs,
    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "N", default_value_t, hide_default_value = true)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Print only errors to standard error
    #[arg(short, long)]
    quiet: bool,
}

impl UiArgs {
    pub(super) fn job(self) -> Result<UiJob> {
        Ok(UiJob {
            mapping: self.names.read()?,
            files: self.files,
            port: self.port,
            open: self.open,
            quiet: self.quiet,
        })
    }
}
