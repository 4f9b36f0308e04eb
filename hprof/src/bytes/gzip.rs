//! Decompression of gzip files, and of the independent blocks that HotSpot's `-gz` writes.
//!
//! HotSpot compresses each block as a separate gzip member. It writes the size of a block to the comment of the first
//! member: `HPROF BLOCKSIZE=n`. The file does not record where members end. So decompression starts, in parallel, at
//! every offset where the bytes look like the header of a member. A result is used only if the previous member ends at
//! this offset. Compressed data may contain bytes that look like a header. The result from such an offset is not used,
//! because no member ends there:
//!
//! ```text
//! file         | member 1        | member 2  x     | member 3        |      x looks like a header
//! candidates   ^                 ^           ^     ^
//! used         yes               yes         no    yes
//! ```

use std::io::{self, BufRead, BufReader, Cursor, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use memchr::memmem;
use rayon::prelude::*;

use crate::error::Warning;
use crate::flaw::Flaw;

pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Maximum number of gzip members that are decompressed at once. Their decompressed sizes add up to at most
/// [`BATCH_BYTES`], unless one block alone is larger.
const BATCH: usize = 16;
const BATCH_BYTES: usize = 32 << 20;
/// Limit for wasted decompression: bytes that were decompressed at offsets whose bytes only look like a header. The
/// limit is this number plus a quarter of the useful bytes. If the limit is exceeded, the part of the file that is not
/// yet decompressed is decompressed as one stream.
const WASTE: usize = 64 << 20;
/// Maximum block size. HotSpot writes the block size to the comment of the gzip header. If the comment contains a
/// larger size, the file is decompressed as one stream.
const MAX_BLOCK: usize = 64 << 20;

pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Maximum number of gzip layers that are removed from a dump. There can be two layers, because a dump that `-gz`
/// compressed may be compressed again when it is uploaded.
pub(crate) const MOST_LAYERS: usize = 2;

/// Returns a reader of the bytes inside of all gzip layers, and the number of layers. At most [`MOST_LAYERS`] plus one
/// layers are counted.
///
/// # Errors
/// Returns the errors of reading `input`, and of damage in the first bytes of a layer.
pub(crate) fn unpacked<'a>(input: impl BufRead + 'a) -> io::Result<(Box<dyn BufRead + 'a>, usize)> {
    let mut reader: Box<dyn BufRead> = Box::new(input);
    let mut layers = 0;
    loop {
        let mut first = Vec::new();
        (&mut reader)
            .take(MAGIC.len() as u64)
            .read_to_end(&mut first)?;
        let is_packed = is_gzip(&first);
        reader = Box::new(Cursor::new(first).chain(reader));
        if !is_packed || layers > MOST_LAYERS {
            return Ok((reader, layers));
        }
        reader = Box::new(BufReader::new(GzDecoder::new(reader)));
        layers += 1;
    }
}

/// Decompresses `input` into `out`. If the input is damaged, keeps the bytes before the damage and returns a warning.
///
/// # Errors
/// Returns only the errors of writing to `out`.
pub(crate) fn decompress(input: &[u8], out: &mut impl Write) -> std::io::Result<Option<Warning>> {
    let mut out = Tail {
        out,
        last: [0; END_RECORD],
    };
    match block_size(input) {
        Some(block) => decompress_blocks(input, block, &mut out),
        None => decompress_from(input, 0, &mut out),
    }
}

/// Size of the record that ends a dump, in bytes: tag, time, and length (0).
const END_RECORD: usize = 9;

/// A writer that forwards all bytes to another writer and stores the last ones.
struct Tail<'a, W> {
    out: &'a mut W,
    last: [u8; END_RECORD],
}

impl<W> Tail<'_, W> {
    /// True if the bytes end like a complete dump of JDK 6 or later.
    const fn ends_like_dump(&self) -> bool {
        matches!(self.last, [0x2c, _, _, _, _, 0, 0, 0, 0])
    }
}

impl<W: Write> Write for Tail<'_, W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buf)?;
        let last = &buf[written.saturating_sub(END_RECORD)..written];
        self.last.rotate_left(last.len());
        self.last[END_RECORD - last.len()..].copy_from_slice(last);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the block size in the comment of the first gzip member.
fn block_size(input: &[u8]) -> Option<usize> {
    let decoder = GzDecoder::new(input);
    let comment = std::str::from_utf8(decoder.header()?.comment()?).ok()?;
    let size: usize = comment
        .split("HPROF BLOCKSIZE=")
        .nth(1)?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    (1..=MAX_BLOCK).contains(&size).then_some(size)
}

struct Member {
    bytes: Vec<u8>,
    end: usize,
}

fn member(input: &[u8], at: usize, block: usize) -> Option<Member> {
    let mut decoder = GzDecoder::new(&input[at..]);
    let mut bytes =
        Vec::with_capacity(block.min((input.len() - at).saturating_mul(4)).min(4 << 20));
    // HotSpot writes each block of the dump as one gzip member. So if a member has more bytes than `block`, HotSpot did
    // not write it.
    (&mut decoder)
        .take(block as u64 + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() <= block).then(|| Member {
        bytes,
        end: input.len() - decoder.into_inner().len(),
    })
}

