//! Compares the retained sizes and the entries of unreachable objects with the results of simple searches. An entry is
//! an object to which no other unreachable object refers, or one object of a cycle to which no object outside refers.

use std::collections::BTreeSet;

use hprof::answers::Unreachable;
use hprof::{ObjectId, ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::writer::{
    FieldType, HeapBuilder, Obj, Options as Written, ReferenceKind, Rng, Root, Value,
};

/// Objects with two fields each. GC roots hold some of them.
struct Heap {
    snapshot: Snapshot,
    objects: Vec<ObjectIndex>,
    edges: Vec<(usize, usize)>,
    sizes: Vec<u64>,
    reachable: BTreeSet<usize>,
}

impl Heap {
    fn random(rng: &mut Rng) -> Self {
        let count = 2 + rng.below(10);
        let mut heap = HeapBuilder::new(Written::default());
        let boot = heap.boot();
        let names = ["a", "b"].map(|name| (name, FieldType::Object));
        let small = heap.add_class("app.Small", Some(boot.object), &names, &[]);
        let longs = [("c", FieldType::Long), ("d", FieldType::Long)];
        let large = heap.add_class("app.Large", Some(small), &longs, &[]);
        let objects: Vec<Obj> = (0..count)
            .map(|at| {
                if at % 3 == 0 {
                    let longs = [Value::Long(1), Value::Long(2)];
                    let values = [&longs[..], &[Value::NULL, Value::NULL]].concat();
                    heap.add_instance(large, &values)
                } else {
                    heap.add_instance(small, &[Value::NULL, Value::NULL])
                }
            })
            .collect();
        let mut edges = Vec::new();
        for from in 0..count {
            for (name, _) in names {
                if rng.below(5) < 3 {
                    let to = rng.below(count);
                    heap.set_field(objects[from], name, objects[to]);
                    edges.push((from, to));
                }
            }
        }
        let mut roots = Vec::new();
        for (at, object) in objects.iter().enumerate() {
            if rng.below(8) == 0 {
                let global_ref = at as u64 + 1;
                heap.add_root(Root::JniGlobal { global_ref }, *object);
                roots.push(at);
            }
        }
        let sizes = objects.iter().map(|o| heap.shallow_size(*o)).collect();
        let source = Source::from_bytes(heap.try_build().unwrap().bytes);
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        let number = |o: &Obj| snapshot.find(ObjectId(heap.address(*o))).unwrap();
        let objects: Vec<ObjectIndex> = objects.iter().map(number).collect();
        let reachable = reach(&edges, roots, None);
        Self {
            snapshot,
            objects,
            edges,
            sizes,
            reachable,
        }
    }

    fn place(&self, object: ObjectIndex) -> usize {
        let mut objects = self.objects.iter();
        objects.position(|other| *other == object).unwrap()
    }

    fn unreachable(&self) -> Unreachable {
        self.snapshot.unreachable_objects(&Silent).unwrap()
    }
}

/// Returns the objects that are reachable from the objects in `from` without passing through the object `without`.
fn reach(edges: &[(usize, usize)], from: Vec<usize>, without: Option<usize>) -> BTreeSet<usize> {
    let (mut stack, mut seen) = (from, BTreeSet::new());
    while let Some(at) = stack.pop() {
        if Some(at) != without && seen.insert(at) {
            let own = edges.iter().filter(|edge| edge.0 == at);
            stack.extend(own.map(|edge| edge.1));
        }
    }
    seen
}

#[test]
fn entries_reach_all_unreachable_objects_and_retained_sizes_are_exact() {
    let mut rng = Rng::new(3);
    let mut checked = 0;
    for round in 0..500 {
        let heap = Heap::random(&mut rng);
        let unreachable = heap.unreachable();
        let all: BTreeSet<usize> = (0..heap.objects.len())
            .filter(|at| !heap.reachable.contains(at))
            .collect();
        // All other objects of the dump are reachable.
        assert_eq!(unreachable.count() as usize, all.len(), "{round}");
        let entries = unreachable.entries().map(|o| heap.place(o));
        let entries: Vec<usize> = entries.collect();
        let reached = reach(&heap.edges, entries.clone(), None);
        assert!(all.is_subset(&reached), "{round}");
        for entry in &entries {
            let mut others = entries.clone();
            others.retain(|other| other != entry);
            assert!(!reach(&heap.edges, others, None).contains(entry), "{round}");
        }
        let classes = unreachable.classes(&heap.snapshot);
        let sum: u64 = classes.iter().map(|(_, total)| total.bytes).sum();
        assert_eq!(sum, heap.snapshot.unreachable_bytes());
        for held in unreachable.entry_classes(&heap.snapshot) {
            let is_own = |at: &usize| heap.snapshot.class_of(heap.objects[*at]) == held.class;
            let (own, others): (Vec<usize>, Vec<usize>) = entries.iter().partition(|at| is_own(at));
            assert_eq!(held.entries as usize, own.len());
            let others = reach(&heap.edges, others, None);
            let freed: Vec<usize> = all.difference(&others).copied().collect();
            let bytes: u64 = freed.iter().map(|&at| heap.sizes[at]).sum();
            assert_eq!(held.retained.objects as usize, freed.len(), "{round}");
            assert_eq!(held.retained.bytes, bytes, "{round}");
        }
        let tree = unreachable.into_tree(&heap.snapshot, &Silent).unwrap();
        let rows = tree.largest(100, |_| true);
        assert_eq!(rows.len(), all.len());
        assert!(rows.is_sorted_by(|a, b| a.retained.bytes >= b.retained.bytes));
        for row in rows {
            let at = heap.place(row.object);
            let others = reach(&heap.edges, entries.clone(), Some(at));
            let freed: Vec<usize> = all.difference(&others).copied().collect();
            let bytes: u64 = freed.iter().map(|&at| heap.sizes[at]).sum();
            assert_eq!(row.retained.objects as usize, freed.len(), "{round}");
            assert_eq!(row.retained.bytes, bytes, "{round}");
            checked += 1;
        }
    }
    assert!(checked > 1000, "{checked}");
}

#[test]
fn a_weak_reference_does_not_hold_its_referent() {
    let mut heap = HeapBuilder::new(Written::default());
    let boot = heap.boot();
    let target = heap.add_instance(boot.object, &[]);
    let weak = heap.add_reference(ReferenceKind::Weak, target);
    let source = Source::from_bytes(heap.try_build().unwrap().bytes);
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let unreachable = snapshot.unreachable_objects(&Silent).unwrap();
    let number = |o: Obj| snapshot.find(ObjectId(heap.address(o))).unwrap();
    let entries: BTreeSet<ObjectIndex> = unreachable.entries().collect();
    assert_eq!(entries, BTreeSet::from([number(target), number(weak)]));
}
