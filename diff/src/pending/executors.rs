//! Tasks in the queues of executors and timers, by class.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use heapdiff_units::grouped;
use hprof::answers::{Content, Value};
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use super::{Groups, PendingKind, class_name, instances};
use crate::values::{objects, strings};

/// Pairs of a wrapper class and its field that contains the wrapped task: `FutureTask`, its adapters,
/// `CompletableFuture.runAsync`, and the tasks of fork-join pools.
const WRAPPED: [(&str, &str); 8] = [
    ("java.util.concurrent.FutureTask", "callable"),
    ("java.util.concurrent.Executors$RunnableAdapter", "task"),
    ("java.util.concurrent.CompletableFuture$AsyncRun", "fn"),
    ("java.util.concurrent.CompletableFuture$AsyncSupply", "fn"),
    (
        "java.util.concurrent.ForkJoinTask$AdaptedRunnableAction",
        "runnable",
    ),
    (
        "java.util.concurrent.ForkJoinTask$AdaptedRunnable",
        "runnable",
    ),
    (
        "java.util.concurrent.ForkJoinTask$AdaptedCallable",
        "callable",
    ),
    (
        "java.util.concurrent.ForkJoinTask$RunnableExecuteAction",
        "runnable",
    ),
];
/// The value of `TimerTask.state` for a task that was cancelled.
const CANCELLED: i64 = 3;
/// Maximum number of passes that remove wrappers. Each pass removes at least one wrapper around each wrapped task.
const DEPTH: usize = 4;

/// Arrays and nodes of queues that were read before. In a damaged dump, queues may share them, or nodes may form a cycle.
type Seen = HashSet<ObjectIndex>;

/// Tasks of one class, and the queues or fork-join pools in which they wait.
#[derive(Default)]
struct Waiting {
    tasks: Vec<ObjectIndex>,
    queues: BTreeSet<ObjectIndex>,
}

pub(super) fn add(snapshot: &Snapshot, groups: &mut Groups) {
    let pools = instances(snapshot, "java.util.concurrent.ThreadPoolExecutor");
    let names = pool_names(snapshot, &pools);
    // Several pools may have the same queue.
    let mut queues: BTreeMap<ObjectIndex, BTreeSet<String>> = BTreeMap::new();
    for (queue, name) in objects(snapshot, &pools, "workQueue").iter().zip(names) {
        if let Some(queue) = queue {
            queues.entry(*queue).or_default().insert(name);
        }
    }
    // Each task, the queue or fork-join pool that it waits in, and the name of the executors.
    let mut queued: Vec<(ObjectIndex, ObjectIndex, Rc<str>)> = Vec::new();
    let nodes = LinkedNodes::read(snapshot);
    let mut seen = Seen::new();
    for (queue, names) in queues {
        let tasks = nodes
            .items(snapshot, queue, &mut seen)
            .unwrap_or_else(|| in_array(snapshot, queue, &mut seen));
        let names: Vec<String> = names.into_iter().collect();
        let name: Rc<str> = names.join(" and ").into();
        queued.extend(
            tasks
                .into_iter()
                .map(|task| (task, queue, Rc::clone(&name))),
        );
    }
    let pools = instances(snapshot, "java.util.concurrent.ForkJoinPool");
    let prefixes = strings(snapshot, &pools, "workerNamePrefix");
    let names = prefixes
        .into_iter()
        .map(|prefix| Rc::from(prefix.as_deref().unwrap_or("common pool")));
    let arrays = objects(snapshot, &pools, "queues").into_iter();
    for ((queues, name), pool) in arrays.zip(names).zip(&pools) {
        let queues = queues.map_or_else(Vec::new, |queues| elements(snapshot, queues));
        let arrays = objects(snapshot, &queues, "array").into_iter().flatten();
        for array in arrays.filter(|&array| seen.insert(array)) {
            let tasks = elements(snapshot, array).into_iter();
            queued.extend(tasks.map(|task| (task, *pool, Rc::clone(&name))));
        }
    }
    let of_timers = in_timers(snapshot, &mut seen);
    let timer_tasks: Vec<ObjectIndex> = of_timers.iter().map(|(task, ..)| *task).collect();
    let cancelled = cancelled(snapshot, &timer_tasks);
    queued.extend(of_timers);
    let tasks: Vec<ObjectIndex> = queued.iter().map(|(task, ..)| *task).collect();
    let futures = snapshot
        .classes()
        .by_name("java.util.concurrent.FutureTask");
    let mut waiting: BTreeMap<(String, Rc<str>), Waiting> = BTreeMap::new();
    for ((task, queue, pool), inner) in queued.into_iter().zip(unwrapped(snapshot, &tasks)) {
        let mut class = class_name(snapshot, inner);
        // `FutureTask` releases its callable when it is cancelled, so it cannot be unwrapped.
        if is_instance(snapshot, inner, futures) || cancelled.contains(&task) {
            class += " (cancelled)";
        }
        let key = (class, pool);
        let waiting = waiting.entry(key).or_default();
        waiting.tasks.push(task);
        waiting.queues.insert(queue);
    }
    for ((class, pool), waiting) in waiting {
        // Several executors may have threads of the same name, such as `Thread-`.
        let place = match waiting.queues.len() {
            1 => format!("in the queue of {pool}"),
            count => format!("in {} queues of {pool}", grouped(count as u64)),
        };
        for task in waiting.tasks {
            groups.add(PendingKind::Tasks, vec![class.clone(), place.clone()], task);
        }
    }
}

