//! The bytes of a dump: a mapped file, or the decompressed content of a gzip file.

use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::bytes::disk::{Room, TEMPORARY_FOLDER, room};
use crate::bytes::mapped::MappedFile;
use crate::bytes::segments::{self, Beside, MergePoint, NoPoint};
use crate::bytes::stamp::Stamp;
use crate::bytes::{gzip, mem, piped};
use crate::error::{Error, Result, Warning};
use crate::flaw::Flaw;

/// Maximum size of a decompressed dump in memory. A larger one is written to an unlinked temporary file.
const IN_MEMORY: usize = 64 << 20;
/// Number of bytes that are written to the temporary file between two checks of the free space on its disk.
const LOOK: u64 = 64 << 20;
/// The first bytes of every dump.
pub(crate) const MAGIC: &[u8] = b"JAVA PROFILE";
/// Maximum number of bytes after the magic bytes that are kept of a file that is not a dump. The error message shows
/// these bytes.
const SHOWN: usize = 128;

/// The bytes of one dump.
#[derive(Debug)]
pub struct Source {
    bytes: Bytes,
    /// The offset in `bytes` at which the dump begins.
    start: usize,
    /// `number` is the index of the dump in its file. Each heap under the same header counts as a dump. `heap` is the
    /// index of the heap among the heaps under the same header.
    number: usize,
    heap: usize,
    path: PathBuf,
    file_bytes: u64,
    warnings: Vec<Warning>,
    /// True if the bytes are a copy, because the file is compressed or has segments.
    unpacked: bool,
    /// True if the bytes are joined from a dump and the segments beside it, or from the parts of a transfer through a
    /// pipe.
    is_joined: bool,
    /// The stamp (size, modification time and hash) of the file on the disk, compressed or not, combined with the
    /// stamps of its segments.
    stamp: Option<Stamp>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(MappedFile),
    Memory(Vec<u8>),
}

/// The path of standard input. Windows has no such file, but heapdiff accepts the path there too.
pub const STDIN: &str = "/dev/stdin";

fn open_input(path: &Path) -> std::io::Result<File> {
    #[cfg(windows)]
    if path.as_os_str() == STDIN {
        use std::os::windows::io::AsHandle;
        let input = std::io::stdin().as_handle().try_clone_to_owned()?;
        return Ok(input.into());
    }
    File::open(path)
}

/// Returns the metadata of a regular file; `None` for a pipe. Windows has no metadata of pipes.
fn file_metadata(file: &File) -> std::io::Result<Option<Metadata>> {
    match file.metadata() {
        Ok(meta) => Ok(meta.is_file().then_some(meta)),
        Err(_) if cfg!(windows) => Ok(None),
        Err(e) => Err(e),
    }
}

impl Source {
    /// Opens a dump. A gzip file is decompressed first: in memory if the content has at most 64 MiB, otherwise to a
    /// temporary file. The temporary file has no name and disappears when the process ends. Blocks are decompressed in
    /// parallel if `jcmd GC.heap_dump -gz` wrote them.
    ///
    /// A small file may decompress to a thousand times its size, for example a dump of large empty arrays. So if the
    /// first bytes are not those of a dump, the other bytes are neither decompressed nor read from a pipe. The disk of
    /// the temporary file keeps 1 GiB free, or a 20th of its size if that is less.
    ///
    /// If the dump has no end record, a JVM of JDK 22 or later may have left segments beside it (`x.hprof.p0`, ...).
    /// Then the dump and its segments are read as one dump. They are copied first: to memory if they have at most 64
    /// MiB in total, otherwise to a temporary file. The path of a segment opens the whole dump.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or read, or if there is no space for the temporary file.
    pub fn open(path: &Path) -> Result<Self> {
        let path = &*segments::dump_of(path);
        let fail = |source| Error::Io {
            path: path.to_path_buf(),
            source,
        };
        if path.is_dir() {
            return Err(fail(std::io::Error::other(
                "is a directory, not a heap dump",
            )));
        }
        let file = open_input(path).map_err(fail)?;
        let meta = file_metadata(&file).map_err(fail)?;
        let mapped = if let Some(meta) = &meta {
            if meta.len() == 0 {
                return Err(Error::NotADump(empty(&Beside::find(path))));
            }
            Bytes::Mapped(MappedFile::new(file, path).map_err(fail)?)
        } else {
            // A pipe (`<(zcat x)`) has no length and cannot be mapped.
            let mut sink = Sink::new(path, |first| is_dump(first) || gzip::is_gzip(first));
            let copied = std::io::copy(&mut &file, &mut sink);
            sink.finish(copied)?.0
        };
        let (beside, stamp) = match (&mapped, &meta) {
            (Bytes::Mapped(map), Some(meta)) => {
                let beside = Beside::find_if_unfinished(path, map);
                let stamp = Stamp::new(meta, map).map(|stamp| beside.stamp(stamp));
                (beside, stamp)
            }
            _ => Default::default(),
        };
        let mut source = Self::from_packed_bytes(mapped, path.to_path_buf())?;
        source.stamp = stamp;
        if !beside.is_empty() && !segments::has_end(&source) {
            source.add_segments(&beside)?;
        }
        Ok(source)
    }

