//! Limits how many samples per second are tracked under generational ZGC. A young GC cannot free the page of a tracked
//! sample at once, so each tracked sample costs time.
//!
//! The cost depends on the number of tracked samples per second, not on the bytes between samples. So if a program
//! allocates slowly, all its samples can be tracked. This module counts tracked samples in time windows. If a window
//! has too many tracked samples, the module requests that fewer samples are tracked.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Length of a time window. Windows begin at multiples of this length.
const WINDOW: Duration = Duration::from_secs(10);
/// Maximum number of samples in a window. With windows of ten seconds this is eight per second.
const MOST: u32 = 80;
/// Limit for small heaps: at most one sample per window for each `BYTES_EACH` bytes of the maximum heap size. The limit
/// is low because a page with a tracked sample cannot be freed at once, and in a small heap a page is a larger part of
/// the heap. Also, each live sampled object takes up a page in each young GC until it is in the old generation.
const BYTES_EACH: u64 = 8 << 20;
const LEAST: u32 = 8;

/// The samples tracked in the current window.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Upper half: the number of the current time window. Lower half: the number of samples tracked in this window.
    window: AtomicU64,
    most: u32,
}

impl Pace {
    /// Creates the limit for a JVM whose maximum heap size is `largest_heap` bytes.
    pub(crate) fn new(largest_heap: u64) -> Self {
        let most = u32::try_from(largest_heap / BYTES_EACH).unwrap_or(MOST);
        Self {
            window: AtomicU64::new(0),
            most: most.clamp(LEAST, MOST),
        }
    }

    /// Counts a tracked sample. `now` is the time since the start of sampling.
    pub(crate) fn add(&self, now: Duration) {
        let here = (now.as_secs() / WINDOW.as_secs()) << 32;
        let add = |window: u64| {
            let (at, count) = (window >> 32 << 32, low(window));
            // A sample that arrives late, after its window has ended, counts in the current window.
            Some(if at >= here {
                at | u64::from(count.saturating_add(1))
            } else {
                here | 1
            })
        };
        let _ = self.window.fetch_update(Relaxed, Relaxed, add);
    }

    /// True if the current time window has too many tracked samples.
    pub(crate) fn is_full(&self) -> bool {
        low(self.window.load(Relaxed)) >= self.most
    }

    /// Halves the count of tracked samples in the current time window. Call this after half of the tracked samples were
    /// discarded.
    pub(crate) fn halve_count(&self) {
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

    /// Simulates a program that allocates `bytes_per_second`. Returns the interval between tracked samples after
    /// `seconds`. `interval` is the interval at the start.
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
            // A sample is tracked if its number is a multiple of `interval / FIRST`.
            if sample % (interval / FIRST) == 0 {
                pace.add(now);
            }
            while pace.is_full() {
                pace.halve_count();
                interval *= 2;
            }
        }
        interval
    }

    #[test]
    fn slow_allocation_tracks_all_samples() {
        for hours in [1, 24] {
            assert_eq!(interval(hours * 3600, 3 * MIB, FIRST), FIRST);
        }
        assert_eq!(interval(9, 4 * MIB, FIRST), FIRST);
    }

    #[test]
    fn fast_allocation_tracks_at_most_eight_samples_a_second() {
        assert_eq!(interval(1, 2048 * MIB, FIRST), 32 * MIB);
        assert_eq!(interval(10, 2048 * MIB, FIRST), 256 * MIB);
        assert_eq!(interval(100, 2000 * MIB, FIRST), 256 * MIB);
        assert_eq!(interval(100, 100 * MIB, FIRST), 16 * MIB);
        assert_eq!(interval(100, 100 * MIB, 64 * MIB), 64 * MIB);
    }

    #[test]
    fn small_heaps_track_fewer_samples() {
        let after = |heap: u64| interval_in(heap * MIB, 100, 2000 * MIB, FIRST);
        assert_eq!(
            [4096, 640, 320, 96, 32, 1].map(after).map(|i| i / MIB),
            [256, 256, 512, 2048, 4096, 4096]
        );
    }

    #[test]
    fn each_time_window_is_counted_separately() {
        let pace = Pace::new(LARGE);
        let add = |seconds: u64, times: u32| {
            (0..times).for_each(|_| pace.add(Duration::from_secs(seconds)));
            pace.is_full()
        };
        assert!(!add(9, MOST - 1) && !add(10, MOST - 1));
        // This sample arrives after its window has ended.
        assert!(add(9, 1));
        pace.halve_count();
        assert!(!add(19, MOST / 2 - 1) && add(19, 1));
        // If a window has far too many samples, the count must be halved several times until it is below the limit.
        add(40, 10 * MOST);
        let times = (0..).take_while(|_| {
            let full = pace.is_full();
            pace.halve_count();
            full
        });
        assert_eq!(times.count(), 4);
    }
}
