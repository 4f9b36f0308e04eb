//! All live samples of the first and the last dump by stack, for flame graphs and profiles.
//!
//! The stacks in the report on a suspect explain only its growth. Here all samples count, so stacks whose bytes shrank
//! are visible too. The estimates are the same as for suspects: samples of objects in a suspect's content (its objects
//! and what they dominate) are scaled to the number of objects in the content, and all other samples to the rest of the
//! heap. Stacks therefore add up to the same figures in every output format.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use heapdiff_sites::{Known, whole};

use crate::growth::{Aligned, Candidate};
use crate::samples::attribution::Attribution;
use crate::samples::place::{Level, Place, known};
use crate::samples::{Allocations, Sample, Samples, SiteId};
use crate::summary::Summary;
use crate::trie::{StepId, Trie};

/// Maximum number of lines (pairs of a stack and a class) to keep. The lines whose bytes changed least are merged into
/// one more line, so that the sums stay the same.
const LINES: usize = 1 << 18;

/// Live bytes and objects by allocating stack and class. For a single dump, each line has one figure. For several
/// dumps, it has a figure for the first dump and one for the last.
///
/// Strings are stored once and lines refer to them by number, because a hundred thousand stacks of fifty frames share
/// most of their frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Frames, as in [`crate::Stack::frames`].
    pub frames: Vec<String>,
    /// Names of classes.
    pub classes: Vec<String>,
    /// Stacks with their allocations, sorted by growth, descending. Stacks that shrank are at the end.
    pub lines: Vec<AllocatedLine>,
    /// Number of lines that were merged into the last line. If it is not 0, the last line has no frames.
    pub merged: u64,
    /// Mean number of bytes between two samples of the last dump; 0 if every allocation was sampled.
    pub interval_bytes: u64,
}

/// The live objects of one class that one stack allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatedLine {
    /// Frames as indices into [`Allocated::frames`], innermost first; empty if the JVM reported no stack.
    pub frames: Vec<u32>,
    /// The class, an index into [`Allocated::classes`].
    pub class: u32,
    /// Number of samples from which the estimates were computed, in each of the dumps.
    pub samples: Vec<u64>,
    /// Estimated live objects, in each of the dumps.
    pub objects: Vec<u64>,
    /// Estimated live bytes, in each of the dumps.
    pub bytes: Vec<u64>,
}

impl AllocatedLine {
    /// Returns the bytes in the last dump minus the bytes in the first dump.
    #[must_use]
    pub fn growth_bytes(&self) -> i64 {
        net_change(&self.bytes)
    }

    /// Returns the number of objects in the last dump minus the number in the first dump.
    #[must_use]
    pub fn growth_objects(&self) -> i64 {
        net_change(&self.objects)
    }
}

fn net_change(figures: &[u64]) -> i64 {
    let signed = |figure: Option<&u64>| {
        let figure = figure.copied().unwrap_or(0);
        i64::try_from(figure).unwrap_or(i64::MAX)
    };
    signed(figures.last()).saturating_sub(signed(figures.first()))
}

impl Allocated {
    /// Returns the frames of a line, innermost first.
    pub fn stack<'a>(
        &'a self,
        line: &'a AllocatedLine,
    ) -> impl DoubleEndedIterator<Item = &'a str> {
        let frames = line.frames.iter();
        frames.map(|&f| self.frames.get(f as usize).map_or("", |f| f))
    }

    /// Returns the name of the class of the allocated objects in `line`.
    #[must_use]
    pub fn class(&self, line: &AllocatedLine) -> &str {
        self.classes.get(line.class as usize).map_or("", |c| c)
    }

    /// Returns the estimates from the live samples of one dump. They are the same as the estimates of
    /// [`crate::by_site`].
    #[must_use]
    pub fn of(samples: &Samples) -> Self {
        let mut lines = AllocatedBuilder::new(1);
        let mut counts: BTreeMap<(SiteId, u32), u64> = BTreeMap::new();
        for sample in &samples.live {
            *counts.entry((sample.site, sample.class)).or_default() += 1;
        }
        for ((site, class), part) in samples.divided_by_stack().parts {
            let figures = lines.line(samples.sites.frames(site), samples.name(class));
            figures.samples[0] += counts.get(&(site, class)).copied().unwrap_or(0);
            figures.objects[0] += part.objects;
            figures.bytes[0] += part.bytes.value;
        }
        lines.finish(interval(samples))
    }
}

