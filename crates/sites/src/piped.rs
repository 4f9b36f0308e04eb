//! The protocol that sends a snapshot through a pipe from a JVM's forked child to the process that requested it.
//!
//! 1. The requester sends a token ([`crate::attach::SNAPSHOT_PIPE`]).
//! 2. The agent creates a pipe, and a file in memory with the name [`memory_file_name`]. The file contains the number
//!    of the descriptor to read from ([`file_content`]).
//! 3. The requester finds the file among the open files of the process and opens the pipe through the process.
//! 4. The requester empties the file to confirm that it has the pipe.
//!
//! Then the bytes of the dump follow in order. One piece of the dump is known only at the end, so wrong bytes are sent
//! in its place. The piece itself follows after the dump, and then its offset in the dump and its length ([`trailer`]).
//! The reader writes the piece over the wrong bytes:
//!
//! ```text
//! dump (with wrong bytes at `at`) | piece | at, 8 bytes | length, 8 bytes
//! ```

/// Number of bytes of the offset and the length at the end.
pub const TRAILER: usize = 16;

/// Returns the name of the file in memory.
#[must_use]
pub fn memory_file_name(token: &str) -> String {
    format!("heapdiff-pipe-{token}")
}

/// Returns the content of the file in memory.
#[must_use]
pub fn file_content(descriptor: i32) -> String {
    format!("{descriptor}\n")
}

/// Reads the number of the pipe's file descriptor from the content of the file in memory. Returns `None` if the content
/// is incomplete.
#[must_use]
pub fn parse_descriptor(text: &str) -> Option<u32> {
    text.strip_suffix('\n')?.parse().ok()
}

/// Returns the last bytes sent through the pipe. They are the offset and the length of the piece that follows after the
/// dump, both big-endian.
#[must_use]
pub fn trailer(at: u64, length: u64) -> [u8; TRAILER] {
    let mut bytes = [0; TRAILER];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&at.to_be_bytes());
    second.copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Reads the trailer at the end of `received` bytes. The piece that was sent late is between the dump and the trailer.
/// Returns the offset in the dump at which the piece belongs, the length of the piece, and the length of the dump.
/// Returns `None` if these numbers contradict each other.
#[must_use]
pub fn parts_of(received: u64, trailer: [u8; TRAILER]) -> Option<(u64, u64, u64)> {
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    let (at, length) = (number(trailer.get(..8)?)?, number(trailer.get(8..)?)?);
    let whole = received.checked_sub(TRAILER as u64)?.checked_sub(length)?;
    (at.checked_add(length)? <= whole).then_some((at, length, whole))
}

/// Reads the trailer of bytes that are in memory, in the same way as [`parts_of`].
#[must_use]
pub fn parts(received: &[u8]) -> Option<(usize, usize, usize)> {
    let trailer = received.last_chunk()?;
    let (at, length, whole) = parts_of(received.len() as u64, *trailer)?;
    Some((
        usize::try_from(at).ok()?,
        usize::try_from(length).ok()?,
        usize::try_from(whole).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_bytes_are_split_by_their_trailer() {
        let all = [&b"0123456789ab"[..], &trailer(3, 2)].concat();
        assert_eq!(parts(&all), Some((3, 2, 10)));
        // Each trailer is invalid: the last piece ends after the dump, or is longer than all received bytes, or the sum
        // of its offset and length overflows.
        for (at, length) in [(9, 2), (0, 13), (u64::MAX, 2), (2, u64::MAX)] {
            let all = [&b"0123456789ab"[..], &trailer(at, length)].concat();
            assert_eq!(parts(&all), None, "{at} {length}");
        }
        assert_eq!(parts(b"short"), None);
        assert_eq!(parse_descriptor(&file_content(17)), Some(17));
        for odd in ["", "1", "x\n", "-1\n"] {
            assert_eq!(parse_descriptor(odd), None, "{odd}");
        }
    }
}
