//! The samples of the objects in one or more trie nodes (a [`Place`]), in two dumps. They are compared with all objects
//! in these trie nodes in each dump.

use std::collections::{BTreeMap, BTreeSet};

use heapdiff_sites::{Division, Follow, Keys, Known, Part, Stratum, Totals};

use crate::samples::attribution::{Attribution, Line, SiteAndClass, Strata, downsampled};
use crate::samples::counting::Counting;
use crate::samples::{Sample, Samples};
use crate::trie::{StepId, Trie};

/// The change of a sample between two dumps.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    Came,
    Went,
}

/// Growth in bytes. `direct` is the part that is estimated from the weights of samples alone. `shared` is the part for
/// which the known number of objects of each class and size class is divided in proportion to samples.
pub(super) struct Net {
    pub(super) direct: f64,
    pub(super) shared: f64,
}

/// The objects of one class that one stack allocated, and that are in the trie nodes of a [`Place`].
pub(crate) struct Level<'a> {
    /// Frames, innermost first.
    pub(crate) frames: Vec<&'a str>,
    pub(crate) class: &'a str,
    /// Number of samples in the first dump and in the last.
    pub(crate) samples: [u64; 2],
    /// Number of objects in the first dump and in the last.
    pub(crate) objects: [f64; 2],
    /// Number of bytes in the first dump and in the last.
    pub(crate) bytes: [f64; 2],
}

/// The samples of the objects in one or more trie nodes, in two dumps. Also stores the number of objects in these trie
/// nodes by class and size.
pub(crate) struct Place<'a> {
    /// Samples of the last dump. The report shows these.
    last: &'a Attribution,
    /// Samples of the dump that is being processed, which is the first or the last dump.
    of: &'a Samples,
    strata: Strata<String, usize>,
    /// Samples that are in no stratum (objects of one class and size class): definitions of classes, or all samples if
    /// every object has a sample.
    direct: Stratum<usize>,
    /// Maps the text of each stack to a number. The numbers of stacks in a dump are not used, because each dump numbers
    /// its stacks differently.
    texts: BTreeMap<(Vec<&'a str>, &'a str), usize>,
    /// Maps a stack and a class to a number in `texts`. The keys are valid only for the dump to which `of` belongs. So the
    /// map is cleared when `of` changes.
    numbers: BTreeMap<SiteAndClass, usize>,
    /// The report's line for each stack in the last dump.
    lines: BTreeMap<usize, (SiteAndClass, Line)>,
    /// For each stack, the number of samples that are in the first dump only.
    went: BTreeMap<usize, u64>,
    net: f64,
    totals: Totals,
    follow: Follow,
    /// The agent's counts in the last dump, its counts in the first dump, and the uid of the last sample taken before
    /// the first dump.
    counting: Option<(&'a Counting, &'a Counting, u64)>,
}

impl<'a> Place<'a> {
    /// Creates a [`Place`] without objects and samples. `last` contains all samples of the last dump.
    pub(crate) fn new(last: &'a Attribution) -> Self {
        Self {
            last,
            of: &last.samples,
            strata: BTreeMap::new(),
            direct: Stratum::default(),
            texts: BTreeMap::new(),
            numbers: BTreeMap::new(),
            lines: BTreeMap::new(),
            went: BTreeMap::new(),
            net: 0.0,
            totals: last.samples.totals_say(),
            follow: Follow::Nothing,
            counting: None,
        }
    }

    /// Adds the objects and bytes of these trie nodes in the last dump.
    pub(crate) fn add_last_dump(&mut self, trie: &Trie, steps: impl IntoIterator<Item = StepId>) {
        for (class, size, known) in known(trie, steps) {
            self.stratum(class, size).after.add(known);
        }
    }

    /// Adds the objects and bytes of these trie nodes in the first dump.
    pub(crate) fn add_first_dump(&mut self, trie: &Trie, steps: impl IntoIterator<Item = StepId>) {
        for (class, size, known) in known(trie, steps) {
            self.stratum(class, size).before.add(known);
        }
    }

    /// Returns the stratum (objects and samples) of one class and size class.
    pub(crate) fn stratum(&mut self, class: &str, size: u32) -> &mut Stratum<usize> {
        if !self.strata.contains_key(class) {
            self.strata.insert(class.to_owned(), BTreeMap::new());
        }
        let strata = self.strata.entry(class.to_owned()).or_default();
        strata.entry(size).or_default()
    }

