//! Encodes samples for summary files.

use heapdiff_sites::births::Births;
use heapdiff_sites::{Known, Sampling, Strategy, Weight};
use hprof::ObjectIndex;
use hprof::index::{Decoder, Encoder};

use super::attribution::Attribution;
use super::counting::{Counting, OfPlace, Place};
use super::population::{CountedClass, SizeClasses};
use super::{Agent, Collected, Cost, Origin, Sample, Samples, SiteId, Sites};
use crate::summary::kept::figure;
use crate::trie::{StepId, Trie};

/// All size classes are smaller than this number. There are four size classes for each power of two.
const SIZE_CLASSES: u32 = 64 * 4;
/// Maximum weight in a valid file.
const HEAVIEST: f64 = 1e30;
/// Size of one encoded live sample, in bytes.
const OF_SAMPLE: u64 = 69;

impl Attribution {
    /// Returns the minimum number of bytes that the samples take when encoded.
    pub(crate) fn least_bytes(&self) -> u64 {
        (self.samples.live.len() as u64).saturating_mul(OF_SAMPLE)
    }

    pub(crate) fn encode(&self, e: &mut Encoder) {
        let samples = &self.samples;
        e.option(samples.agent(), agent);
        e.u64(samples.live.len() as u64);
        for (s, step) in self.placed() {
            e.u32(step.0);
            live(e, s);
        }
        e.list(&samples.collected, collected);
        samples.sites.encode(e);
        e.list(&samples.totals, |e, &(count, bytes)| {
            e.u64(count);
            e.u64(bytes);
        });
        e.list(&samples.allocated, |e, &bytes| e.u64(bytes));
        e.list(&samples.site_classes, |e, &class| e.u32(class));
        e.option(samples.counting.as_ref(), |e, counting| counting.encode(e));
        e.list(&samples.names, |e, name| e.text(name));
        e.list(&samples.counted, |e, counted| {
            e.text(&counted.name);
            e.flag(counted.is_array);
            counted.sizes.encode(e);
        });
        e.u64(samples.unfinished);
        e.u64(samples.unreachable);
    }

    /// Reads what [`Attribution::encode`] wrote, for a dump with `objects` objects.
    pub(crate) fn decode(d: &mut Decoder<'_>, trie: &Trie, objects: u64) -> Option<Self> {
        let origin = match d.option(agent_of)? {
            Some(agent) => Origin::Agent(Box::new(agent)),
            None => Origin::Traces,
        };
        let placed = d.list(|d| {
            let step = d.u32().filter(|&s| (s as usize) < trie.len())?;
            let sample = live_of(d).filter(|s| u64::from(s.object.0) < objects)?;
            Some((StepId(step), sample))
        })?;
        let (steps, live): (Vec<StepId>, Vec<Sample>) = placed.into_iter().unzip();
        let samples = Samples {
            origin,
            live,
            collected: d.list(collected_of)?,
            sites: Sites::decode(d)?,
            totals: d.list(|d| Some((d.u64()?, d.u64()?)))?,
            allocated: d.list(Decoder::u64)?,
            site_classes: d.list(Decoder::u32)?,
            classes: None,
            at_sites: None,
            counting: d.option(Counting::decode)?,
            names: d.list(Decoder::text)?,
            counted: d.list(|d| {
                Some(CountedClass {
                    name: d.text()?,
                    is_array: d.flag()?,
                    sizes: SizeClasses::decode(d)?,
                })
            })?,
            unfinished: d.u64()?,
            unreachable: d.u64()?,
        };
        Some(Self::from_steps(samples, steps))
    }
}

impl SizeClasses {
    pub(crate) fn encode(&self, e: &mut Encoder) {
        e.u64(self.iter().count() as u64);
        for (class, known) in self.iter() {
            e.u32(class);
            e.u64(known.objects);
            e.u64(known.bytes);
        }
    }

    pub(crate) fn decode(d: &mut Decoder<'_>) -> Option<Self> {
        let mut sizes = Self::default();
        let mut least = 0;
        d.list(|d| {
            let class = d.u32().filter(|c| (least..SIZE_CLASSES).contains(c))?;
            least = class + 1;
            let objects = figure(d)?;
            let bytes = figure(d)?;
            sizes.add_all(class, Known { objects, bytes });
            Some(())
        })?;
        Some(sizes)
    }
}

impl Counting {
    pub(super) fn encode(&self, e: &mut Encoder) {
        e.u64(self.since_ms);
        e.u64(self.at_ms);
        e.list(&self.places, |e, (place, of)| {
            for text in [&place.allocated, &place.class, &place.method] {
                e.text(text);
            }
            e.u32(place.line);
            e.u64(of.births.objects);
            e.u64(of.births.bytes);
            e.option(of.births.samples.as_ref(), |e, &samples| e.u64(samples));
            e.option(of.size.as_ref(), |e, &size| e.u32(size));
        });
        e.u64(self.of.len() as u64);
        for (&(site, class), &place) in &self.of {
            for number in [site.0, class, place] {
                e.u32(number);
            }
        }
    }

