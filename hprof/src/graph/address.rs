//! Maps an object's address to its number, in O(1). The map takes about 1/30 of the heap's size.
//!
//! Object addresses are multiples of 8 bytes. The slot of an address is its distance from the start of the used address
//! range, in units of 8 bytes. A bitmap has one bit for each slot. The bit is set if an object with references starts
//! there. A second bitmap, interleaved with the first, marks the leaves, which are objects without references. The rank
//! of an object is the number of set bits before its own in the bitmap of its kind. To compute it quickly, every fourth
//! pair of words has a count.
//!
//! If the file is in address order, ranks are object numbers. If the file consists of a few runs (see `runs.rs`), a
//! table of the runs converts ranks to numbers. Parallel and Serial GC write such files. For files in any other order
//! (merged dumps), a table converts each rank. If ids are not addresses, a sorted table of all ids is used instead.

#[cfg(test)]
#[path = "address_tests.rs"]
mod edge_tests;

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::bytes::array::{Array, Column, Store};
use crate::bytes::mem;
use crate::error::Result;
use crate::graph::blocks::{BlockWriter, Blocks};
use crate::graph::runs::RunTable;
use crate::graph::scan::Scanned;
use crate::ids::NONE;

/// Number of bytes of heap that a slot covers, as an exponent of two: 2^3 = 8 bytes.
pub(crate) const GRAIN: u32 = 3;
/// Number of bitmap words for 64 slots: one word for objects with references, and one for objects without references.
const PAIR: usize = 2;
/// Number of pairs of bitmap words in a line. The words of a line take 64 bytes, a cache line. A line also has two
/// counts from which ranks are computed: one for objects with references, and one for objects without references.
pub(crate) const PAIRS_IN_LINE: usize = 4;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) base: u64,
    pub(crate) end: u64,
}

impl Range {
    /// Address ranges begin and end at multiples of this number.
    pub(crate) const ALIGN: u64 = 64;

    pub(crate) fn slots(self) -> u64 {
        (self.end - self.base) >> GRAIN
    }

    /// Returns the distance of an address from the start of the range, in units of 8 bytes. Returns `None` if the
    /// address is outside of the range or not a multiple of 8.
    #[inline(always)]
    pub(crate) fn slot(self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.end - self.base && offset & 7 == 0).then_some(offset >> GRAIN)
    }
}

/// The slots of an address range. Without `blocks`, every 8 bytes of the range are a slot. With `blocks`, an address
/// has a slot only if its block has a number.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) range: Range,
    pub(crate) blocks: Option<Blocks>,
}

impl From<Range> for Space {
    fn from(range: Range) -> Self {
        Self {
            range,
            blocks: None,
        }
    }
}

impl Space {
    /// Returns the slot of an address (its position in the bitmaps); `None` if the address has no slot.
    #[inline(always)]
    pub(crate) fn slot(&self, address: u64) -> Option<u64> {
        let grain = self.range.slot(address)?;
        match &self.blocks {
            None => Some(grain),
            Some(blocks) => blocks.slot(grain),
        }
    }

    /// Returns the address of a slot (a position in the bitmaps).
    pub(crate) fn address(&self, slot: u64) -> Option<u64> {
        match &self.blocks {
            None => Some(self.range.base + (slot << GRAIN)),
            Some(blocks) => blocks.address(slot),
        }
    }

    pub(crate) fn slots(&self) -> u64 {
        let blocks = self.blocks.as_ref();
        blocks.map_or(self.range.slots(), Blocks::slots)
    }
}

/// Returns the number of words that the two bitmaps (for objects with references, and for objects without references)
/// take for a number of slots.
const fn words(slots: u64) -> usize {
    (slots.div_ceil(64) as usize).next_multiple_of(PAIRS_IN_LINE) * PAIR
}

/// Two bitmaps of object starts, one for objects with references and one for objects without. Threads set bits in them.
/// [`Marks::into_ranks`] converts the bitmaps to [`Ranks`].
pub(crate) struct Marks {
    space: Space,
    bits: Array<u64>,
}

impl Marks {
    pub(crate) fn new(range: Range, store: &Store) -> Result<Self> {
        Ok(Self {
            space: range.into(),
            bits: store.zeroed(words(range.slots()))?,
        })
    }

