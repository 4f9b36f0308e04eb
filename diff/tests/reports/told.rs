//! Tests sentences that name a cause. Each test has one heap to which the sentence applies, and a similar heap to which
//! it does not.

use crate::common::{self, app::App};
use heapdiff_diff::{Report, Suspect};
use hprof::Source;
use testdata::writer::{FieldType, Frame, Obj, Ref, Root, Value};

const OBJECT: FieldType = FieldType::Object;

/// Checks that the sentence appears for a suspect of the first heap, and for no suspect of the second.
fn assert_reason(told: impl Fn(usize) -> App, untold: impl Fn(usize) -> App, sentence: &str) {
    let suspects = |heap: &dyn Fn(usize) -> App| -> Vec<Suspect> {
        let dumps = [300, 900].map(|count| Source::from_bytes(heap(count).heap.build()));
        let report = common::report(dumps);
        assert!(!report.suspects.is_empty(), "{report:#?}");
        report.suspects
    };
    let says = |all: &[Suspect]| {
        let mut reasons = all.iter().flat_map(|s| &s.reasons);
        reasons.any(|r| r.contains(sentence))
    };
    let all = suspects(&told);
    assert!(says(&all), "{sentence}: {all:#?}");
    let all = suspects(&untold);
    assert!(!says(&all), "{sentence}: {all:#?}");
}

/// Checks that the report on a single dump of the first heap contains the sentence, and that the report on the second
/// heap does not. A comparison must not contain the sentence.
fn assert_reason_alone(told: impl Fn(usize) -> App, untold: impl Fn(usize) -> App, sentence: &str) {
    let alone = |heap: &dyn Fn(usize) -> App| -> Vec<String> {
        let report = common::alone(Source::from_bytes(heap(900).heap.build()));
        assert!(!report.suspects.is_empty(), "{report:#?}");
        report
            .suspects
            .into_iter()
            .flat_map(|s| s.reasons)
            .collect()
    };
    let says = |all: &[String]| all.iter().any(|r| r.contains(sentence));
    let all = alone(&told);
    assert!(says(&all), "{sentence}: {all:#?}");
    assert!(!all.iter().any(|r| r.contains("up from")), "{all:#?}");
    let all = alone(&untold);
    assert!(!says(&all), "{sentence}: {all:#?}");
    let dumps = [300, 900].map(|count| Source::from_bytes(told(count).heap.build()));
    let suspects = common::report(dumps).suspects;
    let all: Vec<String> = suspects.into_iter().flat_map(|s| s.reasons).collect();
    assert!(!says(&all), "{sentence}: {all:#?}");
}

/// Puts an array with `count` objects of a class into a static field.
fn in_static(app: &mut App, (class, field): (&str, &str), of: &str, count: usize) {
    let holder = app.class(class, &[], &[field]);
    app.heap.add_root(Root::StickyClass, holder);
    let of = app.class(of, &["body"], &[]);
    let rows = app.rows(of, count, 100);
    let array = app.array(rows);
    app.heap.set_static(holder, field, array);
}

#[test]
fn files_to_delete_on_exit() {
    let heap = |class: &'static str| {
        move |count| {
            let mut app = App::new();
            in_static(&mut app, (class, "files"), "java.lang.Text", count);
            app
        }
    };
    assert_reason(
        heap("java.io.DeleteOnExitHook"),
        heap("java.io.OtherHook"),
        "File.deleteOnExit: the JVM keeps the path of each such file until it exits, even when the file is gone (900 \
         paths, up from 300)",
    );
}

/// Returns a function that builds a heap with a given number of objects of class `class`. In the heap, a thread with
/// the name `thread` is running a method of the application.
fn finalizers(class: &'static str, thread: &'static str) -> impl Fn(usize) -> App {
    move |count| {
        let mut app = App::new();
        in_static(&mut app, ("com.acme.Devices", "open"), class, count);
        let handle = app.class("com.acme.Device", &[], &[]);
        let frame = Frame::new(&app.heap, handle, "await", 31);
        app.heap.add_thread(thread, &[frame]);
        app
    }
}

