//! Tests how pending work is grouped, on heaps that the tests build. The classes have the names and fields of the
//! classes in the real libraries.

use hprof::{Options, Silent, Source};
use testdata::writer::{
    ClassId, FieldType, HeapBuilder, Obj, Options as Written, Ref, Root, Value,
};

use super::*;

struct Heap {
    heap: HeapBuilder,
    object: ClassId,
    object_array: ClassId,
}

impl Heap {
    fn new() -> Self {
        let mut heap = HeapBuilder::new(Written::default());
        let boot = heap.boot();
        Self {
            heap,
            object: boot.object,
            object_array: boot.object_array,
        }
    }

    /// Adds a class with fields that refer to objects.
    fn class(&mut self, name: &str, superclass: Option<ClassId>, fields: &[&str]) -> ClassId {
        let fields: Vec<_> = fields.iter().map(|f| (*f, FieldType::Object)).collect();
        let superclass = superclass.unwrap_or(self.object);
        self.heap.add_class(name, Some(superclass), &fields, &[])
    }

    fn object(&mut self, class: ClassId, values: &[Option<Obj>]) -> Obj {
        let value = |o: &Option<Obj>| o.map_or(Value::NULL, Value::from);
        let values: Vec<Value> = values.iter().map(value).collect();
        self.heap.add_instance(class, &values)
    }

    fn hold(&mut self, object: Obj) {
        self.heap
            .add_root(Root::JniGlobal { global_ref: 8 }, object);
    }

    /// Builds the heap and groups its pending work. Returns the kind of each group, the lines that describe it, and the
    /// number of its members, sorted.
    fn groups(
        &self,
        suspended: &mut dyn FnMut(&str, i64) -> Option<String>,
    ) -> Vec<(PendingKind, Vec<String>, usize)> {
        let source = Source::from_bytes(self.heap.try_build().unwrap().bytes);
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        let groups = pending_work(&snapshot, &snapshot.threads(), suspended);
        let mut groups: Vec<_> = groups
            .into_iter()
            .map(|group| (group.kind, group.shape, group.members.len()))
            .collect();
        groups.sort();
        groups
    }
}

fn lines(shape: &[&str]) -> Vec<String> {
    shape.iter().map(|&line| line.to_owned()).collect()
}

#[test]
fn coroutines_are_grouped_by_label() {
    let mut heap = Heap::new();
    let base = "kotlin.coroutines.jvm.internal.BaseContinuationImpl";
    let base = heap.class(base, None, &["completion"]);
    let label = [("label", FieldType::Int)];
    let [load, order] = ["a.K$load$1", "a.K$order$1"]
        .map(|name| heap.heap.add_class(name, Some(base), &label, &[]));
    let job = heap.class("a.Job", None, &[]);
    // If the label is 0, the function has not started. While the function runs, the highest bit of the label is set.
    for (inner, outer) in [(1, 1), (1, 1), (2, 1), (0, 1), (i32::MIN + 1, 1)] {
        let job = heap.object(job, &[]);
        let outer = heap
            .heap
            .add_instance(order, &[Value::Int(outer), job.into()]);
        let inner = heap
            .heap
            .add_instance(load, &[Value::Int(inner), outer.into()]);
        heap.hold(inner);
    }
    let labels = |label| {
        let first = format!("a.K$load$1 (label {label})");
        lines(&[&first, "a.K$order$1 (label 1)", "a.Job"])
    };
    let kind = PendingKind::Coroutines;
    let expected = [(kind, labels(1), 3), (kind, labels(2), 1)];
    assert_eq!(heap.groups(&mut |_, _| None), expected);
    let known = heap.groups(&mut |class, label| {
        (class == "a.K$load$1").then(|| format!("a.K.load(K.kt:{})", 8 + label))
    });
    let shape = lines(&["a.K.load(K.kt:9)", "a.K$order$1 (label 1)", "a.Job"]);
    assert!(known.contains(&(kind, shape, 3)), "{known:?}");
}

