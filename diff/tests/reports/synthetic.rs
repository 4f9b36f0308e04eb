//! Tests comparisons of heaps in which every object is known.

use crate::common;
use heapdiff_diff::Report;
use hprof::Source;
use testdata::writer::{self, Elements, FieldType, HeapBuilder, Obj, Value};

fn report(dumps: Vec<Vec<u8>>) -> Report {
    common::report(dumps.into_iter().map(Source::from_bytes))
}

fn filtered(dumps: Vec<Vec<u8>>, classes: &dyn Fn(&[&str]) -> bool) -> Report {
    common::filtered(dumps.into_iter().map(Source::from_bytes), classes)
}

/// Returns a dump of an application: a registry whose list holds `entries` entries of 1 KB, a steady cache of 500, and
/// a hand-made queue of `queued` messages. Addresses are shifted by `moved` bytes, as a GC moves objects between dumps.
fn heap(entries: usize, queued: usize, moved: u64) -> Vec<u8> {
    rooted(entries, queued, moved, false)
}

/// Returns the same dump as [`heap`]. If `pinned` is true, a GC root holds the registry's class, in addition to the
/// class's loader.
fn rooted(entries: usize, queued: usize, moved: u64, pinned: bool) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    heap.add_gap(moved);
    let object = FieldType::Object;
    let loader_class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
    let loader = heap.add_class_loader(loader_class, "app");
    let list = heap.add_class(
        "java.util.ArrayList",
        Some(boot.object),
        &[("elementData", object), ("size", FieldType::Int)],
        &[],
    );
    let entry = heap.add_class(
        "com.acme.Entry",
        Some(boot.object),
        &[("payload", object)],
        &[],
    );
    let message = heap.add_class(
        "com.acme.Message",
        Some(boot.object),
        &[("next", object), ("body", object)],
        &[],
    );
    let queue = heap.add_class(
        "com.acme.Queue",
        Some(boot.object),
        &[("head", object)],
        &[],
    );
    let cache = heap.add_class(
        "com.acme.Cache",
        Some(boot.object),
        &[],
        &[("values", Value::NULL)],
    );
    let registry = heap.add_class(
        "com.acme.Registry",
        Some(boot.object),
        &[],
        &[("entries", Value::NULL), ("queue", Value::NULL)],
    );
    for class in [entry, message, queue, cache, registry] {
        heap.set_loader(class, loader);
    }
    let bytes =
        |heap: &mut HeapBuilder, n: usize| heap.add_primitive_array(Elements::Byte(vec![7; n]));
    let held: Vec<Obj> = (0..entries)
        .map(|_| {
            let payload = bytes(&mut heap, 1000);
            heap.add_instance(entry, &[payload.into()])
        })
        .collect();
    let array = heap.add_object_array(boot.object, held);
    let entries = heap.add_instance(list, &[array.into(), Value::Int(1)]);
    heap.set_static(registry, "entries", entries);
    let values: Vec<Obj> = (0..500).map(|_| bytes(&mut heap, 300)).collect();
    let values = heap.add_object_array(boot.object, values);
    heap.set_static(cache, "values", values);
    let mut head: Option<Obj> = None;
    for _ in 0..queued {
        let body = bytes(&mut heap, 40);
        head = Some(heap.add_instance(
            message,
            &[head.map_or(Value::NULL, Into::into), body.into()],
        ));
    }
    let queue = heap.add_instance(queue, &[head.map_or(Value::NULL, Into::into)]);
    heap.set_static(registry, "queue", queue);
    heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, loader);
    if pinned {
        heap.add_root(writer::Root::JniGlobal { global_ref: 2 }, registry);
    }
    heap.build()
}

