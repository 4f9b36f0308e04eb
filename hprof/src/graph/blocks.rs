//! Slots for heaps whose addresses spread over a range many times larger than the heap.
//!
//! ZGC reserves 16 times the maximum heap size, or terabytes. It takes small pages from the low end and large pages
//! from the high end. A bitmap over the whole range would be too large, and its slots would not fit in 32 bits.
//!
//! So the range is cut into blocks of equal size. A block gets a number when the pass over the objects first finds an
//! object or a reference in it. Only blocks with a number get slots (positions in the bitmaps), so an empty block costs
//! one table entry:
//!
//! ```text
//! block of the range   0  1  2  3  4  5  6  7
//! number               -  0  -  -  1  -  -  2     three blocks of slots instead of eight
//! ```
//!
//! Which thread finds a block first is random, so the blocks are sorted by address after the pass.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::bytes::array::{Array, Store};
use crate::bytes::mem;
use crate::error::Result;
use crate::graph::address::{GRAIN, Range};
use crate::ids::NONE;

/// Minimum and maximum number of slots (units of 8 bytes) in a block, as exponents of two. The blocks cover 2 MiB to 64
/// MiB of addresses.
const SMALLEST: u32 = 21 - GRAIN;
const LARGEST: u32 = 26 - GRAIN;
/// Maximum number of blocks in an address range. Blocks are as small as this limit allows.
const MOST_ENTRIES: u64 = 1 << 22;
/// Minimum number of bytes by which an address range is extended beyond the sampled addresses. An empty block costs
/// only its table entry.
const MARGIN: u64 = 1 << 40;

/// Extends an address range in both directions, so that few dumps have objects outside of the range.
pub(crate) fn extend_range(range: Range) -> Range {
    let margin = MARGIN.max(range.end - range.base);
    let end = range.end.saturating_add(margin) & !(Range::ALIGN - 1);
    Range {
        base: range.base.saturating_sub(margin) & !(Range::ALIGN - 1),
        end: end.max(range.end),
    }
}

/// The blocks of an address range. A block has a number if the pass over the objects found an object or a reference in
/// it.
#[derive(Debug)]
pub(crate) struct Blocks {
    range: Range,
    /// Number of slots (units of 8 bytes) in a block, as an exponent of two.
    shift: u32,
    /// For each block of the range, its number plus one; 0 if it has no number.
    table: Array<u32>,
    /// For each number, the block with this number, as an index into `table`.
    numbered: Vec<u32>,
}

impl Blocks {
    fn shift(range: Range) -> Option<u32> {
        (SMALLEST..=LARGEST).find(|shift| range.slots() >> shift < MOST_ENTRIES)
    }

    /// Returns true if an address range can be cut into blocks: if the range has at most [`MOST_ENTRIES`] blocks of the
    /// largest size.
    pub(crate) fn fit(range: Range) -> bool {
        Self::shift(range).is_some()
    }

    /// Creates the table for a range of addresses. No block has a number yet. Returns `None` if the range is too large.
    pub(crate) fn new(range: Range, store: &Store) -> Result<Option<Self>> {
        let Some(shift) = Self::shift(range) else {
            return Ok(None);
        };
        Ok(Some(Self {
            range,
            shift,
            table: store.zeroed((range.slots() >> shift) as usize + 1)?,
            numbered: Vec::new(),
        }))
    }

    /// Creates the table from the blocks with numbers, which an index stores in the order of their numbers. Returns
    /// `None` if a block is outside of this address range, if the blocks do not ascend, or if the table cannot be
    /// created.
    pub(crate) fn from_numbered(range: Range, numbered: Vec<u32>, store: &Store) -> Option<Self> {
        let mut blocks = Self::new(range, store).ok()??;
        if !numbered.is_sorted_by(|a, b| a < b) {
            return None;
        }
        for (number, &block) in (1..).zip(&numbered) {
            *blocks.table.get_mut(block as usize)? = number;
        }
        blocks.numbered = numbered;
        Some(blocks)
    }

    /// Returns the number of slots (units of 8 bytes) in `blocks` blocks, if this address range is cut into blocks.
    pub(crate) fn slots_in(range: Range, blocks: usize) -> Option<u64> {
        (blocks as u64).checked_shl(Self::shift(range)?)
    }

    pub(crate) fn numbered(&self) -> &[u32] {
        &self.numbered
    }

    /// Returns the number of slots (units of 8 bytes) in `blocks` blocks.
    pub(crate) const fn slots_of(&self, blocks: usize) -> u64 {
        (blocks as u64) << self.shift
    }

