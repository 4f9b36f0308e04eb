//! The stacks that allocated what grew: samples placed in the trie and added up by stack.
//!
//! A sample counts for its step and for every step above, with its weight ([`Estimate`]). Samples that the agent
//! could not keep may be of any stack, so each interval is wider by all that they can have stood for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use heapdiff_sites::{Counter, Estimate, Sampling, Unseen, whole};
use hprof::{Holders, Snapshot};

use crate::report::{AgentInfo, Coverage, Stack};
use crate::samples::{Agent, Origin, Sample, Samples};
use crate::trie::locate::Locator;
use crate::trie::{StepId, Trie};

/// Stacks that are reported for one suspect. Its coverage counts all.
const STACKS: usize = 50;
/// Threads that are named for one stack, those of most samples.
const THREADS: usize = 8;

/// The samples of one stack and class, added up.
#[derive(Debug, Default)]
struct StackEstimate {
    estimate: Estimate,
    threads: BTreeMap<u32, u64>,
}

type SiteAndClass = (crate::samples::SiteId, u32);

/// Samples added up by stack and class.
fn lines<'a>(samples: impl Iterator<Item = &'a Sample>) -> BTreeMap<SiteAndClass, StackEstimate> {
    let mut lines: BTreeMap<SiteAndClass, StackEstimate> = BTreeMap::new();
    for sample in samples {
        let line = lines.entry((sample.site, sample.class)).or_default();
        line.estimate.add(&sample.weight, sample.size);
        if sample.thread != 0 {
            *line.threads.entry(sample.thread).or_default() += 1;
        }
    }
    lines
}

impl Samples {
    /// The agent, as a report of growth describes it.
    #[must_use]
    pub fn info(&self) -> Option<AgentInfo> {
        let agent = self.agent()?;
        Some(AgentInfo {
            interval_bytes: agent.sampling.interval,
            live_samples: self.live.len() as u64,
            sites: agent.counter(Counter::Sites).max(agent.cost.sites),
            started_ms: agent.started_ms,
            pid: agent.pid,
        })
    }