#[test]
fn the_growing_list_is_named_and_measured() {
    let report = report(vec![heap(1000, 0, 0), heap(1500, 0, 4096)]);
    assert_eq!(report.suspects.len(), 1, "{:#?}", report.suspects);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.holder, &*s.class, &*s.root),
        (
            "com.acme.Registry.entries",
            "com.acme.Entry",
            "static com.acme.Registry"
        )
    );
    assert_eq!(
        s.path,
        [
            "com.acme.Registry.entries",
            "java.util.ArrayList.elementData",
            "java.lang.Object[*]"
        ]
    );
    assert_eq!((&s.objects[..], s.growth.objects), (&[1000, 1500][..], 500));
    // An entry has 16 bytes. Its payload has a header of 16 bytes and 1,000 bytes of content.
    assert_eq!(
        (s.growth.shallow_bytes, s.growth.retained_bytes),
        (500 * 16, 500 * (16 + 1016))
    );
    // The list's array has 500 more elements, which are references of 4 bytes each.
    assert_eq!(report.delta.shallow_bytes, 500 * (16 + 1016) + 500 * 4);
    assert_eq!(report.delta.objects, 1000);
}

#[test]
fn two_independent_leaks_are_two_suspects_in_order() {
    let report = report(vec![heap(1000, 1000, 0), heap(1200, 4000, 640)]);
    let found: Vec<(&str, &str, i64)> = report
        .suspects
        .iter()
        .map(|s| (&*s.holder, &*s.class, s.growth.objects))
        .collect();
    assert_eq!(
        found,
        [
            ("com.acme.Queue.head", "com.acme.Message", 3000),
            ("com.acme.Registry.entries", "com.acme.Entry", 200)
        ]
    );
    assert_eq!(
        report.suspects[0].path,
        ["com.acme.Registry.queue", "com.acme.Queue.head"]
    );
    assert_eq!([report.suspects[0].rank, report.suspects[1].rank], [1, 2]);
}

#[test]
fn a_heap_does_not_differ_from_itself() {
    let a = heap(1000, 500, 0);
    for other in [a.clone(), heap(1000, 500, 65536)] {
        let report = report(vec![a.clone(), other]);
        assert_eq!((report.delta.objects, report.delta.shallow_bytes), (0, 0));
        assert!(report.classes.is_empty(), "{:?}", report.classes);
        assert!(report.suspects.is_empty());
    }
}

#[test]
fn a_diff_mirrors_the_reverse_diff() {
    let (a, b) = (heap(1000, 2500, 0), heap(1700, 500, 96));
    let there = report(vec![a.clone(), b.clone()]);
    let back = report(vec![b, a]);
    assert_eq!(there.delta.objects, -back.delta.objects);
    assert_eq!(there.delta.shallow_bytes, -back.delta.shallow_bytes);
    let mut forward = there.classes;
    let mut backward = back.classes;
    for class in &mut backward {
        class.objects.reverse();
        class.shallow_bytes.reverse();
        class.retained_bytes.reverse();
    }
    for list in [&mut forward, &mut backward] {
        list.sort_by(|a, b| a.class.cmp(&b.class));
    }
    assert_eq!(forward, backward);
    // If the order of the dumps is reversed, the holder that grew now shrinks. Only a holder that grows is a suspect.
    assert_eq!(
        there
            .suspects
            .iter()
            .map(|s| &*s.holder)
            .collect::<Vec<_>>(),
        ["com.acme.Registry.entries"]
    );
    assert_eq!(
        back.suspects.iter().map(|s| &*s.holder).collect::<Vec<_>>(),
        ["com.acme.Queue.head"]
    );
}

#[test]
fn each_dump_has_its_figure() {
    let report = report(vec![
        heap(100, 0, 0),
        heap(200, 0, 0),
        heap(300, 0, 0),
        heap(400, 0, 0),
    ]);
    assert_eq!(report.suspects[0].objects, [100, 200, 300, 400]);
    let entry = report
        .classes
        .iter()
        .find(|c| c.class == "com.acme.Entry")
        .unwrap();
    assert_eq!(entry.objects, [100, 200, 300, 400]);
    assert_eq!(
        entry.retained_bytes,
        [100_u64, 200, 300, 400].map(|n| n * 1032)
    );
    assert_eq!(entry.loader.as_deref(), Some("com.acme.Loader"));
    assert!(
        report.suspects[0]
            .reasons
            .iter()
            .any(|r| r.contains("3 of 3"))
    );
}

#[test]
fn a_new_structure_is_a_suspect() {
    let report = report(vec![heap(0, 0, 0), heap(1000, 0, 0)]);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.holder, &*s.class, &s.objects[..]),
        (
            "com.acme.Registry.entries",
            "com.acme.Entry",
            &[0, 1000][..]
        )
    );
}

