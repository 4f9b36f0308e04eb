//! Tests the detectors of known leak patterns. Each test has one heap with the pattern, and a similar heap without it.

use crate::common;
use heapdiff_diff::{Report, Suspect, Verdict};
use hprof::Source;
use testdata::writer::{self, ClassId, Elements, FieldType, HeapBuilder, Obj, Value};

const OBJECT: FieldType = FieldType::Object;
const INT: FieldType = FieldType::Int;

fn report(dumps: Vec<Vec<u8>>) -> Report {
    common::report(dumps.into_iter().map(Source::from_bytes))
}

fn first(dumps: Vec<Vec<u8>>) -> Suspect {
    let mut report = report(dumps);
    assert!(!report.suspects.is_empty());
    report.suspects.swap_remove(0)
}

/// Returns a heap with one static field, `com.acme.App.held`, in a class of an application's loader.
fn held(build: impl FnOnce(&mut HeapBuilder, Obj) -> Obj) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let loader_class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
    let loader = heap.add_class_loader(loader_class, "app");
    heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, loader);
    let app = heap.add_class(
        "com.acme.App",
        Some(boot.object),
        &[],
        &[("held", Value::NULL)],
    );
    heap.set_loader(app, loader);
    let object = build(&mut heap, loader);
    heap.set_static(app, "held", object);
    heap.build()
}

fn class(heap: &mut HeapBuilder, name: &str, fields: &[(&str, FieldType)]) -> ClassId {
    let object = heap.boot().object;
    heap.add_class(name, Some(object), fields, &[])
}

fn array(heap: &mut HeapBuilder, elements: Vec<Obj>) -> Obj {
    let object = heap.boot().object;
    heap.add_object_array(object, elements)
}

fn bytes(heap: &mut HeapBuilder, len: usize) -> Obj {
    heap.add_primitive_array(Elements::Byte(vec![1; len]))
}

/// Returns a heap with the table of a hash map. The table has `count` keys, of which only `different` differ in their
/// fields.
fn keys(count: usize, different: usize) -> Vec<u8> {
    held(|heap, loader| {
        let key = class(heap, "com.acme.Key", &[("name", OBJECT), ("zone", INT)]);
        heap.set_loader(key, loader);
        let map = class(heap, "java.util.HashMap", &[("table", OBJECT)]);
        let node = class(
            heap,
            "java.util.HashMap$Node",
            &[("hash", INT), ("key", OBJECT), ("value", OBJECT)],
        );
        let one = |i: usize| {
            let name = heap.add_string(&format!("route {}", i % different));
            let zone = i32::try_from(i % different % 7).unwrap();
            let key = heap.add_instance(key, &[name.into(), Value::Int(zone)]);
            let value = bytes(heap, 40);
            let hash = i32::try_from(i).unwrap();
            heap.add_instance(node, &[Value::Int(hash), key.into(), value.into()])
        };
        let nodes: Vec<Obj> = (0..count).map(one).collect();
        let table = array(heap, nodes);
        heap.add_instance(map, &[table.into()])
    })
}

#[test]
fn keys_that_are_equal_in_all_fields_are_reported() {
    let s = first(vec![keys(1000, 50), keys(2000, 50)]);
    assert_eq!(
        (s.detector.as_deref(), s.verdict),
        (Some("hash-key"), Verdict::Leak)
    );
    assert_eq!(
        s.reasons[0],
        "hash keys without equals: 2,000 of 2,000 checked keys of class com.acme.Key have the same fields as another key"
    );
    let s = first(vec![keys(1000, 5000), keys(2000, 5000)]);
    assert_eq!((s.detector.as_deref(), s.verdict), (None, Verdict::Growth));
    assert!(!s.reasons.iter().any(|r| r.contains("hash keys")));
}