    /// The part of each site's allocations that is alive, in thousandths of the bytes that samples stand for.
    /// The agent counts samples before it thins them, so numbers of samples are compared only where it does not
    /// tell bytes.
    fn survival(&self) -> Vec<u64> {
        let agent = self.agent();
        let agent = agent.filter(|_| self.allocated.len() >= self.totals.len());
        let mut live = vec![0.0_f64; self.totals.len()];
        for sample in self.live.iter().filter(|s| !s.is_definition) {
            if let Some(live) = live.get_mut(sample.site.0 as usize) {
                *live += agent.map_or(1.0, |a| a.sampling.relative_bytes(&a.first, sample.size));
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let permille = |(site, live): (usize, f64)| {
            let taken = match agent {
                Some(_) => self.allocated[site],
                None => self.totals[site].0,
            };
            match taken as f64 {
                // The agent copies totals to the heap later than samples, so they can lag behind.
                taken if taken <= live => 1000,
                taken => whole(live * 1000.0 / taken),
            }
        };
        live.into_iter().enumerate().map(permille).collect()
    }

    /// Bytes that samples stood for which the agent could not keep.
    fn lost_bytes(&self) -> u64 {
        self.agent().map_or(0, Agent::lost_bytes)
    }

    /// Lines as stacks, the most bytes first.
    fn stacks(&self, lines: BTreeMap<SiteAndClass, StackEstimate>, unseen: Unseen) -> Vec<Stack> {
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
                    ci95: line.estimate.ci95(unseen),
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

/// Live samples by stack and class, the most bytes first; their sum; and the bytes of `reachable_bytes` that
/// may be missing because the agent had no room for their samples. Only samples are counted whose frames, the
/// leaf first, and class `wanted` accepts.
///
/// Cost: a look at each live sample.
#[must_use]
pub fn by_site(
    samples: &Samples,
    wanted: &dyn Fn(&[&str], &str) -> bool,
    reachable_bytes: u64,
) -> (Vec<Stack>, Estimate, Unseen) {
    let mut known: BTreeMap<SiteAndClass, bool> = BTreeMap::new();
    let mut is_wanted = |sample: &&Sample| {
        let known = known.entry((sample.site, sample.class));
        *known.or_insert_with(|| {
            let frames: Vec<&str> = samples.sites.frames(sample.site).collect();
            wanted(&frames, samples.name(sample.class))
        })
    };
    let chosen: Vec<&Sample> = samples.live.iter().filter(|s| is_wanted(s)).collect();
    let mut sum = Estimate::default();
    for sample in &chosen {
        sum.add(&sample.weight, sample.size);
    }
    let seen: f64 = samples.live.iter().map(|s| s.weight.bytes).sum();
    let there = reachable_bytes.saturating_sub(whole(seen));
    let unseen = Unseen {
        there: there.min(samples.lost_bytes()),
        gone: 0,
    };
    let stacks = samples.stacks(lines(chosen.into_iter()), unseen);
    (stacks, sum, unseen)
}

/// A dump's samples, placed in its trie.
#[derive(Clone, Debug)]
pub(crate) struct Attribution {
    pub(crate) samples: Samples,
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
    pub(crate) fn within<'a>(
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

    /// The sampling of this dump and the agent's first one, if both dumps are of one JVM.
    pub(crate) fn same_jvm(&self, first: &Self) -> Option<(Sampling, Sampling)> {
        let (first, own) = (first.samples.agent()?, self.samples.agent()?);
        let same = (first.pid, first.started_ms) == (own.pid, own.started_ms);
        same.then_some((own.sampling, own.first))
    }

    /// The stacks that allocated the growth in these steps of the last trie; `first` is the first dump with
    /// the same steps in its trie.
    ///
    /// In dumps of one JVM a sample keeps its uid: a sample in both dumps is no growth, one only in the last
    /// dump adds to its stack, one only in the first subtracts from its stack. In dumps of different JVMs all
    /// samples of the last dump add and all of the first subtract. Either way the sum estimates the growth
    /// measured between the same steps.
    pub(crate) fn stacks(
        &self,
        trie: &Trie,
        content: &[StepId],
        first: Option<(&Self, &Trie, &[StepId])>,
        growth_bytes: u64,
    ) -> (Vec<Stack>, Coverage) {
        let mut came: Vec<&Sample> = self.within(trie, content).collect();
        let mut went: Vec<Sample> = Vec::new();
        let unseen = |net: f64, gone: u64| Unseen {
            there: growth_bytes
                .saturating_sub(whole(net))
                .saturating_add(gone)
                .min(self.samples.lost_bytes()),
            gone,
        };
        if let Some((first, trie, content)) = first.filter(|(first, ..)| self.is_like(first)) {
            let held: u64 = content.iter().map(|&s| trie[s].retained_bytes).sum();
            let seen: f64 = first.within(trie, content).map(|s| s.weight.bytes).sum();
            let gone = held.saturating_sub(whole(seen));
            let gone = gone.min(first.samples.lost_bytes());
            let before = first.within(trie, content);
            let same_jvm = self.same_jvm(first);
            match same_jvm {
                None => went.extend(before),
                Some((sampling, finest)) => {
                    let before: BTreeMap<u64, &Sample> = before.map(|s| (s.uid, s)).collect();
                    let now: BTreeSet<u64> = came.iter().map(|s| s.uid).collect();
                    came.retain(|s| !before.contains_key(&s.uid));
                    let gone = before.into_values().filter(|s| !now.contains(&s.uid));
                    went.extend(gone.filter_map(|s| thinned(s, &sampling, &finest)));
                }
            }
            let came = lines(came.into_iter());
            let (mut lines, net) = set_off(
                came,
                &self.samples,
                (&went, &first.samples),
                same_jvm.is_some(),
            );
            lines.retain(|_, line| line.estimate.net_bytes() > 0.0 && line.estimate.samples > 0);
            return self.reported(lines, net, (growth_bytes, unseen(net, gone)));
        }
        let lines = lines(came.into_iter());
        let net = lines.values().map(|l| l.estimate.net_bytes()).sum();
        self.reported(lines, net, (growth_bytes, unseen(net, 0)))
    }

    fn reported(
        &self,
        lines: BTreeMap<SiteAndClass, StackEstimate>,
        net: f64,
        (growth_bytes, unseen): (u64, Unseen),
    ) -> (Vec<Stack>, Coverage) {
        let coverage = Coverage {
            samples: lines.values().map(|l| l.estimate.samples).sum(),
            sampled_bytes: whole(net),
            growth_bytes,
            unseen_bytes: unseen.there,
        };
        let mut stacks = self.samples.stacks(lines, unseen);
        stacks.truncate(STACKS);
        (stacks, coverage)
    }

    /// Whether the first dump's samples can be subtracted from this one's.
    pub(crate) fn is_like(&self, first: &Self) -> bool {
        matches!(
            (&first.samples.origin, &self.samples.origin),
            (Origin::Agent(_), Origin::Agent(_)) | (Origin::Traces, Origin::Traces)
        )
    }

    /// The steps of another trie that are aligned with some steps, each once, ascending.
    pub(crate) fn aligned(steps: impl Iterator<Item = Option<StepId>>) -> Vec<StepId> {
        let steps: BTreeSet<StepId> = steps.flatten().collect();
        steps.into_iter().collect()
    }
}

/// An earlier dump's sample as a later, perhaps coarser sampling would have it; `None` if that would have
/// dropped it, so that its absence means nothing.
pub(crate) fn thinned(sample: &Sample, sampling: &Sampling, finest: &Sampling) -> Option<Sample> {
    if sample.is_definition {
        return Some(*sample);
    }
    let weight = sampling.weight(sample.size).unwrap_or(sample.weight);
    let kept = sampling == finest || sampling.keeps(finest, sample.uid, sample.size);
    kept.then_some(Sample { weight, ..*sample })
}

/// Subtracts the samples that went from the lines of those that came, stack by stack; also the sum of all
/// bytes that came less all that went. Where uids tell which samples are new, a line's number of samples is
/// that of the new ones.
fn set_off(
    mut came: BTreeMap<SiteAndClass, StackEstimate>,
    names: &Samples,
    (went, went_names): (&[Sample], &Samples),
    by_uid: bool,
) -> (BTreeMap<SiteAndClass, StackEstimate>, f64) {
    let text = |of: &Samples, key: &SiteAndClass| -> (Vec<String>, String) {
        let frames = of.sites.frames(key.0).map(str::to_owned).collect();
        (frames, of.name(key.1).to_owned())
    };
    let went: BTreeMap<(Vec<String>, String), Estimate> = lines(went.iter())
        .into_iter()
        .map(|(key, line)| (text(went_names, &key), line.estimate))
        .collect();
    let sum: f64 = came.values().map(|l| l.estimate.net_bytes()).sum();
    let net = sum - went.values().map(|e| e.net_bytes()).sum::<f64>();
    if !went.is_empty() {
        for (key, line) in &mut came {
            if let Some(went) = went.get(&text(names, key)) {
                line.estimate.take(went);
                if !by_uid {
                    let own = &mut line.estimate.samples;
                    *own = own.saturating_sub(went.samples).max(1);
                }
            }
        }
    }
    (came, net)
}

#[cfg(test)]
mod tests {
    use heapdiff_sites::{Strategy, Weight};
    use hprof::ObjectIndex;

    use super::*;
    use crate::samples::SiteId;

    fn sample(uid: u64, is_definition: bool) -> Sample {
        Sample {
            object: ObjectIndex(0),
            uid,
            size: 100,
            site: SiteId(0),
            class: 0,
            thread: 0,
            time_ms: 0,
            is_definition,
            weight: Weight {
                objects: 1.0,
                bytes: 100.0,
                objects_variance: 0.0,
                bytes_variance: 0.0,
            },
        }
    }

    fn every(rate: u64) -> Sampling {
        Sampling {
            strategy: Strategy::Count,
            interval: 0,
            rate,
        }
    }

    #[test]
    fn a_coarser_sampling_drops_samples_and_gives_the_others_its_weight() {
        let (finest, coarse) = (every(10), every(40));
        let kept: Vec<Sample> = (0..1000)
            .filter_map(|uid| thinned(&sample(uid, false), &coarse, &finest))
            .collect();
        // A quarter of them.
        assert!((200..300).contains(&kept.len()), "{}", kept.len());
        for sample in &kept {
            assert_eq!(sample.weight.bytes, 4000.0);
            assert!(coarse.keeps(&finest, sample.uid, sample.size));
        }
        // Definitions of classes are never sampled, and an equal sampling drops nothing.
        for uid in 0..100 {
            let definition = thinned(&sample(uid, true), &coarse, &finest).unwrap();
            assert_eq!(definition.weight.bytes, 100.0);
            let same = thinned(&sample(uid, false), &finest, &finest).unwrap();
            assert_eq!(same.weight.bytes, 1000.0);
        }
    }

    #[test]
    fn samples_are_added_up_by_stack_and_class_with_their_threads() {
        let of = |site, class, thread| Sample {
            site: SiteId(site),
            class,
            thread,
            ..sample(1, false)
        };
        let samples = [
            of(1, 1, 5),
            of(1, 1, 5),
            of(1, 1, 0),
            of(1, 2, 6),
            of(2, 1, 7),
        ];
        let lines = lines(samples.iter());
        let told: Vec<_> = lines
            .iter()
            .map(|((site, class), line)| {
                let threads: Vec<(u32, u64)> = line.threads.iter().map(|(&t, &n)| (t, n)).collect();
                (site.0, *class, line.estimate.bytes(), threads)
            })
            .collect();
        // A thread that is not known is not named.
        let expected = [
            (1, 1, 300, vec![(5, 2)]),
            (1, 2, 100, vec![(6, 1)]),
            (2, 1, 100, vec![(7, 1)]),
        ];
        assert_eq!(told, expected);
    }
}
