//! Counters, as hooks raise them: outside of the Java heap, two for each site, once for each stripe.
//!
//! A stripe belongs to one thread as long as it lives, if there are enough of them, and the thread adds to it as to any other number.
//! All other threads share stripes, and add to them in one step, so that nothing is lost. Threads of different stripes do not touch
//! each other's lines of memory. Memory is given back to nobody: code that calls hooks may be running for ever. It is used as sites
//! come, page by page.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::returned::Returned;
use crate::jvmti::Shared;

/// Sites at most. What is beyond is not counted, and told.
pub(crate) const MOST_SITES: usize = 1 << 16;
/// Stripes that threads share, a power of two.
pub(crate) const STRIPES: i64 = 16;
/// Stripes that belong to one thread each.
const OWN_STRIPES: usize = 128;
/// Threads with larger numbers, of as many bits, get no stripe. No number comes twice.
pub(crate) const THREAD_BITS: u8 = 20;
const THREADS: usize = 1 << THREAD_BITS;
/// Bytes of a site's counters in a stripe: by its number in the hooks, without the last four bits.
const SITE: usize = 16;
/// From a stripe's start to the next, not a power of two: counters of a site would share the few places that a cache has for
/// addresses that are so far apart.
pub(crate) const STRIPE_BYTES: i64 = ((MOST_SITES * SITE) + 4096 + 64) as i64;
const STRIPE: usize = STRIPE_BYTES as usize / 8;

/// Counters.
pub(crate) struct Cells {
    /// The shared stripes, then the others.
    all: Shared,
    /// By a thread's number where its own stripe is; 0 where it has none.
    places: Shared,
    /// Each stripe that was ever given, with the thread that has it.
    owners: Mutex<Vec<Option<i64>>>,
    /// What calls returned.
    pub(crate) returned: Returned,
}

impl Cells {
    /// All of them, at zero; `None` if there is no memory.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            all: Shared::new((STRIPES as usize + OWN_STRIPES) * STRIPE)?,
            places: Shared::new(THREADS)?,
            owners: Mutex::default(),
            returned: Returned::new()?,
        })
    }

    /// Where the shared ones are.
    pub(crate) fn start(&self) -> i64 {
        self.all.address()
    }

    /// Where the table of threads is.
    pub(crate) fn places(&self) -> i64 {
        self.places.address()
    }

    /// What the hooks have counted of the first `sites`: allocations, and bytes of arrays.
    pub(crate) fn read(&self, sites: usize) -> Vec<[u64; 2]> {
        let mut sums = vec![[0_u64; 2]; sites];
        let given = self.owners().len();
        for start in (0..STRIPES as usize + given).map(|i| i * STRIPE) {
            for (sum, at) in sums.iter_mut().zip((start..).step_by(2)) {
                *sum = [0, 1].map(|i| sum[i].wrapping_add(self.all.get(at + i)));
            }
        }
        sums
    }

    /// Gives a thread that lives a stripe, if one is left.
    pub(crate) fn give(&self, thread: i64) {
        // Threads have no number yet, 0, while their objects are made.
        let Some(at) = usize::try_from(thread).ok().filter(|at| *at > 0) else {
            return;
        };
        let mut owners = self.owners();
        if at >= THREADS || self.places.get(at) != 0 {
            return;
        }
        let free = owners.iter().position(Option::is_none);
        let stripe = free.unwrap_or(owners.len());
        if stripe >= OWN_STRIPES {
            return;
        }
        match owners.get_mut(stripe) {
            Some(owner) => *owner = Some(thread),
            None => owners.push(Some(thread)),
        }
        let place = self.start() + (STRIPES + stripe as i64) * STRIPE_BYTES;
        self.places.set(at, place.cast_unsigned());
    }

    /// Takes their stripes from threads that are `over`, and run no Java code any more.
    pub(crate) fn take_back(&self, over: impl Fn(i64) -> bool) {
        for owner in self.owners().iter_mut() {
            if let Some(thread) = owner.take_if(|thread| over(*thread)) {
                self.places.set(usize::try_from(thread).unwrap_or(0), 0);
            }
        }
    }

    /// The threads that have stripes.
    pub(crate) fn threads(&self) -> Vec<i64> {
        self.owners().iter().flatten().copied().collect()
    }

    fn owners(&self) -> MutexGuard<'_, Vec<Option<i64>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_has_one_thread() {
        let cells = Cells::new().unwrap();
        let place = |thread: usize| cells.places.get(thread);
        for thread in [0, -1, 1 << THREAD_BITS, 7, 7, 9] {
            cells.give(thread);
        }
        assert_eq!(cells.threads(), [7, 9]);
        let (first, second) = (place(7), place(9));
        assert_eq!(first, (cells.start() + STRIPES * STRIPE_BYTES) as u64);
        assert_eq!(second, first + STRIPE_BYTES as u64);
        cells.take_back(|thread| thread == 7);
        assert_eq!((place(7), place(9)), (0, second));
        cells.give(11);
        assert_eq!(place(11), first);
        (100..100 + OWN_STRIPES as i64).for_each(|thread| cells.give(thread));
        assert_eq!(cells.threads().len(), OWN_STRIPES);
        let last = 99 + OWN_STRIPES;
        assert_eq!(place(last), 0, "nothing was left for it");
        assert!(place(last - 2) != 0);
    }

    #[test]
    fn all_stripes_that_were_given_add_up() {
        let cells = Cells::new().unwrap();
        let site = 3;
        for start in [0, 7, STRIPES as usize, STRIPES as usize + 1].map(|i| i * STRIPE) {
            cells.all.set(start + 2 * site, 10);
            cells.all.set(start + 2 * site + 1, 100);
        }
        assert_eq!(cells.read(5)[site], [20, 200]);
        cells.give(30);
        cells.give(31);
        cells.take_back(|_| true);
        let mut all = vec![[0, 0]; 5];
        all[site] = [40, 400];
        assert_eq!(cells.read(5), all);
    }
}
