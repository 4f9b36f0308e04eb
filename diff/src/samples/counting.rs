//! The agent's exact counts for the classes that have live samples. They limit the estimates from samples.
//!
//! A place is a line of code together with one class that it allocates. Each place has one count. A sample belongs to a
//! place if the first frame of its stack is that line and its object is of that class. The count includes the sample if
//! the object was allocated after counting began and before the agent copied the count.
//!
//! Counts are only usable if counting began before the program did. A method that is running while the agent adds
//! counters to its class continues without them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heapdiff_sites::births::{Births, Counts, OfStack};
use heapdiff_sites::{Counter, Line, Sampling, SiteTable, size_class, statics};

use super::agent::{Reader, Result};
use super::at_sites::AtSites;
use super::{Agent, Collected, Sample, SiteId};

/// Rounding of times, in milliseconds. If a sample was taken at least this long after counting began, and at least this
/// long before the counts were copied, the copied counts certainly include its allocation.
pub(super) const ROUNDED_MS: u64 = 5;

/// A line of code, and one class that it allocates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Class of the allocated objects.
    pub(crate) allocated: String,
    pub(crate) class: String,
    pub(crate) method: String,
    pub(crate) line: u32,
}

/// Counts of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfPlace {
    pub(crate) births: Births,
    /// Size class of the arrays that are allocated at this line of code. `None` if the sampled arrays have different
    /// size classes.
    pub(crate) size: Option<u32>,
}

/// The exact counts by [`Place`] (a line of code and a class that it allocates). Also maps the samples of each stack to
/// the `Place` that allocated them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counting {
    /// Two times: when counting began, and when the agent copied the counts. Both are in milliseconds from the agent's
    /// start.
    pub(crate) since_ms: u64,
    pub(crate) at_ms: u64,
    /// Each [`Place`] with its counts, sorted by [`Place`].
    pub(crate) places: Vec<(Place, OfPlace)>,
    /// For each stack and class, the index in `places` of the line of code that allocated. A class is an index into
    /// [`super::Samples::names`].
    pub(crate) of: BTreeMap<(SiteId, u32), u32>,
}

impl Counting {
    /// Returns the lines of code that allocate a class, with the counts of this class at each line.
    fn of_class<'a>(
        &'a self,
        class: &'a str,
    ) -> impl Iterator<Item = (u32, &'a Place, &'a OfPlace)> {
        let start = self.places.partition_point(|(p, _)| &*p.allocated < class);
        let numbered = (0..).zip(&self.places).skip(start);
        let numbered = numbered.take_while(move |(_, (p, _))| p.allocated == class);
        numbered.map(|(number, (place, of))| (number, place, of))
    }

    /// Returns the counts of one class at the line of code that allocates it.
    fn find(&self, place: &Place) -> Option<&OfPlace> {
        let at = self.places.binary_search_by(|(p, _)| p.cmp(place)).ok()?;
        self.places.get(at).map(|(_, of)| of)
    }

    /// True if the object of the sample was allocated while counting was on, so that the count includes it.
    fn holds(&self, sample: &Sample) -> bool {
        let time = u64::from(sample.time_ms);
        time >= self.since_ms + ROUNDED_MS && time + ROUNDED_MS <= self.at_ms
    }

    /// Returns the counts of all lines of code that allocate a class, without the samples. [`Self::add_sample`] adds
    /// samples.
    pub(crate) fn counts<K: Ord>(&self, class: &str) -> Counts<K> {
        let places = self.of_class(class);
        Counts {
            stacks: BTreeMap::new(),
            places: places.map(|(number, _, of)| (number, of.births)).collect(),
        }
    }

    /// Returns by how much the counts of a class have risen since an earlier copy of the counters.
    pub(crate) fn counts_since<K: Ord>(&self, first: &Self, class: &str) -> Counts<K> {
        let since = |(number, place, of): (u32, &Place, &OfPlace)| {
            let before = first.find(place).map(|of| of.births);
            (number, counts_since(of.births, before))
        };
        Counts {
            stacks: BTreeMap::new(),
            places: self.of_class(class).map(since).collect(),
        }
    }

    /// Adds a sample to `counts`, the counts of the sample's class. A sample with a uid of at most `after` is added as
    /// a sample that these counts do not include. `size` is the size class if the sampled object is an array.
    ///
    /// If a line of code allocates arrays of one class but of different size classes, its number of samples is set to
    /// `None` (unknown). The reason: the samples of one size class do not show how many of all these arrays are alive.
    pub(crate) fn add_sample<K: Ord>(
        &self,
        counts: &mut Counts<K>,
        key: K,
        (sample, size): (&Sample, Option<u32>),
        after: u64,
    ) {
        let place = self.of.get(&(sample.site, sample.class)).copied();
        let place = place.filter(|place| counts.places.contains_key(place));
        let of: &mut OfStack = counts.stacks.entry(key).or_default();
        of.place = of.place.or(place);
        match place.filter(|_| sample.uid > after && self.holds(sample)) {
            None => of.other += 1,
            Some(place) => {
                of.counted += 1;
                let one = self.places.get(place as usize).and_then(|(_, of)| of.size);
                if size.is_some()
                    && size != one
                    && let Some(births) = counts.places.get_mut(&place)
                {
                    births.samples = None;
                }
            }
        }
    }
}

