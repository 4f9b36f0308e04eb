//! What `heapdiff waste` is asked.

use std::path::PathBuf;

use clap::Args;

use super::common::{CommonArgs, input};
use crate::failure::Result;
use crate::job::{Setup, Task};

const HELP: &str = "\
Savings are the bytes that would be free if equal strings, arrays and boxes were shared, empty
collections were not allocated, and arrays had no unused capacity. Each byte is counted in one
category only; unreachable objects are not counted. A holder is the field of an application class
that holds wasted memory.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct WasteArgs {
    /// Heap dump (HPROF), gzipped or not; several dumps of one program, oldest first, show how the
    /// waste grew
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
