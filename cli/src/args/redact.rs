//! What `heapdiff redact` is asked.

use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::pattern;
use regex::Regex;

use super::common::ProgressArgs;
use crate::failure::Result;
use crate::job::{Redact, RedactWhat};

const AFTER_HELP: &str = "\
A text becomes letters from à to ÿ: equal ones for equal texts of a dump, made with keys that
nobody keeps. Long texts and all other arrays become zeros. Names of classes, fields, methods and
source files stay, and so do object ids, sizes, references and lengths, and numbers in fields unless
--numbers is given. Fields that can hold a hash of content become zero. Nothing after damage is
copied. SECURITY.md says what can be learnt from these.

Exit codes: 0 done, 1 --check found what a redaction takes away, 2 wrong usage, 3 the dump could not
be read.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RedactArgs {
    /// A heap dump (HPROF), gzipped or not; - is standard input
    #[arg(value_name = "IN")]
    dump: PathBuf,
    /// Where the redacted dump goes, gzipped if the name ends in .gz; - is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "check")]
    output: Option<PathBuf>,
    /// Say what is left, in OUT or else in IN, and what is kept
    #[arg(long)]
    check: bool,
    /// Numbers in fields go, too; lengths in the JDK's collections, strings and buffers stay
    #[arg(long)]
    numbers: bool,
    /// With --numbers, keep numbers in fields whose CLASS.FIELD matches (may be repeated)
    #[arg(long, value_name = "RE", value_parser = pattern, requires = "numbers")]
    keep_numbers: Vec<Regex>,
    /// Replace OUT if it is a heap dump, a flight recording or a trace
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Treat a damaged dump as one that cannot be read
    #[arg(long)]
    strict: bool,
}

impl RedactArgs {
    pub(super) fn redact(self) -> Result<Redact> {
        let what = RedactWhat {
            check: self.check,
            numbers: self.numbers,
            keep_numbers: self.keep_numbers,
            strict: self.strict,
        };
        Redact::new(self.dump, self.output, what, self.progress.wanted())
    }
}
