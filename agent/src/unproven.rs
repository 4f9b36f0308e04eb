//! How many samples are followed until their object is collected, under generational ZGC.
//!
//! Its minor collections take what a weak or phantom reference refers to for alive, until a major collection finds it dead in
//! the old generation. A page of 2 MB in which nothing lives is free as soon as that is known; with one sampled object in it
//! it has to be evacuated like any other. At an interval of half a megabyte there is a sample in every page. So all samples
//! are counted, with their stacks, and no more than a few a second are followed ([`Pace`]), or those that an option asks for
//! ([`followed_at_first`]): at an interval that doubles, as by thinning, when they are too many, or when those that no
//! collection has tried take more than a small part of the heap.
//!
//! A sample is tried when one that is as young or younger was found to be dead: an object that is older has outlived as
//! many collections, so it was in the old generation as well, and lives.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use heapdiff_sites::{Sampling, Strategy};

use crate::options::Options;
use crate::pace::Pace;

/// What has not been tried takes no more than one part in so many of the largest heap.
const PART: u64 = 200;
/// Beside the object: the sample's own reference, and what a small object holds.
const BESIDE: u64 = 160;
/// A large object counts for one part in so many of the room, or a few that live on would leave none to others.
const LARGE: u64 = 8;
/// The name, as the kernel has it, of a thread that only generational ZGC has.
const THREAD: &str = "ZDriverMinor";

/// What is followed and not tried.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// Bytes that it may take.
    most: u64,
    bytes: AtomicU64,
    /// The newest sample that was found to be dead.
    tried: AtomicU64,
    /// Where no option says how many are followed.
    pace: Option<Pace>,
}

/// Where minor collections find nothing it is looked no sooner again for what was collected.
const REST: Duration = Duration::from_millis(250);

/// When is looked for what was collected.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The last one, nanoseconds since the start.
    last: AtomicU64,
    /// One was due too soon, or has failed, and is to be made up for.
    owed: AtomicBool,
}

impl Looks {
    /// Whether it is time for one that is asked for now. It is owed until [`Self::made`].
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.owed.store(true, Relaxed);
        let is_due = self.rest(now).is_zero();
        if is_due {
            let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
            self.last.store(now, Relaxed);
        }
        is_due
    }

    pub(crate) fn made(&self) {
        self.owed.store(false, Relaxed);
    }

    /// How long to wait for the one that is owed.
    pub(crate) fn owed_in(&self, now: Duration) -> Option<Duration> {
        self.owed.load(Relaxed).then(|| self.rest(now))
    }

    fn rest(&self, now: Duration) -> Duration {
        let last = Duration::from_nanos(self.last.load(Relaxed));
        REST.saturating_sub(now.saturating_sub(last))
    }
}

/// Whether few samples are to be followed in this JVM: where they would keep garbage, unless every allocation is asked for.
pub(crate) fn is_to_follow_few(options: &Options) -> bool {
    let takes_all = options.sampling.probability(8) == Some(1.0);
    (options.follow.is_some() || !takes_all) && is_generational_z()
}

/// How many times the sampling is made coarser before the first sample, and what it is then, as to which samples are
/// followed: those that are taken, unless an option says how many bytes lie between two, and samples are by bytes.
pub(crate) fn followed_at_first(options: &Options) -> (u64, Sampling) {
    let (mut times, mut sampling) = (0, options.sampling);
    let interval = options.follow.unwrap_or(0);
    while sampling.strategy == Strategy::Bytes && sampling.interval < interval {
        (times, sampling) = (times + 1, sampling.doubled());
    }
    (times, sampling)
}

