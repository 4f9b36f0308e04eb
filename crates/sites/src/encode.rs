//! Writes the site table, which the agent stores in the heap: the definitions of allocation sites.

/// Size of a batch's header, which precedes its body, in bytes.
pub const BATCH_HEADER: usize = 12;
pub(crate) const MAGIC: [u8; 2] = *b"HD";
pub(crate) const VERSION: u8 = 1;

pub(crate) const STRING: u8 = 1;
pub(crate) const METHOD: u8 = 2;
pub(crate) const FRAME: u8 = 3;
pub(crate) const SITE: u8 = 4;
pub(crate) const TYPE: u8 = 5;

/// A batch: definitions that are added to the table together.
#[derive(Debug, Default)]
pub struct Batch {
    body: Vec<u8>,
}

impl Batch {
    /// Returns an empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if the batch contains no definitions (of strings, methods, frames, sites or classes).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Defines a string.
    pub fn string(&mut self, id: u32, text: &str) {
        self.record(STRING, &[id, length(text.len())]);
        self.body.extend_from_slice(text.as_bytes());
    }

    /// Defines a method by three string ids: its class, its name and its source file. An id of 0 means unknown.
    pub fn method(&mut self, id: u32, class: u32, name: u32, file: u32) {
        self.record(METHOD, &[id, class, name, file]);
    }

    /// Defines a frame. `line` is the line number, 0 if it is unknown, or -1 for a native method.
    pub fn frame(&mut self, id: u32, method: u32, line: i32) {
        let zigzag = ((line << 1) ^ (line >> 31)).cast_unsigned();
        self.record(FRAME, &[id, method, zigzag]);
    }

    /// Defines a site by its frames, innermost first. `cut` is true if the stack had more frames than were recorded.
    pub fn site(&mut self, id: u32, frames: &[u32], cut: bool) {
        self.record(SITE, &[id, u32::from(cut), length(frames.len())]);
        for &frame in frames {
            varint(&mut self.body, frame);
        }
    }

    /// Defines a type: the class whose name is the string `name`.
    pub fn class(&mut self, id: u32, name: u32) {
        self.record(TYPE, &[id, name]);
    }

    fn record(&mut self, tag: u8, numbers: &[u32]) {
        self.body.push(tag);
        for &number in numbers {
            varint(&mut self.body, number);
        }
    }

    /// Returns the bytes to store. Their length is a multiple of 8. An empty batch has no bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        if self.body.is_empty() {
            return Vec::new();
        }
        let mut bytes = Vec::with_capacity(align(BATCH_HEADER + self.body.len()));
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, 0]);
        bytes.extend_from_slice(&length(self.body.len()).to_le_bytes());
        bytes.extend_from_slice(&checksum(&self.body).to_le_bytes());
        bytes.extend_from_slice(&self.body);
        bytes.resize(align(bytes.len()), 0);
        bytes
    }
}

/// Rounds a length up to a multiple of 8.
#[must_use]
pub const fn align(len: usize) -> usize {
    len.next_multiple_of(8)
}

/// Converts a length in the site table to 32 bits. The table is far smaller than 4 GB, so the length always fits.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Returns the 32-bit FNV-1a hash of the bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