    /// Reads the segments beside the dump, or adds a warning that they are not read.
    fn add_segments(&mut self, beside: &Beside) -> Result<()> {
        if let Some(why) = beside.refusal() {
            self.warnings.push(beside.unread_warning(&why));
            return Ok(());
        }
        let files = beside.map()?;
        let fail = |source| Error::Io {
            path: self.path.clone(),
            source,
        };
        let packed = if self.unpacked {
            let file = File::open(&self.path).map_err(fail)?;
            Some(MappedFile::new(file, &self.path).map_err(fail)?)
        } else {
            None
        };
        self.check()?;
        let contents: Vec<&[u8]> = files.iter().map(|file| &**file).collect();
        self.join(beside, packed.as_deref(), &contents)?;
        // The copy is garbled if one of the files has changed since it was opened, so check that no file has changed.
        packed.map_or(Ok(()), |packed| packed.check())?;
        files.iter().try_for_each(segments::Content::check)
    }

    /// Joins the dump and its segments. If the dump is compressed, `packed` has its compressed bytes, and the segments
    /// are compressed, too.
    fn join(&mut self, beside: &Beside, packed: Option<&[u8]>, files: &[&[u8]]) -> Result<()> {
        let all = |point: MergePoint| point.at + files.iter().map(|file| file.len()).sum::<usize>();
        let Some(packed) = packed else {
            return match segments::merge_point(self, files) {
                Ok(point) => self.join_at(point, all(point), beside, None, files),
                Err(none) => self.ignore_segments(beside, none),
            };
        };
        let is_cut = self.damage().is_some();
        let point = match segments::packed_merge_point(packed, files, is_cut) {
            Ok(point) => point,
            Err(none) => return self.ignore_segments(beside, none),
        };
        let mut sink = Sink::new(&self.path, |_| true);
        let (mut ends, mut damaged) = (Vec::new(), Vec::new());
        for file in std::iter::once(&packed[..point.at]).chain(files.iter().copied()) {
            match gzip::decompress(file, &mut sink) {
                Ok(damage) => damaged.push(damage.filter(|damage| damage.partial)),
                Err(e) => return sink.finish(Err::<(), _>(e)).map(drop),
            }
            ends.push(sink.len());
        }
        if sink.len() == 0 {
            return self.ignore_segments(beside, NoPoint::None);
        }
        let (bytes, _) = sink.finish(Ok(()))?;
        let base = &bytes[..ends[0]];
        // `base` was decompressed only up to the merge point (the offset at which the JVM began to append segments). So
        // the merge point is the end of `base`.
        let (Ok(end), None) = (segments::merge_point(base, &[]), &damaged[0]) else {
            return self.ignore_segments(beside, NoPoint::None);
        };
        let contents: Vec<&[u8]> = ends.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
        let damaged = damaged[1..].iter().enumerate();
        let damaged = damaged.filter_map(|(at, damage)| Some(beside.damage(at, damage.as_ref()?)));
        self.warnings = damaged.collect();
        let file_bytes = all(point);
        let point = MergePoint {
            merged: point.merged,
            ..end
        };
        self.join_at(point, file_bytes, beside, Some(base), &contents)
    }

