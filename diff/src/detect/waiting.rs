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

/// A class that is a queue by what the runtime says, by its name, or by its shape.
fn is_queue(case: &Case<'_>, step: StepId) -> bool {
    let class = case.class(step);
    if names::is_runtime_name(class) {
        // Those that threads share are queues; others serve as stacks and lists as well.
        let is_shared = class.starts_with("java.util.concurrent.")
            && (class.ends_with("Queue") || class.ends_with("Deque"));
        let is_list = [
            "java.util.ArrayDeque",
            "java.util.LinkedList",
            "java.util.PriorityQueue",
        ];
        return is_shared || is_list.contains(&class) && is_called_queue(case.via(step));
    }
    !class.ends_with("[]") && (class.ends_with("Queue") || has_two_ends(case, step))
}

fn is_called_queue(field: &str) -> bool {
    const WORDS: [&str; 5] = ["queue", "backlog", "inbox", "outbox", "mailbox"];
    let field = field.rsplit('.').next().unwrap_or(field);
    let field = field.to_ascii_lowercase();
    WORDS.iter().any(|w| field.contains(w))
}

/// A linked queue of the application's own: one end to put in, one to take out.
fn has_two_ends(case: &Case<'_>, step: StepId) -> bool {
    const ENDS: [(&str, &str); 3] = [("head", "tail"), ("first", "last"), ("front", "rear")];
    let Some(class) = case.class_index(step) else {
        return false;
    };
    let fields = &case.snapshot.classes()[class].fields;
    let has = |name: &str| fields.iter().any(|f| &*f.name == name);
    ENDS.iter().any(|(a, b)| has(a) && has(b))
}
