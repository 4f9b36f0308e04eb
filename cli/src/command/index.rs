//! `heapdiff index`: manages the index files of dumps.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::failure::{Exit, Result};
use crate::index;

const HELP: &str = "\
Examples:
  heapdiff index clean app.hprof  # delete the index of one dump
  heapdiff index clean            # delete all files of the cache folder";
const CLEAN_HELP: &str = "\
Examples:
  heapdiff index clean app.hprof  # delete the index of one dump
  heapdiff index clean dumps/     # delete all indexes in a folder";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Index {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Delete index files and cached summaries; the next command on a dump creates new ones
    #[command(after_help = CLEAN_HELP)]
    Clean {
        /// Dumps, or folders with index files [default: the cache folder, which has the index files
        /// of dumps in read-only folders]
        #[arg(value_name = "DUMP|DIR")]
        paths: Vec<PathBuf>,
    },
}

impl Index {
    pub(crate) fn run(&self) -> Result<Exit> {
        let Command::Clean { paths } = &self.command;
        index::clean(paths)
    }
}