    /// Replaces the bytes of this source by the joined bytes of the dump and its segments. On disk, the files have
    /// `file_bytes` bytes together. `base` has the dump's main file, at least up to the merge point.
    fn join_at(
        &mut self,
        point: MergePoint,
        file_bytes: usize,
        beside: &Beside,
        base: Option<&[u8]>,
        contents: &[&[u8]],
    ) -> Result<()> {
        let joined = beside.join(base.unwrap_or(self), point, contents, &self.warnings);
        let mut sink = Sink::new(&self.path, |_| true);
        let written = joined.parts().try_for_each(|part| sink.write_all(part));
        let (bytes, _) = sink.finish(written)?;
        let warnings = joined.warnings;
        if base.is_none() {
            self.check()?;
        }
        self.file_bytes = file_bytes as u64;
        self.bytes = bytes;
        (self.unpacked, self.is_joined) = (true, true);
        self.warnings.extend(warnings);
        Ok(())
    }

    fn ignore_segments(&mut self, beside: &Beside, why: NoPoint) -> Result<()> {
        self.warnings.push(beside.unread_warning(why.reason()));
        Ok(())
    }

    /// Creates a source from a dump and its segments in memory, for fuzzing. The dump and each segment may be
    /// compressed.
    ///
    /// # Errors
    /// See [`Source::open`].
    #[cfg(feature = "fuzzing")]
    pub(crate) fn with_segments(base: Vec<u8>, files: &[&[u8]]) -> Result<Self> {
        let packed = base.clone();
        let mut source = Self::from_packed_bytes(Bytes::Memory(base), PathBuf::from("(memory)"))?;
        let packed = source.unpacked.then_some(&*packed);
        if !files.is_empty() && !segments::has_end(&source) {
            source.join(&Beside::in_memory(files.len()), packed, files)?;
        }
        Ok(source)
    }

