//! Stacks from a source outside of the dumps, such as a recording of the same JVM.

use std::borrow::Cow;
use std::collections::BTreeMap;

use heapdiff_model::diff::{Stack, Suspect};
use hprof::dominators::Node;
use hprof::{ObjectIndex, Snapshot};

use crate::evidence::context::SuspectContext;
use crate::names;
use crate::trie::StepId;

/// Maximum number of a suspect's objects whose content is read.
const MEMBERS: usize = 4096;
/// Number of levels of the dominator tree below a suspect's objects that are read.
const LEVELS: usize = 2;
/// Maximum number of objects to visit below the objects of one suspect.
const VISITS: usize = 1 << 17;
/// The frames of a virtual thread that waits. The thread itself allocates them when it waits, not the code that started
/// the thread.
const STACK_CHUNK: &str = "jdk.internal.vm.StackChunk";
/// Maximum number of lines of a suspect's content.
const LINES: usize = 512;

/// Objects of one class that a suspect's objects dominate, or these objects themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentLine {
    /// Name of the class.
    pub class: String,
    /// Number of elements, for arrays.
    pub length: Option<u32>,
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

/// A source of allocating stacks outside of the dumps.
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
    // Without the content, a recording cannot be joined.
    let Some(content) = content else { return };
    let joined = source.stacks(suspect, &content);
    suspect.stacks = joined.stacks;
    suspect.joined = Some(joined.sentence);
}

/// Returns the suspect's objects and the objects that they dominate, at most [`LEVELS`] levels down, by class and array
/// length. If each object is in an entry of a collection, also returns the other content of the entries. The figures of
/// some objects are extrapolated to all objects of the suspect.
///
/// Cost: at most [`VISITS`] objects of the dominator tree, in memory.
pub(crate) fn content(context: &SuspectContext<'_>, snapshot: &Snapshot) -> Vec<ContentLine> {
    let trie = context.trie();
    let named = context.candidate.named;
    // An entry of a collection can hold a key that the suspect's object also refers to. Only the entry dominates it.
    let entry = trie[named].parent;
    let is_entry = entry != StepId::ROOT
        && entry != context.candidate.at
        && trie[entry].objects.saturating_mul(2) >= trie[named].objects;
    let (top, levels) = if is_entry {
        (entry, 1..=LEVELS + 1)
    } else {
        (named, 0..=LEVELS)
    };
    let members = context.members(top, MEMBERS);
    let tree = snapshot.tree();
    let mut lines: BTreeMap<(String, Option<u32>), (u64, u64)> = BTreeMap::new();
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
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
                    let name = names.entry(class.0).or_insert_with(|| {
                        names::stable(&snapshot.classes()[class].name).into_owned()
                    });
                    let length = snapshot.array_length(object);
                    let line = lines.entry((name.clone(), length)).or_default();
                    line.0 += 1;
                    line.1 += bytes;
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
    lines.retain(|(class, _), _| class != STACK_CHUNK);
    let all = trie[top].objects.max(read);
    let scaled = |figure: u64| {
        let scaled = u128::from(figure) * u128::from(all) / u128::from(read.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    let mut lines: Vec<ContentLine> = lines
        .into_iter()
        .map(|((class, length), (objects, bytes))| ContentLine {
            class,
            length,
            objects: scaled(objects),
            bytes: scaled(bytes),
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines.truncate(LINES);
    lines
}

/// Returns the objects whose immediate dominator is this node of the dominator tree.
fn children(node: Option<Node>, snapshot: &Snapshot) -> impl Iterator<Item = ObjectIndex> + '_ {
    let tree = snapshot.tree();
    node.into_iter().flat_map(move |node| {
        let inner = tree.children(node).filter_map(|n| tree.object(n));
        inner.chain(tree.leaves(node)).take(VISITS)
    })
}
