//! `heapdiff status`: shows a JVM and the state of its agent.

use clap::Args;

use crate::capture::{self, JvmArgs};
use crate::failure::{Exit, Result};

const HELP: &str = "\
Examples:
  heapdiff status 4711          # the JVM with process id 4711
  heapdiff status OrderService  # the JVM whose main class or jar contains this name

Shows whether the agent samples, counts or writes a trace. `heapdiff ps` lists all JVMs.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Status {
    #[command(flatten)]
    jvm: JvmArgs,
}

impl Status {
    pub(crate) fn run(&self) -> Result<Exit> {
        capture::status(&self.jvm)
    }
}
