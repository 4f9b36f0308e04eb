//! Stacks that allocated the growth: samples are placed in the trie (the folded dominator tree) and added up by stack.
//!
//! A sample counts for the trie node that contains its object, and for all ancestors of this trie node. The dump shows
//! exactly how many objects of the same class and size are there. Samples show which part of these objects each stack
//! allocated ([`Stratum`]). Samples that the agent could not keep may be of any stack, so each interval is widened by
//! all bytes that they may represent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use heapdiff_model::diff::{AgentInfo, Coverage, SampledBytes, Stack};
use heapdiff_model::labels::Labels;
use heapdiff_model::sites::LiveFrame;
use heapdiff_sites::{
    Counter, Division, Estimate, Follow, Keys, Part, Sampling, Stratum, Totals, Unseen, labels,
    whole,
};
use hprof::Snapshot;
use hprof::answers::Holders;

use crate::samples::counting::Counting;
use crate::samples::frame_kind::allocating_frame;
use crate::samples::frames::visible_key;
use crate::samples::labels::ByLabels;
use crate::samples::place::Place;
use crate::samples::{Agent, Origin, Sample, Samples, SiteId};
use crate::trie::locate::Locator;
use crate::trie::{StepId, Trie};

/// Maximum number of stacks to report for one suspect. The suspect's figures in `coverage` include all stacks, even the
/// stacks that are not reported.
const STACKS: usize = 50;
/// Maximum number of threads to name for one stack. The threads with the most samples are named.
const THREADS: usize = 8;

/// The samples of one stack and class, with the number of objects that they represent.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) samples: u64,
    pub(super) part: Part,
    /// True if at least one sample is of an object. If all samples are of class definitions, it is unknown how many of
    /// these were collected.
    is_sampled: bool,
    /// Number of samples by [`Sample::thread`].
    threads: BTreeMap<u32, u64>,
}

impl Line {
    pub(super) fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.is_sampled |= !sample.is_definition;
        *self.threads.entry(sample.thread).or_default() += 1;
    }
}

pub(super) type SiteAndClass = (SiteId, u32);

/// A [`Line`] with the id of its stack.
type LineAt = (SiteId, Line);

/// Strata by class and size class. A stratum is all objects of one class and size class, with their samples.
pub(super) type Strata<C, K> = BTreeMap<C, BTreeMap<u32, Stratum<K>>>;

impl Samples {
    /// Returns a description of the agent for a report on growth.
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

