//! `heapdiff agent`: prints the path of the agent library, or copies it.

use clap::Args;

use crate::capture::{self, AgentCopy};
use crate::failure::{Exit, Result};

const HELP: &str = "\
Examples:
  # start a JVM with the agent
  java -agentpath:$(heapdiff agent)=interval=512k -jar app.jar
  # copy the library into a container image, here for Alpine Linux
  heapdiff agent --libc musl -o image/lib

Prints the absolute path of the library. heapdiff uses the first library that it finds: --agent, the
environment variable HEAPDIFF_AGENT, a library next to the executable, or the one embedded in it. It
first writes the embedded library to $XDG_CACHE_HOME/heapdiff (~/.cache/heapdiff). `heapdiff help
attach` lists the agent's options.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Agent {
    #[command(flatten)]
    copy: AgentCopy,
}

impl Agent {
    pub(crate) fn run(&self) -> Result<Exit> {
        capture::agent(&self.copy)
    }
}
