//! Encodes small data as bytes: numbers in little-endian order, strings and lists with their length first.

/// Collects the encoded bytes.
#[derive(Debug, Default)]
pub struct Encoder(pub Vec<u8>);

impl Encoder {
    /// Adds a number as eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a number as four bytes.
    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a flag as one byte: 0 or 1.
    pub fn flag(&mut self, value: bool) {
        self.0.push(u8::from(value));
    }

    /// Adds the length of a string, then the string.
    pub fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Adds a flag, which is true if there is a value, then the value.
    pub fn option<T>(&mut self, value: Option<T>, mut one: impl FnMut(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            one(self, value);
        }
    }

    /// Adds the length of a list, then its items.
    pub fn list<T>(&mut self, list: &[T], mut one: impl FnMut(&mut Self, &T)) {
        self.u64(list.len() as u64);
        for item in list {
            one(self, item);
        }
    }
}

/// Decodes the bytes. Methods return `None` if the bytes do not have the expected format.
#[derive(Debug)]
pub struct Decoder<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads a number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    /// Reads a number of eight bytes, and returns it as a size in memory.
    pub fn usize(&mut self) -> Option<usize> {
        usize::try_from(self.u64()?).ok()
    }

    /// Reads a number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    /// Reads a flag: one byte, 0 or 1.
    pub fn flag(&mut self) -> Option<bool> {
        match self.take(1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    /// Returns a string; `None` if it is not UTF-8.
    pub fn text(&mut self) -> Option<String> {
        let len = self.usize()?;
        String::from_utf8(self.take(len)?.to_vec()).ok()
    }

    /// Reads a flag, and the value that follows if the flag is true.
    #[allow(
        clippy::option_option,
        reason = "the outer Option is None if the data is damaged, the inner Option is the value"
    )]
    pub fn option<T>(&mut self, one: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? {
            one(self).map(Some)
        } else {
            Some(None)
        }
    }

    /// Reads a list: its length, and then its elements with `one`. The length may be wrong. So the memory reserved for
    /// the list is at first limited to the number of bytes that are left to read.
    pub fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.usize()?;
        let mut list = Vec::with_capacity(len.min(self.0.len()) / size_of::<T>().max(1));
        for _ in 0..len {
            list.push(one(self)?);
        }
        Some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_are_decoded_and_truncated_ones_refused() {
        let mut encoder = Encoder::default();
        encoder.u64(7);
        encoder.text("größer");
        encoder.option(Some(3), Encoder::u32);
        encoder.option(None, Encoder::u32);
        encoder.list(&[1, 2, 3], |e, &v| e.u32(v));
        let decoded = |bytes: &[u8]| {
            let mut decoder = Decoder(bytes);
            Some((
                decoder.u64()?,
                decoder.text()?,
                decoder.option(Decoder::u32)?,
                decoder.option(Decoder::u32)?,
                decoder.list(Decoder::u32)?,
            ))
        };
        let whole = (7, "größer".to_owned(), Some(3), None, vec![1, 2, 3]);
        assert_eq!(decoded(&encoder.0), Some(whole));
        for cut in 0..encoder.0.len() {
            assert_eq!(decoded(&encoder.0[..cut]), None);
        }
        let mut endless = vec![0xff; 8];
        endless[7] = 0;
        assert_eq!(Decoder(&endless).list(Decoder::u64), None);
    }
}
