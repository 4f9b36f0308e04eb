//! A small file beside a dump: the result of a computation, stored so that it need not be repeated.
//!
//! A header, like that of an index, identifies the dump, the [`Refs`], the version of the program and the version of
//! the content. The content follows. Its hash is in the header. The file is read completely, and the content is used
//! only if the hash is correct.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::encode::Encoder;
use super::fault::IndexFault;
use super::format::program;
use crate::bytes::stamp::{Stamp, hash};
use crate::options::Refs;
use crate::snapshot::Snapshot;

/// The first bytes of a summary file.
pub(super) const MAGIC: &[u8] = b"heapdiff summary\r\n";
/// Size of the header in bytes. It consists of the magic bytes, two words of four bytes, and eight words of eight bytes
/// (see [`Kept::header`]).
const HEADER: usize = MAGIC.len() + 2 * 4 + 8 * 8;
/// The bytes of a summary file's header that contain a hash of heapdiff's version. The bytes are zero if the file does
/// not depend on a dump (see [`Kept::stamp`]).
const PROGRAM: std::ops::Range<usize> = 26..34;

/// A stamp (size, modification time and hash) that distinguishes a dump's file from other files and from its earlier
/// content. Compressed files have stamps, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp(Stamp);

impl FileStamp {
    /// Returns the stamp of a file. Reads only the first and the last bytes of the file. Returns `None` for pipes, and
    /// if the system does not report the modification time.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Option<Self>> {
        Ok(Stamp::of_file(path)?.map(Self))
    }

    /// Returns true if the size and the modification time of a file are those of the stamp.
    #[must_use]
    pub fn matches_metadata(&self, meta: &std::fs::Metadata) -> bool {
        self.0.matches_metadata(meta)
    }
}

impl Snapshot {
    /// Returns the stamp (size, modification time and hash) that the dump's file had at the time of loading. Returns
    /// `None` for pipes, for bytes in memory, and for all dumps in a file but the first.
    #[doc(hidden)]
    #[must_use]
    pub fn file_stamp(&self) -> Option<FileStamp> {
        self.source().file_stamp().copied().map(FileStamp)
    }
}

/// Identifies the content of a summary file. The content may be used only if the dump, [`Refs`] and the version are the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Identifies the dump beside which the file is stored. `None` for a summary file that is used instead of a dump.
    /// Such a file can be moved to another folder. Later versions of the program can read it if they use the same
    /// `version`.
    pub stamp: Option<FileStamp>,
    /// The reference objects that retain their referents.
    pub refs: Refs,
    /// The version of the content's format.
    pub version: u32,
}

impl Kept {
    /// Returns true if a file begins like a summary file.
    #[must_use]
    pub fn has_magic(path: &Path) -> bool {
        let mut start = [0; MAGIC.len()];
        // Reading from a pipe would consume its bytes.
        let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
        is_file
            && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
            && start == MAGIC
    }

    /// Returns the version of the content of a summary file. Returns `None` if the file is not a summary file, or
    /// cannot be read.
    #[must_use]
    pub fn version(path: &Path) -> Option<u32> {
        let mut start = [0; MAGIC.len() + 4];
        let mut file = File::open(path).ok()?;
        file.read_exact(&mut start).ok()?;
        let version = start.strip_prefix(MAGIC)?;
        Some(u32::from_le_bytes(*version.first_chunk()?))
    }

    /// Returns the bytes of a summary file with this content.
    #[must_use]
    pub fn file(&self, content: &[u8]) -> Vec<u8> {
        [&*self.header(content), content].concat()
    }

