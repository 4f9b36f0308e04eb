//! Arguments of `heapdiff ui`.

use std::path::PathBuf;

use clap::Args;

use super::common::NamesArgs;
use crate::failure::Result;
use crate::job::UiJob;

const AFTER_HELP: &str = "\
The page is served on 127.0.0.1 only, at a URL with a token that is printed on standard output.
Whoever has the URL can see the page. It needs no network, and nothing is written. Traces may be
finished or being written; those of several JVMs are shown on one page. Ctrl-C ends it.";

#[derive(Debug, Args)]
#[command(
    after_help = AFTER_HELP,
    override_usage = "heapdiff ui [OPTIONS] TRACE...\n       heapdiff ui [OPTIONS] REPORT.json"
)]
pub(super) struct UiArgs {
    /// Traces that the agent writes (trace=FILE), or one report in JSON
    #[arg(required = true, value_name = "TRACE|REPORT.json")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    names: NamesArgs,
    /// The port to listen on [default: a free one]
    #[arg(long, value_name = "N", default_value_t, hide_default_value = true)]
    port: u16,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Errors only on standard error
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
