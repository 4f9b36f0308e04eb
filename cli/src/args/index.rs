//! What `heapdiff index` is asked.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(super) struct IndexArgs {
    #[command(subcommand)]
    pub(super) what: IndexCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum IndexCommand {
    /// Delete the indexes and kept summaries of dumps, or all in a folder; the next command on a dump writes a new one
    Clean {
        /// Dumps, and folders with indexes [default: the cache folder, where indexes lie whose dump's
        /// folder does not take them]
        #[arg(value_name = "DUMP|DIR")]
        paths: Vec<PathBuf>,
    },
}