    /// Returns the content of a summary file. A file of more than `limit` bytes is not read.
    ///
    /// # Errors
    /// Returns an error if the file belongs to another dump, has other [`Refs`] or another version, is damaged, or
    /// cannot be read.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, IndexFault> {
        let bytes = read_file(path, limit)?;
        let is_of_program = bytes.get(PROGRAM).is_some_and(|p| p != [0; 8]);
        if self.stamp.is_none() && bytes.starts_with(MAGIC) && is_of_program {
            return Err(IndexFault::Other(
                "the file is a cached summary, which belongs to one dump",
            ));
        }
        self.content(bytes)
    }

    /// Returns the content from the bytes of a summary file. See [`Kept::read`].
    fn content(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>, IndexFault> {
        if !bytes.starts_with(MAGIC) {
            return Err(IndexFault::Foreign);
        }
        let (head, content) = bytes
            .split_at_checked(HEADER)
            .ok_or(IndexFault::Damaged("the file is truncated"))?;
        let expected = self.header(content);
        // Byte ranges of the header's fields: version of the content, selected references (`Refs`), version of the
        // program, dump, and length of the content.
        let [version, refs, program, dump, len] = [18..22, 22..26, PROGRAM, 34..66, 66..74];
        let same = |part: std::ops::Range<usize>| head.get(part.clone()) == expected.get(part);
        if !same(version) || !same(program) {
            return Err(IndexFault::Other(
                "the file was written by another version of heapdiff",
            ));
        }
        let own = head.split_at_checked(HEADER - 8);
        if own.is_none_or(|(all, sum)| hash(all).to_le_bytes() != *sum) {
            return Err(IndexFault::Damaged("the checksum of its header is wrong"));
        }
        if !same(refs) {
            return Err(IndexFault::Other(
                "the file was written with another --refs option",
            ));
        }
        if !same(dump) {
            return Err(IndexFault::Stale);
        }
        if !same(len) {
            return Err(IndexFault::Damaged("the file is truncated"));
        }
        if head != expected {
            return Err(IndexFault::Damaged("the checksum of its content is wrong"));
        }
        bytes.drain(..HEADER);
        Ok(bytes)
    }

    fn header(&self, content: &[u8]) -> Vec<u8> {
        let stamp = self.stamp.map(|stamp| (program(), stamp.0.words()));
        let (program, dump) = stamp.unwrap_or_default();
        let mut e = Encoder(MAGIC.to_vec());
        e.u32(self.version);
        e.u32(self.refs as u32);
        e.u64(program);
        for word in dump {
            e.u64(word);
        }
        e.u64(content.len() as u64);
        e.u64(hash(content));
        let sum = hash(&e.0);
        e.u64(sum);
        e.0
    }
}

/// Returns the bytes of a file that may be a summary file.
fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, IndexFault> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    if !file.metadata()?.is_file() || len < HEADER as u64 || len > limit {
        return Err(IndexFault::Foreign);
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(ends: u64) -> Kept {
        Kept {
            stamp: Some(FileStamp(Stamp {
                bytes: 7,
                modified: (8, 9),
                ends,
            })),
            refs: Refs::Soft,
            version: 3,
        }
    }

    #[test]
    fn content_is_returned_only_for_its_dump_and_options() {
        let of = kept(1);
        let file = of.file(b"content");
        assert_eq!(file.len(), HEADER + 7);
        assert_eq!(of.content(file.clone()).unwrap(), b"content");
        let fault = |of: Kept| of.content(file.clone()).unwrap_err();
        assert!(matches!(fault(kept(2)), IndexFault::Stale));
        let other = Kept { version: 4, ..of };
        assert!(matches!(fault(other), IndexFault::Other(_)));
        let refs = Refs::Strong;
        let other = Kept { refs, ..of };
        assert!(matches!(fault(other), IndexFault::Other(_)));
    }

    #[test]
    fn changed_and_missing_bytes_are_detected() {
        let of = kept(1);
        let file = of.file(b"content");
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut damaged = file.clone();
                damaged[at] ^= 1 << bit;
                assert!(of.content(damaged).is_err(), "byte {at}");
            }
            assert!(of.content(file[..at].to_vec()).is_err(), "cut at {at}");
        }
        let longer = [&file[..], b"x"].concat();
        assert!(of.content(longer).is_err());
    }

    #[test]
    fn content_without_a_dump_is_not_read_as_that_of_a_dump() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.heap");
        let alone = Kept {
            stamp: None,
            ..kept(1)
        };
        let file = alone.file(b"content");
        std::fs::write(&path, &file).unwrap();
        assert!(Kept::has_magic(&path) && !Kept::has_magic(folder.path()));
        assert_eq!(alone.read(&path, 1000).unwrap(), b"content");
        let fault = |alone: Kept| alone.read(&path, 1000).unwrap_err();
        assert!(matches!(
            fault(Kept {
                version: 4,
                ..alone
            }),
            IndexFault::Other(_)
        ));
        let refs = Refs::All;
        assert!(matches!(
            fault(Kept { refs, ..alone }),
            IndexFault::Other(_)
        ));
        assert!(kept(1).content(file.clone()).is_err());
        std::fs::write(&path, kept(1).file(b"content")).unwrap();
        assert!(matches!(fault(alone), IndexFault::Other(_)));
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert!(alone.read(&path, 1000).is_err(), "byte {at}");
        }
    }

    #[test]
    fn other_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        let (of, foreign) = (kept(1), |r: Result<_, _>| {
            matches!(r, Err(IndexFault::Foreign))
        });
        let file = of.file(b"content");
        std::fs::write(&path, &file).unwrap();
        assert_eq!(of.read(&path, 1000).unwrap(), b"content");
        assert!(foreign(of.read(&path, file.len() as u64 - 1)));
        std::fs::write(&path, "my own notes").unwrap();
        assert!(foreign(of.read(&path, 1000)));
        assert!(foreign(of.read(folder.path(), 1 << 20)) || of.read(folder.path(), 1000).is_err());
    }
}