#[test]
fn subscriptions_and_channels_are_chains() {
    let mut heap = Heap::new();
    let map = "reactor.core.publisher.FluxMap$MapSubscriber";
    let map = heap.class(map, None, &["actual"]);
    let last = "reactor.core.publisher.LambdaSubscriber";
    let last = heap.class(last, None, &["consumer"]);
    let consumer = heap.class("a.Consumer", None, &[]);
    for _ in 0..3 {
        let consumer = heap.object(consumer, &[]);
        let last = heap.object(last, &[Some(consumer)]);
        let second = heap.object(map, &[Some(last)]);
        let first = heap.object(map, &[Some(second)]);
        heap.hold(first);
    }
    // This damaged chain consists of one object that refers to itself. No object is the first one, so the chain is not
    // listed.
    let cycle = heap.object(map, &[None]);
    heap.heap.set_field(cycle, "actual", cycle);
    heap.hold(cycle);

    let context = "io.netty.channel.AbstractChannelHandlerContext";
    let context = heap.class(context, None, &["next", "handler", "pipeline"]);
    let [pipeline, channel] = [("a.Pipeline", &["channel"][..]), ("a.Channel", &[])]
        .map(|(name, fields)| heap.class(name, None, fields));
    let [decoder, encoder] = ["a.Decoder", "a.Encoder"].map(|name| heap.class(name, None, &[]));
    for handlers in [&[decoder, encoder][..], &[decoder, encoder], &[encoder]] {
        let channel = heap.object(channel, &[]);
        let pipeline = heap.object(pipeline, &[Some(channel)]);
        let mut next = None;
        for &handler in handlers.iter().rev() {
            let handler = heap.object(handler, &[]);
            next = Some(heap.object(context, &[next, Some(handler), Some(pipeline)]));
        }
        heap.hold(next.unwrap());
    }
    let operators = lines(&[
        "FluxMap$MapSubscriber",
        "FluxMap$MapSubscriber",
        "LambdaSubscriber a.Consumer",
    ]);
    let kind = PendingKind::Pipelines;
    assert_eq!(
        heap.groups(&mut |_, _| None),
        [
            (PendingKind::Subscriptions, operators, 3),
            (kind, lines(&["a.Channel", "a.Decoder", "a.Encoder"]), 2),
            (kind, lines(&["a.Channel", "a.Encoder"]), 1),
        ]
    );
}

#[test]
fn futures_show_each_function_that_waits() {
    let mut heap = Heap::new();
    let name = "java.util.concurrent.CompletableFuture";
    let future = heap.class(name, None, &["result", "stack"]);
    let completion = heap.class(&format!("{name}$Completion"), None, &["next", "dep", "fn"]);
    let [apply, accept] = ["UniApply", "UniAccept"]
        .map(|method| heap.class(&format!("{name}${method}"), Some(completion), &[]));
    let function = heap.class("a.F", None, &[]);
    for _ in 0..2 {
        let of = |heap: &mut Heap, stack| heap.object(future, &[None, stack]);
        let function = heap.object(function, &[]);
        let end = of(&mut heap, None);
        let accept = heap.object(accept, &[None, Some(end), Some(function)]);
        let middle = of(&mut heap, Some(accept));
        let apply = heap.object(apply, &[None, Some(middle), Some(function)]);
        let source = of(&mut heap, Some(apply));
        heap.hold(source);
    }
    let done = heap.object(function, &[]);
    let done = heap.object(future, &[Some(done), None]);
    heap.hold(done);
    let shape = lines(&[name, "thenApply a.F", "thenAccept a.F"]);
    assert_eq!(
        heap.groups(&mut |_, _| None),
        [(PendingKind::Futures, shape, 2)]
    );
}

/// Two functions wait for the same future. One of them also waits for a second future.
#[test]
fn functions_that_wait_for_the_same_future_are_no_chain() {
    let mut heap = Heap::new();
    let name = "java.util.concurrent.CompletableFuture";
    let future = heap.class(name, None, &["result", "stack"]);
    let completion = heap.class(&format!("{name}$Completion"), None, &["next"]);
    let two = heap.class(&format!("{name}$BiApply"), Some(completion), &["dep", "fn"]);
    let second = heap.class(&format!("{name}$CoCompletion"), Some(completion), &["base"]);
    let functions = ["a.F", "a.G"].map(|name| heap.class(name, None, &[]));
    let [first_end, second_end] = functions.map(|class| {
        let function = heap.object(class, &[]);
        let end = heap.object(future, &[None, None]);
        heap.object(two, &[Some(end), Some(function), None])
    });
    heap.heap.set_field(first_end, "next", second_end);
    let source = heap.object(future, &[None, Some(first_end)]);
    let other = heap.object(second, &[Some(first_end), None]);
    let other = heap.object(future, &[None, Some(other)]);
    heap.hold(source);
    heap.hold(other);
    let kind = PendingKind::Futures;
    let both = lines(&[name, "thenCombine a.F", "also thenCombine a.G"]);
    let one = lines(&[name, "thenCombine a.F"]);
    assert_eq!(
        heap.groups(&mut |_, _| None),
        [(kind, one, 1), (kind, both, 1)]
    );
}

