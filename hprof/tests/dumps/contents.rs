//! Tests collections with wrong fields: cycles, impossible sizes, references to objects of other kinds.

use hprof::answers::{Contents, ContentsKind, Value};
use hprof::{ObjectId, Options, Silent, Snapshot, Source};
use testdata::writer::{self, ClassId, Elements, FieldType, HeapBuilder, Obj, Ref};

use FieldType::{Int, Object};

fn read(heap: &HeapBuilder, target: Obj) -> Option<Contents> {
    let source = Source::from_bytes(heap.try_build().unwrap().bytes);
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let object = snapshot.find(ObjectId(heap.address(target))).unwrap();
    snapshot.contents(object, 0..20)
}

struct Heap {
    heap: HeapBuilder,
    object: ClassId,
}

impl Heap {
    fn new() -> Self {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let object = heap.boot().object;
        Self { heap, object }
    }

    fn class(&mut self, name: &str, fields: &[(&str, FieldType)]) -> ClassId {
        self.heap.add_class(name, Some(self.object), fields, &[])
    }
}

/// Returns a heap with a list, the list itself, and its nodes. The list has `nodes` nodes, and its field `size` has the
/// value `size`.
fn linked(size: i32, nodes: usize) -> (HeapBuilder, Obj, Vec<Obj>) {
    let mut made = Heap::new();
    let list = made.class("java.util.LinkedList", &[("size", Int), ("first", Object)]);
    let node = made.class(
        "java.util.LinkedList$Node",
        &[("item", Object), ("next", Object)],
    );
    let heap = &mut made.heap;
    let nodes: Vec<Obj> = (0..nodes).map(|_| heap.add_instance(node, &[])).collect();
    for pair in nodes.windows(2) {
        heap.set_field(pair[0], "next", pair[1]);
    }
    let list = heap.add_instance(list, &[size.into(), nodes[0].into()]);
    (made.heap, list, nodes)
}

#[test]
fn a_cyclic_chain_ends() {
    let (mut heap, list, nodes) = linked(1000, 5);
    let whole = read(&heap, list).unwrap();
    assert_eq!((whole.entries.len(), whole.whole), (5, false));
    heap.set_field(nodes[4], "next", nodes[1]);
    let round = read(&heap, list).unwrap();
    assert_eq!(
        (round.size, round.entries.len(), round.whole),
        (Some(1000), 5, false)
    );
    heap.set_field(nodes[2], "next", list);
    let astray = read(&heap, list).unwrap();
    assert_eq!((astray.entries.len(), astray.whole), (3, false));
    heap.set_field(nodes[2], "next", Ref::Null);
    heap.set_field(list, "size", 3);
    let right = read(&heap, list).unwrap();
    assert_eq!(
        (right.size, right.entries.len(), right.whole),
        (Some(3), 3, true)
    );
}

#[test]
fn impossible_sizes_are_detected() {
    for (size, held) in [(-1, 0), (9, 4), (i32::MAX, 4), (4, 4), (2, 2)] {
        let mut made = Heap::new();
        let list = made.class(
            "java.util.ArrayList",
            &[("size", Int), ("elementData", Object)],
        );
        let object = made.object;
        let heap = &mut made.heap;
        let array = heap.add_object_array(object, vec![Ref::Null; 4]);
        let list = heap.add_instance(list, &[size.into(), array.into()]);
        let found = read(heap, list).unwrap();
        let right = (0..=4).contains(&size);
        assert_eq!((found.entries.len(), found.whole), (held, right), "{size}");
        assert_eq!((found.kind, found.capacity), (ContentsKind::List, Some(4)));
    }
}

#[test]
fn ring_buffers_with_wrong_indexes_have_no_content() {
    for (head, count) in [
        (-1, 2),
        (4, 2),
        (0, 5),
        (i32::MIN, i32::MAX),
        (i32::MAX, i32::MAX),
    ] {
        let mut made = Heap::new();
        let fields = [("items", Object), ("takeIndex", Int), ("count", Int)];
        let queue = made.class("java.util.concurrent.ArrayBlockingQueue", &fields);
        let object = made.object;
        let heap = &mut made.heap;
        let array = heap.add_object_array(object, vec![Ref::Null; 4]);
        let queue = heap.add_instance(queue, &[array.into(), head.into(), count.into()]);
        let found = read(heap, queue).unwrap();
        assert_eq!(
            (found.entries.len(), found.whole),
            (0, false),
            "{head}, {count}"
        );
    }
}

