//! Prepares stacks for flame graphs and profiles. Stacks begin at the root, or at the frame that the focus matches.
//! Equal stacks are merged.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use heapdiff_diff::{Allocated, FrameParts, Stack};
use regex::Regex;

use crate::printable::printable;

/// The name that replaces the frames of a stack if the JVM reported no frames.
const UNKNOWN: &str = "(no stack)";

/// Live objects and bytes, as estimated from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Number of objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The objects of one class that one stack allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackLine {
    /// Indices of the frames in [`Stacks::names`], the root first.
    pub frames: Vec<u32>,
    /// Index of the class in [`Stacks::classes`].
    pub class: u32,
    /// Live objects and bytes in the first dump; zero if there is only one dump.
    pub before: Live,
    /// Live objects and bytes in the last dump.
    pub after: Live,
}

impl StackLine {
    /// Returns the growth in bytes: the bytes in the last dump minus the bytes in the first.
    #[must_use]
    pub fn growth(&self) -> i64 {
        signed_difference(self.after.bytes, self.before.bytes)
    }
}

/// Returns `after` minus `before`, limited to the range of an `i64`.
#[must_use]
pub(crate) fn signed_difference(after: u64, before: u64) -> i64 {
    let difference = i128::from(after) - i128::from(before);
    i64::try_from(difference).unwrap_or(if difference > 0 { i64::MAX } else { -i64::MAX })
}

/// The parts of a frame that belong to its name. Frames with equal names are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Class and method. Two lines of one method are the same frame.
    Functions,
    /// Class, method, file and line. Two lines of one method are different frames.
    Frames,
}

/// Stacks, sorted by the names of their frames. Equal stacks are merged.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Names of frames, each once.
    pub names: Vec<String>,
    /// Names of classes, each once.
    pub classes: Vec<String>,
    /// The stacks with their figures.
    pub lines: Vec<StackLine>,
    /// True if stacks begin with the allocated class and end with the outermost frame, so that callees come before
    /// their callers.
    pub reversed: bool,
}

/// An element of a stack as it is written: a frame, or the allocated class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Index of a frame in [`Stacks::names`].
    Frame(u32),
    /// Index of a class in [`Stacks::classes`].
    Class(u32),
}

impl Stacks {
    /// Builds the stacks from allocated objects. Makes all names [`printable`].
    ///
    /// With a focus, a stack begins with its outermost frame that matches the pattern. Stacks without a matching frame
    /// are dropped.
    #[must_use]
    pub fn new(allocated: &Allocated, focus: Option<&Regex>, names: Names) -> Self {
        let mut table = Table::default();
        let text = |frame: &'_ str| match names {
            Names::Frames => printable(frame).into_owned(),
            Names::Functions => printable(FrameParts::parse(frame).function).into_owned(),
        };
        let numbers: Vec<u32> = allocated
            .frames
            .iter()
            .map(|f| table.number(text(f)))
            .collect();
        let entries: Option<Vec<bool>> =
            focus.map(|re| allocated.frames.iter().map(|f| re.is_match(f)).collect());
        let mut classes = Table::default();
        let class_numbers: Vec<u32> = allocated
            .classes
            .iter()
            .map(|c| classes.number(printable(c).into_owned()))
            .collect();
        let unknown = table.number(UNKNOWN.to_owned());
        let mut merged: BTreeMap<(Vec<u32>, u32), (Live, Live)> = BTreeMap::new();
        for line in &allocated.lines {
            let from_root = line.frames.iter().rev().map(|&f| f as usize);
            let mut frames: Vec<usize> = from_root.collect();
            if let Some(entries) = &entries {
                let entered = |&f: &usize| entries.get(f).copied().unwrap_or(false);
                let Some(entry) = frames.iter().position(entered) else {
                    continue;
                };
                frames.drain(..entry);
            }
            let mut frames: Vec<u32> = frames
                .into_iter()
                .map(|f| numbers.get(f).copied().unwrap_or(unknown))
                .collect();
            if frames.is_empty() {
                frames.push(unknown);
            }
            let class = class_numbers.get(line.class as usize).copied().unwrap_or(0);
            let (before, after) = merged.entry((frames, class)).or_default();
            let figure = |figures: &[u64], at: usize| figures.get(at).copied().unwrap_or(0);
            let last = line.bytes.len().saturating_sub(1);
            for (live, at) in [(before, (last > 0).then_some(0)), (after, Some(last))] {
                if let Some(at) = at {
                    live.objects = live.objects.saturating_add(figure(&line.objects, at));
                    live.bytes = live.bytes.saturating_add(figure(&line.bytes, at));
                }
            }
        }
        let lines = merged.into_iter();
        let lines = lines.map(|((frames, class), (before, after))| StackLine {
            frames,
            class,
            before,
            after,
        });
        let mut stacks = Self {
            lines: lines.collect(),
            names: table.texts,
            classes: classes.texts,
            reversed: false,
        };
        stacks.sort();
        stacks
    }

    /// Returns the same stacks in reverse, so that callees come first.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.reversed = true;
        self.sort();
        self
    }

    /// Returns the steps of a stack: its frames from the root on, then the class. If the stacks are reversed, the class
    /// comes first and the root last.
    pub fn steps<'a>(&self, line: &'a StackLine) -> impl Iterator<Item = Step> + use<'a> {
        let (first, last) = if self.reversed {
            (Some(line.class), None)
        } else {
            (None, Some(line.class))
        };
        let frames = line.frames.len();
        let reversed = self.reversed;
        let frame = move |at: usize| line.frames[if reversed { frames - 1 - at } else { at }];
        let first = first.into_iter().map(Step::Class);
        let last = last.into_iter().map(Step::Class);
        first
            .chain((0..frames).map(frame).map(Step::Frame))
            .chain(last)
    }

    /// Returns the name of a step, which is a frame or a class.
    #[must_use]
    pub fn text(&self, step: Step) -> &str {
        match step {
            Step::Frame(frame) => self.name(frame),
            Step::Class(class) => self.classes.get(class as usize).map_or("", |c| c),
        }
    }

    /// Sorts stacks by the names of their steps (frames, then the class). Indices of names cannot be compared instead,
    /// because they depend on the order of the input.
    fn sort(&mut self) {
        let rank = |texts: &[String]| {
            let mut order: Vec<usize> = (0..texts.len()).collect();
            order.sort_by_key(|&i| &texts[i]);
            let mut ranks = vec![0_usize; texts.len()];
            for (rank, at) in order.into_iter().enumerate() {
                ranks[at] = rank;
            }
            ranks
        };
        let (names, classes) = (rank(&self.names), rank(&self.classes));
        let reversed = self.reversed;
        self.lines.sort_by_cached_key(|line| {
            let mut frames: Vec<usize> = line.frames.iter().map(|&f| names[f as usize]).collect();
            let class = classes[line.class as usize];
            if reversed {
                frames.reverse();
            }
            (reversed.then_some(class), frames, class)
        });
    }

    /// Returns the name of a frame.
    #[must_use]
    pub fn name(&self, frame: u32) -> &str {
        self.names.get(frame as usize).map_or("", |n| n)
    }

    /// Returns the class that a stack allocated.
    #[must_use]
    pub fn class(&self, line: &StackLine) -> &str {
        self.classes.get(line.class as usize).map_or("", |c| c)
    }
}

