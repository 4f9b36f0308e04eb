//! Arguments of `heapdiff agent`.

use std::path::PathBuf;

use clap::Args;

use crate::job::AgentCopy;

const AGENT_HELP: &str = "\
Prints the file's absolute path, for a JVM that is to have the agent from its start:

    java -agentpath:$(heapdiff agent)=interval=512k -jar app.jar

The library is taken from --agent, from HEAPDIFF_AGENT, from beside this program, or out of it; in
that case it is written to $XDG_CACHE_HOME/heapdiff (~/.cache/heapdiff) first. `heapdiff help
attach` has the agent's options.";

#[derive(Debug, Args)]
#[command(after_help = AGENT_HELP)]
pub(super) struct AgentArgs {
    /// Copy the library to this file or folder, for an image of a container for example
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The agent's library
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
