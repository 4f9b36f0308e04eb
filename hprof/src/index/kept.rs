//! A small file beside a dump: what somebody made of it, so that it need not be made again.
//!
//! A header tells of which dump it is, as that of an index does, of which [`Refs`], and of which version of the
//! program and of the content. Then comes the content, whose hash is in the header. It is read as a whole, and nothing
//! is taken from it before the hash is found to be right.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::encode::Encoder;
use super::fault::IndexFault;
use super::format::program;
use crate::bytes::stamp::{Stamp, hash};
use crate::options::Refs;
use crate::snapshot::Snapshot;

/// What such a file begins with.
pub(super) const MAGIC: &[u8] = b"heapdiff summary\r\n";
/// Two words of four bytes, and eight of eight: see [`Kept::header`].
const HEADER: usize = MAGIC.len() + 2 * 4 + 8 * 8;
/// The version of the program in the header; zero where a file stands alone.
const PROGRAM: std::ops::Range<usize> = 26..34;

/// What tells a dump's file from others and from what it was before; of compressed files as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp(Stamp);

impl FileStamp {
    /// The stamp of a file, of which nothing but the two ends is read. `None` of pipes, and where the system does not
    /// tell when a file was changed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(path: &Path) -> std::io::Result<Option<Self>> {
        Ok(Stamp::of_file(path)?.map(Self))
    }

    /// Whether a file is, as far as its entry in the folder tells, still the one this was made of.
    #[must_use]
    pub fn agrees(&self, meta: &std::fs::Metadata) -> bool {
        self.0.agrees(meta)
    }
}

impl Snapshot {
    /// The stamp of the file that the dump was read from, as it was then. `None` of pipes and bytes in memory, and of
    /// all but a file's first dump.
    #[doc(hidden)]
    #[must_use]
    pub fn file_stamp(&self) -> Option<FileStamp> {
        self.source().file_stamp().copied().map(FileStamp)
    }
}

/// Of what a content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The dump that the file lies beside. `None` of a content that stands for a dump wherever it is: later versions of
    /// the program read it as long as the content's version is theirs.
    pub stamp: Option<FileStamp>,
    /// Which references retain.
    pub refs: Refs,
    /// The version of the content.
    pub version: u32,
}

impl Kept {
    /// True if a file begins as one of these.
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        let mut start = [0; MAGIC.len()];
        // Of a pipe nothing may be read.
        let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
        is_file
            && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
            && start == MAGIC
    }

    /// A file with this content.
    #[must_use]
    pub fn file(&self, content: &[u8]) -> Vec<u8> {
        [&*self.header(content), content].concat()
    }

    /// The content of a file, which is what was written. No file of more than `limit` bytes is read.
    ///
    /// # Errors
    /// When the file is of another dump, of other references, or of another version, is damaged, or cannot be read.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, IndexFault> {
        let bytes = whole(path, limit)?;
        let is_of_program = bytes.get(PROGRAM).is_some_and(|p| p != [0; 8]);
        if self.stamp.is_none() && bytes.starts_with(MAGIC) && is_of_program {
            return Err(IndexFault::Other("as the cached summary of one dump"));
        }
        self.content(bytes)
    }

    /// The content of the bytes of a file, as [`Kept::read`] returns it.
    fn content(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>, IndexFault> {
        if !bytes.starts_with(MAGIC) {
            return Err(IndexFault::Foreign);
        }
        let (head, content) = bytes
            .split_at_checked(HEADER)
            .ok_or(IndexFault::Damaged("the file is truncated"))?;
        let expected = self.header(content);
        // The header's parts: versions, the dump, the content, and the hash of them all.
        let [version, refs, program, dump, len] = [18..22, 22..26, PROGRAM, 34..66, 66..74];
        let same = |part: std::ops::Range<usize>| head.get(part.clone()) == expected.get(part);
        if !same(version) || !same(program) {
            return Err(IndexFault::Other("by another version of heapdiff"));
        }
        let own = head.split_at_checked(HEADER - 8);
        if own.is_none_or(|(all, sum)| hash(all).to_le_bytes() != *sum) {
            return Err(IndexFault::Damaged("wrong checksum of its header"));
        }
        if !same(refs) {
            return Err(IndexFault::Other("with another --refs option"));
        }
        if !same(dump) {
            return Err(IndexFault::Stale);
        }
        if !same(len) {
            return Err(IndexFault::Damaged("the file is truncated"));
        }
        if head != expected {
            return Err(IndexFault::Damaged("wrong checksum of its content"));
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

/// The bytes of a file that may be one of these.
fn whole(path: &Path, limit: u64) -> Result<Vec<u8>, IndexFault> {
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
    fn a_content_comes_back_for_what_it_was_made_of_and_for_nothing_else() {
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
    fn no_byte_of_a_file_can_be_another_and_none_be_missing() {
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
    fn a_content_that_stands_alone_is_read_as_itself_and_not_as_one_of_a_dump() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.heap");
        let alone = Kept {
            stamp: None,
            ..kept(1)
        };
        let file = alone.file(b"content");
        std::fs::write(&path, &file).unwrap();
        assert!(Kept::is_one(&path) && !Kept::is_one(folder.path()));
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
    fn what_is_no_such_file_is_not_read() {
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
