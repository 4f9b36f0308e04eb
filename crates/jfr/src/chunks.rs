//! Reads the chunks of a file, one at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::chunk::{HEADER, Header, MAGIC};
use crate::error::{Damage, Fault, JfrError};

/// Maximum size of a chunk in bytes. There is a limit because a chunk is held in memory. The JVM begins a new chunk
/// after 12 MB or 100 MB. async-profiler writes at most 1 GB.
const MOST_BYTES: u64 = 2 << 30;
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Returns true if a file begins like a recording, gzipped or not.
///
/// # Errors
/// Returns an error if the file cannot be opened or read.
pub fn is_recording(path: &Path) -> io::Result<bool> {
    let mut first = [0; 4];
    let file = File::open(path)?;
    // The first bytes of a pipe are not read here, because they could not be read again later.
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut packed = BufReader::new(file);
    let read = if packed.fill_buf()?.starts_with(GZIP) {
        MultiGzDecoder::new(packed).read_exact(&mut first)
    } else {
        packed.read_exact(&mut first)
    };
    Ok(read.is_ok() && first == MAGIC)
}

/// A recording that is read from start to end.
pub(crate) struct Chunks {
    input: Box<dyn Read>,
    bytes: Vec<u8>,
    /// The offset of the next chunk.
    next: u64,
    ended: bool,
}

impl Chunks {
    /// Opens a recording, gzipped or not, and checks its first bytes.
    pub(crate) fn open(path: &Path) -> Result<Self, JfrError> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::other("is a directory").into());
        }
        Self::new(BufReader::new(file))
    }

    pub(crate) fn new(mut packed: impl BufRead + 'static) -> Result<Self, JfrError> {
        let is_packed = packed.fill_buf()?.starts_with(GZIP);
        let input: Box<dyn Read> = if is_packed {
            Box::new(MultiGzDecoder::new(packed))
        } else {
            Box::new(packed)
        };
        let mut chunks = Self {
            input,
            bytes: Vec::new(),
            next: 0,
            ended: false,
        };
        let failed = chunks.fill(HEADER as u64);
        if !chunks.bytes.starts_with(MAGIC) {
            if let Some(error) = failed {
                return Err(error.into());
            }
            chunks.bytes.truncate(16);
            return Err(JfrError::NotARecording(chunks.bytes));
        }
        Ok(chunks)
    }

    /// Reads from the file until the buffer has `length` bytes. If reading or decompressing fails, returns the error
    /// and keeps the bytes read so far.
    fn fill(&mut self, length: u64) -> Option<io::Error> {
        let missing = length.saturating_sub(self.bytes.len() as u64);
        // The buffer grows only as bytes are read. The size in the header may be wrong, so no memory is reserved for it
        // in advance.
        let read = (&mut self.input).take(missing).read_to_end(&mut self.bytes);
        read.err()
    }

    /// Returns the next chunk and its offset in the file. Returns `None` at the end of the file, or if no further chunk
    /// can be read. Adds damage that it finds to `damage`.
    pub(crate) fn next(&mut self, damage: &mut Vec<Damage>) -> Option<(&[u8], u64)> {
        if self.ended {
            return None;
        }
        let base = self.next;
        if base > 0 {
            self.bytes.clear();
        }
        let failed = self.fill(HEADER as u64);
        if self.bytes.is_empty() && failed.is_none() {
            return None;
        }
        let stream = |e: io::Error, there: usize| {
            Fault::Stream(e.to_string()).at(base.saturating_add(there as u64))
        };
        self.ended = true;
        if let Some(error) = failed {
            damage.push(stream(error, self.bytes.len()));
            return None;
        }
        let header = match Header::read(&self.bytes, base) {
            Ok(header) => header,
            Err(found) => {
                damage.push(found);
                return None;
            }
        };
        if header.size > MOST_BYTES {
            let (what, most) = ("bytes in a chunk", MOST_BYTES);
            damage.push(Fault::Limit { what, most }.at(base + 8));
            return None;
        }
        let failed = self.fill(header.size);
        let (size, there) = (header.size, self.bytes.len() as u64);
        match failed {
            Some(error) => damage.push(stream(error, self.bytes.len())),
            None if there < size => damage.push(Fault::Cut { size, there }.at(base)),
            None => self.ended = false,
        }
        self.next = base.saturating_add(size);
        Some((&self.bytes, base))
    }
}
