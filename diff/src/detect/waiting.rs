//! Collections that are filled on one side and should be emptied on another.

use super::Finding;
use crate::case::Case;
use crate::figures::changed;
use crate::names;
use crate::trie::StepId;

/// Listeners that were added and never removed.
pub(super) fn listener(case: &Case<'_>) -> Option<Finding> {
    const WORDS: [&str; 6] = [
        "listener",
        "observer",
        "subscriber",
        "callback",
        "watcher",
        "hook",
    ];
    let has_word = |text: &str| {
        let text = text.to_ascii_lowercase();
        WORDS.iter().any(|w| text.contains(w))
    };
    let field = case.own_field()?;
    let name = case.via(field);
    let is_listener = |class: &str| has_word(class.rsplit(['.', '$']).next().unwrap_or(class));
    let holds = has_word(name.rsplit('.').next().unwrap_or(name));
    let class = case.class(case.candidate.named);
    if case.candidate.in_place || !(holds || is_listener(class)) {
        return None;
    }
    let (first, last) = case.ends(case.candidate.named);
    let sentence = format!(
        "listeners that are added and not removed: {name} holds {}",
        changed(first, last, &format!("of class {class}"))
    );
    Some(Finding::new("listener", sentence))
}

/// Queues that fill faster than they are drained.
pub(super) fn queue(case: &Case<'_>) -> Option<Finding> {
    let work = case.held_via(|v| v == "java.util.concurrent.ThreadPoolExecutor.workQueue");
    let queue = work.or_else(|| {
        let steps = case.trie().path(case.candidate.at);
        let mut near = steps.into_iter().rev();
        near.find(|&s| is_queue(case, s))
    })?;
    let (first, last) = case.ends(case.candidate.named);
    let what = match work {
        Some(_) => {
            "tasks wait for a thread of the pool: they are submitted faster than they are run"
        }
        None => "a queue with a slow consumer: elements enter faster than they are taken out",
    };
    let sentence = format!(
        "{what} ({})",
        changed(first, last, &format!("in a {}", case.class(queue)))
    );
    Some(Finding::new("queue", sentence))
}

/// A class that is a queue by what the runtime says, or by its name.
fn is_queue(case: &Case<'_>, step: StepId) -> bool {
    // `AbstractQueue` is above nearly all; the others are named.
    const OTHERS: [&str; 4] = [
        "java.util.ArrayDeque",
        "java.util.concurrent.ConcurrentLinkedDeque",
        "java.util.concurrent.LinkedBlockingDeque",
        "java.util.concurrent.LinkedTransferQueue",
    ];
    let class = case.class(step);
    if OTHERS.contains(&class) || case.is_kind(step, "java.util.AbstractQueue") {
        return true;
    }
    let own = !names::is_runtime_name(class) && !class.ends_with("[]");
    own && class.ends_with("Queue") || linked_list_as_queue(case, step)
}

/// A linked list in a field that is called a queue.
fn linked_list_as_queue(case: &Case<'_>, step: StepId) -> bool {
    const WORDS: [&str; 5] = ["queue", "pending", "backlog", "inbox", "outbox"];
    let field = case.via(step).to_ascii_lowercase();
    let field = field.rsplit('.').next().unwrap_or_default();
    case.class(step) == "java.util.LinkedList" && WORDS.iter().any(|w| field.contains(w))
}