/// A list of strings without duplicates.
#[derive(Default)]
struct Table {
    texts: Vec<String>,
    index: HashMap<String, u32>,
}

impl Table {
    fn number(&mut self, text: String) -> u32 {
        if let Some(&number) = self.index.get(&text) {
            return number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(text.clone());
        self.index.insert(text, number);
        number
    }
}

/// Returns the stacks of a suspect from the outermost frame that matches `focus`, as in [`Stacks::new`]. Stacks without
/// such a frame are dropped, and equal stacks are merged.
///
/// To merge estimates, this function assumes that they are independent: the half-width of the merged interval is the
/// root of the sum of the squared half-widths. For a merged stack, the part of the allocated bytes that is alive
/// (`survival_permille`) is the mean, weighted by samples.
#[must_use]
pub(crate) fn stacks_in_focus(stacks: &[Stack], focus: &Regex) -> Vec<Stack> {
    let mut merged: Vec<Stack> = Vec::new();
    let mut index: HashMap<(Vec<String>, String), usize> = HashMap::new();
    for stack in stacks {
        let Some(entry) = stack.frames.iter().rposition(|f| focus.is_match(f)) else {
            continue;
        };
        let mut cut = stack.clone();
        cut.frames.truncate(entry + 1);
        match index.get(&(cut.frames.clone(), cut.class.clone())) {
            Some(&at) => add(&mut merged[at], cut),
            None => {
                index.insert((cut.frames.clone(), cut.class.clone()), merged.len());
                merged.push(cut);
            }
        }
    }
    merged.sort_by(|a, b| {
        let order = b.estimated_bytes.cmp(&a.estimated_bytes);
        order.then_with(|| (&a.frames, &a.class).cmp(&(&b.frames, &b.class)))
    });
    merged
}

fn add(sum: &mut Stack, other: Stack) {
    let bytes = sum.estimated_bytes.saturating_add(other.estimated_bytes);
    let half = |s: &Stack, side: usize| s.ci95[side].abs_diff(s.estimated_bytes);
    let low = root_of_square_sum(half(sum, 0), half(&other, 0));
    let high = root_of_square_sum(half(sum, 1), half(&other, 1));
    sum.ci95 = [bytes.saturating_sub(low), bytes.saturating_add(high)];
    sum.estimated_bytes = bytes;
    sum.estimated_objects = sum
        .estimated_objects
        .saturating_add(other.estimated_objects);
    let weighed = |s: &Stack| u128::from(s.survival_permille) * u128::from(s.samples);
    let samples = u128::from(sum.samples) + u128::from(other.samples);
    let survival = (weighed(sum) + weighed(&other)).checked_div(samples);
    sum.survival_permille = survival.and_then(|s| u64::try_from(s).ok()).unwrap_or(1000);
    sum.survival_known &= other.survival_known;
    sum.samples = sum.samples.saturating_add(other.samples);
    let probabilities = sum.probability_permille.zip(other.probability_permille);
    if let Some((own, more)) = probabilities {
        sum.probability_permille = Some(own.saturating_add(more).min(1000));
        // The sentence in `evidence` is about the samples of one stack. It would be wrong for the sum of two stacks.
        sum.evidence = None;
    }
    for thread in other.threads {
        if !sum.threads.contains(&thread) {
            sum.threads.push(thread);
        }
    }
}

fn root_of_square_sum(a: u64, b: u64) -> u64 {
    let square = |n: u64| u128::from(n) * u128::from(n);
    let root = square(a).saturating_add(square(b)).isqrt();
    u64::try_from(root).unwrap_or(u64::MAX)
}

/// Replaces `;` in a name, because it separates the frames of a collapsed stack.
pub(crate) fn collapsible(name: &str) -> Cow<'_, str> {
    if name.contains(';') {
        name.replace(';', ":").into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{allocated, stack};

    #[test]
    fn stacks_begin_at_the_focus() {
        let all = allocated(&[
            (
                "a.Main.main(M.java:1) x.Web.get(W.java:2) a.Foo.add(F.java:3)",
                "X",
                [1, 5],
            ),
            (
                "a.Main.main(M.java:9) x.Web.get(W.java:2) a.Foo.add(F.java:4)",
                "X",
                [0, 7],
            ),
            ("java.lang.Thread.run", "Y", [3, 3]),
        ]);
        let shown = |focus: Option<&str>, names| -> Vec<(String, i64)> {
            let focus = focus.map(|f| Regex::new(f).unwrap());
            let stacks = Stacks::new(&all, focus.as_ref(), names);
            let text = |l: &StackLine| {
                let frames: Vec<&str> = l.frames.iter().map(|&f| stacks.name(f)).collect();
                (frames.join(" ") + " " + stacks.class(l), l.growth())
            };
            stacks.lines.iter().map(text).collect()
        };
        assert_eq!(
            shown(None, Names::Functions),
            [
                ("a.Main.main x.Web.get a.Foo.add X".to_owned(), 11),
                ("java.lang.Thread.run Y".to_owned(), 0),
            ]
        );
        assert_eq!(
            shown(Some(r"^x\."), Names::Functions),
            [("x.Web.get a.Foo.add X".to_owned(), 11)]
        );
        assert_eq!(shown(Some("Foo"), Names::Frames).len(), 2);
        assert_eq!(shown(Some("nowhere"), Names::Frames), []);
    }

    #[test]
    fn stacks_are_shown_from_either_end() {
        let all = allocated(&[
            ("a b", "X", [0, 5]),
            ("c b", "X", [0, 7]),
            ("a", "Y", [0, 1]),
        ]);
        let told = |stacks: &Stacks| -> Vec<String> {
            let text = |l: &StackLine| {
                let steps: Vec<&str> = stacks.steps(l).map(|s| stacks.text(s)).collect();
                steps.join(" ")
            };
            stacks.lines.iter().map(text).collect()
        };
        let stacks = Stacks::new(&all, None, Names::Functions);
        assert_eq!(told(&stacks), ["a Y", "a b X", "c b X"]);
        assert_eq!(told(&stacks.reversed()), ["X b a", "X b c", "Y a"]);
    }

    #[test]
    fn a_suspects_stacks_are_merged_in_focus() {
        let one = stack("x.A.a q.B.b q.C.c", 100, 30);
        let two = stack("x.A.a q.B.b q.D.d", 50, 40);
        let cut = stacks_in_focus(&[one, two, stack("y", 9, 9)], &Regex::new("^q").unwrap());
        assert_eq!(cut.len(), 2, "the entry is the root-most match: {cut:#?}");
        let re = Regex::new("^q").unwrap();
        let both = [
            stack("x.A.a q.B.b c.C.c", 100, 30),
            stack("y q.B.b c.C.c", 50, 40),
        ];
        let cut = stacks_in_focus(&both, &re);
        assert_eq!(cut.len(), 1, "callers do not matter: {cut:#?}");
        assert_eq!((cut[0].estimated_bytes, cut[0].ci95), (150, [100, 200]));
        assert_eq!(cut[0].frames, ["c.C.c", "q.B.b"]);
    }
}