    /// Adds the samples of the objects in the trie nodes: the samples of the last dump and, if there is a first dump,
    /// its samples.
    pub(crate) fn sample(&mut self, now: &[&Sample], first: Option<(&'a Attribution, &[&Sample])>) {
        let last = self.last;
        let Some((first, before)) = first.filter(|f| last.can_subtract(f.0)) else {
            for sample in now {
                self.add(Fate::Came, sample, last);
            }
            return;
        };
        let same_jvm = last.same_jvm(first);
        let (uids, stayed): (BTreeSet<u64>, BTreeSet<u64>) = match same_jvm {
            Some(_) => (
                before.iter().map(|s| s.uid).collect(),
                now.iter().map(|s| s.uid).collect(),
            ),
            None => Default::default(),
        };
        if same_jvm.is_some() {
            let both = last.samples.counting.as_ref();
            let both = both.zip(first.samples.counting.as_ref());
            let last_uid = first.samples.agent().map_or(0, |agent| agent.last_uid);
            self.counting = both.map(|(last, first)| (last, first, last_uid));
        }
        for sample in now {
            let fate = if uids.contains(&sample.uid) {
                Fate::Kept
            } else {
                Fate::Came
            };
            self.add(fate, sample, last);
        }
        self.of = &first.samples;
        self.numbers.clear();
        let mut seen = BTreeSet::new();
        for sample in before {
            match same_jvm {
                None => self.add(Fate::Went, sample, first),
                Some((sampling, finest)) => {
                    if !stayed.contains(&sample.uid)
                        && seen.insert(sample.uid)
                        && let Some(sample) = downsampled(sample, &sampling, &finest)
                    {
                        self.add(Fate::Went, &sample, first);
                    }
                }
            }
        }
        if same_jvm.is_some() {
            (self.totals, self.follow) = (Totals::Shared, Follow::Uids);
        } else if self.totals != Totals::MostOfMore {
            let earlier = first.samples.totals_say();
            if earlier != Totals::Shared {
                self.totals = earlier;
            }
        }
    }

    fn add(&mut self, fate: Fate, sample: &Sample, from: &Attribution) {
        let of = (sample.site, sample.class);
        let (texts, samples) = (&mut self.texts, self.of);
        let number = *self.numbers.entry(of).or_insert_with(|| {
            let text = (samples.sites.frames(of.0).collect(), samples.name(of.1));
            let next = texts.len();
            *texts.entry(text).or_insert(next)
        });
        match fate {
            Fate::Came => {
                self.net += sample.weight.bytes;
                let line = self.lines.entry(number);
                line.or_insert_with(|| (of, Line::default())).1.add(sample);
            }
            Fate::Went => {
                self.net -= sample.weight.bytes;
                *self.went.entry(number).or_default() += 1;
            }
            Fate::Kept => {}
        }
        let counting = self.counting;
        let stratum = match from.samples.counted.get(sample.counted as usize) {
            Some(counted) => {
                let stratum = self.stratum(&counted.name, counted.size_class(sample.size));
                if let (Fate::Came, Some((last, first, before))) = (fate, counting) {
                    let new = || last.counts_since(first, &counted.name);
                    let counts = stratum.counts.get_or_insert_with(new);
                    let of = (sample, counted.array_size(sample.size));
                    last.add_sample(counts, number, of, before);
                }
                stratum
            }
            None => &mut self.direct,
        };
        let estimates = match fate {
            Fate::Kept => &mut stratum.kept,
            Fate::Came => &mut stratum.came,
            Fate::Went => &mut stratum.went,
        };
        let estimate = estimates.entry(number).or_default();
        estimate.add(&sample.weight, sample.size);
    }

    /// True if the total number of objects is known and is divided among the stacks by their samples. The figure of one
    /// stack then depends on the samples of the other stacks.
    pub(super) fn is_shared(&self) -> bool {
        self.last.samples.sampling().interval > 0 && self.totals == Totals::Shared
    }

    /// Returns the growth of each stack in the trie nodes of this [`Place`]. `most` is the growth of all these trie
    /// nodes. If it is given, the sum over all stacks is limited to `most`.
    fn growth(&self, most: Option<u64>) -> (BTreeMap<usize, Part>, Net) {
        let strata = self.strata.clone();
        let sampling = self.last.samples.sampling();
        let (totals, follow) = (self.totals, self.follow);
        let mut division = Stratum::divide(strata, &sampling, totals, follow, Keys::Stacks);
        let mut direct = self.direct.came.clone();
        for (&number, went) in &self.direct.went {
            direct.entry(number).or_default().take(went);
        }
        division.add_direct(direct);
        let mut parts = division.parts;
        let net = Net {
            direct: self.net,
            shared: parts.values().map(|p| p.bytes.value).sum(),
        };
        // New objects that only replace freed objects are not growth. But freed objects that are older than the agent
        // have no known stack, so they cannot be subtracted. The sum over all stacks can therefore be too large. Limit
        // it to `most`, the growth of all trie nodes.
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let most = most.map_or(f64::INFINITY, |most| most as f64);
        if net.shared > most {
            for part in parts.values_mut() {
                *part = part.times(most / net.shared);
            }
        }
        (parts, net)
    }

    /// Returns the stacks that allocated the growth of this [`Place`]. `growth_bytes` is the growth of all its trie
    /// nodes.
    pub(super) fn lines(self, growth_bytes: u64) -> (BTreeMap<SiteAndClass, Line>, Net) {
        let (parts, net) = self.growth(Some(growth_bytes));
        let mut lines = BTreeMap::new();
        for (number, (of, mut line)) in self.lines {
            line.part = parts.get(&number).copied().unwrap_or_default();
            // If new samples cannot be identified, use the increase in the number of samples instead.
            if let (Follow::Nothing, Some(went)) = (self.follow, self.went.get(&number)) {
                line.samples = line.samples.saturating_sub(*went).max(1);
            }
            if line.part.bytes.value > 0.0 {
                lines.insert(of, line);
            }
        }
        (lines, net)
    }

    /// Returns the objects of each stack in the last dump. The first dump is ignored.
    fn alive(&self) -> Division<usize> {
        let alive = |stratum: &Stratum<usize>| {
            let mut came = stratum.came.clone();
            for (&number, kept) in &stratum.kept {
                came.entry(number).or_default().merge(kept);
            }
            Stratum {
                after: stratum.after,
                came,
                ..Stratum::default()
            }
        };
        let strata = self.strata.iter().map(|(class, strata)| {
            let strata = strata.iter().map(|(&size, s)| (size, alive(s)));
            (class.as_str(), strata.collect())
        });
        let samples = &self.last.samples;
        let totals = samples.totals_say();
        let strata: Strata<&str, usize> = strata.collect();
        let (sampling, follow) = (samples.sampling(), Follow::Nothing);
        let mut all = Stratum::divide(strata, &sampling, totals, follow, Keys::Stacks);
        all.add_direct(alive(&self.direct).came);
        all
    }

    /// Returns the objects in the trie nodes of this [`Place`], by the stack that allocated them, in the first and last
    /// dump. The figures of the last dump are the same as in a report on that dump alone. A figure of the first dump is
    /// the figure of the last dump minus the growth that [`Self::lines`] returns for the stack. `growth_bytes` is the
    /// growth of all these trie nodes.
    pub(crate) fn levels(&self, growth_bytes: Option<u64>) -> Vec<Level<'a>> {
        let (grown, _) = self.growth(growth_bytes);
        let alive = self.alive().parts;
        let mut samples: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
        let strata = self.strata.values().flat_map(BTreeMap::values);
        for stratum in strata.chain([&self.direct]) {
            for (by, dumps) in [
                (&stratum.went, &[0][..]),
                (&stratum.came, &[1]),
                (&stratum.kept, &[0, 1]),
            ] {
                for (&number, estimate) in by {
                    let of = samples.entry(number).or_default();
                    for &dump in dumps {
                        of[dump] += estimate.samples;
                    }
                }
            }
        }
        let texts = self.texts.iter();
        let level = |((frames, class), number): (&(Vec<&'a str>, &'a str), &usize)| {
            let of = |parts: &BTreeMap<usize, Part>| parts.get(number).copied().unwrap_or_default();
            let (grown, alive) = (of(&grown), of(&alive));
            // A figure of either dump must not be negative.
            let both = |growth: f64, after: f64| {
                let after = after.max(growth).max(0.0);
                [after - growth, after]
            };
            Level {
                frames: frames.clone(),
                class,
                samples: samples.get(number).copied().unwrap_or_default(),
                objects: both(grown.objects, alive.objects),
                bytes: both(grown.bytes.value, alive.bytes.value),
            }
        };
        texts.map(level).collect()
    }
}

/// Returns the number of objects in some trie nodes, by class and size class.
pub(crate) fn known(
    trie: &Trie,
    steps: impl IntoIterator<Item = StepId>,
) -> impl Iterator<Item = (&str, u32, Known)> {
    steps.into_iter().flat_map(|id| {
        let step = &trie[id];
        let all = Known {
            objects: step.objects,
            bytes: step.shallow_bytes,
        };
        let class = trie.names.text(step.class);
        let sizes = step.sizes.by_size_class(all).into_iter();
        sizes.map(move |(size, known)| (class, size, known))
    })
}