/// The JDK represents `allOf` as a tree, whose leaves may have different depths.
#[test]
fn one_call_of_all_of_is_one_line() {
    let mut heap = Heap::new();
    let name = "java.util.concurrent.CompletableFuture";
    let future = heap.class(name, None, &["result", "stack"]);
    let completion = heap.class(&format!("{name}$Completion"), None, &["next"]);
    let all = heap.class(&format!("{name}$BiRelay"), Some(completion), &["dep"]);
    let apply = heap.class(&format!("{name}$UniApply"), Some(completion), &["dep"]);
    for depth in [1, 3] {
        let end = heap.object(future, &[None, None]);
        let end = heap.object(apply, &[Some(end), None]);
        let mut source = heap.object(future, &[None, Some(end)]);
        for _ in 0..depth {
            let relay = heap.object(all, &[Some(source), None]);
            source = heap.object(future, &[None, Some(relay)]);
        }
        heap.hold(source);
    }
    let shape = lines(&[name, "allOf", "thenApply"]);
    assert_eq!(
        heap.groups(&mut |_, _| None),
        [(PendingKind::Futures, shape, 2)]
    );
}

#[test]
fn queued_tasks_are_counted_without_their_wrappers() {
    let mut heap = Heap::new();
    let util = "java.util.concurrent";
    let pool = heap.class(
        &format!("{util}.ThreadPoolExecutor"),
        None,
        &["workQueue", "threadFactory"],
    );
    let queue = heap.class(&format!("{util}.LinkedBlockingQueue"), None, &["head"]);
    let node = heap.class(
        &format!("{util}.LinkedBlockingQueue$Node"),
        None,
        &["item", "next"],
    );
    let wrapper = heap.class(&format!("{util}.FutureTask"), None, &["callable"]);
    let adapter = heap.class(
        &format!("{util}.Executors$RunnableAdapter"),
        None,
        &["task"],
    );
    let [task, factory] = ["a.Task", "a.Factory"].map(|name| heap.class(name, None, &[]));
    let array_queue = heap.class(&format!("{util}.ArrayBlockingQueue"), None, &["items"]);
    let factory = heap.object(factory, &[]);

    let mut next = None;
    for _ in 0..3 {
        let task = heap.object(task, &[]);
        let adapter = heap.object(adapter, &[Some(task)]);
        let item = heap.object(wrapper, &[Some(adapter)]);
        next = Some(heap.object(node, &[Some(item), next]));
    }
    let head = heap.object(node, &[None, next]);
    let linked = heap.object(queue, &[Some(head)]);
    let tasks = [0; 2].map(|_| heap.object(task, &[]));
    let cancelled = heap.object(wrapper, &[None]);
    let array = heap.heap.add_object_array(
        heap.object_array,
        [
            Ref::Null,
            tasks[0].into(),
            tasks[1].into(),
            cancelled.into(),
        ],
    );
    let in_array = heap.object(array_queue, &[Some(array)]);
    // Two pools have the same queue.
    for queue in [linked, linked, in_array] {
        let pool = heap.object(pool, &[Some(queue), Some(factory)]);
        heap.hold(pool);
    }
    let shape = lines(&["a.Task", "in 2 queues of a.Factory"]);
    let cancelled = lines(&[
        "java.util.concurrent.FutureTask (cancelled)",
        "in the queue of a.Factory",
    ]);
    let kind = PendingKind::Tasks;
    let mut groups = heap.groups(&mut |_, _| None);
    groups.sort_by_key(|group| group.2);
    assert_eq!(groups, [(kind, cancelled, 1), (kind, shape, 5)]);
}

#[test]
fn tasks_of_timers_are_queued() {
    let mut heap = Heap::new();
    let task = [("state", FieldType::Int)];
    let object = Some(heap.object);
    let task = heap
        .heap
        .add_class("java.util.TimerTask", object, &task, &[]);
    // This class has a field of the same name, whose value means nothing.
    let own = [("state", FieldType::Int)];
    let ping = heap.heap.add_class("a.Ping", Some(task), &own, &[]);
    let queue = heap.class("java.util.TaskQueue", None, &["queue"]);
    let timer = heap.class("java.util.Timer", None, &["queue", "thread"]);
    let tasks = [(3, 1), (3, 1), (1, 3)];
    let tasks: Vec<Ref> = tasks
        .map(|(own, state)| {
            let values = [Value::Int(own), Value::Int(state)];
            heap.heap.add_instance(ping, &values).into()
        })
        .to_vec();
    // The first element of the array is not used.
    let slots = [Ref::Null].into_iter().chain(tasks).chain([Ref::Null]);
    let array = heap
        .heap
        .add_object_array(heap.object_array, slots.collect::<Vec<_>>());
    let queue = heap.object(queue, &[Some(array)]);
    let thread = heap.heap.add_thread("Timer-0", &[]).object;
    // In a damaged dump, two timers may share a queue.
    for _ in 0..2 {
        let timer = heap.object(timer, &[Some(queue), Some(thread)]);
        heap.hold(timer);
    }
    let of = |class: &str| lines(&[class, "in the queue of Timer-"]);
    let kind = PendingKind::Tasks;
    let expected = [(kind, of("a.Ping"), 2), (kind, of("a.Ping (cancelled)"), 1)];
    assert_eq!(heap.groups(&mut |_, _| None), expected);
}
