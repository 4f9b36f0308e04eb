//! What keeps an index from being used.

use std::io;

/// Why an index is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexFault {
    /// The index, or the dump, cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The file is something else.
    #[error("it is something else")]
    Foreign,
    /// Another version of the program wrote it, or it was written for other options.
    #[error("written {0}")]
    Other(&'static str),
    /// The dump has changed since.
    #[error("written for another dump, or for this one before it changed")]
    Stale,
    /// Its content is not what was written.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// Dumps that are compressed or come through a pipe have none.
    #[error("its dump has to be unpacked first")]
    NoFile,
}

impl IndexFault {
    /// Whether something happened to the file that should not have.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::Foreign | Self::Unreadable(_))
    }
}