    /// Returns the part of each site's allocations that is alive, in thousandths of the bytes that samples represent.
    /// Bytes are compared rather than numbers of samples, because the agent counts samples before it downsamples them.
    /// If the agent does not report bytes, the numbers are compared.
    pub(super) fn survival(&self) -> Vec<u64> {
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
                // The agent copies totals to the heap later than samples. The totals can therefore be older and too
                // low.
                taken if taken <= live => 1000,
                taken => whole(live * 1000.0 / taken),
            }
        };
        live.into_iter().enumerate().map(permille).collect()
    }

    /// Returns the bytes represented by samples that the agent could not store.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.agent().map_or(0, Agent::lost_bytes)
    }

    /// Returns stacks for a report, sorted by bytes, descending. Lines of one class that look the same in a report are
    /// merged into one stack.
    fn stacks(&self, lines: BTreeMap<SiteAndClass, Line>, unseen: Unseen) -> Vec<Stack> {
        let stacks = self.grouped(lines, unseen, visible_key);
        stacks.into_iter().map(|(stack, _)| stack).collect()
    }

    /// Merges lines into one stack if they have the same class and their frames have the same `key`. Returns each stack
    /// with the number of its lines, sorted by bytes, descending.
    fn grouped<K: Ord>(
        &self,
        lines: BTreeMap<SiteAndClass, Line>,
        unseen: Unseen,
        key: impl Fn(&[String]) -> K,
    ) -> Vec<(Stack, u64)> {
        let mut alike: BTreeMap<(u32, K), Vec<LineAt>> = BTreeMap::new();
        for ((site, class), line) in lines {
            let frames: Vec<String> = self.sites.frames(site).map(str::to_owned).collect();
            let key = (class, key(&frames));
            alike.entry(key).or_default().push((site, line));
        }
        let survival = self.survival();
        let mut stacks: Vec<(Stack, u64)> = alike
            .into_iter()
            .filter_map(|((class, _), lines)| {
                let count = lines.len() as u64;
                Some((self.stack(class, lines, &survival, unseen)?, count))
            })
            .collect();
        stacks.sort_by(|(a, _), (b, _)| {
            let order = b.estimated_bytes.cmp(&a.estimated_bytes);
            order.then_with(|| (&a.frames, &a.class).cmp(&(&b.frames, &b.class)))
        });
        stacks
    }

    /// Returns lines merged by class and allocating frame.
    fn frames(&self, lines: BTreeMap<SiteAndClass, Line>, unseen: Unseen) -> Vec<LiveFrame> {
        let frame = |frames: &[String]| allocating_frame(frames).map(str::to_owned);
        let groups = self.grouped(lines, unseen, frame).into_iter();
        groups
            .map(|(stack, stacks)| LiveFrame {
                frame: frame(&stack.frames),
                stacks,
                class: stack.class,
                samples: stack.samples,
                estimated_bytes: stack.estimated_bytes,
                ci95: stack.ci95,
                estimated_objects: stack.estimated_objects,
            })
            .collect()
    }

    /// Returns one stack for lines that look alike. The frames of the stack are those of the line with the most bytes.
    fn stack(
        &self,
        class: u32,
        lines: Vec<LineAt>,
        survival: &[u64],
        unseen: Unseen,
    ) -> Option<Stack> {
        let by_bytes = |a: &&LineAt, b: &&LineAt| {
            let bytes = |of: &LineAt| of.1.part.bytes.value;
            bytes(a).total_cmp(&bytes(b)).then(b.0.cmp(&a.0))
        };
        let site = lines.iter().max_by(by_bytes)?.0;
        let (mut all, mut alive) = (Line::default(), 0_u64);
        let mut threads: BTreeMap<&str, u64> = BTreeMap::new();
        let survival_known = lines
            .iter()
            .all(|(site, line)| line.is_sampled && self.can_show_survival(*site));
        for (site, line) in lines {
            let permille = survival.get(site.0 as usize).copied().unwrap_or(1000);
            alive += permille * line.samples;
            all.samples += line.samples;
            all.part.add(line.part);
            for (thread, samples) in line.threads {
                let (name, _) = labels::split(self.name(thread));
                *threads.entry(name).or_default() += samples;
            }
        }
        threads.remove("");
        let mut threads: Vec<(u64, &str)> = threads
            .into_iter()
            .map(|(name, samples)| (samples, name))
            .collect();
        threads.sort_by_key(|&(samples, name)| (Reverse(samples), name));
        threads.truncate(THREADS);
        Some(Stack {
            frames: self.sites.frames(site).map(str::to_owned).collect(),
            class: self.name(class).to_owned(),
            samples: all.samples,
            estimated_bytes: whole(all.part.bytes.value),
            ci95: unseen.widen_to_bytes(all.part.bytes),
            estimated_objects: whole(all.part.objects),
            survival_permille: alive.checked_div(all.samples).unwrap_or(1000),
            survival_known,
            sampled: all.part.sampled.map(|sampled| SampledBytes {
                estimated_bytes: whole(sampled.value),
                ci95: unseen.widen_to_bytes(sampled),
            }),
            threads: threads.into_iter().map(|t| t.1.to_owned()).collect(),
            ..Stack::default()
        })
    }

    /// Returns the labels of the threads that allocated the objects of these lines, if they had any.
    fn labels_of(&self, lines: &BTreeMap<SiteAndClass, Line>) -> Option<Labels> {
        if !self.have_labels() {
            return None;
        }
        let mut all = ByLabels::default();
        for line in lines.values() {
            // All samples of a line are of the same class and stack, so the bytes of the line are divided equally among
            // them.
            let samples: u64 = line.threads.values().sum();
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            for (&thread, &of_thread) in &line.threads {
                let bytes = line.part.bytes.value * of_thread as f64 / samples as f64;
                all.add(self.name(thread), bytes, of_thread);
            }
        }
        all.report(&self.live_by_labels())
    }

    /// Returns the sampling settings. If the dump itself names the stack of each object, these are settings that sample
    /// every allocation.
    pub(super) fn sampling(&self) -> Sampling {
        self.agent().map_or_else(Sampling::default, |a| a.sampling)
    }

    /// True if sampling began when the JVM started. Then only objects that the JVM created even earlier cannot have a
    /// sample.
    pub(super) fn is_from_start(&self) -> bool {
        self.agent()
            .is_some_and(|a| a.counter(Counter::FromStart) > 0)
    }

    /// Returns how the numbers of objects in the dump limit the estimates. This depends on whether sampling began when
    /// the JVM started.
    pub(super) fn totals_say(&self) -> Totals {
        match self.agent() {
            _ if self.is_from_start() => Totals::Shared,
            Some(agent) if agent.is_before_25 => Totals::MostOfMore,
            _ => Totals::Most,
        }
    }

    /// Divides the objects in the heap among groups of samples. Counts all objects of the classes that have samples.
    /// Samples with the same `key` are one group.
    pub(crate) fn divided<K: Ord + Copy>(&self, key: impl Fn(&Sample) -> K) -> Division<K> {
        self.divided_within(key, None, Keys::Groups)
    }

    /// Divides the objects among stacks and classes. If allocations were counted, no stack gets more objects than the
    /// counts allow.
    pub(crate) fn divided_by_stack(&self) -> Division<SiteAndClass> {
        self.divided_within(|s| (s.site, s.class), self.counting.as_ref(), Keys::Stacks)
    }

    fn divided_within<K: Ord + Copy>(
        &self,
        key: impl Fn(&Sample) -> K,
        counting: Option<&Counting>,
        keys: Keys,
    ) -> Division<K> {
        let mut strata: Strata<u32, K> = BTreeMap::new();
        let mut direct: BTreeMap<K, Estimate> = BTreeMap::new();
        for (number, counted) in (0..).zip(&self.counted) {
            let known = counted.sizes.iter().map(|(size, after)| {
                let stratum = Stratum {
                    after,
                    ..Stratum::default()
                };
                (size, stratum)
            });
            strata.insert(number, known.collect());
        }
        for sample in &self.live {
            let estimate = match self.counted.get(sample.counted as usize) {
                None => direct.entry(key(sample)).or_default(),
                Some(counted) => {
                    let strata = strata.entry(sample.counted).or_default();
                    let stratum = strata.entry(counted.size_class(sample.size)).or_default();
                    if let Some(counting) = counting {
                        let new = || counting.counts(&counted.name);
                        let counts = stratum.counts.get_or_insert_with(new);
                        let of = (sample, counted.array_size(sample.size));
                        counting.add_sample(counts, key(sample), of, 0);
                    }
                    stratum.came.entry(key(sample)).or_default()
                }
            };
            estimate.add(&sample.weight, sample.size);
        }
        let totals = self.totals_say();
        let follow = Follow::Nothing;
        let mut all = Stratum::divide(strata, &self.sampling(), totals, follow, keys);
        all.add_direct(direct);
        all
    }
}

