//! Reads the site table. The bytes come from a dump, so they are untrusted.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::encode::{
    BATCH_HEADER, FRAME, MAGIC, METHOD, SITE, STRING, TYPE, VERSION, align, checksum,
};

/// An error in a site table, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("site table, piece {piece}, byte {offset}: {fault}")]
pub struct DecodeError {
    /// Index of the damaged element in the array `blobs`.
    pub piece: usize,
    /// Offset of the fault in this element, in bytes.
    pub offset: usize,
    /// The fault.
    pub fault: Fault,
}

/// The kind of a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The bytes are neither the start of a batch of definitions nor a gap (eight zero bytes).
    #[error("the start of a data block was expected here, but the bytes are {0:02x?}")]
    NoBatch([u8; 4]),
    /// A batch of a later version.
    #[error("the data has the unknown format version {0}")]
    Version(u8),
    /// A length is larger than the number of bytes that are left.
    #[error("{length} bytes are needed, but only {left} are left")]
    Length {
        /// The length.
        length: u64,
        /// The number of bytes that are left.
        left: usize,
    },
    /// The checksum does not match.
    #[error(
        "the stored checksum is {found:#010x}, but the checksum of the bytes is {expected:#010x}"
    )]
    Checksum {
        /// The stored checksum.
        found: u32,
        /// The computed checksum.
        expected: u32,
    },
    /// A record of an unknown kind.
    #[error("a record has the unknown kind {0}")]
    Record(u8),
    /// A number is truncated or too large.
    #[error("a number is truncated or has more than 32 bits")]
    Number,
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    Text,
    /// A definition of a string, method, frame, site or type has the id 0.
    #[error("an entry of the kind {0} has the id 0, which is not allowed")]
    Zero(&'static str),
    /// An id has two different definitions.
    #[error("{0} {1} is defined twice with different content")]
    Twice(&'static str, u32),
}

/// The line of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// The line is unknown: the class file has no line numbers, or the agent's options omit them.
    Unknown,
    /// The method is native, so it has no line.
    Native,
    /// The line number.
    At(u32),
}

impl Line {
    /// Returns the line for a number in a recording: negative for a native method, 0 if unknown.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        match u32::try_from(number) {
            Ok(0) => Self::Unknown,
            Ok(line) => Self::At(line),
            Err(_) => Self::Native,
        }
    }

    /// Returns the number that [`from_number`](Self::from_number) accepts.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::At(line) => i32::try_from(line).unwrap_or(0),
            Self::Unknown => 0,
            Self::Native => -1,
        }
    }
}

/// A frame with its names. A name that the table lacks is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame<'a> {
    /// The class that declares the method, as in Java source.
    pub class: &'a str,
    /// The method. Empty if the agent's options record only classes.
    pub method: &'a str,
    /// The source file.
    pub file: Option<&'a str>,
    /// The line.
    pub line: Line,
}

/// The stack of a site.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Frame ids, innermost frame first.
    pub frames: &'a [u32],
    /// True if the stack had more frames than were recorded.
    pub cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Method {
    pub(crate) class: u32,
    pub(crate) name: u32,
    pub(crate) file: u32,
}

/// The site table of a dump.
#[derive(Debug, Default)]
pub struct SiteTable {
    pub(crate) strings: HashMap<u32, Box<str>>,
    pub(crate) methods: HashMap<u32, Method>,
    pub(crate) frames: HashMap<u32, (u32, i32)>,
    pub(crate) sites: HashMap<u32, (bool, Box<[u32]>)>,
    pub(crate) types: HashMap<u32, u32>,
    /// The positions of all batches, in the order of the table.
    places: Vec<BatchPlace>,
}

/// The position of one batch of the site table (stacks and names of samples). The table is stored in several byte
/// arrays (pieces). Each array consists of batches, and each batch has a header and a body with definitions.
#[derive(Debug, Default)]
struct BatchPlace {
    piece: usize,
    at: usize,
    /// Length of the body in bytes.
    length: usize,
    /// The ids of the strings, each with its range in the body of the batch.
    strings: Vec<(u32, std::ops::Range<usize>)>,
}

