//! Where objects' records are in the file: of every sixteenth object of a kind.
//!
//! An object is then found by walking some twenty records instead of a piece of the file. Positions are
//! only in an index, and made when it is written: the analysis does without.

use crate::bytes::array::Column;
use crate::graph::scan::Piece;

/// Objects from one known position to the next.
pub(crate) const EVERY: u32 = 16;

/// Positions of records, of objects with references and of leaves.
#[derive(Debug)]
pub(crate) struct Positions {
    /// Bytes from the begin of a piece, for each [`EVERY`]th object of it.
    bytes: [Column<u32>; 2],
    /// For each piece where its own begin.
    first: Vec<[usize; 2]>,
}

/// How many objects with references, and how many leaves, each piece has; `counts` are those of all.
fn in_pieces(pieces: &[Piece], counts: [u32; 2]) -> impl Iterator<Item = [u32; 2]> + '_ {
    let starts = |p: &Piece| [p.first_inner, p.first_leaf];
    let ends = pieces.iter().skip(1).map(starts).chain([counts]);
    let both = pieces.iter().map(starts).zip(ends);
    both.map(|(from, to)| [to[0].saturating_sub(from[0]), to[1].saturating_sub(from[1])])
}

/// How many positions each piece has.
pub(crate) fn sizes(pieces: &[Piece], counts: [u32; 2]) -> impl Iterator<Item = [usize; 2]> + '_ {
    in_pieces(pieces, counts).map(|of| of.map(|n| n.div_ceil(EVERY) as usize))
}

impl Positions {
    /// `None` when these are not as many as the pieces' objects ask for.
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

    /// Where to begin looking for an object: bytes from the begin of its piece. `nth` is the object's place
    /// among those of its kind in the piece.
    pub(crate) fn before(&self, piece: usize, leaf: bool, nth: u32) -> u32 {
        let kind = usize::from(leaf);
        let first = self.first.get(piece).map(|f| f[kind]);
        let at = first.and_then(|f| self.bytes[kind].get(f + (nth / EVERY) as usize));
        at.copied().unwrap_or(0)
    }
}