/// Returns a heap with a weak map of `count` entries. If `refer` is true, the values refer to their keys.
fn weak_map(count: usize, refer: bool) -> Vec<u8> {
    held(|heap, _| {
        let boot = heap.boot();
        let map = class(heap, "java.util.WeakHashMap", &[("table", OBJECT)]);
        let entry = heap.add_class(
            "java.util.WeakHashMap$Entry",
            Some(boot.weak_reference),
            &[("value", OBJECT)],
            &[],
        );
        let part = class(heap, "com.acme.Part", &[("owner", OBJECT)]);
        let mut keys = Vec::new();
        let entries: Vec<Obj> = (0..count)
            .map(|_| {
                let key = bytes(heap, 60);
                keys.push(key);
                let target = if refer { key } else { bytes(heap, 60) };
                let inner = array(heap, vec![target]);
                let value = heap.add_instance(part, &[inner.into()]);
                let entry = heap.add_reference_of(entry, key);
                heap.set_field(entry, "value", value);
                entry
            })
            .collect();
        let table = array(heap, entries);
        let map = heap.add_instance(map, &[table.into()]);
        // If the map's values do not refer to its keys, this array keeps the keys alive.
        let used = array(heap, if refer { Vec::new() } else { keys });
        array(heap, vec![map, used])
    })
}

#[test]
fn weak_map_values_that_hold_their_keys_are_reported() {
    let s = first(vec![weak_map(500, true), weak_map(1500, true)]);
    assert_eq!(
        (s.detector.as_deref(), s.verdict),
        (Some("weak-map"), Verdict::Leak)
    );
    assert_eq!(
        s.reasons[0],
        "the values of a WeakHashMap refer to their keys, so no entry is ever removed (64 of 64 checked entries)"
    );
    let report = report(vec![weak_map(500, false), weak_map(1500, false)]);
    let of_map = |s: &&Suspect| s.path.iter().any(|p| p.contains("WeakHashMap"));
    let s = report.suspects.iter().find(of_map);
    if let Some(s) = s {
        assert_eq!(
            (s.detector.as_deref(), s.verdict),
            (None, Verdict::Growth),
            "{s:#?}"
        );
    }
    assert!(report.suspects.iter().all(|s| s.detector.is_none()));
}

/// Returns a heap with views of arrays. Each view has fields for its start, its length, and the length of its array.
fn views(count: usize, (start, len, all): (i32, i32, usize)) -> Vec<u8> {
    held(|heap, loader| {
        let view = class(
            heap,
            "com.acme.Header",
            &[("data", OBJECT), ("offset", INT), ("length", INT)],
        );
        heap.set_loader(view, loader);
        let one = |_| {
            let data = bytes(heap, all);
            heap.add_instance(view, &[data.into(), Value::Int(start), Value::Int(len)])
        };
        let views: Vec<Obj> = (0..count).map(one).collect();
        array(heap, views)
    })
}

#[test]
fn small_views_of_large_arrays_are_reported() {
    let s = first(vec![views(20, (64, 16, 4000)), views(60, (64, 16, 4000))]);
    assert_eq!(s.detector.as_deref(), Some("slice"));
    assert!(
        s.reasons[0].starts_with(
            "slices keep large arrays alive: 60 of 60 checked objects of class com.acme.Header use 960 B of 234.4 KiB"
        ),
        "{:?}",
        s.reasons
    );
    let s = first(vec![views(20, (0, 3900, 4000)), views(60, (0, 3900, 4000))]);
    assert_eq!(s.detector.as_deref(), None);
}

