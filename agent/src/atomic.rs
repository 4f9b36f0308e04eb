//! Atomic types for data that threads share without a lock. Tests with the library loom replace these types by
//! simulated ones.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p heapdiff-agent --lib --release weak_memory` runs these tests.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A flag that shows that data was changed. A thread that copies the data reads this flag.
#[derive(Debug)]
pub(crate) struct Changed(AtomicBool);

impl Changed {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Sets the flag. Call this after changing the data.
    pub(crate) fn mark(&self) {
        // Two threads may set the flag, one after the other. With a plain store, the thread that reads the flag might
        // not see the change of the first thread. With `swap`, it sees both changes.
        self.0.swap(true, Ordering::Release);
    }

    /// Clears the flag. Call this before copying the data. Returns true if the flag was set. In this case, the caller
    /// sees all changes that were made before the flag was set.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Acquire)
    }
}

#[cfg(all(test, loom))]
mod weak_memory {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Checks that no change is lost: if the flag is clear after the last change, a copy contains that change.
    #[test]
    fn no_change_is_lost() {
        loom::model(|| {
            let shared = Arc::new((AtomicU64::new(0), Changed::new()));
            let changing = [(); 2].map(|()| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.0.fetch_add(1, Ordering::Relaxed);
                    shared.1.mark();
                })
            });
            let mut copy = 0;
            for _ in 0..2 {
                if shared.1.take() {
                    copy = shared.0.load(Ordering::Relaxed);
                }
            }
            for thread in changing {
                thread.join().unwrap();
            }
            if !shared.1.take() {
                assert_eq!(copy, 2);
            }
        });
    }
}