impl Allocated {
    /// Returns the allocations since the agent's start, whether the objects are dead or alive.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn since_start(samples: &Samples, allocations: &Allocations) -> Self {
        let mut lines = AllocatedBuilder::new(1);
        for stack in &allocations.stacks {
            let figures = lines.line(samples.sites.frames(stack.site), stack.class());
            figures.samples[0] += stack.samples;
            figures.objects[0] += stack.objects as f64;
            figures.bytes[0] += stack.bytes as f64;
        }
        lines.finish(samples.agent().map_or(0, |a| a.counted().interval))
    }
}

fn interval(samples: &Samples) -> u64 {
    samples.agent().map_or(0, |a| a.sampling.interval)
}

/// The content of a suspect: its nodes in the trie of the last dump and of the first dump. The descendants of these
/// nodes also belong to the content.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) last: Vec<StepId>,
    pub(crate) first: Vec<StepId>,
    /// Growth of the suspect's content in bytes.
    pub(crate) growth_bytes: u64,
}

impl Content {
    pub(crate) fn of(candidate: &Candidate, aligned: &Aligned<'_>, growth_bytes: u64) -> Self {
        let last = [&candidate.content[..], &candidate.beside].concat();
        let first = Attribution::aligned(last.iter().map(|&step| aligned.first(step)));
        Self {
            last,
            first,
            growth_bytes,
        }
    }
}

/// The trie nodes and the samples of one dump, in groups: one group for the content of each suspect, and a last group
/// for the rest of the heap.
struct Places<'a> {
    steps: Vec<Vec<StepId>>,
    samples: Vec<Vec<&'a Sample>>,
}

impl<'a> Places<'a> {
    /// Assigns each trie node and each sample to the content of a suspect. If a trie node or a sample belongs to the
    /// content of several suspects, it is assigned to the first of them.
    fn of<'c>(
        trie: &Trie,
        samples: Option<&'a Attribution>,
        contents: impl ExactSizeIterator<Item = &'c [StepId]>,
    ) -> Self {
        let rest = contents.len();
        let mut place_of = vec![rest; trie.len()];
        for (place, content) in contents.enumerate() {
            let mut work = content.to_vec();
            while let Some(step) = work.pop() {
                let of = &mut place_of[step.0 as usize];
                if *of == rest {
                    *of = place;
                    work.extend(&trie[step].children);
                }
            }
        }
        let mut places = Self {
            steps: vec![Vec::new(); rest + 1],
            samples: vec![Vec::new(); rest + 1],
        };
        for (step, &place) in (0..).map(StepId).zip(&place_of) {
            places.steps[place].push(step);
        }
        for (sample, step) in samples.into_iter().flat_map(Attribution::placed) {
            places.samples[place_of[step.0 as usize]].push(sample);
        }
        places
    }

    /// Returns the number of objects in the content of all suspects, by class and size class.
    fn held<'t>(&self, trie: &'t Trie) -> BTreeMap<(&'t str, u32), Known> {
        let mut held: BTreeMap<(&str, u32), Known> = BTreeMap::new();
        let contents = self.steps.split_last().map_or(&[][..], |(_, c)| c);
        for (class, size, known) in known(trie, contents.iter().flatten().copied()) {
            held.entry((class, size)).or_default().add(known);
        }
        held
    }
}

impl Allocated {
    /// Returns the estimates from the samples of the first and the last of the dumps. `None` if the last dump has no
    /// samples.
    ///
    /// Samples in the content of a suspect are scaled to the number of objects in this content, so the figures equal
    /// those of the suspect's stacks. All other samples are scaled to the rest of the heap. If only the last dump has
    /// samples, all objects that they represent count as new since the first dump.
    pub(crate) fn between(dumps: &[Summary], contents: &[Content]) -> Option<Self> {
        let last = dumps.last()?;
        let own = last.allocated.as_ref()?;
        let [first, .., _] = dumps else {
            return Some(Self::of(&own.samples));
        };
        let before = first.allocated.as_ref();
        let now = Places::of(&last.trie, Some(own), contents.iter().map(|c| &c.last[..]));
        let then = Places::of(&first.trie, before, contents.iter().map(|c| &c.first[..]));
        let mut lines = AllocatedBuilder::new(2);
        for at in 0..=contents.len() {
            let mut place = Place::new(own);
            let content = contents.get(at);
            if content.is_some() {
                place.add_last_dump(&last.trie, now.steps[at].iter().copied());
                if before.is_some() {
                    place.add_first_dump(&first.trie, then.steps[at].iter().copied());
                }
            } else {
                for (class, size, known) in outside_suspects(last, &now, before) {
                    place.stratum(&class, size).after.add(known);
                }
                if before.is_some() {
                    for (class, size, known) in outside_suspects(first, &then, Some(own)) {
                        place.stratum(&class, size).before.add(known);
                    }
                }
            }
            let then = before.map(|first| (first, &then.samples[at][..]));
            place.sample(&now.samples[at], then);
            for level in place.levels(content.map(|c| c.growth_bytes)) {
                lines.add_level(&level);
            }
        }
        Some(lines.finish(interval(&own.samples)))
    }
}