/// Returns a heap with direct buffers of one MiB each. It also has views of buffers, which own no memory, and mapped
/// files, which are not the program's memory.
fn buffers(owners: usize, views: usize, files: usize) -> Vec<u8> {
    held(|heap, _| {
        let boot = heap.boot();
        let buffer = class(
            heap,
            "java.nio.Buffer",
            &[("capacity", INT), ("address", FieldType::Long)],
        );
        let direct = heap.add_class(
            "java.nio.DirectByteBuffer",
            Some(buffer),
            &[("cleaner", OBJECT), ("att", OBJECT), ("fd", OBJECT)],
            &[],
        );
        let cleaner = heap.add_class(
            "jdk.internal.ref.Cleaner",
            Some(boot.phantom_reference),
            &[],
            &[],
        );
        let mut all = Vec::new();
        let descriptor = class(heap, "java.io.FileDescriptor", &[("fd", INT)]);
        for i in 0..owners + views + files {
            let one = heap.add_instance(direct, &[]);
            heap.set_field(one, "capacity", 1_i32 << 20);
            if i >= owners + views {
                let fd = heap.add_instance(descriptor, &[Value::Int(7)]);
                heap.set_field(one, "fd", fd);
            }
            if i < owners || i >= owners + views {
                let cleaner = heap.add_reference_of(cleaner, one);
                heap.set_field(one, "cleaner", cleaner);
            }
            all.push(one);
        }
        let filler = bytes(heap, 4000);
        all.push(filler);
        array(heap, all)
    })
}

#[test]
fn off_heap_memory_of_small_buffers_counts() {
    let s = first(vec![buffers(20, 0, 0), buffers(60, 0, 0)]);
    assert_eq!(
        (s.detector.as_deref(), &*s.holder, &*s.class),
        (
            Some("direct-buffer"),
            "com.acme.App.held",
            "java.nio.DirectByteBuffer"
        ),
        "{s:#?}"
    );
    assert_eq!(s.off_heap_bytes, [20 << 20, 60 << 20]);
    assert_eq!(
        s.reasons[0],
        "direct byte buffers own 60.0 MiB outside of the heap, up from 20.0 MiB (60 buffers, up from 20)"
    );
    assert!(s.growth.retained_bytes < 16 << 10, "{s:?}");
    assert!(
        report(vec![buffers(20, 0, 0), buffers(20, 40, 0)])
            .suspects
            .is_empty()
    );
    let mapped = report(vec![buffers(20, 0, 0), buffers(20, 0, 40)]);
    assert!(mapped.suspects.is_empty(), "{mapped:#?}");
}

fn number(of: usize) -> Value {
    Value::Int(i32::try_from(of).expect("a small number"))
}

/// Returns a heap with a timer's queue of `tasks` tasks, of which the first `cancelled` are cancelled.
fn timer(tasks: usize, cancelled: usize) -> Vec<u8> {
    held(|heap, loader| {
        let queue = class(
            heap,
            "java.util.TaskQueue",
            &[("queue", OBJECT), ("size", INT)],
        );
        let task = class(heap, "java.util.TimerTask", &[("state", INT)]);
        let own = heap.add_class("com.acme.Reminder", Some(task), &[("text", OBJECT)], &[]);
        heap.set_loader(own, loader);
        let one = |i: usize| {
            let text = bytes(heap, 60);
            let state = if i < cancelled { 3 } else { 1 };
            let one = heap.add_instance(own, &[text.into()]);
            heap.set_field(one, "state", state);
            one
        };
        let all: Vec<Obj> = (0..tasks).map(one).collect();
        let all = array(heap, all);
        // The queue's size includes one more task that is not in this array: the next one to run, which the timer
        // thread also holds.
        heap.add_instance(queue, &[all.into(), number(tasks + 1)])
    })
}

#[test]
fn cancelled_tasks_that_a_timer_keeps_are_counted() {
    let s = first(vec![timer(200, 150), timer(500, 450)]);
    assert_eq!(
        (s.detector.as_deref(), &*s.class),
        (Some("timer"), "com.acme.Reminder")
    );
    let told = |r: &String| {
        r.ends_with("450 of 500 checked tasks are cancelled but stay until their time comes: Timer.purge() removes cancelled tasks")
    };
    assert!(s.reasons.iter().any(told), "{:?}", s.reasons);
    let of_pools = |r: &String| r.contains("removes them at once");
    assert!(!s.reasons.iter().any(of_pools), "{:?}", s.reasons);
    let s = first(vec![timer(200, 0), timer(500, 0)]);
    assert!(s.reasons.iter().all(|r| !r.contains("cancelled")));
}

