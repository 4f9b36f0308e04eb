//! Detects collections that one part of a program fills and another part should empty.

use super::{Finding, counted, more};
use heapdiff_sites::packages::is_jdk;

use crate::evidence::bounds;
use crate::evidence::context::SuspectContext;
use crate::names;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// Words in the names of objects that a program registers to be called back.
const LISTENERS: [&str; 6] = [
    "listener",
    "observer",
    "subscriber",
    "callback",
    "watcher",
    "hook",
];

/// Detects listeners that were added and never removed.
pub(super) fn listener(context: &SuspectContext<'_>) -> Option<Finding> {
    let field = context.application_field_step()?;
    let name = context.via(field);
    let is_listener = |class: &str| {
        let class = class.rsplit(['.', '$']).next().unwrap_or(class);
        let class = class.to_ascii_lowercase();
        LISTENERS.iter().any(|w| class.contains(w))
    };
    let class = context.class(context.candidate.named);
    let holds = has_listener_name(name.rsplit('.').next().unwrap_or(name)) && !is_value(class);
    // If the field is not named after listeners, look for such a name below the field on the path, for example the
    // class of an array's elements.
    let below = context.steps.iter().skip_while(|&&s| s != field).skip(1);
    let mut kept_as = below.map(|&s| context.via(s));
    let mut is_kept = || kept_as.any(|via| is_listener(declaring(via)));
    if context.candidate.in_place || !(holds || is_listener(class) || is_kept()) {
        return None;
    }
    let (first, last) = more(context, context.candidate.named)?;
    let sentence = Evidence::Listeners {
        field: name.to_owned(),
        listeners: context.changed(first, last, format!("of class {class}")),
    };
    Some(Finding::new("listener", sentence))
}

/// True if the name of a field ends with a word for listeners ([`LISTENERS`]). Words for collections at the end, such
/// as `list` and `map`, are ignored. The result is true for `listenerList`, and false for `callbackStats`.
fn has_listener_name(field: &str) -> bool {
    const COLLECTIONS: [&str; 8] = [
        "list",
        "set",
        "map",
        "queue",
        "array",
        "table",
        "registry",
        "collection",
    ];
    let words = words(field);
    let said = words.split(|w| w == "by").next().unwrap_or_default();
    let mut said = said.iter().rev();
    let last = said.find(|&w| !COLLECTIONS.contains(&&**w));
    last.is_some_and(|last| {
        let one = last.strip_suffix('s').unwrap_or(last);
        LISTENERS.contains(&one)
    })
}

/// Returns the words of a Java name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphabetic() || was_lower && c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|w| !w.is_empty());
    words
}

/// True if objects of a class are plain values. A value cannot be called back, so it is not a listener.
fn is_value(class: &str) -> bool {
    const VALUES: [&str; 13] = [
        "java.lang.String",
        "java.lang.Boolean",
        "java.lang.Character",
        "java.lang.Byte",
        "java.lang.Short",
        "java.lang.Integer",
        "java.lang.Long",
        "java.lang.Float",
        "java.lang.Double",
        "java.util.Date",
        "java.util.UUID",
        "java.net.URI",
        "java.net.URL",
    ];
    const PACKAGES: [&str; 3] = ["java.math.", "java.time.", "java.util.concurrent.atomic."];
    // An array is also a value if its elements are values or primitives.
    let element = class.trim_end_matches("[]");
    VALUES.contains(&element)
        || PACKAGES.iter().any(|p| element.starts_with(p))
        || names::is_primitive(element)
}

/// Returns the class that declares a field. If the holder is an array, returns the class of its elements.
fn declaring(via: &str) -> &str {
    via.strip_suffix("[*]")
        .or_else(|| via.rsplit_once('.').map(|(class, _)| class))
        .unwrap_or(via)
}

/// Detects queues to which elements are added faster than they are removed.
pub(super) fn queue(context: &SuspectContext<'_>) -> Option<Finding> {
    let work = context.first_via(|v| v == "java.util.concurrent.ThreadPoolExecutor.workQueue");
    let steps = context.trie().path(context.candidate.at);
    let mut near = steps.into_iter().rev();
    // Skip a queue if the growing objects are below one of its elements: then the element grew, not the queue.
    let queue = work
        .or_else(|| near.find(|&s| is_queue(context, s)))
        .filter(|&queue| bounds::grows_by_elements(context, queue))?;
    let (first, last) = more(context, context.candidate.named)?;
    let last = counted(context, queue, last);
    let elements = context.changed(first, last, format!("in a {}", context.class(queue)));
    let sentence = match work {
        Some(_) => Evidence::PoolTasks(elements),
        None => Evidence::Queue(elements),
    };
    Some(Finding::new("queue", sentence))
}