/// Returns the counts of one class at one line of code, minus those of an earlier copy. If the earlier copy lacks the
/// line, its counts were 0.
fn counts_since(now: Births, before: Option<Births>) -> Births {
    let before = before.unwrap_or(Births {
        samples: Some(0),
        ..Births::default()
    });
    let samples = now.samples.zip(before.samples);
    Births {
        objects: now.objects.saturating_sub(before.objects),
        bytes: now.bytes.saturating_sub(before.bytes),
        samples: samples.map(|(now, before)| now.saturating_sub(before)),
    }
}

/// Class, method and line of the first frame of a stack.
pub(super) type Leaf<'a> = (&'a str, &'a str, u32);
/// The first frame of each stack. `None` if the frame has no line number.
pub(super) type Leaves<'a> = BTreeMap<SiteId, Option<Leaf<'a>>>;

/// Returns the innermost frame of each stack. If several of the agent's stack ids have frames with the same text, these
/// ids are one stack. If their innermost frames differ in class, method or line, the stack gets `None`.
pub(super) fn leaves<'a>(table: &'a SiteTable, numbers: &HashMap<u32, SiteId>) -> Leaves<'a> {
    let mut leaves = Leaves::new();
    for (&id, &site) in numbers {
        let leaf = leaf(table, id);
        let own = leaves.entry(site).or_insert(leaf);
        *own = own.filter(|own| Some(*own) == leaf);
    }
    leaves
}

fn leaf(table: &SiteTable, id: u32) -> Option<Leaf<'_>> {
    let frame = table.frames(id).next()?;
    match frame.line {
        Line::At(line) => Some((frame.class, frame.method, line)),
        _ => None,
    }
}

/// The remembered samples of the stacks that begin with one frame.
#[derive(Default)]
struct Remembered {
    classes: BTreeSet<u32>,
    sizes: BTreeSet<u32>,
    /// Number of samples taken, whether the objects are dead or alive.
    taken: u64,
}

