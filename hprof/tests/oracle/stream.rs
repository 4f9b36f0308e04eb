//! Compares the IDs, references and records that are read as flat lists with those that are read one object at a time.

use std::collections::BTreeMap;

use hprof::answers::Link;
use hprof::records::Reference;
use hprof::{ObjectIndex, Options, Silent, Snapshot, Source};

use crate::world::{Plan, dump, rounds};

/// Returns all references in the records. Reads them in batches of at most `limit`.
fn links(snapshot: &Snapshot, limit: usize) -> Vec<Link> {
    let mut all = Vec::new();
    for part in 0..snapshot.parts().count() {
        let mut next = Some(0);
        while let Some(skip) = next {
            let read = snapshot.parts().links(part, skip, limit, &|_| true);
            assert!(read.list.len() <= limit);
            assert!(read.next.is_none_or(|n| n > skip), "no way forward");
            all.extend(read.list);
            next = read.next;
        }
    }
    all
}

#[test]
fn flat_lists_agree_with_single_objects() {
    for seed in 0..rounds(2000) {
        let plan = Plan {
            seed,
            nodes: 60,
            references: seed % 2 == 0,
            duplicates: seed % 5 == 0,
            odd_ids: seed % 3 == 0,
            shared: false,
        };
        let source = Source::from_bytes(dump(&plan));
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        let all: Vec<ObjectIndex> = (0..snapshot.object_count() as u32)
            .map(ObjectIndex)
            .collect();

        let ids = snapshot.parts().ids().unwrap();
        for (&object, id) in all.iter().zip(snapshot.ids(&all)) {
            assert_eq!(Some(ids.of(object)), id, "seed {seed}, {object:?}");
        }

        // The strong references must equal the references of the graph, except those from objects to their classes.
        let mut found: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        // If several frames of a thread hold an object, the graph has one reference.
        let mut unwritten = snapshot.parts().implicit_references();
        assert!(unwritten.is_sorted_by_key(|l| l.from));
        unwritten.sort_by_key(|l| (l.from, l.to));
        unwritten.dedup_by_key(|l| (l.from, l.to));
        for link in links(&snapshot, 3).iter().chain(&unwritten) {
            assert_eq!(ids.of(link.from), link.from_id, "seed {seed}");
            if let Some(to) = link.to
                && snapshot.parts().via(link).1 == Reference::No
            {
                *found.entry((link.from.0, to.0)).or_default() += 1;
            }
        }
        let graph = snapshot.graph(&Silent).unwrap();
        let mut expected: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        for &object in &all {
            let class = snapshot.class_of(object);
            let class = class.and_then(|c| snapshot.find(snapshot.classes()[c].id));
            for target in graph.references(object) {
                if Some(target) != class {
                    *expected.entry((object.0, target.0)).or_default() += 1;
                }
            }
            if let Some(class) = class {
                found.remove(&(object.0, class.0));
            }
        }
        assert_eq!(found, expected, "seed {seed}");

        let ranks: Vec<u32> = (0..snapshot.classes().len() as u32)
            .map(|c| c / 2)
            .collect();
        let sorted = snapshot.parts().sorted_by_class(&ranks).unwrap();
        let rank = |&object: &u32| {
            let class = snapshot
                .class_of(ObjectIndex(object))
                .or(snapshot.class_class());
            (class.map_or(u32::MAX, |c| c.0 / 2), object)
        };
        assert_eq!(sorted.len(), all.len());
        assert!(sorted.is_sorted_by_key(rank), "seed {seed}");

        let mut seen = snapshot
            .classes()
            .iter()
            .filter(|(_, c)| !c.id.is_null())
            .count();
        for part in 1..snapshot.parts().count() {
            for place in snapshot.parts().places(part) {
                seen += 1;
                assert_eq!(snapshot.parts().part_of(place.object), Some(part));
                let one = snapshot.parts().read(place).unwrap();
                let other = snapshot.read(place.object).unwrap();
                assert_eq!(format!("{one:?}"), format!("{other:?}"), "seed {seed}");
            }
        }
        assert!(seen >= all.len(), "seed {seed}: {seen} of {}", all.len());
    }
}
