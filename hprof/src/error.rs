//! What can go wrong, in words that name the offset and the value.

use std::path::PathBuf;

use crate::flaw::Flaw;

/// A dump could not be read at all. Damage that leaves something readable is a [`Warning`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file does not begin as a heap dump.
    #[error("not a heap dump: {0}")]
    NotADump(String),
    /// The file ends before its first heap record.
    #[error("the dump contains no objects: it was truncated or damaged before its first heap record{}{}", more(reason.as_deref()), other_dump(*.next))]
    NoHeap {
        /// The place of the next dump in the file, from 1, if there is one.
        next: Option<usize>,
        /// The damage that was found when the file was opened.
        reason: Option<String>,
    },
    /// The header is there but says something no dump says.
    #[error("at byte {offset}: {what}")]
    Header {
        /// Byte offset in the (decompressed) file.
        offset: u64,
        /// The value found.
        what: String,
    },
    /// The file holds fewer dumps than the one that was asked for.
    #[error("--dump {asked}: the number of dumps in this file is {held}")]
    NoSuchDump {
        /// The dump's place in the file, from 1.
        asked: usize,
        /// How many there are.
        held: usize,
    },
    /// The file was written to or cut while it was read.
    #[error("{path}: {}", changed(*before, *now))]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its size when it was opened.
        before: u64,
        /// Its size when that was found.
        now: u64,
    },
    /// More objects or references than the 32-bit numbering holds.
    #[error("the dump is too large: {count} {what}, the limit is {limit}")]
    Limit {
        /// The things counted.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Memory or a temporary file for an array could not be had.
    #[error("cannot allocate {bytes} bytes of working memory: {source}")]
    Memory {
        /// How much was asked for.
        bytes: u64,
        /// The system's error.
        source: std::io::Error,
    },
    /// Whoever follows the work ([`Progress`](crate::Progress)) gave it up.
    #[error("the analysis was cancelled")]
    Cancelled,
    /// Nothing in the dump is at this address.
    #[error("this dump has no object at {0}")]
    NoSuchObject(crate::ids::ObjectId),
    /// No object has this number.
    #[error("this dump has no object with number {}", .0.0)]
    NoSuchNumber(crate::ids::ObjectIndex),
}

fn more(reason: Option<&str>) -> String {
    reason
        .map(|reason| format!("; {reason}"))
        .unwrap_or_default()
}

fn other_dump(next: Option<usize>) -> String {
    let told = |next| format!(" (`--dump {next}` reads the next dump in the file)");
    next.map(told).unwrap_or_default()
}

fn changed(before: u64, now: u64) -> String {
    if now == before {
        "the file was modified while heapdiff read it".to_owned()
    } else {
        format!("the file changed from {before} to {now} bytes while heapdiff read it")
    }
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Something in the dump was damaged or missing; the rest was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Warning {
    /// Byte offset in the (decompressed) file, where there is one.
    pub offset: Option<u64>,
    /// The damage, and its meaning for the figures.
    pub message: String,
    /// Whether some of the dump's content is missing from the figures because of it.
    pub partial: bool,
}

impl Warning {
    /// The warning about a flaw at a place of the file.
    pub(crate) fn at(offset: u64, flaw: &Flaw) -> Self {
        Self {
            offset: Some(offset),
            ..Self::new(flaw)
        }
    }

    /// The warning about a flaw of the dump as a whole.
    pub(crate) fn new(flaw: &Flaw) -> Self {
        Self {
            offset: None,
            message: flaw.to_string(),
            partial: flaw.is_partial(),
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.offset {
            Some(o) => write!(f, "at byte {o}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
