//! Segments that a JVM left beside a dump because it died before it had merged them.
//!
//! HotSpot of JDK 22 and later writes a dump in two phases. First, each thread that dumps writes heap records to a
//! segment file of its own: `x.hprof.p0`, `x.hprof.p1` and so on. Names, classes and stack traces go to the base,
//! `x.hprof`, whose last part is written when all segments are complete. Then the merger (`DumpMerger::do_merge` in
//! heapDumper.cpp) appends the segments to the base in order, and deletes each segment after appending it. Finally it
//! writes the end record.
//!
//! So a base without an end record may end with a part of the first segment that was not deleted yet. The merge point
//! is a record boundary. From the merge point on, the base equals the first bytes of the segments. The base up to that
//! point, the segments and an end record are the whole dump.
//!
//! With `-gz` the base and the segments are gzip files, and the merger appends the compressed bytes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use memchr::memmem;

use crate::bytes::mapped::MappedFile;
use crate::bytes::stamp::{self, Stamp};
use crate::bytes::{gzip, source};
use crate::error::{Error, Result, Warning};
use crate::flaw::Flaw;
use crate::records::outline::{RECORD_HEAD, head};
use crate::records::record::{self, tag};

/// Maximum number of segments that are read. HotSpot writes one for each thread that dumps.
const MOST: usize = 512;
/// Maximum number of names in a message.
const NAMED: usize = 8;
/// Until all segments are complete, HotSpot writes the base (the dump's main file) in multiples of this number of
/// bytes. Then it writes the remaining bytes of the base.
const FLUSHED: usize = 64 << 10;
/// Number of bytes at the start of each segment that are compared without a limit. The comparison of further bytes is
/// limited by [`Search::budget`].
const SHORT: usize = 64;
/// Number of first bytes that two heap records can have in common: a header, the tag of an object, and an id of 8
/// bytes. Headers and tags are often equal, but no two records begin with the same object.
const COMMON: usize = RECORD_HEAD + 1 + 8;
/// The record that ends a dump.
const END: [u8; RECORD_HEAD] = [tag::HEAP_DUMP_END, 0, 0, 0, 0, 0, 0, 0, 0];

/// True if the bytes end like a complete dump of JDK 6 or later.
pub(crate) fn has_end(dump: &[u8]) -> bool {
    matches!(dump, [.., tag::HEAP_DUMP_END, _, _, _, _, 0, 0, 0, 0])
}

/// Returns the path of the dump's main file (the base) for the path of a segment. Returns `None` if the file name is
/// not that of a segment.
fn base_path(segment: &Path) -> Option<PathBuf> {
    let name = segment.file_name()?.to_str()?;
    let (base, number) = name.rsplit_once(".p")?;
    (!base.is_empty() && parse_number(number).is_some()).then(|| segment.with_file_name(base))
}

fn parse_number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Returns the dump for a path: the dump's main file if the path is that of a segment, otherwise the path itself.
///
/// A file is a segment if its name ends in `.p` and a number, and if the file without that ending exists. In addition,
/// its content must not begin like a dump.
#[must_use]
pub fn dump_of(path: &Path) -> PathBuf {
    let base = base_path(path).filter(|base| {
        let are_files = [base, path].map(|path| std::fs::metadata(path).is_ok_and(|m| m.is_file()));
        are_files == [true; 2] && !has_dump_magic(path)
    });
    base.unwrap_or_else(|| path.to_path_buf())
}

/// True if a dump has no end record and there are segments beside it.
#[must_use]
pub fn has_segments(path: &Path) -> bool {
    let last = || {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        stamp::last_bytes(&mut file, len)
    };
    last().is_ok_and(|last| !Beside::find_if_unfinished(path, &last).is_empty())
}

