//! Stacks from a source outside of the dumps, such as a recording of the same JVM.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use heapdiff_model::diff::{Stack, Suspect};
use heapdiff_sites::packages::is_jdk;
use hprof::dominators::Node;
use hprof::{ClassIndex, ObjectIndex, Snapshot};
use rustc_hash::FxHashMap;

use crate::evidence::context::SuspectContext;
use crate::names;
use crate::trie::StepId;

/// Maximum number of a suspect's objects whose content is read.
const MEMBERS: usize = 4096;
/// Number of levels of the dominator tree below a suspect's objects that are read.
const LEVELS: usize = 2;
/// Maximum number of objects to visit below the objects of one suspect.
const VISITS: usize = 1 << 17;
/// Class of the objects with the frames of a parked virtual thread. They are left out: the thread itself allocates them
/// when it parks, not the code that started the thread.
const STACK_CHUNK: &str = "jdk.internal.vm.StackChunk";
/// Maximum number of lines of a suspect's content.
const LINES: usize = 512;
/// If the arrays of a class have more different lengths than this, the lengths are merged into ranges.
const LENGTHS: usize = 32;
/// If not all objects were read, the lengths of arrays are also merged into ranges if many lengths occur only once:
/// more than one per this number of arrays read. Then the arrays that were not read probably have further lengths (the
/// estimate of Good and Turing).
const SINGLES: u64 = 50;

/// Objects of one class in the content of a suspect: the suspect's objects, or objects that they dominate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentLine {
    /// Name of the class.
    pub class: String,
    /// Numbers of elements, for arrays. If the arrays of a class have many lengths, the range begins at a power of two
    /// and ends before the next one.
    pub lengths: Option<RangeInclusive<u32>>,
    /// Estimated number of objects in the last dump.
    pub objects: u64,
    /// Estimated bytes of these objects.
    pub bytes: u64,
}

/// The stacks that may have allocated a suspect's growth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The stacks, the most probable first.
    pub stacks: Vec<Stack>,
    /// The result in one sentence.
    pub sentence: String,
}

/// A source of the stacks that allocated objects, in addition to the dumps. An example is a recording.
pub trait StackSource {
    /// Returns the stacks that may have allocated the growth of a suspect, or the content of a suspect of one dump.
    /// `content` are the objects that the suspect's objects dominate.
    fn stacks(&self, suspect: &Suspect, content: &[ContentLine]) -> Joined;
}

/// Adds stacks of a recording to a suspect that has none from the agent. The verdict does not change.
pub(crate) fn join(
    source: Option<&dyn StackSource>,
    suspect: &mut Suspect,
    context: &SuspectContext<'_>,
) {
    let Some(source) = source else { return };
    if !suspect.stacks.is_empty() {
        for stack in &mut suspect.stacks {
            stack.source = Some("agent".into());
        }
        return;
    }
    let content = context.fact(
        context.candidate.named,
        |snapshot| Some(Cow::Owned(content(context, snapshot))),
        |facts| Some(Cow::Borrowed(&facts.content.as_ref()?[..])),
    );
    // Without the suspect's content, the stacks of a recording cannot be matched with the suspect.
    let Some(content) = content else { return };
    let joined = source.stacks(suspect, &content);
    suspect.stacks = joined.stacks;
    suspect.joined = Some(joined.sentence);
}

