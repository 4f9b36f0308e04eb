//! Collections that are filled on one side and should be emptied on another.

use super::{Finding, more};
use crate::evidence::bounds;
use crate::evidence::context::SuspectContext;
use crate::names;
use crate::trie::StepId;

/// Listeners that were added and never removed.
pub(super) fn listener(context: &SuspectContext<'_>) -> Option<Finding> {
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
    let field = context.own_field()?;
    let name = context.via(field);
    let is_listener = |class: &str| has_word(class.rsplit(['.', '$']).next().unwrap_or(class));
    let holds = has_word(name.rsplit('.').next().unwrap_or(name));
    let class = context.class(context.candidate.named);
    // What keeps listeners for the application is declared to, such as an array of listeners.
    let below = context.steps.iter().skip_while(|&&s| s != field).skip(1);
    let mut kept_as = below.map(|&s| context.via(s));
    let mut is_kept = || kept_as.any(|via| is_listener(declaring(via)));
    if context.candidate.in_place || !(holds || is_listener(class) || is_kept()) {
        return None;
    }
    let (first, last) = more(context, context.candidate.named)?;
    let what = match context.is_alone() {
        true => "listeners that wait to be called",
        false => "listeners that are added and not removed",
    };
    let sentence = format!(
        "{what}: {name} holds {}",
        context.changed(first, last, &format!("of class {class}"))
    );
    Some(Finding::new("listener", sentence))
}

/// The class that declares a field, or the class of an array's elements.
fn declaring(via: &str) -> &str {
    via.strip_suffix("[*]")
        .or_else(|| via.rsplit_once('.').map(|(class, _)| class))
        .unwrap_or(via)
}

/// Queues that fill faster than they are drained.
pub(super) fn queue(context: &SuspectContext<'_>) -> Option<Finding> {
    let work = context.held_via(|v| v == "java.util.concurrent.ThreadPoolExecutor.workQueue");
    let steps = context.trie().path(context.candidate.at);
    let mut near = steps.into_iter().rev();
    // What an element of a queue holds is not in the queue.
    let queue = work
        .or_else(|| near.find(|&s| is_queue(context, s)))
        .filter(|&queue| bounds::is_own(context, queue))?;
    let (first, last) = more(context, context.candidate.named)?;
    let what = match (work, context.is_alone()) {
        (Some(_), false) => "tasks wait for a thread of the pool: more are submitted than are run",
        (None, false) => "a queue: more elements enter than are taken out",
        (Some(_), true) => "tasks wait for a thread of the pool",
        (None, true) => "elements of a queue wait to be taken out",
    };
    let sentence = format!(
        "{what} ({})",
        context.changed(first, last, &format!("in a {}", context.class(queue)))
    );
    Some(Finding::new("queue", sentence))
}

/// Whether a class is a queue: by what it extends, or by its name and its shape. A name alone shows nothing, and
/// lists have two ends as well.
fn is_queue(context: &SuspectContext<'_>, step: StepId) -> bool {
    let class = context.class(step);
    if names::is_runtime_name(class) {
        // The concurrent ones are queues. The others serve as stacks and lists as well, so their field's name decides.
        let is_shared = class.starts_with("java.util.concurrent.")
            && (class.ends_with("Queue") || class.ends_with("Deque"));
        let is_list = [
            "java.util.ArrayDeque",
            "java.util.LinkedList",
            "java.util.PriorityQueue",
        ];
        return is_shared || is_list.contains(&class) && is_called_queue(context.via(step));
    }
    let extends = || {
        const KINDS: [&str; 3] = [
            "java.util.AbstractQueue",
            "java.util.ArrayDeque",
            "java.util.concurrent.ConcurrentLinkedDeque",
        ];
        KINDS.iter().any(|kind| context.is_kind(step, kind))
    };
    let is_called = class.ends_with("Queue") || is_called_queue(context.via(step));
    !class.ends_with("[]") && (extends() || is_called && has_two_ends(context, step))
}

fn is_called_queue(field: &str) -> bool {
    const WORDS: [&str; 5] = ["queue", "backlog", "inbox", "outbox", "mailbox"];
    let field = field.rsplit('.').next().unwrap_or(field);
    let field = field.to_ascii_lowercase();
    WORDS.iter().any(|w| field.contains(w))
}

/// Whether a class has a field for each end, as linked queues have, and both refer to nodes of one class.
fn has_two_ends(context: &SuspectContext<'_>, step: StepId) -> bool {
    const ENDS: [(&str, &str); 3] = [("head", "tail"), ("first", "last"), ("front", "rear")];
    let Some(&one) = context.trie()[step].samples.first() else {
        return false;
    };
    let node = |name: &str| {
        let end = context.field(&[one], name).first().copied().flatten()?;
        context.snapshot.class_of(end)
    };
    ENDS.iter()
        .any(|(a, b)| node(a).is_some_and(|class| node(b) == Some(class)))
}