#[test]
fn objects_that_wait_for_their_finalizer() {
    assert_reason(
        finalizers("java.lang.ref.Finalizer", "main"),
        finalizers("java.lang.Other", "main"),
        "objects wait for their finalizer: java.lang.ref.Finalizer holds each object until its finalizer has run (900 objects, up from 300)",
    );
    assert_reason_alone(
        finalizers("java.lang.ref.Finalizer", "main"),
        finalizers("java.lang.Other", "main"),
        "objects with a finalizer: java.lang.ref.Finalizer holds each object until its finalizer has run (900 objects)",
    );
    // The report mentions the application code only if it runs in the finalizer thread.
    assert_reason(
        finalizers("java.lang.ref.Finalizer", "Finalizer"),
        finalizers("java.lang.ref.Finalizer", "main"),
        "the thread Finalizer runs application code: com.acme.Device.await(Device.java:31)",
    );
}

#[test]
fn cleaning_actions_that_pile_up() {
    let heap = |class: &'static str| {
        move |count| {
            let mut app = App::new();
            in_static(&mut app, ("com.acme.Codecs", "open"), class, count);
            app
        }
    };
    assert_reason(
        heap("jdk.internal.ref.Cleaner"),
        heap("jdk.internal.Other"),
        "cleaning actions pile up: each action stays until its object is unreachable and the cleaner thread has run the action (900 \
         actions, up from 300)",
    );
    assert_reason_alone(
        heap("jdk.internal.ref.Cleaner"),
        heap("jdk.internal.Other"),
        "cleaning actions have not run: each action stays until its object is unreachable",
    );
}

/// Returns a heap with buffers, each with a cleaner. If `is_list_of_jdk_alone` is true, only the JDK's list of cleaners
/// holds the buffers. Otherwise, only an application field holds the buffers, and the JDK's list holds the cleaners.
fn buffers_with_cleaners(count: usize, is_list_of_jdk_alone: bool) -> App {
    let mut app = App::new();
    let buffer = app.class("java.nio.DirectByteBuffer", &["cleaner", "att"], &[]);
    let action = app.class("java.nio.DirectByteBuffer$Deallocator", &["buffer"], &[]);
    let object = |name| (name, OBJECT);
    let phantom = app.boot.phantom_reference;
    let cleaner = app.heap.add_class(
        "jdk.internal.ref.Cleaner",
        Some(phantom),
        &[object("next"), object("thunk")],
        &[("first", Value::NULL)],
    );
    let mut all = Vec::new();
    let mut next = Value::NULL;
    for _ in 0..count {
        let one = app.heap.add_instance(buffer, &[]);
        let attached = app.bytes(200);
        app.heap.set_field(one, "att", attached);
        let held = app.heap.add_reference_of(cleaner, one);
        let thunk = app.heap.add_instance(action, &[]);
        app.heap.set_field(held, "thunk", thunk);
        app.heap.set_field(held, "next", next);
        next = Value::Ref(held.into());
        if is_list_of_jdk_alone {
            app.heap.set_field(thunk, "buffer", one);
        } else {
            app.heap.set_field(one, "cleaner", held);
        }
        all.push(one);
    }
    if let Value::Ref(first) = next {
        app.heap.set_static(cleaner, "first", first);
    }
    if !is_list_of_jdk_alone {
        let owner = app.class("com.acme.Chunks", &["open"], &["only"]);
        let list = app.array(all);
        let chunks = app.heap.add_instance(owner, &[list.into()]);
        app.heap.set_static(owner, "only", chunks);
    }
    app
}

#[test]
fn a_cleaner_is_blamed_only_if_nothing_else_holds_the_object() {
    let report = |alone: bool| {
        common::report([300, 900].map(|count| {
            let heap = buffers_with_cleaners(count, alone).heap;
            Source::from_bytes(heap.build())
        }))
    };
    let held = report(false);
    let first = &held.suspects[0];
    assert_eq!(
        (&*first.holder, &*first.class),
        ("com.acme.Chunks.open", "java.nio.DirectByteBuffer"),
        "{held:#?}"
    );
    let blamed = |report: &Report| {
        let detectors = report.suspects.iter().map(|s| s.detector.as_deref());
        detectors.filter(|d| *d == Some("cleaner")).count()
    };
    assert_eq!(blamed(&held), 0, "{held:#?}");
    // If a cleaning action refers to its object, the JDK's list of cleaners keeps the object alive.
    let leaked = report(true);
    assert_eq!(blamed(&leaked), 1, "{leaked:#?}");
}

