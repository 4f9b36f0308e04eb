//! What `heapdiff redact` is asked.

use std::path::PathBuf;

use clap::Args;

use super::common::ProgressArgs;
use crate::failure::Result;
use crate::job::Redact;

const AFTER_HELP: &str = "\
Names of classes, fields, methods and source files stay, and so do numbers in fields, object ids,
sizes and references. SECURITY.md says what can be learnt from them.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RedactArgs {
    /// A heap dump (HPROF), gzipped or not; - is standard input
    #[arg(value_name = "IN")]
    dump: PathBuf,
    /// Where the redacted dump goes, gzipped if the name ends in .gz; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Treat a damaged dump as one that cannot be read
    #[arg(long)]
    strict: bool,
}

impl RedactArgs {
    pub(super) fn redact(self) -> Result<Redact> {
        Redact::new(self.dump, self.output, self.progress.wanted(), self.strict)
    }
}
