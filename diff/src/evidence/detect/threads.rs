//! Growth that threads keep: values of thread locals, and virtual threads that wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use heapdiff_units::grouped;
use hprof::ObjectIndex;

use super::Finding;
use crate::evidence::context::SuspectContext;
use crate::evidence::phrases::changed;
use crate::trie::StepId;

/// Threads that a sentence names.
const NAMED: usize = 3;
/// Objects whose thread is looked for, and dominators that are visited above each.
const LOOKED_AT: usize = 1 << 12;
const DEPTH: usize = 64;

/// Values of thread locals, which pooled threads keep between tasks.
pub(super) fn thread_local(context: &SuspectContext<'_>) -> Option<Finding> {
    context
        .of_class(|c| c.starts_with("java.lang.ThreadLocal$ThreadLocalMap"))
        .or_else(|| context.held_via(|v| v.starts_with("java.lang.ThreadLocal$ThreadLocalMap")))?;
    let sentence =
        "values of a ThreadLocal: threads that live on, as those of a pool do, keep them until \
                    ThreadLocal.remove()"
            .to_owned();
    let threads = whose(context);
    let names = context.field(&threads, "name").into_iter().flatten();
    let names: Vec<ObjectIndex> = names.take(NAMED).collect();
    let names = context.snapshot.strings(&names, 100);
    let shown: Vec<String> = names.into_iter().flatten().collect();
    let shown = shown.join(", ");
    let threads = match threads.len() {
        0 => None,
        1..=NAMED => Some(format!("kept by {shown}")),
        n => Some(format!(
            "kept by {} threads, the most by {shown}",
            grouped(n as u64)
        )),
    };
    Some(Finding::new("thread-local", sentence).and(threads))
}

/// The threads that dominate the growth, the one that holds most first.
fn whose(context: &SuspectContext<'_>) -> Vec<ObjectIndex> {
    let tree = context.snapshot.tree();
    let classes = context.snapshot.classes();
    let Some(&thread) = classes.by_name("java.lang.Thread").first() else {
        return Vec::new();
    };
    let is_thread = |o: &ObjectIndex| {
        let class = context.snapshot.class_of(*o);
        class.is_some_and(|c| classes.is_subclass(c, thread))
    };
    let mut held: BTreeMap<ObjectIndex, u64> = BTreeMap::new();
    let at = match context.candidate.at {
        StepId::ROOT => context.candidate.content[0],
        at => at,
    };
    for member in context.members(at, LOOKED_AT) {
        let up = |&o: &ObjectIndex| tree.dominator(o).and_then(|d| tree.object(d));
        let found = std::iter::successors(Some(member), up)
            .take(DEPTH)
            .find(is_thread);
        if let Some(thread) = found {
            *held.entry(thread).or_default() +=
                context.snapshot.retained_bytes(member).unwrap_or(0);
        }
    }
    let mut threads: Vec<(u64, ObjectIndex)> = held.into_iter().map(|(t, b)| (b, t)).collect();
    threads.sort_by_key(|&(bytes, thread)| (Reverse(bytes), thread));
    threads.into_iter().map(|t| t.1).collect()
}

/// Virtual threads, or the stacks that they leave in the heap while they are parked.
pub(super) fn virtual_thread(context: &SuspectContext<'_>) -> Option<Finding> {
    let is_stack = |class: &str| {
        class == "jdk.internal.vm.StackChunk" || class == "jdk.internal.vm.Continuation"
    };
    let step = context
        .of_class(|c| c == "java.lang.VirtualThread" || is_stack(c))
        .or_else(|| context.of_kind("java.lang.VirtualThread"))?;
    let (first, last) = context.ends(step);
    if last <= first {
        return None;
    }
    let sentence = format!(
        "virtual threads that wait: a parked one keeps its stack in the heap, with all that its locals refer \
         to ({})",
        changed(first, last, "threads or stacks")
    );
    Some(Finding::new("virtual-thread", sentence))
}