impl Reader<'_> {
    /// Returns counts for the classes of live samples. Returns `None` if the agent does not count, or if the counts
    /// cannot be used.
    pub(super) fn counting(
        &self,
        at_sites: Option<&AtSites>,
        table: &SiteTable,
        leaves: &Leaves<'_>,
        (agent, names): (&Agent, &[String]),
        (live, collected): (&[Sample], &[Collected]),
    ) -> Result<Option<Counting>> {
        let Some(all) = at_sites.filter(|_| agent.counter(Counter::FromStart) > 0) else {
            return Ok(None);
        };
        let mut remembered: HashMap<Leaf<'_>, Remembered> = HashMap::new();
        let ids = table.site_ids();
        for (id, [taken, _]) in self.by_id::<2>(statics::TOTALS, ids.into_iter())? {
            if let Some(leaf) = leaf(table, id) {
                let of = remembered.entry(leaf).or_default();
                of.taken = of.taken.saturating_add(taken);
            }
        }
        let sampled = live.iter().filter(|s| !s.is_definition);
        let sampled = sampled.map(|s| (s.site, s.class, s.size));
        let dead = collected.iter().filter(|s| !s.is_definition);
        for (site, class, size) in sampled.chain(dead.map(|s| (s.site, s.class, s.size))) {
            if let Some(leaf) = leaves.get(&site).copied().flatten() {
                let of = remembered.entry(leaf).or_default();
                of.classes.insert(class);
                of.sizes.insert(size_class(size));
            }
        }
        // Numbers of samples can only be compared if all samples were taken and tracked with the same settings.
        let is_followed = agent.sampling == agent.first && agent.lost_bytes() == 0;
        let mut counts: HashMap<Leaf<'_>, u32> = HashMap::new();
        let mut expected: HashMap<Leaf<'_>, f64> = HashMap::new();
        for site in &all.sites {
            let leaf = (&*site.class, &*site.method, site.line.unwrap_or(0));
            *counts.entry(leaf).or_default() += 1;
            *expected.entry(leaf).or_default() += most_samples(agent, site.objects, site.bytes);
        }
        let wanted: BTreeSet<&str> = live
            .iter()
            .filter(|s| !s.is_definition)
            .filter_map(|s| names.get(s.class as usize))
            .map(|name| &**name)
            .collect();
        let mut places = Vec::new();
        for site in all.sites.iter().filter(|s| wanted.contains(&*s.allocated)) {
            let (Some(line), Some(bytes)) = (site.line, site.bytes) else {
                continue;
            };
            let leaf = (&*site.class, &*site.method, line);
            let of = remembered.get(&leaf);
            let taken = of.map_or(0, |of| of.taken);
            // There are more samples than the counts explain, so some allocations are not counted.
            if !is_random_variation(taken, expected.get(&leaf).copied().unwrap_or(0.0)) {
                continue;
            }
            let is_alone =
                counts.get(&leaf) == Some(&1) && of.is_none_or(|of| of.classes.len() < 2);
            let size = bytes.checked_div(site.objects).map(size_class);
            let is_one_size = of.is_none_or(|of| of.sizes.iter().all(|of| Some(*of) == size));
            places.push((
                Place {
                    allocated: site.allocated.clone(),
                    class: site.class.clone(),
                    method: site.method.clone(),
                    line,
                },
                OfPlace {
                    births: Births {
                        objects: site.objects,
                        bytes,
                        samples: (is_followed && is_alone).then_some(taken),
                    },
                    size: size.filter(|_| is_one_size),
                },
            ));
        }
        places.sort_by(|a, b| a.0.cmp(&b.0));
        let mut counting = Counting {
            since_ms: all.since_ms.saturating_sub(agent.started_ms),
            at_ms: all.at_ms.saturating_sub(agent.started_ms),
            places,
            of: BTreeMap::new(),
        };
        for sample in live.iter().filter(|s| !s.is_definition) {
            let Some((class, method, line)) = leaves.get(&sample.site).copied().flatten() else {
                continue;
            };
            let key = (sample.site, sample.class);
            if counting.of.contains_key(&key) {
                continue;
            }
            let place = Place {
                allocated: names
                    .get(sample.class as usize)
                    .cloned()
                    .unwrap_or_default(),
                class: class.to_owned(),
                method: method.to_owned(),
                line,
            };
            let at = counting.places.binary_search_by(|(p, _)| p.cmp(&place));
            if let Ok(at) = at {
                counting
                    .of
                    .insert(key, u32::try_from(at).unwrap_or(u32::MAX));
            }
        }
        Ok(Some(counting))
    }
}

/// Returns the maximum number of samples to expect from these allocations.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn most_samples(agent: &Agent, objects: u64, bytes: Option<u64>) -> f64 {
    let finest: Sampling = agent.first;
    let mean = bytes.and_then(|bytes| bytes.checked_div(objects));
    let probability = mean.and_then(|mean| finest.probability(mean));
    probability.unwrap_or(1.0) * objects as f64
}

/// For objects of some sizes, a JVM before JDK 25 can take too many samples, by at most this factor.
const TOO_MANY: f64 = 1.5;

/// True if random variation around the expected number explains this number of samples. Also true if there are fewer
/// samples than expected.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn is_random_variation(samples: u64, expected: f64) -> bool {
    let most = expected * TOO_MANY;
    samples as f64 <= most + 4.0 * most.sqrt() + 4.0
}

#[cfg(test)]
mod tests {
    use hprof::ObjectIndex;
    use hprof::index::{Decoder, Encoder};

    use super::*;

    fn births(objects: u64, samples: Option<u64>) -> Births {
        Births {
            objects,
            bytes: objects * 24,
            samples,
        }
    }

