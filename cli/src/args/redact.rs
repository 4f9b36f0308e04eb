//! What `heapdiff redact` is asked.

use std::path::PathBuf;

use clap::Args;
use heapdiff_diff::pattern;
use regex::Regex;

use super::common::ProgressArgs;
use crate::failure::Result;
use crate::job::{Redact, RedactWhat};

const AFTER_HELP: &str = "\
Replaced: the characters of short strings become letters from à to ÿ (equal strings stay equal; the
keys are random and not stored). Long strings and all other arrays become zeros, and so do fields
that can hold a hash of content. If the dump is damaged, nothing after the damage is copied.

Kept: names of classes, fields, methods and source files, object ids, sizes, references and lengths.
Numbers in fields are not changed, unless --numbers is given. SECURITY.md explains what the kept
data can reveal.

Exit codes: 0 = done, 1 = --check found content that `heapdiff redact` replaces, 2 = wrong usage,
3 = the dump could not be read.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RedactArgs {
    /// Heap dump (HPROF), gzipped or not; `-` is standard input
    #[arg(value_name = "IN")]
    dump: PathBuf,
    /// File for the redacted dump, gzipped if its name ends in .gz; `-` is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "check")]
    output: Option<PathBuf>,
    /// Report how much sensitive content is left, and what redact keeps on purpose: in OUT, or in
    /// IN without -o
    #[arg(long)]
    check: bool,
    /// Also replace numbers in fields, except lengths in JDK collections, strings and buffers
    #[arg(long)]
    numbers: bool,
    /// With --numbers, keep numbers in fields whose CLASS.FIELD matches; may be repeated
    #[arg(long, value_name = "RE", value_parser = pattern, requires = "numbers")]
    keep_numbers: Vec<Regex>,
    /// Replace OUT even if it is a heap dump, JFR recording or trace
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// Refuse damaged or truncated dumps (exit code 3)
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
