//! How many samples a second are followed, under generational ZGC: each keeps a page of the heap from being free at once.
//!
//! What that costs goes by the time, not by the bytes between two samples: a program that allocates little can have all of
//! its samples followed. So they are counted in windows of time, and fewer are followed when a window has too many.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Windows begin at multiples of this.
const WINDOW: Duration = Duration::from_secs(10);
/// With so many in a window it is time to follow fewer: eight a second.
const MOST: u32 = 80;
/// Fewer in a small heap, one for each so many bytes: there a page that cannot be free at once is a larger part of the heap,
/// and an object that lives on takes a page of its own in each minor collection until it is old.
const BYTES_EACH: u64 = 8 << 20;
const LEAST: u32 = 8;

/// Samples that are followed in the present window.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Which window it is, and in the lower half how many.
    window: AtomicU64,
    most: u32,
}

impl Pace {
    /// In a heap that may grow to so many bytes.
    pub(crate) fn new(largest_heap: u64) -> Self {
        let most = u32::try_from(largest_heap / BYTES_EACH).unwrap_or(MOST);
        Self {
            window: AtomicU64::new(0),
            most: most.clamp(LEAST, MOST),
        }
    }

    /// Counts one at this time since the start.
    pub(crate) fn add(&self, now: Duration) {
        let here = (now.as_secs() / WINDOW.as_secs()) << 32;
        let add = |window: u64| {
            let (at, count) = (window >> 32 << 32, low(window));
            // A thread that is late counts in the window that there is.
            Some(if at >= here {
                at | u64::from(count.saturating_add(1))
            } else {
                here | 1
            })
        };
        let _ = self.window.fetch_update(Relaxed, Relaxed, add);
    }

    /// Whether it is time to follow fewer.
    pub(crate) fn is_full(&self) -> bool {
        low(self.window.load(Relaxed)) >= self.most
    }

    /// Half of those that were followed are let go of.
    pub(crate) fn halve(&self) {
        let halve = |window: u64| Some(window >> 32 << 32 | u64::from(low(window) / 2));
        let _ = self.window.fetch_update(Relaxed, Relaxed, halve);
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "only the lower 32 bits are used"
)]
const fn low(window: u64) -> u32 {
    window as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const FIRST: u64 = MIB / 2;
    const LARGE: u64 = 1024 * MIB;

    /// The interval after so many seconds of a program that allocates so many bytes a second, from this one on.
    fn interval(seconds: u64, bytes_per_second: u64, interval: u64) -> u64 {
        interval_in(LARGE, seconds, bytes_per_second, interval)
    }

    fn interval_in(heap: u64, seconds: u64, bytes_per_second: u64, mut interval: u64) -> u64 {
        let pace = Pace::new(heap);
        let mut bytes = 0;
        for sample in 1.. {
            bytes += FIRST;
            let now = Duration::from_secs_f64(bytes as f64 / bytes_per_second as f64);
            if now.as_secs() >= seconds {
                break;
            }
            // Of those that are taken every so many are followed.
            if sample % (interval / FIRST) == 0 {
                pace.add(now);
            }
            while pace.is_full() {
                pace.halve();
                interval *= 2;
            }
        }
        interval
    }

    #[test]
    fn who_allocates_slowly_has_all_samples_followed() {
        for hours in [1, 24] {
            assert_eq!(interval(hours * 3600, 3 * MIB, FIRST), FIRST);
        }
        assert_eq!(interval(9, 4 * MIB, FIRST), FIRST);
    }

    #[test]
    fn who_allocates_fast_has_eight_a_second_at_most() {
        assert_eq!(interval(1, 2048 * MIB, FIRST), 32 * MIB);
        assert_eq!(interval(10, 2048 * MIB, FIRST), 256 * MIB);
        assert_eq!(interval(100, 2000 * MIB, FIRST), 256 * MIB);
        assert_eq!(interval(100, 100 * MIB, FIRST), 16 * MIB);
        assert_eq!(interval(100, 100 * MIB, 64 * MIB), 64 * MIB);
    }

    #[test]
    fn small_heaps_have_fewer() {
        let after = |heap: u64| interval_in(heap * MIB, 100, 2000 * MIB, FIRST);
        assert_eq!(
            [4096, 640, 320, 96, 32, 1].map(after).map(|i| i / MIB),
            [256, 256, 512, 2048, 4096, 4096]
        );
    }

    #[test]
    fn windows_are_counted_by_themselves() {
        let pace = Pace::new(LARGE);
        let add = |seconds: u64, times: u32| {
            (0..times).for_each(|_| pace.add(Duration::from_secs(seconds)));
            pace.is_full()
        };
        assert!(!add(9, MOST - 1) && !add(10, MOST - 1));
        // One that is late.
        assert!(add(9, 1));
        pace.halve();
        assert!(!add(19, MOST / 2 - 1) && add(19, 1));
        // Many at once are halved until few enough are left.
        add(40, 10 * MOST);
        let times = (0..).take_while(|_| {
            let full = pace.is_full();
            pace.halve();
            full
        });
        assert_eq!(times.count(), 4);
    }
}
