//! Uses samples to measure how long the objects in a growing structure live.

use std::collections::BTreeSet;

use heapdiff_model::diff::Stack;

use crate::samples::Sample;
use crate::samples::attribution::{Attribution, downsampled};
use crate::sentence::Evidence;
use crate::trie::{StepId, Trie};

/// Minimum number of samples for a statement about survival.
const ENOUGH: u64 = 50;
/// Samples count as "all stay" if at least this part of them survives, in thousandths.
const ALL: u64 = 980;

/// Samples count as "none stays" if at most this part of them survives, in thousandths.
const NONE: u64 = 20;
/// Minimum number of samples for two conclusions:
///
/// - If there are at least this number of new samples, the times at which objects were added are known.
/// - If the first dump has at least this number of samples, and none of them is alive, objects were replaced.
const NEW: u64 = 16;

/// The samples of the objects in one structure, in the first and in the last dump of one JVM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survival {
    /// Number of samples of objects in the structure in the first dump, downsampled to the rate of the last dump.
    pub(crate) held: u64,
    /// Number of the samples counted in `held` whose objects are still in the structure in the last dump.
    pub(crate) kept: u64,
    /// Number of the samples counted in `held` whose objects are alive in the last dump, in the structure or elsewhere.
    pub(crate) alive: u64,
    /// Number of samples of objects in the structure in the last dump.
    pub(crate) live: u64,
    /// Numbers of samples added since the first dump. The time between the dumps is divided into quarters, and there is
    /// one number for the samples allocated in each.
    pub(crate) quarters: [u64; 4],
    /// Part of the samples that is known to be alive, in thousandths. Counts all samples taken at the stacks that
    /// allocated the growth. If too few samples of a stack are tracked, none of its samples counts as alive.
    pub(crate) permille: u64,
    /// Part of the samples that was collected, in thousandths. Counts the stacks that allocated the growth, except
    /// those with too few tracked samples.
    pub(crate) gone_permille: u64,
}

impl Survival {
    /// True if at least 98 % of the samples that were in the structure in the first dump are still there in the last
    /// dump.
    pub(crate) fn keeps_first_samples(&self) -> bool {
        self.held >= ENOUGH && self.kept * 1000 >= self.held * ALL
    }

    /// True if objects are still added in the last quarter of the time, at a quarter of the mean rate or more.
    pub(crate) fn is_still_growing(&self) -> bool {
        let came: u64 = self.quarters.iter().sum();
        came >= NEW && self.quarters[3] * 16 >= came
    }

    /// True if, in every quarter of the time between the dumps, objects were added to the structure and almost none of
    /// them were collected.
    pub(crate) fn is_total(&self) -> bool {
        self.keeps_first_samples()
            && self.live >= 2 * ENOUGH
            && self.permille >= ALL
            && self.is_still_growing()
            && self.quarters.iter().all(|&q| q > 0)
    }

    /// True if the objects of the first dump were replaced: at most 2 % of its samples are alive. [`ENOUGH`] samples
    /// are needed to decide, or [`NEW`] samples if none of them is alive.
    pub(crate) fn is_replaced(&self) -> bool {
        self.held >= ENOUGH && self.alive * 1000 <= self.held * NONE
            || self.held >= NEW && self.alive == 0
    }

    /// Returns the part of the first dump's samples that is no longer alive, in thousandths. Returns `None` if there
    /// are fewer than [`ENOUGH`] samples.
    pub(crate) fn replaced_permille(&self) -> Option<u64> {
        let gone = self.held.saturating_sub(self.alive) * 1000;
        (self.held >= ENOUGH).then(|| gone / self.held)
    }

    /// True if the bytes that were added and removed again are at least twice the growth. They are estimated from the
    /// samples of the stacks that allocated the growth.
    pub(crate) fn is_within_passage(&self, grown: u64, held: u64) -> bool {
        let stayed = 1000_u64.saturating_sub(self.gone_permille);
        2 * u128::from(grown) * u128::from(stayed)
            <= u128::from(held) * u128::from(self.gone_permille)
    }