#[test]
fn a_buffer_that_grows_in_place_is_named() {
    let text = |len: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let log = heap.add_class(
            "com.acme.Log",
            Some(boot.object),
            &[("text", FieldType::Object)],
            &[("shared", Value::NULL)],
        );
        let bytes = heap.add_primitive_array(Elements::Byte(vec![32; len]));
        let shared = heap.add_instance(log, &[bytes.into()]);
        if len > 0 {
            heap.set_static(log, "shared", shared);
        }
        heap.build()
    };
    let new = report(vec![text(0), text(900_000)]);
    let reasons = &new.suspects[0].reasons;
    assert_eq!(reasons[0], "the first dump has no such objects");
    let report = report(vec![text(10_000), text(900_000)]);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.class, &s.objects[..], s.growth.retained_bytes),
        ("byte[]", &[1, 1][..], 890_000)
    );
    assert!(
        s.path.ends_with(&["com.acme.Log.text".to_owned()]),
        "{:?}",
        s.path
    );
    assert!(
        s.reasons[0]
            .starts_with("the total size of the objects grew, and their number did not change")
    );
}

/// The heap has `count` logs. Each log has a buffer.
#[test]
fn buffers_that_grow_in_place_are_counted() {
    let logs = |count: usize, len: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let fields = [("text", FieldType::Object)];
        let log = heap.add_class("com.acme.Log", Some(boot.object), &fields, &[]);
        let statics = [("all", Value::NULL)];
        let logs = heap.add_class("com.acme.Logs", Some(boot.object), &[], &statics);
        let one = |heap: &mut HeapBuilder| {
            let bytes = heap.add_primitive_array(Elements::Byte(vec![32; len]));
            heap.add_instance(log, &[bytes.into()])
        };
        let all: Vec<Obj> = (0..count).map(|_| one(&mut heap)).collect();
        let all = heap.add_object_array(boot.object, all);
        heap.set_static(logs, "all", all);
        heap.build()
    };
    let reason = |count, len| {
        let report = report(vec![logs(40, 1000), logs(count, len)]);
        report.suspects[0].reasons[0].clone()
    };
    let larger = "the total size of the objects grew, and their number changed from 40 to 41";
    assert_eq!(reason(41, 30_000), larger);
    assert_ne!(reason(400, 1000), larger);
}

#[test]
fn a_tree_of_one_class_is_one_step() {
    let tree = |depth: u32| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let object = FieldType::Object;
        let node = heap.add_class(
            "com.acme.TreeNode",
            Some(boot.object),
            &[("left", object), ("right", object), ("value", object)],
            &[],
        );
        let index = heap.add_class(
            "com.acme.Index",
            Some(boot.object),
            &[],
            &[("root", Value::NULL)],
        );
        let loader_class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
        let loader = heap.add_class_loader(loader_class, "app");
        heap.set_loader(node, loader);
        heap.set_loader(index, loader);
        heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, loader);
        let mut level: Vec<Value> = vec![Value::NULL; 1 << depth];
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| {
                    let value = heap.add_primitive_array(Elements::Byte(vec![1; 64]));
                    heap.add_instance(node, &[pair[0], pair[1], value.into()])
                        .into()
                })
                .collect();
        }
        heap.set_static(index, "root", level[0]);
        heap.build()
    };
    let report = report(vec![tree(9), tree(12)]);
    assert_eq!(report.suspects.len(), 1, "{:#?}", report.suspects);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.holder, &*s.class, &s.objects[..]),
        ("com.acme.Index.root", "com.acme.TreeNode", &[511, 4095][..])
    );
    // A node has 24 bytes, and its value has 80.
    assert_eq!(s.growth.retained_bytes, (4095 - 511) * (24 + 80));
}

