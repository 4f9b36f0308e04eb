//! All live samples of every dump by stack, for flame graphs and profiles.
//!
//! A suspect's stacks explain its growth only. Here all samples count, so stacks that shrank are visible too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use heapdiff_sites::Estimate;

use crate::compare::Comparison;
use crate::samples::attribution::{Attribution, thinned};
use crate::samples::{Sample, Samples};

/// AllocatedBuilder that are kept. The rest is merged into one line, so that sums stay the same.
const LINES: usize = 1 << 18;

/// Live bytes and objects by allocating stack and class, one figure for each dump.
///
/// Strings are stored once and lines name them by number: a hundred thousand stacks of fifty frames
/// share most of theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Frames, as in [`crate::Stack::frames`].
    pub frames: Vec<String>,
    /// Names of classes.
    pub classes: Vec<String>,
    /// Stacks with what they allocated, the most growth first; what shrank is at the end.
    pub lines: Vec<AllocatedLine>,
    /// How many lines were merged into the last one, which has no frames; 0 where none were.
    pub merged: u64,
    /// Mean bytes between the last dump's samples; 0 where every allocation was sampled.
    pub interval_bytes: u64,
}

/// The live objects of one class that one stack allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatedLine {
    /// Frames among [`Allocated::frames`], the leaf first; empty where the JVM told no stack.
    pub frames: Vec<u32>,
    /// The class among [`Allocated::classes`].
    pub class: u32,
    /// Samples behind the estimates, one figure for each dump.
    pub samples: Vec<u64>,
    /// Estimated live objects, one figure for each dump.
    pub objects: Vec<u64>,
    /// Estimated live bytes, one figure for each dump.
    pub bytes: Vec<u64>,
}

impl AllocatedLine {
    /// Bytes in the last dump less those in the first.
    #[must_use]
    pub fn growth_bytes(&self) -> i64 {
        last_less_first(&self.bytes)
    }

    /// Objects in the last dump less those in the first.
    #[must_use]
    pub fn growth_objects(&self) -> i64 {
        last_less_first(&self.objects)
    }
}

fn last_less_first(figures: &[u64]) -> i64 {
    let signed = |figure: Option<&u64>| {
        let figure = figure.copied().unwrap_or(0);
        i64::try_from(figure).unwrap_or(i64::MAX)
    };
    signed(figures.last()).saturating_sub(signed(figures.first()))
}

impl Allocated {
    /// A line's frames, the leaf first.
    pub fn stack<'a>(
        &'a self,
        line: &'a AllocatedLine,
    ) -> impl DoubleEndedIterator<Item = &'a str> {
        let frames = line.frames.iter();
        frames.map(|&f| self.frames.get(f as usize).map_or("", |f| f))
    }

    /// A line's class.
    #[must_use]
    pub fn class(&self, line: &AllocatedLine) -> &str {
        self.classes.get(line.class as usize).map_or("", |c| c)
    }

    /// The live samples of one dump.
    #[must_use]
    pub fn of(samples: &Samples) -> Self {
        let mut lines = AllocatedBuilder::new(1);
        lines.add(0, samples, samples.live.iter().copied());
        lines.finish(interval(samples))
    }
}

fn interval(samples: &Samples) -> u64 {
    samples.agent().map_or(0, |a| a.sampling.interval)
}

impl Comparison {
    /// Live samples by stack and class in each dump; `None` where the last dump has none.
    ///
    /// Samples of earlier dumps of the same JVM get the weight that the last dump's sampling gives, so an object
    /// that is alive in both counts the same in both. Dumps whose samples cannot be compared with the last
    /// one's count as empty: if the agent came later, all that was sampled since is growth.
    ///
    /// Cost: a look at each sample.
    #[must_use]
    pub fn allocated(&self) -> Option<Allocated> {
        let (last, earlier) = self.summaries().split_last()?;
        let own: &Attribution = last.allocated.as_ref()?;
        let mut lines = AllocatedBuilder::new(self.summaries().len());
        for (dump, summary) in earlier.iter().enumerate() {
            let Some(first) = summary.allocated.as_ref().filter(|a| own.is_like(a)) else {
                continue;
            };
            let live = first.samples.live.iter();
            match own.same_jvm(first) {
                Some((sampling, finest)) => {
                    let live = live.filter_map(|s| thinned(s, &sampling, &finest));
                    lines.add(dump, &first.samples, live);
                }
                None => lines.add(dump, &first.samples, live.copied()),
            }
        }
        lines.add(
            earlier.len(),
            &own.samples,
            own.samples.live.iter().copied(),
        );
        Some(lines.finish(interval(&own.samples)))
    }
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

/// Builds [`Allocated`] from dumps that each number their sites differently.
struct AllocatedBuilder {
    dumps: usize,
    frames: Strings,
    classes: Strings,
    figures: BTreeMap<(Vec<u32>, u32), Vec<Estimate>>,
}

impl AllocatedBuilder {
    fn new(dumps: usize) -> Self {
        Self {
            dumps,
            frames: Strings::default(),
            classes: Strings::default(),
            figures: BTreeMap::new(),
        }
    }

    fn add(&mut self, dump: usize, samples: &Samples, live: impl Iterator<Item = Sample>) {
        let mut by_site: BTreeMap<_, Estimate> = BTreeMap::new();
        for sample in live {
            by_site
                .entry((sample.site, sample.class))
                .or_default()
                .add(&sample.weight, sample.size);
        }
        for ((site, class), estimate) in by_site {
            let frames = samples.sites.frames(site);
            let key = (
                frames.map(|f| self.frames.number(f)).collect(),
                self.classes.number(samples.name(class)),
            );
            let figures = self.figures.entry(key);
            let figures = figures.or_insert_with(|| vec![Estimate::default(); self.dumps]);
            figures[dump].merge(&estimate);
        }
    }

    fn finish(self, interval_bytes: u64) -> Allocated {
        let line = |((frames, class), figures): ((Vec<u32>, u32), Vec<Estimate>)| AllocatedLine {
            frames,
            class,
            samples: figures.iter().map(|e| e.samples).collect(),
            objects: figures.iter().map(Estimate::objects).collect(),
            bytes: figures.iter().map(Estimate::bytes).collect(),
        };
        let mut all = Allocated {
            frames: self.frames.texts,
            classes: self.classes.texts,
            lines: self.figures.into_iter().map(line).collect(),
            merged: 0,
            interval_bytes,
        };
        all.sort();
        all.merge_beyond(LINES, self.dumps);
        all
    }
}

impl Allocated {
    /// Sorts by growth and then by text, because the numbers of strings depend on the order of samples.
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

    /// Keeps the lines that changed most and merges the others.
    fn merge_beyond(&mut self, most: usize, dumps: usize) {
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
        all.merge_beyond(2, 2);
        assert_eq!(growth(&all), [3, -8, 2]);
        assert_eq!((all.merged, &*all.lines[2].bytes), (2, &[9, 11][..]));
        assert_eq!(all.class(&all.lines[2]), "(other classes)");
        assert_eq!(all.stack(&all.lines[2]).count(), 0);
    }

    #[test]
    fn figures_beyond_the_range_do_not_wrap() {
        assert_eq!(last_less_first(&[u64::MAX, 0]), -i64::MAX);
        assert_eq!(last_less_first(&[]), 0);
    }
}
