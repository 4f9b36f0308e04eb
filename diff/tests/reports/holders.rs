//! Tests which field is named as the holder, and which path leads to it. The structures are modelled on published
//! programs: a broker's queues, a database's tables.

use crate::common::{self, app::App};
use heapdiff_diff::{Report, Suspect, Verdict};
use hprof::Source;
use testdata::writer::{self, FieldType, HeapBuilder, Obj, ReferenceKind, Root};

const OBJECT: FieldType = FieldType::Object;

fn report(dumps: [HeapBuilder; 2]) -> Report {
    common::report(dumps.map(|heap| Source::from_bytes(heap.build())))
}

/// Checks the holder and the class of a suspect.
fn assert_held(suspect: &Suspect, holder: &str, class: &str) {
    assert_eq!(
        (&*suspect.holder, &*suspect.class),
        (holder, class),
        "{suspect:#?}"
    );
}

#[test]
fn a_weak_reference_is_no_path() {
    let heap = |messages: usize| {
        let mut app = App::new();
        let message = app.class("com.acme.Message", &["body"], &[]);
        let queue = app.class("com.acme.Queue", &["messages"], &[]);
        let server = app.class("com.acme.Server", &["queue"], &["instance"]);
        let monitor = app.class("com.acme.Monitor", &["queue"], &["instance"]);
        // The class `AWatch` comes first by name and by position, but its reference to the queue is weak. So the
        // reported path must not go through it.
        let watch = app.class("com.acme.AWatch", &[], &["watched"]);
        let rows = app.rows(message, messages, 200);
        let array = app.array(rows);
        let queue = app.heap.add_instance(queue, &[array.into()]);
        let weak = app.heap.add_reference(ReferenceKind::Weak, queue);
        app.heap.set_static(watch, "watched", weak);
        for class in [server, monitor] {
            let holder = app.heap.add_instance(class, &[queue.into()]);
            app.heap.set_static(class, "instance", holder);
        }
        app.heap
    };
    let report = report([heap(500), heap(2500)]);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.root, &*s.holder, &*s.class),
        (
            "static com.acme.Server",
            "com.acme.Queue.messages",
            "com.acme.Message"
        )
    );
    assert_eq!(
        s.path,
        [
            "com.acme.Server.instance",
            "com.acme.Server.queue",
            "com.acme.Queue.messages",
            "java.lang.Object[*]"
        ]
    );
    // Two paths lead to the queue. Only the queue holds the messages, so emptying the queue frees them.
    let several = |r: &String| r.contains("several paths");
    assert!(!s.reasons.iter().any(several), "{:?}", s.reasons);
    assert!(s.also_held_by.is_empty(), "{:?}", s.also_held_by);
    assert!(!s.reasons.iter().any(|r| r.contains("AWatch")));
}

/// One field refers to an array. Another field refers to a view of this array.
#[test]
fn a_holder_that_frees_nothing_is_reported_with_the_other() {
    let heap = |messages: usize| {
        let mut app = App::new();
        let message = app.class("com.acme.Message", &["body"], &[]);
        let view = app.class("com.acme.View", &["all"], &[]);
        let store = app.class("com.acme.Store", &["messages", "view"], &["instance"]);
        let rows = app.rows(message, messages, 200);
        let array = app.array(rows);
        let view = app.heap.add_instance(view, &[array.into()]);
        let one = app.heap.add_instance(store, &[array.into(), view.into()]);
        app.heap.set_static(store, "instance", one);
        app.heap
    };
    let report = report([heap(500), heap(2500)]);
    let s = &report.suspects[0];
    assert_held(s, "com.acme.Store.messages", "com.acme.Message");
    assert_eq!(s.also_held_by, ["com.acme.View.all"]);
    let sentence = "clearing com.acme.Store.messages alone does not free the objects: they are also reachable through \
                    com.acme.View.all";
    assert!(s.reasons.iter().any(|r| r == sentence), "{:?}", s.reasons);
}

#[test]
fn the_path_leads_to_the_table_that_grew() {
    let heap = |rows: usize| {
        let mut app = App::new();
        let row = app.class("com.acme.Row", &["body"], &[]);
        let table = app.class("com.acme.Table", &["rows"], &[]);
        let store = app.class("com.acme.Store", &["meta", "tables"], &["open"]);
        let registry = app.class("com.acme.Registry", &["tables"], &["known"]);
        let tables: Vec<Obj> = [5, rows, 7]
            .map(|count| {
                let rows = app.rows(row, count, 200);
                let array = app.array(rows);
                app.heap.add_instance(table, &[array.into()])
            })
            .to_vec();
        let all = app.array(tables.clone());
        let open = app
            .heap
            .add_instance(store, &[tables[0].into(), all.into()]);
        app.heap.set_static(store, "open", open);
        let known = app.array(tables);
        let known = app.heap.add_instance(registry, &[known.into()]);
        app.heap.set_static(registry, "known", known);
        app.heap
    };
    let report = report([heap(500), heap(2500)]);
    let s = &report.suspects[0];
    assert_held(s, "com.acme.Table.rows", "com.acme.Row");
    // `Store.meta` is nearer to the root, but refers to another table.
    assert_eq!(
        s.path,
        [
            "com.acme.Store.open",
            "com.acme.Store.tables",
            "java.lang.Object[*]",
            "com.acme.Table.rows",
            "java.lang.Object[*]"
        ]
    );
}