/// Returns the objects of a dump that belong to the content of no suspect, by class and size class. Only classes that
/// have samples in this dump or in the other dump are counted. The trie has no nodes for small branches. The result is
/// therefore computed as the objects of the whole heap minus those in the content.
fn outside_suspects(
    dump: &Summary,
    places: &Places<'_>,
    other: Option<&Attribution>,
) -> Vec<(String, u32, Known)> {
    let mut all: BTreeMap<(&str, u32), Known> = BTreeMap::new();
    let own = dump.allocated.as_ref();
    let [own, others] = [own, other].map(|of| of.map_or(&[][..], |a| &a.samples.counted[..]));
    for class in own {
        for (size, known) in class.sizes.iter() {
            all.entry((&class.name, size)).or_default().add(known);
        }
    }
    let names: BTreeSet<&str> = own.iter().map(|c| &*c.name).collect();
    let mut arrays: BTreeSet<&str> = BTreeSet::new();
    for class in others.iter().filter(|c| !names.contains(&*c.name)) {
        if class.is_array {
            arrays.insert(&class.name);
        } else {
            let known = dump.reachable_instances(&class.name);
            all.insert((&class.name, class.size_class(0)), known);
        }
    }
    // Count the arrays in the trie here, because `Samples` counts the arrays of a class by size only if this dump has a
    // sample of the class.
    let steps = (0..).map(StepId).take(dump.trie.len());
    for (class, size, known) in known(&dump.trie, steps) {
        if let Some(class) = arrays.get(class) {
            all.entry((class, size)).or_default().add(known);
        }
    }
    let held = places.held(&dump.trie);
    let rest = all.into_iter().map(|((class, size), all)| {
        let held = held.get(&(class, size)).copied().unwrap_or_default();
        let rest = Known {
            objects: all.objects.saturating_sub(held.objects),
            bytes: all.bytes.saturating_sub(held.bytes),
        };
        (class.to_owned(), size, rest)
    });
    rest.collect()
}

/// Interned strings.
#[derive(Default)]
struct Strings {
    texts: Vec<String>,
    index: HashMap<String, u32>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.index.get(text) {
            return number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.to_owned());
        self.index.insert(text.to_owned(), number);
        number
    }
}

/// Builds [`Allocated`] from several dumps. Each dump numbers its sites differently.
struct AllocatedBuilder {
    dumps: usize,
    frames: Strings,
    classes: Strings,
    lines: BTreeMap<(Vec<u32>, u32), Figures>,
}

/// Unrounded figures of one line (a stack and a class), one for each dump.
struct Figures {
    samples: Vec<u64>,
    objects: Vec<f64>,
    bytes: Vec<f64>,
}

impl Figures {
    fn new(dumps: usize) -> Self {
        Self {
            samples: vec![0; dumps],
            objects: vec![0.0; dumps],
            bytes: vec![0.0; dumps],
        }
    }

    /// Rounds figures to whole numbers. Rounds the difference between the two dumps, not each figure, so that the
    /// growth of a line equals the growth of a suspect's stack.
    fn whole(figures: &[f64]) -> Vec<u64> {
        let first = figures.first().copied().unwrap_or(0.0);
        let rounded = |&figure: &f64| whole(first.round() + (figure - first).round());
        figures.iter().map(rounded).collect()
    }
}

impl AllocatedBuilder {
    fn new(dumps: usize) -> Self {
        Self {
            dumps,
            frames: Strings::default(),
            classes: Strings::default(),
            lines: BTreeMap::new(),
        }
    }

