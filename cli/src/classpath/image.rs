//! The file `lib/modules` of a JDK, which contains the JDK's own classes since JDK 9. JDK 24 and later often have no
//! `.jmod` files.
//!
//! The classes `ImageHeader` and `ImageLocation` in the JDK's package `jdk.internal.jimage` define the layout:
//!
//! ```text
//! header | hash table | offsets of locations | locations | strings | resources
//! ```
//!
//! This module reads all locations once, and does not use the hash table.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

const MAGIC: u32 = 0xcafe_dada;
const HEADER: usize = 28;
/// Maximum size of an index in bytes. The index of a complete JDK has 3 MB.
const LARGEST_INDEX: u64 = 256 << 20;

/// Codes of the attributes of a location. A location is the entry of one resource, such as a class file.
mod attribute {
    pub(super) const END: u8 = 0;
    pub(super) const PARENT: usize = 2;
    pub(super) const BASE: usize = 3;
    pub(super) const EXTENSION: usize = 4;
    pub(super) const OFFSET: usize = 5;
    pub(super) const COMPRESSED: usize = 6;
    pub(super) const SIZE: usize = 7;
    pub(super) const COUNT: usize = 8;
}

/// An open `lib/modules` file.
pub(super) struct Image {
    file: File,
    /// For each class: the offset and size in bytes of its class file, and true if the class file is compressed.
    classes: HashMap<String, (u64, u64, bool)>,
}

impl Image {
    /// Reads the table of contents of a JDK's `lib/modules` file. Returns `None` if the file does not have this format.
    pub(super) fn open(file: &mut File) -> io::Result<Option<Self>> {
        let mut head = [0; HEADER];
        let is_image = file.read_exact(&mut head).is_ok();
        file.seek(SeekFrom::Start(0))?;
        let word = |at: usize, little: bool| {
            let bytes = head[4 * at..].first_chunk().copied().unwrap_or_default();
            if little {
                u32::from_le_bytes(bytes)
            } else {
                u32::from_be_bytes(bytes)
            }
        };
        // The file has the byte order of the machine for which the JDK was built.
        let Some(little) = [true, false].into_iter().find(|&l| word(0, l) == MAGIC) else {
            return Ok(None);
        };
        if !is_image {
            return Ok(None);
        }
        let [entries, places, strings] = [4, 5, 6].map(|at| u64::from(word(at, little)));
        let index = HEADER as u64 + 8 * entries + places + strings;
        if index > LARGEST_INDEX.min(file.metadata()?.len()) {
            return Err(damaged("the index would be longer than the file"));
        }
        let mut bytes = Vec::new();
        let mut file = file.try_clone()?;
        (&mut file).take(index).read_to_end(&mut bytes)?;
        let rest = bytes.get(HEADER..).unwrap_or_default();
        // The hash table comes first, then the offsets of the locations.
        let (_, rest) = split(rest, 4 * entries)?;
        let (offsets, rest) = split(rest, 4 * entries)?;
        let (places, strings) = split(rest, places)?;
        let mut classes = HashMap::new();
        for offset in offsets.chunks_exact(4) {
            let offset = offset.first_chunk().copied().unwrap_or_default();
            let offset = if little {
                u32::from_le_bytes(offset)
            } else {
                u32::from_be_bytes(offset)
            };
            let Some(place) = place(places, offset as usize) else {
                return Err(damaged("an offset is beyond the end of the index"));
            };
            let text = |at: usize| text(strings, place[at]);
            if text(attribute::EXTENSION) != Some("class") {
                continue;
            }
            let names = text(attribute::PARENT).zip(text(attribute::BASE));
            let Some((parent, base)) = names.filter(|(parent, _)| !parent.is_empty()) else {
                continue;
            };
            let (compressed, size) = (place[attribute::COMPRESSED], place[attribute::SIZE]);
            let at = index.saturating_add(place[attribute::OFFSET]);
            let name = format!("{}.{base}", parent.replace('/', "."));
            classes.insert(name, (at, size, compressed != 0));
        }
        Ok(Some(Self { file, classes }))
    }

    /// Returns the content of the class file of a class; `None` if the image lacks the class. Returns an error if the
    /// file has more than `most` bytes.
    pub(super) fn class(&mut self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(&(at, size, compressed)) = self.classes.get(name) else {
            return Ok(None);
        };
        if compressed {
            let message =
                "this image is compressed (jlink --compress); use the .jmod files instead";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        if size > most {
            return Err(damaged("a class file is too long"));
        }
        self.file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        (&mut self.file).take(size).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

fn damaged(what: &str) -> io::Error {
    let message = format!("the JDK module file (jimage) is damaged: {what}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn split(bytes: &[u8], at: u64) -> io::Result<(&[u8], &[u8])> {
    let at = usize::try_from(at).ok();
    at.and_then(|at| bytes.split_at_checked(at))
        .ok_or_else(|| damaged("the index is truncated"))
}

/// Parses the attributes of a location. An attribute begins with one byte, which contains its code and the length of
/// its value. The value follows, with this number of bytes.
fn place(places: &[u8], at: usize) -> Option<[u64; attribute::COUNT]> {
    let mut found = [0; attribute::COUNT];
    let mut rest = places.get(at..)?;
    loop {
        let (&head, after) = rest.split_first()?;
        let (code, len) = (head >> 3, usize::from(head & 7) + 1);
        if code == attribute::END {
            return Some(found);
        }
        let (number, after) = after.split_at_checked(len)?;
        let number = number.iter().fold(0, |n, &b| n << 8 | u64::from(b));
        *found.get_mut(usize::from(code))? = number;
        rest = after;
    }
}

/// Returns the string at an offset, which ends at the next zero byte.
fn text(strings: &[u8], at: u64) -> Option<&str> {
    let rest = strings.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|&b| b == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}
