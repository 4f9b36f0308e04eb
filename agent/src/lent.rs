//! A value that its owner lends to JVM callbacks on many threads. The value is dropped once the owner has taken it back
//! and all callbacks that use it have returned.
//!
//! A callback that has borrowed the value may use it until the callback returns. The owner does not wait for callbacks.
//! The threads are distributed over several locks with counters ([`Place`]). With a single lock, callbacks would
//! compete for its cache line at each sample.

use std::array;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of [`Place`]s. A `Place` is a lock with a counter.
const PLACES: usize = 8;

thread_local! {
    /// Index of the [`Place`] that this thread uses.
    static PLACE: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Relaxed) % PLACES
    };
}

/// The owner of a value that other threads may borrow. The owner may have no value.
pub(crate) struct Lent<T> {
    places: [Place<T>; PLACES],
}

/// A lock with a counter, on its own cache line.
#[repr(align(64))]
struct Place<T>(Mutex<Option<Arc<Share<T>>>>);

/// A reference to the lent value. The threads that use the same [`Place`] share this reference. Its reference count is
/// the number of [`Loan`]s of these threads, plus one for the `Place`.
struct Share<T>(Arc<T>);

/// A value that is borrowed from [`Lent`]. The value lives at least as long as each of its loans.
pub(crate) struct Loan<T>(Arc<Share<T>>);

impl<T> Deref for Loan<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T> Place<T> {
    fn locked(&self) -> MutexGuard<'_, Option<Arc<Share<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Lent<T> {
    /// Creates an empty owner.
    pub(crate) fn new() -> Self {
        Self {
            places: array::from_fn(|_| Place(Mutex::new(None))),
        }
    }

    /// Makes [`Self::borrow`] return `value` from now on, instead of the previous value. The previous value is dropped
    /// once no thread uses it.
    pub(crate) fn lend(&self, value: T) {
        let value = Arc::new(value);
        let before = self
            .places
            .each_ref()
            .map(|place| place.locked().replace(Arc::new(Share(Arc::clone(&value)))));
        // Drop the previous value outside of the locks, since its destructor may call the JVM.
        drop(before);
    }

    /// Borrows the value that is lent at present. Returns `None` if no value is lent. The lock is held only while the
    /// value's reference count is incremented.
    pub(crate) fn borrow(&self) -> Option<Loan<T>> {
        // On a thread that is ending, the thread-local index is gone, so use the lock with index 0.
        let place = PLACE.try_with(|place| *place).unwrap_or(0);
        self.places.get(place)?.locked().clone().map(Loan)
    }

    /// Stops lending the value. The value is dropped as soon as no thread uses it: either by the last thread that uses
    /// it, or by this function.
    pub(crate) fn stop_lending(&self) {
        let last = self.places.each_ref().map(|place| place.locked().take());
        // Drop the value outside of the locks, since its destructor may call the JVM.
        drop(last);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::thread;

    use super::*;

    struct Counted<'c>(&'c AtomicUsize);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn the_last_user_drops_a_withdrawn_value() {
        let drops = AtomicUsize::new(0);
        let lent: Lent<Counted<'_>> = Lent::new();
        assert!(lent.borrow().is_none());
        lent.lend(Counted(&drops));
        let (one, other) = (lent.borrow().unwrap(), lent.borrow().unwrap());
        lent.stop_lending();
        assert!(lent.borrow().is_none());
        drop(one);
        assert_eq!(drops.load(SeqCst), 0);
        drop(other);
        assert_eq!(drops.load(SeqCst), 1);
        // If no thread has borrowed the value, the owner drops it: `lend` drops the previous value, and `stop_lending`
        // drops the current value.
        lent.lend(Counted(&drops));
        lent.lend(Counted(&drops));
        assert_eq!(drops.load(SeqCst), 2);
        lent.stop_lending();
        lent.stop_lending();
        assert_eq!(drops.load(SeqCst), 3);
    }

    #[test]
    fn threads_borrow_while_the_value_is_lent_and_withdrawn() {
        let (drops, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let lent: Lent<Counted<'_>> = Lent::new();
        thread::scope(|scope| {
            for _ in 0..2 * PLACES {
                scope.spawn(|| {
                    while !stop.load(Relaxed) {
                        if let Some(loan) = lent.borrow() {
                            assert!((*loan).0.load(SeqCst) < 500);
                        }
                        thread::yield_now();
                    }
                });
            }
            for _ in 0..500 {
                lent.lend(Counted(&drops));
                thread::yield_now();
                lent.stop_lending();
            }
            stop.store(true, Relaxed);
        });
        assert_eq!(drops.load(SeqCst), 500);
    }
}
