//! How a snapshot goes through a pipe from a JVM's child to the process that asked for it.
//!
//! The asker gives a token ([`crate::attach::SNAPSHOT_PIPE`]). The agent makes a pipe, and as a sign of it a file in memory of
//! the name [`sign`], with the number of the descriptor to read from ([`shown`]). The asker finds the sign among the process's
//! open files, opens the pipe through the process, and empties the sign: it has its end.
//!
//! Then come the dump's bytes, in their order but for one piece that is known only in the end and is written over what stands
//! there. It follows the dump, and after it come its place and its length ([`trailer`]).

/// Bytes of the place and the length at the end.
pub const TRAILER: usize = 16;

/// The name of the file in memory.
#[must_use]
pub fn sign(token: &str) -> String {
    format!("heapdiff-pipe-{token}")
}

/// What stands in it.
#[must_use]
pub fn shown(descriptor: i32) -> String {
    format!("{descriptor}\n")
}

/// The descriptor that it tells, if it is complete.
#[must_use]
pub fn end_of(text: &str) -> Option<u32> {
    text.strip_suffix('\n')?.parse().ok()
}

/// The end of what goes through the pipe.
#[must_use]
pub fn trailer(at: u64, length: u64) -> [u8; TRAILER] {
    let mut bytes = [0; TRAILER];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&at.to_be_bytes());
    second.copy_from_slice(&length.to_be_bytes());
    bytes
}

/// What a trailer tells of all that came, `received` bytes with it: the place of the piece, its length, and the length of the dump,
/// behind which the piece stands. `None` where that cannot be.
#[must_use]
pub fn parts_of(received: u64, trailer: [u8; TRAILER]) -> Option<(u64, u64, u64)> {
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    let (at, length) = (number(trailer.get(..8)?)?, number(trailer.get(8..)?)?);
    let whole = received.checked_sub(TRAILER as u64)?.checked_sub(length)?;
    (at.checked_add(length)? <= whole).then_some((at, length, whole))
}

/// As [`parts_of`], for bytes in memory.
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
    fn what_came_is_taken_apart() {
        let all = [&b"0123456789ab"[..], &trailer(3, 2)].concat();
        assert_eq!(parts(&all), Some((3, 2, 10)));
        // Beyond the dump, longer than all, nothing at all.
        for (at, length) in [(9, 2), (0, 13), (u64::MAX, 2), (2, u64::MAX)] {
            let all = [&b"0123456789ab"[..], &trailer(at, length)].concat();
            assert_eq!(parts(&all), None, "{at} {length}");
        }
        assert_eq!(parts(b"short"), None);
        assert_eq!(end_of(&shown(17)), Some(17));
        for odd in ["", "1", "x\n", "-1\n"] {
            assert_eq!(end_of(odd), None, "{odd}");
        }
    }
}
