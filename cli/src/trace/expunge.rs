//! `heapdiff trace expunge`: removes what is old.

use std::path::PathBuf;

use crate::failure::{Exit, Failure, Result};
use crate::span::Span;

/// What is removed.
#[derive(Debug)]
pub(crate) struct Expunge {
    pub(crate) trace: PathBuf,
    pub(crate) before: Span,
    pub(crate) quiet: bool,
}

/// Removes it and says what.
pub(crate) fn expunge(expunge: &Expunge) -> Result<Exit> {
    let _ = (&expunge.trace, &expunge.before, expunge.quiet);
    Err(Failure::usage("not yet"))
}
