//! Reasons about memory outside of the heap that grows together with a suspect: stacks of threads, and metaspace of
//! classes.

use hprof::ObjectIndex;

use crate::evidence::context::SuspectContext;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// Maximum number of threads to read for their names and states.
const READ: usize = 64;
/// Maximum number of threads to name in the sentence.
const NAMED: usize = 3;
/// The report on a single dump mentions the threads on the path only if there are at least this number of them.
const PILE: u64 = 8;

/// Returns the sentences about growth outside of the heap.
pub(super) fn reasons(context: &SuspectContext<'_>) -> Vec<Evidence> {
    let mut reasons: Vec<Evidence> = threads(context).into_iter().collect();
    let content = context.candidate.content.first();
    if content.is_some_and(|&step| super::is_class(context.class(step))) {
        reasons.push(Evidence::Metaspace);
    }
    reasons
}

/// Returns the sentence about the platform threads on the path. Returns `None` if their number did not grow.
fn threads(context: &SuspectContext<'_>) -> Option<Evidence> {
    let (step, last) = grown_threads(context)?;
    let some = context.members(step, READ);
    let fields = context.field(&some, "name").into_iter().flatten();
    let names: Vec<ObjectIndex> = fields.take(NAMED).collect();
    let names = context.strings(&names, 60);
    let names: Vec<String> = names.into_iter().flatten().collect();
    let states = states(context, &some);
    // Leave out the states unless they are known for all threads.
    let known: usize = states.iter().map(|(_, count)| count).sum();
    Some(Evidence::ThreadStacks {
        threads: last,
        names,
        states: if known as u64 == last {
            states
        } else {
            Vec::new()
        },
    })
}

/// Returns the trie node of the platform threads on the path, and their number in the last dump. Returns `None` if
/// their number did not grow.
pub(super) fn grown_threads(context: &SuspectContext<'_>) -> Option<(StepId, u64)> {
    let is_thread = |&step: &StepId| {
        context.is_kind(step, "java.lang.Thread")
            && !context.is_kind(step, "java.lang.VirtualThread")
    };
    let contents = context.candidate.content.iter();
    let step = contents.chain(&context.steps).copied().find(is_thread)?;
    let (first, last) = context.ends(step);
    let is_more = if context.is_alone() {
        last >= PILE
    } else {
        last > first
    };
    is_more.then_some((step, last))
}

/// Returns the states and the number of threads in each, the most frequent state first.
fn states(context: &SuspectContext<'_>, threads: &[ObjectIndex]) -> Vec<(&'static str, usize)> {
    // Since JDK 19, the state of a thread is a field of a separate object.
    let holders: Vec<ObjectIndex> = context
        .field(threads, "holder")
        .into_iter()
        .flatten()
        .collect();
    let having = if holders.is_empty() {
        threads
    } else {
        &holders
    };
    let status = context.number(having, "threadStatus").into_iter().flatten();
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for state in status.map(state) {
        match counts.iter_mut().find(|(name, _)| *name == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    counts
}

/// Returns the name of a thread's state, as `Thread.getState` does. The bits are those of JVMTI's `GetThreadState`.
const fn state(status: i64) -> &'static str {
    match status {
        s if s & 0x4 != 0 => "RUNNABLE",
        s if s & 0x400 != 0 => "BLOCKED",
        s if s & 0x10 != 0 => "WAITING",
        s if s & 0x20 != 0 => "TIMED_WAITING",
        s if s & 0x2 != 0 => "TERMINATED",
        s if s & 0x1 == 0 => "NEW",
        _ => "RUNNABLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_states_are_named_as_in_the_jdk() {
        for (status, name) in [
            (0, "NEW"),
            (5, "RUNNABLE"),
            (0x191, "WAITING"),
            (0x1a1, "TIMED_WAITING"),
            (0x401, "BLOCKED"),
            (2, "TERMINATED"),
        ] {
            assert_eq!(state(status), name, "{status:#x}");
        }
    }
}
