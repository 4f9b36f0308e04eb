//! Errors and warnings. Their messages contain the offset and the value that was found.

use std::path::PathBuf;

use crate::flaw::Flaw;

/// An error: the dump cannot be read at all. If the dump is damaged but partly readable, there is a [`Warning`]
/// instead.
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
    /// The file does not begin like a heap dump.
    #[error("not a heap dump: {0}")]
    NotADump(String),
    /// The file ends before its first heap record.
    #[error("the dump contains no objects: it was truncated or damaged before its first heap record{}{}", more(reason.as_deref()), other_dump(*.next))]
    NoHeap {
        /// The number of the next dump in the file, from 1, if there is one.
        next: Option<usize>,
        /// The damage that was found when the file was opened, if any.
        reason: Option<String>,
    },
    /// The header contains a value that is not possible.
    #[error("at byte {offset}: {what}")]
    Header {
        /// Byte offset in the (decompressed) file.
        offset: u64,
        /// The value found.
        what: String,
    },
    /// The file has fewer dumps than the number that was requested.
    #[error("--dump {asked}: the file has no dump with this number (it contains {held} in total)")]
    NoSuchDump {
        /// The number of the requested dump, from 1.
        asked: usize,
        /// The number of dumps in the file.
        held: usize,
    },
    /// The file was changed or truncated while it was read.
    #[error("{path}: {}", changed(*before, *now))]
    Changed {
        /// The file.
        path: PathBuf,
        /// The size of the file when it was opened.
        before: u64,
        /// The size of the file when the change was found.
        now: u64,
    },
    /// There are more objects or references than 32 bits can number.
    #[error("the dump is too large: {count} {what}, the limit is {limit}")]
    Limit {
        /// The word for the counted items, such as `objects` or `references`.
        what: &'static str,
        /// The number of counted items.
        count: u64,
        /// The maximum number.
        limit: u64,
    },
    /// Memory or a temporary file for an array could not be allocated.
    #[error("cannot allocate {bytes} bytes of working memory: {source}")]
    Memory {
        /// The requested number of bytes.
        bytes: u64,
        /// The system's error.
        source: std::io::Error,
    },
    /// The receiver of the progress ([`Progress`](crate::Progress)) cancelled the analysis.
    #[error("the analysis was cancelled")]
    Cancelled,
    /// The dump has no object at this address.
    #[error("this dump has no object at {0}")]
    NoSuchObject(crate::ids::ObjectId),
    /// The dump has no object with this number.
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

/// A warning: a part of the dump is damaged or missing, and the other parts were read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Warning {
    /// Byte offset in the (decompressed) file, if the damage is at one offset.
    pub offset: Option<u64>,
    /// The damage, and its effect on the figures.
    pub message: String,
    /// True if, because of this damage, some of the dump's content is missing from the figures.
    pub partial: bool,
}

impl Warning {
    /// Creates a warning about a flaw at an offset of the file.
    pub(crate) fn at(offset: u64, flaw: &Flaw) -> Self {
        Self {
            offset: Some(offset),
            ..Self::new(flaw)
        }
    }

    /// Creates a warning about a flaw of the whole dump.
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