/// Whether this JVM's collector is generational ZGC.
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
    /// In a heap that may grow to so many bytes; `pace`: as many as time allows.
    pub(crate) fn new(largest_heap: u64, pace: Option<Pace>) -> Self {
        Self {
            most: (largest_heap / PART).max(64 * BESIDE),
            bytes: AtomicU64::new(0),
            tried: AtomicU64::new(0),
            pace,
        }
    }

    /// Counts a sample of so many bytes that is to be followed; `false` if there is no room for it. `now`, since the start,
    /// is asked for only if it matters.
    pub(crate) fn add(&self, size: u64, now: impl FnOnce() -> Duration) -> bool {
        let more = self.charge(size);
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

    /// A sample that was counted is not followed after all.
    pub(crate) fn take_back(&self, size: u64) {
        let less = |bytes: u64| Some(bytes.saturating_sub(self.charge(size)));
        let _ = self.bytes.fetch_update(Relaxed, Relaxed, less);
    }

    /// A sample was found to be dead.
    pub(crate) fn found_dead(&self, uid: u64) {
        self.tried.fetch_max(uid, Relaxed);
    }

    /// The newest sample that was found to be dead; 0 for none.
    pub(crate) fn tried(&self) -> u64 {
        self.tried.load(Relaxed)
    }

    /// Counts anew those of all followed samples, uid and size, that have not been tried. What is added meanwhile may
    /// be missed, or counted twice.
    pub(crate) fn recount(&self, followed: impl Iterator<Item = (u64, u64)>) {
        let tried = self.tried();
        let untried = followed.filter(|(uid, _)| *uid > tried);
        let bytes = untried.fold(0_u64, |sum, (_, size)| {
            sum.saturating_add(self.charge(size))
        });
        self.bytes.store(bytes, Relaxed);
    }

    /// Whether it is time to follow fewer: half of the room is taken, or there were too many of late.
    pub(crate) fn is_crowded(&self) -> bool {
        self.bytes.load(Relaxed) > self.most / 2 || self.pace.as_ref().is_some_and(Pace::is_full)
    }

    /// Half of those that were followed are let go of, and half as many will be.
    pub(crate) fn halve(&self) {
        if let Some(pace) = &self.pace {
            pace.halve();
        }
    }

    /// What a sample that is followed counts for.
    fn charge(&self, size: u64) -> u64 {
        size.saturating_add(BESIDE).min(self.most / LARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_a_part_of_the_heap() {
        let timeless = || unreachable!("no time is asked for");
        let unproven = Unproven::new(PART * 10_000 * 200, None);
        let added = (0..).take_while(|_| unproven.add(40, timeless)).count();
        assert_eq!(added, 10_000);
        assert!(unproven.is_crowded() && !unproven.add(40, timeless));
        unproven.take_back(40);
        assert!(unproven.add(40, timeless));
        // Of 10,000 that are there, half were tried.
        unproven.found_dead(5000);
        unproven.found_dead(3000);
        unproven.recount((1..=10_000).map(|uid| (uid, 40)));
        assert_eq!((unproven.tried(), unproven.is_crowded()), (5000, false));
        assert!(unproven.add(40, timeless) && unproven.is_crowded());
        // There is room for eight that are larger than it, and in a small heap for some at least.
        let small = Unproven::new(0, None);
        assert_eq!(
            (0..).take_while(|_| small.add(u64::MAX, timeless)).count(),
            8
        );
        assert!(Unproven::new(0, None).add(24, timeless));
    }

    #[test]
    fn what_is_put_off_is_made_up_for() {
        let looks = Looks::default();
        let ms = Duration::from_millis;
        assert_eq!(looks.owed_in(ms(100)), None);
        assert!(looks.is_due(ms(1000)));
        looks.made();
        assert_eq!(looks.owed_in(ms(1000)), None);
        // The collector says no second time that it has run.
        assert!(!looks.is_due(ms(1100)));
        assert_eq!(looks.owed_in(ms(1110)), Some(ms(140)));
        assert!(looks.is_due(ms(1250)));
        // It fails, and is repeated.
        assert_eq!(looks.owed_in(ms(1260)), Some(ms(240)));
        assert_eq!(looks.owed_in(ms(9000)), Some(ms(0)));
        assert!(looks.is_due(ms(9000)));
        looks.made();
        assert_eq!(looks.owed_in(ms(9001)), None);
    }

    #[test]
    fn too_many_of_late_are_too_many() {
        let unproven = Unproven::new(1 << 40, Some(Pace::new(1 << 40)));
        let add = || unproven.add(40, || Duration::from_secs(3));
        let added = (0..).take_while(|_| !unproven.is_crowded() && add());
        assert_eq!(added.count(), 80);
        unproven.halve();
        assert!(!unproven.is_crowded());
        let small = Unproven::new(0, Some(Pace::new(1 << 40)));
        let added = (0..).take_while(|_| small.add(40, || Duration::ZERO));
        assert_eq!((added.count(), small.is_crowded()), (51, true));
        small.recount([].into_iter());
        assert!(!small.is_crowded());
    }

    #[test]
    fn so_many_are_followed_at_first() {
        let at_first = |text: &str| {
            let (times, sampling) = followed_at_first(&Options::parse(text).unwrap());
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
    fn the_collector_is_known_by_a_thread() {
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
