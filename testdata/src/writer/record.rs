//! Writes a dump in one pass to any [`Write`]: the header, then records and segments.

use std::io::{self, Write};

use super::format::{IdSize, Version, tag};

/// The bytes before the first record.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    /// The format's version.
    pub version: Version,
    /// The width of IDs.
    pub id_size: IdSize,
    /// Time of the dump, in milliseconds since 1970.
    pub timestamp_ms: u64,
}

/// The way in which the heap's sub-records are grouped into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// All sub-records in one HEAP_DUMP record. Its length field overflows above 4 GiB, as in very old dumps.
    Single,
    /// HEAP_DUMP_SEGMENT records of about `bytes` bytes, and a HEAP_DUMP_END. A sub-record is never split. If a
    /// sub-record is larger than `bytes`, it has its own segment.
    Segments {
        /// Maximum size of a segment with more than one sub-record.
        bytes: usize,
    },
    /// HEAP_DUMP_SEGMENT records as in `Segments`, without a HEAP_DUMP_END.
    SegmentsWithoutEnd {
        /// Maximum size of a segment with more than one sub-record.
        bytes: usize,
    },
}

impl Framing {
    fn limit(self) -> usize {
        match self {
            Self::Single => usize::MAX,
            Self::Segments { bytes } | Self::SegmentsWithoutEnd { bytes } => bytes,
        }
    }
}

/// Writes a dump record by record.
#[derive(Debug)]
pub struct RecordWriter<W> {
    out: W,
    framing: Framing,
    written: u64,
    segment: Vec<u8>,
    /// Offsets of sub-records, relative to the start of the segment's body.
    starts: Vec<u64>,
    boundaries: Option<Vec<u64>>,
}

impl<W: Write> RecordWriter<W> {
    /// Writes the header.
    pub fn new(mut out: W, header: &Header, framing: Framing) -> io::Result<Self> {
        let mut head = header.version.text().as_bytes().to_vec();
        head.push(0);
        head.extend_from_slice(&(header.id_size.bytes() as u32).to_be_bytes());
        head.extend_from_slice(&header.timestamp_ms.to_be_bytes());
        out.write_all(&head)?;
        Ok(Self {
            out,
            framing,
            written: head.len() as u64,
            segment: Vec::new(),
            starts: Vec::new(),
            boundaries: None,
        })
    }

    /// Starts to store the offsets of all records and sub-records that are written from now on.
    pub fn track_boundaries(&mut self) {
        self.boundaries.get_or_insert_default();
    }

    fn mark(&mut self, offset: u64) {
        if let Some(boundaries) = &mut self.boundaries {
            boundaries.push(offset);
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn head(&mut self, tag: u8, length: u64) -> io::Result<()> {
        self.mark(self.written);
        let mut head = [0; 9];
        head[0] = tag;
        head[5..].copy_from_slice(&(length as u32).to_be_bytes());
        self.put(&head)
    }

    fn heap_tag(&self) -> u8 {
        match self.framing {
            Framing::Single => tag::HEAP_DUMP,
            Framing::Segments { .. } | Framing::SegmentsWithoutEnd { .. } => tag::HEAP_DUMP_SEGMENT,
        }
    }

    /// Writes a top-level record with any tag. Buffered sub-records are written first.
    pub fn record(&mut self, tag: u8, body: &[u8]) -> io::Result<()> {
        self.flush_segment()?;
        self.head(tag, body.len() as u64)?;
        self.put(body)
    }

    /// Adds a sub-record, tag included, to the current segment.
    pub fn sub_record(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.segment.is_empty() && self.segment.len() + bytes.len() > self.framing.limit() {
            self.flush_segment()?;
        }
        if self.boundaries.is_some() {
            self.starts.push(self.segment.len() as u64);
        }
        self.segment.extend_from_slice(bytes);
        Ok(())
    }

    /// Opens a segment for one sub-record of exactly `length` bytes, which the caller then passes to
    /// [`RecordWriter::large_part`]. A length above `u32::MAX` is an error.
    pub fn begin_large(&mut self, length: u64) -> io::Result<()> {
        if u32::try_from(length).is_err() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a segment has at most 4 GiB",
            ));
        }
        self.flush_segment()?;
        self.head(self.heap_tag(), length)?;
        self.mark(self.written);
        Ok(())
    }

    /// Writes the next bytes of the sub-record that [`RecordWriter::begin_large`] announced.
    pub fn large_part(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(bytes)
    }

    /// Ends the current segment, if it is not empty.
    pub fn flush_segment(&mut self) -> io::Result<()> {
        if self.segment.is_empty() {
            return Ok(());
        }
        self.head(self.heap_tag(), self.segment.len() as u64)?;
        for start in std::mem::take(&mut self.starts) {
            self.mark(self.written + start);
        }
        let segment = std::mem::take(&mut self.segment);
        self.put(&segment)?;
        self.segment = segment;
        self.segment.clear();
        Ok(())
    }

    /// Ends the heap: writes the last segment, and HEAP_DUMP_END if the framing has one.
    pub fn end_heap(&mut self) -> io::Result<()> {
        self.flush_segment()?;
        match self.framing {
            Framing::Segments { .. } => self.record(tag::HEAP_DUMP_END, &[]),
            Framing::Single | Framing::SegmentsWithoutEnd { .. } => Ok(()),
        }
    }

    /// Returns the number of bytes written so far. Bytes of the current segment are not written yet and not counted.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Flushes everything. Returns the underlying writer and a list of offsets in ascending order: the start of every
    /// record and sub-record, and the end of the file. Unless [`RecordWriter::track_boundaries`] was called, the list
    /// is empty.
    pub fn finish(mut self) -> io::Result<(W, Vec<u64>)> {
        self.flush_segment()?;
        self.mark(self.written);
        self.out.flush()?;
        let mut boundaries = self.boundaries.unwrap_or_default();
        boundaries.dedup();
        Ok((self.out, boundaries))
    }
}