    /// Creates bitmaps for at most `slots` slots. The pass over the objects assigns the slots to those blocks of the
    /// range in which it finds objects, or to which it finds references.
    pub(crate) fn in_blocks(
        range: Range,
        blocks: Blocks,
        slots: u64,
        store: &Store,
    ) -> Result<Self> {
        let slots = blocks.slots_of(blocks.whole_blocks(slots));
        let space = Space {
            range,
            blocks: Some(blocks),
        };
        Ok(Self {
            space,
            bits: store.zeroed(words(slots))?,
        })
    }

    #[cfg(test)]
    pub(crate) fn writer(&mut self) -> MarkWriter<'_> {
        self.writers().0
    }

    pub(crate) fn writers(&mut self) -> (MarkWriter<'_>, Option<BlockWriter<'_>>) {
        let slots = (self.bits.len() / PAIR) as u64 * 64;
        let marks = MarkWriter {
            range: self.space.range,
            bits: mem::as_atomic_u64(&mut self.bits),
        };
        let blocks = self.space.blocks.as_mut();
        let blocks = blocks.map(|b| {
            let most = b.whole_blocks(slots);
            b.writer(most)
        });
        (marks, blocks)
    }

    /// Sorts the blocks by address. This changes the slots of the objects, so also replaces the slots in `targets` by
    /// the new slots. Frees the bitmap words of unused blocks.
    pub(crate) fn order(&mut self, targets: &mut [u32], store: &Store) -> Result<()> {
        let Some(blocks) = &mut self.space.blocks else {
            return Ok(());
        };
        let own = words(blocks.slots_of(1));
        let all = blocks.numbered().len() * own;
        let Some(old) = blocks.order() else {
            return self.bits.cut(all);
        };
        let mut bits = store.zeroed(all)?;
        bits.par_chunks_mut(own).zip(&old).for_each(|(to, &from)| {
            let from = from as usize * own;
            to.copy_from_slice(&self.bits[from..from + own]);
        });
        self.bits = bits;
        blocks.renumber(targets, &old);
        Ok(())
    }

    /// Computes the counts from which ranks are derived. Cost: one pass over the bitmaps.
    pub(crate) fn into_ranks(self, store: &Store) -> Result<Ranks> {
        let lines = self.bits.len() / (PAIR * PAIRS_IN_LINE);
        let mut counts = store.zeroed::<u32>(lines * 2)?;
        let chunk = 1 << 14;
        let sums: Vec<([u32; 2], u64)> = counts
            .par_chunks_mut(chunk * 2)
            .zip(self.bits.par_chunks(chunk * PAIR * PAIRS_IN_LINE))
            .map(|(counts, bits)| {
                let mut sum = [0_u32; 2];
                let mut both = 0;
                for (count, line) in counts
                    .chunks_exact_mut(2)
                    .zip(bits.chunks_exact(PAIR * PAIRS_IN_LINE))
                {
                    let before = sum;
                    for pair in line.chunks_exact(PAIR) {
                        sum[0] += pair[0].count_ones();
                        sum[1] += pair[1].count_ones();
                        both |= pair[0] & pair[1];
                    }
                    // Look-ups do not use the counts of a line (a cache line of the bitmaps) without set bits. So these
                    // counts are not written: memory pages that are never written take no physical memory.
                    if sum != before {
                        count.copy_from_slice(&before);
                    }
                }
                (sum, both)
            })
            .collect();
        let mut total = [0_u32; 2];
        let bases: Vec<[u32; 2]> = sums
            .iter()
            .map(|(s, _)| {
                let base = total;
                total = [total[0] + s[0], total[1] + s[1]];
                base
            })
            .collect();
        counts
            .par_chunks_mut(chunk * 2)
            .zip(bases)
            .zip(&sums)
            .filter(|(_, (sum, _))| *sum != [0, 0])
            .for_each(|((counts, base), _)| {
                for count in counts.chunks_exact_mut(2) {
                    count[0] += base[0];
                    count[1] += base[1];
                }
            });
        Ok(Ranks {
            space: self.space,
            bits: self.bits.into(),
            counts: counts.into(),
            marked: total,
            doubled: sums.iter().any(|(_, both)| *both != 0),
        })
    }
}

