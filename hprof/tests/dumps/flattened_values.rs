//! Tests flattened values: values of a value class (JEP 401) that HotSpot stores inside an object or an array. The dump
//! has them as records with the made-up ids 1, 2, 3, ...

use hprof::answers::Histogram;
use hprof::sizes::LayoutSource;
use hprof::{ObjectId, Options, Silent, Snapshot, Source};
use testdata::writer::{self, FieldType, HeapBuilder, Obj, Root, Value};

/// Number of elements in the array of values.
const ELEMENTS: usize = 40;
/// Number of objects with a value in a field.
const HOLDERS: usize = 10;
/// Bytes of a flattened value: a reference of 4 bytes and a null marker, rounded up to a power of two.
const FLATTENED: u64 = 8;

struct Built {
    heap: HeapBuilder,
    flattened: Vec<Obj>,
    /// Objects with their sizes in a JVM with value classes.
    sized: Vec<(Obj, u64)>,
}

/// Adds a gap of `more` bytes after an object: the bytes by which the object is larger than in a JVM without value
/// classes.
fn sized(heap: &mut HeapBuilder, object: Obj, more: u64) -> (Obj, u64) {
    heap.add_gap(more);
    (object, heap.shallow_size(object) + more)
}

/// Builds a heap with values of the class `com.acme.Name`, which has one reference.
fn built() -> Built {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let fields = [("text", FieldType::Object)];
    let name = heap.add_class("com.acme.Name", Some(boot.object), &fields, &[]);
    let fields = [("name", FieldType::Object), ("number", FieldType::Int)];
    let holder = heap.add_class("com.acme.Holder", Some(boot.object), &fields, &[]);
    let texts: Vec<Obj> = (0..ELEMENTS)
        .map(|i| heap.add_string(&format!("text {i}")))
        .collect();
    let mut all = Vec::new();
    let array = heap.add_object_array(name, vec![None::<Obj>; ELEMENTS]);
    all.push(sized(&mut heap, array, ELEMENTS as u64 * (FLATTENED - 4)));
    // All elements of this array are null.
    let nulls = heap.add_object_array(name, [None::<Obj>; 3]);
    all.push(sized(&mut heap, nulls, 8));
    let plain = heap.add_object_array(boot.object, texts.iter().copied());
    all.push(sized(&mut heap, plain, 0));
    let mut holders = Vec::new();
    for _ in 0..HOLDERS {
        let object = heap.add_instance(holder, &[Value::NULL, Value::Int(7)]);
        holders.push(object);
        all.push(sized(&mut heap, object, 8));
    }
    // The null marker of a value that is an object of its own makes the object larger by a word.
    let buffered = heap.add_instance(name, &[texts[0].into()]);
    all.push(sized(&mut heap, buffered, 8));
    let mut flattened = Vec::new();
    for i in 0..ELEMENTS + HOLDERS {
        let value = heap.add_instance(name, &[texts[i % ELEMENTS].into()]);
        heap.set_address(value, 1 + flattened.len() as u64);
        flattened.push(value);
        match i.checked_sub(ELEMENTS) {
            None => heap.set_element(array, i, value),
            Some(i) => heap.set_field(holders[i], "name", value),
        }
    }
    for &(object, _) in &all {
        heap.add_root(Root::JniGlobal { global_ref: 0 }, object);
    }
    Built {
        heap,
        flattened,
        sized: all,
    }
}

fn open(bytes: Vec<u8>) -> (Snapshot, Histogram) {
    let source = || Source::from_bytes(bytes.clone());
    let mut options = Options::default();
    options.holders = true;
    (
        Snapshot::of(source(), &options, &Silent).unwrap(),
        Histogram::from_source(source(), &options, &Silent).unwrap(),
    )
}