fn has_dump_magic(path: &Path) -> bool {
    use std::io::Read;
    let read = |mut from: Box<dyn Read>| {
        let mut first = [0; source::MAGIC.len()];
        from.read_exact(&mut first).is_ok() && first == source::MAGIC
    };
    let plain = File::open(path).is_ok_and(|file| read(Box::new(file)));
    plain || File::open(path).is_ok_and(|file| read(Box::new(GzDecoder::new(file))))
}

/// A file that is named like a segment.
#[derive(Debug)]
struct Named {
    number: u32,
    path: PathBuf,
    is_file: bool,
}

/// The segments that a JVM left beside a dump, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    base: String,
    files: Vec<Named>,
    /// True if the dump has more than [`MOST`] segments.
    too_many: bool,
}

impl Beside {
    /// Lists the segments beside a dump. Links are listed, but they are not followed.
    ///
    /// Cost: one pass over the entries of the dump's folder.
    pub(crate) fn find(dump: &Path) -> Self {
        let Some(base) = dump.file_name() else {
            return Self::default();
        };
        let folder = dump.parent().filter(|f| !f.as_os_str().is_empty());
        let Ok(entries) = std::fs::read_dir(folder.unwrap_or(Path::new("."))) else {
            return Self::default();
        };
        let named = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            let number = name
                .as_encoded_bytes()
                .strip_prefix(base.as_encoded_bytes())?;
            let number = std::str::from_utf8(number.strip_prefix(b".p")?).ok()?;
            Some(Named {
                number: parse_number(number)?,
                path: dump.with_file_name(&name),
                is_file: entry.file_type().is_ok_and(|kind| kind.is_file()),
            })
        });
        let mut files: Vec<Named> = named.take(MOST + 1).collect();
        files.sort_unstable_by_key(|file| file.number);
        Self {
            base: base.to_string_lossy().into_owned(),
            too_many: files.len() > MOST,
            files,
        }
    }

    /// Lists the segments beside the dump (see [`Beside::find`]) if the dump has no end record. Otherwise lists none,
    /// because a dump with an end record needs no segments.
    pub(crate) fn find_if_unfinished(dump: &Path, last: &[u8]) -> Self {
        if has_end(last) {
            Self::default()
        } else {
            Self::find(dump)
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the stamp (size, modification time and hash) of a dump, combined with the stamps of its segments.
    pub(crate) fn stamp(&self, base: Stamp) -> Stamp {
        if self.is_empty() {
            return base;
        }
        let of_file = |file: &Named| {
            let stamp = || Stamp::from_file_without_segments(&file.path).ok().flatten();
            let stamp = file.is_file.then(stamp).flatten();
            let words = stamp.map(|stamp| stamp.words());
            (file.number, words.unwrap_or_default())
        };
        base.with(self.files.iter().map(of_file))
    }

    /// Returns the names of the segments, for messages.
    pub(crate) fn names(&self) -> String {
        self.names_of(self.files.iter().map(|file| file.number))
    }

    fn names_of(&self, numbers: impl ExactSizeIterator<Item = u32>) -> String {
        let more = numbers.len().saturating_sub(NAMED);
        let names = numbers.take(NAMED).map(|n| format!("{}.p{n}", self.base));
        let mut text = names.collect::<Vec<_>>().join(", ");
        if more > 0 {
            text += &format!(" and {more} more");
        }
        text
    }

    fn count(&self) -> String {
        match self.files.len() {
            1 => "1 unmerged segment".to_owned(),
            _ if self.too_many => format!("more than {MOST} unmerged segments"),
            count => format!("{count} unmerged segments"),
        }
    }

    /// Returns the reason why the segments must not be read; `None` if they can be read.
    pub(crate) fn refusal(&self) -> Option<String> {
        if self.too_many {
            return Some(format!("heapdiff reads at most {MOST} segments"));
        }
        let other = self.files.iter().find(|file| !file.is_file)?;
        Some(format!("{} is not a regular file", self.name(other)))
    }

    /// Maps the segments.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub(crate) fn map(&self) -> Result<Vec<Content>> {
        let map = |file: &Named| {
            Content::open(&file.path).map_err(|source| Error::Io {
                path: file.path.clone(),
                source,
            })
        };
        self.files.iter().map(map).collect()
    }

    fn name(&self, file: &Named) -> String {
        format!("{}.p{}", self.base, file.number)
    }

    /// Returns the warning that the segments are not read, with the reason.
    pub(crate) fn unread_warning(&self, why: &str) -> Warning {
        Warning::new(&Flaw::UnreadSegments {
            count: self.count(),
            names: self.names(),
            reason: why.to_owned(),
        })
    }

    /// Returns the warning about damage in the gzip data of a segment.
    pub(crate) fn damage(&self, at: usize, damage: &Warning) -> Warning {
        let number = self.files.get(at).map_or(0, |file| file.number);
        Warning {
            offset: None,
            message: format!("{}.p{number}, {damage}", self.base),
            partial: true,
        }
    }

    /// Joins the base (the dump's main file) and the segments. All of them are already decompressed. `damage` lists the
    /// damage that decompressing them found.
    pub(crate) fn join<'a>(
        &self,
        base: &'a [u8],
        point: MergePoint,
        segments: &[&'a [u8]],
        damage: &[Warning],
    ) -> Joined<'a> {
        let mut joined = Joined {
            parts: vec![Part::Bytes(&base[..point.at])],
            bytes: point.at,
            warnings: vec![Warning::new(&Flaw::ReadSegments {
                base: self.base.clone(),
                count: self.count(),
                names: self.names(),
            })],
        };
        let missing = self.missing(point.has_heap);
        if !missing.is_empty() {
            let names = self.names_of(missing.into_iter());
            joined
                .warnings
                .push(Warning::new(&Flaw::NoSegments { names }));
        }
        for (file, &segment) in self.files.iter().zip(segments) {
            joined.add(&self.name(file), segment);
        }
        let began = point.merged > 0 || self.files.first().is_some_and(|file| file.number > 0);
        let is_finished = began || !point.at.is_multiple_of(FLUSHED);
        let mut warnings = damage.iter().chain(&joined.warnings);
        if is_finished && !warnings.any(|w| w.partial) {
            joined.push(Part::Head(END));
        }
        joined
    }

    /// Returns the numbers of missing segments, in ascending order. The JVM appends the segments to the base (the
    /// dump's main file) in order and deletes each one afterwards. So if the base has heap records, the segments before
    /// the first remaining one may have been merged, and they do not count as missing.
    fn missing(&self, has_heap: bool) -> Vec<u32> {
        let numbers: Vec<u32> = self.files.iter().map(|file| file.number).collect();
        let first = match (numbers.first(), has_heap) {
            (Some(&first), true) => first,
            _ => 0,
        };
        let last = numbers.last().copied().unwrap_or_default();
        let is_missing = |n: &u32| numbers.binary_search(n).is_err();
        (first..last).filter(is_missing).take(MOST).collect()
    }
}