/// Returns a function that builds a heap with tasks. An object of the class `queue` holds the tasks, and each task has
/// the state `state`.
fn tasks(queue: &'static str, state: i32) -> impl Fn(usize) -> App {
    move |count| {
        let mut app = App::new();
        let owner = app.class("com.acme.Gateway", &["work"], &["only"]);
        let queue = app.class(queue, &["queue"], &[]);
        let object = app.boot.object;
        let future = [("state", FieldType::Int), ("body", OBJECT)];
        let future = app.heap.add_class(
            "java.util.concurrent.FutureTask",
            Some(object),
            &future,
            &[],
        );
        let all: Vec<Obj> = (0..count)
            .map(|_| {
                let body = app.bytes(100);
                app.heap
                    .add_instance(future, &[Value::Int(state), body.into()])
            })
            .collect();
        let all = app.array(all);
        let queue = app.heap.add_instance(queue, &[all.into()]);
        let owner_object = app.heap.add_instance(owner, &[queue.into()]);
        app.heap.set_static(owner, "only", owner_object);
        app
    }
}

const DELAYED: &str = "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue";
const CANCELLED: i32 = 4;

#[test]
fn tasks_of_a_scheduler() {
    assert_reason(
        tasks(DELAYED, 0),
        tasks("com.acme.Plan", 0),
        "tasks pile up in the queue of a timer (900 tasks, up from 300)",
    );
    assert_reason_alone(
        tasks(DELAYED, 0),
        tasks("com.acme.Plan", 0),
        "tasks wait in the queue of a timer (900 tasks)",
    );
    for sentence in [
        "512 of 512 checked tasks are cancelled but stay until their time comes",
        "setRemoveOnCancelPolicy(true) removes them at once",
    ] {
        assert_reason(tasks(DELAYED, CANCELLED), tasks(DELAYED, 0), sentence);
    }
}

#[test]
fn tasks_that_wait_for_a_thread_of_the_pool() {
    let heap = |field: &'static str| {
        move |count| {
            let mut app = App::new();
            let owner = app.class("com.acme.Mailer", &["pool"], &["only"]);
            let pool = app.class("java.util.concurrent.ThreadPoolExecutor", &[field], &[]);
            let queue = app.class("java.util.concurrent.LinkedQueue", &["items"], &[]);
            let task = app.class("com.acme.Mail", &["body"], &[]);
            let rows = app.rows(task, count, 100);
            let items = app.array(rows);
            let queue = app.heap.add_instance(queue, &[items.into()]);
            let pool = app.heap.add_instance(pool, &[queue.into()]);
            let only = app.heap.add_instance(owner, &[pool.into()]);
            app.heap.set_static(owner, "only", only);
            app
        }
    };
    assert_reason(
        heap("workQueue"),
        heap("workers"),
        "more tasks are submitted to the thread pool than it runs",
    );
    assert_reason_alone(
        heap("workQueue"),
        heap("workers"),
        "tasks wait for a thread of the pool (900 in a java.util.concurrent.LinkedQueue)",
    );
}

#[test]
fn values_of_a_thread_local() {
    let heap = |map: &'static str| {
        move |count| {
            let mut app = App::new();
            let context = app.class("com.acme.Context", &["body"], &[]);
            let map = app.class(map, &["table"], &[]);
            let object = app.boot.object;
            let worker = [("locals", OBJECT)];
            let worker = app
                .heap
                .add_class("java.lang.Worker", Some(object), &worker, &[]);
            let rows = app.rows(context, count, 100);
            let table = app.array(rows);
            let map = app.heap.add_instance(map, &[table.into()]);
            let worker = app.heap.add_instance(worker, &[map.into()]);
            app.heap.add_root(Root::JniGlobal { global_ref: 3 }, worker);
            app
        }
    };
    assert_reason(
        heap("java.lang.ThreadLocal$ThreadLocalMap"),
        heap("java.lang.Locals"),
        "ThreadLocal values on long-lived (pooled) threads: they stay until ThreadLocal.remove() is called",
    );
}