    /// Returns the number of slots (units of 8 bytes) in all numbered blocks.
    pub(crate) const fn slots(&self) -> u64 {
        self.slots_of(self.numbered.len())
    }

    /// Returns the number of whole blocks that have `slots` slots (units of 8 bytes) in total.
    pub(crate) const fn whole_blocks(&self, slots: u64) -> usize {
        (slots >> self.shift) as usize
    }

    /// Returns the slot (position in the bitmaps) of an address. `grain` is the distance of the address from the start
    /// of the range, in units of 8 bytes. Returns `None` if the address is not in a block with a number.
    #[inline]
    pub(crate) fn slot(&self, grain: u64) -> Option<u64> {
        let number = *self.table.get((grain >> self.shift) as usize)?;
        slot_in(number, self.shift, grain)
    }

    /// Returns the address of a slot (a position in the bitmaps). Returns `None` if no block of
    /// addresses contains the slot.
    pub(crate) fn address(&self, slot: u64) -> Option<u64> {
        let block = *self.numbered.get((slot >> self.shift) as usize)?;
        let grain = u64::from(block) << self.shift | slot & ((1 << self.shift) - 1);
        Some(self.range.base + (grain << GRAIN))
    }

    /// Returns a [`BlockWriter`], with which several threads number blocks. In total, at most `most` blocks get a
    /// number.
    pub(crate) fn writer(&mut self, most: usize) -> BlockWriter<'_> {
        BlockWriter {
            range: self.range,
            shift: self.shift,
            table: mem::as_atomic_u32(&mut self.table),
            numbered: Mutex::new(&mut self.numbered),
            most,
        }
    }

    /// Numbers the blocks by ascending address. Returns, for each new number, the old number of its block; `None` if
    /// the numbers did not change.
    pub(crate) fn order(&mut self) -> Option<Vec<u32>> {
        if self.numbered.is_sorted() {
            return None;
        }
        let mut old: Vec<u32> = (0..self.numbered.len() as u32).collect();
        old.sort_unstable_by_key(|&number| self.numbered[number as usize]);
        self.numbered.sort_unstable();
        for (number, &block) in (1..).zip(&self.numbered) {
            self.table[block as usize] = number;
        }
        Some(old)
    }

    /// Changes slots so that they fit the new numbers of blocks. A slot contains the number of its block, and
    /// [`Self::order`] has changed these numbers. `old` is the result of [`Self::order`].
    pub(crate) fn renumber(&self, slots: &mut [u32], old: &[u32]) {
        let mut new = vec![0; old.len()];
        for (number, &old) in (0_u32..).zip(old) {
            new[old as usize] = number << self.shift;
        }
        let mask = (1 << self.shift) - 1;
        slots.par_chunks_mut(1 << 15).for_each(|slots| {
            for slot in slots.iter_mut().filter(|s| **s != NONE) {
                *slot = new[(*slot >> self.shift) as usize] | *slot & mask;
            }
        });
    }
}

#[inline(always)]
fn slot_in(number: u32, shift: u32, grain: u64) -> Option<u64> {
    let number = u64::from(number.checked_sub(1)?);
    Some(number << shift | grain & ((1 << shift) - 1))
}

/// Assigns numbers to the blocks of an address range (see [`Blocks`]). All threads that scan the dump use the same
/// writer.
#[derive(Debug)]
pub(crate) struct BlockWriter<'a> {
    range: Range,
    shift: u32,
    table: &'a [AtomicU32],
    numbered: Mutex<&'a mut Vec<u32>>,
    most: usize,
}

