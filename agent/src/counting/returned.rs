//! What calls returned, counted by site and class: only the run tells the class.
//!
//! For each stripe of threads there is an open table outside of the Java heap. Its keys are a site's number and a class's: where the JVM
//! has what it knows of the class, an address that no other class has that is loaded. (Identity hashes will not do: JDK 17 gives the
//! classes that it loads those that classes in its archive have already.) When counters are read each pair becomes a site of its own,
//! with the class's name (`counters`).

use rustc_hash::FxHashMap;

use super::cells::{MOST_SITES, STRIPES};
use crate::jvmti::Shared;

/// Pairs at most in a stripe, as a power of two. What is beyond is not counted, and told.
pub(crate) const BITS: u32 = 14;
/// Bytes of an entry, as a power of two: its key, objects, bytes of arrays, and one that is not used.
pub(crate) const ENTRY_BITS: u8 = 5;
const ENTRY: usize = 1 << ENTRY_BITS;
/// From a stripe's start to the next, not a power of two either.
pub(crate) const STRIPE_BYTES: i64 = ((ENTRY << BITS) + 4096 + 64) as i64;

/// The bits of a key that are the site's.
pub(crate) const SITE_BITS: u8 = 16;
/// A key's part that is the site's.
const SITES: u64 = (1 << SITE_BITS) - 1;
const _: () = assert!(MOST_SITES == 1 << SITE_BITS);

/// A site's number, and that of the class of what it returned.
pub(crate) type Pair = (u32, u64);

/// The tables.
pub(crate) struct Returned(Shared);

impl Returned {
    /// All of them, empty; `None` if there is no memory.
    pub(super) fn new() -> Option<Self> {
        // Behind them are two counters of what found no room.
        let bytes = usize::try_from(STRIPES * STRIPE_BYTES).ok()? + ENTRY;
        Shared::new(bytes / 8).map(Self)
    }

    /// Where they are.
    pub(crate) fn start(&self) -> i64 {
        self.0.address()
    }

    /// What was counted of each pair: objects, and bytes of arrays.
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

    /// How many found no room.
    pub(super) fn lost(&self) -> u64 {
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
        assert!(returned.read().is_empty() && returned.lost() == 0);
        assert_eq!(returned.start() % 64, 0);
    }
}