/// The content of a segment: a mapped file, or nothing, because an empty file cannot be mapped.
#[derive(Debug)]
pub(crate) struct Content(Option<MappedFile>);

impl Content {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        match file.metadata()?.len() {
            0 => Ok(Self(None)),
            _ => MappedFile::new(file, path).map(Some).map(Self),
        }
    }

    /// Returns an error if the file has changed since it was mapped.
    pub(crate) fn check(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), MappedFile::check)
    }
}

impl std::ops::Deref for Content {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// The merge point: an offset in the dump's main file (the base). All bytes after this offset are copies from segments
/// that still exist. The JVM died before it had appended and deleted all these segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergePoint {
    pub(crate) at: usize,
    /// Number of bytes in the dump's main file after the merge point. The JVM copied these bytes from segments.
    pub(crate) merged: usize,
    /// True if the dump's main file has heap records before the merge point.
    pub(crate) has_heap: bool,
}

/// The reason why the base (the dump's main file) has no merge point. See [`MergePoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPoint {
    /// No record boundary can be the merge point.
    None,
    /// More than one record boundary can be the merge point.
    Several,
}

impl NoPoint {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::None => {
                "heapdiff did not find where in the dump file the content of the first segment begins"
            }
            Self::Several => {
                "the content of the first segment may begin at several places in the dump file"
            }
        }
    }
}

