//! Sums and minima of ranges of nodes.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::bytes::array::{Array, Column, Store};
use crate::bytes::mem;
use crate::error::Result;
use crate::ids::NONE;

/// Minima of ranges: of blocks, and of blocks in number a power of two.
pub(super) struct Minima<'a> {
    values: &'a [u32],
    blocks: usize,
    table: Array<u32>,
}

impl<'a> Minima<'a> {
    const BLOCK: usize = 64;

    /// Cost: one pass; a quarter to half of a byte for each value.
    pub(super) fn new(values: &'a [u32], store: &Store) -> Result<Self> {
        let blocks = values.len().div_ceil(Self::BLOCK);
        let levels = blocks.max(1).ilog2() as usize + 1;
        let mut table: Array<u32> = store.zeroed(blocks * levels)?;
        table[..blocks]
            .par_iter_mut()
            .zip(values.par_chunks(Self::BLOCK))
            .for_each(|(least, block)| *least = smallest(block));
        for level in 1..levels {
            let (lower, upper) = table.split_at_mut(level * blocks);
            let lower = &lower[(level - 1) * blocks..];
            let half = 1 << (level - 1);
            upper[..blocks]
                .par_iter_mut()
                .enumerate()
                .with_min_len(1 << 14)
                .for_each(|(i, least)| {
                    *least = lower[i].min(lower[(i + half).min(blocks - 1)]);
                });
        }
        Ok(Self {
            values,
            blocks,
            table,
        })
    }

    /// The smallest value at `from..to`, which is not empty.
    pub(super) fn of(&self, from: usize, to: usize) -> u32 {
        let (first, last) = (from.div_ceil(Self::BLOCK), to / Self::BLOCK);
        if first >= last {
            return smallest(&self.values[from..to]);
        }
        let ends = smallest(&self.values[from..first * Self::BLOCK])
            .min(smallest(&self.values[last * Self::BLOCK..to]));
        let level = (last - first).ilog2();
        let row = &self.table[level as usize * self.blocks..][..self.blocks];
        ends.min(row[first]).min(row[last - (1 << level)])
    }
}

#[inline]
fn smallest(values: &[u32]) -> u32 {
    values.iter().fold(NONE, |least, &v| least.min(v))
}

/// Prefix sums in little memory: 32 bits each, relative to the first of their block. Where that is
/// not enough (a block of more than 4 GB), 64 bits each.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) bases: Column<u64>,
    pub(crate) rest: Column<u32>,
    /// Empty unless needed.
    pub(crate) wide: Column<u64>,
}

impl Sums {
    pub(crate) const BLOCK: usize = 64;
    /// Elements handled by one task.
    const CHUNK: usize = Self::BLOCK << 8;

    /// Sums `amount` of 0 to `len`: element `i` is the sum of all before it, element `len` the
    /// total.
    pub(super) fn new(
        len: usize,
        amount: impl Fn(usize) -> u64 + Sync,
        store: &Store,
    ) -> Result<Self> {
        let mut rest: Array<u32> = store.zeroed(len + 1)?;
        let mut bases: Array<u64> = store.zeroed(rest.len().div_ceil(Self::BLOCK))?;
        let overflow = AtomicBool::new(false);
        let sums: Vec<u64> = rest
            .par_chunks_mut(Self::CHUNK)
            .zip(bases.par_chunks_mut(Self::CHUNK / Self::BLOCK))
            .enumerate()
            .map(|(chunk, (rest, bases))| {
                let mut sum = 0;
                let first = chunk * Self::CHUNK;
                for (block, (rest, base)) in rest.chunks_mut(Self::BLOCK).zip(bases).enumerate() {
                    *base = sum;
                    for (i, slot) in (first + block * Self::BLOCK..).zip(rest) {
                        *slot = u32::try_from(sum - *base).unwrap_or_else(|_| {
                            overflow.store(true, Ordering::Relaxed);
                            0
                        });
                        sum += if i < len { amount(i) } else { 0 };
                    }
                }
                sum
            })
            .collect();
        let mut total = 0;
        for (bases, sum) in bases.chunks_mut(Self::CHUNK / Self::BLOCK).zip(sums) {
            bases.iter_mut().for_each(|b| *b += total);
            total += sum;
        }
        let mut wide: Array<u64> = store.zeroed(0)?;
        if overflow.into_inner() {
            (rest, bases) = (store.zeroed(0)?, store.zeroed(0)?);
            wide.resize(len + 1)?;
            let mut sum = 0;
            for (i, slot) in wide.iter_mut().enumerate() {
                *slot = sum;
                sum += if i < len { amount(i) } else { 0 };
            }
        }
        Ok(Self {
            bases: bases.into(),
            rest: rest.into(),
            wide: wide.into(),
        })
    }

    #[inline(always)]
    pub(super) fn before(&self, at: u32) -> u64 {
        self.view().before(at)
    }

    #[inline(always)]
    pub(super) fn view(&self) -> SumsView<'_> {
        SumsView {
            bases: &self.bases,
            rest: &self.rest,
            wide: &self.wide,
        }
    }
}

/// The arrays of [`Sums`] as slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumsView<'a> {
    bases: &'a [u64],
    rest: &'a [u32],
    wide: &'a [u64],
}

impl SumsView<'_> {
    #[inline(always)]
    pub(super) fn before(self, at: u32) -> u64 {
        let at = at as usize;
        if self.wide.is_empty() {
            self.bases[at / Sums::BLOCK] + u64::from(self.rest[at])
        } else {
            self.wide[at]
        }
    }

    #[inline(always)]
    pub(super) fn fetch(self, at: usize) {
        if self.wide.is_empty() {
            mem::prefetch(self.rest, at);
        } else {
            mem::prefetch(self.wide, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_whatever_their_size() {
        let store = Store::new(None);
        for scale in [1, 1 << 20, 1 << 26, 1 << 33] {
            let amount = |i: usize| (i as u64 % 7) * scale;
            let sums = Sums::new(100_000, amount, &store).unwrap();
            assert_eq!(sums.wide.is_empty(), scale <= 1 << 20);
            let mut sum = 0;
            for i in 0..=100_000 {
                assert_eq!(sums.before(i), sum);
                sum += amount(i as usize);
            }
        }
    }

    #[test]
    fn minima_of_all_ranges() {
        let store = Store::new(None);
        let values: Vec<u32> = (0..700_u32)
            .map(|i| i.wrapping_mul(0x9e37_79b1) >> 8)
            .collect();
        let minima = Minima::new(&values, &store).unwrap();
        for from in 0..values.len() {
            let mut least = NONE;
            for to in from + 1..=values.len() {
                least = least.min(values[to - 1]);
                assert_eq!(minima.of(from, to), least, "{from}..{to}");
            }
        }
    }
}
