//! Growth that threads keep: values of thread locals, and virtual threads that wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use heapdiff_units::grouped;
use hprof::ObjectIndex;

use super::{Finding, more};
use crate::evidence::context::SuspectContext;
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
    // A step keeps a few of its objects, so the threads that were found may not be all.
    let count = context
        .of_kind("java.lang.Thread")
        .map(|step| context.trie()[step].objects);
    let threads = kept_by(&shown, threads.len() as u64, count);
    Some(Finding::new("thread-local", sentence).and(threads))
}

/// The sentence that names the threads: `found` ones, of `all` that are known to hold some.
fn kept_by(shown: &str, found: u64, all: Option<u64>) -> Option<String> {
    let few = found <= NAMED as u64;
    match (found, all) {
        (0, _) => None,
        (found, Some(all)) if all <= found && few => Some(format!("kept by {shown}")),
        (found, Some(all)) => Some(format!(
            "kept by {} threads, the most by {shown}",
            grouped(all.max(found))
        )),
        (_, None) if few => Some(format!("kept by {shown}")),
        (_, None) => Some(format!("kept by several threads, among them {shown}")),
    }
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
    let (first, last) = more(context, step)?;
    let sentence = format!(
        "virtual threads that wait: a parked one keeps its stack in the heap, with all that its locals refer \
         to ({})",
        context.changed(first, last, "threads or stacks")
    );
    Some(Finding::new("virtual-thread", sentence))
}

#[cfg(test)]
mod tests {
    use super::kept_by;

    #[test]
    fn threads_are_counted_by_what_is_known_of_all() {
        assert_eq!(kept_by("", 0, Some(8)), None);
        assert_eq!(kept_by("a, b", 2, Some(2)).unwrap(), "kept by a, b");
        // Four examples of eight are no count.
        assert_eq!(
            kept_by("a, b, c", 4, Some(8)).unwrap(),
            "kept by 8 threads, the most by a, b, c"
        );
        assert_eq!(kept_by("a", 1, None).unwrap(), "kept by a");
        assert_eq!(
            kept_by("a, b, c", 9, None).unwrap(),
            "kept by several threads, among them a, b, c"
        );
    }
}
