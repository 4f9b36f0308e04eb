//! `heapdiff ps`: lists the JVMs of this machine.

use clap::Args;

use crate::capture;
use crate::failure::{Exit, Result};

const HELP: &str = "\
Examples:
  heapdiff ps                  # list the JVMs
  heapdiff hunt 4711 --for 5m  # find a leak in the JVM with process id 4711

Only JVMs that this user may inspect are listed: those of the same user, or all JVMs if run as root.
Other commands take the process id, or a part of the name of the main class or jar.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Ps {}

impl Ps {
    pub(crate) fn run(&self) -> Result<Exit> {
        capture::ps()
    }
}
