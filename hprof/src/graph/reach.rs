//! The address range of the objects in a dump, and the bitmaps that show where objects start. The range is guessed from
//! samples and extended if a pass finds objects outside of the range.

use crate::bytes::array::Store;
use crate::error::Result;
use crate::graph::address::{GRAIN, Marks, Range};
use crate::graph::blocks::{self, Blocks};
use crate::ids::NONE;

/// Number of slots (units of 8 bytes of addresses) that even the smallest file may have. The bitmaps of these slots
/// take 8 MiB.
const FREE: u64 = 32 << 20;

/// The range of addresses of a dump, and whether the bitmaps of objects cover all of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) range: Range,
    /// True if the range is divided into blocks, and only blocks with objects get bitmaps.
    in_blocks: bool,
    /// Used only if `in_blocks` is true: selects the limit for the number of slots (units of 8 bytes of addresses) in
    /// all blocks with bitmaps. False in the first pass: [`FREE`] slots, plus one slot for every two bytes of the file.
    /// True if these were too few: [`FREE`] slots, plus 16 slots for each byte of the file.
    is_roomy: bool,
}

impl Reach {
    /// Guesses the address range of the heap from the lowest and the highest sampled address. Returns `None` if ids are
    /// not addresses, or if the range is too large even when it is divided into blocks.
    ///
    /// `in_order` is false if the file is not in address order. Then samples do not show where objects are. So the
    /// range is divided into blocks, and only blocks with objects get bitmaps.
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
        let range = if in_blocks {
            blocks::extend_range(range)
        } else {
            range
        };
        (!in_blocks || Blocks::fit(range)).then_some(Self {
            range,
            in_blocks,
            is_roomy: false,
        })
    }

    /// Returns the range for the next pass, after a pass found objects without a slot (position in the bitmaps) at
    /// addresses from `low` to `high`. The new range is wider, or it has a higher limit for the number of slots (see
    /// `is_roomy`). Returns `None` if neither change is possible. Then a sorted table of ids has to be used instead of
    /// bitmaps.
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

    /// Returns the number of slots (units of 8 bytes of addresses) for which bitmaps are allocated.
    fn bitmap_slots(self, file: usize) -> u64 {
        match (self.in_blocks, self.is_roomy) {
            (false, _) => self.range.slots(),
            (true, false) => (file as u64 / 2 + FREE).min(u64::from(NONE) - 1),
            (true, true) => max_slots(file),
        }
    }

    /// Returns true if all slots (positions in the address map) fit in 32 bits. Then a pass can record references as
    /// slots, which are converted to object numbers later.
    pub(crate) fn fits_u32_slots(self, file: usize) -> bool {
        self.bitmap_slots(file) < u64::from(NONE)
    }

    /// Creates empty bitmaps for a file of this size.
    pub(crate) fn marks(self, file: usize, store: &Store) -> Result<Marks> {
        if self.in_blocks
            && let Some(blocks) = Blocks::new(self.range, store)?
        {
            return Marks::in_blocks(self.range, blocks, self.bitmap_slots(file), store);
        }
        Marks::new(self.range, store)
    }
}

/// Returns the maximum number of slots (units of 8 bytes of addresses) for a file of this size.
fn max_slots(file: usize) -> u64 {
    file as u64 * 16 + FREE
}

/// Returns true if bitmaps with this number of slots are small enough for a file of this size. A slot stands for 8
/// bytes of addresses.
pub(crate) fn fits_bitmap(slots: u64, file: usize) -> bool {
    slots <= max_slots(file)
}

