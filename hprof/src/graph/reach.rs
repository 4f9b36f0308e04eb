//! How far the addresses of a dump reach, and which bitmaps mark its objects: guessed from samples, and learnt
//! where a pass finds objects outside.

use crate::bytes::array::Store;
use crate::error::Result;
use crate::graph::address::{GRAIN, Marks, Range};
use crate::graph::blocks::{self, Blocks};
use crate::ids::NONE;

/// Slots whose bitmaps any file may have, however small: 8 MB.
const FREE: u64 = 32 << 20;

/// A range of addresses, and how it is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) range: Range,
    /// Whether only blocks with objects have bitmaps.
    in_blocks: bool,
    /// Whether blocks may be as many as the file can be in proportion to: more than a first guess allows.
    is_roomy: bool,
}

impl Reach {
    /// From the lowest address to the highest; `None` when ids are no addresses, or very sparse ones. Of a file in no order
    /// samples say little of where its objects are.
    pub(crate) fn new(low: u64, high: u64, file: usize, in_order: bool) -> Option<Self> {
        let base = low & !(Range::ALIGN - 1);
        let end = high.checked_next_multiple_of(Range::ALIGN)?;
        let range = Range {
            base,
            end: end.max(base + Range::ALIGN),
        };
        if low.trailing_zeros() < GRAIN {
            return None;
        }
        let in_blocks = !in_order || !is_compact(range.slots(), file);
        let range = match in_blocks {
            true => blocks::widened(range),
            false => range,
        };
        (!in_blocks || Blocks::fit(range)).then_some(Self {
            range,
            in_blocks,
            is_roomy: false,
        })
    }

    /// What a pass needs that also came upon objects from one address to another without a place.
    pub(crate) fn with(self, low: u64, high: u64, file: usize) -> Option<Self> {
        let (low, high) = (low.min(self.range.base), high.max(self.range.end));
        if (low, high) == (self.range.base, self.range.end) {
            return (self.in_blocks && !self.is_roomy).then_some(Self {
                is_roomy: true,
                ..self
            });
        }
        let wider = Self::new(low, high, file, !self.in_blocks)?;
        Some(Self {
            is_roomy: self.is_roomy,
            ..wider
        })
    }

    /// Slots that bitmaps are made for.
    fn room(self, file: usize) -> u64 {
        match (self.in_blocks, self.is_roomy) {
            (false, _) => self.range.slots(),
            (true, false) => (file as u64 / 2 + FREE).min(u64::from(NONE) - 1),
            (true, true) => most(file),
        }
    }

    /// Whether a reference's slot fits in the 32 bits that hold it until it is translated.
    pub(crate) fn is_one_step(self, file: usize) -> bool {
        self.room(file) < u64::from(NONE)
    }

    /// Empty bitmaps.
    pub(crate) fn marks(self, file: usize, store: &Store) -> Result<Marks> {
        if self.in_blocks
            && let Some(blocks) = Blocks::new(self.range, store)?
        {
            return Marks::in_blocks(self.range, blocks, self.room(file), store);
        }
        Marks::new(self.range, store)
    }
}

/// The slots whose bitmaps are in proportion to a file.
fn most(file: usize) -> u64 {
    file as u64 * 16 + FREE
}

/// Whether bitmaps over so many slots are in proportion to a file.
pub(crate) fn is_flat(slots: u64, file: usize) -> bool {
    slots <= most(file)
}

/// Whether slots are so few that bitmaps over all of them are best: addresses of eight times the file, of four times where
/// slots do not fit in 32 bits.
fn is_compact(slots: u64, file: usize) -> bool {
    let file = file as u64;
    slots <= file + FREE && (slots < u64::from(NONE) || slots <= file / 2)
}