/// Live bytes by stack and class.
#[derive(Clone, Debug)]
pub struct LiveBySite {
    /// The stacks, the most bytes first.
    pub stacks: Vec<Stack>,
    /// The allocating frames, sorted by bytes, descending.
    pub frames: Vec<LiveFrame>,
    /// The labels of the allocating threads, if they had any.
    pub labels: Option<Labels>,
    /// Number of samples of all stacks.
    pub samples: u64,
    /// Bytes of all stacks.
    pub bytes: u64,
    /// The 95 % confidence interval of the bytes.
    pub ci95: [u64; 2],
    /// Objects of all stacks.
    pub objects: u64,
    /// Bytes that may be missing because the agent had no room for samples.
    pub unseen: Unseen,
    /// The part of `bytes` that was allocated by stacks without a sample. It is estimated from the stacks with very few
    /// samples.
    pub other_stacks_bytes: u64,
    /// Reachable bytes that no sample represents. Their stacks are unknown.
    pub unsampled_bytes: u64,
    /// Bytes of large objects, of which the JVM takes too few samples ([`Sampling::shortfall`]).
    pub undersampled_bytes: u64,
}

/// Returns the stacks and classes of the live samples for which `wanted` returns true. `wanted` gets the frames,
/// innermost first, and the class.
fn matching_sites(
    samples: &Samples,
    wanted: &dyn Fn(&[&str], &str) -> bool,
) -> BTreeSet<SiteAndClass> {
    let all: BTreeSet<SiteAndClass> = samples.live.iter().map(|s| (s.site, s.class)).collect();
    let accepts = |&(site, class): &SiteAndClass| {
        let frames: Vec<&str> = samples.sites.frames(site).collect();
        wanted(&frames, samples.name(class))
    };
    all.into_iter().filter(accepts).collect()
}