/// Returns true if the bitmaps should cover the whole range. This is so if the range is at most 8 times as large as the
/// file. If slots do not fit in 32 bits, the limit is 4 times the size of the file.
fn is_compact(slots: u64, file: usize) -> bool {
    let file = file as u64;
    slots <= file + FREE && (slots < u64::from(NONE) || slots <= file / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x7_0000_0000;

    /// Returns the [`Reach`] (guessed address range) of a dump whose sampled addresses begin at `BASE` and cover
    /// `slots` units of 8 bytes. The file has `file` bytes.
    fn of(slots: u64, file: u64, in_order: bool) -> Reach {
        Reach::new(BASE, BASE + (slots << GRAIN), file as usize, in_order).unwrap()
    }

    #[test]
    fn ranges_begin_and_end_at_whole_words() {
        let of = |low, high| Reach::new(low, high, 1000, true).map(|r| (r.range.base, r.range.end));
        assert_eq!(of(BASE + 72, BASE + 136), Some((BASE + 64, BASE + 192)));
        assert_eq!(of(BASE + 64, BASE + 192), Some((BASE + 64, BASE + 192)));
        // A range has at least 64 bytes: a word of the bitmap has a bit for each 8 bytes.
        assert_eq!(of(BASE, BASE), Some((BASE, BASE + 64)));
        assert_eq!(of(BASE + 128, BASE), Some((BASE + 128, BASE + 192)));
        // There is no range if the lowest address is not a multiple of 8, or if the end of the range, rounded up to a
        // multiple of 64, does not fit in 64 bits.
        assert_eq!(of(BASE + 4, BASE + 64), None);
        assert_eq!(of(BASE, u64::MAX), None);
    }

    #[test]
    fn bitmaps_cover_all_addresses_if_these_are_dense_enough() {
        const WORD: u64 = 64 >> GRAIN;
        let store = Store::new(None);
        let mb = 1 << 20;
        let all = u64::from(NONE) + 1;
        for (slots, file, in_order, expected) in [
            (FREE + mb, mb, true, false),
            (FREE + mb, mb, false, true),
            (FREE + mb + WORD, mb, true, true),
            // Ranges whose slots do not fit in 32 bits.
            (all, all * 2, true, false),
            (all, all * 2 - 2, true, true),
            (all - WORD, all, true, false),
        ] {
            let reach = of(slots, file, in_order);
            assert_eq!(reach.in_blocks, expected, "{slots} slots, {file} bytes");
            // A range that is divided into blocks is extended in both directions, so it has more slots than the samples
            // cover. A range without blocks is not extended.
            assert_eq!(reach.range.slots() > slots, expected);
            if slots < all - WORD {
                let mut marks = reach.marks(file as usize, &store).unwrap();
                assert_eq!(marks.writers().1.is_some(), expected);
            }
        }
    }

    #[test]
    fn objects_outside_widen_the_range_or_add_space_once() {
        let file = 1 << 20;
        let flat = of(1 << 10, file, true);
        let end = flat.range.end;
        // All objects are in the range, so another pass would not help.
        assert_eq!(flat.with(BASE, end, file as usize), None);
        assert_eq!(flat.with(BASE + 64, end - 64, file as usize), None);
        let wider = flat.with(BASE - 64, end, file as usize).unwrap();
        assert_eq!((wider.range.base, wider.range.end), (BASE - 64, end));
        let wider = flat.with(BASE, end + 64, file as usize).unwrap();
        assert_eq!((wider.range.base, wider.range.end), (BASE, end + 64));
        assert!(!wider.in_blocks && !wider.is_roomy);

        let blocks = of(1 << 10, file, false);
        let (base, end) = (blocks.range.base, blocks.range.end);
        let roomy = blocks.with(base, end, file as usize).unwrap();
        assert_eq!((roomy.range, roomy.in_blocks), (blocks.range, true));
        assert!(roomy.is_roomy);
        assert_eq!(roomy.with(base, end, file as usize), None);
        // If `with` extends the range of addresses, the other fields stay unchanged.
        for (reach, is_roomy) in [(blocks, false), (roomy, true)] {
            let wider = reach.with(base, end + 64, file as usize).unwrap();
            assert!(wider.in_blocks && wider.range.end > end);
            assert_eq!(wider.is_roomy, is_roomy);
        }
        assert_eq!(blocks.with(base, u64::MAX, file as usize), None);
    }

    #[test]
    fn slots_of_references_fit_in_32_bits_or_take_another_pass() {
        let all = u64::from(NONE);
        let flat = |slots| of(slots, all * 4, true);
        assert!(flat(all - 7).fits_u32_slots(0));
        assert!(!flat(all + 1).fits_u32_slots(0));
        let blocks = of(1 << 10, 1 << 20, false);
        let roomy = blocks.with(blocks.range.base, blocks.range.end, 1 << 20);
        let roomy = roomy.unwrap();
        let largest = ((all - FREE) / 16) as usize;
        for (file, of_roomy) in [(1000, true), (largest, true), (largest + 1, false)] {
            assert!(blocks.fits_u32_slots(file));
            assert_eq!(roomy.fits_u32_slots(file), of_roomy, "{file}");
        }
        assert_eq!(blocks.bitmap_slots(10), FREE + 5);
        assert_eq!(blocks.bitmap_slots(usize::MAX), all - 1);
        assert_eq!(roomy.bitmap_slots(10), FREE + 160);
        assert_eq!(flat(1 << 10).bitmap_slots(10), 1 << 10);
        assert!(fits_bitmap(max_slots(10), 10) && !fits_bitmap(max_slots(10) + 1, 10));
    }
}
