//! The offsets of objects' records in the file, for every sixteenth object with references and for every sixteenth
//! object without references.
//!
//! To find an object in the file, a walk starts at the stored offset before the object and reads about twenty records.
//! Without these offsets, it reads a whole piece of the file (about a megabyte). The offsets are computed when an index
//! is written, and exist only in the index. The analysis does not need them.

use crate::bytes::array::Column;
use crate::graph::scan::Piece;

/// Number of objects in a piece of the file for each record offset that an index stores. Objects with references and
/// objects without references are counted separately.
pub(crate) const EVERY: u32 = 16;

/// Offsets of the records of objects with references, and of objects without references.
#[derive(Debug)]
pub(crate) struct Positions {
    /// For every [`EVERY`]th object in a piece of the file, the offset of its record from the start of the piece, in
    /// bytes. The first array is for objects with references, the second one for objects without references.
    bytes: [Column<u32>; 2],
    /// For each piece of the file, the positions in the two arrays of `bytes` at which the offsets of the piece begin.
    first: Vec<[usize; 2]>,
}

/// Returns how many objects with references and how many objects without references each piece of the file has.
/// `counts` has the totals of all pieces.
fn counts_per_piece(pieces: &[Piece], counts: [u32; 2]) -> impl Iterator<Item = [u32; 2]> + '_ {
    let starts = |p: &Piece| [p.first_inner, p.first_leaf];
    let ends = pieces.iter().skip(1).map(starts).chain([counts]);
    let both = pieces.iter().map(starts).zip(ends);
    both.map(|(from, to)| [to[0].saturating_sub(from[0]), to[1].saturating_sub(from[1])])
}

/// Returns the numbers of record offsets that an index stores for each piece of the file.
pub(crate) fn sizes(pieces: &[Piece], counts: [u32; 2]) -> impl Iterator<Item = [usize; 2]> + '_ {
    counts_per_piece(pieces, counts).map(|of| of.map(|n| n.div_ceil(EVERY) as usize))
}

impl Positions {
    /// Creates the positions from the record offsets that an index stores; `None` if the number of offsets does not
    /// agree with the number of objects in the pieces of the file.
    pub(crate) fn new(pieces: &[Piece], counts: [u32; 2], bytes: [Column<u32>; 2]) -> Option<Self> {
        let mut next = [0; 2];
        let first = sizes(pieces, counts).map(|own| {
            let first = next;
            next = [next[0] + own[0], next[1] + own[1]];
            first
        });
        let first = first.collect();
        (next == [bytes[0].len(), bytes[1].len()]).then_some(Self { bytes, first })
    }

    /// Returns the offset at which to start the search for an object, in bytes from the start of its piece of the file.
    /// `nth` is the number of the object among the objects of its kind (with or without references) in the piece.
    pub(crate) fn before(&self, piece: usize, leaf: bool, nth: u32) -> u32 {
        let kind = usize::from(leaf);
        let first = self.first.get(piece).map(|f| f[kind]);
        let at = first.and_then(|f| self.bytes[kind].get(f + (nth / EVERY) as usize));
        at.copied().unwrap_or(0)
    }
}