/// Adds up live samples by stack and class, scaled to the known numbers of objects of their classes in a heap of
/// `reachable_bytes`. Only samples for which `wanted` returns true are counted. `wanted` gets the frames, innermost
/// first, and the class.
///
/// Cost: one visit to each live sample.
#[must_use]
pub fn by_site(
    samples: &Samples,
    wanted: &dyn Fn(&[&str], &str) -> bool,
    reachable_bytes: u64,
) -> LiveBySite {
    let accepted = matching_sites(samples, wanted);
    let is_wanted = |s: &Sample| accepted.contains(&(s.site, s.class));
    let mut lines: BTreeMap<SiteAndClass, Line> = BTreeMap::new();
    for sample in samples.live.iter().filter(|s| is_wanted(s)) {
        let of = (sample.site, sample.class);
        lines.entry(of).or_default().add(sample);
    }
    let parts = samples.divided_by_stack().parts;
    for (of, line) in &mut lines {
        line.part = parts.get(of).copied().unwrap_or_default();
    }
    let mut sums = samples.divided(is_wanted).parts;
    let (sum, rest) = (
        sums.remove(&true).unwrap_or_default(),
        sums.remove(&false).unwrap_or_default(),
    );
    let unsampled = reachable_bytes.saturating_sub(whole(sum.bytes.value + rest.bytes.value));
    let direct: f64 = samples.live.iter().map(|s| s.weight.bytes).sum();
    let there = reachable_bytes.saturating_sub(whole(direct));
    let unseen = Unseen {
        there: there.min(samples.lost_bytes()),
        gone: 0,
    };
    let listed: f64 = lines.values().map(|l| l.part.bytes.value).sum();
    LiveBySite {
        samples: lines.values().map(|l| l.samples).sum(),
        bytes: whole(sum.bytes.value),
        other_stacks_bytes: whole(sum.bytes.value - listed),
        ci95: unseen.widen_to_bytes(sum.bytes),
        objects: whole(sum.objects),
        labels: samples.labels_of(&lines),
        frames: samples.frames(lines.clone(), unseen),
        stacks: samples.stacks(lines, unseen),
        unseen,
        unsampled_bytes: unsampled,
        undersampled_bytes: match samples.totals_say() {
            Totals::MostOfMore => {
                let sampling = samples.sampling();
                let is_large = |s: &Sample| is_wanted(s) && sampling.shortfall(s.size) > 1.0;
                let large = samples.divided(is_large).parts.remove(&true);
                large.map_or(0, |part| whole(part.bytes.value))
            }
            Totals::Shared | Totals::Most => 0,
        },
    }
}

/// The live objects of one class.
#[derive(Clone, Debug)]
pub struct LiveClass {
    /// Name of the class.
    pub class: String,
    /// Number of live samples.
    pub samples: u64,
    /// Estimated bytes.
    pub bytes: u64,
    /// The 95 % confidence interval of the bytes.
    pub ci95: [u64; 2],
    /// Estimated number of objects.
    pub objects: u64,
}

/// Adds up live samples by class, in the same way as [`by_site`] does by stack. The classes are sorted by bytes,
/// descending.
#[must_use]
pub fn by_class(
    samples: &Samples,
    wanted: &dyn Fn(&[&str], &str) -> bool,
    unseen: Unseen,
) -> Vec<LiveClass> {
    let accepted = matching_sites(samples, wanted);
    let is_wanted = |s: &Sample| accepted.contains(&(s.site, s.class));
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for sample in samples.live.iter().filter(|s| is_wanted(s)) {
        *counts.entry(sample.class).or_default() += 1;
    }
    let parts = samples.divided(|s| (is_wanted(s), s.class)).parts;
    let mut classes: Vec<LiveClass> = counts
        .into_iter()
        .map(|(class, count)| {
            let part = parts.get(&(true, class)).copied().unwrap_or_default();
            LiveClass {
                class: samples.name(class).to_owned(),
                samples: count,
                bytes: whole(part.bytes.value),
                ci95: unseen.widen_to_bytes(part.bytes),
                objects: whole(part.objects),
            }
        })
        .collect();
    classes.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
    classes
}

