//! From an object's address to its number, in O(1) and about 1/30 of the heap's size.
//!
//! Object starts are multiples of eight bytes, so one bit for each eight bytes of the used address
//! range marks them; a second bitmap, interleaved with the first, marks those that are leaves.
//! Counts at every fourth pair of words turn a bit into a rank, and ranks are object numbers when
//! the file is in address order. When it consists of a few runs (Parallel and Serial GC), a table of them
//! leads from ranks to numbers; in any other order (merged dumps), a permutation does. Ids that are no
//! addresses at all fall back to a sorted table.

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

/// Bytes of heap for each bit.
pub(crate) const GRAIN: u32 = 3;
/// Words for each stretch of 64 possible starts: one for objects with references, one for leaves.
const PAIR: usize = 2;
/// Pairs that share one count; together with their four pairs they make a cache line.
pub(crate) const PAIRS_IN_LINE: usize = 4;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) base: u64,
    pub(crate) end: u64,
}

impl Range {
    /// Ranges begin and end at multiples of this.
    pub(crate) const ALIGN: u64 = 64;

    pub(crate) fn slots(self) -> u64 {
        (self.end - self.base) >> GRAIN
    }

    /// An address as a number of grains from the base, when it could be an object's.
    #[inline(always)]
    pub(crate) fn slot(self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        (offset < self.end - self.base && offset & 7 == 0).then_some(offset >> GRAIN)
    }
}

/// The slots of a range: all of them, or those of the blocks that have objects.
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
    /// The slot of an address, when it could be an object's.
    #[inline(always)]
    pub(crate) fn slot(&self, address: u64) -> Option<u64> {
        let grain = self.range.slot(address)?;
        match &self.blocks {
            None => Some(grain),
            Some(blocks) => blocks.slot(grain),
        }
    }

    /// The address of a slot.
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

/// Words of the bitmaps over so many slots.
const fn words(slots: u64) -> usize {
    (slots.div_ceil(64) as usize).next_multiple_of(PAIRS_IN_LINE) * PAIR
}

/// The bitmaps while they are being filled by several threads.
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

    /// Bitmaps over the blocks of a range that turn out to have objects, up to so many slots of them.
    pub(crate) fn in_blocks(
        range: Range,
        blocks: Blocks,
        slots: u64,
        store: &Store,
    ) -> Result<Self> {
        let slots = blocks.slots_of(blocks.in_slots(slots));
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
            let most = b.in_slots(slots);
            b.writer(most)
        });
        (marks, blocks)
    }

    /// Puts blocks in the order of addresses, with the slots of references, and gives back what none has come to need.
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

    /// Counts ranks. Cost: one pass over the bitmaps.
    pub(crate) fn seal(self, store: &Store) -> Result<Ranks> {
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
                    // Nothing asks for the rank of what is not marked; stretches of the range
                    // that hold no objects then need no memory.
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

/// Shared access to [`Marks`] for the scanning threads.
#[derive(Clone, Copy)]
pub(crate) struct MarkWriter<'a> {
    pub(crate) range: Range,
    bits: &'a [AtomicU64],
}

/// Gathers the bits of neighbouring objects, so that most objects cost no atomic operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pending {
    word: u64,
    bits: [u64; 2],
}

impl MarkWriter<'_> {
    /// Marks a start. Two objects at one address show as fewer marks than objects.
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

/// The finished bitmaps.
#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) space: Space,
    pub(crate) bits: Column<u64>,
    pub(crate) counts: Column<u32>,
    /// Marks of objects with references, and of leaves.
    pub(crate) marked: [u32; 2],
    /// Whether an object with references and a leaf have one address.
    pub(crate) doubled: bool,
}

impl Ranks {
    /// Lines that are kept or left out together: of words, a page of memory.
    const STRETCH: usize = 64;

    /// The rank of a marked slot, and whether it is a leaf's.
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

