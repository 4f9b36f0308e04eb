//! Limits how many samples are tracked until their object is collected, under generational ZGC.
//!
//! **The problem.** A young GC of generational ZGC treats an object with a weak or phantom reference as live, until a
//! major GC finds it dead in the old generation. The GC frees a page (2 MB) without live objects at once, but it must
//! evacuate a page that contains a sampled object. With an interval of 512 KiB, nearly every page contains a sample.
//!
//! **The solution.** All samples are counted with their stacks, but only some of them are tracked: at most about eight
//! per second ([`Pace`]), or as many as the option `follow` requests ([`initial_tracking`]). The interval between
//! tracked samples is doubled when too many samples are tracked, or when the unproven samples take more than half of
//! their limit ([`PART`]).
//!
//! A sample is *unproven* until a GC finds that the sample, or a younger sample, is dead. If a GC finds a younger
//! sample dead but not this sample, then this sample is live. The reason: this sample has survived at least as many GCs
//! as the younger sample. So it was in the old generation, too, when that GC searched the old generation for dead
//! objects.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use heapdiff_sites::{Sampling, Strategy};

use crate::options::Options;
use crate::pace::Pace;

/// A sample is unproven until a GC shows that its object is live or dead. All unproven samples together may take at
/// most 1 / `PART` of the maximum heap size.
const PART: u64 = 200;
/// Number of bytes that each sample counts for in addition to the size of its object. These bytes stand for the
/// sample's reference, and for other objects to which the sampled object refers.
const BESIDE: u64 = 160;
/// One sample counts for at most 1 / `LARGE` of the limit. Otherwise a few large live objects would use up the limit.
const LARGE: u64 = 8;
/// The kernel's name of a thread that exists only in a JVM with generational ZGC.
const THREAD: &str = "ZDriverMinor";

/// Limits the total size of the unproven samples. An unproven sample is tracked, but no GC has shown yet whether the
/// sample is live or dead.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// Maximum total size in bytes of the unproven samples: the samples that no GC has shown to be live or dead yet.
    most: u64,
    bytes: AtomicU64,
    /// Uid of the newest sample that was found dead; 0 if no sample was found dead.
    tried: AtomicU64,
    /// Limits the number of samples tracked per time window. `None` if the option `follow` is set.
    pace: Option<Pace>,
}

/// Minimum time between two searches for collected samples. Young GCs find no collected samples, so a search after each
/// young GC would be useless.
const REST: Duration = Duration::from_millis(250);

/// Decides when to search for collected samples.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Time of the last search, in nanoseconds since the start.
    last: AtomicU64,
    /// True if a search was requested but has not been made yet, because the request came too early or the search
    /// failed.
    owed: AtomicBool,
}

impl Looks {
    /// Requests a search for collected samples. Returns true if the search may be made now. The request stays pending
    /// until [`Self::mark_search_made`] is called.
    pub(crate) fn request_if_due(&self, now: Duration) -> bool {
        self.owed.store(true, Relaxed);
        let is_due = self.rest(now).is_zero();
        if is_due {
            let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
            self.last.store(now, Relaxed);
        }
        is_due
    }

    pub(crate) fn mark_search_made(&self) {
        self.owed.store(false, Relaxed);
    }

    /// Returns the time to wait for the pending search, or `None` if none is pending.
    pub(crate) fn time_until_search(&self, now: Duration) -> Option<Duration> {
        self.owed.load(Relaxed).then(|| self.rest(now))
    }

    fn rest(&self, now: Duration) -> Duration {
        let last = Duration::from_nanos(self.last.load(Relaxed));
        REST.saturating_sub(now.saturating_sub(last))
    }
}

/// True if the number of tracked samples is limited in this JVM. This requires generational ZGC. If the user requests a
/// sample of every allocation, the number is limited only if the option `follow` is set.
pub(crate) fn is_to_follow_few(options: &Options) -> bool {
    let takes_all = options.sampling.probability(8) == Some(1.0);
    (options.follow.is_some() || !takes_all) && is_generational_z()
}