/// The bitmaps of object starts (see [`Marks`]), shared by the threads that scan the dump.
#[derive(Clone, Copy)]
pub(crate) struct MarkWriter<'a> {
    pub(crate) range: Range,
    bits: &'a [AtomicU64],
}

/// Bits of one pair of bitmap words that are not written to the bitmaps yet. Neighbouring objects are collected here,
/// so that most of them need no atomic operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pending {
    word: u64,
    bits: [u64; 2],
}

impl MarkWriter<'_> {
    /// Sets the bit for the start of an object in the bitmap of its kind (with or without references). If two objects
    /// of the same kind have one address, they set the same bit.
    #[inline(always)]
    pub(crate) fn mark(&self, pending: &mut Pending, slot: u64, leaf: bool) {
        let word = slot >> 6;
        if word != pending.word {
            self.flush(pending);
            pending.word = word;
        }
        pending.bits[usize::from(leaf)] |= 1 << (slot & 63);
    }

    #[inline]
    pub(crate) fn flush(&self, pending: &mut Pending) {
        let at = pending.word as usize * PAIR;
        for (i, bits) in pending.bits.iter_mut().enumerate() {
            if *bits != 0 {
                self.bits[at + i].fetch_or(*bits, Ordering::Relaxed);
                *bits = 0;
            }
        }
    }
}

/// The finished bitmaps of object starts, and the counts from which ranks are computed. (The rank of an object is the
/// number of objects of the same kind at lower addresses.)
#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) space: Space,
    pub(crate) bits: Column<u64>,
    pub(crate) counts: Column<u32>,
    /// Number of set bits in the bitmap of objects with references, and in the bitmap of objects without references.
    pub(crate) marked: [u32; 2],
    /// True if an object with references and an object without references have the same address.
    pub(crate) doubled: bool,
}

impl Ranks {
    /// Number of cache lines of the bitmaps in a stretch. An index file stores the bitmaps in stretches of this length.
    /// Stretches without set bits are left out (see [`Ranks::stretches`]). The bitmap words of one stretch take 4 KiB,
    /// a page of memory.
    const STRETCH: usize = 64;

    /// Returns the rank of the object that starts at a slot, and true if the object has no references. The rank is the
    /// number of objects of its kind at lower addresses. Returns `None` if no object starts there.
    #[inline(always)]
    pub(crate) fn rank(&self, slot: u64) -> Option<(u32, bool)> {
        self.view().rank(slot)
    }