/// The code that allocated the growth of one or more trie nodes.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// The stacks, the most bytes first, at most [`STACKS`].
    pub(crate) stacks: Vec<Stack>,
    pub(crate) coverage: Coverage,
    /// The labels of the allocating threads, if they had any.
    pub(crate) labels: Option<Labels>,
}

/// The samples of a dump, each assigned to a trie node of the dump's trie.
#[derive(Clone, Debug)]
pub(crate) struct Attribution {
    pub(crate) samples: Samples,
    /// For each live sample, the deepest trie node that contains its object.
    steps: Vec<StepId>,
}

impl Attribution {
    /// Finds the trie node of each sample.
    ///
    /// Cost: one visit to each object above a sample in the dominator tree.
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

    /// Combines samples with their trie nodes, which are already known: `steps` has the trie node of each live sample.
    pub(super) const fn from_steps(samples: Samples, steps: Vec<StepId>) -> Self {
        Self { samples, steps }
    }

    /// Returns the samples of objects in these trie nodes and in the nodes below them.
    pub(crate) fn within<'a>(
        &'a self,
        trie: &Trie,
        content: &[StepId],
    ) -> impl Iterator<Item = &'a Sample> + use<'a> {
        let inside = flag_subtrees(trie, content);
        self.placed()
            .filter(move |(_, step)| inside[step.0 as usize])
            .map(|(sample, _)| sample)
    }

    /// Returns the samples with their trie nodes.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (&Sample, StepId)> {
        self.samples.live.iter().zip(self.steps.iter().copied())
    }

    /// Returns the sampling settings in this dump, and the settings with which the agent began. Returns `None` unless
    /// this dump and the dump `first` are of the same JVM.
    pub(crate) fn same_jvm(&self, first: &Self) -> Option<(Sampling, Sampling)> {
        let (first, own) = (first.samples.agent()?, self.samples.agent()?);
        let same = (first.pid, first.started_ms) == (own.pid, own.started_ms);
        same.then_some((own.sampling, own.first))
    }

    /// Returns the code that allocated the growth of the nodes `content` in `trie`, the trie of the last dump. `first`
    /// has three parts: the samples of the first dump, its trie, and the nodes of this trie that correspond to
    /// `content`.
    ///
    /// In dumps of one JVM, a sample keeps its uid:
    ///
    /// | sample is in | effect on its stack |
    /// |---|---|
    /// | both dumps | none |
    /// | the last dump only | adds |
    /// | the first dump only | subtracts |
    ///
    /// In dumps of different JVMs, all samples of the last dump are added and all samples of the first dump are
    /// subtracted. In each dump, the samples of one class and size are scaled to the number of such objects in the trie
    /// nodes. So the sum is the measured growth between the dumps.
    pub(crate) fn growing(
        &self,
        trie: &Trie,
        content: &[StepId],
        first: Option<(&Self, &Trie, &[StepId])>,
        growth_bytes: u64,
    ) -> Growing {
        let mut place = Place::new(self);
        place.add_last_dump(trie, subtree_steps(trie, content));
        if let Some((_, trie, content)) = first {
            place.add_first_dump(trie, subtree_steps(trie, content));
        }
        let now: Vec<&Sample> = self.within(trie, content).collect();
        let before: Vec<&Sample> = first.map_or_else(Vec::new, |(first, trie, content)| {
            first.within(trie, content).collect()
        });
        let first = first.filter(|(first, ..)| self.can_subtract(first));
        let gone = first.map_or(0, |(first, first_trie, content)| {
            let held: u64 = content.iter().map(|&s| first_trie[s].retained_bytes).sum();
            let seen: f64 = before.iter().map(|s| s.weight.bytes).sum();
            let unseen = held.saturating_sub(whole(seen));
            unseen.min(first.samples.lost_bytes())
        });
        place.sample(&now, first.map(|(first, ..)| (first, &before[..])));
        let is_estimated = place.is_shared();
        let (lines, net) = place.lines(growth_bytes);
        let there = growth_bytes
            .saturating_sub(whole(net.direct))
            .saturating_add(gone)
            .min(self.samples.lost_bytes());
        // In the worst case, all samples that the agent lost are of one stack. Then the shares of all other stacks are
        // too large.
        let unseen = Unseen {
            there,
            gone: if is_estimated { gone.max(there) } else { gone },
        };
        let sampled_bytes = whole(net.shared).min(growth_bytes);
        let coverage = Coverage {
            samples: lines.values().map(|l| l.samples).sum(),
            sampled_bytes,
            growth_bytes,
            unseen_bytes: unseen.there,
            unsampled_bytes: growth_bytes - sampled_bytes,
        };
        let labels = self.samples.labels_of(&lines);
        let mut stacks = self.samples.stacks(lines, unseen);
        stacks.truncate(STACKS);
        Growing {
            stacks,
            coverage,
            labels,
        }
    }

    /// True if both dumps have samples of the agent, or both name the stack trace of each object. Only then can the
    /// samples of the first dump be subtracted.
    pub(crate) fn can_subtract(&self, first: &Self) -> bool {
        matches!(
            (&first.samples.origin, &self.samples.origin),
            (Origin::Agent(_), Origin::Agent(_)) | (Origin::Traces, Origin::Traces)
        )
    }

    /// Returns the trie nodes in `steps` without duplicates, in ascending order. An element of `steps` is `None` if a
    /// node of the last trie has no counterpart in an earlier trie.
    pub(crate) fn aligned(steps: impl Iterator<Item = Option<StepId>>) -> Vec<StepId> {
        let steps: BTreeSet<StepId> = steps.flatten().collect();
        steps.into_iter().collect()
    }
}

