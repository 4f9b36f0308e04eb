//! What allocated what grew: samples placed in the trie, added up by stack.
//!
//! A sample counts for the step that it is in and for every step above. Its weight is what it stands
//! for (Horvitz and Thompson's estimator, see `heapdiff_sites`); variances add up, and the interval is that of
//! a normal distribution, never below what was certainly seen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use heapdiff_sites::Counter;
use hprof::{Holders, Snapshot};

use crate::locate::Locator;
use crate::report::{AgentInfo, Coverage, Stack};
use crate::samples::{Agent, Origin, Sample, Samples};
use crate::trie::{StepId, Trie};

/// Stacks that are reported of one suspect; coverage tells of all.
const STACKS: usize = 50;
/// Threads that are named for one stack.
const THREADS: usize = 8;
/// Quantile of the normal distribution for 95 %.
const Z95: f64 = 1.959_964;

/// An estimated total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Samples behind it.
    pub samples: u64,
    /// Estimated objects.
    objects: f64,
    bytes: f64,
    variance: f64,
    /// Bytes of the samples themselves.
    seen: f64,
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, as it should"
)]
const fn whole(value: f64) -> u64 {
    value.round() as u64
}

impl Estimate {
    /// Adds a sample.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.objects += sample.weight.objects;
        self.bytes += sample.weight.bytes;
        self.variance += sample.weight.bytes_variance;
        self.seen += sample.size as f64;
    }

    /// Estimated objects.
    #[must_use]
    pub fn objects(&self) -> u64 {
        whole(self.objects)
    }

    /// Estimated bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        whole(self.bytes)
    }

    /// The interval that covers the true bytes in 95 % of cases.
    #[must_use]
    pub fn ci95(&self) -> [u64; 2] {
        let half = Z95 * self.variance.sqrt();
        let low = (self.bytes - half).max(self.seen.min(self.bytes));
        [whole(low), whole(self.bytes + half)]
    }
}

/// Samples of one stack and class.
#[derive(Debug, Default)]
struct Line {
    estimate: Estimate,
    threads: BTreeMap<u32, u64>,
}

type Key = (crate::samples::SiteId, u32);

fn lines<'a>(samples: impl Iterator<Item = &'a Sample>) -> BTreeMap<Key, Line> {
    let mut lines: BTreeMap<Key, Line> = BTreeMap::new();
    for sample in samples {
        let line = lines.entry((sample.site, sample.class)).or_default();
        line.estimate.add(sample);
        if sample.thread != 0 {
            *line.threads.entry(sample.thread).or_default() += 1;
        }
    }
    lines
}

impl Samples {
    /// The agent, as a report of growth describes it.
    pub(crate) fn info(&self) -> Option<AgentInfo> {
        let agent = self.agent()?;
        Some(AgentInfo {
            interval_bytes: agent.sampling.interval,
            live_samples: self.live.len() as u64,
            sites: agent.counter(Counter::Sites).max(agent.cost.sites),
            started_ms: agent.started_ms,
            pid: agent.pid,
        })
    }

    /// Live samples at each site, of all those that were taken there, in thousandths.
    fn survival(&self) -> Vec<u64> {
        let mut live = vec![0_u64; self.totals.len()];
        for sample in &self.live {
            if let Some(live) = live.get_mut(sample.site.0 as usize) {
                *live += 1;
            }
        }
        let permille = |(live, &(taken, _)): (u64, &(u64, u64))| match taken {
            // The total is copied to the heap later than the sample.
            taken if taken <= live => 1000,
            taken => live.saturating_mul(1000) / taken,
        };
        live.into_iter().zip(&self.totals).map(permille).collect()
    }

    /// Lines as stacks, the most bytes first.
    fn stacks(&self, lines: BTreeMap<Key, Line>) -> Vec<Stack> {
        let survival = self.survival();
        let mut stacks: Vec<Stack> = lines
            .into_iter()
            .map(|((site, class), line)| {
                let mut threads: Vec<(u64, &str)> = line
                    .threads
                    .iter()
                    .map(|(&thread, &samples)| (samples, self.name(thread)))
                    .collect();
                threads.sort_by_key(|&(samples, name)| (Reverse(samples), name));
                threads.truncate(THREADS);
                Stack {
                    frames: self.sites.frames(site).map(str::to_owned).collect(),
                    class: self.name(class).to_owned(),
                    samples: line.estimate.samples,
                    estimated_bytes: line.estimate.bytes(),
                    ci95: line.estimate.ci95(),
                    estimated_objects: line.estimate.objects(),
                    survival_permille: survival.get(site.0 as usize).copied().unwrap_or(1000),
                    threads: threads.into_iter().map(|t| t.1.to_owned()).collect(),
                }
            })
            .collect();
        stacks.sort_by(|a, b| {
            let order = b.estimated_bytes.cmp(&a.estimated_bytes);
            order.then_with(|| (&a.frames, &a.class).cmp(&(&b.frames, &b.class)))
        });
        stacks
    }
}

