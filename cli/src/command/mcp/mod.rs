//! `heapdiff mcp`: answers questions of AI assistants over the Model Context Protocol, on standard input and output.
//!
//! A call of a tool becomes the job of the command with the same name. The answer is the command's report, as JSON and
//! as text. One job runs at a time, on its own thread; other messages are answered meanwhile.

mod answer;
mod lines;
mod protocol;
mod server;
mod tools;

use std::io::{self, IsTerminal};

use self::server::{Server, Stop};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt;
use crate::job::Setup;
use crate::messages;

/// Answers until standard input or output is closed.
pub(crate) fn run(setup: Setup) -> Result<Exit> {
    interrupt::handle();
    if io::stdin().is_terminal() && !setup.progress.quiet {
        messages::said(
            "waiting for an AI assistant on standard input (see docs/assistants.md); Ctrl-C stops",
        );
    }
    match Server::run(setup) {
        Stop::Idle => Ok(Exit::Done),
        Stop::Busy => {
            // Nobody waits for the answer, and no unfinished file may stay.
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