/// Converts a sample of an earlier dump to the sampling of a later dump, which may be coarser. Returns `None` if the
/// later sampling would have dropped the sample. The absence of such a sample in the later dump does not show that its
/// object was collected.
pub(crate) fn downsampled(
    sample: &Sample,
    sampling: &Sampling,
    finest: &Sampling,
) -> Option<Sample> {
    if sample.is_definition {
        return Some(*sample);
    }
    let weight = sampling.weight(sample.size).unwrap_or(sample.weight);
    let kept = sampling == finest || sampling.would_take(finest, sample.uid, sample.size);
    kept.then_some(Sample { weight, ..*sample })
}

/// Returns, for each node of a trie, true if it is one of the given nodes or a descendant of one of them.
fn flag_subtrees(trie: &Trie, content: &[StepId]) -> Vec<bool> {
    let mut inside = vec![false; trie.len()];
    let mut work = content.to_vec();
    while let Some(step) = work.pop() {
        if !std::mem::replace(&mut inside[step.0 as usize], true) {
            work.extend(&trie[step].children);
        }
    }
    inside
}

/// Returns these trie nodes and all of their descendants.
fn subtree_steps(trie: &Trie, content: &[StepId]) -> impl Iterator<Item = StepId> + use<> {
    let steps = (0..).map(StepId).zip(flag_subtrees(trie, content));
    steps.filter(|(_, is_inside)| *is_inside).map(|s| s.0)
}

#[cfg(test)]
mod tests {
    use heapdiff_sites::{Strategy, Weight};
    use hprof::ObjectIndex;

    use super::*;

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
            counted: u32::MAX,
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
    fn a_coarser_interval_drops_samples_and_raises_weights() {
        let (finest, coarse) = (every(10), every(40));
        let kept: Vec<Sample> = (0..1000)
            .filter_map(|uid| downsampled(&sample(uid, false), &coarse, &finest))
            .collect();
        // The coarser sampling keeps only a quarter of the samples that the finer sampling took.
        assert!((200..300).contains(&kept.len()), "{}", kept.len());
        for sample in &kept {
            assert_eq!(sample.weight.bytes, 4000.0);
            assert!(coarse.would_take(&finest, sample.uid, sample.size));
        }
        // A sample that is the definition of a class is never dropped. If both dumps were sampled alike, no sample is
        // dropped.
        for uid in 0..100 {
            let definition = downsampled(&sample(uid, true), &coarse, &finest).unwrap();
            assert_eq!(definition.weight.bytes, 100.0);
            let same = downsampled(&sample(uid, false), &finest, &finest).unwrap();
            assert_eq!(same.weight.bytes, 1000.0);
        }
    }
}
