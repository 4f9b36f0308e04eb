//! Incomplete instances of `CompletableFuture`, with the functions that wait for them.

use std::collections::{BTreeSet, HashMap};

use hprof::answers::Value;
use hprof::{ObjectIndex, Snapshot};

use super::{Groups, LINES, PendingKind, class_name, instances};

const ALL_OF: &str = "allOf";
/// Pairs of a completion's class and the method that creates the completion.
const METHODS: [(&str, &str); 18] = [
    ("UniApply", "thenApply"),
    ("UniAccept", "thenAccept"),
    ("UniRun", "thenRun"),
    ("UniCompose", "thenCompose"),
    ("UniHandle", "handle"),
    ("UniWhenComplete", "whenComplete"),
    ("UniExceptionally", "exceptionally"),
    ("UniComposeExceptionally", "exceptionallyCompose"),
    ("BiApply", "thenCombine"),
    ("BiAccept", "thenAcceptBoth"),
    ("BiRun", "runAfterBoth"),
    ("BiRelay", ALL_OF),
    ("OrApply", "applyToEither"),
    ("OrAccept", "acceptEither"),
    ("OrRun", "runAfterEither"),
    ("AnyOf", "anyOf"),
    ("UniRelay", "copy"),
    ("Signaller", "a thread waits"),
];

/// A function that waits for a future.
struct Completion {
    /// The next completion that waits for the same future.
    next: Option<ObjectIndex>,
    /// The future that this completion completes.
    dependent: Option<ObjectIndex>,
    /// The name of the method, and of the class of the function.
    name: String,
}

pub(super) fn add(snapshot: &Snapshot, groups: &mut Groups) {
    let futures = instances(snapshot, "java.util.concurrent.CompletableFuture");
    let values = snapshot.field_values(&futures, ["result", "stack"]);
    let mut waiting: HashMap<ObjectIndex, ObjectIndex> = HashMap::new();
    for (future, values) in futures.into_iter().zip(values) {
        if let Some([Some(Value::Object(id, _)), Some(stack)]) = values
            && id.is_null()
            && let Some(stack) = stack.object()
        {
            waiting.insert(future, stack);
        }
    }
    if waiting.is_empty() {
        return;
    }
    let completions = completions(snapshot);
    let dependents: BTreeSet<ObjectIndex> =
        completions.values().filter_map(|c| c.dependent).collect();
    let mut sources: Vec<ObjectIndex> = waiting
        .keys()
        .filter(|future| !dependents.contains(future))
        .copied()
        .collect();
    sources.sort_unstable();
    for source in sources {
        let shape = shape(snapshot, &waiting, &completions, source);
        groups.add(PendingKind::Futures, shape, source);
    }
}

fn completions(snapshot: &Snapshot) -> HashMap<ObjectIndex, Completion> {
    let all = instances(
        snapshot,
        "java.util.concurrent.CompletableFuture$Completion",
    );
    let values = snapshot.field_values(&all, ["next", "dep", "fn", "base"]);
    let mut bases: Vec<(ObjectIndex, ObjectIndex)> = Vec::new();
    let completion = |(object, values): (ObjectIndex, Option<[Option<Value>; 4]>)| {
        let object_of = |value: Option<Value>| value.and_then(Value::object);
        let [next, dependent, function, base] = values?.map(object_of);
        bases.extend(base.map(|base| (object, base)));
        let class = class_name(snapshot, object);
        let short = class.rsplit('$').next().unwrap_or(&class);
        let method = METHODS.iter().find(|(name, _)| *name == short);
        let method = method.map_or(short, |(_, method)| method);
        let name = match function {
            Some(function) => format!("{method} {}", class_name(snapshot, function)),
            None => method.to_owned(),
        };
        let completion = Completion {
            next,
            dependent,
            name,
        };
        Some((object, completion))
    };
    let mut completions: HashMap<ObjectIndex, Completion> =
        all.into_iter().zip(values).filter_map(completion).collect();
    // If a function waits for two futures, the JDK adds the function's completion to the first future. It adds a
    // `CoCompletion` to the second future. The field `base` of the `CoCompletion` refers to the completion. Copy the
    // data of the completion to the `CoCompletion`.
    for (second, base) in bases {
        let base = completions
            .get(&base)
            .map(|b| (b.dependent, b.name.clone()));
        if let (Some((dependent, name)), Some(second)) = (base, completions.get_mut(&second)) {
            (second.dependent, second.name) = (dependent, name);
        }
    }
    completions
}

/// The object from which [`shape`] reached a `Completion` (a function that waits for a future).
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// Another completion that waits for the same future.
    Sibling,
    /// A future that `allOf` completes.
    AllOf,
    /// Another future.
    Future,
}

/// Returns the class of a future, and the completions that depend on it, directly or through other futures. Branches
/// are indented by their depth. If several completions wait for the same future, all but the first are marked with
/// `also`.
///
/// The JDK represents one call of `allOf` as a tree of completions. Directly nested completions of `allOf` have one
/// line.
fn shape(
    snapshot: &Snapshot,
    waiting: &HashMap<ObjectIndex, ObjectIndex>,
    completions: &HashMap<ObjectIndex, Completion>,
    source: ObjectIndex,
) -> Vec<String> {
    let mut lines = vec![class_name(snapshot, source)];
    let mut seen = BTreeSet::from([source]);
    let mut stack: Vec<(ObjectIndex, usize, After)> = Vec::new();
    stack.extend(waiting.get(&source).map(|first| (*first, 0, After::Future)));
    while let Some((at, depth, after)) = stack.pop() {
        let Some(completion) = completions.get(&at).filter(|_| lines.len() <= LINES) else {
            continue;
        };
        if !seen.insert(at) {
            continue;
        }
        stack.extend(completion.next.map(|next| (next, depth, After::Sibling)));
        let has_siblings = after == After::Sibling || completion.next.is_some();
        let is_all = completion.name == ALL_OF;
        let is_nested = is_all && after == After::AllOf && !has_siblings;
        // Only a branch is indented, so that long chains stay readable.
        let below = depth + usize::from(!is_nested && (has_siblings || depth > 0));
        if !is_nested {
            lines.push(format!(
                "{:width$}{}{}",
                "",
                match after {
                    After::Sibling => "also ",
                    After::AllOf | After::Future => "",
                },
                completion.name,
                width = 2 * depth.min(10)
            ));
        }
        let next = completion
            .dependent
            .filter(|dependent| seen.insert(*dependent));
        let after = if is_all { After::AllOf } else { After::Future };
        let first = next.and_then(|next| waiting.get(&next));
        stack.extend(first.map(|first| (*first, below, after)));
    }
    lines
}