    /// Creates a source from a dump in memory, for tests and fuzzing.
    ///
    /// If the bytes decompress to nothing, the source is empty and has a warning.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let path = PathBuf::from("(memory)");
        match Self::from_packed_bytes(Bytes::Memory(bytes), path.clone()) {
            Ok(source) => source,
            Err(e) => Self {
                bytes: Bytes::Memory(Vec::new()),
                start: 0,
                number: 0,
                heap: 0,
                path,
                file_bytes: 0,
                warnings: vec![Warning {
                    offset: Some(0),
                    message: e.to_string(),
                    partial: true,
                }],
                unpacked: false,
                is_joined: false,
                stamp: None,
            },
        }
    }

    /// Creates a source from the bytes of a file. Decompresses gzip content.
    fn from_packed_bytes(bytes: Bytes, path: PathBuf) -> Result<Self> {
        let mut source = Self {
            file_bytes: bytes.len() as u64,
            bytes,
            start: 0,
            number: 0,
            heap: 0,
            path,
            warnings: Vec::new(),
            unpacked: false,
            is_joined: false,
            stamp: None,
        };
        let layers = gzip_layers(&source)?;
        for layer in 1..=layers {
            let inside: fn(&[u8]) -> bool = if layer == layers {
                is_dump
            } else {
                gzip::is_gzip
            };
            let mut sink = Sink::new(&source.path, inside);
            let decompressed = gzip::decompress(&source, &mut sink);
            let (bytes, warning) = sink.finish(decompressed)?;
            source.check()?;
            source.bytes = bytes;
            source.unpacked = true;
            source.warnings.extend(warning.flatten());
        }
        if layers > 1 {
            source.warnings.push(Warning::new(&Flaw::CompressedTwice));
        }
        if source.starts_with(piped::MARK) {
            source.put_together()?;
        }
        Ok(source)
    }

    /// Replaces the bytes that were received through a pipe by the dump that they contain.
    fn put_together(&mut self) -> Result<()> {
        let (pieces, is_complete) = piped::pieces(&self[piped::MARK.len()..]);
        let mut sink = Sink::new(&self.path, |first| first == MAGIC);
        let written = pieces.iter().try_for_each(|piece| sink.write_all(piece));
        let (bytes, _) = sink.finish(written)?;
        self.check()?;
        self.bytes = bytes;
        (self.unpacked, self.is_joined) = (true, true);
        if !is_complete {
            self.warnings.push(Warning::new(&Flaw::IncompleteTransfer));
        }
        Ok(())
    }

    /// Moves on to the next dump in the file, which starts `bytes` bytes after the start of this dump.
    pub(crate) fn advance_to_next_dump(&mut self, bytes: usize) {
        self.start += bytes;
        self.heap = 0;
        self.number += 1;
        // Indexes and summaries beside a file belong to its first dump.
        self.stamp = None;
    }

    /// Moves on to the next heap of the file, which is under the same header as the current heap.
    pub(crate) const fn advance_under_header(&mut self) {
        self.heap += 1;
        self.number += 1;
        self.stamp = None;
    }

    pub(crate) const fn heap(&self) -> usize {
        self.heap
    }

    /// Returns the index of the dump in its file.
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Checks that the size and the modification time of the file have not changed since it was opened.
    ///
    /// # Errors
    /// Returns an error if the file has changed. Data that was read from it may be garbled.
    pub fn check(&self) -> Result<()> {
        match &self.bytes {
            Bytes::Mapped(map) => map.check(),
            Bytes::Memory(_) => Ok(()),
        }
    }

    /// Returns the path from which the dump was read.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file on disk, together with its segments. If it is compressed, this is the compressed
    /// size.
    #[must_use]
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the stamp of the file if its bytes are mapped as they are. A stamp shows whether a file has changed.
    /// Returns `None` for compressed dumps, dumps with segments, pipes, and bytes in memory.
    pub(crate) fn stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref().filter(|_| !self.unpacked)
    }

    /// Returns the stamp of the file, compressed or not. A stamp shows whether a file has changed. Returns `None` for
    /// pipes, bytes in memory, and dumps after the first in a file.
    pub(crate) const fn file_stamp(&self) -> Option<&Stamp> {
        self.stamp.as_ref()
    }

    /// Returns true if the bytes are joined from a dump and the segments beside it, or from the parts of a transfer
    /// through a pipe.
    pub(crate) const fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Returns the first damage that was found when the file was opened.
    pub(crate) fn damage(&self) -> Option<String> {
        let damage = self.warnings.iter().find(|warning| warning.partial);
        damage.map(Warning::to_string)
    }

    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Maps the pages of a range of the file before a sequential pass over the range.
    pub(crate) fn advise_sequential(&self, offset: usize, len: usize) {
        if let Bytes::Mapped(map) = &self.bytes {
            mem::populate(map.map(), self.start + offset, len);
        }
    }
}

/// True if these are the first bytes of a dump, or of a dump that was sent through a pipe.
fn is_dump(first: &[u8]) -> bool {
    first == MAGIC || first == piped::MARK
}

/// Returns the number of gzip layers around a dump.
///
/// # Errors
/// Returns an error if there are more than [`gzip::MOST_LAYERS`] layers. Also returns an error if there are several
/// layers and the innermost content is not a dump. Only the first bytes of each layer are decompressed to find out.
fn gzip_layers(bytes: &[u8]) -> Result<usize> {
    if !gzip::is_gzip(bytes) {
        return Ok(0);
    }
    // If the first bytes inside the gzip layer are damaged, this is reported when the file is decompressed.
    let Ok((mut inside, layers)) = gzip::unpacked(bytes) else {
        return Ok(1);
    };
    if layers > gzip::MOST_LAYERS {
        return Err(Error::NotADump(format!(
            "it is compressed with gzip more than {} times; run `gunzip` first",
            gzip::MOST_LAYERS
        )));
    }
    let mut first = [0; MAGIC.len()];
    let is_dump = inside.read_exact(&mut first).is_ok() && is_dump(&first);
    match layers {
        1 => Ok(1),
        _ if is_dump => Ok(layers),
        _ => Err(Error::NotADump(
            "it is gzip data inside gzip data, and contains no heap dump".into(),
        )),
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(m) => m,
            Self::Memory(v) => v,
        }
    }
}

