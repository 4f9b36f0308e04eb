//! The protocol to send a snapshot through a pipe, from a JVM's forked child to the process that requested the
//! snapshot.
//!
//! 1. The requester sends a token ([`crate::attach::SNAPSHOT_PIPE`]).
//! 2. The agent creates a pipe, and a file in memory with the name [`memory_file_name`]. The file contains the number
//!    of the descriptor to read from ([`file_content`]).
//! 3. The requester finds the file among the open files of the JVM, and opens the pipe through the JVM's file
//!    descriptor.
//! 4. The requester empties the file to confirm that it has the pipe.
//!
//! Then the child sends the bytes of the dump in order. One piece of the dump is known only at the end, so wrong bytes
//! are sent in its place. After the dump, the child sends the piece, its offset in the dump, and its length
//! ([`trailer`]). The reader overwrites the wrong bytes with the piece (`hprof::bytes::piped`):
//!
//! ```text
//! dump (with wrong bytes at `at`) | piece | at, 8 bytes | length, 8 bytes
//! ```

/// The first bytes of a dump that the agent's guard (which takes a dump before the JVM dies) sends through a named
/// pipe.
pub const MARK: &[u8] = b"HPROF PIPE 1";

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

/// Returns the last bytes sent through the pipe: the offset and the length of the piece that is sent after the dump.
/// Both are big-endian.
#[must_use]
pub fn trailer(at: u64, length: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&at.to_be_bytes());
    second.copy_from_slice(&length.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_read_from_the_file_in_memory() {
        assert_eq!(parse_descriptor(&file_content(17)), Some(17));
        for odd in ["", "1", "x\n", "-1\n"] {
            assert_eq!(parse_descriptor(odd), None, "{odd}");
        }
    }
}
