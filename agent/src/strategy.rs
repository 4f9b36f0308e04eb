//! The sampling strategies. The JVM reports some allocations to the agent. The strategy decides which of these
//! allocations become samples.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdiff_sites::{Sampling, Strategy, TOTALS_CHUNK};

use crate::intern::MAX_TYPES;
use crate::random::Random;

/// The sampling strategy, with its current interval and rate.
pub(crate) struct ActiveStrategy {
    strategy: Strategy,
    interval: AtomicU64,
    rate: AtomicU64,
    /// The rate at which samples are taken. The rate at which samples are tracked (`rate`) may be lower.
    taking: AtomicU64,
    random: Random,
    /// Number of allocations so far that the JVM has sampled. Only the strategy `count` uses it.
    position: AtomicU64,
    /// With the strategy `count`, the number of the next allocation to take. With the strategy `time`, the time of the
    /// next sample in nanoseconds.
    next: AtomicU64,
    next_of_class: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl ActiveStrategy {
    pub(crate) fn new(sampling: Sampling, seed: u64) -> Self {
        let random = Random::new(seed);
        let next = match sampling.strategy {
            Strategy::Count => random.random_below(sampling.rate),
            _ => 0,
        };
        Self {
            strategy: sampling.strategy,
            interval: AtomicU64::new(sampling.interval),
            rate: AtomicU64::new(sampling.rate),
            taking: AtomicU64::new(sampling.rate),
            random,
            position: AtomicU64::new(0),
            next: AtomicU64::new(next),
            next_of_class: (0..MAX_TYPES.div_ceil(TOTALS_CHUNK))
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// Returns the strategy with its current interval and rate.
    pub(crate) fn sampling(&self) -> Sampling {
        Sampling {
            strategy: self.strategy,
            interval: self.interval.load(Relaxed),
            rate: self.rate.load(Relaxed),
        }
    }

    /// Sets the interval and the rate at which samples are taken and tracked.
    pub(crate) fn set(&self, sampling: Sampling) {
        self.taking.store(sampling.rate, Relaxed);
        self.follow(sampling);
    }

    /// Changes the rate at which samples are tracked, but not the rate at which they are taken.
    pub(crate) fn follow(&self, sampling: Sampling) {
        self.interval.store(sampling.interval, Relaxed);
        self.rate.store(sampling.rate, Relaxed);
    }

    /// True if the allocations of each class are counted.
    pub(crate) fn counts_classes(&self) -> bool {
        self.strategy == Strategy::Class
    }

    /// True if the current allocation is taken as a sample. `now` returns nanoseconds and is called only if the
    /// strategy needs the time.
    pub(crate) fn should_sample(&self, now: impl FnOnce() -> u64) -> bool {
        match self.strategy {
            Strategy::Bytes => true,
            Strategy::Count => {
                let position = self.position.fetch_add(1, Relaxed);
                self.reaches_next(&self.next, position, self.taking.load(Relaxed), false)
            }
            Strategy::Time => {
                let rate = self.taking.load(Relaxed).saturating_mul(1_000_000);
                self.reaches_next(&self.next, now(), rate, true)
            }
            // With this strategy, `should_sample_class` decides.
            Strategy::Class => false,
        }
    }

    /// True if allocation number `position` (0-based) of a class is taken as a sample.
    pub(crate) fn should_sample_class(&self, class: u32, position: u64) -> bool {
        let (chunk, place) = (class as usize / TOTALS_CHUNK, class as usize % TOTALS_CHUNK);
        let Some(lock) = self.next_of_class.get(chunk) else {
            return false;
        };
        let rate = self.taking.load(Relaxed);
        let first = || AtomicU64::new(self.random.random_below(rate));
        let next = lock.get_or_init(|| (0..TOTALS_CHUNK).map(|_| first()).collect());
        self.reaches_next(&next[place], position, rate, false)
    }

    /// Returns true if `position` has reached `next`. If so, sets a new `next` at a random distance, whose mean is
    /// `rate`.
    ///
    /// If `from_here` is false, the new `next` is the old `next` plus the distance. Then the mean distance between
    /// samples is `rate`, even if positions are skipped. If `from_here` is true, the new `next` is `position` plus the
    /// distance. Then no additional samples are taken for a time without allocations.
    fn reaches_next(&self, next: &AtomicU64, position: u64, rate: u64, from_here: bool) -> bool {
        let mut at = next.load(Relaxed);
        while position >= at {
            let start = if from_here { position } else { at };
            let then = start.saturating_add(self.random.random_near(rate));
            match next.compare_exchange_weak(at, then, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => at = now,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(strategy: Strategy, rate: u64) -> ActiveStrategy {
        let interval = 0;
        let sampling = Sampling {
            strategy,
            interval,
            rate,
        };
        ActiveStrategy::new(sampling, 1)
    }

    #[test]
    fn the_count_strategy_samples_every_nth_allocation() {
        for rate in [1, 2, 3, 10, 1000] {
            let count = active(Strategy::Count, rate);
            let n = 200_000;
            let hits = (0..n).filter(|_| count.should_sample(|| 0)).count() as u64;
            let expected = n / rate;
            assert!(
                hits.abs_diff(expected) * 50 <= expected + 50,
                "{rate}: {hits}"
            );
        }
        let all = active(Strategy::Count, 1);
        assert!((0..1000).all(|_| all.should_sample(|| 0)));
    }

    #[test]
    fn distances_are_jittered_by_half_the_rate() {
        let count = active(Strategy::Count, 100);
        let hits: Vec<u64> = (0..100_000).filter(|_| count.should_sample(|| 0)).collect();
        let gaps: Vec<u64> = hits.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|g| (50..=150).contains(g)));
        assert!(gaps.contains(&60) && gaps.contains(&140));
    }

    #[test]
    fn the_time_strategy_samples_at_its_interval() {
        let time = active(Strategy::Time, 10);
        let hits: Vec<u64> = (0..1_000_000_000_u64)
            .step_by(100_000)
            .filter(|&now| time.should_sample(|| now))
            .collect();
        assert!((90..=110).contains(&hits.len()), "{}", hits.len());
        assert!(hits.windows(2).all(|w| w[1] - w[0] >= 5_000_000));
    }

    #[test]
    fn the_class_strategy_counts_each_class_separately() {
        let class = active(Strategy::Class, 10);
        let hits = |id: u32, n: u64| (0..n).filter(|&i| class.should_sample_class(id, i)).count();
        assert!((95..=105).contains(&hits(1, 1000)));
        assert!((95..=105).contains(&hits(5000, 1000)));
        assert!(!class.should_sample(|| 0));
        assert!(!class.should_sample_class(u32::MAX, 0));
    }
}
