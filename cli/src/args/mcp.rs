//! How `heapdiff mcp` reads the dumps that it is asked about.

use clap::Args;

use super::common::{AnalysisArgs, ProgressArgs};
use crate::job::{Output, Setup};

const MCP_HELP: &str = "\
An assistant starts it and asks its tools: summary, suspects, sizeof, paths, query and sites. Dumps are
read where they are asked about, nothing is taken of a running JVM, and nothing is written but indexes.
docs/assistants.md has what to put into an assistant's configuration.";

#[derive(Debug, Args)]
#[command(after_help = MCP_HELP)]
pub(super) struct McpArgs {
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

impl McpArgs {
    pub(super) fn setup(self) -> Setup {
        self.analysis
            .setup(Output::default(), self.progress.wanted())
    }
}