    /// How many objects of both kinds lie before a slot.
    pub(crate) fn before(&self, slot: u64) -> [u32; 2] {
        let word = (slot >> 6) as usize;
        // Empty lines have no counts of their own.
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

    /// The address of this rank among the objects with references, or the leaves, by counting on from the
    /// slot of an object that does not come after it.
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

    /// Parts of the map that are not empty: their numbers, ascending, and their words and counts, one
    /// after the other.
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

    /// The map with these stretches; `None` when they are not those of a map of this range. That counts
    /// are right is not checked.
    pub(crate) fn of_stretches(
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

    /// Visits the marked addresses of these lines: address, rank, whether a leaf's.
    fn in_order(&self, lines: std::ops::Range<usize>, mut visit: impl FnMut(u64, u32, bool)) {
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
                    // One address may be marked as both: each kind counts its own.
                    ranks[0] += (pair[0] >> bit & 1) as u32;
                    ranks[1] += (pair[1] >> bit & 1) as u32;
                }
            }
        }
    }
}

/// The arrays of [`Ranks`] as slices: where an array lies is looked up once, not for each slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RanksView<'a> {
    bits: &'a [u64],
    counts: &'a [u32],
}

impl RanksView<'_> {
    /// As [`Ranks::rank`].
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

    /// Prefetches what [`Ranks::rank`] reads.
    #[inline(always)]
    fn fetch(self, slot: u64) {
        let line = (slot >> 6) as usize / PAIRS_IN_LINE;
        mem::prefetch(self.bits, line * PAIRS_IN_LINE * PAIR);
        mem::prefetch(self.counts, line * 2);
    }
}

/// Copies stretches of a size to where their numbers say; only the last of all can be shorter.
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
    // Tasks of many stretches: most of a sparse map is never touched.
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
    /// For files in address order: ranks are numbers.
    Ordered(Ranks),
    /// For files of a few runs: each run adds a constant of its own.
    Runs { ranks: Ranks, runs: RunTable },
    /// For files in another order: ranks lead to numbers.
    Permuted {
        ranks: Ranks,
        with_refs: Column<u32>,
        leaves: Column<u32>,
    },
    /// For ids that are no addresses: sorted ids, with the numbers beside them.
    Sorted {
        ids: Column<u64>,
        numbers: Column<u32>,
    },
}

/// How the number space is split: class objects below `classes`, objects with references below
/// `inner`, leaves from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) classes: u32,
    pub(crate) inner: u32,
}

impl AddressMap {
    /// The number of the object at a slot, or [`NONE`].
    #[inline(always)]
    pub(crate) fn by_slot(&self, slot: u64, split: Split) -> u32 {
        self.view().map_or(NONE, |view| view.by_slot(slot, split))
    }

    /// The map for loops over many slots; `None` where ids are no addresses.
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

    /// The number of the object with this id, or [`NONE`]. Class objects are not in the map.
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

    /// Prefetches what a look-up of this id will need.
    #[inline(always)]
    pub(crate) fn fetch(&self, id: u64) {
        if let Some(ranks) = self.ranks()
            && let Some(slot) = ranks.space.slot(id)
        {
            ranks.view().fetch(slot);
        }
    }

    /// Visits the id and the number of every object of one of so many parts, in the order of ids.
    pub(crate) fn in_order(
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
            Self::Ordered(ranks) => ranks.in_order(cut(ranks.lines()), |id, rank, leaf| {
                visit(id, rank + if leaf { split.inner } else { split.classes });
            }),
            Self::Runs { ranks, runs } => ranks.in_order(cut(ranks.lines()), |id, rank, leaf| {
                let slot = ranks.space.slot(id).unwrap_or(0);
                let number = runs.number(slot, rank, leaf);
                visit(id, number + if leaf { split.inner } else { split.classes });
            }),
            Self::Permuted {
                ranks,
                with_refs,
                leaves,
            } => ranks.in_order(cut(ranks.lines()), |id, rank, leaf| {
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
    /// As [`AddressMap::by_slot`].
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

    /// Prefetches what [`MapView::by_slot`] reads first.
    #[inline(always)]
    pub(crate) fn fetch(self, slot: u64) {
        let (Self::Ordered(ranks) | Self::Runs(ranks, _) | Self::Permuted(ranks, _)) = self;
        ranks.fetch(slot);
    }
}

/// For ids that are no addresses: sorts them. Of several objects with one id the first counts.
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
        let ranks = marks.seal(&store).unwrap();
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
        ranks.in_order(0..ranks.lines(), |id, rank, leaf| {
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