/// A search for the merge point (see [`MergePoint`]).
struct Search<'a> {
    base: &'a [u8],
    segments: &'a [&'a [u8]],
    /// Number of bytes of the dump's main file that may still be compared with segments.
    budget: usize,
    found: Option<MergePoint>,
}

impl<'a> Search<'a> {
    const fn new(base: &'a [u8], segments: &'a [&'a [u8]]) -> Self {
        Self {
            base,
            segments,
            budget: base.len().saturating_mul(2).saturating_add(1 << 20),
            found: None,
        }
    }

    /// Tests whether a record boundary in the base (the dump's main file) is the merge point (see [`MergePoint`]). The
    /// boundary must be before the end of the base.
    fn test_boundary(&mut self, at: usize, has_heap: bool) -> Result<(), NoPoint> {
        let merged = self.base.len() - at;
        if self.found.is_some() && merged < COMMON || !self.matches_segments(at)? {
            return Ok(());
        }
        let point = MergePoint {
            at,
            merged,
            has_heap,
        };
        match self.found.replace(point) {
            Some(_) => Err(NoPoint::Several),
            None => Ok(()),
        }
    }

    /// True if the bytes of the base (the dump's main file) from the offset `at` on are equal to the first bytes of the
    /// segments.
    fn matches_segments(&mut self, at: usize) -> Result<bool, NoPoint> {
        let mut rest = &self.base[at..];
        for segment in self.segments {
            let mut segment = *segment;
            let mut step = SHORT;
            while !rest.is_empty() && !segment.is_empty() {
                let len = step.min(rest.len()).min(segment.len());
                if step > SHORT {
                    // Only a file that was made to cause long comparisons exceeds this limit.
                    self.budget = self.budget.checked_sub(len).ok_or(NoPoint::Several)?;
                }
                if rest[..len] != segment[..len] {
                    return Ok(false);
                }
                (rest, segment) = (&rest[len..], &segment[len..]);
                step = (step * 4).min(1 << 20);
            }
        }
        Ok(rest.is_empty())
    }

    /// Returns the merge point (see [`MergePoint`]). If the search found a boundary, this boundary is the merge point,
    /// because the bytes after it are also in the segments. Otherwise, the merge point is the end of the base (the
    /// dump's main file), if that is a record boundary.
    fn end(self, ends_at_boundary: bool, has_heap: bool) -> Result<MergePoint, NoPoint> {
        let end = MergePoint {
            at: self.base.len(),
            merged: 0,
            has_heap,
        };
        self.found
            .or(ends_at_boundary.then_some(end))
            .ok_or(NoPoint::None)
    }
}

/// Returns the merge point of an uncompressed dump (see [`MergePoint`]).
pub(crate) fn merge_point(base: &[u8], segments: &[&[u8]]) -> Result<MergePoint, NoPoint> {
    let header = record::header(base).map_err(|_| NoPoint::None)?;
    let mut search = Search::new(base, segments);
    let (mut at, mut has_heap) = (header.end, false);
    while at < base.len() {
        search.test_boundary(at, has_heap)?;
        let Some((tag, length)) = head(base, at) else {
            break;
        };
        let end = (at + RECORD_HEAD) as u64 + length;
        has_heap |= is_heap(tag);
        at = usize::try_from(end).unwrap_or(usize::MAX);
    }
    search.end(at == base.len(), has_heap)
}

/// Returns the merge point of a gzip file (see [`MergePoint`]) as an offset in the compressed bytes. The merge point is
/// an offset where a gzip member may begin, or the end of the file if the file is not truncated.
pub(crate) fn packed_merge_point(
    base: &[u8],
    segments: &[&[u8]],
    is_cut: bool,
) -> Result<MergePoint, NoPoint> {
    let mut search = Search::new(base, segments);
    for at in memmem::find_iter(base, &gzip::MAGIC).skip(1) {
        search.test_boundary(at, true)?;
    }
    // The file may be truncated inside the magic bytes of a gzip member.
    for len in (1..gzip::MAGIC.len()).rev().filter(|_| is_cut) {
        if base.ends_with(&gzip::MAGIC[..len]) {
            search.test_boundary(base.len() - len, true)?;
        }
    }
    search.end(!is_cut, true)
}

const fn is_heap(tag: u8) -> bool {
    matches!(tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT)
}

/// A range of the bytes of a dump that was joined from several files.
#[derive(Debug)]
enum Part<'a> {
    Bytes(&'a [u8]),
    /// A generated record header, which is in no file.
    Head([u8; RECORD_HEAD]),
}

/// The dump's main file and its segments, joined to one dump.
#[derive(Debug)]
pub(crate) struct Joined<'a> {
    parts: Vec<Part<'a>>,
    bytes: usize,
    pub(crate) warnings: Vec<Warning>,
}

