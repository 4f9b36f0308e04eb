//! The reasons why an index cannot be used.

use std::io;

/// The reason why an index is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexFault {
    /// The index, or the dump, cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The file is not an index.
    #[error("the file is not an index")]
    Foreign,
    /// Another version of the program wrote the index, or the index was written for other options.
    #[error("{0}")]
    Other(&'static str),
    /// The dump has changed since the index was written.
    #[error("the file belongs to another dump, or the dump has changed")]
    Stale,
    /// The content of the index has changed since it was written.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// The dump cannot have an index: it is compressed, read from a pipe, or not the first dump in its file.
    #[error("compressed dumps have no index")]
    NoFile,
}

impl IndexFault {
    /// Returns true if the file was damaged, replaced, or cannot be read.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::Foreign | Self::Unreadable(_))
    }
}
