//! `heapdiff completions`: prints a completion script for a shell.

use clap::Args;
use clap_complete::Shell;

use crate::failure::{Exit, Result};
use crate::write;

const HELP: &str = "\
Examples:
  # completions in bash, for all users
  heapdiff completions bash > /etc/bash_completion.d/heapdiff
  # completions in zsh, for this user
  heapdiff completions zsh > ~/.zfunc/_heapdiff";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Completions {
    /// Shell that loads the script
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, mut line: clap::Command) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut line, "heapdiff", &mut script);
        write::write_out(&script)?;
        Ok(Exit::Done)
    }
}
