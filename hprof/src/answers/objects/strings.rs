//! The text of strings.

use crate::answers::objects::object::{ArrayView, Body, Raw, Value};
use crate::ids::{NONE, ObjectIndex};
use crate::records::classes::Class;
use crate::records::record::Kind;
use crate::snapshot::Snapshot;

impl Snapshot {
    /// Returns the text of a `java.lang.String`, cut after `limit` characters. A text that was cut ends with `…`.
    /// `None` for other objects and for strings without an array of characters.
    #[must_use]
    pub fn string(&self, object: ObjectIndex, limit: usize) -> Option<String> {
        self.strings(&[object], limit).pop().flatten()
    }

    /// Returns the text of many strings. See [`Snapshot::string`].
    ///
    /// Cost: as [`Snapshot::ids`], twice: for the strings and for their arrays.
    #[must_use]
    pub fn strings(&self, objects: &[ObjectIndex], limit: usize) -> Vec<Option<String>> {
        let is_string =
            |class: &Class| class.loader.is_null() && &*class.name == "java.lang.String";
        let raws = self.records_of(objects);
        let values: Vec<Option<ObjectIndex>> = objects
            .iter()
            .zip(&raws)
            .map(|(&object, raw)| {
                // If an object number has no record, it may be invalid. Skip it before its class is looked up.
                let raw = raw.as_ref()?;
                let class = self.class_of(object)?;
                let raw = Some(raw).filter(|_| is_string(&self.classes()[class]))?;
                self.field_in(raw, "value")?.object()
            })
            .collect();
        let arrays: Vec<ObjectIndex> = values
            .iter()
            .map(|v| v.unwrap_or(ObjectIndex(NONE)))
            .collect();
        let arrays = self.records_of(&arrays);
        raws.iter()
            .zip(arrays)
            .map(|(string, array)| self.text(string.as_ref()?, array?, limit))
            .collect()
    }

    pub(crate) fn text(&self, string: &Raw<'_>, array: Raw<'_>, limit: usize) -> Option<String> {
        let Body::Primitives(kind, len, bytes) = array.body else {
            return None;
        };
        if len > 0 && bytes.is_empty() {
            return None;
        }
        let number = |name| {
            let value = self.field_in(string, name)?.integer()?;
            usize::try_from(value).ok()
        };
        match kind {
            Kind::Byte if number("coder").unwrap_or(0) == 0 => {
                let text = bytes.iter().take(limit).map(|&b| char::from(b)).collect();
                Some(ended(text, bytes.len() > limit))
            }
            Kind::Byte => {
                let big = self.strings_are_big_endian();
                let unit = |b: &[u8]| {
                    if big {
                        u16::from_be_bytes([b[0], b[1]])
                    } else {
                        u16::from_le_bytes([b[0], b[1]])
                    }
                };
                Some(decoded(bytes.chunks_exact(2).map(unit), limit))
            }
            Kind::Char => {
                let units = bytes.chunks_exact(2);
                // Up to JDK 6, strings share arrays, so a string has the fields `offset` and `count`. Android's strings
                // have a `count` but no `offset`. Their `count` has another meaning, so it is not used as the length.
                let (skip, take) = number("offset")
                    .zip(number("count"))
                    .unwrap_or((0, usize::MAX));
                let units = units.map(|b| u16::from_be_bytes([b[0], b[1]]));
                Some(decoded(units.skip(skip).take(take), limit))
            }
            _ => None,
        }
    }

    /// Returns the UTF-16 units of an array from index `skip` up to `size`. If `wide` is true, a unit takes two bytes
    /// of a `byte[]`. At most `limit` characters are returned, followed by `…` if there are more.
    pub(crate) fn characters(
        &self,
        array: ArrayView<'_>,
        wide: bool,
        skip: usize,
        size: usize,
        limit: usize,
    ) -> Option<String> {
        let pair = array.bytes().chunks_exact(2);
        let take = size.saturating_sub(skip);
        match array.kind {
            Kind::Byte if !wide => {
                let units = array.bytes().iter().map(|&b| u16::from(b));
                Some(decoded(units.skip(skip).take(take), limit))
            }
            Kind::Byte => {
                let unit: fn([u8; 2]) -> u16 = if self.strings_are_big_endian() {
                    u16::from_be_bytes
                } else {
                    u16::from_le_bytes
                };
                let units = pair.map(|b| unit([b[0], b[1]]));
                Some(decoded(units.skip(skip).take(take), limit))
            }
            Kind::Char => {
                let units = pair.map(|b| u16::from_be_bytes([b[0], b[1]]));
                Some(decoded(units.skip(skip).take(take), limit))
            }
            _ => None,
        }
    }

    /// True if the two-byte characters in a `byte[]` are big-endian. Their byte order is that of the machine on which
    /// the JVM ran.
    fn strings_are_big_endian(&self) -> bool {
        let class = self.classes().by_name("java.lang.StringUTF16").first();
        let shift = class.and_then(|&c| self.static_value(c, "HI_BYTE_SHIFT"));
        shift.and_then(Value::integer) == Some(8)
    }
}

impl ArrayView<'_> {
    /// Returns the content of a `char[]`, or of a `byte[]` in UTF-8, as text, cut after `limit` characters. A text that
    /// was cut ends with `…`. Zeros at the end are left out. `None` if the array is empty or has another type, or if
    /// the part up to the limit contains control characters or is not text.
    #[must_use]
    pub fn text(&self, limit: usize) -> Option<String> {
        let used = self.bytes().iter().rposition(|&byte| byte != 0)? + 1;
        let text = match self.kind {
            Kind::Byte => {
                // A character takes at most four bytes in UTF-8.
                let end = used.min(limit.saturating_add(1).saturating_mul(4));
                let bytes = &self.bytes()[..end];
                let text = match std::str::from_utf8(bytes) {
                    Ok(text) => text,
                    // The end may be in the middle of a character.
                    Err(error) if error.error_len().is_none() && end < used => {
                        std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
                    }
                    Err(_) => return None,
                };
                let mut chars = text.chars();
                let text = chars.by_ref().take(limit).collect();
                ended(text, chars.next().is_some())
            }
            Kind::Char => {
                let units = self.bytes()[..used.next_multiple_of(2)].chunks_exact(2);
                let text = decoded(units.map(|b| u16::from_be_bytes([b[0], b[1]])), limit);
                Some(text).filter(|text| !text.contains(char::REPLACEMENT_CHARACTER))?
            }
            _ => return None,
        };
        let is_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
        text.chars().all(is_text).then_some(text)
    }
}

fn decoded(units: impl Iterator<Item = u16>, limit: usize) -> String {
    let mut chars = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    let text = chars.by_ref().take(limit).collect();
    ended(text, chars.next().is_some())
}

fn ended(mut text: String, cut: bool) -> String {
    if cut {
        text.push('…');
    }
    text
}
