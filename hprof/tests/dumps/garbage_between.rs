//! Tests object sizes if unreachable objects lie between the reachable ones. ZGC does not remove the unreachable
//! objects, but its dumps do not contain them.

use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{self, FieldType, HeapBuilder, Root, Value};

/// Bytes of unreachable objects between an instance and the next one. Such objects are left, for example, if a program
/// creates each instance by reflection.
const GARBAGE: u64 = 200;
/// Instances of each class.
const INSTANCES: usize = 9;

/// Builds a heap with `close + apart` classes of different sizes. Each instance of the last `apart` classes is followed
/// by [`GARBAGE`] bytes of unreachable objects. Returns a message for each object whose size is wrong.
fn wrong(close: usize, apart: usize) -> Vec<String> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    for number in 0..close + apart {
        let names: Vec<String> = (0..number % 7).map(|i| format!("field{i}")).collect();
        let mut fields: Vec<(&str, FieldType)> = Vec::new();
        fields.extend(names.iter().map(|name| (name.as_str(), FieldType::Long)));
        let name = format!("com.acme.Kind{number}");
        let class = heap.add_class(&name, Some(boot.object), &fields, &[]);
        let values = vec![Value::Long(1); fields.len()];
        for _ in 0..INSTANCES {
            let object = heap.add_instance(class, &values);
            heap.add_root(Root::JniGlobal { global_ref: 0 }, object);
            if number >= close {
                heap.add_gap(GARBAGE);
            }
        }
    }
    let source = Source::from_bytes(heap.try_build().unwrap().bytes);
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    heap.objects()
        .filter_map(|object| {
            let found = snapshot
                .find(hprof::ObjectId(heap.address(object)))
                .unwrap();
            let (ours, true_size) = (snapshot.shallow_bytes(found), heap.shallow_size(object));
            let name = heap.class_name(heap.class_of(object));
            (ours != true_size).then(|| format!("{name}: {ours}, not {true_size}"))
        })
        .collect()
}

#[test]
fn regular_gaps_are_not_part_of_an_object() {
    for apart in [0, 1, 10, 25, 40] {
        assert_eq!(wrong(50, apart), Vec::<String>::new(), "{apart} apart");
    }
}
