//! Stamps (size, modification time and hash) of a dump's file, which distinguish it from other files and from its
//! earlier content.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use twox_hash::XxHash3_64;

use crate::bytes::segments::Beside;

/// Number of bytes at the start and at the end of a dump that are hashed.
const END: usize = 64 << 10;

/// A stamp: the size, modification time and hash of a dump's file. They distinguish the file from other files and from
/// its earlier content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    /// The modification time, in seconds and nanoseconds since 1970.
    pub(crate) modified: (u64, u32),
    /// A hash of the first bytes, the last bytes, and the stamps of segments.
    pub(crate) ends: u64,
}

impl Stamp {
    /// Returns the stamp of a file; `None` if the system does not report the modification time.
    pub(crate) fn new(meta: &Metadata, content: &[u8]) -> Option<Self> {
        let first = &content[..content.len().min(END)];
        let last = &content[content.len().saturating_sub(END)..];
        Self::from_ends(meta, content.len() as u64, first, last)
    }

    fn from_ends(meta: &Metadata, bytes: u64, first: &[u8], last: &[u8]) -> Option<Self> {
        let ends = [hash(first), hash(last)];
        Some(Self {
            bytes,
            modified: modified(meta)?,
            ends: hash(bytemuck::cast_slice(&ends)),
        })
    }

    /// Returns the stamp of a file, and of the segments beside it if it has no end record. Reads only the first and the
    /// last bytes of each file. Returns `None` for a pipe, a device or a folder.
    pub(crate) fn of_file(path: &Path) -> io::Result<Option<Self>> {
        Self::from_path(path, |last| Beside::find_if_unfinished(path, last))
    }

    /// Returns the stamp of a file, without the segments beside it. See [`Stamp::of_file`].
    pub(crate) fn from_file_without_segments(path: &Path) -> io::Result<Option<Self>> {
        Self::from_path(path, |_| Beside::default())
    }

    fn from_path(path: &Path, beside: impl FnOnce(&[u8]) -> Beside) -> io::Result<Option<Self>> {
        // Opening a pipe may block forever.
        if !std::fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        let first = read_at(&mut file, 0)?;
        let last = last_bytes(&mut file, meta.len())?;
        let stamp = Self::from_ends(&meta, meta.len(), &first, &last);
        Ok(stamp.map(|stamp| beside(&last).stamp(stamp)))
    }

    /// Combines the stamp of a dump's file with the stamps of its segments. Each segment is given with its number.
    pub(crate) fn with(mut self, others: impl Iterator<Item = (u32, [u64; 4])>) -> Self {
        for (number, words) in others {
            let [a, b, c, d] = words;
            let all = [self.ends, u64::from(number), a, b, c, d];
            self.ends = hash(bytemuck::cast_slice(&all));
        }
        self
    }

    /// Returns the values of the stamp, in the format that the headers of indexes and summaries use.
    pub(crate) fn words(&self) -> [u64; 4] {
        let (seconds, nanos) = self.modified;
        [self.bytes, seconds, u64::from(nanos), self.ends]
    }

    /// Returns true if a file still has the size and the modification time that this stamp of the file recorded.
    pub(crate) fn matches_metadata(&self, meta: &Metadata) -> bool {
        meta.len() == self.bytes && modified(meta) == Some(self.modified)
    }
}

fn read_at(file: &mut File, at: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(END as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the last bytes of a file with a known length.
pub(crate) fn last_bytes(file: &mut File, len: u64) -> io::Result<Vec<u8>> {
    read_at(file, len.saturating_sub(END as u64))
}

pub(crate) fn modified(meta: &Metadata) -> Option<(u64, u32)> {
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((since.as_secs(), since.subsec_nanos()))
}

/// Returns the 64-bit XXH3 hash of these bytes. Every build of the program computes the same hash.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_of_a_file_is_that_of_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for len in [0, 1, END - 1, END, END + 1, 3 * END] {
            let content: Vec<u8> = (0..len).map(|i| (i / 7) as u8).collect();
            std::fs::write(&path, &content).unwrap();
            let meta = std::fs::metadata(&path).unwrap();
            let stamp = Stamp::of_file(&path).unwrap();
            assert_eq!(stamp, Stamp::new(&meta, &content), "{len}");
            assert!(stamp.is_some_and(|s| s.matches_metadata(&meta)));
        }
        assert_eq!(Stamp::of_file(folder.path()).unwrap(), None);
        assert!(Stamp::of_file(&folder.path().join("none")).is_err());
    }
}