#[test]
fn threads_that_hold_the_values_are_named() {
    // Each of the `all` threads has a value of a thread local. The first `holding` threads also have a list of `count`
    // spans, which grows.
    let heap = |all: usize, holding: usize, count: usize| {
        let mut app = App::new();
        let object = app.boot.object;
        let map = app.class("java.lang.ThreadLocal$ThreadLocalMap", &["table"], &[]);
        let entry = [("referent", OBJECT), ("value", OBJECT)];
        let entry_class = "java.lang.ThreadLocal$ThreadLocalMap$Entry";
        let entry = app.heap.add_class(entry_class, Some(object), &entry, &[]);
        let list = app.class("java.util.ArrayList", &["elementData"], &[]);
        let span = app.class("com.acme.Span", &["body"], &[]);
        let frame = app.class("com.acme.Main", &[], &[]);
        for at in 0..all {
            let frames = [Frame::new(&app.heap, frame, "run", 7)];
            let thread = app.heap.add_thread(&format!("req-{at}"), &frames);
            let text = app.heap.add_string("x");
            let mut values: Vec<Obj> = vec![text];
            if at < holding {
                let spans = app.rows(span, count, 100);
                let data = app.array(spans);
                values.push(app.heap.add_instance(list, &[data.into()]));
            }
            let slots: Vec<Obj> = values
                .into_iter()
                .map(|v| app.heap.add_instance(entry, &[Value::NULL, v.into()]))
                .collect();
            let table = app.heap.add_object_array(entry, slots);
            let map = app.heap.add_instance(map, &[table.into()]);
            app.heap.add_local(thread, 0, map);
        }
        app
    };
    let kept = |all, holding, count: usize| {
        let dumps = [count, 3 * count].map(|n| heap(all, holding, n));
        let report = common::report(dumps.map(|app| Source::from_bytes(app.heap.build())));
        let s = &report.suspects[0];
        assert_eq!(s.detector.as_deref(), Some("thread-local"), "{s:#?}");
        let mut reasons = s.reasons.iter();
        let kept = reasons.find(|r| r.contains("hold them"));
        kept.cloned().unwrap_or_default()
    };
    assert_eq!(kept(40, 2, 300), "the threads that hold them: req-0, req-1");
    assert_eq!(
        kept(3, 3, 300),
        "the threads that hold them: req-0, req-1, req-2"
    );
    assert_eq!(
        kept(40, 20, 300),
        "20 threads in total hold them, among them req-0, req-1, req-2"
    );
    // The search for the holding threads inspects only some of the threads.
    assert_eq!(
        kept(5000, 5000, 1),
        "at least 4,096 threads hold them, among them req-0, req-1, req-2"
    );
}

#[test]
fn elements_of_a_listener_field_are_listeners() {
    let heap = |field: &'static str, of: &'static str| {
        move |count| {
            let mut app = App::new();
            in_static(&mut app, ("com.acme.Feed", field), of, count);
            app
        }
    };
    let sentence = "listeners are added and not removed: com.acme.Feed.observers holds 900 of class com.acme.View";
    assert_reason(
        heap("observers", "com.acme.View"),
        heap("observations", "com.acme.View"),
        sentence,
    );
    let sentence = "listeners are added and not removed";
    for other in [
        heap("observers", "java.time.Instant"),
        heap("callbackStats", "com.acme.View"),
    ] {
        assert_reason(heap("callbacks", "com.acme.View"), other, sentence);
    }
}

