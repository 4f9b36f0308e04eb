//! Collected samples that the trace remembers: the last ones, and a uniform choice of all.
//!
//! In the heap [`crate::garbage`] does the same. There the samples are Java objects; here the agent's thread
//! adds their figures while it books them, and the trace's thread takes them for each tick. The lock is held
//! for additions and for that copy, never across a call into the JVM.

use std::sync::{Mutex, PoisonError};

use heapdiff_trace::{Collected, Sample};
use rustc_hash::FxHashMap;

use crate::chooser::Random;

/// Places of each kind at most: 2 MB in all. In the heap there may be more.
const MOST: usize = 1 << 14;

/// A sample, and when it was found to be collected in milliseconds since the start.
pub(crate) type Grave = (Sample, i64);

#[derive(Default)]
struct Shelves {
    recent: Vec<Grave>,
    chosen: Vec<Grave>,
    /// Collected so far.
    seen: u64,
    /// Of these, the trace knows.
    told: u64,
}

/// The ring of recent ones and the reservoir.
pub(crate) struct Graves {
    shelves: Mutex<Shelves>,
    len: usize,
    random: Random,
}

/// Puts something into a place, which is one of those that are there or the next.
fn put(shelf: &mut Vec<Grave>, at: usize, grave: Grave) {
    match shelf.get_mut(at) {
        Some(place) => *place = grave,
        None => shelf.push(grave),
    }
}

impl Graves {
    /// So many of each kind, within bounds; `seed` is for the choice.
    pub(crate) fn new(len: usize, seed: u64) -> Self {
        Self {
            shelves: Mutex::default(),
            len: len.min(MOST),
            random: Random::new(seed),
        }
    }

    /// Remembers some of these.
    pub(crate) fn bury(&self, dead: &[Grave]) {
        if self.len == 0 || dead.is_empty() {
            return;
        }
        let len = self.len as u64;
        let mut guard = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let shelves = &mut *guard;
        for &grave in dead {
            let number = shelves.seen;
            shelves.seen += 1;
            let at = usize::try_from(number % len).unwrap_or(0);
            put(&mut shelves.recent, at, grave);
            // Algorithm R (Vitter 1985): number n stays with probability len / n.
            let place = if number < len {
                number
            } else {
                self.random.below(number + 1)
            };
            if let Ok(at) = usize::try_from(place)
                && at < self.len
            {
                put(&mut shelves.chosen, at, grave);
            }
        }
    }

    /// All that are remembered, each once; `None` if none came since the last time.
    pub(crate) fn collected(&self) -> Option<Vec<Collected>> {
        let (recent, chosen) = {
            let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
            if shelves.told == shelves.seen {
                return None;
            }
            shelves.told = shelves.seen;
            (shelves.recent.clone(), shelves.chosen.clone())
        };
        let mut all: FxHashMap<u64, Collected> = FxHashMap::default();
        for (shelf, is_recent) in [(recent, true), (chosen, false)] {
            for (sample, collected_ms) in shelf {
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

    fn grave(uid: u64) -> Grave {
        let sample = Sample {
            uid,
            ..Sample::default()
        };
        (sample, 5)
    }

    /// The uids of one kind, ascending.
    fn uids(collected: &[Collected], is: impl Fn(&Collected) -> bool) -> Vec<u64> {
        let of_kind = collected.iter().filter(|c| is(c));
        let mut uids: Vec<u64> = of_kind.map(|c| c.sample.uid).collect();
        uids.sort_unstable();
        uids
    }

    #[test]
    fn the_last_ones_and_some_of_all() {
        let graves = Graves::new(4, 1);
        assert_eq!(graves.collected(), None);
        graves.bury(&[grave(1), grave(2), grave(3)]);
        let collected = graves.collected().unwrap();
        assert_eq!(uids(&collected, |c| c.recent && c.chosen), [1, 2, 3]);
        assert_eq!(graves.collected(), None);
        let more: Vec<Grave> = (4..=1000).map(grave).collect();
        graves.bury(&more);
        let collected = graves.collected().unwrap();
        assert_eq!(uids(&collected, |c| c.recent), [997, 998, 999, 1000]);
        assert_eq!(uids(&collected, |c| c.chosen).len(), 4);
        assert!(collected.iter().all(|c| c.collected_ms == 5));
    }

    /// Each of 100 stays in one of ten places equally often.
    #[test]
    fn the_choice_is_uniform() {
        let mut kept = [0_u32; 100];
        for seed in 0..2000 {
            let graves = Graves::new(10, seed * 0x1234_5678_9abc_def1);
            for uid in 0..100 {
                graves.bury(&[grave(uid)]);
            }
            for uid in uids(&graves.collected().unwrap(), |c| c.chosen) {
                kept[usize::try_from(uid).unwrap()] += 1;
            }
        }
        // 200 in the mean, with a standard deviation of 13.4; five of those.
        assert!(kept.iter().all(|n| (133..=267).contains(n)), "{kept:?}");
        assert_eq!(kept.iter().sum::<u32>(), 20_000);
    }

    #[test]
    fn no_room_no_graves() {
        let graves = Graves::new(0, 1);
        graves.bury(&[grave(1)]);
        assert_eq!(graves.collected(), None);
        assert_eq!(Graves::new(usize::MAX, 1).len, MOST);
    }
}
