//! `heapdiff attach`: loads the agent into a running JVM.

use clap::Args;

use super::agent_help::agent_help;
use crate::capture::{self, Agent, JvmArgs};
use crate::failure::{Exit, Result};
use crate::progress::Wanted;

const EXAMPLES: &str = "\
Examples:
  heapdiff attach 4711                                 # sample allocations from now on
  heapdiff attach 4711 interval=64k,trace=/tmp/app.db  # sample more often, and record a trace";

#[derive(Debug, Args)]
#[command(after_help = agent_help(EXAMPLES))]
pub(crate) struct Attach {
    #[command(flatten)]
    jvm: JvmArgs,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    progress: Wanted,
}

impl Attach {
    pub(crate) fn run(&self) -> Result<Exit> {
        capture::attach(&self.jvm, &self.agent, self.progress)
    }
}
