//! `heapdiff man`: writes the manual, one page per command.

use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::failure::{Exit, Result};
use crate::write::{failed, replace};

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder for the pages
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, line: Command) -> Result<Exit> {
        let mut line = line.disable_help_subcommand(true);
        line.build();
        pages(&line, &self.folder)?;
        Ok(Exit::Done)
    }
}

/// Writes the pages of a command and of its subcommands.
fn pages(command: &Command, folder: &Path) -> Result<()> {
    let below = command.get_subcommands();
    let mut shown = below.filter(|below| !below.is_hide_set());
    shown.try_for_each(|below| pages(below, folder))?;
    let page = clap_mangen::Man::new(command.clone());
    let path = folder.join(page.get_filename());
    replace(&path, |out| page.render(out)).map_err(|e| failed(path.display(), &e))
}