/// Returns the tasks of each `java.util.Timer`, with the queue and the name of the timer's thread.
fn in_timers(snapshot: &Snapshot, seen: &mut Seen) -> Vec<(ObjectIndex, ObjectIndex, Rc<str>)> {
    let timers = instances(snapshot, "java.util.Timer");
    let queues = objects(snapshot, &timers, "queue").into_iter();
    let threads = objects(snapshot, &timers, "thread").into_iter();
    let of_timers = snapshot.classes().by_name("java.util.TaskQueue");
    let mut queued = Vec::new();
    for (queue, thread) in queues.zip(threads) {
        // A subclass of `Timer` may have a field of the same name.
        let queue = queue.filter(|&queue| is_instance(snapshot, queue, of_timers));
        let name = thread.and_then(|thread| thread_name(snapshot, thread));
        let name: Rc<str> = name.as_deref().unwrap_or("a timer").into();
        if let Some(queue) = queue {
            let tasks = in_array(snapshot, queue, seen).into_iter();
            queued.extend(tasks.map(|task| (task, queue, Rc::clone(&name))));
        }
    }
    queued
}

/// Returns those tasks of timers that were cancelled.
fn cancelled(snapshot: &Snapshot, tasks: &[ObjectIndex]) -> BTreeSet<ObjectIndex> {
    let records = snapshot.read_all(tasks).into_iter().zip(tasks);
    let is_cancelled = |content: Content<'_>| match content {
        // The fields of superclasses come last. The task's own class may have a field of this name, too.
        Content::Instance(fields) => {
            let mut fields = fields.into_iter().rev();
            let state = fields.find(|field| field.name == "state");
            state.and_then(|state| state.value?.integer()) == Some(CANCELLED)
        }
        _ => false,
    };
    let cancelled =
        records.filter_map(|(record, &task)| is_cancelled(record?.content).then_some(task));
    cancelled.collect()
}

/// Returns a name for each pool: the start of the names of its threads, or else the class of its thread factory.
fn pool_names(snapshot: &Snapshot, pools: &[ObjectIndex]) -> Vec<String> {
    let factories = objects(snapshot, pools, "threadFactory");
    let known: Vec<ObjectIndex> = factories.iter().flatten().copied().collect();
    let mut prefixes = strings(snapshot, &known, "namePrefix").into_iter();
    let named = factories.iter().zip(pools).map(|(factory, pool)| {
        let prefix = factory.and_then(|_| prefixes.next().flatten());
        let name = prefix.or_else(|| worker_name(snapshot, *pool));
        name.unwrap_or_else(|| class_name(snapshot, factory.unwrap_or(*pool)))
    });
    named.collect()
}

/// Returns the name of the first thread of a pool, without a number at its end.
fn worker_name(snapshot: &Snapshot, pool: ObjectIndex) -> Option<String> {
    let workers = objects(snapshot, &[pool], "workers").pop()??;
    let first = snapshot
        .contents(workers, 0..1)?
        .entries
        .into_iter()
        .next()?;
    let thread = objects(snapshot, &[first.value.object()?], "thread").pop()??;
    thread_name(snapshot, thread)
}