impl std::ops::Deref for Source {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Returns a message about an empty dump.
fn empty(beside: &Beside) -> String {
    if beside.is_empty() {
        return "the file is empty".into();
    }
    format!(
        "the file is empty: the JVM ended before it wrote names and classes, which are needed to read the segments ({})",
        beside.names()
    )
}

/// A writer that collects the bytes of a copy: up to [`IN_MEMORY`] bytes in memory, more in an unlinked file.
struct Sink {
    memory: Vec<u8>,
    file: Option<File>,
    path: PathBuf,
    /// Returns true if its argument begins like the expected content, for example of a dump.
    expected: fn(&[u8]) -> bool,
    /// True if the content is not the expected content. Then no more bytes are collected.
    foreign: bool,
    written: u64,
    looked: u64,
    room: fn(&File) -> Option<Room>,
}

impl Sink {
    fn new(path: &Path, expected: fn(&[u8]) -> bool) -> Self {
        Self {
            memory: Vec::new(),
            file: None,
            path: path.to_path_buf(),
            expected,
            foreign: false,
            written: 0,
            looked: 0,
            room,
        }
    }

    /// Returns the number of collected bytes.
    const fn len(&self) -> usize {
        if self.file.is_some() {
            self.written as usize
        } else {
            self.memory.len()
        }
    }

