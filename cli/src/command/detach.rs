//! `heapdiff detach`: stops the agent in a running JVM.

use clap::Args;

use crate::capture::{self, JvmArgs};
use crate::failure::{Exit, Result};
use crate::progress::Wanted;

const HELP: &str = "\
Examples:
  heapdiff detach 4711                       # stop sampling
  heapdiff detach OrderService --timeout 1m  # wait up to a minute for a busy JVM

After this, the program runs without the cost of sampling, the trace ends, and dumps contain no
samples. The JVM keeps the library loaded; `heapdiff attach PID` starts sampling again, with other
options if given.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Detach {
    #[command(flatten)]
    jvm: JvmArgs,
    #[command(flatten)]
    progress: Wanted,
}

impl Detach {
    pub(crate) fn run(&self) -> Result<Exit> {
        capture::detach(&self.jvm, self.progress)
    }
}