/// Returns a copy of a site table for a redacted dump. `pieces` are the byte arrays that contain the table. Names of
/// classes, methods and files stay readable. All other strings, such as names of threads, are passed to `overwrite`,
/// which replaces them by UTF-8 text with the same number of bytes. Returns `None` if the table cannot be read.
#[must_use]
pub fn names_only(pieces: &[&[u8]], overwrite: &dyn Fn(&mut [u8])) -> Option<Vec<Vec<u8>>> {
    let table = SiteTable::decode(pieces.iter().copied()).ok()?;
    let methods = table.methods.values();
    let mut names: HashSet<u32> = methods.flat_map(|m| [m.class, m.name, m.file]).collect();
    names.extend(table.types.values());
    let mut out: Vec<Vec<u8>> = pieces.iter().map(|piece| vec![0; piece.len()]).collect();
    for batch in &table.places {
        let whole = batch.at..batch.at + BATCH_HEADER + batch.length;
        let to = out.get_mut(batch.piece)?.get_mut(whole.clone())?;
        to.copy_from_slice(pieces.get(batch.piece)?.get(whole)?);
        // The fourth byte of a batch's header is unused.
        to[3] = 0;
        let (header, body) = to.split_at_mut(BATCH_HEADER);
        for (id, at) in &batch.strings {
            if !names.contains(id) {
                overwrite(body.get_mut(at.clone())?);
            }
        }
        header[8..].copy_from_slice(&checksum(body).to_le_bytes());
    }
    Some(out)
}

impl SiteTable {
    /// Reads the elements of `blobs` that are not `null`, in order.
    ///
    /// Never panics. Uses memory proportional to the number of bytes.
    ///
    /// # Errors
    /// Returns the first fault, with its position.
    pub fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, DecodeError> {
        let mut table = Self::default();
        for (number, piece) in pieces.into_iter().enumerate() {
            table
                .piece(number, piece)
                .map_err(|(offset, fault)| DecodeError {
                    piece: number,
                    offset,
                    fault,
                })?;
        }
        Ok(table)
    }

    fn piece(&mut self, number: usize, piece: &[u8]) -> Result<(), (usize, Fault)> {
        let mut at = 0;
        while let Some(start) = piece.get(at..).filter(|rest| !rest.is_empty()) {
            if start.iter().take(8).all(|&byte| byte == 0) {
                at += 8;
                continue;
            }
            let Some((header, rest)) = start.split_first_chunk::<BATCH_HEADER>() else {
                let (length, left) = (BATCH_HEADER as u64, start.len());
                return Err((at, Fault::Length { length, left }));
            };
            let [h, d, version, _, l0, l1, l2, l3, c0, c1, c2, c3] = *header;
            if [h, d] != MAGIC {
                return Err((at, Fault::NoBatch([h, d, version, header[3]])));
            }
            if version != VERSION {
                return Err((at + 2, Fault::Version(version)));
            }
            let length = u32::from_le_bytes([l0, l1, l2, l3]);
            let body = usize::try_from(length).ok().and_then(|l| rest.get(..l));
            let Some(body) = body else {
                let (length, left) = (length.into(), rest.len());
                return Err((at + 4, Fault::Length { length, left }));
            };
            let (found, expected) = (u32::from_le_bytes([c0, c1, c2, c3]), checksum(body));
            if found != expected {
                return Err((at + 8, Fault::Checksum { found, expected }));
            }
            self.places.push(BatchPlace {
                piece: number,
                at,
                length: body.len(),
                strings: Vec::new(),
            });
            self.body(body)
                .map_err(|(inner, fault)| (at + BATCH_HEADER + inner, fault))?;
            at += align(BATCH_HEADER + body.len());
        }
        Ok(())
    }