/// The heap has a B-tree: each page refers to further pages.
#[test]
fn the_holder_of_a_tree_is_the_field_with_its_root() {
    let heap = |leaves: usize| {
        let mut app = App::new();
        let row = app.class("com.acme.Row", &["body"], &[]);
        let page = app.class("com.acme.Page", &["children"], &[]);
        let reference = app.class("com.acme.PageReference", &["page"], &[]);
        let table = app.class("com.acme.Table", &[], &["root"]);
        let mut level: Vec<Obj> = (0..leaves)
            .map(|_| {
                let rows = app.rows(row, 10, 200);
                let array = app.array(rows);
                app.heap.add_instance(page, &[array.into()])
            })
            .collect();
        while level.len() > 1 {
            let pages = level.chunks(8).map(<[Obj]>::to_vec).collect::<Vec<_>>();
            level = pages
                .into_iter()
                .map(|pages| {
                    let references = pages
                        .into_iter()
                        .map(|p| app.heap.add_instance(reference, &[p.into()]))
                        .collect();
                    let children = app.array(references);
                    app.heap.add_instance(page, &[children.into()])
                })
                .collect();
        }
        app.heap.set_static(table, "root", level[0]);
        app.heap
    };
    let report = report([heap(64), heap(512)]);
    let s = &report.suspects[0];
    assert_eq!(&*s.holder, "com.acme.Table.root", "{s:#?}");
    assert_eq!(&*s.root, "static com.acme.Table");
}

#[test]
fn the_holder_is_not_a_field_of_a_collection_library() {
    let heap = |rows: usize| {
        let mut app = App::new();
        let row = app.class("com.acme.Row", &["body"], &[]);
        let list = app.class("org.fast.collections.ArrayBag", &["items"], &[]);
        let table = app.class("com.acme.Table", &["rows"], &["only"]);
        let rows = app.rows(row, rows, 200);
        let array = app.array(rows);
        let list = app.heap.add_instance(list, &[array.into()]);
        let only = app.heap.add_instance(table, &[list.into()]);
        app.heap.set_static(table, "only", only);
        app.heap
    };
    let report = report([heap(500), heap(2500)]);
    let s = &report.suspects[0];
    assert_held(s, "com.acme.Table.rows", "com.acme.Row");
    let path = [
        "com.acme.Table.only",
        "com.acme.Table.rows",
        "org.fast.collections.ArrayBag.items",
        "java.lang.Object[*]",
    ];
    assert_eq!(s.path, path);
}

/// The heap has a thread pool. One path leads to it from the thread of a worker. Another path begins at a local
/// variable, which refers to an object with a field that holds the pool.
#[test]
fn a_path_can_begin_at_a_local_variable() {
    let heap = |tasks: usize| {
        let mut app = App::new();
        let task = app.class("com.acme.Task", &["body"], &[]);
        let mailer = app.class("com.acme.Mailer", &["sender"], &[]);
        // The classes of the pool and of its workers are JDK classes.
        let [pool, worker] =
            ["java.util.concurrent.Pool", "java.util.concurrent.Worker"].map(|name| {
                let object = Some(app.boot.object);
                app.heap.add_class(name, object, &[("of", OBJECT)], &[])
            });
        let rows = app.rows(task, tasks, 200);
        let array = app.array(rows);
        let pool = app.heap.add_instance(pool, &[array.into()]);
        let worker = app.heap.add_instance(worker, &[pool.into()]);
        app.heap.add_root(Root::JniGlobal { global_ref: 2 }, worker);
        let mailer = app.heap.add_instance(mailer, &[pool.into()]);
        let thread = app.heap.add_thread("main", &[]);
        app.heap.add_local(thread, -1, mailer);
        app.heap
    };
    let report = report([heap(500), heap(2500)]);
    let s = &report.suspects[0];
    assert_held(s, "com.acme.Mailer.sender", "com.acme.Task");
    let of_virtual = |r: &String| r.contains("virtual threads") || r.contains("threads or stacks");
    assert!(!s.reasons.iter().any(of_virtual), "{:?}", s.reasons);
}