    #[inline(always)]
    fn view(&self) -> RanksView<'_> {
        RanksView {
            bits: &self.bits,
            counts: &self.counts,
        }
    }

    /// Returns how many objects with references, and how many objects without references, start before a slot.
    pub(crate) fn before(&self, slot: u64) -> [u32; 2] {
        let word = (slot >> 6) as usize;
        // A line (a cache line of the bitmaps) without set bits has no valid counts. Use the next line that has set
        // bits.
        let line = word / PAIRS_IN_LINE;
        let words = |line: usize| {
            let start = line * PAIRS_IN_LINE * PAIR;
            self.bits.get(start..start + PAIRS_IN_LINE * PAIR)
        };
        let is_empty = |line: &usize| words(*line).is_none_or(|w| w.iter().all(|&w| w == 0));
        let Some(counted) = (line..self.lines()).find(|l| !is_empty(l)) else {
            return self.marked;
        };
        let mut before = [self.counts[counted * 2], self.counts[counted * 2 + 1]];
        if counted > line {
            return before;
        }
        for (i, pair) in words(line)
            .unwrap_or_default()
            .chunks_exact(PAIR)
            .enumerate()
        {
            let mask = match i.cmp(&(word % PAIRS_IN_LINE)) {
                std::cmp::Ordering::Less => u64::MAX,
                std::cmp::Ordering::Equal => (1 << (slot & 63)) - 1,
                std::cmp::Ordering::Greater => 0,
            };
            before[0] += (pair[0] & mask).count_ones();
            before[1] += (pair[1] & mask).count_ones();
        }
        before
    }

    /// Returns the address of the object with this rank. If `leaf` is true, the rank is among the objects without
    /// references, otherwise among the objects with references. The search starts at the slot `from`, which must not
    /// come after the object.
    pub(crate) fn address(&self, rank: u32, leaf: bool, from: u64) -> Option<u64> {
        let kind = usize::from(leaf);
        let first = (from >> 6) as usize / PAIRS_IN_LINE;
        let mut before = *self.counts.get(first * 2 + kind)?;
        let words = self.bits.get(first * PAIRS_IN_LINE * PAIR..)?;
        for (pair, words) in words.chunks_exact(PAIR).enumerate() {
            let mut word = words[kind];
            let own = word.count_ones();
            if rank < before {
                return None;
            }
            if rank - before < own {
                for _ in 0..rank - before {
                    word &= word - 1;
                }
                let at = (first * PAIRS_IN_LINE + pair) as u64;
                let slot = at << 6 | u64::from(word.trailing_zeros());
                return self.space.address(slot);
            }
            before += own;
        }
        None
    }

    /// Returns the stretches (parts of the bitmaps, see [`Self::STRETCH`]) in which objects start. The first list has
    /// the numbers of these stretches, ascending. The second list has their bitmap words, one stretch after the other,
    /// and the third list has their counts in the same way.
    pub(crate) fn stretches(&self) -> (Vec<u32>, Vec<u64>, Vec<u32>) {
        let words = Self::STRETCH * PAIR * PAIRS_IN_LINE;
        let marked = |(_, words): &(usize, &[u64])| words.iter().any(|&w| w != 0);
        let numbers: Vec<u32> = self
            .bits
            .par_chunks(words)
            .enumerate()
            .filter(marked)
            .map(|(number, _)| number as u32)
            .collect();
        let part = |number: u32, of: usize| number as usize * of..(number as usize + 1) * of;
        let bits = numbers.iter().flat_map(|&n| {
            let end = self.bits.len();
            let range = part(n, words);
            &self.bits[range.start..range.end.min(end)]
        });
        let counts = numbers.iter().flat_map(|&n| {
            let end = self.counts.len();
            let range = part(n, Self::STRETCH * 2);
            &self.counts[range.start..range.end.min(end)]
        });
        (
            numbers.clone(),
            bits.copied().collect(),
            counts.copied().collect(),
        )
    }

    /// Creates the map from the stretches (parts of the bitmaps, see [`Self::STRETCH`]) that an index file stores.
    /// Returns `None` if the numbers of the stretches are not ascending, or if their numbers or lengths do not fit the
    /// address range. Does not check the values in `counts`.
    pub(crate) fn from_stretches(
        space: Space,
        marked: [u32; 2],
        (numbers, bits, counts): (&[u32], &[u64], &[u32]),
        store: &Store,
    ) -> Option<Self> {
        let mut all = store.zeroed(words(space.slots())).ok()?;
        let lines = all.len() / (PAIR * PAIRS_IN_LINE);
        let mut all_counts = store.zeroed::<u32>(lines * 2).ok()?;
        let last = lines.div_ceil(Self::STRETCH) as u32;
        if numbers.iter().any(|&n| n >= last) || !numbers.is_sorted_by(|a, b| a < b) {
            return None;
        }
        place(
            &mut all,
            numbers,
            bits,
            Self::STRETCH * PAIR * PAIRS_IN_LINE,
        )?;
        place(&mut all_counts, numbers, counts, Self::STRETCH * 2)?;
        Some(Self {
            space,
            bits: all.into(),
            counts: all_counts.into(),
            marked,
            doubled: false,
        })
    }

    fn lines(&self) -> usize {
        self.bits.len() / (PAIR * PAIRS_IN_LINE)
    }

    /// Calls `visit` for each address at which an object starts, in these lines of the bitmaps. The arguments are the
    /// address, the object's rank, and true if the object has no references.
    fn for_each_in_order(
        &self,
        lines: std::ops::Range<usize>,
        mut visit: impl FnMut(u64, u32, bool),
    ) {
        for line in lines {
            let mut ranks = [self.counts[line * 2], self.counts[line * 2 + 1]];
            for word in line * PAIRS_IN_LINE..(line + 1) * PAIRS_IN_LINE {
                let pair = [self.bits[word * PAIR], self.bits[word * PAIR + 1]];
                let mut both = pair[0] | pair[1];
                while both != 0 {
                    let bit = both.trailing_zeros();
                    both &= both - 1;
                    let leaf = usize::from(pair[0] >> bit & 1 == 0);
                    let slot = (word as u64) << 6 | u64::from(bit);
                    if let Some(address) = self.space.address(slot) {
                        visit(address, ranks[leaf], leaf == 1);
                    }
                    // Both bits of a slot are set if an object with references and an object without references have
                    // the same address.
                    ranks[0] += (pair[0] >> bit & 1) as u32;
                    ranks[1] += (pair[1] >> bit & 1) as u32;
                }
            }
        }
    }
}

