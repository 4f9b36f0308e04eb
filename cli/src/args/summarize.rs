//! What `heapdiff summarize` is asked.

use std::path::PathBuf;

use clap::Args;

use super::common::{AnalysisArgs, ProgressArgs, input};
use crate::failure::Result;
use crate::job::{Output, Place, Summarize};

const AFTER_HELP: &str = "\
`heapdiff OUT.heap AFTER.hprof` then says what `heapdiff IN AFTER.hprof` would, with intervals and
stacks. The last dump of a comparison is looked into, so a summary cannot stand for that one.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SummarizeArgs {
    /// A heap dump (HPROF), gzipped or not
    #[arg(value_name = "IN")]
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Where the summary goes, such as before.heap
    #[arg(short, long, value_name = "OUT.heap")]
    output: PathBuf,
    /// Replace OUT.heap if it is a heap dump, a flight recording or a trace; a summary is replaced without it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    analysis: AnalysisArgs,
}

impl SummarizeArgs {
    pub(super) fn summarize(self) -> Result<Summarize> {
        let to = Place::checked(&self.output).map(|()| self.output)?;
        let setup = self
            .analysis
            .setup(Output::default(), self.progress.wanted())?;
        Ok(Summarize {
            dump: self.dump,
            to,
            setup,
        })
    }
}