/// Returns the suspect's objects and the objects that they dominate, at most [`LEVELS`] levels down, by class and array
/// length. If entries of a JDK collection hold the suspect's objects, also returns the other content of the entries. If
/// only some objects of the suspect were read, the figures are extrapolated to all objects of the suspect.
///
/// Cost: at most [`VISITS`] objects of the dominator tree, in memory.
pub(crate) fn content(context: &SuspectContext<'_>, snapshot: &Snapshot) -> Vec<ContentLine> {
    let trie = context.trie();
    let named = context.candidate.named;
    // Both a collection's entry and the suspect's object (the value) may refer to the key. Then the suspect's object
    // does not dominate the key, but the entry dominates both. So the search begins at the entries.
    let entry = trie[named].parent;
    let class = context.class(entry);
    let is_entry = entry != StepId::ROOT
        && is_jdk(class)
        && !class.ends_with("[]")
        && trie[entry].objects.saturating_mul(2) >= trie[named].objects;
    let (top, levels) = if is_entry {
        (entry, 1..=LEVELS + 1)
    } else {
        (named, 0..=LEVELS)
    };
    let members = context.members(top, MEMBERS);
    let tree = snapshot.tree();
    let mut found: FxHashMap<(ClassIndex, Option<u32>), Figures> = FxHashMap::default();
    let (mut visits, mut read) = (0, 0_u64);
    for &member in &members {
        let mut level: Vec<ObjectIndex> = vec![member];
        for depth in 0..=*levels.end() {
            let mut next = Vec::new();
            for &object in &level {
                if snapshot.represents(object).is_some() {
                    continue;
                }
                visits += 1;
                if levels.contains(&depth)
                    && let (Some(class), bytes) = snapshot.class_and_size(object)
                {
                    let figures = found.entry((class, snapshot.array_length(object)));
                    figures.or_default().add([1, bytes]);
                }
                if depth < *levels.end() && visits + next.len() < VISITS {
                    next.extend(children(tree.node(object), snapshot));
                }
            }
            level = next;
        }
        read += 1;
        if visits >= VISITS {
            break;
        }
    }
    let all = trie[top].objects.max(read);
    let mut by_class: BTreeMap<String, BTreeMap<Option<u32>, Figures>> = BTreeMap::new();
    for ((class, length), figures) in found {
        let name = names::stable(&snapshot.classes()[class].name);
        let lengths = by_class.entry(name.into_owned()).or_default();
        lengths.entry(length).or_default().add(figures.0);
    }
    by_class.remove(STACK_CHUNK);
    let mut lines = Vec::new();
    for (class, lengths) in by_class {
        let is_complete = read == all && visits < VISITS;
        lines.extend(of_class(&class, &lengths, is_complete));
    }
    for line in &mut lines {
        for figure in [&mut line.objects, &mut line.bytes] {
            let scaled = u128::from(*figure) * u128::from(all) / u128::from(read.max(1));
            *figure = u64::try_from(scaled).unwrap_or(u64::MAX);
        }
    }
    lines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
    lines.truncate(LINES);
    lines
}

/// Number of objects, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Figures([u64; 2]);

impl Figures {
    const fn add(&mut self, [objects, bytes]: [u64; 2]) {
        self.0[0] += objects;
        self.0[1] += bytes;
    }
}

/// Returns the [`ContentLine`]s of a class. An array class has one line for each array length, or one for each power of
/// two. `is_complete` means that all objects were read.
fn of_class(
    class: &str,
    lengths: &BTreeMap<Option<u32>, Figures>,
    is_complete: bool,
) -> Vec<ContentLine> {
    let all: u64 = lengths.values().map(|figures| figures.0[0]).sum();
    let singles = lengths.values().filter(|figures| figures.0[0] == 1).count() as u64;
    let are_merged = lengths.len() > LENGTHS || (!is_complete && singles * SINGLES > all);
    let mut lines: BTreeMap<Option<(u32, u32)>, Figures> = BTreeMap::new();
    for (&length, figures) in lengths {
        let range = length.map(|length| match length.checked_ilog2() {
            Some(power) if are_merged => (1 << power, u32::MAX >> (31 - power)),
            _ => (length, length),
        });
        lines.entry(range).or_default().add(figures.0);
    }
    let lines = lines.into_iter();
    lines
        .map(|(range, Figures([objects, bytes]))| ContentLine {
            class: class.to_owned(),
            lengths: range.map(|(from, to)| from..=to),
            objects,
            bytes,
        })
        .collect()
}

/// Returns the objects whose immediate dominator is this node of the dominator tree.
fn children(node: Option<Node>, snapshot: &Snapshot) -> impl Iterator<Item = ObjectIndex> + '_ {
    let tree = snapshot.tree();
    node.into_iter().flat_map(move |node| {
        let inner = tree.children(node).filter_map(|n| tree.object(n));
        inner.chain(tree.leaves(node)).take(VISITS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(of: &[(u32, u64)], is_complete: bool) -> Vec<RangeInclusive<u32>> {
        let figures = of
            .iter()
            .map(|&(length, objects)| (Some(length), Figures([objects, 0])));
        let lines = of_class("byte[]", &figures.collect(), is_complete);
        lines.into_iter().filter_map(|line| line.lengths).collect()
    }

    #[test]
    fn a_few_lengths_are_kept() {
        assert_eq!(lengths(&[(5, 60), (40, 1)], true), [5..=5, 40..=40]);
        assert_eq!(lengths(&[(5, 60), (40, 1)], false), [5..=5, 40..=40]);
    }

    #[test]
    fn lengths_that_occur_once_show_that_others_were_not_read() {
        assert_eq!(lengths(&[(5, 1), (40, 9)], true), [5..=5, 40..=40]);
        assert_eq!(
            lengths(&[(0, 3), (5, 1), (7, 2), (40, 9)], false),
            [0..=0, 4..=7, 32..=63]
        );
    }

    #[test]
    fn many_lengths_are_merged_by_powers_of_two() {
        let many: Vec<(u32, u64)> = (100..200).map(|length| (length, 50)).collect();
        assert_eq!(lengths(&many, true), [64..=127, 128..=255]);
        let mut many = many;
        many.push((u32::MAX, 1));
        assert_eq!(lengths(&many, true).last(), Some(&((1 << 31)..=u32::MAX)));
    }
}
