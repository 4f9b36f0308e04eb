//! Checks that every path in a report exists in the last dump, on committed dumps and on random heaps.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::common::{self, app::App};
use heapdiff_diff::{Report, Suspect};
use heapdiff_sites::types::stable;
use hprof::answers::{Content, FieldValue, Record, Value};
use hprof::records::Reference;
use hprof::{ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::writer::{HeapBuilder, Obj, Rng};

/// Returns the objects to which the references with this label lead.
fn follow(snapshot: &Snapshot, from: &BTreeSet<ObjectIndex>, label: &str) -> BTreeSet<ObjectIndex> {
    let objects: Vec<ObjectIndex> = from.iter().copied().collect();
    let records = snapshot.read_all(&objects).into_iter().flatten();
    records
        .flat_map(|record| targets(snapshot, &record, label))
        .collect()
}

/// Returns the objects to which the given objects refer, if the referring object has the same class.
fn links(snapshot: &Snapshot, from: &BTreeSet<ObjectIndex>) -> Vec<ObjectIndex> {
    let objects: Vec<ObjectIndex> = from.iter().copied().collect();
    let records = snapshot.read_all(&objects).into_iter().flatten();
    let links = records.flat_map(|record| match &record.content {
        Content::Instance(fields) => {
            let targets = fields.iter().filter_map(|field| field.value?.object());
            let same = |o: &ObjectIndex| snapshot.class_of(*o) == snapshot.class_of(record.object);
            targets.filter(same).collect()
        }
        _ => Vec::new(),
    });
    links.collect()
}

fn targets(snapshot: &Snapshot, record: &Record<'_>, label: &str) -> Vec<ObjectIndex> {
    let classes = snapshot.classes();
    let of_fields = |fields: &[FieldValue<'_>]| -> Vec<ObjectIndex> {
        let fields = fields.iter().filter(|field| {
            let class = stable(&classes[field.class].name);
            format!("{class}.{}", field.name) == label
        });
        fields.filter_map(|field| field.value?.object()).collect()
    };
    match &record.content {
        Content::Instance(fields) => of_fields(fields),
        Content::Class(class) => of_fields(&class.statics),
        Content::Array(array) => {
            let name = snapshot.name(record.object);
            let element = stable(&name).trim_end_matches("[]").to_owned();
            let depth = name.matches("[]").count().saturating_sub(1);
            let is_label = format!("{element}{}[*]", "[]".repeat(depth)) == label;
            let elements = array.elements(0..u32::MAX).filter_map(Value::object);
            elements.filter(|_| is_label).collect()
        }
    }
}

/// Checks that the references of a suspect's path lead from the path's root to an object of the suspect's class.
fn check(snapshot: &Snapshot, suspect: &Suspect) {
    let reachable = |o: &ObjectIndex| snapshot.retained_bytes(*o).is_some();
    let all = || {
        (0..snapshot.object_count() as u32)
            .map(ObjectIndex)
            .filter(reachable)
    };
    let mut at: BTreeSet<ObjectIndex> = match suspect.root.strip_prefix("static ") {
        Some(class) => all()
            .filter(|&o| snapshot.represents(o).is_some())
            .filter(|&o| stable(&snapshot.name(o)) == format!("class {class}"))
            .collect(),
        None => all().collect(),
    };
    let mut used: Vec<&str> = Vec::new();
    for label in &suspect.path {
        if label.starts_with(['(', '<']) {
            // A label in parentheses or angle brackets does not name a field, so it does not show to which objects the
            // path leads. So follow the next label from all objects.
            at = all().collect();
            continue;
        }
        let mut reached = follow(snapshot, &at, label);
        // The printed path leaves out repetitions. If nodes of one class refer to each other, it shows only one of
        // these references. If a structure contains another structure of the same kind, it shows only one of the two.
        // So at each label, also follow references between nodes, and all labels of the path so far, any number of
        // times.
        used.push(label);
        let mut last = reached.clone();
        while !last.is_empty() {
            let again = used.iter().flat_map(|label| follow(snapshot, &last, label));
            let next = again.chain(links(snapshot, &last));
            last = next.filter(|object| !reached.contains(object)).collect();
            reached.extend(&last);
        }
        assert!(
            !reached.is_empty(),
            "{label} of {:?} leads nowhere\n{suspect:#?}",
            suspect.path
        );
        at = reached;
    }
    let is_content = |&o: &ObjectIndex| stable(&snapshot.name(o)) == *suspect.class;
    assert!(
        at.iter().any(is_content),
        "{:?} leads to no {}\n{suspect:#?}",
        suspect.path,
        suspect.class
    );
}

/// Returns the bytes that become unreachable if a field is cleared in all objects.
fn freed(snapshot: &Snapshot, field: &str) -> u64 {
    let reachable = |o: &ObjectIndex| snapshot.retained_bytes(*o).is_some();
    let objects = || (0..snapshot.object_count() as u32).map(ObjectIndex);
    let classes = objects().filter(|&o| snapshot.represents(o).is_some());
    let roots = snapshot.tree().roots().map(|(object, _)| object);
    let mut level: Vec<ObjectIndex> = classes.chain(roots).filter(reachable).collect();
    let mut left: BTreeSet<ObjectIndex> = level.iter().copied().collect();
    while !level.is_empty() {
        let records = snapshot.read_all(&level).into_iter().flatten();
        let targets: Vec<ObjectIndex> = records
            .flat_map(|record| {
                let cleared = targets(snapshot, &record, field);
                let all: Vec<Option<ObjectIndex>> = match &record.content {
                    Content::Instance(fields) => {
                        let class = snapshot.class_of(record.object).unwrap();
                        let is_strong = snapshot.classes()[class].reference == Reference::No;
                        let fields = fields.iter().filter(|f| is_strong || f.name != "referent");
                        fields.map(|f| f.value?.object()).collect()
                    }
                    Content::Class(class) => {
                        class.statics.iter().map(|f| f.value?.object()).collect()
                    }
                    Content::Array(array) => {
                        array.elements(0..u32::MAX).map(Value::object).collect()
                    }
                };
                let kept = all.into_iter().flatten();
                kept.filter(|target| !cleared.contains(target))
                    .collect::<Vec<_>>()
            })
            .collect();
        level = targets.into_iter().filter(|&o| left.insert(o)).collect();
    }
    let freed = objects().filter(|o| reachable(o) && !left.contains(o));
    freed.map(|o| snapshot.shallow_bytes(o)).sum()
}

fn check_all(report: &Report, last: Source) -> usize {
    let snapshot = Snapshot::of(last, &Options::default(), &Silent).unwrap();
    for suspect in &report.suspects {
        check(&snapshot, suspect);
        let growth = u64::try_from(suspect.growth.shallow_bytes).unwrap_or(0);
        let freed = freed(&snapshot, &suspect.holder);
        assert!(
            freed * 2 >= growth || !suspect.also_held_by.is_empty(),
            "clearing the holder frees {freed} of {growth} bytes\n{suspect:#?}"
        );
        let all = suspect.retained_bytes.last().copied().unwrap_or(0);
        let reachable: u64 = (0..snapshot.object_count() as u32)
            .map(ObjectIndex)
            .filter(|&o| snapshot.retained_bytes(o).is_some())
            .map(|o| snapshot.shallow_bytes(o))
            .sum();
        assert!(all <= reachable, "{suspect:#?}");
    }
    report.suspects.len()
}

#[test]
fn printed_paths_exist_in_committed_dumps() {
    let dump = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
        Source::open(&path.join(format!("{name}.hprof.gz"))).unwrap()
    };
    for [before, after] in [["before", "after"], ["sampled-before", "sampled-after"]] {
        let report = common::report([dump(before), dump(after)]);
        assert!(check_all(&report, dump(after)) > 0);
    }
}

