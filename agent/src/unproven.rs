//! How many samples are followed until their object is collected, under generational ZGC.
//!
//! Its minor collections take what a weak or phantom reference refers to for alive, until a major collection finds it dead in
//! the old generation. A page of 2 MB in which nothing lives is free as soon as that is known; with one sampled object in it
//! it has to be evacuated like any other. At an interval of half a megabyte there is a sample in every page. So all samples
//! are counted, with their stacks, but only one in many is followed: at a larger interval ([`followed_at_first`]), which
//! doubles, as by thinning, when those that no collection has tried take more than a small part of the heap.
//!
//! A sample is tried when one that is as young or younger was found to be dead: an object that is older has outlived as
//! many collections, so it was in the old generation as well, and lives.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdiff_sites::{Sampling, Strategy};

use crate::options::Options;

/// Mean bytes between samples that are followed, where the options tell nothing. One page in 64 has the object and often
/// another one the reference to it, so three pages in a hundred are not free at once that else were.
const FOLLOW: u64 = 128 << 20;
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
}

/// Whether few samples are to be followed in this JVM: where they would keep garbage, unless every allocation is asked for.
pub(crate) fn is_to_follow_few(options: &Options) -> bool {
    let takes_all = options.sampling.probability(8) == Some(1.0);
    (options.follow.is_some() || !takes_all) && is_generational_z()
}

/// How many times the sampling is made coarser before the first sample, and what it is then, as to which samples are
/// followed. Of what is not sampled by bytes nothing tells how many bytes lie between two.
pub(crate) fn followed_at_first(options: &Options) -> (u64, Sampling) {
    let (mut times, mut sampling) = (0, options.sampling);
    let interval = options.follow.unwrap_or(FOLLOW);
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
    /// In a heap that may grow to so many bytes.
    pub(crate) fn new(largest_heap: u64) -> Self {
        Self {
            most: (largest_heap / PART).max(64 * BESIDE),
            bytes: AtomicU64::new(0),
            tried: AtomicU64::new(0),
        }
    }

    /// Counts a sample of so many bytes that is to be followed; `false` if there is no room for it.
    pub(crate) fn add(&self, size: u64) -> bool {
        let more = self.charge(size);
        let add = |bytes: u64| {
            let sum = bytes.saturating_add(more);
            (sum <= self.most).then_some(sum)
        };
        self.bytes.fetch_update(Relaxed, Relaxed, add).is_ok()
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

    /// Whether it is time to follow fewer: half of the room is taken.
    pub(crate) fn is_crowded(&self) -> bool {
        self.bytes.load(Relaxed) > self.most / 2
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
        let unproven = Unproven::new(PART * 10_000 * 200);
        let added = (0..).take_while(|_| unproven.add(40)).count();
        assert_eq!(added, 10_000);
        assert!(unproven.is_crowded() && !unproven.add(40));
        unproven.take_back(40);
        assert!(unproven.add(40));
        // Of 10,000 that are there, half were tried.
        unproven.found_dead(5000);
        unproven.found_dead(3000);
        unproven.recount((1..=10_000).map(|uid| (uid, 40)));
        assert_eq!((unproven.tried(), unproven.is_crowded()), (5000, false));
        assert!(unproven.add(40) && unproven.is_crowded());
        // There is room for eight that are larger than it, and in a small heap for some at least.
        let small = Unproven::new(0);
        assert_eq!((0..).take_while(|_| small.add(u64::MAX)).count(), 8);
        assert!(Unproven::new(0).add(24));
    }

    #[test]
    fn few_are_followed_from_the_start() {
        let at_first = |text: &str| {
            let (times, sampling) = followed_at_first(&Options::parse(text).unwrap());
            (times, sampling.interval, sampling.rate)
        };
        assert_eq!(at_first(""), (8, 128 << 20, 0));
        assert_eq!(at_first("interval=256m"), (0, 256 << 20, 0));
        assert_eq!(at_first("interval=64k,follow=100k"), (1, 128 << 10, 0));
        assert_eq!(at_first("strategy=count,rate=7"), (0, 0, 7));
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
