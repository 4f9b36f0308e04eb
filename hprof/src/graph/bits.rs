//! A set of objects as a bitmap.

use std::sync::atomic::AtomicU64;

use crate::bytes::mem;

/// A set of object numbers: one bit for each object of the dump.
#[derive(Clone, Debug)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }
    #[inline(always)]
    pub(crate) fn set(&mut self, at: u32) {
        self.0[at as usize / 64] |= 1 << (at % 64);
    }
    #[inline(always)]
    pub(crate) fn has(&self, at: u32) -> bool {
        self.0
            .get(at as usize / 64)
            .is_some_and(|w| w & 1 << (at % 64) != 0)
    }
    /// Returns the numbers in the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().zip(0..).flat_map(|(&word, at)| {
            let bits = (0..64).filter(move |bit| word & 1 << bit != 0);
            bits.map(move |bit| at * 64 + bit)
        })
    }
    pub(crate) fn words(&self) -> &[u64] {
        &self.0
    }
    /// Returns the words as atomics, so that several threads can write them.
    pub(crate) fn shared(&mut self) -> &[AtomicU64] {
        mem::as_atomic_u64(&mut self.0)
    }
    /// Adds a number. Returns true if it was not in the set.
    #[inline(always)]
    pub(crate) fn add(&mut self, at: u32) -> bool {
        let word = &mut self.0[at as usize / 64];
        let is_new = *word & 1 << (at % 64) == 0;
        *word |= 1 << (at % 64);
        is_new
    }
    pub(crate) fn take(&mut self, at: u32) -> bool {
        let had = self.has(at);
        self.0[at as usize / 64] &= !(1 << (at % 64));
        had
    }
}
