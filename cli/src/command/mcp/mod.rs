//! `heapdiff mcp`: what assistants ask, over the Model Context Protocol on standard input and output.
//!
//! A tool's question becomes the job that the command of the same name has, and its report the answer, as JSON and as
//! text. One job runs at a time, on a thread of its own; meanwhile other messages are answered.

mod answer;
mod lines;
mod server;
mod tools;
mod transport;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use rmcp::service::ServerInitializeError;
use tokio::runtime::Builder;
use tokio::time::timeout_at;

use self::server::Server;
use self::transport::{Pipes, until_closed};
use crate::args::{SetupArgs, WorkArgs};
use crate::failure::{Exit, Failure, Result, plain};
use crate::interrupt;
use crate::job::Setup;
use crate::messages;

/// How long what was asked last, and its index, may take when nobody can ask more.
const GRACE: Duration = Duration::from_secs(2);

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
    /// Answers until standard input or output is closed.
    pub(crate) fn run(self) -> Result<Exit> {
        let setup = self.work.setup()?;
        setup.use_threads()?;
        interrupt::handle();
        if io::stdin().is_terminal() && !setup.progress.quiet {
            messages::said(
                "waiting for an AI assistant on standard input (see docs/assistants.md); Ctrl-C stops",
            );
        }
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime =
            runtime.map_err(|e| Failure::usage(format!("cannot serve: {}", plain(&e))))?;
        let is_idle = runtime.block_on(serve(setup))?;
        // A thread may still wait for standard input.
        runtime.shutdown_background();
        if !is_idle {
            // Nobody waits for what is being read, and no file is begun or gets its name any more.
            let _state = interrupt::remove_unfinished();
            std::process::exit(Exit::Done as i32);
        }
        Ok(Exit::Done)
    }
}

/// Serves one assistant; whether all work has ended by the end.
async fn serve(setup: Setup) -> Result<bool> {
    let (pipes, closed) = Pipes::new();
    let server = Server::new(setup, closed.clone());
    let work = server.work();
    match rmcp::serve_server(server, pipes).await {
        // How it ended tells no more than that it did.
        Ok(service) => drop(service.waiting().await),
        // Nobody asked anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => {}
        Err(_) => {
            let message = "standard input does not use the Model Context Protocol";
            return Err(Failure::usage(message).with_hint(
                "configure an AI assistant to start this command (see docs/assistants.md); the assistant sends `initialize` first",
            ));
        }
    }
    let end = until_closed(closed).await + GRACE;
    Ok(timeout_at(end, work.acquire()).await.is_ok())
}