    fn line<'f>(&mut self, frames: impl Iterator<Item = &'f str>, class: &str) -> &mut Figures {
        let key = (
            frames.map(|f| self.frames.number(f)).collect(),
            self.classes.number(class),
        );
        let line = self.lines.entry(key);
        line.or_insert_with(|| Figures::new(self.dumps))
    }

    /// Adds the figures of one stack and class in one part of the heap (the content of a suspect, or the rest), for the
    /// first dump and for the last dump.
    fn add_level(&mut self, level: &Level<'_>) {
        let figures = self.line(level.frames.iter().copied(), level.class);
        for dump in 0..2 {
            figures.samples[dump] += level.samples[dump];
            figures.objects[dump] += level.objects[dump];
            figures.bytes[dump] += level.bytes[dump];
        }
    }

    fn finish(self, interval_bytes: u64) -> Allocated {
        let line = |((frames, class), figures): ((Vec<u32>, u32), Figures)| AllocatedLine {
            frames,
            class,
            objects: Figures::whole(&figures.objects),
            bytes: Figures::whole(&figures.bytes),
            samples: figures.samples,
        };
        let mut all = Allocated {
            frames: self.frames.texts,
            classes: self.classes.texts,
            lines: self.lines.into_iter().map(line).collect(),
            merged: 0,
            interval_bytes,
        };
        all.sort();
        all.merge_after_top(LINES, self.dumps);
        all
    }
}

impl Allocated {
    /// Sorts the lines by growth. Lines with equal growth are sorted by the text of their frames, not by the indexes of
    /// the frames, because the indexes depend on the order of samples.
    fn sort(&mut self) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_by(|a, b| {
            let figures = |l: &AllocatedLine| (l.growth_bytes(), l.bytes.last().copied());
            let order = Reverse(figures(a)).cmp(&Reverse(figures(b)));
            order
                .then_with(|| self.stack(a).cmp(self.stack(b)))
                .then_with(|| self.class(a).cmp(self.class(b)))
        });
        self.lines = lines;
    }

    /// Keeps the `most` lines whose bytes changed the most, and merges the other lines into one line at the end.
    fn merge_after_top(&mut self, most: usize, dumps: usize) {
        if self.lines.len() <= most {
            return;
        }
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by_key(|&i| (Reverse(self.lines[i].growth_bytes().unsigned_abs()), i));
        let mut rest = AllocatedLine {
            samples: vec![0; dumps],
            objects: vec![0; dumps],
            bytes: vec![0; dumps],
            ..AllocatedLine::default()
        };
        let mut keep = vec![true; self.lines.len()];
        for &i in &order[most..] {
            keep[i] = false;
            let line = &self.lines[i];
            for (sums, figures) in [
                (&mut rest.samples, &line.samples),
                (&mut rest.objects, &line.objects),
                (&mut rest.bytes, &line.bytes),
            ] {
                for (sum, figure) in sums.iter_mut().zip(figures) {
                    *sum = sum.saturating_add(*figure);
                }
            }
        }
        self.merged = (order.len() - most) as u64;
        let mut keep = keep.into_iter();
        self.lines.retain(|_| keep.next().unwrap_or(false));
        rest.class = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        self.classes.push("(other classes)".to_owned());
        self.lines.push(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(frame: u32, before: u64, after: u64) -> AllocatedLine {
        AllocatedLine {
            frames: vec![frame],
            class: 0,
            samples: vec![1, 1],
            objects: vec![1, 1],
            bytes: vec![before, after],
        }
    }

    #[test]
    fn sums_stay_when_lines_are_merged() {
        let mut all = Allocated {
            frames: ["a", "b", "c", "d"].map(String::from).into(),
            classes: vec!["X".into()],
            lines: vec![line(3, 5, 5), line(0, 9, 1), line(1, 0, 3), line(2, 4, 6)],
            ..Allocated::default()
        };
        all.sort();
        let growth = |all: &Allocated| {
            all.lines
                .iter()
                .map(|l| l.growth_bytes())
                .collect::<Vec<_>>()
        };
        assert_eq!(growth(&all), [3, 2, 0, -8]);
        all.merge_after_top(2, 2);
        assert_eq!(growth(&all), [3, -8, 2]);
        assert_eq!((all.merged, &*all.lines[2].bytes), (2, &[9, 11][..]));
        assert_eq!(all.class(&all.lines[2]), "(other classes)");
        assert_eq!(all.stack(&all.lines[2]).count(), 0);
    }

    #[test]
    fn figures_beyond_the_range_do_not_wrap() {
        assert_eq!(net_change(&[u64::MAX, 0]), -i64::MAX);
        assert_eq!(net_change(&[]), 0);
    }
}