#[test]
fn small_views_of_large_lists() {
    let heap = |shown: i32| {
        move |count| {
            let mut app = App::new();
            let screen = app.class("com.acme.Screen", &[], &["previews"]);
            let object = app.boot.object;
            let number = ("size", FieldType::Int);
            let mut class = |name: &str, field| {
                app.heap
                    .add_class(name, Some(object), &[number, (field, OBJECT)], &[])
            };
            let list = class("java.util.ArrayList", "elementData");
            let view = class("java.util.ArrayList$SubList", "root");
            let all: Vec<Obj> = (0..count)
                .map(|_| {
                    let data = app.bytes(400);
                    let list = app.heap.add_instance(list, &[Value::Int(100), data.into()]);
                    app.heap
                        .add_instance(view, &[Value::Int(shown), list.into()])
                })
                .collect();
            let all = app.array(all);
            app.heap.set_static(screen, "previews", all);
            app
        }
    };
    assert_reason(
        heap(3),
        heap(90),
        "slices keep large lists alive: 256 of 256 checked objects of class java.util.ArrayList$SubList use 768 of 25,600 elements",
    );
}

#[test]
fn jdk_tables_grow_with_the_classes() {
    let heap = |loads: bool| {
        move |count: usize| {
            let mut app = App::new();
            let table = ("java.lang.ModuleLayers", "all");
            in_static(&mut app, table, "java.lang.Entry", count);
            for i in 0..if loads { count } else { 300 } {
                app.class(&format!("com.acme.Loaded{i}"), &[], &[]);
            }
            app
        }
    };
    assert_reason(
        heap(true),
        heap(false),
        "600 classes were loaded between the dumps, and tables of the JDK grow with them",
    );
}

#[test]
fn classes_that_a_list_holds() {
    let heap = |generates: bool| {
        move |count: usize| {
            let mut app = App::new();
            let scripts = app.class("com.acme.Scripts", &[], &["compiled"]);
            let text = app.class("com.acme.Text", &["body"], &[]);
            let rows = app.rows(text, count, 200);
            let array = if generates {
                let one = |at: usize| {
                    let name = format!("com.acme.Script$$Lambda/0x{:016x}", at * 64);
                    let class = app.class(&name, &[], &["text"]);
                    app.heap.set_static(class, "text", rows[at]);
                    Ref::from(class)
                };
                let classes: Vec<Ref> = (0..count).map(one).collect();
                app.heap.add_object_array(app.boot.object, classes)
            } else {
                app.array(rows)
            };
            app.heap.set_static(scripts, "compiled", array);
            app
        }
    };
    assert_reason(
        heap(true),
        heap(false),
        "each class also takes metaspace, which is outside of the heap and not in these figures",
    );
}

#[test]
fn weak_references_that_a_list_holds() {
    let heap = |weak: bool| {
        move |count| {
            let mut app = App::new();
            let bus = app.class("com.acme.Bus", &[], &["watched", "owned"]);
            let (weak_class, object) = (app.boot.weak_reference, app.boot.object);
            let above = if weak { weak_class } else { object };
            let fields: &[(&str, FieldType)] = if weak { &[] } else { &[("referent", OBJECT)] };
            let watch = app
                .heap
                .add_class("com.acme.Watch", Some(above), fields, &[]);
            let parts: Vec<Obj> = (0..count).map(|_| app.bytes(100)).collect();
            let watched: Vec<Obj> = parts
                .iter()
                .map(|&part| {
                    let one = app.heap.add_instance(watch, &[]);
                    app.heap.set_field(one, "referent", part);
                    one
                })
                .collect();
            let (watched, owned) = (app.array(watched), app.array(parts));
            app.heap.set_static(bus, "watched", watched);
            app.heap.set_static(bus, "owned", owned);
            app
        }
    };
    assert_reason(
        heap(true),
        heap(false),
        "the content consists of weak references (com.acme.Watch), which keep nothing alive",
    );
}

#[test]
fn objects_of_all_kinds_that_several_paths_lead_to() {
    let heap = |class: &'static str| {
        move |count| {
            let mut app = App::new();
            let of = app.class(class, &["body"], &[]);
            let rows = app.rows(of, count, 100);
            for field in ["one", "other"] {
                let holder = app.class(&format!("com.acme.{field}"), &[], &[field]);
                let array = app.array(rows.clone());
                app.heap.add_root(Root::StickyClass, holder);
                app.heap.set_static(holder, field, array);
            }
            app
        }
    };
    assert_reason(
        heap("java.lang.Text"),
        heap("com.acme.Text"),
        "several paths lead to each object, so clearing one field frees nothing",
    );
}