/// The arrays of [`Ranks`] as slices. In a loop, this saves a look-up of the array's location for each slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RanksView<'a> {
    bits: &'a [u64],
    counts: &'a [u32],
}

impl RanksView<'_> {
    /// See [`Ranks::rank`].
    #[inline(always)]
    fn rank(self, slot: u64) -> Option<(u32, bool)> {
        let word = (slot >> 6) as usize;
        let line = word / PAIRS_IN_LINE;
        let bits = self
            .bits
            .get(line * PAIRS_IN_LINE * PAIR..(line + 1) * PAIRS_IN_LINE * PAIR)?;
        let at = word % PAIRS_IN_LINE;
        let bit = 1_u64 << (slot & 63);
        let leaf = if bits[at * PAIR] & bit != 0 {
            0
        } else if bits[at * PAIR + 1] & bit != 0 {
            1
        } else {
            return None;
        };
        let mut rank = self.counts[line * 2 + leaf];
        for i in 0..PAIRS_IN_LINE {
            let word = bits[i * PAIR + leaf];
            let mask = if i < at {
                u64::MAX
            } else if i == at {
                bit - 1
            } else {
                0
            };
            rank += (word & mask).count_ones();
        }
        Some((rank, leaf == 1))
    }

    /// Prefetches the memory that [`Ranks::rank`] reads for this slot.
    #[inline(always)]
    fn fetch(self, slot: u64) {
        let line = (slot >> 6) as usize / PAIRS_IN_LINE;
        mem::prefetch(self.bits, line * PAIRS_IN_LINE * PAIR);
        mem::prefetch(self.counts, line * 2);
    }
}

/// Copies each of the `parts` into `all`. Part `n` goes to the index `numbers[n] * size`. All parts have `size`
/// elements, but the part at the end of `all` may be shorter. Returns `None` if the lengths do not match.
fn place<T: bytemuck::Pod + Send + Sync>(
    all: &mut [T],
    numbers: &[u32],
    parts: &[T],
    size: usize,
) -> Option<()> {
    let len = |number: &u32| size.min(all.len() - *number as usize * size);
    if numbers.iter().map(len).sum::<usize>() != parts.len() {
        return None;
    }
    // Each task covers 64 parts of `all`, which have `size` elements each. If the map has few objects, most of these
    // parts are empty. So a smaller task would have too little work.
    all.par_chunks_mut(size << 6)
        .enumerate()
        .for_each(|(task, all)| {
            let first = numbers.partition_point(|&n| (n as usize) < task << 6);
            let own = numbers[first..].iter().enumerate();
            for (at, &number) in own.take_while(|n| (*n.1 as usize) < (task + 1) << 6) {
                let to = (number as usize - (task << 6)) * size;
                let end = all.len().min(to + size);
                let from = (first + at) * size;
                all[to..end].copy_from_slice(&parts[from..from + end - to]);
            }
        });
    Some(())
}

/// Maps ids to object numbers.
#[derive(Debug)]
pub(crate) enum AddressMap {
    /// For files in address order: the number follows from the rank (the number of objects of the same kind at lower
    /// addresses).
    Ordered(Ranks),
    /// For files that consist of a few runs (parts in address order): the number is the rank plus a constant. `runs`
    /// contains the constant for each run.
    Runs { ranks: Ranks, runs: RunTable },
    /// For files in any other order: two tables contain the object number for each rank.
    Permuted {
        ranks: Ranks,
        with_refs: Column<u32>,
        leaves: Column<u32>,
    },
    /// For ids that are not addresses: all ids, sorted, and the object number of each.
    Sorted {
        ids: Column<u64>,
        numbers: Column<u32>,
    },
}

