//! Stores collected samples for the trace. These are samples whose objects were garbage-collected.
//!
//! The agent's thread adds samples here and records them in the ledger, which has the sums of each allocation site. The
//! trace's thread copies the samples whenever it writes to the trace. The lock is held while samples are added or
//! copied, never across a call into the JVM.

use std::sync::{Mutex, PoisonError};

use heapdiff_trace::{Collected, Sample};
use rustc_hash::FxHashMap;

use super::Reservoir;

/// Maximum number of slots in each of the two lists (`recent` and `chosen`). Two lists of this length take 2 MB
/// together. The lists that [`CollectedRefs`](super::CollectedRefs) stores in the Java heap may be longer.
const MOST: usize = 1 << 14;
/// Minimum number of slots for the random selection. `heapdiff trace ages` estimates from this selection how long
/// objects live. From 4,096 samples, a proportion of 1 % is estimated with a standard error of 0.16 percentage points.
const LEAST_CHOSEN: usize = 1 << 12;

/// A sample, and the time when it was found to be collected, in milliseconds since the start of sampling.
pub(crate) type CollectedAt = (Sample, i64);

#[derive(Default)]
struct Lists {
    recent: Vec<CollectedAt>,
    chosen: Vec<CollectedAt>,
    /// Number of samples collected so far.
    seen: u64,
    /// Value of `seen` when the trace's thread last read the samples.
    told: u64,
}

/// The most recent collected samples, and a uniform random selection of all collected samples.
pub(crate) struct CollectedSamples {
    lists: Mutex<Lists>,
    reservoir: Reservoir,
}

/// Sets the element at index `at` of a list. If the list is shorter, appends the element to the list.
fn put(list: &mut Vec<CollectedAt>, at: usize, one: CollectedAt) {
    match list.get_mut(at) {
        Some(place) => *place = one,
        None => list.push(one),
    }
}

impl CollectedSamples {
    /// Creates two empty lists: one for the most recent collected samples, and one for randomly selected collected
    /// samples. Each list has room for `len` samples, but at most [`MOST`]. Unless `len` is 0, the second list has room
    /// for at least [`LEAST_CHOSEN`] samples. `seed` is the seed of the random selection.
    pub(crate) fn new(len: usize, seed: u64) -> Self {
        let recent = len.min(MOST);
        let chosen = if len == 0 {
            0
        } else {
            recent.max(LEAST_CHOSEN)
        };
        Self::with_lens(recent, chosen, seed)
    }

    fn with_lens(recent: usize, chosen: usize, seed: u64) -> Self {
        Self {
            lists: Mutex::default(),
            reservoir: Reservoir::new(recent, chosen, seed),
        }
    }

    /// Adds collected samples. Only some of them are stored: the most recent ones and a random selection.
    pub(crate) fn add(&self, dead: &[CollectedAt]) {
        if self.reservoir.chosen == 0 || dead.is_empty() {
            return;
        }
        let mut guard = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let lists = &mut *guard;
        for &one in dead {
            let places = self.reservoir.places(lists.seen);
            lists.seen += 1;
            if let Some(at) = places.recent {
                put(&mut lists.recent, at, one);
            }
            if let Some(at) = places.chosen {
                put(&mut lists.chosen, at, one);
            }
        }
    }

    /// Returns the stored samples, each sample once. Returns `None` if no sample was added since the last call and
    /// `anew` is false.
    pub(crate) fn all(&self, anew: bool) -> Option<Vec<Collected>> {
        let (recent, chosen) = {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            if lists.told == lists.seen && !anew {
                return None;
            }
            lists.told = lists.seen;
            (lists.recent.clone(), lists.chosen.clone())
        };
        let mut all: FxHashMap<u64, Collected> = FxHashMap::default();
        for (list, is_recent) in [(recent, true), (chosen, false)] {
            for (sample, collected_ms) in list {
                let one = all.entry(sample.uid).or_insert(Collected {
                    sample,
                    collected_ms,
                    ..Collected::default()
                });
                one.recent |= is_recent;
                one.chosen |= !is_recent;
            }
        }
        Some(all.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(uid: u64) -> CollectedAt {
        let sample = Sample {
            uid,
            ..Sample::default()
        };
        (sample, 5)
    }

    /// Returns the ids (`uid`) of the samples for which `is` returns true, in ascending order.
    fn uids(collected: &[Collected], is: impl Fn(&Collected) -> bool) -> Vec<u64> {
        let of_kind = collected.iter().filter(|c| is(c));
        let mut uids: Vec<u64> = of_kind.map(|c| c.sample.uid).collect();
        uids.sort_unstable();
        uids
    }

    #[test]
    fn the_newest_and_a_random_choice_are_stored() {
        let samples = CollectedSamples::with_lens(4, 4, 1);
        assert_eq!(samples.all(false), None);
        samples.add(&[one(1), one(2), one(3)]);
        let collected = samples.all(false).unwrap();
        assert_eq!(uids(&collected, |c| c.recent && c.chosen), [1, 2, 3]);
        assert_eq!(samples.all(false), None);
        assert_eq!(samples.all(true).unwrap().len(), 3);
        let more: Vec<CollectedAt> = (4..=1000).map(one).collect();
        samples.add(&more);
        let collected = samples.all(false).unwrap();
        assert_eq!(uids(&collected, |c| c.recent), [997, 998, 999, 1000]);
        assert_eq!(uids(&collected, |c| c.chosen).len(), 4);
        assert!(collected.iter().all(|c| c.collected_ms == 5));
    }

    /// Each of 100 samples has the same chance to stay in one of ten slots.
    #[test]
    fn the_choice_is_uniform() {
        let mut kept = [0_u32; 100];
        for seed in 0..2000 {
            let samples =
                CollectedSamples::with_lens(10, 10, u64::wrapping_mul(seed, 0x1234_5678_9abc_def1));
            for uid in 0..100 {
                samples.add(&[one(uid)]);
            }
            for uid in uids(&samples.all(false).unwrap(), |c| c.chosen) {
                kept[usize::try_from(uid).unwrap()] += 1;
            }
        }
        // The expected value of each count is 200 and the standard deviation is 13.4. The check allows five standard
        // deviations.
        assert!(kept.iter().all(|n| (133..=267).contains(n)), "{kept:?}");
        assert_eq!(kept.iter().sum::<u32>(), 20_000);
    }

    #[test]
    fn without_room_no_sample_is_stored() {
        let samples = CollectedSamples::new(0, 1);
        samples.add(&[one(1)]);
        assert_eq!(samples.all(false), None);
        let lens = |len| {
            let reservoir = CollectedSamples::new(len, 1).reservoir;
            (reservoir.recent, reservoir.chosen)
        };
        assert_eq!(lens(usize::MAX), (MOST, MOST));
        assert_eq!(lens(512), (512, LEAST_CHOSEN));
    }
}
