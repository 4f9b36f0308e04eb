//! Tests long arrays. Several tasks follow the references of one array at the same time.

use hprof::dominators::Node;
use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{self, Elements, FieldType, HeapBuilder, Obj, Value};

/// Returns a dump in which a static field holds an array with `slots` elements. The elements refer to the same
/// `entries` objects again and again. Each of these objects holds an object that has no other referrer.
fn heap(slots: usize, entries: usize) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let object = FieldType::Object;
    let entry = heap.add_class(
        "com.acme.Entry",
        Some(boot.object),
        &[("value", object)],
        &[],
    );
    let table = heap.add_class(
        "com.acme.Table",
        Some(boot.object),
        &[],
        &[("all", Value::NULL)],
    );
    let one = |_| {
        let inner = heap.add_primitive_array(Elements::Byte(vec![1; 8]));
        let value = heap.add_instance(entry, &[inner.into()]);
        heap.add_instance(entry, &[value.into()])
    };
    let entries: Vec<Obj> = (0..entries).map(one).collect();
    let all = entries.iter().copied().cycle().take(slots);
    let all: Vec<Obj> = all.collect();
    let all = heap.add_object_array(boot.object, all);
    heap.set_static(table, "all", all);
    heap.build()
}

/// Opens the dump many times. A fault shows only if two tasks work on the same object at the same time, which is rare.
fn counts(dump: &[u8]) -> Vec<u64> {
    let open = || {
        let source = Source::from_bytes(dump.to_vec());
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        snapshot.tree().retained_objects(Node::ROOT)
    };
    let mut counts: Vec<u64> = (0..60).map(|_| open()).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[test]
fn the_last_array_is_followed_once() {
    let short = counts(&heap(1, 1));
    let long = counts(&heap(1500, 1500));
    assert_eq!(long, [short[0] + 3 * 1499]);
}

#[test]
fn an_array_that_refers_twice_to_its_elements_holds_them_once() {
    let once = counts(&heap(20_000, 20_000));
    let twice = counts(&heap(40_000, 20_000));
    assert_eq!(once, twice);
    assert_eq!(once.len(), 1);
}
