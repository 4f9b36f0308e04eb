//! `heapdiff mcp`: answers AI assistants over the Model Context Protocol, on standard input and output.
//!
//! For each tool call, the server runs the job of the command with the same name. The answer is the command's report,
//! as JSON and as text. One job runs at a time, on its own thread. Meanwhile the server answers other messages.

mod answer;
mod lines;
mod protocol;
mod server;
mod tools;

use std::io::{self, IsTerminal};

use clap::Args;

use self::server::{Server, Stop};
use crate::args::{SetupArgs, WorkArgs};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt;
use crate::messages;

const HELP: &str = "\
Examples:
  heapdiff mcp                    # serve tools to the AI assistant that starts this command
  heapdiff mcp --max-memory 4GiB  # the same, with a memory limit for large dumps

An AI assistant starts this command and calls its tools: summary, suspects, sizeof, paths, query and
sites. The tools read dumps, and write only index files. docs/assistants.md shows how to configure
an assistant.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Mcp {
    #[command(flatten)]
    work: WorkArgs,
}

impl Mcp {
    /// Answers messages until standard input or output is closed.
    pub(crate) fn run(self) -> Result<Exit> {
        let setup = self.work.setup()?;
        setup.use_threads()?;
        interrupt::handle();
        if io::stdin().is_terminal() && !setup.progress.quiet {
            messages::print_done(
                "waiting for an AI assistant on standard input (see docs/assistants.md); Ctrl-C stops",
            );
        }
        match Server::run(setup) {
            Stop::Idle => Ok(Exit::Done),
            Stop::Busy => {
                // Nobody waits for the answer of the running job. Exit at once, after removing unfinished files.
                let _state = interrupt::remove_unfinished();
                std::process::exit(Exit::Done as i32);
            }
            Stop::OtherProtocol => {
                let message = "standard input does not use the Model Context Protocol";
                Err(Failure::usage(message).with_hint(
                    "configure an AI assistant to start this command (see docs/assistants.md); the assistant sends `initialize` first",
                ))
            }
        }
    }
}
