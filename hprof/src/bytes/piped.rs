//! Dumps that a JVM's forked child sent through a pipe.
//!
//! The child knows the static fields only at the end, although they belong near the start of the dump. So the child
//! first sends wrong bytes for them. After the dump, it sends the right bytes (`piece` below). Their offset in the dump
//! and their length follow:
//!
//! ```text
//! dump (with wrong bytes at `at`) | piece | at, 8 bytes | length, 8 bytes
//! ```
//!
//! Both numbers are big-endian. If the guard of heapdiff's agent sends the dump (agent option `guard-pipe`), [`MARK`]
//! comes before the dump.

/// The first bytes that the guard of heapdiff's agent sends through a pipe. The dump follows.
pub const MARK: &[u8] = b"HPROF PIPE 1";
/// Number of bytes of the offset and the length at the end.
pub const TRAILER: usize = 16;

/// Decodes `trailer`, the last bytes of a transfer of `received` bytes through a pipe. Before these bytes come the
/// dump, and bytes that replace wrong bytes of the dump. Returns the offset of the replaced bytes in the dump, their
/// number, and the length of the dump. Returns `None` if these numbers contradict each other.
#[must_use]
pub fn parts_of(received: u64, trailer: [u8; TRAILER]) -> Option<(u64, u64, u64)> {
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    let (at, length) = (number(trailer.get(..8)?)?, number(trailer.get(8..)?)?);
    let whole = received.checked_sub(TRAILER as u64)?.checked_sub(length)?;
    (at.checked_add(length)? <= whole).then_some((at, length, whole))
}

/// Returns the corrected dump of a transfer through a pipe, as slices to concatenate, and true if the transfer is
/// complete. Otherwise returns `sent` unchanged, and false. `sent` does not include [`MARK`].
pub(crate) fn pieces(sent: &[u8]) -> ([&[u8]; 3], bool) {
    let found = || {
        let (at, length, whole) = parts_of(sent.len() as u64, *sent.last_chunk()?)?;
        let [at, length, whole] = [at, length, whole].map(|number| usize::try_from(number).ok());
        let (at, length, whole) = (at?, length?, whole?);
        let piece = sent.get(whole..whole.checked_add(length)?)?;
        Some([sent.get(..at)?, piece, sent.get(at + length..whole)?])
    };
    match found() {
        Some(pieces) => (pieces, true),
        None => ([sent, &[], &[]], false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(dump: &[u8], piece: &[u8], at: u64, length: u64) -> Vec<u8> {
        [dump, piece, &at.to_be_bytes(), &length.to_be_bytes()].concat()
    }

    #[test]
    fn a_dump_is_put_together_from_a_transfer() {
        let all = sent(b"0123456789", b"ab", 3, 2);
        let (pieces, is_complete) = pieces(&all);
        assert!(is_complete);
        assert_eq!(pieces.concat(), b"012ab56789");
    }

    #[test]
    fn a_transfer_with_contradictory_numbers_is_incomplete() {
        // The replacement bytes end after the dump, they are longer than all bytes before the trailer, or their offset
        // plus their length overflows.
        for (at, length) in [(9, 2), (0, 13), (u64::MAX, 2), (2, u64::MAX)] {
            let all = sent(b"0123456789", b"ab", at, length);
            let (pieces, is_complete) = pieces(&all);
            assert!(!is_complete, "{at} {length}");
            assert_eq!(pieces.concat(), all);
        }
        assert!(!pieces(b"short").1);
    }
}
