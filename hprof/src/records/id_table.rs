//! A hash table from ids to numbers.

use std::collections::HashMap;

/// A small hash table with open addressing, from ids to numbers. Every object needs a look-up, so a look-up takes only
/// one multiplication and usually one probe.
#[derive(Debug, Default)]
pub(crate) struct IdTable {
    slots: Vec<(u64, u32)>,
    shift: u32,
    used: usize,
    /// Ids for which no slot of the table was free within [`IdTable::PROBES`] steps. Only a file that was made for this
    /// purpose has such ids.
    overflow: HashMap<u64, u32>,
}

impl IdTable {
    const EMPTY: u32 = u32::MAX;
    const PROBES: usize = 64;

    pub(crate) fn new(ids: impl ExactSizeIterator<Item = u64>) -> Self {
        let size = (ids.len().max(8) * 4).next_power_of_two();
        let mut this = Self {
            slots: vec![(0, Self::EMPTY); size],
            shift: 64 - size.trailing_zeros(),
            ..Self::default()
        };
        for (i, id) in ids.enumerate() {
            this.insert(id, i as u32);
        }
        this
    }

    #[inline]
    fn home_slot(&self, id: u64) -> usize {
        (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    pub(crate) fn insert(&mut self, id: u64, value: u32) {
        if self.slots.is_empty() || self.used * 2 >= self.slots.len() {
            let size = (self.slots.len() * 2).max(32);
            let old = std::mem::replace(&mut self.slots, vec![(0, Self::EMPTY); size]);
            (self.shift, self.used) = (64 - size.trailing_zeros(), 0);
            for (id, value) in old.into_iter().filter(|s| s.1 != Self::EMPTY) {
                self.insert(id, value);
            }
        }
        let mask = self.slots.len() - 1;
        let home = self.home_slot(id);
        for step in 0..Self::PROBES {
            let slot = &mut self.slots[(home + step) & mask];
            if slot.1 == Self::EMPTY {
                *slot = (id, value);
                self.used += 1;
                return;
            }
            if slot.0 == id {
                return;
            }
        }
        self.overflow.entry(id).or_insert(value);
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        let home = self.home_slot(id);
        for step in 0..Self::PROBES {
            let &(slot, value) = self.slots.get((home + step) & mask)?;
            if value == Self::EMPTY {
                return None;
            }
            if slot == id {
                return Some(value);
            }
        }
        self.overflow.get(&id).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_finds_inserted_ids() {
        let mut table = IdTable::new((0..100_u64).map(|i| i * 8).collect::<Vec<_>>().into_iter());
        for i in 100..1000 {
            table.insert(i * 8, i as u32);
        }
        assert!((0..1000).all(|i| table.get(i * 8) == Some(i as u32)));
        assert_eq!(table.get(4), None);
    }
}
