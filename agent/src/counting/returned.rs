//! Counts the objects that calls return, by call site and class. The class of such an object is known only at run time.
//!
//! Threads are divided into groups (stripes). Each group has its own hash table outside of the Java heap. The key
//! combines a call site's number and a class's number. A class's number is the address of the JVM's data about the
//! class, which is unique among loaded classes. An identity hash code is not unique: JDK 17 may give a newly loaded
//! class the hash code of a class in its CDS archive. When the counters are read, each pair of call site and class
//! becomes an allocation site with the class's name (`counters`).

use rustc_hash::FxHashMap;

use super::cells::{MOST_SITES, STRIPES};
use crate::jvmti::Shared;

/// Binary logarithm of the number of entries in the hash table of each group of threads. An entry counts the objects of
/// one pair of call site and class. If the table has no room for a pair, its objects are not counted, and the report
/// mentions this.
pub(crate) const BITS: u32 = 14;
/// Size of an entry in bytes, as a power of two. An entry consists of key, number of objects, bytes of arrays, and an
/// unused word.
pub(crate) const ENTRY_BITS: u8 = 5;
const ENTRY: usize = 1 << ENTRY_BITS;
/// Distance in bytes between the starts of two hash tables. It is not a power of two: otherwise the entries of one call
/// site and class in all tables would compete for the same cache lines.
pub(crate) const STRIPE_BYTES: i64 = ((ENTRY << BITS) + 4096 + 64) as i64;

/// Number of bits of a key that hold the site's number.
pub(crate) const SITE_BITS: u8 = 16;
/// Mask of the key's bits that hold the site's number.
const SITES: u64 = (1 << SITE_BITS) - 1;
const _: () = assert!(MOST_SITES == 1 << SITE_BITS);

/// The number of the call site, and the number of the returned object's class.
pub(crate) type Pair = (u32, u64);

/// The hash tables that count returned objects, one for each group of threads (stripe).
pub(crate) struct Returned(Shared);

impl Returned {
    /// Allocates the hash tables, all empty. Returns `None` if there is not enough memory.
    pub(super) fn new() -> Option<Self> {
        // Two more counters follow the hash tables. They count the objects, and the bytes of arrays, for which the
        // tables had no room.
        let bytes = usize::try_from(STRIPES * STRIPE_BYTES).ok()? + ENTRY;
        Shared::new(bytes / 8).map(Self)
    }

    /// Returns the address of the hash tables.
    pub(crate) fn start(&self) -> i64 {
        self.0.address()
    }

    /// Returns the number of objects and the bytes of arrays for each pair of site and class.
    pub(super) fn read(&self) -> FxHashMap<Pair, [u64; 2]> {
        let stripe = usize::try_from(STRIPE_BYTES).unwrap_or(0) / 8;
        let mut pairs: FxHashMap<Pair, [u64; 2]> = FxHashMap::default();
        for start in (0..usize::try_from(STRIPES).unwrap_or(0)).map(|i| i * stripe) {
            for at in (start..).step_by(ENTRY / 8).take(1 << BITS) {
                let key = self.0.get(at);
                if key != 0 {
                    let pair = ((key & SITES) as u32, key >> SITE_BITS);
                    let sum = pairs.entry(pair).or_default();
                    *sum = [0, 1].map(|i| sum[i].wrapping_add(self.0.get(at + 1 + i)));
                }
            }
        }
        pairs
    }

    /// Returns the number of objects that were not counted because the hash tables were full.
    pub(super) fn uncounted_objects(&self) -> u64 {
        let end = usize::try_from(STRIPES * STRIPE_BYTES).unwrap_or(0) / 8;
        self.0.get(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_all_stripes_are_added() {
        let returned = Returned::new().unwrap();
        assert!(returned.read().is_empty() && returned.uncounted_objects() == 0);
        assert_eq!(returned.start() % 64, 0);
    }
}