/// True if the objects of a trie node are queues. One of these conditions must be true:
///
/// - The class is, or extends, a queue class of the JDK.
/// - The name of the class, or of the field that holds the queue, is that of a queue, and the class has a field for
///   each end. The name alone is no evidence, and lists also have fields for both ends.
fn is_queue(context: &SuspectContext<'_>, step: StepId) -> bool {
    let class = context.class(step);
    if is_jdk(class) {
        // The concurrent queue classes always serve as queues. Classes such as `ArrayDeque` also serve as stacks and
        // lists. They count as queues only if the field that holds them has the name of a queue.
        let is_shared = class.starts_with("java.util.concurrent.")
            && (class.ends_with("Queue") || class.ends_with("Deque"));
        let is_list = [
            "java.util.ArrayDeque",
            "java.util.LinkedList",
            "java.util.PriorityQueue",
        ];
        return is_shared || is_list.contains(&class) && has_queue_name(context.via(step));
    }
    let extends = || {
        const KINDS: [&str; 3] = [
            "java.util.AbstractQueue",
            "java.util.ArrayDeque",
            "java.util.concurrent.ConcurrentLinkedDeque",
        ];
        KINDS.iter().any(|kind| context.is_kind(step, kind))
    };
    let is_linked = || {
        let linked = context.fact(
            step,
            |_| Some(is_linked_queue(context, step)),
            |facts| Some(facts.is_linked_queue),
        );
        linked.unwrap_or(false)
    };
    !class.ends_with("[]") && (extends() || may_be_linked_queue(context, step) && is_linked())
}

/// True if the name of an application class, or of the field that holds its objects, is that of a queue.
pub(crate) fn may_be_linked_queue(context: &SuspectContext<'_>, step: StepId) -> bool {
    let class = context.class(step);
    !is_jdk(class) && (class.ends_with("Queue") || has_queue_name(context.via(step)))
}

fn has_queue_name(field: &str) -> bool {
    const WORDS: [&str; 5] = ["queue", "backlog", "inbox", "outbox", "mailbox"];
    let field = field.rsplit('.').next().unwrap_or(field);
    let field = field.to_ascii_lowercase();
    WORDS.iter().any(|w| field.contains(w))
}

/// True if a class has a field for each end, as linked queues have, and both fields refer to nodes of the same class.
pub(crate) fn is_linked_queue(context: &SuspectContext<'_>, step: StepId) -> bool {
    const ENDS: [(&str, &str); 3] = [("head", "tail"), ("first", "last"), ("front", "rear")];
    let Some(&one) = context.trie()[step].samples.first() else {
        return false;
    };
    let node = |name: &str| {
        let end = context.field(&[one], name).first().copied().flatten()?;
        context.dump()?.class_of(end)
    };
    ENDS.iter()
        .any(|(a, b)| node(a).is_some_and(|class| node(b) == Some(class)))
}

#[cfg(test)]
mod tests {
    use super::{has_listener_name, is_value};

    #[test]
    fn fields_of_listeners_are_recognized_by_their_last_word() {
        for field in [
            "listeners",
            "hook",
            "SHUTDOWN_HOOKS",
            "propertyObservers",
            "listenerList",
            "callbacksById",
            "_subscribers",
            "watchers2",
        ] {
            assert!(has_listener_name(field), "{field}");
        }
        for field in [
            "callbackStats",
            "observations",
            "listenerCount",
            "hooked",
            "names",
            "list",
            "",
            "statsByCallback",
        ] {
            assert!(!has_listener_name(field), "{field}");
        }
    }

    #[test]
    fn value_classes_are_not_listeners() {
        for class in ["java.lang.String", "byte[]", "java.time.Instant", "int"] {
            assert!(is_value(class), "{class}");
        }
        for class in [
            "com.acme.View",
            "java.lang.Object[]",
            "java.lang.ref.WeakReference",
        ] {
            assert!(!is_value(class), "{class}");
        }
    }
}