    fn body(&mut self, body: &[u8]) -> Result<(), (usize, Fault)> {
        let mut cursor = Cursor { bytes: body, at: 0 };
        while let Some(&tag) = body.get(cursor.at) {
            let start = cursor.at;
            cursor.at += 1;
            let at_start = |fault| (start, fault);
            match tag {
                STRING => {
                    let (id, length) = (cursor.number()?, cursor.number()?);
                    let here = cursor.at;
                    let text = cursor.take(length)?;
                    let text = str::from_utf8(text).map_err(|_| (here, Fault::Text))?;
                    if let Some(place) = self.places.last_mut() {
                        place.strings.push((id, here..cursor.at));
                    }
                    define(&mut self.strings, "string", id, text.into())
                }
                METHOD => {
                    let (id, class) = (cursor.number()?, cursor.number()?);
                    let (name, file) = (cursor.number()?, cursor.number()?);
                    let method = Method { class, name, file };
                    define(&mut self.methods, "method", id, method)
                }
                FRAME => {
                    let (id, method) = (cursor.number()?, cursor.number()?);
                    let zigzag = cursor.number()?;
                    let line = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
                    define(&mut self.frames, "frame", id, (method, line))
                }
                SITE => {
                    let (id, flags) = (cursor.number()?, cursor.number()?);
                    let count = cursor.number()?;
                    // Each frame takes at least one byte, so a wrong number of frames cannot reserve more memory than
                    // there are bytes of input.
                    let left = body.len() - cursor.at;
                    if u64::from(count) > left as u64 {
                        let length = count.into();
                        return Err((cursor.at, Fault::Length { length, left }));
                    }
                    let frames: Result<Box<[u32]>, _> =
                        (0..count).map(|_| cursor.number()).collect();
                    define(&mut self.sites, "site", id, (flags & 1 != 0, frames?))
                }
                TYPE => {
                    let (id, name) = (cursor.number()?, cursor.number()?);
                    define(&mut self.types, "type", id, name)
                }
                other => Err(Fault::Record(other)),
            }
            .map_err(at_start)?;
        }
        Ok(())
    }

    /// Returns the stack with this id.
    #[must_use]
    pub fn site(&self, id: u32) -> Option<Site<'_>> {
        let (cut, frames) = self.sites.get(&id)?;
        Some(Site { frames, cut: *cut })
    }

    /// Returns all ids of sites, in ascending order.
    #[must_use]
    pub fn site_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.sites.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the frame with this id. If the table has no frame with this id, the names are empty.
    #[must_use]
    pub fn frame(&self, id: u32) -> Frame<'_> {
        let (method, line) = self.frames.get(&id).copied().unwrap_or((0, 0));
        let method = self.methods.get(&method);
        let name = |id: u32| self.string(id).unwrap_or("");
        Frame {
            class: method.map_or("", |m| name(m.class)),
            method: method.map_or("", |m| name(m.name)),
            file: method.and_then(|m| self.string(m.file)),
            line: Line::from_number(line),
        }
    }

    /// Returns the frames of a site, innermost first. Empty if the table has no such site.
    pub fn frames(&self, site: u32) -> impl ExactSizeIterator<Item = Frame<'_>> {
        let ids = self.sites.get(&site).map_or(&[][..], |(_, frames)| frames);
        ids.iter().map(|&frame| self.frame(frame))
    }

    /// Returns all ids of types, in ascending order.
    #[must_use]
    pub fn type_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.types.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the name of a type, as in Java source.
    #[must_use]
    pub fn class(&self, id: u32) -> Option<&str> {
        self.string(*self.types.get(&id)?)
    }

    /// Returns a string, such as a thread's name.
    #[must_use]
    pub fn string(&self, id: u32) -> Option<&str> {
        self.strings.get(&id).map(|s| &**s)
    }
}