/// Static fields of two classes hold the same messages, so only the virtual root dominates them.
#[test]
fn shared_objects_are_traced_to_their_fields() {
    let heap = |messages: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let loader_class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
        let loader = heap.add_class_loader(loader_class, "app");
        let message = heap.add_class(
            "com.acme.Message",
            Some(boot.object),
            &[("body", FieldType::Object)],
            &[],
        );
        let index = heap.add_class(
            "com.acme.Index",
            Some(boot.object),
            &[],
            &[("table", Value::NULL)],
        );
        let broker = heap.add_class(
            "com.acme.Broker",
            Some(boot.object),
            &[],
            &[("pending", Value::NULL)],
        );
        for class in [message, index, broker] {
            heap.set_loader(class, loader);
            heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, class);
        }
        let all: Vec<Obj> = (0..messages)
            .map(|_| {
                let body = heap.add_primitive_array(Elements::Byte(vec![1; 200]));
                heap.add_instance(message, &[body.into()])
            })
            .collect();
        let table = heap.add_object_array(boot.object, all.clone());
        let pending = heap.add_object_array(boot.object, all);
        heap.set_static(index, "table", table);
        heap.set_static(broker, "pending", pending);
        heap.build()
    };
    let report = report(vec![heap(500), heap(2500)]);
    let s = &report.suspects[0];
    assert_eq!((&*s.class, s.growth.objects), ("com.acme.Message", 2000));
    assert_eq!(
        (&*s.holder, &*s.root),
        ("com.acme.Index.table", "static com.acme.Index"),
        "{s:#?}"
    );
    assert_eq!(s.path, ["com.acme.Index.table", "java.lang.Object[*]"]);
    let told = |r: &String| r.contains("com.acme.Index.table and com.acme.Broker.pending");
    assert!(s.reasons.iter().any(told), "{:?}", s.reasons);
}

#[test]
fn a_layout_in_doubt_is_reported_and_nothing_is_missing() {
    let heap = || {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        heap.set_system_properties(&[
            ("java.vm.name", "OpenJDK 64-Bit Server VM"),
            ("java.specification.version", "21"),
        ]);
        for _ in 0..50 {
            let object = heap.add_instance(boot.object, &[]);
            heap.add_object_array(boot.object, [object; 5]);
        }
        heap.build()
    };
    for snapshot in report(vec![heap(), heap()]).snapshots {
        assert_eq!(snapshot.layout.reference, 4);
        assert!(!snapshot.partial);
        assert_eq!(snapshot.warnings.len(), 1, "{:?}", snapshot.warnings);
        assert!(snapshot.warnings[0].contains("sizes may be wrong"));
    }
}

/// One table holds titles in every dump. In some dumps, a second table holds the same titles. The number of titles does
/// not change; only the number of references to them does.
#[test]
fn more_references_alone_are_not_a_suspect() {
    let heap = |titles: usize, twice: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let mut holder = |name| {
            let class = heap.add_class(name, Some(boot.object), &[], &[("table", Value::NULL)]);
            heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, class);
            class
        };
        let [index, archive] = ["com.acme.Index", "com.acme.Archive"].map(&mut holder);
        let all: Vec<Obj> = (0..titles)
            .map(|i| heap.add_string(&format!("title of {i}")))
            .collect();
        let table = heap.add_object_array(boot.object, all.clone());
        heap.set_static(index, "table", table);
        let second = heap.add_object_array(boot.object, vec![writer::Ref::Null; 3000]);
        for (i, &title) in all.iter().rev().take(twice).enumerate() {
            heap.set_element(second, i, title);
        }
        heap.set_static(archive, "table", second);
        heap.build()
    };
    let moved = report(vec![heap(2000, 0), heap(2000, 2000)]);
    assert!(moved.suspects.is_empty(), "{:#?}", moved.suspects);
    // If the number of titles grows, the titles are a suspect.
    let grown = report(vec![heap(1000, 1000), heap(3000, 3000)]);
    let classes: Vec<&str> = grown.suspects.iter().map(|s| &*s.class).collect();
    assert_eq!(classes, ["java.lang.String"]);
    assert_eq!(grown.suspects[0].growth.objects, 2000);
}

