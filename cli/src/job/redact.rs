//! A dump to redact, checked.

use std::path::{Path, PathBuf};

use super::output::{folder_of, same_file};
use crate::failure::{Failure, Result};
use crate::progress::Wanted;

/// Where a redacted dump goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Stdout,
    File { path: PathBuf, gzip: bool },
}

/// A dump to redact.
#[derive(Debug)]
pub(crate) struct Redact {
    pub(crate) dump: PathBuf,
    pub(crate) to: Place,
    pub(crate) progress: Wanted,
    pub(crate) strict: bool,
}

impl Redact {
    /// Refuses places that cannot be meant.
    pub(crate) fn new(dump: PathBuf, to: PathBuf, progress: Wanted, strict: bool) -> Result<Self> {
        let is_standard = |path: &Path| path.as_os_str() == "-";
        let dump = match is_standard(&dump) {
            true => PathBuf::from("/dev/stdin"),
            false => dump,
        };
        let to = match is_standard(&to) {
            true => Place::Stdout,
            false => Place::file(to, &dump)?,
        };
        Ok(Self {
            dump,
            to,
            progress,
            strict,
        })
    }
}

impl Place {
    fn file(path: PathBuf, dump: &Path) -> Result<Self> {
        let shown = path.display();
        if path.is_dir() {
            let message = format!("-o {shown}: is a directory");
            return Err(Failure::usage(message).with_hint("name the file to write"));
        }
        if same_file(dump, &path) {
            let message = format!("-o {shown} would overwrite the dump that is read");
            return Err(Failure::usage(message));
        }
        let folder = folder_of(&path);
        if !folder.is_dir() {
            let message = format!("-o {shown}: the folder {} does not exist", folder.display());
            return Err(Failure::usage(message));
        }
        let gzip = path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("gz"));
        Ok(Self::File { path, gzip })
    }
}
