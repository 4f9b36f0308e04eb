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
    /// Delete index files and cached summaries; the next command on a dump creates new ones
    Clean {
        /// Dumps, or folders with index files [default: the cache folder, which has the index files
        /// of dumps in read-only folders]
        #[arg(value_name = "DUMP|DIR")]
        paths: Vec<PathBuf>,
    },
}
