//! What `heapdiff summarize` is asked.

use std::path::PathBuf;

use clap::Args;

use super::common::{AnalysisArgs, ProgressArgs, input};
use crate::failure::Result;
use crate::job::{Output, Place, Summarize};

const AFTER_HELP: &str = "\
`heapdiff OUT.heap AFTER.hprof` then gives the same report as `heapdiff IN AFTER.hprof`, so you can
delete IN. The last argument of a comparison must be a full dump, not a summary.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct SummarizeArgs {
    /// Heap dump (HPROF), gzipped or not
    #[arg(value_name = "IN")]
    #[arg(value_parser = input())]
    dump: PathBuf,
    /// Summary file to write, such as before.heap
    #[arg(short, long, value_name = "OUT.heap")]
    output: PathBuf,
    /// Replace OUT.heap even if it is a heap dump, JFR recording or trace (a summary is always
    /// replaced)
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