/// Returns a heap with a linked structure of `count` nodes. The field `field` holds the structure. The structure has a
/// field for each of its two ends.
fn two_ends(of: &str, field: &str, ends: [&str; 2], count: usize) -> Vec<u8> {
    held(|heap, loader| {
        let owner = class(heap, "com.acme.Owner", &[(field, OBJECT)]);
        heap.set_loader(owner, loader);
        let fields = [(ends[0], OBJECT), (ends[1], OBJECT), ("count", INT)];
        let list = class(heap, of, &fields);
        heap.set_loader(list, loader);
        let node = class(heap, "com.acme.Link", &[("text", OBJECT), ("next", OBJECT)]);
        heap.set_loader(node, loader);
        let mut first: Option<Obj> = None;
        let mut last: Option<Obj> = None;
        for _ in 0..count {
            let text = bytes(heap, 60);
            let next = first.map_or(Value::NULL, Value::from);
            let one = heap.add_instance(node, &[text.into(), next]);
            last = last.or(Some(one));
            first = Some(one);
        }
        let end = |o: Option<Obj>| o.map_or(Value::NULL, Value::from);
        let list = heap.add_instance(list, &[end(first), end(last), number(count)]);
        heap.add_instance(owner, &[list.into()])
    })
}

#[test]
fn a_queue_is_recognized_by_name_and_shape() {
    for (of, field, ends, detector) in [
        (
            "com.acme.WorkQueue",
            "work",
            ["head", "tail"],
            Some("queue"),
        ),
        (
            "com.acme.Chain",
            "backlog",
            ["first", "last"],
            Some("queue"),
        ),
        // The next structure has the fields of a queue, but not the name: a list also has fields for its first and last
        // element. The last structure has only the name of a queue.
        ("com.acme.Chain", "parts", ["first", "last"], None),
        ("com.acme.WorkQueue", "work", ["newest", "best"], None),
    ] {
        let s = first(vec![
            two_ends(of, field, ends, 500),
            two_ends(of, field, ends, 1500),
        ]);
        assert_eq!(
            s.detector.as_deref(),
            detector,
            "{of} {field} {ends:?}: {s:#?}"
        );
        let told = s
            .reasons
            .iter()
            .any(|r| r.contains("more elements enter the queue than are taken out (1,499 in"));
        assert_eq!(told, detector.is_some());
    }
}

/// Returns a heap with a queue whose elements hold lists. The number of elements never changes, but the lists grow.
fn lists_in_a_queue(each: usize) -> Vec<u8> {
    held(|heap, _| {
        let name = "java.util.concurrent.ArrayBlockingQueue";
        let queue = class(heap, name, &[("items", OBJECT)]);
        let list = class(heap, "java.util.ArrayList", &[("elementData", OBJECT)]);
        let one = |_| {
            let elements = (0..each).map(|_| bytes(heap, 60)).collect();
            let data = array(heap, elements);
            heap.add_instance(list, &[data.into()])
        };
        let lists: Vec<Obj> = (0..20).map(one).collect();
        let items = array(heap, lists);
        heap.add_instance(queue, &[items.into()])
    })
}

#[test]
fn content_of_queue_elements_is_not_in_the_queue() {
    let s = first([50, 100, 150].map(lists_in_a_queue).to_vec());
    assert_eq!((s.detector.as_deref(), s.verdict), (None, Verdict::Leak));
}

/// Returns a heap with deployments, each with its own loader that defines one class. If `apart` is true, all of these
/// classes have the same name. Otherwise, their names differ.
fn deployments(count: usize, apart: bool) -> Vec<u8> {
    held(|heap, app| {
        let boot = heap.boot();
        let loader_class = heap.add_class("com.acme.WebLoader", Some(boot.class_loader), &[], &[]);
        heap.set_loader(loader_class, app);
        let list = class(heap, "java.util.ArrayList", &[("elementData", OBJECT)]);
        let one = |i: usize| {
            let loader = heap.add_class_loader(loader_class, "web");
            let data = bytes(heap, 2000);
            let name = if apart {
                "com.acme.web.Servlet".to_owned()
            } else {
                format!("com.acme.web.Servlet{i}")
            };
            let servlet = heap.add_class(&name, Some(boot.object), &[], &[("data", Value::NULL)]);
            heap.set_loader(servlet, loader);
            heap.set_static(servlet, "data", data);
            loader
        };
        let all: Vec<Obj> = (0..count).map(one).collect();
        let all = array(heap, all);
        heap.add_instance(list, &[all.into()])
    })
}

