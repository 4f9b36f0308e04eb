//! Growth that threads keep: values of thread locals, and virtual threads that wait.

use std::cmp::Reverse;

use heapdiff_units::grouped;
use hprof::ObjectIndex;

use super::{Finding, more};
use crate::evidence::context::SuspectContext;
use crate::trie::StepId;

/// Threads that a sentence names.
const NAMED: usize = 3;
/// Threads that are looked into, and objects found in them after which no further thread is.
const LOOKED_AT: usize = 1 << 12;
const VISITED: usize = 1 << 18;

/// Values of thread locals, which pooled threads keep between tasks.
pub(super) fn thread_local(context: &SuspectContext<'_>) -> Option<Finding> {
    context
        .of_class(|c| c.starts_with("java.lang.ThreadLocal$ThreadLocalMap"))
        .or_else(|| context.held_via(|v| v.starts_with("java.lang.ThreadLocal$ThreadLocalMap")))?;
    let sentence =
        "values of a ThreadLocal: threads that live on, as those of a pool do, keep them until \
                    ThreadLocal.remove()"
            .to_owned();
    let threads = whose(context).and_then(|whose| kept_by(context, &whose));
    Some(Finding::new("thread-local", sentence).and(threads))
}

/// The threads that hold what grows.
struct Whose {
    /// The one that holds most first.
    threads: Vec<ObjectIndex>,
    /// Whether there are no others.
    are_all: bool,
}

/// The sentence that names the threads; `None` where none has a name.
fn kept_by(context: &SuspectContext<'_>, whose: &Whose) -> Option<String> {
    let of = &whose.threads[..whose.threads.len().min(NAMED)];
    let names: Vec<ObjectIndex> = context.field(of, "name").into_iter().flatten().collect();
    let names = context.snapshot.strings(&names, 100);
    let names: Vec<String> = names.into_iter().flatten().collect();
    told(&names, whose.threads.len(), whose.are_all)
}

/// The sentence for so many threads, some of them by name.
fn told(names: &[String], threads: usize, are_all: bool) -> Option<String> {
    let shown = names.join(", ");
    let count = grouped(threads as u64);
    match (are_all, threads == names.len()) {
        _ if names.is_empty() => None,
        (true, true) => Some(format!("kept by {shown}")),
        (true, false) => Some(format!("kept by {count} threads, among them {shown}")),
        (false, true) => Some(format!("kept by {shown}, and perhaps by more threads")),
        (false, false) => Some(format!(
            "kept by at least {count} threads, among them {shown}"
        )),
    }
}

/// The threads that hold what is named by the way down to it; `None` where no threads are on that way.
fn whose(context: &SuspectContext<'_>) -> Option<Whose> {
    let trie = context.trie();
    let thread = context.of_kind("java.lang.Thread")?;
    let at = |step| context.steps.iter().position(|&s| s == step);
    let first = at(thread)?;
    // There is one step of holders, if a few levels up: what it holds may be too much to be looked at.
    let counted = at(context.candidate.at).unwrap_or(first).max(first);
    let holders = context.steps[counted];
    let known = trie[thread].objects == trie[thread].samples.len() as u64;
    let mut threads = match trie[thread].parent == StepId::ROOT && !known {
        true => context.rooted(context.class_index(thread)),
        false => trie[thread].samples.clone(),
    };
    threads.truncate(LOOKED_AT);
    let (mut seen, mut visited) = (0_u64, 0);
    let mut held: Vec<(u64, ObjectIndex)> = Vec::new();
    for thread in threads {
        if visited >= VISITED {
            break;
        }
        let mut objects = vec![thread];
        let mut bytes = 0;
        for (at, &step) in context.steps.iter().enumerate().skip(first) {
            if at > first {
                objects = context.below(&objects, context.class_index(step));
                visited += objects.len();
            }
            if at == counted {
                seen += objects.len() as u64;
                let retained = objects
                    .iter()
                    .filter_map(|&o| context.snapshot.retained_bytes(o));
                bytes = retained.sum();
            }
        }
        // Another thread local's value may look like this one's holder, and hold nothing of the kind.
        if !objects.is_empty() {
            held.push((bytes, thread));
        }
    }
    held.sort_by_key(|&(bytes, thread)| (Reverse(bytes), thread));
    Some(Whose {
        threads: held.into_iter().map(|h| h.1).collect(),
        are_all: seen == trie[holders].objects && visited < VISITED,
    })
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
    let changed = context.changed(first, last, "threads or stacks");
    let sentence = if context.snapshot.shows_parked_frames() {
        format!(
            "virtual threads that wait: a parked one keeps its stack in the heap, with all that its locals refer \
             to ({changed})"
        )
    } else {
        format!(
            "virtual threads that wait: this dump does not show what the locals of a parked one refer to ({changed})"
        )
    };
    Some(Finding::new("virtual-thread", sentence))
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn threads_are_counted_where_all_are_known() {
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let told = |shown: &[&str], threads, are_all| told(&names(shown), threads, are_all);
        assert_eq!(told(&[], 8, true), None);
        assert_eq!(told(&["a", "b"], 2, true).unwrap(), "kept by a, b");
        let three = ["a", "b", "c"];
        assert_eq!(
            told(&three, 8, true).unwrap(),
            "kept by 8 threads, among them a, b, c"
        );
        // One has no name.
        assert_eq!(
            told(&["a"], 2, true).unwrap(),
            "kept by 2 threads, among them a"
        );
        assert_eq!(
            told(&["a"], 1, false).unwrap(),
            "kept by a, and perhaps by more threads"
        );
        assert_eq!(
            told(&three, 8, false).unwrap(),
            "kept by at least 8 threads, among them a, b, c"
        );
    }
}