fn define<T: PartialEq>(
    map: &mut HashMap<u32, T>,
    kind: &'static str,
    id: u32,
    value: T,
) -> Result<(), Fault> {
    if id == 0 {
        return Err(Fault::Zero(kind));
    }
    match map.entry(id) {
        Entry::Vacant(entry) => {
            entry.insert(value);
            Ok(())
        }
        Entry::Occupied(entry) if *entry.get() == value => Ok(()),
        Entry::Occupied(_) => Err(Fault::Twice(kind, id)),
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn number(&mut self) -> Result<u32, (usize, Fault)> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                break;
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| (start, Fault::Number));
            }
        }
        Err((start, Fault::Number))
    }

    fn take(&mut self, length: u32) -> Result<&'a [u8], (usize, Fault)> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(length).ok().and_then(|l| rest.get(..l));
        let Some(taken) = taken else {
            let (length, left) = (length.into(), rest.len());
            return Err((self.at, Fault::Length { length, left }));
        };
        self.at += taken.len();
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;
    use proptest::prelude::*;

    fn sample() -> Vec<u8> {
        let mut batch = Batch::new();
        batch.string(1, "com.acme.Foo");
        batch.string(2, "add");
        batch.string(3, "Foo.java");
        batch.string(300, "main");
        batch.method(1, 1, 2, 3);
        batch.method(2, 1, 300, 0);
        batch.frame(1, 1, 42);
        batch.frame(2, 2, -1);
        batch.frame(3, 1, 0);
        batch.site(1, &[1, 2], false);
        batch.site(2, &[3, 3, 77], true);
        batch.class(9, 1);
        batch.finish()
    }

    fn decode(bytes: &[u8]) -> Result<SiteTable, DecodeError> {
        SiteTable::decode([bytes])
    }

    #[test]
    fn a_written_table_is_read_back() {
        let table = decode(&sample()).unwrap();
        let frames: Vec<Frame<'_>> = table.frames(1).collect();
        let add = Frame {
            class: "com.acme.Foo",
            method: "add",
            file: Some("Foo.java"),
            line: Line::At(42),
        };
        let main = Frame {
            method: "main",
            file: None,
            line: Line::Native,
            ..add
        };
        assert_eq!(frames, [add, main]);
        assert_eq!(table.site_ids(), [1, 2]);
        assert!(table.site(2).unwrap().cut && !table.site(1).unwrap().cut);
        assert_eq!(table.frame(77).class, "");
        assert_eq!(table.frame(3).line, Line::Unknown);
        assert_eq!(table.class(9), Some("com.acme.Foo"));
        assert_eq!(table.class(8), None);
        assert_eq!(table.frames(5).len(), 0);
    }

    #[test]
    fn gaps_repetitions_and_pieces_are_decoded() {
        let one = sample();
        assert_eq!(one.len() % 8, 0);
        let mut piece = vec![0; 64];
        piece.extend(&one);
        piece.extend([0; 24]);
        piece.extend(&one);
        piece.extend([0; 3]);
        let table = SiteTable::decode([&piece[..], &[], &one]).unwrap();
        assert_eq!(table.frames(1).len(), 2);
        assert!(Batch::new().finish().is_empty());
    }

    #[test]
    fn strings_that_are_no_names_are_overwritten() {
        let (one, mut two) = (sample(), sample());
        two[3] = 9;
        let pieces = [&one[..], &[0; 8], &two];
        let stars = |text: &mut [u8]| text.fill(b'*');
        // `main` is also the name of a method, so it stays readable.
        let mut batch = Batch::new();
        batch.string(7, "worker of Ann Lee");
        let third = batch.finish();
        let cleaned = names_only(&[&pieces[..], &[&third]].concat(), &stars).unwrap();
        assert_eq!(cleaned[0], one);
        assert_eq!(cleaned[1], [0; 8]);
        assert_eq!(cleaned[2], one);
        let table = SiteTable::decode(cleaned.iter().map(|p| &p[..])).unwrap();
        assert_eq!(table.string(7), Some("*****************"));
        assert_eq!(table.frame(2).method, "main");
        // A table that cannot be read is not copied.
        assert_eq!(names_only(&[&one[..20]], &stars), None);
    }

    #[test]
    fn a_batch_is_empty_until_something_is_defined() {
        let mut batch = Batch::new();
        assert!(batch.is_empty());
        batch.class(1, 1);
        assert!(!batch.is_empty());
    }

    #[test]
    fn a_site_may_be_the_last_record() {
        let mut batch = Batch::new();
        batch.site(1, &[1, 2, 3], false);
        assert_eq!(decode(&batch.finish()).unwrap().frames(1).len(), 3);
    }

    #[test]
    fn faults_of_later_batches_have_a_position() {
        let one = sample();
        let place = |byte: usize, value: u8| {
            let mut bytes = [&one[..], &one].concat();
            bytes[one.len() + byte] = value;
            let error = SiteTable::decode([&one[..], &bytes]).unwrap_err();
            assert_eq!(error.piece, 1);
            error.offset - one.len()
        };
        // Damage the magic number, the version, the length and the checksum.
        assert_eq!(place(0, b'X'), 0);
        assert_eq!(place(2, 7), 2);
        assert_eq!(place(7, 0xff), 4);
        assert_eq!(place(8, one[8] ^ 1), 8);
    }

    #[test]
    fn faults_have_a_position() {
        let fault = |bytes: &[u8]| decode(bytes).unwrap_err();
        let good = sample();
        let mut bytes = good.clone();
        bytes[0] = b'X';
        assert_eq!(
            fault(&bytes).to_string(),
            "site table, piece 0, byte 0: the start of a data block was expected here, but the bytes are [58, 44, 01, 00]"
        );
        bytes = good.clone();
        bytes[2] = 2;
        assert_eq!(fault(&bytes).fault, Fault::Version(2));
        bytes = good.clone();
        bytes[20] ^= 1;
        assert!(matches!(fault(&bytes).fault, Fault::Checksum { .. }));
        bytes = good.clone();
        bytes[7] = 0xff;
        assert!(matches!(fault(&bytes).fault, Fault::Length { .. }));
        assert!(matches!(fault(&good[..10]).fault, Fault::Length { .. }));
        let body = |body: &[u8]| {
            let mut bytes = b"HD\x01\0".to_vec();
            bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
            bytes.extend(checksum(body).to_le_bytes());
            bytes.extend(body);
            fault(&bytes)
        };
        assert_eq!(body(&[9]).fault, Fault::Record(9));
        assert_eq!(body(&[1, 0, 0]).fault, Fault::Zero("string"));
        assert_eq!(body(&[1, 1, 1, 0xff]).fault, Fault::Text);
        assert_eq!(body(&[2, 1, 0x80]).fault, Fault::Number);
        assert_eq!(
            body(&[5, 1, 0xff, 0xff, 0xff, 0xff, 0x7f]).fault,
            Fault::Number
        );
        assert_eq!(
            body(&[5, 1, 1, 5, 1, 2]),
            DecodeError {
                piece: 0,
                offset: 15,
                fault: Fault::Twice("type", 1)
            }
        );
        let (length, left) = (0x0fff_ffff, 1);
        assert_eq!(
            body(&[4, 1, 0, 0xff, 0xff, 0xff, 0x7f, 1]).fault,
            Fault::Length { length, left }
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_table_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
            // If the header is valid, the body is also read.
            let mut framed = b"HD\x01\0".to_vec();
            framed.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
            framed.extend(checksum(&bytes).to_le_bytes());
            framed.extend(&bytes);
            if let Ok(table) = decode(&framed) {
                for site in table.site_ids() {
                    prop_assert!(table.frames(site).len() <= bytes.len());
                }
                let cleaned = names_only(&[&framed], &|text| text.fill(b'*')).unwrap();
                prop_assert_eq!(cleaned[0].len(), framed.len());
                prop_assert!(decode(&cleaned[0]).is_ok());
            }
        }

        #[test]
        fn a_changed_byte_is_noticed(place in 0_usize..1000, bit in 0_u32..8) {
            let mut bytes = sample();
            let body = bytes.len() - 8;
            let place = place % body;
            bytes[place] ^= 1 << bit;
            // Byte 3 is unused.
            prop_assert!(place == 3 || decode(&bytes).is_err());
        }

        #[test]
        fn numbers_of_all_sizes(id in 1_u32.., method: u32, line: i32) {
            let mut batch = Batch::new();
            batch.frame(id, method, line);
            let table = decode(&batch.finish()).unwrap();
            prop_assert_eq!(table.frames.get(&id), Some(&(method, line)));
        }
    }
}
