//! Tests that only one of two dumps is in memory if they are read one after the other, as a comparison does.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use hprof::dominators::Node;
use hprof::{Options, Progress, Silent, Snapshot};
use testdata::writer::{self, Elements, FieldType, HeapBuilder, Value};

/// Records the anonymous memory of this process, in bytes, at the moment when the reading of objects begins; 0 if the
/// system does not report it.
#[derive(Default)]
struct Before(AtomicU64);

impl Progress for Before {
    fn phase(&self, name: &'static str, _: u64) {
        if name == "reading objects" {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
            let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
            self.0
                .store(kilobytes.unwrap_or(0) * 1024, Ordering::Relaxed);
        }
    }
    fn advance(&self, _: u64) {}
}

/// Returns a dump in which a static field holds an array of `arrays` empty arrays.
fn heap(arrays: usize) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let table = heap.add_class(
        "com.acme.Table",
        Some(boot.object),
        &[],
        &[("all", Value::NULL)],
    );
    heap.primitive_array_class(FieldType::Byte);
    let all: Vec<_> = (0..arrays)
        .map(|_| heap.add_primitive_array(Elements::Byte(Vec::new())))
        .collect();
    let all = heap.add_object_array(boot.object, all);
    heap.set_static(table, "all", all);
    heap.build()
}

#[test]
fn a_dump_is_freed_before_the_next_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump.hprof");
    std::fs::write(&path, heap(1_300_000)).unwrap();
    let options = Options::default();
    // The test wrote the dump, which left free memory in the allocator. The first analysis returns this memory to the
    // system.
    drop(Snapshot::open(&path, &options, &Silent).unwrap());
    let (one, two) = (Before::default(), Before::default());
    let first = Snapshot::open(&path, &options, &one).unwrap();
    let count = first.tree().retained_objects(Node::ROOT);
    assert!(count > 1_300_000);
    let second = Snapshot::open_after(first, &path, &options, &two).unwrap();
    assert_eq!(second.tree().retained_objects(Node::ROOT), count);
    // The shapes (class and array length), dominators and adjacency lists of the first dump take about 20 MB, because
    // it has many objects without references. This memory must be free when the second dump is read.
    let (one, two) = (one.0.into_inner(), two.0.into_inner());
    assert!(
        two < one + (12 << 20),
        "{two} bytes, {one} before the first"
    );
}
