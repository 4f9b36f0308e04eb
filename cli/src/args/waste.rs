//! What `heapdiff waste` is asked.

use std::path::PathBuf;

use clap::Args;

use super::common::{CommonArgs, input};
use crate::failure::Result;
use crate::job::{Setup, Task};

const HELP: &str = "\
Bytes to win are what would be free if equal strings, arrays and boxes were one object, if empty
collections were not there, and if arrays were as long as needed. No byte is counted in two kinds,
and garbage in none. Holders are the fields through which the program's own classes hold what could
go.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct WasteArgs {
    /// A heap dump (HPROF), gzipped or not; with several of one program, oldest first, what waste grew
    #[arg(required = true, value_name = "DUMP")]
    #[arg(value_parser = input())]
    dumps: Vec<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

impl WasteArgs {
    pub(super) fn task(self) -> Result<(Setup, Task)> {
        let setup = self.common.setup()?;
        Ok((setup, Task::Waste { dumps: self.dumps }))
    }
}
