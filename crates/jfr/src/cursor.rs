//! Reads integers and strings in the formats of JFR. Never reads beyond the given end.

use crate::error::{Damage, Fault};

/// A position in a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    /// The readable bytes, from the start of the chunk.
    bytes: &'a [u8],
    at: usize,
    /// The offset of the chunk in the file.
    base: u64,
    /// True if integers are stored in one to nine bytes depending on their value, as in all current recordings.
    /// Otherwise each has the width of its type.
    compressed: bool,
}

/// A string as it is stored in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    Null,
    Utf8(&'a [u8]),
    Latin1(&'a [u8]),
    /// UTF-16 code units as compressed integers.
    Chars(&'a [u8]),
    /// The key of the string in the chunk's constants of type `java.lang.String`.
    Pooled(i64),
}

impl Text<'_> {
    /// Decodes at most `most` characters of the string. Returns `None` for null, and for a string that is stored as a
    /// constant.
    pub(crate) fn decoded(self, most: usize) -> Option<String> {
        Some(match self {
            Text::Null | Text::Pooled(_) => return None,
            Text::Utf8(bytes) => {
                // A UTF-8 character has at most four bytes, so more bytes than this are not needed.
                let bytes = &bytes[..bytes.len().min(most.saturating_mul(4))];
                String::from_utf8_lossy(bytes).chars().take(most).collect()
            }
            Text::Latin1(bytes) => bytes.iter().take(most).map(|&b| char::from(b)).collect(),
            Text::Chars(bytes) => {
                let mut cursor = Cursor::new(bytes, 0, true);
                let units = std::iter::from_fn(|| cursor.varint("a character").ok());
                #[allow(clippy::cast_possible_truncation, reason = "the value has 16 bits")]
                let units = units.map(|unit| unit as u16);
                char::decode_utf16(units)
                    .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .take(most)
                    .collect()
            }
        })
    }
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: u64, compressed: bool) -> Self {
        Self {
            bytes,
            at: 0,
            base,
            compressed,
        }
    }

    /// Returns a cursor at `at` that ends at `end` or at the current end, whichever comes first.
    pub(crate) fn part(&self, at: usize, end: usize) -> Self {
        let end = end.min(self.bytes.len());
        Self {
            bytes: &self.bytes[..end],
            at: at.min(end),
            ..*self
        }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Returns the offset of the cursor in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.base.saturating_add(self.at as u64)
    }

    pub(crate) fn fault(&self, fault: Fault) -> Damage {
        fault.at(self.offset())
    }

    pub(crate) fn take(&mut self, count: u64, what: &'static str) -> Result<&'a [u8], Damage> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(count).ok().and_then(|n| rest.get(..n)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.fault(Fault::Short(what))),
        }
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8, Damage> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(self.fault(Fault::Short(what))),
        }
    }

    /// Reads a compressed integer: seven bits in each byte, the lowest first. The ninth byte has eight bits.
    #[inline]
    pub(crate) fn varint(&mut self, what: &'static str) -> Result<u64, Damage> {
        // Most integers have at most three bytes. This loop reads them.
        let mut value = 0;
        if let Some(bytes) = self.bytes.get(self.at..self.at + 3) {
            for (place, &byte) in bytes.iter().enumerate() {
                value |= u64::from(byte & 0x7f) << (7 * place);
                if byte < 0x80 {
                    self.at += place + 1;
                    return Ok(value);
                }
            }
        }
        self.long_varint(what)
    }

    fn long_varint(&mut self, what: &'static str) -> Result<u64, Damage> {
        let mut value = 0;
        for place in 0..9 {
            let byte = self.byte(what)?;
            if place == 8 {
                return Ok(value | u64::from(byte) << 56);
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    /// Reads an uncompressed integer of `width` bytes.
    fn fixed(&mut self, width: u64, what: &'static str) -> Result<u64, Damage> {
        let bytes = self.take(width, what)?;
        Ok(bytes.iter().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    #[inline]
    fn number(&mut self, width: u64, what: &'static str) -> Result<u64, Damage> {
        if self.compressed {
            self.varint(what)
        } else {
            self.fixed(width, what)
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "the cast keeps the bits of a negative number"
    )]
    pub(crate) fn short(&mut self, what: &'static str) -> Result<i64, Damage> {
        Ok(i64::from(self.number(2, what)? as i16))
    }

    /// Reads an integer that is never negative, such as a count.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<u64, Damage> {
        self.number(4, what)
    }

    pub(crate) fn character(&mut self, what: &'static str) -> Result<i64, Damage> {
        Ok(i64::try_from(self.number(2, what)?).unwrap_or(i64::MAX))
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "the cast keeps the bits of a negative number"
    )]
    pub(crate) fn int(&mut self, what: &'static str) -> Result<i64, Damage> {
        Ok(i64::from(self.number(4, what)? as i32))
    }

    #[allow(
        clippy::cast_possible_wrap,
        reason = "the cast keeps the bits of a negative number"
    )]
    pub(crate) fn long(&mut self, what: &'static str) -> Result<i64, Damage> {
        Ok(self.number(8, what)? as i64)
    }

    /// Reads a number in a chunk's header. Such a number is never compressed, even if the chunk's other integers are.
    #[allow(
        clippy::cast_possible_wrap,
        reason = "the cast keeps the bits of a negative number"
    )]
    pub(crate) fn raw_long(&mut self) -> Result<i64, Damage> {
        Ok(self.fixed(8, "the chunk's header")? as i64)
    }

    pub(crate) fn text(&mut self) -> Result<Text<'a>, Damage> {
        const WHAT: &str = "a string";
        let start = *self;
        Ok(match self.byte(WHAT)? {
            0 => Text::Null,
            1 => Text::Utf8(&[]),
            2 => Text::Pooled(self.long(WHAT)?),
            3 => {
                let length = self.count(WHAT)?;
                Text::Utf8(self.take(length, WHAT)?)
            }
            4 => {
                let length = self.count(WHAT)?;
                let from = self.at;
                // Each character has at least one byte. So the loop stops at the end of the chunk, even if the count is
                // too large.
                for _ in 0..length {
                    self.varint(WHAT)?;
                }
                Text::Chars(&self.bytes[from..self.at])
            }
            5 => {
                let length = self.count(WHAT)?;
                Text::Latin1(self.take(length, WHAT)?)
            }
            other => return Err(start.fault(Fault::Encoding(other))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(bytes: &[u8]) -> Cursor<'_> {
        Cursor::new(bytes, 1000, true)
    }

    #[test]
    fn integers_have_one_to_nine_bytes() {
        for (bytes, value) in [
            (&[0x05_u8][..], 5_i64),
            (&[0x80, 0x01], 128),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], 0xffff_ffff),
            (&[0x84, 0x80, 0x80, 0x00], 4),
            (&[0xff; 9], -1),
            (
                &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
                i64::MIN,
            ),
        ] {
            let mut c = cursor(bytes);
            assert_eq!(c.long("a number").unwrap(), value, "{bytes:02x?}");
            assert!(c.is_at_end());
        }
        assert_eq!(
            cursor(&[0xff, 0xff, 0xff, 0xff, 0x0f]).int("x").unwrap(),
            -1
        );
        assert_eq!(cursor(&[0xff, 0xff, 0x03]).short("x").unwrap(), -1);
        let mut raw = Cursor::new(&[0xff, 0xff, 0xff, 0xfe], 0, false);
        assert_eq!(raw.int("x").unwrap(), -2);
    }

    #[test]
    fn truncated_data_reports_its_position() {
        let mut c = cursor(&[0x80, 0x80]);
        let damage = c.varint("a number").unwrap_err();
        assert_eq!(damage, Fault::Short("a number").at(1002));
        assert_eq!(
            damage.to_string(),
            "byte 1002: the data ends inside a number"
        );
        // If the length of a string is larger than the chunk, no memory is allocated for it.
        let mut c = cursor(&[3, 0xff, 0xff, 0xff, 0xff, 0x0f, b'a']);
        assert_eq!(c.text().unwrap_err().fault, Fault::Short("a string"));
        let mut c = cursor(&[4, 0xff, 0xff, 0xff, 0xff, 0x0f, b'a']);
        assert_eq!(c.text().unwrap_err().fault, Fault::Short("a string"));
        assert_eq!(
            cursor(&[9]).text().unwrap_err(),
            Fault::Encoding(9).at(1000)
        );
    }

    #[test]
    fn strings_of_all_encodings() {
        // The string consists of 'a' and U+1F600, which are three code units.
        let units = [4, 3, 0x61, 0xbd, 0xb0, 0x03, 0x80, 0xbc, 0x03];
        for (bytes, text) in [
            (&[0_u8][..], None),
            (&[1], Some("")),
            (&[2, 7], None),
            (&[3, 3, b'a', 0xc3, 0xa9], Some("aé")),
            (&units, Some("a\u{1f600}")),
            (&[5, 2, b'a', 0xe9], Some("aé")),
        ] {
            let mut c = cursor(bytes);
            let read = c.text().unwrap();
            assert!(c.is_at_end(), "{bytes:02x?}");
            assert_eq!(read.decoded(100).as_deref(), text);
        }
        assert_eq!(cursor(&[2, 7]).text().unwrap(), Text::Pooled(7));
        let cut = cursor(&[3, 3, b'a', b'b', b'c']).text().unwrap();
        assert_eq!(cut.decoded(2).as_deref(), Some("ab"));
    }
}
