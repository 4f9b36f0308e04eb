//! Reads big-endian numbers from a slice of bytes, never beyond its end.

use crate::error::{Damage, Fault};

/// A position in a part of a class file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset in the file at which `bytes` begins.
    base: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    /// Returns the current offset in the file.
    pub(crate) fn offset(&self) -> usize {
        self.base + self.at
    }

    /// Reads the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Damage> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.get(..count) else {
            return Err(Fault::Short(what).at(self.offset()));
        };
        self.at += count;
        Ok(taken)
    }

    /// Reads the next `count` bytes and returns a cursor over them.
    pub(crate) fn part(&mut self, count: usize, what: &'static str) -> Result<Cursor<'a>, Damage> {
        let base = self.offset();
        Ok(Cursor::new(self.take(count, what)?, base))
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Damage> {
        let offset = self.offset();
        let taken = self.take(N, what)?;
        taken.try_into().map_err(|_| Fault::Short(what).at(offset))
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, Damage> {
        self.array(what).map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, Damage> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(crate) fn i16(&mut self, what: &'static str) -> Result<i16, Damage> {
        self.array(what).map(i16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, Damage> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self, what: &'static str) -> Result<i32, Damage> {
        self.array(what).map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self, what: &'static str) -> Result<i64, Damage> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// Reads a length as a `u32`. The content with this length follows.
    pub(crate) fn length(&mut self, what: &'static str) -> Result<usize, Damage> {
        let offset = self.offset();
        let length = self.u32(what)?;
        usize::try_from(length).map_err(|_| Fault::Short(what).at(offset))
    }

    /// Returns the bytes between an earlier cursor position and the current position.
    pub(crate) fn since(&self, earlier: &Cursor<'a>) -> &'a [u8] {
        self.bytes.get(earlier.at..self.at).unwrap_or_default()
    }

    /// Returns all bytes that were not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Returns an error unless all bytes were read.
    pub(crate) fn end(&self, what: &'static str) -> Result<(), Damage> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => Err(Fault::Trailing(more, what).at(self.offset())),
        }
    }
}
