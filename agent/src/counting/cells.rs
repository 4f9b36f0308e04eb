//! The counters that hooks increment. Hooks are methods that the inserted bytecode calls. The counters are outside of
//! the Java heap. A stripe is a set of counters for some threads. Each allocation site has two counters in each stripe,
//! one for allocations and one for the bytes of arrays:
//!
//! ```text
//! stripe 0:   site 0 [allocations, array bytes], site 1 [..], ..
//! stripe 1:   site 0 [allocations, array bytes], site 1 [..], ..
//! ```
//!
//! A live thread gets a private stripe if one is left. The thread then adds to its counters without atomic
//! instructions. All other threads share stripes and add atomically, so that no count is lost. Threads of different
//! stripes never write to the same cache line. The memory is never freed, because code that calls hooks may run
//! forever. The kernel allocates a page only when a counter in this page is used.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::returned::Returned;
use crate::jvmti::Shared;

/// Maximum number of sites. Allocations at further sites are not counted, and the report mentions this.
pub(crate) const MOST_SITES: usize = 1 << 16;
/// Number of counter sets (stripes) that several threads share; a power of two. A set contains two counters for each
/// allocation site. Threads without a private set use the shared sets.
pub(crate) const STRIPES: i64 = 16;
/// Number of counter sets that each belong to a single thread.
const OWN_STRIPES: usize = 128;
/// Maximum number of bits of a thread's number for which the thread can get private counters. Threads with longer
/// numbers use shared counters. Thread numbers only grow, because the JVM never uses a number twice.
pub(crate) const THREAD_BITS: u8 = 20;
const THREADS: usize = 1 << THREAD_BITS;
/// Size in bytes of an allocation site's two counters in one counter set. It is 16, because hooks compute the offset of
/// the counters by clearing the lowest four bits of the site's number.
const SITE: usize = 16;
/// Distance in bytes between the starts of two counter sets. It is not a power of two: otherwise the counters of an
/// allocation site in all sets would compete for the same lines of the CPU's set-associative caches.
pub(crate) const STRIPE_BYTES: i64 = ((MOST_SITES * SITE) + 4096 + 64) as i64;
const STRIPE: usize = STRIPE_BYTES as usize / 8;

/// The counters of all sites.
pub(crate) struct Cells {
    /// The counter sets that threads share, followed by the sets of single threads.
    all: Shared,
    /// Address of each thread's private counters, by the thread's number; 0 if the thread has no private counters.
    places: Shared,
    /// The owners of all private counter sets that were ever assigned to a thread. An owner is the number of a live
    /// thread. `None` means that the set is free.
    owners: Mutex<Vec<Option<i64>>>,
    /// Counters for the objects that calls return.
    pub(crate) returned: Returned,
}

impl Cells {
    /// Allocates the counters, all zero. Returns `None` if there is not enough memory.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            all: Shared::new((STRIPES as usize + OWN_STRIPES) * STRIPE)?,
            places: Shared::new(THREADS)?,
            owners: Mutex::default(),
            returned: Returned::new()?,
        })
    }

    /// Returns the address of the counters that several threads share.
    pub(crate) fn start(&self) -> i64 {
        self.all.address()
    }

    /// Returns the address of the table that contains the address of each thread's private counters.
    pub(crate) fn places(&self) -> i64 {
        self.places.address()
    }

    /// Returns two sums over the counters of all threads for each of the first `sites` allocation sites: the number of
    /// allocations, and the bytes of arrays.
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

    /// Assigns a private stripe (counters that only one thread uses) to a live thread. If no such stripe is free, the
    /// thread uses counters that several threads share.
    pub(crate) fn assign_stripe(&self, thread: i64) {
        // A thread has the number 0 until its object is initialized.
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

    /// Takes the private counters from the threads for which `over` returns true, so that other threads can get these
    /// counters. The threads that lose their counters must not run Java code any more.
    pub(crate) fn free_stripes(&self, over: impl Fn(i64) -> bool) {
        for owner in self.owners().iter_mut() {
            if let Some(thread) = owner.take_if(|thread| over(*thread)) {
                self.places.set(usize::try_from(thread).unwrap_or(0), 0);
            }
        }
    }

    /// Returns the numbers of the threads that have private counters.
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
            cells.assign_stripe(thread);
        }
        assert_eq!(cells.threads(), [7, 9]);
        let (first, second) = (place(7), place(9));
        assert_eq!(first, (cells.start() + STRIPES * STRIPE_BYTES) as u64);
        assert_eq!(second, first + STRIPE_BYTES as u64);
        cells.free_stripes(|thread| thread == 7);
        assert_eq!((place(7), place(9)), (0, second));
        cells.assign_stripe(11);
        assert_eq!(place(11), first);
        (100..100 + OWN_STRIPES as i64).for_each(|thread| cells.assign_stripe(thread));
        assert_eq!(cells.threads().len(), OWN_STRIPES);
        let last = 99 + OWN_STRIPES;
        assert_eq!(place(last), 0, "nothing was left for it");
        assert!(place(last - 2) != 0);
    }

    #[test]
    fn counts_of_all_stripes_are_added() {
        let cells = Cells::new().unwrap();
        let site = 3;
        for start in [0, 7, STRIPES as usize, STRIPES as usize + 1].map(|i| i * STRIPE) {
            cells.all.set(start + 2 * site, 10);
            cells.all.set(start + 2 * site + 1, 100);
        }
        assert_eq!(cells.read(5)[site], [20, 200]);
        cells.assign_stripe(30);
        cells.assign_stripe(31);
        cells.free_stripes(|_| true);
        let mut all = vec![[0, 0]; 5];
        all[site] = [40, 400];
        assert_eq!(cells.read(5), all);
    }
}
