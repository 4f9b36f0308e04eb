//! A dump to redact, checked.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::output::folder_of;
use crate::failure::{Failure, Result};
use crate::progress::Wanted;

/// Where a redacted dump goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Stdout,
    File { path: PathBuf, gzip: bool },
}

/// What is done to it.
#[derive(Clone, Debug)]
pub(crate) struct RedactWhat {
    /// Whether what is left is told.
    pub(crate) check: bool,
    /// Whether numbers in fields go, too.
    pub(crate) numbers: bool,
    /// Fields whose numbers stay although numbers go.
    pub(crate) keep_numbers: Vec<Regex>,
    pub(crate) strict: bool,
}

/// A dump to redact, or to check.
#[derive(Debug)]
pub(crate) struct Redact {
    pub(crate) dump: PathBuf,
    /// `None` where it is only checked.
    pub(crate) to: Option<Place>,
    pub(crate) what: RedactWhat,
    pub(crate) progress: Wanted,
}

impl Redact {
    /// Refuses places that cannot be meant.
    pub(crate) fn new(
        dump: PathBuf,
        to: Option<PathBuf>,
        what: RedactWhat,
        progress: Wanted,
    ) -> Result<Self> {
        let is_standard = |path: &Path| path.as_os_str() == "-";
        let dump = if is_standard(&dump) {
            PathBuf::from("/dev/stdin")
        } else {
            hprof::bytes::dump_of(&dump)
        };
        let to = match to {
            Some(to) if is_standard(&to) && what.check => {
                let message = "--check cannot check a dump that is written to standard output";
                return Err(Failure::usage(message).with_hint("write it to a file with -o FILE"));
            }
            Some(to) if is_standard(&to) => Some(Place::Stdout),
            Some(to) => Some(Place::file(to)?),
            None => None,
        };
        Ok(Self {
            dump,
            to,
            what,
            progress,
        })
    }
}

impl Place {
    fn file(path: PathBuf) -> Result<Self> {
        Self::checked(&path)?;
        let gzip = path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("gz"));
        Ok(Self::File { path, gzip })
    }

    /// Refuses files that cannot be meant.
    pub(crate) fn checked(path: &Path) -> Result<()> {
        let shown = path.display();
        if path.is_dir() {
            let message = format!("-o {shown}: this is a directory");
            return Err(Failure::usage(message).with_hint("give a file name"));
        }
        let folder = folder_of(path);
        if !folder.is_dir() {
            let message = format!("-o {shown}: the folder {} does not exist", folder.display());
            return Err(Failure::usage(message));
        }
        Ok(())
    }
}