/// Returns a heap with plugins. Each plugin holds its own class loader, and an array.
fn plugins(count: usize) -> Vec<u8> {
    held(|heap, app| {
        let boot = heap.boot();
        let loader_class = heap.add_class("com.acme.WebLoader", Some(boot.class_loader), &[], &[]);
        heap.set_loader(loader_class, app);
        let fields = [("loader", OBJECT), ("part", OBJECT)];
        let plugin = class(heap, "com.acme.Plugin", &fields);
        heap.set_loader(plugin, app);
        let one = |_| {
            let loader = heap.add_class_loader(loader_class, "plugin");
            let part = bytes(heap, 2000);
            heap.add_instance(plugin, &[loader.into(), part.into()])
        };
        let all: Vec<Obj> = (0..count).map(one).collect();
        array(heap, all)
    })
}

#[test]
fn loaders_of_former_deployments_are_reported() {
    let s = first(vec![deployments(5, true), deployments(40, true)]);
    assert_eq!(
        (s.detector.as_deref(), s.verdict, &*s.class),
        (Some("class-loader"), Verdict::Leak, "com.acme.WebLoader"),
        "{s:#?}"
    );
    assert!(
        s.reasons[0].contains(
            "class loader leak: com.acme.web.Servlet is defined by 40 loaders of class com.acme.WebLoader, up from 5"
        ),
        "{:?}",
        s.reasons
    );
    let pinned = "the class loaders are held by com.acme.App.held";
    assert!(s.reasons.iter().any(|r| r == pinned), "{:?}", s.reasons);
    let more = "the number of class loaders grew: ";
    assert!(!s.reasons.iter().any(|r| r.contains(more)));
    // Each plugin holds its loader.
    let s = first(vec![plugins(5), plugins(40)]);
    assert_eq!(s.detector.as_deref(), Some("class-loader"), "{s:#?}");
    assert!(s.reasons[0].contains("40 of class com.acme.WebLoader, up from 5"));
    // There is one deployment in the second dump and none in the first. A single new deployment may belong to start-up.
    let s = first(vec![
        deployments(0, true),
        deployments(1, true),
        deployments(20, true),
    ]);
    let new = "the number of objects grew, and their holders are new";
    assert!(s.reasons.iter().any(|r| r == new), "{:?}", s.reasons);
    assert_eq!(s.detector.as_deref(), Some("class-loader"));
    let report = report(vec![deployments(0, false), deployments(2, false)]);
    assert!(report.suspects.iter().all(|s| s.detector.is_none()));
    let s = first(vec![deployments(5, false), deployments(40, false)]);
    assert_eq!(
        (s.detector.as_deref(), s.verdict),
        (Some("class-loader"), Verdict::Growth)
    );
    assert_eq!(
        s.reasons[0],
        "the number of class loaders grew: 40 of class com.acme.WebLoader, up from 5"
    );
    assert!(!s.reasons.iter().any(|r| r.contains("class loader leak")));
    // The finding about class loaders must not be reported for other objects.
    let s = first(vec![keys(1000, 50), keys(2000, 50)]);
    assert!(!s.reasons.iter().any(|r| r.contains("loaders")));
}