fn decompress_blocks(
    input: &[u8],
    block: usize,
    out: &mut Tail<'_, impl Write>,
) -> std::io::Result<Option<Warning>> {
    let batch_size = (BATCH_BYTES / block).clamp(1, BATCH);
    let (mut made, mut waste) = (0, 0);
    let finder = memmem::Finder::new(&MAGIC);
    let mut next = 0;
    let mut candidates = finder.find_iter(input).peekable();
    loop {
        let mut batch = Vec::with_capacity(batch_size);
        while batch.len() < batch_size {
            match candidates.next() {
                // If one of the three reserved flag bits (0xe0) is set, the bytes at this offset are not a gzip header.
                Some(at) if at >= next && input.get(at + 3).is_some_and(|f| f & 0xe0 == 0) => {
                    batch.push(at)
                }
                Some(_) => {}
                None => break,
            }
        }
        if batch.is_empty() || waste > WASTE + made / 4 {
            break;
        }
        let members: Vec<Option<Member>> = batch
            .par_iter()
            .map(|&at| member(input, at, block))
            .collect();
        for (at, member) in batch.into_iter().zip(members) {
            match member {
                Some(member) if at == next => {
                    out.write_all(&member.bytes)?;
                    next = member.end;
                    made += member.bytes.len();
                }
                Some(member) => waste += member.bytes.len(),
                // The number of bytes that were decompressed before the damage is not known, but is at most a block.
                None => waste += block.min(input.len() - at),
            }
        }
        if candidates.peek().is_some_and(|&at| at > next) {
            break;
        }
    }
    if next == input.len() {
        Ok(None)
    } else {
        decompress_from(input, next, out)
    }
}

/// Decompresses one gzip member after the other, from byte `at` on.
fn decompress_from(
    input: &[u8],
    mut at: usize,
    out: &mut Tail<'_, impl Write>,
) -> std::io::Result<Option<Warning>> {
    // After the last gzip member, there may be bytes that do not begin a member. After a single member, these bytes are
    // other data. After several members, they can be a member with a damaged header.
    let (start, mut members) = (at, 0);
    let mut buffer = vec![0; 256 << 10];
    while at < input.len() {
        let rest = &input[at..];
        // Zeros after the last gzip member are allowed, as in gzip itself.
        if at > 0 && rest.iter().all(|&b| b == 0) {
            break;
        }
        let is_single = start == 0 && members == 1;
        if (is_single || out.ends_like_dump()) && !may_start_member(rest) {
            let bytes = rest.len();
            return Ok(Some(Warning::new(&Flaw::AfterGzip { bytes, at })));
        }
        let mut decoder = GzDecoder::new(&input[at..]);
        loop {
            match decoder.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => out.write_all(&buffer[..n])?,
                Err(e) => {
                    let reason = e.to_string();
                    let flaw = Flaw::DamagedGzip { reason };
                    return Ok(Some(Warning::at(at as u64, &flaw)));
                }
            }
        }
        let end = input.len() - decoder.into_inner().len();
        if end == at {
            break;
        }
        members += 1;
        at = end;
    }
    Ok(None)
}

/// True if a gzip member may begin in `bytes`: the magic bytes of a member are in `bytes`, or `bytes` is a prefix of
/// the magic bytes.
fn may_start_member(bytes: &[u8]) -> bool {
    MAGIC.starts_with(bytes) || memmem::find(bytes, &MAGIC).is_some()
}

/// Size of the blocks that [`GzipBlocks`] compresses, in bytes.
const WRITTEN_BLOCK: usize = 1 << 20;

/// A writer that compresses in parallel, into blocks like those of HotSpot's `-gz`.
#[derive(Debug)]
pub struct GzipBlocks<W: Write> {
    out: W,
    waiting: Vec<u8>,
    begun: bool,
}

impl<W: Write> GzipBlocks<W> {
    /// Creates a writer with the output `out`.
    pub const fn new(out: W) -> Self {
        Self {
            out,
            waiting: Vec::new(),
            begun: false,
        }
    }

    /// Writes the data that is still buffered.
    ///
    /// # Errors
    /// Returns the errors of writing to the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.compress(true)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn compress(&mut self, all: bool) -> io::Result<()> {
        let whole = self.waiting.len() / WRITTEN_BLOCK * WRITTEN_BLOCK;
        let take = if all { self.waiting.len() } else { whole };
        let is_first = |at: usize| at == 0 && !self.begun;
        let blocks: io::Result<Vec<Vec<u8>>> = self.waiting[..take]
            .par_chunks(WRITTEN_BLOCK)
            .enumerate()
            .map(|(at, block)| {
                let mut member = GzBuilder::new();
                if is_first(at) {
                    member = member.comment(format!("HPROF BLOCKSIZE={WRITTEN_BLOCK}"));
                }
                let mut member = member.write(Vec::new(), Compression::fast());
                member.write_all(block)?;
                member.finish()
            })
            .collect();
        for block in blocks? {
            self.begun = true;
            self.out.write_all(&block)?;
        }
        self.waiting.drain(..take);
        Ok(())
    }
}

impl<W: Write> Write for GzipBlocks<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let room = BATCH * WRITTEN_BLOCK - self.waiting.len();
        let taken = buf.len().min(room);
        self.waiting.extend_from_slice(&buf[..taken]);
        if taken == room {
            self.compress(false)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