/// Returns the name of a thread, without a number at its end.
fn thread_name(snapshot: &Snapshot, thread: ObjectIndex) -> Option<String> {
    let name = strings(snapshot, &[thread], "name").pop()??;
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

/// The nodes of all instances of `LinkedBlockingQueue`: the next node and the item of each node.
struct LinkedNodes(HashMap<ObjectIndex, (Option<ObjectIndex>, Option<ObjectIndex>)>);

impl LinkedNodes {
    fn read(snapshot: &Snapshot) -> Self {
        let nodes = instances(snapshot, "java.util.concurrent.LinkedBlockingQueue$Node");
        let values = snapshot.field_values(&nodes, ["next", "item"]);
        let object = |value: Option<Value>| value.and_then(Value::object);
        let links = nodes.into_iter().zip(values).filter_map(|(node, values)| {
            let [next, item] = values?;
            Some((node, (object(next), object(item))))
        });
        Self(links.collect())
    }

    /// Returns the items of a `LinkedBlockingQueue`; `None` for other queues.
    fn items(
        &self,
        snapshot: &Snapshot,
        queue: ObjectIndex,
        seen: &mut Seen,
    ) -> Option<Vec<ObjectIndex>> {
        let mut node = objects(snapshot, &[queue], "head").pop().flatten()?;
        let mut items = Vec::new();
        while seen.insert(node) {
            let Some(&(next, item)) = self.0.get(&node) else {
                break;
            };
            items.extend(item);
            let Some(next) = next else {
                break;
            };
            node = next;
        }
        Some(items)
    }
}

/// Returns the elements of a queue that stores them in an array.
fn in_array(snapshot: &Snapshot, queue: ObjectIndex, seen: &mut Seen) -> Vec<ObjectIndex> {
    let arrays = ["queue", "items", "elements"];
    let mut arrays = arrays
        .iter()
        .filter_map(|f| objects(snapshot, &[queue], f).pop()?);
    let array = arrays.next().filter(|&array| seen.insert(array));
    array.map_or_else(Vec::new, |array| elements(snapshot, array))
}

/// Returns the elements of an array that are not null.
fn elements(snapshot: &Snapshot, array: ObjectIndex) -> Vec<ObjectIndex> {
    match snapshot.read(array).map(|record| record.content) {
        Ok(Content::Array(array)) => {
            let elements = array.elements(0..u32::MAX);
            elements.filter_map(Value::object).collect()
        }
        _ => Vec::new(),
    }
}

/// True if an object is an instance of one of these classes or of a subclass.
fn is_instance(snapshot: &Snapshot, object: ObjectIndex, named: &[ClassIndex]) -> bool {
    let class = snapshot.class_of(object);
    class.is_some_and(|c| {
        named
            .iter()
            .any(|of| snapshot.classes().is_subclass(c, *of))
    })
}

/// Returns the tasks inside their wrappers. A task without a wrapper is returned unchanged.
fn unwrapped(snapshot: &Snapshot, tasks: &[ObjectIndex]) -> Vec<ObjectIndex> {
    let classes = snapshot.classes();
    let mut tasks = tasks.to_vec();
    for _ in 0..DEPTH {
        let mut is_changed = false;
        for (wrapper, field) in WRAPPED {
            let named = classes.by_name(wrapper);
            let is_wrapper = |task: &&ObjectIndex| is_instance(snapshot, **task, named);
            if named.is_empty() {
                continue;
            }
            let wrappers: Vec<ObjectIndex> = tasks.iter().filter(is_wrapper).copied().collect();
            let inner = objects(snapshot, &wrappers, field);
            let inner: HashMap<ObjectIndex, ObjectIndex> = wrappers
                .into_iter()
                .zip(inner)
                .filter_map(|(task, inner)| Some((task, inner?)))
                .collect();
            for task in &mut tasks {
                if let Some(inner) = inner.get(task) {
                    *task = *inner;
                    is_changed = true;
                }
            }
        }
        if !is_changed {
            break;
        }
    }
    tasks
}
