//! Dumps that are incomplete: what they still have is read, what they lack is said, and live objects do not count as
//! unreachable.

#![allow(clippy::unwrap_used)]

use hprof::{Histogram, Options, Silent, Snapshot, Source};
use testdata::writer::{
    Elements, FieldType, Framing, HeapBuilder, Options as Written, Root, Value,
};

fn open(bytes: &[u8]) -> Snapshot {
    let source = Source::from_bytes(bytes.to_vec());
    Snapshot::of(source, &Options::default(), &Silent).unwrap()
}

fn objects(bytes: &[u8]) -> u64 {
    let source = Source::from_bytes(bytes.to_vec());
    let histogram = Histogram::of(source, &Options::default(), &Silent).unwrap();
    histogram.totals().iter().map(|t| t.all.objects).sum()
}

fn warnings(snapshot: &Snapshot) -> String {
    let all = snapshot.warnings().iter().map(ToString::to_string);
    all.collect::<Vec<_>>().join("\n")
}

/// A list of forty nodes, and an array, which a thread holds.
fn list(options: Written) -> HeapBuilder {
    let mut heap = HeapBuilder::new(options);
    let object = heap.boot().object;
    let fields = [("next", FieldType::Object), ("size", FieldType::Int)];
    let node = heap.add_class(
        "com.acme.Node",
        Some(object),
        &fields,
        &[("head", Value::NULL)],
    );
    let mut next = Value::NULL;
    for i in 0..40 {
        next = heap.add_instance(node, &[next, Value::Int(i)]).into();
    }
    heap.set_static(node, "head", next);
    let numbers = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 100));
    let thread = heap.add_thread("main", &[]);
    heap.add_local(thread, 0, numbers);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, numbers);
    heap
}

/// The offset of the first heap record.
fn heap_record(bytes: &[u8], boundaries: &[usize]) -> usize {
    let mut at = boundaries.iter().copied();
    at.find(|&at| matches!(bytes[at], 0x0c | 0x1c)).unwrap()
}

/// A dump whose last heap record has the length 0, as JDK 5 to 8 leave it.
fn without_length(options: Written) -> (Vec<u8>, usize) {
    let (mut bytes, boundaries) = list(options).build_with_offsets();
    let at = heap_record(&bytes, &boundaries);
    bytes[at + 5..at + 9].fill(0);
    (bytes, at)
}

#[test]
fn a_heap_record_of_length_0_is_read_to_the_end_of_the_file() {
    let single = Framing::Single;
    let segment = Framing::SegmentsWithoutEnd { bytes: 1 << 20 };
    for (framing, options) in [
        (single, Written::default()),
        (segment, Written::default()),
        (single, Written::bits_32()),
    ] {
        let options = Written { framing, ..options };
        let whole = list(options).build();
        let all = objects(&whole);
        let (bytes, _) = without_length(options);
        assert_eq!(objects(&bytes), all, "{framing:?}");
        let snapshot = open(&bytes);
        assert!(snapshot.is_partial());
        let said = warnings(&snapshot);
        assert!(said.contains("the heap record has no length"), "{said}");
        assert_eq!(
            snapshot.unreachable_bytes(),
            open(&whole).unreachable_bytes()
        );
        // Cut anywhere, what is there counts.
        let mut before = 0;
        for cut in (bytes.len() - 1500..bytes.len()).step_by(7) {
            let read = objects(&bytes[..cut]);
            assert!(read >= before && read <= all, "{read} at {cut}");
            before = read;
        }
        assert!(before > all / 2);
    }
}

#[test]
fn what_follows_a_heap_record_of_length_0_is_not_part_of_it() {
    let options = Written {
        framing: Framing::Segments { bytes: 1 << 20 },
        ..Written::default()
    };
    let whole = list(options).build();
    let all = objects(&whole);
    // A closing record.
    let (bytes, heap) = without_length(options);
    assert_eq!(objects(&bytes), all);
    assert!(!warnings(&open(&bytes)).contains("is not read"));
    // Another dump, after the end and in the middle of a record.
    for cut in [bytes.len(), bytes.len() - 9, bytes.len() - 100] {
        let two = [&bytes[..cut], &whole].concat();
        let said = warnings(&open(&two));
        assert!(said.contains("another dump begins"), "{cut}: {said}");
        let read = objects(&two);
        assert!(read <= all && read > all / 2, "{cut}: {read} of {all}");
    }
    // A record that is empty.
    let mut empty = whole[..heap].to_vec();
    empty.extend([0x1c, 0, 0, 0, 0, 0, 0, 0, 0]);
    empty.extend(&whole[heap..]);
    assert_eq!(objects(&empty), all);
    let said = warnings(&open(&empty));
    assert!(!said.contains("the heap record has no length"), "{said}");
    assert!(!open(&empty).is_partial(), "{said}");
}
