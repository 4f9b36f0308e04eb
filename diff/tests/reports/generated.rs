//! Tests classes that are generated while a program runs. Their names differ from run to run. A comparison has to treat
//! them as the same classes.

use crate::common;
use heapdiff_diff::samples::AgentObjects;
use heapdiff_diff::{Report, WasteSummary};
use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{self, Elements, FieldType, HeapBuilder, Obj, Value};

/// Returns a heap with a registry of `count` listeners. Each listener has its own class and captures an array of
/// `captured` bytes.
fn heap(names: &dyn Fn(usize) -> String, count: usize, captured: usize) -> HeapBuilder {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let loader = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
    let loader = heap.add_class_loader(loader, "app");
    heap.add_root(writer::Root::JniGlobal { global_ref: 1 }, loader);
    let statics = [("listeners", Value::NULL)];
    let registry = heap.add_class("com.acme.Registry", Some(boot.object), &[], &statics);
    heap.set_loader(registry, loader);
    let listeners: Vec<Obj> = (0..count)
        .map(|i| {
            let fields = [("arg$1", FieldType::Object)];
            let class = heap.add_class(&names(i), Some(boot.object), &fields, &[]);
            heap.set_loader(class, loader);
            let captured = heap.add_primitive_array(Elements::Byte(vec![1; captured]));
            heap.add_instance(class, &[captured.into()])
        })
        .collect();
    let array = heap.add_object_array(boot.object, listeners);
    heap.set_static(registry, "listeners", array);
    heap
}

fn report(dumps: [HeapBuilder; 2]) -> Report {
    common::report(dumps.map(|heap| Source::from_bytes(heap.build())))
}

#[test]
fn small_lambdas_of_one_line_are_one_suspect() {
    let names = |i| format!("com.acme.Main$$Lambda$14/0x{:016x}", 0x8000_0000 + 1024 * i);
    let report = report([heap(&names, 300, 40), heap(&names, 3000, 40)]);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.holder, &*s.class, &s.objects[..]),
        (
            "com.acme.Registry.listeners",
            "com.acme.Main$$Lambda",
            &[300, 3000][..]
        ),
        "{:#?}",
        report.suspects
    );
    // A lambda has 16 bytes. The array that it captures has a header of 16 bytes and 40 bytes of content.
    assert_eq!(s.growth.retained_bytes, 2700 * (16 + 56));
    let lines = report.classes.iter();
    let lines: Vec<_> = lines.filter(|c| c.class.contains("Lambda")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].objects, [300, 3000]);
}

#[test]
fn generated_names_that_differ_between_runs_are_matched() {
    for (first, second) in [
        (
            "com.acme.Main$$Lambda/0x00007f00{}",
            "com.acme.Main$$Lambda/0x00007e11{}",
        ),
        ("jdk.proxy1.$Proxy1{}", "jdk.proxy2.$Proxy7{}"),
        (
            "com.acme.Bean$$EnhancerBySpringCGLIB$$1a{}",
            "com.acme.Bean$$EnhancerBySpringCGLIB$$9f{}",
        ),
    ] {
        let name = |form: &'static str| move |i: usize| form.replace("{}", &format!("{i:04}"));
        let report = report([
            heap(&name(first), 2000, 400),
            heap(&name(second), 2000, 400),
        ]);
        assert!(report.suspects.is_empty(), "{:#?}", report.suspects);
        assert!(report.classes.is_empty(), "{:?}", report.classes);
    }
}

#[test]
fn similar_names_written_by_people_stay_separate() {
    let names = |i| format!("com.acme.Listener{i}");
    let report = report([heap(&names, 3, 40_000), heap(&names, 4, 40_000)]);
    let lines = report.classes.iter();
    assert_eq!(lines.filter(|c| c.class.contains("Listener")).count(), 1);
    assert!(
        report
            .classes
            .iter()
            .any(|c| c.class == "com.acme.Listener3")
    );
}

#[test]
fn waste_has_the_same_name_in_every_run() {
    let names = |i| format!("com.acme.Main$$Lambda$14/0x{:016x}", 0x8000_0000 + 1024 * i);
    let mut heap = heap(&names, 3, 1000);
    let boot = heap.boot();
    let class = heap.add_class("com.acme.Rows/0x00007f12", Some(boot.object), &[], &[]);
    let nothing = heap.add_object_array(class, vec![writer::Ref::Null; 100]);
    heap.add_root(writer::Root::JniGlobal { global_ref: 2 }, nothing);
    let dump = Source::from_bytes(heap.build());
    let snapshot = Snapshot::of(dump, &Options::default(), &Silent).unwrap();
    let own = AgentObjects::find(&snapshot);
    let waste = WasteSummary::new(&snapshot, &own, 5, &Silent).unwrap();
    let waste = WasteSummary::compared(&[waste], 5).waste;
    let holders = waste.kinds.iter().flat_map(|k| &k.holders);
    let holders: Vec<&str> = holders.map(|h| &*h.holder).collect();
    assert!(
        holders.contains(&"com.acme.Main$$Lambda.arg$1"),
        "{waste:#?}"
    );
    let examples = waste.kinds.iter().flat_map(|k| &k.examples);
    let classes: Vec<&str> = examples.map(|e| &*e.class).collect();
    assert!(classes.contains(&"com.acme.Rows[]"), "{waste:#?}");
}
