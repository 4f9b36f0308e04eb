//! What tells a dump's file from others, and from what it was before.

use std::fs::Metadata;
use std::time::UNIX_EPOCH;

use twox_hash::XxHash3_64;

/// Bytes at either end of a dump that tell it from others.
const END: usize = 64 << 10;

/// A stamp of a dump's file, which tells it from other files and from its earlier content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub(crate) modified: (u64, u32),
    /// A hash of the first and the last bytes.
    pub(crate) ends: u64,
}

impl Stamp {
    /// `None` where the system does not tell when the file was changed.
    pub(crate) fn new(meta: &Metadata, content: &[u8]) -> Option<Self> {
        let first = &content[..content.len().min(END)];
        let last = &content[content.len().saturating_sub(END)..];
        let ends = [hash(first), hash(last)];
        Some(Self {
            bytes: content.len() as u64,
            modified: modified(meta)?,
            ends: hash(bytemuck::cast_slice(&ends)),
        })
    }

    /// Whether a file is, as far as its entry in the folder tells, still the one this was made of.
    pub(crate) fn agrees(&self, meta: &Metadata) -> bool {
        meta.len() == self.bytes && modified(meta) == Some(self.modified)
    }
}

pub(crate) fn modified(meta: &Metadata) -> Option<(u64, u32)> {
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((since.as_secs(), since.subsec_nanos()))
}

/// A hash of bytes: XXH3, 64 bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}
