//! Minima and sums of values that are indexed by node, for ranges of nodes.

use rayon::prelude::*;

use crate::bytes::array::{Array, Column, Store};
use crate::bytes::mem;
use crate::error::Result;
use crate::ids::NONE;

/// A table for finding the minimum of a range. It has the minimum of each block of values, and of each sequence of 2^n
/// blocks.
pub(super) struct Minima<'a> {
    values: &'a [u32],
    blocks: usize,
    table: Array<u32>,
}

impl<'a> Minima<'a> {
    const BLOCK: usize = 64;

    /// Creates the table for `values`.
    ///
    /// Cost: one pass. Memory: for each block of 64 values, four bytes for each power of two up to the number of
    /// blocks. This is about one byte for each value.
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

    /// Returns the smallest value in `from..to`, which must not be empty.
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

/// Prefix sums that take little memory: 16 bits each, as the difference from the first sum in the same block. If the
/// sums of a block do not fit in 16 bits, they are stored in `far` as 64-bit numbers.
#[derive(Debug)]
pub(crate) struct Sums {
    /// One number for each block of sums. Usually, it is the first prefix sum of the block. If the flag [`Sums::FAR`]
    /// is set in the number, its other bits are the index in `far` at which the block's prefix sums begin.
    pub(crate) bases: Column<u64>,
    pub(crate) rest: Column<u16>,
    pub(crate) far: Column<u64>,
}

impl Sums {
    const BLOCK: usize = 32;
    /// Number of values that one task sums up.
    const CHUNK: usize = Self::BLOCK << 9;
    /// Flag bit in `bases`. No sum is so large that this bit is set in it.
    const FAR: u64 = 1 << 63;

    /// Computes the prefix sums of `len` values. Element `i` is the sum of all values before index `i`, and element
    /// `len` is the total. `amounts(i)` returns the values from index `i` on.
    pub(super) fn new<I: Iterator<Item = u64>>(
        len: usize,
        amounts: impl Fn(usize) -> I + Sync,
        store: &Store,
    ) -> Result<Self> {
        let mut rest: Array<u16> = store.zeroed(len + 1)?;
        let mut bases: Array<u64> = store.zeroed(rest.len().div_ceil(Self::BLOCK))?;
        let chunks: Vec<(u64, Vec<u64>)> = rest
            .par_chunks_mut(Self::CHUNK)
            .zip(bases.par_chunks_mut(Self::CHUNK / Self::BLOCK))
            .enumerate()
            .map(|(chunk, (rest, bases))| {
                let (mut sum, mut far) = (0, Vec::new());
                let mut amounts = amounts(chunk * Self::CHUNK);
                for (rest, base) in rest.chunks_mut(Self::BLOCK).zip(bases) {
                    let mut sums = [0; Self::BLOCK];
                    let sums = &mut sums[..rest.len()];
                    for slot in sums.iter_mut() {
                        *slot = sum;
                        sum += amounts.next().unwrap_or(0);
                    }
                    *base = pack(sums, rest, &mut far);
                }
                (sum, far)
            })
            .collect();
        let mut far: Array<u64> = store.zeroed(chunks.iter().map(|(_, far)| far.len()).sum())?;
        let (mut total, mut at) = (0, 0);
        for (bases, (sum, own)) in bases.chunks_mut(Self::CHUNK / Self::BLOCK).zip(chunks) {
            for base in bases {
                *base += if *base & Self::FAR == 0 {
                    total
                } else {
                    at as u64
                };
            }
            for (to, from) in far[at..].iter_mut().zip(&own) {
                *to = from + total;
            }
            at += own.len();
            total += sum;
        }
        Ok(Self {
            bases: bases.into(),
            rest: rest.into(),
            far: far.into(),
        })
    }

    /// Creates the sums from arrays that an index stores; `None` if the sums do not ascend or the lengths of the arrays
    /// do not match.
    pub(crate) fn from_parts(
        bases: Column<u64>,
        rest: Column<u16>,
        far: Column<u64>,
    ) -> Option<Self> {
        let sums = Self { bases, rest, far };
        let view = sums.view();
        // Returns the first and the last prefix sum of a block; `None` if the sums of the block are not in ascending
        // order.
        let ends = |block: usize| {
            let len = Self::BLOCK.min(view.rest.len() - block * Self::BLOCK);
            let base = view.bases[block];
            if base & Self::FAR == 0 {
                let rest = &view.rest[block * Self::BLOCK..][..len];
                let last = base + u64::from(rest[len - 1]);
                (rest.is_sorted() && last < Self::FAR).then_some((base, last))
            } else {
                let at = usize::try_from(base ^ Self::FAR).ok()?;
                let far = view.far.get(at..at.checked_add(len)?)?;
                (far.is_sorted() && far[len - 1] < Self::FAR).then_some((far[0], far[len - 1]))
            }
        };
        let blocks = view.rest.len().div_ceil(Self::BLOCK);
        let fits = view.bases.len() == blocks
            && (0..blocks).into_par_iter().all(|block| match ends(block) {
                None => false,
                Some((_, last)) => {
                    block + 1 == blocks || ends(block + 1).is_some_and(|next| last <= next.0)
                }
            });
        fits.then_some(sums)
    }