/// The ranges of object numbers: class objects are below `classes`, objects with references below `inner`, and leaves
/// (objects without references) from `inner` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) classes: u32,
    pub(crate) inner: u32,
}

impl AddressMap {
    /// Returns the number of the object at a slot (a position in the address map), or [`NONE`].
    #[inline(always)]
    pub(crate) fn by_slot(&self, slot: u64, split: Split) -> u32 {
        self.view().map_or(NONE, |view| view.by_slot(slot, split))
    }

    /// Returns the map with its arrays as slices, for loops over many slots (positions in the map); `None` if ids are
    /// not addresses.
    #[inline(always)]
    pub(crate) fn view(&self) -> Option<MapView<'_>> {
        Some(match self {
            Self::Ordered(ranks) => MapView::Ordered(ranks.view()),
            Self::Runs { ranks, runs } => MapView::Runs(ranks.view(), runs),
            Self::Permuted {
                ranks,
                with_refs,
                leaves,
            } => MapView::Permuted(ranks.view(), [with_refs, leaves]),
            Self::Sorted { .. } => return None,
        })
    }

    /// Returns the number of the object with this id, or [`NONE`]. The map does not contain class objects.
    #[inline]
    pub(crate) fn by_id(&self, id: u64, split: Split) -> u32 {
        match self {
            Self::Ordered(ranks) | Self::Runs { ranks, .. } | Self::Permuted { ranks, .. } => ranks
                .space
                .slot(id)
                .map_or(NONE, |slot| self.by_slot(slot, split)),
            Self::Sorted { ids, numbers } => ids.binary_search(&id).map_or(NONE, |i| numbers[i]),
        }
    }

    /// Prefetches the memory that a look-up of this id reads.
    #[inline(always)]
    pub(crate) fn fetch(&self, id: u64) {
        if let Some(ranks) = self.ranks()
            && let Some(slot) = ranks.space.slot(id)
        {
            ranks.view().fetch(slot);
        }
    }

    /// Divides the map into `parts` equal parts, and visits the objects of the part with the index `part`. Calls
    /// `visit` with the id and the number of each object, in the order of ids.
    pub(crate) fn for_each_in_order(
        &self,
        part: usize,
        parts: usize,
        split: Split,
        mut visit: impl FnMut(u64, u32),
    ) {
        let cut = |len: usize| {
            let at = |part: usize| (len as u128 * part as u128 / parts.max(1) as u128) as usize;
            at(part)..at(part + 1)
        };
        match self {
            Self::Ordered(ranks) => {
                ranks.for_each_in_order(cut(ranks.lines()), |id, rank, leaf| {
                    visit(id, rank + if leaf { split.inner } else { split.classes });
                })
            }
            Self::Runs { ranks, runs } => {
                ranks.for_each_in_order(cut(ranks.lines()), |id, rank, leaf| {
                    let slot = ranks.space.slot(id).unwrap_or(0);
                    let number = runs.number(slot, rank, leaf);
                    visit(id, number + if leaf { split.inner } else { split.classes });
                })
            }
            Self::Permuted {
                ranks,
                with_refs,
                leaves,
            } => ranks.for_each_in_order(cut(ranks.lines()), |id, rank, leaf| {
                let numbers = if leaf { leaves } else { with_refs };
                visit(id, numbers[rank as usize]);
            }),
            Self::Sorted { ids, numbers } => {
                let range = cut(ids.len());
                for (&id, &number) in ids[range.clone()].iter().zip(&numbers[range]) {
                    visit(id, number);
                }
            }
        }
    }

    pub(crate) fn ranks(&self) -> Option<&Ranks> {
        match self {
            Self::Ordered(ranks) | Self::Runs { ranks, .. } | Self::Permuted { ranks, .. } => {
                Some(ranks)
            }
            Self::Sorted { .. } => None,
        }
    }
}

/// An [`AddressMap`] whose arrays are slices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MapView<'a> {
    Ordered(RanksView<'a>),
    Runs(RanksView<'a>, &'a RunTable),
    Permuted(RanksView<'a>, [&'a [u32]; 2]),
}

