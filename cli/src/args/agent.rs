//! Arguments of `heapdiff agent`.

use std::path::PathBuf;

use clap::Args;

use crate::job::AgentCopy;

const AGENT_HELP: &str = "\
Prints the absolute path of the library. heapdiff uses the first library that it finds: --agent, the
environment variable HEAPDIFF_AGENT, a library next to the executable, or the one embedded in it. It
first writes the embedded library to $XDG_CACHE_HOME/heapdiff (~/.cache/heapdiff). `heapdiff help
attach` lists the agent's options.";

#[derive(Debug, Args)]
#[command(after_help = AGENT_HELP)]
pub(super) struct AgentArgs {
    /// Copy the library to this file or folder, for example into a container image
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Agent library to use instead of the embedded one
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
}

impl AgentArgs {
    pub(super) fn copy(self) -> AgentCopy {
        AgentCopy {
            library: self.agent,
            output: self.output,
        }
    }
}