impl BlockWriter<'_> {
    /// Returns the slot of an address, and gives its block a number if it has none. Returns `None` if the address is
    /// outside of the range or not a multiple of 8, or if the maximum number of blocks is reached.
    #[inline]
    pub(crate) fn slot(&self, address: u64) -> Option<u64> {
        let grain = self.range.slot(address)?;
        let block = (grain >> self.shift) as usize;
        let number = match self.table[block].load(Ordering::Relaxed) {
            0 => self.number(block)?,
            number => number,
        };
        slot_in(number, self.shift, grain)
    }

    #[cold]
    fn number(&self, block: usize) -> Option<u32> {
        let mut numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.table[block].load(Ordering::Relaxed);
        if known != 0 {
            return Some(known);
        }
        if numbered.len() >= self.most {
            return None;
        }
        numbered.push(block as u32);
        let number = numbered.len() as u32;
        self.table[block].store(number, Ordering::Relaxed);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TB: u64 = 1 << 40;

    #[test]
    fn slots_ascend_with_addresses_once_blocks_are_in_order() {
        let store = Store::new(None);
        let range = Range {
            base: 4 * TB,
            end: 8 * TB,
        };
        let mut blocks = Blocks::new(range, &store).unwrap().unwrap();
        let addresses = [7 * TB + 24, 4 * TB, 4 * TB + 8, 7 * TB, 5 * TB + (1 << 30)];
        let writer = blocks.writer(3);
        let mut slots = addresses.map(|a| writer.slot(a).unwrap() as u32);
        assert_eq!(writer.slot(6 * TB), None, "a fourth block");
        assert_eq!(writer.slot(4 * TB + 4), None, "within a grain");
        assert_eq!(writer.slot(9 * TB), None, "outside");
        assert_eq!(slots[0], 3);
        let old = blocks.order().unwrap();
        blocks.renumber(&mut slots, &old);
        let mut sorted = addresses.iter().zip(slots).collect::<Vec<_>>();
        sorted.sort_unstable();
        assert!(sorted.is_sorted_by(|a, b| a.1 < b.1));
        for (&address, slot) in addresses.iter().zip(slots) {
            let grain = range.slot(address).unwrap();
            assert_eq!(blocks.slot(grain), Some(u64::from(slot)));
            assert_eq!(blocks.address(u64::from(slot)), Some(address));
        }
        assert_eq!(blocks.address(blocks.slots()), None);
        assert_eq!(blocks.slot(range.slot(6 * TB).unwrap()), None);
        assert_eq!(blocks.order(), None);

        let numbered = blocks.numbered().to_vec();
        let again = Blocks::from_numbered(range, numbered.clone(), &store).unwrap();
        assert_eq!(again.address(u64::from(slots[0])), Some(addresses[0]));
        let reversed = numbered.iter().rev().copied().collect();
        assert!(Blocks::from_numbered(range, reversed, &store).is_none());
        assert!(Blocks::from_numbered(range, vec![u32::MAX], &store).is_none());
    }

    #[test]
    fn blocks_are_as_small_as_their_table_allows() {
        let store = Store::new(None);
        let range = |slots: u64| Range {
            base: 64,
            end: 64 + (slots << GRAIN),
        };
        for (slots, shift) in [
            (8, Some(18)),
            ((1 << 40) - 8, Some(18)),
            (1 << 40, Some(19)),
            ((1 << 45) - 8, Some(23)),
            (1 << 45, None),
        ] {
            let range = range(slots);
            assert_eq!(Blocks::fit(range), shift.is_some());
            assert_eq!(Blocks::slots_in(range, 3), shift.map(|shift| 3 << shift));
            let blocks = Blocks::new(range, &store).unwrap();
            assert_eq!(blocks.is_some(), shift.is_some());
            let (Some(mut blocks), Some(shift)) = (blocks, shift) else {
                continue;
            };
            let of_shift = (blocks.shift, blocks.table.len() as u64);
            assert_eq!(of_shift, (shift, (slots >> shift) + 1));
            assert_eq!((blocks.slots_of(3), blocks.slots()), (3 << shift, 0));
            let of_slots = [(3 << shift) - 1, 3 << shift].map(|slots| blocks.whole_blocks(slots));
            assert_eq!(of_slots, [2, 3]);
            // Test the last address of the range, and the first address after it.
            let writer = blocks.writer(1);
            let last = (slots - 1) & ((1 << shift) - 1);
            assert_eq!(writer.slot(range.end - 8), Some(last));
            assert_eq!(writer.slot(range.end), None);
            assert_eq!(blocks.slots(), 1 << shift);
        }
    }

    #[test]
    fn a_range_is_widened_by_its_length_or_a_terabyte() {
        let of = |base, end| {
            let wide = extend_range(Range { base, end });
            (wide.base, wide.end)
        };
        assert_eq!(of(4 * TB, 4 * TB + 64), (3 * TB, 5 * TB + 64));
        assert_eq!(of(4 * TB, 6 * TB), (2 * TB, 8 * TB));
        assert_eq!(of(64, 128), (0, TB + 128));
        // The extended range is aligned to whole bitmap words and covers the old range.
        assert_eq!(of(4 * TB + 8, 4 * TB + 72), (3 * TB, 5 * TB + 64));
        assert_eq!(of(4 * TB, u64::MAX), (0, u64::MAX));
    }

    #[test]
    fn a_range_of_all_addresses_has_no_blocks() {
        let store = Store::new(None);
        let range = Range { base: 0, end: !63 };
        assert!(Blocks::new(range, &store).unwrap().is_none());
        assert_eq!(extend_range(range), range);
    }
}
