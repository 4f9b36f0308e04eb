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
    #[error("the file is not an index")]
    Foreign,
    /// Another version of the program wrote it, or it was written for other options.
    #[error("the file was written {0}")]
    Other(&'static str),
    /// The dump has changed since.
    #[error("the file belongs to another dump, or the dump has changed")]
    Stale,
    /// Its content is not what was written.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// Dumps that are compressed or come through a pipe have none.
    #[error("compressed dumps have no index")]
    NoFile,
}

impl IndexFault {
    /// Whether something happened to the file that should not have.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::Foreign | Self::Unreadable(_))
    }
}
