//! Tests that a memory limit moves the arrays of the analysis to files and changes nothing else.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Mutex;

use hprof::dominators::Thresholds;
use hprof::sizes::ClassTotal;
use hprof::{ObjectIndex, Options, Progress, Refs, Silent, Snapshot};
use testdata::writer::{self, Elements, FieldType, HeapBuilder, Obj, Ref, Root, linked};

#[allow(dead_code, reason = "only memory is measured here")]
mod limits;

use limits::Peak;

type Figures = (Vec<(Option<u64>, Option<u64>)>, Vec<ClassTotal>);

fn figures(dump: &Path, max_memory: Option<u64>) -> Figures {
    let mut options = Options::default();
    options.max_memory = max_memory;
    let snapshot = Snapshot::open(dump, &options, &Silent).unwrap();
    let objects = (0..snapshot.object_count() as u32).map(ObjectIndex);
    let retained = objects
        .map(|o| (snapshot.retained_bytes(o), snapshot.retained_objects(o)))
        .collect();
    (retained, snapshot.histogram())
}

/// Returns a dump of one object that leads to 1,500 arrays. Each of these arrays has 1,000 references to the same 20
/// arrays. Only these 20 arrays, and the byte array to which they refer, have more than one referrer.
fn sharing(held_by: fn(&mut HeapBuilder, Obj) -> Obj) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let bytes = heap.add_primitive_array(Elements::Zeros(FieldType::Byte, 8));
    let shared: Vec<Obj> = (0..20)
        .map(|_| heap.add_object_array(boot.object, [bytes]))
        .collect();
    let mut tables = Vec::new();
    for _ in 0..15 {
        let of_table: Vec<Obj> = (0..100)
            .map(|_| {
                let references = shared.iter().cycle().take(1_000);
                heap.add_object_array(boot.object, references.copied())
            })
            .collect();
        tables.push(heap.add_object_array(boot.object, of_table));
    }
    let all = heap.add_object_array(boot.object, tables);
    let held = held_by(&mut heap, all);
    heap.add_root(Root::JniGlobal { global_ref: 9 }, Ref::from(held));
    heap.build()
}

/// Measures memory from the start of the dominator computation on. The memory for reading the file is not included.
#[derive(Default)]
struct Searching(Mutex<Option<Peak>>);

impl Progress for Searching {
    fn phase(&self, name: &'static str, _: u64) {
        if name == "searching the heap graph" {
            *self.0.lock().unwrap() = Some(Peak::start());
        }
    }

    fn advance(&self, _: u64) {}
}

/// Returns the bytes that are allocated during the dominator computation with a limit of one megabyte, without the
/// arrays of the analysis.
fn allocated(bytes: &[u8]) -> (u64, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("limited.hprof");
    std::fs::write(&dump, bytes).unwrap();
    let mut options = Options::default();
    options.refs = Refs::Soft;
    options.max_memory = Some(1 << 20);
    // The dominator computation follows the references of some objects, the witnesses, to their classes. Among the
    // witnesses are the objects closest to GC roots. In a small heap, all objects are close to GC roots. So without
    // `near: 0`, all objects would be witnesses, and the work would be divided among many tasks.
    options.set_thresholds(Thresholds {
        near: 0,
        ..Thresholds::USUAL
    });
    let measured = Searching::default();
    let snapshot = Snapshot::open(&dump, &options, &measured).unwrap();
    let peak = measured.0.into_inner().unwrap().unwrap();
    (peak.allocated(), snapshot)
}

fn reachable(snapshot: &Snapshot) -> usize {
    let objects = (0..snapshot.object_count() as u32).map(ObjectIndex);
    objects.filter(|&o| snapshot.tree().is_reachable(o)).count()
}

#[test]
fn references_to_shared_objects_are_within_the_limit() {
    let _alone = limits::alone();
    let strongly: fn(&mut HeapBuilder, Obj) -> Obj = |_, all| all;
    let softly: fn(&mut HeapBuilder, Obj) -> Obj = |heap, all| {
        let boot = heap.boot();
        heap.add_reference_of(boot.soft_reference, all)
    };
    for held_by in [strongly, softly] {
        let (taken, snapshot) = allocated(&sharing(held_by));
        // As pairs of numbers the 1.5 million references would take 12 MB.
        assert!(taken < 2 << 20, "{taken} bytes were allocated");
        assert!(reachable(&snapshot) > 1_500 + 20 + 15);
    }
}

#[test]
fn long_lists_take_no_call_stack() {
    const NODES: u64 = 400_000;
    let _alone = limits::alone();
    let mut bytes = Vec::new();
    linked::list(NODES, &mut bytes).unwrap();
    let (taken, snapshot) = allocated(&bytes);
    // While the nodes are put in preorder, the position of each takes eight bytes. If each node also stayed on a stack,
    // it would take 24 bytes more.
    assert!(taken < 2 << 20, "{taken} bytes were allocated");
    assert!(reachable(&snapshot) as u64 > NODES);
}

/// Returns a dump of a list. In each node, the reference to the next node comes before the reference to the object that
/// the node holds. With `with_table`, an array also holds all nodes.
fn list_of_boxes(nodes: usize, with_table: bool, softly: bool) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let fields = [("next", FieldType::Object), ("held", FieldType::Object)];
    let class = heap.add_class("Node", Some(boot.object), &fields, &[]);
    let bytes = heap.add_primitive_array(Elements::Zeros(FieldType::Byte, 8));
    let mut next = Ref::Null;
    let mut all = Vec::new();
    for _ in 0..nodes {
        let held = heap.add_object_array(boot.object, [bytes]);
        let node = heap.add_instance(class, &[next.into(), held.into()]);
        all.push(node);
        next = node.into();
    }
    let mut held = if with_table {
        heap.add_object_array(boot.object, all)
    } else {
        heap.add_object_array(boot.object, [next])
    };
    if softly {
        held = heap.add_reference_of(boot.soft_reference, held);
    }
    heap.add_root(Root::JniGlobal { global_ref: 9 }, held);
    heap.build()
}

#[test]
fn partly_read_lists_are_within_the_limit() {
    const NODES: usize = 60_000;
    let _alone = limits::alone();
    // The search descends to the next node of the list before it has read the rest of the current node's adjacency
    // list. With `with_table`, each node has two referrers: the previous node and the table.
    for with_table in [false, true] {
        let (taken, snapshot) = allocated(&list_of_boxes(NODES, with_table, false));
        assert!(
            taken < 3 << 19,
            "{taken} bytes were allocated, {with_table}"
        );
        assert!(reachable(&snapshot) > NODES * 2);
    }
}

#[test]
fn softly_reachable_objects_are_within_the_limit() {
    const NODES: usize = 60_000;
    let _alone = limits::alone();
    let (taken, snapshot) = allocated(&list_of_boxes(NODES, true, true));
    assert!(taken < 3 << 19, "{taken} bytes were allocated");
    assert!(reachable(&snapshot) > NODES * 2);
}

#[test]
fn results_do_not_depend_on_the_limit() {
    let _alone = limits::alone();
    for name in ["before", "after"] {
        let dump = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../testdata")
            .join(format!("{name}.hprof.gz"));
        let free = figures(&dump, None);
        assert!(free.0.len() > 100_000);
        for limit in [0, 300_000, 2_000_000] {
            assert!(free == figures(&dump, Some(limit)), "{name}, {limit} bytes");
        }
    }
}