/// Returns a heap in which an application field holds a JDK table. The table is an array whose element type is the
/// class `element`.
fn kept_in_arrays_of(element: &str, count: usize) -> Vec<u8> {
    held(|heap, loader| {
        let view = class(heap, "com.acme.View", &[("columns", OBJECT)]);
        let sheet = class(heap, "com.acme.Sheet", &[("changes", OBJECT)]);
        for own in [view, sheet] {
            heap.set_loader(own, loader);
        }
        let support = class(heap, "java.beans.Support", &[("of", OBJECT)]);
        let element = class(heap, element, &[]);
        let views: Vec<Obj> = (0..count)
            .map(|_| {
                let columns = bytes(heap, 100);
                heap.add_instance(view, &[columns.into()])
            })
            .collect();
        let all = heap.add_object_array(element, views);
        let support = heap.add_instance(support, &[all.into()]);
        heap.add_instance(sheet, &[support.into()])
    })
}

#[test]
fn elements_of_a_listener_array_are_listeners() {
    let of = |element| {
        let s = first(vec![
            kept_in_arrays_of(element, 1000),
            kept_in_arrays_of(element, 3000),
        ]);
        assert_eq!(&*s.holder, "com.acme.Sheet.changes");
        (s.detector, s.reasons)
    };
    let (detector, reasons) = of("java.beans.PropertyChangeListener");
    assert_eq!(detector.as_deref(), Some("listener"));
    assert_eq!(
        reasons[0],
        "listeners are added and not removed: com.acme.Sheet.changes holds 3,000 of class com.acme.View, up \
         from 1,000"
    );
    let (detector, reasons) = of("java.lang.Object");
    assert_eq!(detector, None);
    assert!(!reasons.iter().any(|r| r.contains("listener")));
}

/// Returns the first suspect of the report on a single dump.
fn alone(dump: Vec<u8>) -> Suspect {
    let mut report = common::alone(Source::from_bytes(dump));
    assert!(!report.suspects.is_empty());
    report.suspects.swap_remove(0)
}

#[test]
fn one_dump_alone_names_no_growth() {
    let told = |dump: Vec<u8>, detector: &str, sentence: &str| {
        let s = alone(dump);
        assert_eq!(s.detector.as_deref(), Some(detector), "{s:#?}");
        assert_eq!(s.reasons[0], sentence);
        let grew = |r: &String| r.contains("up from") || r.contains("grew");
        assert!(!s.reasons.iter().any(grew), "{s:#?}");
    };
    told(
        deployments(40, true),
        "class-loader",
        "class loaders of former deployments may still be in memory: com.acme.web.Servlet is defined by 40 loaders of class \
         com.acme.WebLoader",
    );
    told(
        kept_in_arrays_of("java.beans.PropertyChangeListener", 1000),
        "listener",
        "listeners wait to be called: com.acme.Sheet.changes holds 1,000 of class com.acme.View",
    );
    told(
        two_ends("com.acme.WorkQueue", "work", ["head", "tail"], 1500),
        "queue",
        "elements of a queue wait to be taken out (1,499 in a com.acme.WorkQueue)",
    );
    // The number that a JDK collection stores is complete. Counting the nodes misses the last element, because two
    // references hold it.
    told(
        two_ends(
            "java.util.concurrent.LinkedBlockingDeque",
            "work",
            ["first", "last"],
            1500,
        ),
        "queue",
        "elements of a queue wait to be taken out (1,500 in a java.util.concurrent.LinkedBlockingDeque)",
    );
    told(
        timer(1500, 0),
        "timer",
        "tasks wait in the queue of a timer (1,501 tasks)",
    );
    told(
        buffers(60, 0, 0),
        "direct-buffer",
        "direct byte buffers take 60.0 MiB outside of the heap (60 buffers)",
    );
}

#[test]
fn one_dump_alone_names_only_visible_patterns() {
    for dump in [
        deployments(40, false),
        kept_in_arrays_of("java.lang.Object", 1000),
        two_ends("com.acme.Chain", "parts", ["first", "last"], 1500),
        keys(2000, 5000),
    ] {
        let s = alone(dump);
        assert_eq!(s.detector, None, "{s:#?}");
        let words = [
            "loaders of former deployments",
            "listeners wait to be called",
            "elements of a queue wait",
        ];
        assert!(
            !s.reasons
                .iter()
                .any(|r| words.iter().any(|w| r.contains(w)))
        );
    }
}