impl<'a> Joined<'a> {
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| match part {
            Part::Bytes(bytes) => *bytes,
            Part::Head(head) => head,
        })
    }

    fn push(&mut self, part: Part<'a>) {
        self.bytes += match &part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Head(head) => head.len(),
        };
        self.parts.push(part);
    }

    /// Adds a segment to the joined dump. If the last record of the segment is truncated, the record gets a new header
    /// with the length that it really has. This makes the next segment readable.
    fn add(&mut self, name: &str, segment: &'a [u8]) {
        let mut at = 0;
        while let Some((tag::HEAP_DUMP_SEGMENT, length)) = head(segment, at) {
            let start = at + RECORD_HEAD;
            let left = segment.len() - start;
            if length > left as u64 {
                return self.add_cut(name, segment, (at, length));
            }
            at = start + length as usize;
        }
        self.push(Part::Bytes(&segment[..at]));
        if at == segment.len() {
            return;
        }
        let left = segment.len() - at;
        let name = name.to_owned();
        self.damage(&if left < RECORD_HEAD {
            Flaw::CutSegmentHeader {
                name,
                left,
                needs: RECORD_HEAD,
            }
        } else {
            Flaw::NoSegmentRecord { name, at, left }
        });
    }

    fn add_cut(&mut self, name: &str, segment: &'a [u8], (at, length): (usize, u64)) {
        let start = at + RECORD_HEAD;
        let left = segment.len() - start;
        self.push(Part::Bytes(&segment[..at]));
        self.damage(&Flaw::CutSegment {
            name: name.to_owned(),
            left,
            needs: length,
        });
        if left > 0 {
            let mut head = [0; RECORD_HEAD];
            head.copy_from_slice(&segment[at..start]);
            // The remaining bytes are at most as many as the length in the record's header, so their number fits in 32
            // bits.
            head[5..].copy_from_slice(&(left as u32).to_be_bytes());
            self.push(Part::Head(head));
            self.push(Part::Bytes(&segment[start..]));
        }
    }

    fn damage(&mut self, flaw: &Flaw) {
        self.warnings.push(Warning::at(self.bytes as u64, flaw));
    }
}

/// Creates segments in memory, with numbers from 0, for fuzzing.
#[cfg(feature = "fuzzing")]
impl Beside {
    pub(crate) fn in_memory(count: usize) -> Self {
        let files = (0..).take(count).map(|number| Named {
            number,
            path: PathBuf::new(),
            is_file: true,
        });
        Self {
            base: "x.hprof".to_owned(),
            files: files.collect(),
            too_many: false,
        }
    }
}
