//! How long objects live at the place where something accumulates, as samples show.

use std::collections::BTreeSet;

use crate::report::Stack;
use crate::samples::attribution::Attribution;
use crate::trie::{StepId, Trie};

/// The fewest samples on which a statement about survival is made.
const ENOUGH: u64 = 50;
/// The fewest survivors, in thousandths, that count as "nothing goes".
const ALL: u64 = 980;

/// Samples at one place in the first dump and in the last dump of the same JVM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survival {
    /// Samples there in the first dump.
    pub(crate) held: u64,
    /// Samples of the first dump that are still there in the last.
    pub(crate) kept: u64,
    /// Samples there in the last dump.
    pub(crate) live: u64,
    /// The last dump's samples by time of allocation, in quarters of the time up to the latest one.
    pub(crate) quarters: [u64; 4],
    /// The part, in thousandths, that is alive of all samples taken at the stacks that allocated the growth.
    pub(crate) permille: u64,
}

impl Survival {
    /// Whether next to nothing that was put there has gone, in any part of the time between the dumps.
    pub(crate) fn is_total(&self) -> bool {
        self.held >= ENOUGH
            && self.live >= 2 * ENOUGH
            && self.kept * 1000 >= self.held * ALL
            && self.permille >= ALL
            && self.quarters.iter().all(|&q| q > 0)
    }

    /// The sentence for a report; `None` where there are too few samples.
    pub(crate) fn sentence(&self) -> Option<String> {
        if self.held < ENOUGH {
            return None;
        }
        Some(match self.is_total() {
            true => format!(
                "of {} samples held there in the first dump {} are still there; of all that these stacks \
                 allocated since, {} in 1,000 are alive",
                self.held, self.kept, self.permille
            ),
            false => format!(
                "of {} samples held there in the first dump {} are still there",
                self.held, self.kept
            ),
        })
    }
}

impl Attribution {
    /// Follows the samples of these steps from the first dump to this one, the last; `None` unless both
    /// are of one JVM.
    pub(crate) fn survival(
        &self,
        trie: &Trie,
        content: &[StepId],
        (first, first_trie, before): (&Self, &Trie, &[StepId]),
        stacks: &[Stack],
    ) -> Option<Survival> {
        self.same_jvm(first)?;
        let now: BTreeSet<(u64, u32)> = self
            .within(trie, content)
            .map(|s| (s.uid, s.time_ms))
            .collect();
        let uids: BTreeSet<u64> = now.iter().map(|s| s.0).collect();
        let mut found = Survival {
            live: now.len() as u64,
            ..Survival::default()
        };
        for sample in first.within(first_trie, before) {
            found.held += 1;
            found.kept += u64::from(uids.contains(&sample.uid));
        }
        let end = u64::from(now.iter().map(|s| s.1).max().unwrap_or(0)) + 1;
        for &(_, time) in &now {
            found.quarters[(u64::from(time) * 4 / end).min(3) as usize] += 1;
        }
        let samples: u64 = stacks.iter().map(|s| s.samples).sum();
        let alive: u64 = stacks.iter().map(|s| s.survival_permille * s.samples).sum();
        found.permille = alive.checked_div(samples).unwrap_or(0);
        Some(found)
    }
}