    fn place(allocated: &str, line: u32) -> Place {
        Place {
            allocated: allocated.to_owned(),
            class: "com.acme.Cache".to_owned(),
            method: "put".to_owned(),
            line,
        }
    }

    fn example() -> Counting {
        let of = |objects, samples, size| OfPlace {
            births: births(objects, samples),
            size,
        };
        Counting {
            since_ms: 100,
            at_ms: 5000,
            places: vec![
                (place("byte[]", 7), of(900, Some(30), Some(size_class(24)))),
                (place("com.acme.Entry", 7), of(50, None, None)),
                (place("com.acme.Entry", 9), of(70, Some(0), None)),
            ],
            of: [((SiteId(3), 1), 0), ((SiteId(3), 2), 1)].into(),
        }
    }

    fn sample(site: u32, class: u32, time_ms: u32) -> Sample {
        Sample {
            object: ObjectIndex(0),
            uid: u64::from(time_ms),
            size: 24,
            site: SiteId(site),
            class,
            thread: 0,
            time_ms,
            is_definition: false,
            weight: heapdiff_sites::Weight::exact(1.0, 24.0),
            counted: 0,
        }
    }

    #[test]
    fn encoded_counts_are_decoded() {
        let counting = example();
        let mut e = Encoder::default();
        counting.encode(&mut e);
        assert_eq!(Counting::decode(&mut Decoder(&e.0)), Some(counting));
        for cut in 0..e.0.len() {
            assert_eq!(Counting::decode(&mut Decoder(&e.0[..cut])), None, "{cut}");
        }
    }

    #[test]
    fn samples_belong_to_the_count_during_their_allocation() {
        let counting = example();
        let tallied = |samples: &[Sample], after| {
            let mut counts = counting.counts::<u32>("com.acme.Entry");
            for sample in samples {
                counting.add_sample(&mut counts, sample.site.0, (sample, None), after);
            }
            counts
        };
        let of = |place, counted, other| OfStack {
            place,
            counted,
            other,
        };
        let times = [50, 2000, 3000, 4999];
        // One sample was taken before counting began, and two during counting. The last one was taken less than
        // `ROUNDED_MS` before the counts were copied, so the copy may not include it.
        let entries = times.map(|time| sample(3, 2, time));
        let counts = tallied(&entries, 0);
        assert_eq!(counts.stacks, [(3, of(Some(1), 2, 2))].into());
        assert_eq!(
            counts.places,
            [(1, births(50, None)), (2, births(70, Some(0)))].into()
        );
        // If there are two dumps, samples that are already in the first dump are not new.
        let counts = tallied(&entries, 2000);
        assert_eq!(counts.stacks, [(3, of(Some(1), 1, 3))].into());
        // The agent does not count at the line of code where this stack allocates.
        let counts = tallied(&[sample(4, 2, 2000)], 0);
        assert_eq!(counts.stacks, [(4, of(None, 0, 1))].into());
    }

    #[test]
    fn arrays_of_another_size_give_no_sample_count() {
        let counting = example();
        for (size, samples) in [(24, Some(30)), (4000, None)] {
            let mut counts = counting.counts::<u32>("byte[]");
            let of = (&sample(3, 1, 2000), Some(size_class(size)));
            counting.add_sample(&mut counts, 3, of, 0);
            assert_eq!(counts.places[&0].samples, samples, "{size}");
        }
    }

    #[test]
    fn counts_between_two_copies_are_their_difference() {
        let last = example();
        let mut first = example();
        first.places.remove(2);
        first.places[0].1.births = births(600, Some(20));
        let counts = last.counts_since::<u32>(&first, "byte[]");
        assert_eq!(counts.places, [(0, births(300, Some(10)))].into());
        // At line 7, the number of samples is unknown. Line 9 has no counts in the earlier dump.
        let counts = last.counts_since::<u32>(&first, "com.acme.Entry");
        assert_eq!(
            counts.places,
            [(1, births(0, None)), (2, births(70, Some(0)))].into()
        );
    }

    #[test]
    fn samples_that_counts_cannot_explain_are_detected() {
        assert!(
            is_random_variation(0, 0.0)
                && is_random_variation(4, 0.0)
                && !is_random_variation(5, 0.0)
        );
        assert!(is_random_variation(150, 100.0) && !is_random_variation(250, 100.0));
    }
}