/// All live samples by stack and class, the most bytes first, and their sum.
#[must_use]
pub fn by_site(samples: &Samples) -> (Vec<Stack>, Estimate) {
    let mut sum = Estimate::default();
    for sample in &samples.live {
        sum.add(sample);
    }
    (samples.stacks(lines(samples.live.iter())), sum)
}

/// A dump's samples, placed in its trie.
#[derive(Clone, Debug)]
pub(crate) struct Attribution {
    samples: Samples,
    /// The deepest step of each live sample.
    steps: Vec<StepId>,
}

impl Attribution {
    /// Places samples.
    ///
    /// Cost: a look at each object above a sample in the dominator tree.
    pub(crate) fn new(
        snapshot: &Snapshot,
        holders: &Holders,
        trie: &Trie,
        mut samples: Samples,
    ) -> Self {
        let mut locator = Locator::new(snapshot, holders, trie);
        let mut steps = Vec::with_capacity(samples.live.len());
        samples.live.retain(|sample| {
            let step = locator.step(sample.object);
            steps.extend(step);
            step.is_some()
        });
        Self { samples, steps }
    }

    /// Samples in these steps and below.
    fn within<'a>(
        &'a self,
        trie: &Trie,
        content: &[StepId],
    ) -> impl Iterator<Item = &'a Sample> + use<'a> {
        let mut inside = vec![false; trie.len()];
        let mut work = content.to_vec();
        while let Some(step) = work.pop() {
            if !std::mem::replace(&mut inside[step.0 as usize], true) {
                work.extend(&trie[step].children);
            }
        }
        let placed = self.samples.live.iter().zip(&self.steps);
        placed
            .filter(move |(_, step)| inside[step.0 as usize])
            .map(|(sample, _)| sample)
    }

    /// The first uid that was given after another dump of the same JVM was taken.
    fn new_since(&self, first: &Self) -> Option<u64> {
        let same = |a: &Agent, b: &Agent| (a.pid, a.started_ms) == (b.pid, b.started_ms);
        let (first, own) = (first.samples.agent()?, self.samples.agent()?);
        same(first, own).then(|| first.last_uid.saturating_add(1))
    }

    /// Whether the first dump's samples are comparable with this one's, one by one or in sum.
    fn is_like(&self, first: &Self) -> bool {
        matches!(
            (&first.samples.origin, &self.samples.origin),
            (Origin::Agent(_), Origin::Agent(_)) | (Origin::Traces, Origin::Traces)
        )
    }

    /// The stacks that allocated what grew in these steps of the last trie since the first dump.
    ///
    /// Dumps of one JVM tell by uids which samples are new. In others the stacks of the first dump are
    /// set off against those of the last.
    pub(crate) fn stacks(
        &self,
        trie: &Trie,
        content: &[StepId],
        first: Option<(&Self, &Trie, &[StepId])>,
        growth_bytes: u64,
    ) -> (Vec<Stack>, Coverage) {
        let since = first.and_then(|(first, ..)| self.new_since(first));
        let mut found = match since {
            Some(since) => {
                let new = self.within(trie, content).filter(|s| s.uid >= since);
                lines(new)
            }
            None => lines(self.within(trie, content)),
        };
        let compared = first.filter(|(first, ..)| since.is_none() && self.is_like(first));
        if let Some((first, trie, content)) = compared {
            self.set_off(&mut found, first, trie, content);
        }
        let mut coverage = Coverage {
            samples: 0,
            sampled_bytes: 0,
            growth_bytes,
        };
        for line in found.values() {
            coverage.samples += line.estimate.samples;
            coverage.sampled_bytes += line.estimate.bytes();
        }
        let mut stacks = self.samples.stacks(found);
        stacks.truncate(STACKS);
        (stacks, coverage)
    }

    /// Takes what the stacks had allocated in the first dump already from the lines; what did not grow
    /// goes.
    fn set_off(
        &self,
        found: &mut BTreeMap<Key, Line>,
        first: &Self,
        trie: &Trie,
        content: &[StepId],
    ) {
        let names = &self.samples;
        let frames = |of: &Samples, key: &Key| -> (Vec<String>, String) {
            let frames = of.sites.frames(key.0).map(str::to_owned).collect();
            (frames, of.name(key.1).to_owned())
        };
        let before: BTreeMap<(Vec<String>, String), Estimate> = lines(first.within(trie, content))
            .into_iter()
            .map(|(key, line)| (frames(&first.samples, &key), line.estimate))
            .collect();
        if before.is_empty() {
            return;
        }
        found.retain(|key, line| {
            let Some(before) = before.get(&frames(names, key)) else {
                return true;
            };
            let own = &mut line.estimate;
            own.bytes -= before.bytes;
            own.objects = (own.objects - before.objects).max(0.0);
            own.variance += before.variance;
            own.samples = own.samples.saturating_sub(before.samples);
            own.seen = (own.seen - before.seen).max(0.0);
            own.bytes > 0.0 && own.samples > 0
        });
    }

    /// The steps of a trie that stand for others': for the first dump, those aligned with the last's.
    pub(crate) fn aligned(steps: impl Iterator<Item = Option<StepId>>) -> Vec<StepId> {
        let steps: BTreeSet<StepId> = steps.flatten().collect();
        steps.into_iter().collect()
    }
}