#[test]
fn suspects_are_chosen_by_their_class_or_their_holders() {
    let dumps = vec![heap(1000, 1000, 0), heap(1200, 4000, 640)];
    let with = |wanted: &'static str| {
        let report = filtered(dumps.clone(), &|names| names.contains(&wanted));
        let suspects = report.suspects.iter();
        suspects
            .map(|s| (s.rank, s.holder.clone()))
            .collect::<Vec<_>>()
    };
    let queue = [(1, "com.acme.Queue.head".to_owned())];
    let registry = [(1, "com.acme.Registry.entries".to_owned())];
    assert_eq!(with("com.acme.Message"), queue);
    assert_eq!(with("com.acme.Queue"), queue);
    assert_eq!(with("com.acme.Registry"), registry);
    // A filter does not apply to the classes between the holder and the content of a suspect, nor to names of fields.
    for none in ["java.util.ArrayList", "com.acme.Registry.entries"] {
        assert_eq!(with(none), [], "{none}");
    }
}

#[test]
fn a_class_is_compared_with_itself_for_any_holder() {
    let steady = report(vec![heap(1000, 0, 0), rooted(1000, 0, 64, true)]);
    assert!(steady.suspects.is_empty(), "{:#?}", steady.suspects);
    let grown = report(vec![rooted(1000, 0, 0, true), heap(1500, 0, 64)]);
    assert_eq!(grown.suspects[0].objects, [1000, 1500]);
}

/// A static field of an application class and a static field of a JDK class each hold objects of 1 KB.
#[test]
fn of_two_equal_suspects_the_application_comes_first() {
    let heap = |own: usize, runtime: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let loader_class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
        let loader = heap.add_class_loader(loader_class, "app");
        heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, loader);
        let kept = [
            ("com.acme.Store", "com.acme.Item", own),
            ("sun.misc.Queue", "sun.misc.Ticket", runtime),
        ];
        for (holder, item, count) in kept {
            let statics = [("all", Value::NULL)];
            let holder = heap.add_class(holder, Some(boot.object), &[], &statics);
            let fields = [("body", FieldType::Object)];
            let item = heap.add_class(item, Some(boot.object), &fields, &[]);
            if count == own {
                heap.set_loader(holder, loader);
                heap.set_loader(item, loader);
            }
            let all: Vec<Obj> = (0..count)
                .map(|_| {
                    let body = heap.add_primitive_array(Elements::Byte(vec![1; 1000]));
                    heap.add_instance(item, &[body.into()])
                })
                .collect();
            let all = heap.add_object_array(boot.object, all);
            heap.set_static(holder, "all", all);
        }
        heap.build()
    };
    let holders = |before, after| {
        let suspects = report(vec![before, after]).suspects;
        suspects.into_iter().map(|s| s.holder).collect::<Vec<_>>()
    };
    let (own, runtime) = ("com.acme.Store.all", "sun.misc.Queue.all");
    assert_eq!(holders(heap(101, 100), heap(401, 500)), [own, runtime]);
    assert_eq!(holders(heap(101, 100), heap(201, 500)), [runtime, own]);
}

#[test]
fn classes_of_one_name_are_one_line() {
    let heap = |counts: [usize; 2]| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let loader_class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
        for (i, count) in counts.into_iter().enumerate() {
            let loader = heap.add_class_loader(loader_class, "app");
            let global_ref = 1 + i as u64;
            heap.add_root(writer::Root::JniGlobal { global_ref }, loader);
            let fields = [("body", FieldType::Object)];
            let item = heap.add_class("com.acme.Item", Some(boot.object), &fields, &[]);
            heap.set_loader(item, loader);
            for _ in 0..count {
                let body = heap.add_primitive_array(Elements::Byte(vec![1; 1000]));
                let object = heap.add_instance(item, &[body.into()]);
                heap.add_root(writer::Root::JniGlobal { global_ref: 9 }, object);
            }
        }
        heap.build()
    };
    let report = report(vec![heap([10, 20]), heap([40, 20])]);
    let lines: Vec<_> = report
        .classes
        .iter()
        .filter(|c| c.class == "com.acme.Item")
        .map(|c| (&c.objects[..], &c.retained_bytes[..]))
        .collect();
    // An item has 16 bytes. The array that it holds has a header of 16 bytes and 1,000 bytes of content.
    assert_eq!(lines, [(&[30, 60][..], &[30 * 1032, 60 * 1032][..])]);
}