    /// Returns the sentence about the survival of the first dump's samples, for a report. Returns `None` if there are
    /// fewer than [`ENOUGH`] samples.
    pub(crate) fn sentence(&self) -> Option<Evidence> {
        (self.held >= ENOUGH).then(|| Evidence::Samples {
            held: self.held,
            kept: self.kept,
            permille: self.is_total().then_some(self.permille),
        })
    }
}

impl Attribution {
    /// Tracks the samples of the given trie nodes from the first dump to the last. `self` has the samples of the last
    /// dump. Returns `None` if the dumps are of different JVMs. `taken` is when the dumps were taken, in milliseconds
    /// since 1970.
    pub(crate) fn survival(
        &self,
        trie: &Trie,
        content: &[StepId],
        (first, first_trie, before): (&Self, &Trie, &[StepId]),
        taken: [u64; 2],
        stacks: &[Stack],
    ) -> Option<Survival> {
        let (sampling, finest) = self.same_jvm(first)?;
        let now: BTreeSet<(u64, u32)> = self
            .within(trie, content)
            .map(|s| (s.uid, s.time_ms))
            .collect();
        let uids: BTreeSet<u64> = now.iter().map(|s| s.0).collect();
        let alive: BTreeSet<u64> = self.samples.live.iter().map(|s| s.uid).collect();
        let mut found = Survival {
            live: now.len() as u64,
            ..Survival::default()
        };
        let before: Vec<&Sample> = first.within(first_trie, before).collect();
        for sample in &before {
            // Skip a sample that the coarser sampling of the last dump would have dropped. Its absence there does not
            // show that its object was collected.
            if downsampled(sample, &sampling, &finest).is_some() {
                found.held += 1;
                found.kept += u64::from(uids.contains(&sample.uid));
                found.alive += u64::from(alive.contains(&sample.uid));
            }
        }
        // Convert the times of the dumps to the agent's clock. This clock may differ from the clock of the dumps, but a
        // dump is never earlier than the latest sample in it.
        let started = self.samples.agent()?.started_ms;
        let at = |of: &Self, taken: u64| {
            let latest = of.samples.live.iter().map(|s| s.time_ms).max();
            u64::from(latest.unwrap_or(0)).max(taken.saturating_sub(started))
        };
        let start = at(first, taken[0]);
        let end = at(self, taken[1]).max(start);
        let known: BTreeSet<u64> = before.iter().map(|s| s.uid).collect();
        for (uid, time) in now {
            let time = u64::from(time);
            if time > start && !known.contains(&uid) {
                found.quarters[quarter(time - start, end - start)] += 1;
            }
        }
        found.permille = alive_permille(stacks);
        found.gone_permille = gone_permille(stacks);
        Some(found)
    }
}

/// Returns the part of all samples taken at these stacks that is known to be alive, in thousandths. If too few samples
/// of a stack are tracked, none of its samples counts as alive.
fn alive_permille(stacks: &[Stack]) -> u64 {
    let samples: u64 = stacks.iter().map(|s| s.samples).sum();
    let known = stacks.iter().filter(|s| s.survival_known);
    let alive: u64 = known.map(|s| s.survival_permille * s.samples).sum();
    alive.checked_div(samples).unwrap_or(0)
}

/// Returns the part of the samples at these stacks that was collected, in thousandths. Only stacks with enough tracked
/// samples count. Returns 0 if there is no such stack.
fn gone_permille(stacks: &[Stack]) -> u64 {
    let known = || stacks.iter().filter(|s| s.survival_known);
    let samples: u64 = known().map(|s| s.samples).sum();
    let gone: u64 = known()
        .map(|s| 1000_u64.saturating_sub(s.survival_permille) * s.samples)
        .sum();
    gone.checked_div(samples).unwrap_or(0)
}