    /// Returns the number of prefix sums, including the total.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    #[inline(always)]
    pub(crate) fn before(&self, at: u32) -> u64 {
        self.view().before(at)
    }

    #[inline(always)]
    pub(super) fn view(&self) -> SumsView<'_> {
        SumsView {
            bases: &self.bases,
            rest: &self.rest,
            far: &self.far,
        }
    }
}

/// Stores the prefix sums of one block of values. Returns the block's element of [`Sums::bases`].
#[inline(always)]
fn pack(sums: &[u64], rest: &mut [u16], far: &mut Vec<u64>) -> u64 {
    let (Some(&base), Some(&last)) = (sums.first(), sums.last()) else {
        return 0;
    };
    if last - base <= u64::from(u16::MAX) {
        for (rest, sum) in rest.iter_mut().zip(sums) {
            *rest = (sum - base) as u16;
        }
        base
    } else {
        rest.fill(0);
        let at = far.len() as u64;
        far.extend_from_slice(sums);
        Sums::FAR | at
    }
}

/// The arrays of [`Sums`] as slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumsView<'a> {
    bases: &'a [u64],
    rest: &'a [u16],
    far: &'a [u64],
}

impl SumsView<'_> {
    #[inline(always)]
    pub(super) fn before(self, at: u32) -> u64 {
        let at = at as usize;
        let base = self.bases[at / Sums::BLOCK];
        if base & Sums::FAR == 0 {
            base + u64::from(self.rest[at])
        } else {
            self.far[(base ^ Sums::FAR) as usize + at % Sums::BLOCK]
        }
    }

    #[inline(always)]
    pub(super) fn fetch(self, at: usize) {
        mem::prefetch(self.rest, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(scale: u64) -> impl Fn(usize) -> u64 + Sync {
        // Only every thousandth value is large. So the sums of most blocks fit in 16 bits each.
        move |i| {
            let large = if i % 1000 == 999 { scale } else { 0 };
            i as u64 % 7 + large
        }
    }

    #[test]
    fn sums_of_any_size_are_exact() {
        let store = Store::new(None);
        for scale in [0, 60_000, 70_000, 1 << 26, 1 << 40] {
            let amount = amounts(scale);
            let sums = Sums::new(100_000, |first| (first..100_000).map(&amount), &store).unwrap();
            assert_eq!(sums.far.is_empty(), scale <= 60_000);
            assert!(sums.far.len() <= 100 * Sums::BLOCK);
            let mut sum = 0;
            for i in 0..=100_000 {
                assert_eq!(sums.before(i), sum);
                sum += amount(i as usize);
            }
        }
    }

    #[test]
    fn sums_that_do_not_fit_are_detected() {
        let store = Store::new(None);
        let fits = |change: fn(&mut Vec<u64>, &mut Vec<u16>, &mut Vec<u64>)| {
            let sums = Sums::new(3000, |first| (first..3000).map(amounts(70_000)), &store).unwrap();
            let (mut bases, mut rest, mut far) =
                (sums.bases.to_vec(), sums.rest.to_vec(), sums.far.to_vec());
            change(&mut bases, &mut rest, &mut far);
            let (mut b, mut r, mut f) = (
                store.zeroed(0).unwrap(),
                store.zeroed(0).unwrap(),
                store.zeroed(0).unwrap(),
            );
            b.extend(&bases).unwrap();
            r.extend(&rest).unwrap();
            f.extend(&far).unwrap();
            Sums::from_parts(b.into(), r.into(), f.into()).is_some()
        };
        assert!(fits(|_, _, _| ()));
        assert!(!fits(|b, _, _| b.truncate(5)));
        assert!(!fits(|b, _, _| b[2] += 1000));
        assert!(!fits(|_, r, _| r[3] = 60_000));
        assert!(!fits(|_, r, _| r[31] = 60_000));
        assert!(!fits(|_, _, f| f.truncate(40)));
        assert!(!fits(|_, _, f| f[3] = u64::MAX));
        assert!(!fits(|b, _, _| b[31] = u64::MAX));
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
