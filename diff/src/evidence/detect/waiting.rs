//! Collections that are filled on one side and should be emptied on another.

use super::Finding;
use crate::evidence::context::SuspectContext;
use crate::evidence::phrases::changed;
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
    if context.candidate.in_place || !(holds || is_listener(class)) {
        return None;
    }
    let (first, last) = context.ends(context.candidate.named);
    let sentence = format!(
        "listeners that are added and not removed: {name} holds {}",
        changed(first, last, &format!("of class {class}"))
    );
    Some(Finding::new("listener", sentence))
}

/// Queues that fill faster than they are drained.
pub(super) fn queue(context: &SuspectContext<'_>) -> Option<Finding> {
    let work = context.held_via(|v| v == "java.util.concurrent.ThreadPoolExecutor.workQueue");
    let queue = work.or_else(|| {
        let steps = context.trie().path(context.candidate.at);
        let mut near = steps.into_iter().rev();
        near.find(|&s| is_queue(context, s))
    })?;
    let (first, last) = context.ends(context.candidate.named);
    let what = match work {
        Some(_) => {
            "tasks wait for a thread of the pool: they are submitted faster than they are run"
        }
        None => "a queue with a slow consumer: elements enter faster than they are taken out",
    };
    let sentence = format!(
        "{what} ({})",
        changed(first, last, &format!("in a {}", context.class(queue)))
    );
    Some(Finding::new("queue", sentence))
}

/// Whether a class is a queue: one of the runtime's, or by its name or its shape.
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
    !class.ends_with("[]") && (class.ends_with("Queue") || has_two_ends(context, step))
}

fn is_called_queue(field: &str) -> bool {
    const WORDS: [&str; 5] = ["queue", "backlog", "inbox", "outbox", "mailbox"];
    let field = field.rsplit('.').next().unwrap_or(field);
    let field = field.to_ascii_lowercase();
    WORDS.iter().any(|w| field.contains(w))
}

/// Whether a class has a field for each end, as linked queues have.
fn has_two_ends(context: &SuspectContext<'_>, step: StepId) -> bool {
    const ENDS: [(&str, &str); 3] = [("head", "tail"), ("first", "last"), ("front", "rear")];
    let Some(class) = context.class_index(step) else {
        return false;
    };
    let fields = &context.snapshot.classes()[class].fields;
    let has = |name: &str| fields.iter().any(|f| &*f.name == name);
    ENDS.iter().any(|(a, b)| has(a) && has(b))
}