/// Returns the quarter of a time span, 0 to 3, that contains the moment `since` after the start of the span.
fn quarter(since: u64, span: u64) -> usize {
    let at = since.saturating_sub(1).saturating_mul(4) / span.max(1);
    at.min(3) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_divide_the_time_between_the_dumps() {
        let at = |since| quarter(since, 400);
        assert_eq!(
            [1, 100, 101, 200, 300, 301, 400].map(at),
            [0, 0, 1, 1, 2, 3, 3]
        );
        // Additions in the first tenth of the time are not evidence that the growth goes on.
        assert_eq!(quarter(40, 400), 0);
        assert_eq!([quarter(5, 0), quarter(500, 400)], [3, 3]);
    }

    const ALL_STAY: Survival = Survival {
        held: 100,
        kept: 100,
        alive: 100,
        live: 300,
        quarters: [50; 4],
        permille: 1000,
        gone_permille: 0,
    };

    #[test]
    fn continued_additions_are_distinguished_from_a_single_burst() {
        assert!(
            ALL_STAY.keeps_first_samples() && ALL_STAY.is_still_growing() && ALL_STAY.is_total()
        );
        let few = Survival {
            held: 49,
            kept: 49,
            ..ALL_STAY
        };
        assert!(!few.keeps_first_samples() && !few.is_total());
        assert_eq!((few.sentence(), few.replaced_permille()), (None, None));
        let once = Survival {
            quarters: [200, 0, 0, 0],
            ..ALL_STAY
        };
        assert!(once.keeps_first_samples() && !once.is_still_growing() && !once.is_total());
        // With 15 of 255 new samples in the last quarter of the time, the rate in this quarter is less than a quarter
        // of the mean rate.
        let ending = |last| Survival {
            quarters: [100, 100, 40, last],
            ..ALL_STAY
        };
        assert!(ending(16).is_still_growing() && !ending(15).is_still_growing());
        let some_go = Survival {
            kept: 97,
            ..ALL_STAY
        };
        assert!(!some_go.keeps_first_samples());
    }

    #[test]
    fn a_stack_with_too_few_tracked_samples_shows_nothing() {
        let stack = |samples, survival_permille, survival_known| Stack {
            frames: vec!["a.Cache.put(C.java:7)".to_owned()],
            class: "a.Entry".to_owned(),
            samples,
            estimated_bytes: 1,
            ci95: [1, 1],
            estimated_objects: 1,
            survival_permille,
            survival_known,
            ..Stack::default()
        };
        let known = [stack(30, 1000, true), stack(10, 200, true)];
        assert_eq!(alive_permille(&known), 800);
        let not_all = [stack(30, 1000, true), stack(10, 1000, false)];
        assert_eq!(alive_permille(&not_all), 750);
        assert_eq!(alive_permille(&[]), 0);
    }

    #[test]
    fn moved_objects_are_not_replaced() {
        let gone = Survival {
            kept: 0,
            alive: 0,
            ..ALL_STAY
        };
        assert!(gone.is_replaced());
        assert_eq!(gone.replaced_permille(), Some(1000));
        let moved = Survival {
            kept: 0,
            ..ALL_STAY
        };
        assert!(!moved.is_replaced() && !moved.keeps_first_samples());
        assert_eq!(moved.replaced_permille(), Some(0));
    }

    #[test]
    fn the_sentence_mentions_stacks_whose_samples_all_survive() {
        let told = ALL_STAY.sentence().unwrap().to_string();
        assert!(told.ends_with(
            "are still held, and 100.0 % of all sampled objects of the allocating stacks are alive"
        ));
        let some = Survival {
            kept: 60,
            ..ALL_STAY
        };
        let told = some.sentence().unwrap().to_string();
        assert!(
            told.ends_with("60 of 100 samples of the first dump are still held there"),
            "{told}"
        );
        let few = Survival { held: 49, ..some };
        assert_eq!(few.sentence(), None);
    }
}