/// Two classes refer to each of several variables, as in compiled Clojure. The largest variable holds a function.
/// Another variable holds the list that grows.
#[test]
fn a_path_leads_through_the_object_that_holds_the_content() {
    let heap = |rows: usize| {
        let mut app = App::new();
        let row = app.class("com.acme.Row", &["body"], &[]);
        let list = app.class("com.acme.List", &["rows"], &[]);
        let function = app.class("com.acme.Function", &["code"], &[]);
        let var = app.class("com.acme.Var", &["root"], &[]);
        let held = app.rows(row, rows, 40);
        let held = app.array(held);
        let list = app.heap.add_instance(list, &[held.into()]);
        let code = app.rows(row, 1, 2_000_000);
        let function = app.heap.add_instance(function, &[code[0].into()]);
        for (root, users) in [
            (function, ["Deftype", "Members"]),
            (list, ["Timeout", "Worker"]),
        ] {
            let var = app.heap.add_instance(var, &[root.into()]);
            for user in users {
                let user = app.class(&format!("com.acme.{user}"), &[], &["const"]);
                app.heap.set_static(user, "const", var);
            }
        }
        app.heap
    };
    let dumps = || [heap(500), heap(2500)].map(|heap| Source::from_bytes(heap.build()));
    let report = common::report(dumps());
    let [_, last] = dumps();
    assert!(check_all(&report, last) > 0);
    let first = &report.suspects[0];
    assert!(
        first.root == "static com.acme.Timeout" || first.root == "static com.acme.Worker",
        "{first:#?}"
    );
}

/// Returns a heap with random containers in random fields. Some are shared, and some grow.
fn random(seed: u64, growth: usize) -> HeapBuilder {
    let mut rng = Rng::new(seed);
    let mut app = App::new();
    let items: Vec<_> = (0..3)
        .map(|i| app.class(&format!("com.acme.Item{i}"), &["body"], &[]))
        .collect();
    let boxes: Vec<_> = (0..3)
        .map(|i| app.class(&format!("com.acme.Box{i}"), &["first", "second"], &[]))
        .collect();
    let mut containers: Vec<Obj> = Vec::new();
    for _ in 0..2 + rng.below(5) {
        let item = items[rng.below(items.len())];
        let grows = rng.below(2) == 0;
        let count = 40 + rng.below(200) + if grows { growth } else { 0 };
        let rows = app.rows(item, count, 100 + rng.below(3) * 400);
        containers.push(app.array(rows));
    }
    for _ in 0..1 + rng.below(12) {
        let class = boxes[rng.below(boxes.len())];
        let mut one = || containers[rng.below(containers.len())];
        let values = [one().into(), one().into()];
        let made = app.heap.add_instance(class, &values);
        containers.push(made);
    }
    let mut taken: HashMap<usize, Obj> = HashMap::new();
    for i in 0..1 + rng.below(6) {
        taken.insert(
            i,
            containers[containers.len() - 1 - rng.below(containers.len().min(6))],
        );
    }
    for (i, held) in taken {
        let class = app.class(&format!("com.acme.Root{i}"), &[], &["all"]);
        app.heap.set_static(class, "all", held);
    }
    app.heap
}

#[test]
fn printed_paths_exist_in_random_heaps() {
    let mut suspects = 0;
    for seed in 0..80 {
        let dumps = || [0, 2000].map(|growth| Source::from_bytes(random(seed, growth).build()));
        let report = common::report(dumps());
        let [_, last] = dumps();
        suspects += check_all(&report, last);
    }
    assert!(suspects > 50, "{suspects}");
}
