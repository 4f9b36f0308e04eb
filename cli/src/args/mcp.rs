//! How `heapdiff mcp` reads the dumps that it is asked about.

use clap::Args;

use super::common::{AnalysisArgs, ProgressArgs};
use crate::failure::Result;
use crate::job::{Output, Setup};

const MCP_HELP: &str = "\
An AI assistant starts this command and calls its tools: summary, suspects, sizeof, paths, query and
sites. The tools read dumps, and write only index files. docs/assistants.md shows how to configure
an assistant.";

#[derive(Debug, Args)]
#[command(after_help = MCP_HELP)]
pub(super) struct McpArgs {
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

impl McpArgs {
    pub(super) fn setup(self) -> Result<Setup> {
        self.analysis
            .setup(Output::default(), self.progress.wanted())
    }
}