impl MapView<'_> {
    /// See [`AddressMap::by_slot`].
    #[inline(always)]
    pub(crate) fn by_slot(self, slot: u64, split: Split) -> u32 {
        let (Self::Ordered(ranks) | Self::Runs(ranks, _) | Self::Permuted(ranks, _)) = self;
        let Some((rank, leaf)) = ranks.rank(slot) else {
            return NONE;
        };
        let first = if leaf { split.inner } else { split.classes };
        match self {
            Self::Ordered(_) => first + rank,
            Self::Runs(_, runs) => first + runs.number(slot, rank, leaf),
            Self::Permuted(_, numbers) => numbers[usize::from(leaf)][rank as usize],
        }
    }

    /// Prefetches the memory that [`MapView::by_slot`] reads first.
    #[inline(always)]
    pub(crate) fn fetch(self, slot: u64) {
        let (Self::Ordered(ranks) | Self::Runs(ranks, _) | Self::Permuted(ranks, _)) = self;
        ranks.fetch(slot);
    }
}

/// Creates the map for ids that are not addresses. If several objects have one id, the id maps to the first of them.
/// Also returns the number of objects that have the id of an earlier object.
pub(crate) fn sort_ids(
    scanned: &mut Scanned,
    split: Split,
    store: &Store,
) -> Result<(AddressMap, u64)> {
    let (inner, leaves) = (store.zeroed(0)?, store.zeroed(0)?);
    let inner = std::mem::replace(&mut scanned.inner_ids, inner);
    let leaves = std::mem::replace(&mut scanned.leaf_ids, leaves);
    let with_refs = inner.iter().zip(split.classes..);
    let mut pairs: Vec<(u64, u32)> = with_refs
        .chain(leaves.iter().zip(split.inner..))
        .map(|(&id, number)| (id, number))
        .collect();
    pairs.par_sort_unstable();
    let before = pairs.len();
    pairs.dedup_by_key(|p| p.0);
    let mut ids: Array<u64> = store.zeroed(pairs.len())?;
    let mut numbers: Array<u32> = store.zeroed(pairs.len())?;
    ids.par_iter_mut()
        .zip(numbers.par_iter_mut())
        .zip(&pairs)
        .for_each(|((id, number), pair)| {
            (*id, *number) = *pair;
        });
    Ok((
        AddressMap::Sorted {
            ids: ids.into(),
            numbers: numbers.into(),
        },
        (before - pairs.len()) as u64,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_marks_of_each_kind() {
        let store = Store::new(None);
        let range = Range {
            base: 0x1000,
            end: 0x1000 + 8 * 10_000,
        };
        let mut marks = Marks::new(range, &store).unwrap();
        let writer = marks.writer();
        let mut pending = Pending::default();
        let slots: Vec<u64> = (0..10_000).filter(|s| s % 7 == 0 || s % 64 == 63).collect();
        for &s in &slots {
            writer.mark(&mut pending, s, s % 3 == 0);
        }
        writer.flush(&mut pending);
        let ranks = marks.into_ranks(&store).unwrap();
        let mut seen = [0, 0];
        for s in 0..10_000 {
            let before = seen;
            let expected = slots.binary_search(&s).ok().map(|_| {
                let leaf = s % 3 == 0;
                seen[usize::from(leaf)] += 1;
                (seen[usize::from(leaf)] - 1, leaf)
            });
            assert_eq!(ranks.before(s), before, "slot {s}");
            assert_eq!(ranks.rank(s), expected, "slot {s}");
        }
        assert_eq!(ranks.marked, seen);
        let mut starts = Vec::new();
        ranks.for_each_in_order(0..ranks.lines(), |id, rank, leaf| {
            let slot = (id - 0x1000) / 8;
            assert_eq!(ranks.rank(slot), Some((rank, leaf)));
            for from in [0, slot / 2 / 7 * 7, slot] {
                assert_eq!(ranks.address(rank, leaf, from), Some(id));
            }
            starts.push((id - 0x1000) / 8);
        });
        assert_eq!(starts, slots);
        assert_eq!(ranks.rank(10_000_000), None);
        assert_eq!(ranks.address(seen[0], false, 0), None);
        assert_eq!(ranks.address(0, false, 9_996), None);
        assert_eq!(range.slot(0x1004), None);
        assert_eq!(range.slot(0xfff), None);
    }
}