    pub(super) fn decode(d: &mut Decoder<'_>) -> Option<Self> {
        let (since_ms, at_ms) = (figure(d)?, figure(d)?);
        let places = d.list(|d| {
            let place = Place {
                allocated: d.text()?,
                class: d.text()?,
                method: d.text()?,
                line: d.u32()?,
            };
            let births = Births {
                objects: figure(d)?,
                bytes: d.u64()?,
                samples: d.option(figure)?,
            };
            let size = d.option(Decoder::u32)?;
            Some((place, OfPlace { births, size }))
        })?;
        let ascends = places.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let of = d.list(|d| {
            let (site, class) = (SiteId(d.u32()?), d.u32()?);
            let place = d.u32().filter(|&p| (p as usize) < places.len())?;
            Some(((site, class), place))
        })?;
        ascends.then(|| Self {
            since_ms,
            at_ms,
            places,
            of: of.into_iter().collect(),
        })
    }
}

fn agent(e: &mut Encoder, agent: &Agent) {
    for sampling in [agent.sampling, agent.first] {
        e.u32(sampling.strategy.code().cast_unsigned());
        e.u64(sampling.interval);
        e.u64(sampling.rate);
    }
    for word in [agent.started_ms, agent.pid, agent.depth, agent.last_uid] {
        e.u64(word);
    }
    e.flag(agent.is_before_25);
    e.list(&agent.counters, |e, &counter| e.u64(counter));
    let cost = &agent.cost;
    for word in [
        cost.objects,
        cost.bytes,
        cost.sample_bytes,
        cost.samples,
        cost.site_bytes,
        cost.sites,
    ] {
        e.u64(word);
    }
}

fn agent_of(d: &mut Decoder<'_>) -> Option<Agent> {
    Some(Agent {
        sampling: sampling(d)?,
        first: sampling(d)?,
        started_ms: d.u64()?,
        pid: d.u64()?,
        depth: d.u64()?,
        last_uid: d.u64()?,
        is_before_25: d.flag()?,
        counters: d.list(Decoder::u64)?,
        cost: Cost {
            objects: d.u64()?,
            bytes: d.u64()?,
            sample_bytes: d.u64()?,
            samples: d.u64()?,
            site_bytes: d.u64()?,
            sites: d.u64()?,
        },
    })
}

fn sampling(d: &mut Decoder<'_>) -> Option<Sampling> {
    Some(Sampling {
        strategy: Strategy::from_code(d.u32()?.cast_signed())?,
        interval: d.u64()?,
        rate: d.u64()?,
    })
}

fn live(e: &mut Encoder, sample: &Sample) {
    e.u32(sample.object.0);
    e.u64(sample.uid);
    e.u64(sample.size);
    for number in [
        sample.site.0,
        sample.class,
        sample.thread,
        sample.time_ms,
        sample.counted,
    ] {
        e.u32(number);
    }
    e.flag(sample.is_definition);
    let weight = &sample.weight;
    for part in [
        weight.objects,
        weight.bytes,
        weight.objects_variance,
        weight.bytes_variance,
    ] {
        e.u64(part.to_bits());
    }
}

fn live_of(d: &mut Decoder<'_>) -> Option<Sample> {
    let object = ObjectIndex(d.u32()?);
    let (uid, size) = (d.u64()?, figure(d)?);
    let site = SiteId(d.u32()?);
    let [class, thread, time_ms, counted] = [d.u32()?, d.u32()?, d.u32()?, d.u32()?];
    Some(Sample {
        object,
        uid,
        size,
        site,
        class,
        thread,
        time_ms,
        counted,
        is_definition: d.flag()?,
        weight: Weight {
            objects: weight(d)?,
            bytes: weight(d)?,
            objects_variance: weight(d)?,
            bytes_variance: weight(d)?,
        },
    })
}

fn weight(d: &mut Decoder<'_>) -> Option<f64> {
    let weight = f64::from_bits(d.u64()?);
    (0.0..HEAVIEST).contains(&weight).then_some(weight)
}

fn collected(e: &mut Encoder, sample: &Collected) {
    e.u64(sample.uid);
    e.u64(sample.size);
    for number in [
        sample.site.0,
        sample.class,
        sample.thread,
        sample.time_ms,
        sample.died_ms,
    ] {
        e.u32(number);
    }
    for is in [sample.recent, sample.chosen, sample.is_definition] {
        e.flag(is);
    }
}

fn collected_of(d: &mut Decoder<'_>) -> Option<Collected> {
    Some(Collected {
        uid: d.u64()?,
        size: figure(d)?,
        site: SiteId(d.u32()?),
        class: d.u32()?,
        thread: d.u32()?,
        time_ms: d.u32()?,
        died_ms: d.u32()?,
        recent: d.flag()?,
        chosen: d.flag()?,
        is_definition: d.flag()?,
    })
}

impl Sites {
    /// Writes each distinct frame once, and then each stack as a list of frame numbers.
    fn encode(&self, e: &mut Encoder) {
        e.list(&self.frames, |e, frame| e.text(frame));
        e.list(&self.stacks, |e, stack| {
            e.list(stack, |e, &frame| e.u32(frame));
        });
    }

    fn decode(d: &mut Decoder<'_>) -> Option<Self> {
        let frames = d.list(Decoder::text)?;
        let mut sites = Self::default();
        for (frame, number) in frames.into_iter().zip(0..) {
            (sites.frame(frame) == number).then_some(())?;
        }
        let number = |d: &mut Decoder<'_>| d.u32().filter(|&f| (f as usize) < sites.frames.len());
        let stacks = d.list(|d| d.list(number).map(Box::from))?;
        sites.numbers = stacks.iter().cloned().zip((0..).map(SiteId)).collect();
        sites.stacks = stacks;
        Some(sites)
    }
}