/// Returns how samples are selected for tracking at the start. The first result is the number of times that the
/// sampling interval is doubled for this selection. The second is the sampling strategy with the doubled interval.
///
/// By default every sample is tracked at first, so the function returns 0 and the unchanged strategy. With
/// `follow=BYTES` and the strategy `bytes`, the interval is doubled until it is at least that many bytes.
pub(crate) fn initial_tracking(options: &Options) -> (u64, Sampling) {
    let (mut times, mut sampling) = (0, options.sampling);
    let interval = options.follow.unwrap_or(0);
    while sampling.strategy == Strategy::Bytes && sampling.interval < interval {
        (times, sampling) = (times + 1, sampling.doubled());
    }
    (times, sampling)
}

/// True if this JVM uses generational ZGC.
fn is_generational_z() -> bool {
    has_thread(Path::new("/proc/self/task"), THREAD)
}

fn has_thread(tasks: &Path, name: &str) -> bool {
    fs::read_dir(tasks).is_ok_and(|tasks| {
        tasks.flatten().any(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        })
    })
}

impl Unproven {
    /// Creates the limit for the unproven samples in a JVM whose maximum heap size is `largest_heap` bytes. If there is
    /// a `pace`, it also limits how many samples are tracked per time window.
    pub(crate) fn new(largest_heap: u64, pace: Option<Pace>) -> Self {
        Self {
            most: (largest_heap / PART).max(64 * BESIDE),
            bytes: AtomicU64::new(0),
            tried: AtomicU64::new(0),
            pace,
        }
    }

    /// Counts a sample that is to be tracked. Its object has `size` bytes. If the sample would exceed the limit,
    /// returns false and counts nothing. `now` returns the time since the start and is called only if needed.
    pub(crate) fn add(&self, size: u64, now: impl FnOnce() -> Duration) -> bool {
        let more = self.counted_bytes(size);
        let add = |bytes: u64| {
            let sum = bytes.saturating_add(more);
            (sum <= self.most).then_some(sum)
        };
        let has_room = self.bytes.fetch_update(Relaxed, Relaxed, add).is_ok();
        if let Some(pace) = self.pace.as_ref().filter(|_| has_room) {
            pace.add(now());
        }
        has_room
    }

    /// Undoes the counting of a sample that is not tracked after all.
    pub(crate) fn undo_count(&self, size: u64) {
        let less = |bytes: u64| Some(bytes.saturating_sub(self.counted_bytes(size)));
        let _ = self.bytes.fetch_update(Relaxed, Relaxed, less);
    }

    /// Records that the sample with this uid was found dead.
    pub(crate) fn record_dead(&self, uid: u64) {
        self.tried.fetch_max(uid, Relaxed);
    }

    /// Returns the uid of the newest sample that was found dead, or 0.
    pub(crate) fn newest_dead_uid(&self) -> u64 {
        self.tried.load(Relaxed)
    }

    /// Computes the total size of the unproven samples again. These are the tracked samples with a larger uid than the
    /// newest sample that was found dead. `followed` yields uid and size of all tracked samples. A sample that is added
    /// meanwhile may be missed or counted twice.
    pub(crate) fn recount(&self, followed: impl Iterator<Item = (u64, u64)>) {
        let tried = self.newest_dead_uid();
        let untried = followed.filter(|(uid, _)| *uid > tried);
        let bytes = untried.fold(0_u64, |sum, (_, size)| {
            sum.saturating_add(self.counted_bytes(size))
        });
        self.bytes.store(bytes, Relaxed);
    }

    /// True if fewer samples should be tracked, for one of two reasons. The unproven samples (not yet shown to be live
    /// or dead) exceed half of the limit, or the current time window has too many tracked samples.
    pub(crate) fn should_track_fewer(&self) -> bool {
        self.bytes.load(Relaxed) > self.most / 2 || self.pace.as_ref().is_some_and(Pace::is_full)
    }

    /// Records that half of the tracked samples were discarded.
    pub(crate) fn record_halved(&self) {
        if let Some(pace) = &self.pace {
            pace.halve_count();
        }
    }