/// Fields of a node in a hash table, in JDK 8 and later.
const NODE: [(&str, FieldType); 3] = [("key", Object), ("value", Object), ("next", Object)];

#[test]
fn tables_with_merging_chains_end() {
    let mut made = Heap::new();
    let map = made.class("java.util.HashMap", &[("size", Int), ("table", Object)]);
    let node = made.class("java.util.HashMap$Node", &NODE);
    let object = made.object;
    let heap = &mut made.heap;
    let nodes: Vec<Obj> = (0..4).map(|_| heap.add_instance(node, &[])).collect();
    for (from, to) in [(0, 1), (2, 3), (3, 2)] {
        heap.set_field(nodes[from], "next", nodes[to]);
    }
    let table = heap.add_object_array(
        object,
        [Ref::Null, nodes[0].into(), nodes[2].into(), nodes[1].into()],
    );
    let map = heap.add_instance(map, &[4.into(), table.into()]);
    let found = read(heap, map).unwrap();
    assert_eq!((found.size, found.capacity), (Some(4), Some(4)));
    assert_eq!((found.entries.len(), found.whole), (4, false));
}

#[test]
fn cyclic_trees_end() {
    let mut made = Heap::new();
    let map = made.class("java.util.TreeMap", &[("size", Int), ("root", Object)]);
    let fields = [
        ("key", Object),
        ("value", Object),
        ("left", Object),
        ("right", Object),
    ];
    let entry = made.class("java.util.TreeMap$Entry", &fields);
    let heap = &mut made.heap;
    let nodes: Vec<Obj> = (0..3).map(|_| heap.add_instance(entry, &[])).collect();
    heap.set_field(nodes[0], "left", nodes[1]);
    heap.set_field(nodes[0], "right", nodes[2]);
    let map = heap.add_instance(map, &[3.into(), nodes[0].into()]);
    let right = read(heap, map).unwrap();
    assert_eq!((right.entries.len(), right.whole), (3, true));
    heap.set_field(nodes[1], "left", nodes[0]);
    let ring = read(heap, map).unwrap();
    assert_eq!((ring.entries.len(), ring.whole), (0, false));
}

#[test]
fn wrappers_of_themselves_have_no_content() {
    let mut made = Heap::new();
    let class = made.class(
        "java.util.Collections$UnmodifiableCollection",
        &[("c", Object)],
    );
    let heap = &mut made.heap;
    let list = heap.add_instance(class, &[]);
    heap.set_field(list, "c", list);
    assert_eq!(read(heap, list), None);
}

#[test]
fn builders_of_jdk_8_have_chars() {
    let mut made = Heap::new();
    let fields = [("value", Object), ("count", Int)];
    let class = made.class("java.lang.AbstractStringBuilder", &fields);
    let heap = &mut made.heap;
    let array = heap.add_primitive_array(Elements::Char(
        "5 \u{20ac}, and room".encode_utf16().collect(),
    ));
    let builder = heap.add_instance(class, &[array.into(), 3.into()]);
    let found = read(heap, builder).unwrap();
    assert_eq!(found.text.as_deref(), Some("5 \u{20ac}"));
    assert_eq!(
        (found.size, found.capacity, found.whole),
        (Some(3), Some(13), true)
    );
}

#[test]
fn application_classes_are_not_collections() {
    let mut made = Heap::new();
    let class = made.class(
        "com.acme.ArrayList",
        &[("size", Int), ("elementData", Object)],
    );
    let fields = [("value", FieldType::Long)];
    let long = made.class("java.util.concurrent.atomic.AtomicLong", &fields);
    let heap = &mut made.heap;
    let list = heap.add_instance(class, &[]);
    let long = heap.add_instance(long, &[(1_i64 << 40).into()]);
    assert_eq!(read(heap, list), None);
    let found = read(heap, long).unwrap();
    assert_eq!(found.entries[0].value, Value::Long(1 << 40));
}