#[test]
fn flattened_values_are_part_of_their_containers() {
    let built = built();
    let (snapshot, histogram) = open(built.heap.try_build().unwrap().bytes);
    let find = |object| snapshot.find(ObjectId(built.heap.address(object))).unwrap();
    for layout in [snapshot.layout(), histogram.layout()] {
        assert_eq!(layout.source, LayoutSource::Addresses);
        assert_eq!((layout.reference, layout.header), (4, 12));
    }
    for &(object, size) in &built.sized {
        let name = built.heap.class_name(built.heap.class_of(object));
        assert_eq!(snapshot.shallow_bytes(find(object)), size, "{name}");
    }
    for &value in &built.flattened {
        assert_eq!(snapshot.shallow_bytes(find(value)), 0);
        assert!(snapshot.tree().is_reachable(find(value)));
    }
    // Each value refers to a string. A GC root also holds these strings through another array, so the array of values
    // retains only itself and its values.
    let (array, size) = built.sized[0];
    let node = snapshot.tree().node(find(array)).unwrap();
    assert_eq!(snapshot.tree().retained_objects(node), 1 + ELEMENTS as u64);
    assert_eq!(snapshot.tree().retained_bytes(node), size);
    let name = *snapshot.classes().by_name("com.acme.Name").first().unwrap();
    for totals in [
        snapshot.totals(),
        snapshot.histogram(),
        histogram.totals().to_vec(),
    ] {
        let total = totals[name.index()];
        assert_eq!(total.flattened, (ELEMENTS + HOLDERS) as u64);
        assert_eq!(
            (total.all.objects, total.all.bytes),
            (total.flattened + 1, 24)
        );
    }
    let message = "50 flattened values of 1 class: their bytes count in the objects and arrays that contain them";
    for warnings in [snapshot.warnings(), histogram.warnings()] {
        let messages: Vec<&str> = warnings.iter().map(|w| &*w.message).collect();
        assert_eq!(messages, [message]);
        assert!(!warnings[0].partial);
    }
}

#[test]
fn low_addresses_are_not_flattened_values() {
    let usual = built();
    let (expected, _) = open(usual.heap.try_build().unwrap().bytes);
    // If all low ids are multiples of eight, they are addresses and not ids of flattened values.
    let mut built = built();
    for (i, &value) in (1_u64..).zip(&built.flattened) {
        built.heap.set_address(value, i * 8);
    }
    let (snapshot, histogram) = open(built.heap.try_build().unwrap().bytes);
    assert_eq!(snapshot.object_count(), expected.object_count());
    let name = *snapshot.classes().by_name("com.acme.Name").first().unwrap();
    for totals in [snapshot.totals(), histogram.totals().to_vec()] {
        assert_eq!(totals[name.index()].flattened, 0);
    }
    let first = snapshot.find(ObjectId(8)).unwrap();
    assert!(snapshot.shallow_bytes(first) > 0);
}

#[test]
fn fillers_do_not_disturb_the_layout() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let element = heap.add_class("jdk.internal.vm.FillerElement", Some(boot.object), &[], &[]);
    heap.array_class(element);
    let (usual, _) = open(heap.try_build().unwrap().bytes);
    // HotSpot lays out filler arrays, which fill unused heap space, like `int[]`: 4 bytes for each element, even if
    // references have 8 bytes. So a filler array can be smaller than an array of references. Here, the next object
    // begins 32 bytes after the filler array, which is too near for 9 references.
    let filler = heap.add_object_array(element, [None::<Obj>; 9]);
    let next = heap.add_object_array(boot.object, [None::<Obj>; 1]);
    heap.add_root(Root::JniGlobal { global_ref: 0 }, next);
    let start = heap.address(filler);
    heap.set_address(next, start + 32);
    let (snapshot, _) = open(heap.try_build().unwrap().bytes);
    assert_eq!(snapshot.layout(), usual.layout());
    let found = snapshot.find(ObjectId(start)).unwrap();
    assert_eq!(snapshot.shallow_bytes(found), 16 + 9 * 4 + 4);
}