    fn spill(&mut self) -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&self.memory)?;
        self.written = self.memory.len() as u64;
        self.memory = Vec::new();
        self.file = Some(file);
        Ok(())
    }

    /// Returns an error if the disk would have less free space than its reserve after writing `more` bytes.
    fn check_reserve(&mut self, more: u64) -> std::io::Result<()> {
        let Some(room) = self.file.as_ref().and_then(self.room) else {
            return Ok(());
        };
        let (free, reserve) = (room.free, room.reserve());
        if free < reserve.saturating_add(more) {
            return Err(std::io::Error::new(
                std::io::ErrorKind::StorageFull,
                format!(
                    "not enough space in {} for a temporary copy of the dump: {} bytes were written, {free} are left, but heapdiff keeps {reserve} free; set {TEMPORARY_FOLDER} to a folder on a larger disk",
                    std::env::temp_dir().display(),
                    self.written
                ),
            ));
        }
        self.looked = self.written;
        Ok(())
    }

    /// Returns the collected bytes and the result of collecting. The result is `None` if collecting stopped because the
    /// bytes start with unexpected content. The check of the header then reports this content.
    fn finish<T>(self, ended: std::io::Result<T>) -> Result<(Bytes, Option<T>)> {
        let fail = |source| Error::Io {
            path: self.path.clone(),
            source,
        };
        let ended = match ended {
            Err(_) if self.foreign => None,
            ended => Some(ended.map_err(fail)?),
        };
        let bytes = match self.file {
            None if self.memory.is_empty() => {
                return Err(Error::NotADump("the file is empty".into()));
            }
            None => Bytes::Memory(self.memory),
            Some(file) => Bytes::Mapped(MappedFile::map_temporary(file, &self.path).map_err(fail)?),
        };
        Ok((bytes, ended))
    }
}

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        if self.file.is_none() && self.memory.len() < MAGIC.len() {
            // Take only the magic bytes first. If they show that the content is not a dump, collect at most `SHOWN`
            // more bytes.
            let part = &buf[..buf.len().min(MAGIC.len() - self.memory.len())];
            self.memory.extend_from_slice(part);
            if self.memory.len() == MAGIC.len() && !(self.expected)(&self.memory) {
                self.foreign = true;
            }
            return Ok(part.len());
        }
        if self.foreign {
            // Keep up to `SHOWN` bytes so that the error about the header can show them.
            self.memory.extend_from_slice(&buf[..buf.len().min(SHOWN)]);
            return Err(std::io::Error::other("not a heap dump"));
        }
        if self.file.is_none() && self.memory.len() + buf.len() > IN_MEMORY {
            self.spill()?;
        }
        if self.file.is_none() {
            self.memory.extend_from_slice(buf);
            return Ok(buf.len());
        }
        let more = buf.len() as u64;
        if self.looked == 0 || self.written + more > self.looked + LOOK {
            self.check_reserve(more + LOOK)?;
        }
        if let Some(file) = &mut self.file {
            file.write_all(buf).map_err(|e| {
                std::io::Error::new(
                    e.kind(),
                    format!("cannot write a copy of the dump to a temporary file: {e}"),
                )
            })?;
        }
        self.written += more;
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sink() -> Sink {
        Sink::new(Path::new("x.hprof.gz"), |first| first == MAGIC)
    }

    #[test]
    fn only_the_beginning_of_other_files_is_read() {
        for step in [1, 5, 4096] {
            let mut sink = sink();
            let mut endless = std::io::repeat(b'x');
            let mut buffer = vec![0; step];
            let mut taken = 0;
            let ended = loop {
                endless.read_exact(&mut buffer).unwrap();
                match sink.write_all(&buffer) {
                    Ok(()) => taken += step,
                    Err(e) => break Err::<(), _>(e),
                }
                assert!(taken < 10_000);
            };
            let (bytes, ended) = sink.finish(ended).unwrap();
            assert!(ended.is_none() && bytes.len() <= MAGIC.len() + SHOWN);
        }
    }

    #[test]
    fn a_dump_is_read_in_pieces_of_any_size() {
        let whole = [MAGIC, b" 1.0.2\0", &[7; 5000]].concat();
        for step in [1, 5, 12, 13, 4096] {
            let mut sink = sink();
            for piece in whole.chunks(step) {
                sink.write_all(piece).unwrap();
            }
            let (bytes, ended) = sink.finish(Ok(())).unwrap();
            let Bytes::Memory(bytes) = bytes else {
                panic!("the file is small")
            };
            assert_eq!((bytes, ended), (whole.clone(), Some(())));
        }
    }

    #[test]
    fn the_disk_of_the_temporary_file_is_not_filled() {
        let piece = vec![0; 1 << 20];
        let filled = |room| {
            let mut sink = sink();
            sink.room = room;
            sink.write_all(MAGIC).unwrap();
            let ended = (0..200).try_for_each(|_| sink.write_all(&piece));
            let written = sink.written;
            sink.finish(ended).map(|_| written)
        };
        let written = filled(|_| None).unwrap();
        assert_eq!(written, (200 << 20) + MAGIC.len() as u64);
        let wide = filled(|_| {
            Some(Room {
                free: 2 << 30,
                total: 1 << 40,
            })
        });
        assert_eq!(wide.unwrap(), written);
        // Two disks without enough space: a large disk with less free space than its reserve, and a disk whose free
        // space shrinks as the file grows.
        let narrow: [fn(&File) -> Option<Room>; 2] = [
            |_| {
                Some(Room {
                    free: 1 << 30,
                    total: 1 << 40,
                })
            },
            |file| {
                let total = 256 << 20;
                let free = total - file.metadata().unwrap().len();
                Some(Room { free, total })
            },
        ];
        for room in narrow {
            let text = filled(room).unwrap_err().to_string();
            assert!(
                text.contains("not enough space") && text.contains(TEMPORARY_FOLDER),
                "{text}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_free_space_of_a_disk_is_read() {
        let Room { free, total } = room(&tempfile::tempfile().unwrap()).unwrap();
        assert!(0 < free && free <= total);
    }
}