/// Returns a heap with threads that wait for permits. Each thread is a root, and its stack refers to the node with
/// which it waits. A longer path leads from a field of the application along the queue. In the test cases, the queue
/// contains either all waiting threads or only the last two.
fn waiting(count: usize, is_queued: bool) -> HeapBuilder {
    let mut app = App::new();
    let backend = app.class("com.acme.Backend", &["permits"], &["only"]);
    let semaphore = app.class("java.util.concurrent.Semaphore", &["head"], &[]);
    let node = app.class("java.util.concurrent.Node", &["next", "waiter"], &[]);
    let waiting = app.class("java.lang.VirtualThread", &["stack"], &[]);
    let mut last: Option<Obj> = None;
    for at in 0..count {
        let stack = app.bytes(500);
        let thread = app.heap.add_instance(waiting, &[stack.into()]);
        app.heap.add_root(Root::JniGlobal { global_ref: 7 }, thread);
        let next = last.filter(|_| is_queued || at + 1 == count);
        let next = next.map_or(writer::Value::NULL, Into::into);
        let one = app.heap.add_instance(node, &[next, thread.into()]);
        app.heap.add_root(Root::JniGlobal { global_ref: 8 }, one);
        last = Some(one);
    }
    let head = last.map_or(writer::Value::NULL, Into::into);
    let permits = app.heap.add_instance(semaphore, &[head]);
    let one = app.heap.add_instance(backend, &[permits.into()]);
    app.heap.set_static(backend, "only", one);
    app.heap
}

#[test]
fn waiting_threads_are_held_by_an_application_field() {
    let found = report([waiting(200, true), waiting(1200, true)]);
    let s = &found.suspects[0];
    assert_held(s, "com.acme.Backend.permits", "java.lang.VirtualThread");
    assert_eq!(
        s.reasons[0],
        "parked virtual threads keep their stacks in the heap, with all objects that their local variables refer to (1,200 \
         threads or stacks, up from 200)"
    );
    // In dumps of JDK 19 to 21, the objects that virtual threads refer to are missing.
    let of = |version: &str, count| {
        let mut heap = waiting(count, true);
        heap.set_system_properties(&[("java.vm.version", version)]);
        heap
    };
    let keeps =
        "keep their stacks in the heap, with all objects that their local variables refer to";
    let shows_not = "virtual threads are parked, but this dump does not show the objects that their local variables refer to";
    for (version, sentence, other) in [("21.0.8+9", shows_not, keeps), ("25+36", keeps, shows_not)]
    {
        let found = report([of(version, 200), of(version, 1200)]);
        let reasons = found.suspects.iter().flat_map(|s| &s.reasons);
        let reasons: Vec<&String> = reasons.collect();
        let says = |text| reasons.iter().any(|r| r.contains(text));
        assert!(says(sentence) && !says(other), "{version}: {reasons:?}");
    }
    // A field that leads to only two of 1,200 threads does not show what holds the other threads.
    let found = report([waiting(200, false), waiting(1200, false)]);
    let s = &found.suspects[0];
    let more = "more objects are reachable than before";
    assert!(s.reasons.iter().any(|r| r == more), "{s:#?}");
    assert_held(
        s,
        "java.util.concurrent.Node.waiter",
        "java.lang.VirtualThread",
    );
}

/// A leak is printed before a larger suspect that grew only between the last two dumps, unless the leak has only a
/// small part of all growth.
#[test]
fn the_first_suspect_is_the_first_leak_of_some_size() {
    let ranked = |leaking: [usize; 3]| {
        let heap = |bulk: usize, leaking: usize| {
            let mut app = App::new();
            for (name, count) in [("Bulk", bulk), ("Leak", leaking)] {
                let row = app.class(&format!("com.acme.{name}Row"), &["body"], &[]);
                let owner = app.class(&format!("com.acme.{name}"), &[], &["all"]);
                let rows = app.rows(row, count, 400);
                let all = app.array(rows);
                app.heap.set_static(owner, "all", all);
            }
            Source::from_bytes(app.heap.build())
        };
        let [a, b, c] = leaking;
        let report = common::report([heap(1000, a), heap(1000, b), heap(6000, c)]);
        let suspects = report.suspects.iter();
        let suspects = suspects.map(|s| (s.rank, s.holder.clone(), s.verdict));
        suspects.collect::<Vec<_>>()
    };
    let named = |rank, name: &str, verdict| (rank, format!("com.acme.{name}.all"), verdict);
    assert_eq!(
        ranked([100, 500, 900]),
        [
            named(1, "Leak", Verdict::Leak),
            named(2, "Bulk", Verdict::Growth)
        ]
    );
    assert_eq!(
        ranked([100, 250, 400]),
        [
            named(1, "Bulk", Verdict::Growth),
            named(2, "Leak", Verdict::Leak)
        ]
    );
}
