//! Detects growth that threads hold: values of thread locals, and stacks of waiting virtual threads.

use std::cmp::Reverse;

use hprof::ObjectIndex;

use super::{Finding, more};
use crate::evidence::context::{Last, SuspectContext};
use crate::sentence::Evidence;
use crate::trie::StepId;

/// Maximum number of threads to name in a sentence.
const NAMED: usize = 3;
/// Maximum number of threads to inspect, and maximum number of growing objects to find in them. The search ends when
/// one of the two is reached.
const LOOKED_AT: usize = 1 << 12;
const VISITED: usize = 1 << 18;

/// Detects values of thread locals that stay in pooled threads after a task has ended.
pub(super) fn thread_local(context: &SuspectContext<'_>) -> Option<Finding> {
    context
        .of_class(|c| c.starts_with("java.lang.ThreadLocal$ThreadLocalMap"))
        .or_else(|| context.first_via(|v| v.starts_with("java.lang.ThreadLocal$ThreadLocalMap")))?;
    let threads = threads_on_path(context).and_then(|whose| threads_sentence(context, &whose));
    Some(Finding::new("thread-local", Evidence::ThreadLocal).with_evidence(threads))
}

/// The threads that hold the growing objects.
struct Whose {
    /// The threads, sorted by the bytes that they hold on the path to the growing objects, descending.
    threads: Vec<ObjectIndex>,
    /// True if no other threads hold growing objects.
    are_all: bool,
}

/// Returns the sentence that names the threads; `None` if none has a name.
fn threads_sentence(context: &SuspectContext<'_>, whose: &Whose) -> Option<Evidence> {
    let of = &whose.threads[..whose.threads.len().min(NAMED)];
    let names: Vec<ObjectIndex> = context.field(of, "name").into_iter().flatten().collect();
    let names = context.strings(&names, 100);
    let names: Vec<String> = names.into_iter().flatten().collect();
    (!names.is_empty()).then_some(Evidence::KeptByThreads {
        names,
        threads: whose.threads.len(),
        at_least: !whose.are_all,
    })
}

/// Returns the threads on the path to the objects that the report names. Returns `None` if no thread is on the path.
fn threads_on_path(context: &SuspectContext<'_>) -> Option<Whose> {
    let (trie, snapshot) = (context.trie(), context.dump()?);
    let thread = context.of_kind("java.lang.Thread")?;
    let at = |step| context.steps.iter().position(|&s| s == step);
    let first = at(thread)?;
    // Count the objects that the candidate's holder represents. The report names objects that can be a few levels below
    // the holder. There can be too many of these named objects to visit.
    let counted = at(context.candidate.at).unwrap_or(first).max(first);
    let holders = context.steps[counted];
    let known = trie[thread].objects == trie[thread].samples.len() as u64;
    let mut threads = if trie[thread].parent == StepId::ROOT && !known {
        context.rooted(context.class_index(thread))
    } else {
        trie[thread].samples.clone()
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
                objects = context.dominated_by(&objects, context.class_index(step));
                visited += objects.len();
            }
            if at == counted {
                seen += objects.len() as u64;
                let retained = objects.iter().filter_map(|&o| snapshot.retained_bytes(o));
                bytes = retained.sum();
            }
        }
        // Skip a thread if the path ends before the growing objects. This happens if the value of another thread local
        // has the same class as the holder.
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

/// Detects virtual threads. Also detects the stack data that they keep in the heap while they are parked.
pub(super) fn virtual_thread(context: &SuspectContext<'_>) -> Option<Finding> {
    let is_stack = |class: &str| {
        class == "jdk.internal.vm.StackChunk" || class == "jdk.internal.vm.Continuation"
    };
    let step = context
        .of_class(|c| c == "java.lang.VirtualThread" || is_stack(c))
        .or_else(|| context.of_kind("java.lang.VirtualThread"))?;
    let (first, last) = more(context, step)?;
    let sentence = Evidence::VirtualThreads {
        threads: context.changed(first, last, "threads or stacks"),
        with_locals: match context.last {
            Last::Dump(snapshot) => snapshot.shows_parked_frames(),
            Last::Summary(facts) => facts.shows_parked_frames,
        },
    };
    Some(Finding::new("virtual-thread", sentence))
}