    /// Returns the number of bytes that a tracked sample of this size counts for.
    fn counted_bytes(&self, size: u64) -> u64 {
        size.saturating_add(BESIDE).min(self.most / LARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_part_of_the_heap() {
        let timeless = || unreachable!("the code does not use the time");
        let unproven = Unproven::new(PART * 10_000 * 200, None);
        let added = (0..).take_while(|_| unproven.add(40, timeless)).count();
        assert_eq!(added, 10_000);
        assert!(unproven.should_track_fewer() && !unproven.add(40, timeless));
        unproven.undo_count(40);
        assert!(unproven.add(40, timeless));
        // The sample with the uid 5000 was found dead. This shows for each older sample whether the sample is live or
        // dead. So only the younger half of the 10,000 samples is still unproven.
        unproven.record_dead(5000);
        unproven.record_dead(3000);
        unproven.recount((1..=10_000).map(|uid| (uid, 40)));
        assert_eq!(
            (unproven.newest_dead_uid(), unproven.should_track_fewer()),
            (5000, false)
        );
        assert!(unproven.add(40, timeless) && unproven.should_track_fewer());
        // Even for the smallest heap, the limit allows eight samples, however large the sampled objects are.
        let small = Unproven::new(0, None);
        assert_eq!(
            (0..).take_while(|_| small.add(u64::MAX, timeless)).count(),
            8
        );
        assert!(Unproven::new(0, None).add(24, timeless));
    }

    #[test]
    fn a_postponed_search_is_made_up_for() {
        let looks = Looks::default();
        let ms = Duration::from_millis;
        assert_eq!(looks.time_until_search(ms(100)), None);
        assert!(looks.request_if_due(ms(1000)));
        looks.mark_search_made();
        assert_eq!(looks.time_until_search(ms(1000)), None);
        // If a search is requested too early, it must be made later without another request. The reason is that the JVM
        // reports the end of each GC only once.
        assert!(!looks.request_if_due(ms(1100)));
        assert_eq!(looks.time_until_search(ms(1110)), Some(ms(140)));
        assert!(looks.request_if_due(ms(1250)));
        // If a search fails, it is repeated later.
        assert_eq!(looks.time_until_search(ms(1260)), Some(ms(240)));
        assert_eq!(looks.time_until_search(ms(9000)), Some(ms(0)));
        assert!(looks.request_if_due(ms(9000)));
        looks.mark_search_made();
        assert_eq!(looks.time_until_search(ms(9001)), None);
    }

    #[test]
    fn too_many_recent_samples_reach_the_limit() {
        let unproven = Unproven::new(1 << 40, Some(Pace::new(1 << 40)));
        let add = || unproven.add(40, || Duration::from_secs(3));
        let added = (0..).take_while(|_| !unproven.should_track_fewer() && add());
        assert_eq!(added.count(), 80);
        unproven.record_halved();
        assert!(!unproven.should_track_fewer());
        let small = Unproven::new(0, Some(Pace::new(1 << 40)));
        let added = (0..).take_while(|_| small.add(40, || Duration::ZERO));
        assert_eq!((added.count(), small.should_track_fewer()), (51, true));
        small.recount([].into_iter());
        assert!(!small.should_track_fewer());
    }

    #[test]
    fn options_set_how_many_samples_are_tracked_at_first() {
        let at_first = |text: &str| {
            let (times, sampling) = initial_tracking(&Options::parse(text).unwrap());
            (times, sampling.interval, sampling.rate)
        };
        assert_eq!(at_first(""), (0, 512 << 10, 0));
        assert_eq!(at_first("follow=128m"), (8, 128 << 20, 0));
        assert_eq!(at_first("interval=256m,follow=128m"), (0, 256 << 20, 0));
        assert_eq!(at_first("interval=64k,follow=100k"), (1, 128 << 10, 0));
        assert_eq!(at_first("strategy=count,rate=7,follow=1m"), (0, 0, 7));
        assert!(!is_to_follow_few(&Options::default()));
    }

    #[test]
    fn generational_zgc_is_detected_by_a_thread_name() {
        let tasks = tempfile::tempdir().unwrap();
        for (id, name) in [("1", "java\n"), ("2", "ZDriverMinor2\n"), ("3", "")] {
            let task = tasks.path().join(id);
            fs::create_dir(&task).unwrap();
            fs::write(task.join("comm"), name).unwrap();
        }
        assert!(!has_thread(tasks.path(), THREAD));
        fs::write(tasks.path().join("3/comm"), "ZDriverMinor\n").unwrap();
        assert!(has_thread(tasks.path(), THREAD));
        assert!(!has_thread(&tasks.path().join("none"), THREAD) && !is_generational_z());
    }
}
