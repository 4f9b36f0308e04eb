//! Compares the contents of tables with the values that the `hprof` reader returns for single objects and classes.

use std::collections::BTreeMap;

use hprof::records::Reference;
use hprof::sizes::ClassTotal;
use hprof::{ObjectId, ObjectIndex, Silent};

use crate::{ask, one, sampled, shop};

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

fn id(text: &str) -> ObjectId {
    ObjectId(u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap())
}

#[test]
fn sums_by_class_equal_the_histogram() {
    for heap in [shop(), sampled()] {
        let snapshot = heap.snapshot();
        let mut totals = snapshot.histogram();
        heap.own().subtract_from(snapshot, &mut totals);
        let expected: BTreeMap<ObjectId, ClassTotal> = snapshot
            .classes()
            .iter()
            .zip(totals)
            .map(|((_, class), total)| (class.id, total))
            .collect();
        let listed = ask(
            heap,
            "select id, objects, shallow_bytes, reachable_objects, reachable_bytes, retained_bytes
             from classes",
        );
        let summed = ask(
            heap,
            "select class_id, count(*), sum(shallow_bytes), sum(reachable),
                    sum(case when reachable then shallow_bytes else 0 end)
             from objects group by class_id",
        );
        assert!(summed.len() > 100 && listed.len() >= summed.len());
        for row in &listed {
            let total = expected[&id(&row[0])];
            let figures = [
                total.all.objects,
                total.all.bytes,
                total.reachable.objects,
                total.reachable.bytes,
                total.retained_bytes,
            ];
            assert_eq!(row[1..], figures.map(|n| n.to_string()), "{}", row[0]);
        }
        for row in &summed {
            let total = expected[&id(&row[0])];
            let own = [
                total.all.objects,
                total.all.bytes,
                total.reachable.objects,
                total.reachable.bytes,
            ];
            assert_eq!(row[1..], own.map(|n| n.to_string()), "{}", row[0]);
        }
        let some = expected.values().filter(|t| t.all.objects > 0);
        assert_eq!(some.count(), summed.len());
    }
}

#[test]
fn classes_are_sorted_without_a_sort_step() {
    let rows = ask(shop(), "select class, count(*) from objects group by class");
    assert!(rows.is_sorted_by(|a, b| a[0] < b[0]));
    let total: u64 = rows.iter().map(|r| number(&r[1])).sum();
    assert_eq!(total, shop().snapshot().object_count());
    let scanned = ask(shop(), "select +class, count(*) from objects group by 1");
    assert_eq!(rows, scanned);
}

#[test]
fn objects_equal_those_of_the_reader() {
    let snapshot = shop().snapshot();
    let rows = ask(
        shop(),
        "select id, class, shallow_bytes, retained_bytes, retained_objects, length, reachable,
                dominator_id from objects",
    );
    assert_eq!(rows.len() as u64, snapshot.object_count());
    let or_null = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
    let mut seen = std::collections::BTreeSet::new();
    let mut lengths = 0;
    for row in rows {
        let object = snapshot.find(id(&row[0])).unwrap();
        assert!(seen.insert(object));
        let length = snapshot.array_length(object).map(u64::from);
        lengths += u64::from(length.is_some());
        let expected = [
            snapshot.class(object).unwrap().name.to_string(),
            snapshot.shallow_bytes(object).to_string(),
            or_null(snapshot.retained_bytes(object)),
            or_null(snapshot.retained_objects(object)),
            or_null(length),
            snapshot.tree().is_reachable(object).to_string(),
        ];
        assert_eq!(row[1..7], expected, "{}", row[0]);
        let tree = snapshot.tree();
        let holder = tree.dominator(object).and_then(|n| tree.object(n));
        let named = (row[7] != "null").then(|| snapshot.find(id(&row[7])).unwrap());
        assert_eq!(named, holder);
    }
    assert!(lengths > 1000);
}

/// The retained size of an object is its own size plus the retained sizes of the objects that it immediately dominates.
#[test]
fn retained_sizes_add_up_along_the_dominator_tree() {
    let wrong = one(
        shop(),
        "with held as (select dominator_id as id, sum(retained_bytes) as bytes from objects
                       where dominator_id is not null group by 1)
         select count(*) from objects o left join held on held.id = o.id
         where o.reachable and o.retained_bytes <> o.shallow_bytes + coalesce(held.bytes, 0)",
    );
    assert_eq!(wrong, "0");
}

#[test]
fn strong_references_equal_those_of_the_graph() {
    let snapshot = shop().snapshot();
    let graph = snapshot.graph(&Silent).unwrap();
    let mut expected: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let ids = snapshot.parts().ids().unwrap();
    for object in (0..snapshot.object_count() as u32).map(ObjectIndex) {
        let class = snapshot.class_of(object).map(|c| snapshot.classes()[c].id);
        for target in graph.references(object).map(|t| ids.of(t)) {
            if Some(target) != class {
                *expected.entry((ids.of(object).0, target.0)).or_default() += 1;
            }
        }
    }
    let rows = ask(
        shop(),
        "select source_id, target_id, count(*) from refs
         where strength = 'strong' and kind <> 'local' and target_class is not null group by 1, 2
         union all select distinct source_id, target_id, 1 from refs where kind = 'local'",
    );
    let mut found: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for row in rows {
        *found.entry((id(&row[0]).0, id(&row[1]).0)).or_default() += number(&row[2]);
    }
    assert!(found.len() > 100_000);
    let class_of = |id: u64| {
        snapshot
            .class(snapshot.find(ObjectId(id)).unwrap())
            .map(|c| c.id.0)
    };
    found.retain(|&(source, target), _| class_of(source) != Some(target));
    let differ: Vec<_> = expected
        .iter()
        .filter(|(k, n)| found.get(k) != Some(n))
        .collect();
    assert_eq!(differ, []);
    assert_eq!(found.len(), expected.len());
}

#[test]
fn weak_references_have_their_strength() {
    let weak = ask(
        shop(),
        "select strength, count(*) from refs where via = 'java.lang.ref.Reference.referent'
         group by 1 order by 1",
    );
    let all = shop().snapshot().classes();
    let kinds: Vec<&str> = weak.iter().map(|r| &*r[0]).collect();
    assert!(all.iter().any(|(_, c)| c.reference == Reference::Weak));
    assert!(
        kinds.contains(&"weak") && kinds.contains(&"soft"),
        "{kinds:?}"
    );
    assert!(!kinds.contains(&"strong"), "{kinds:?}");
}

#[test]
fn strings_are_decoded() {
    let snapshot = shop().snapshot();
    let rows = ask(shop(), "select id, value, length, text(id) from strings");
    let class = snapshot.classes().by_name("java.lang.String");
    assert_eq!(rows.len(), snapshot.instances(class).len());
    let objects: Vec<ObjectIndex> = rows
        .iter()
        .map(|r| snapshot.find(id(&r[0])).unwrap())
        .collect();
    for (row, text) in rows.iter().zip(snapshot.strings(&objects, 4096)) {
        let text = text.unwrap();
        assert_eq!(row[1], text);
        assert_eq!(row[3], text);
        assert_eq!(
            number(&row[2]),
            text.encode_utf16().count() as u64,
            "{text}"
        );
    }
    let main = one(shop(), "select count(*) from strings where value = 'main'");
    assert_ne!(main, "0");
}

#[test]
fn threads_roots_and_frames_fit_together() {
    let snapshot = shop().snapshot();
    let threads = snapshot.threads();
    assert_eq!(
        one(shop(), "select count(*) from threads"),
        threads.len().to_string()
    );
    let frames: usize = threads.iter().map(|t| t.frames.len()).sum();
    assert_eq!(
        one(shop(), "select count(*) from frames"),
        frames.to_string()
    );
    assert_eq!(
        one(shop(), "select sum(frames) from threads"),
        frames.to_string()
    );
    let top = ask(
        shop(),
        "select class, method from frames where thread = 'main' order by depth limit 1",
    );
    assert_eq!(top, [["java.io.FileInputStream", "readBytes"]]);
    // Each local variable of a frame is a GC root. The column `depth` has the depth of this frame.
    let locals = one(
        shop(),
        "select count(*) from (select distinct r.id, f.depth from roots r join frames f
         on f.thread_serial = r.thread_serial and f.depth = r.depth where f.thread = 'main')",
    );
    assert_eq!(
        locals,
        one(
            shop(),
            "select sum(locals) from frames where thread = 'main'"
        )
    );
    let roots = one(shop(), "select count(*) from roots");
    assert_eq!(roots, snapshot.gc_roots().len().to_string());
}

#[test]
fn a_reference_that_field_returns_is_an_id() {
    let of = "from objects where class = 'java.util.HashMap' and field(id, 'size') > 0";
    let id = one(shop(), &format!("select id {of} order by id limit 1"));
    let table = one(
        shop(),
        &format!("select target_id from refs where source_id = {id} and via like '%table'"),
    );
    assert!(table.starts_with("0x"), "{table}");
    let size = one(
        shop(),
        &format!("select field(id, 'size') from objects where id = {id}"),
    );
    assert!(size.parse::<u32>().is_ok(), "{size}");
    // The column that contains ids is found with and without `order by`, with and without an alias, and after a `*`.
    for columns in ["field(id, 'table')", "FIELD(id, 'table') as t"] {
        assert_eq!(
            one(
                shop(),
                &format!("select {columns} {of} order by id limit 1")
            ),
            table
        );
    }
    let rows = ask(
        shop(),
        &format!("select *, field(id, 'table') t, field(id, 'size') {of} order by id limit 1"),
    );
    assert_eq!(rows[0][rows[0].len() - 2..], [table.clone(), size.clone()]);
    // `field` returns a reference as a number. Only the columns of the final result show this number as an id. So the
    // result of a nested statement is a number, which can be compared with `id`.
    let nested = format!(
        "select class from objects where id = (select field(id, 'table') {of} order by id limit 1)"
    );
    assert_eq!(one(shop(), &nested), "java.util.HashMap$Node[]");
    // The field `value` is a number in one class and a reference in another.
    let both = "select field(id, 'value') from objects where class in ('java.lang.Integer', 'java.lang.String') \
                and field(id, 'value') is not null";
    let kinds = ask(shop(), both);
    let ids = kinds.iter().filter(|row| row[0].starts_with("0x")).count();
    let strings = one(shop(), "select count(*) from strings")
        .parse::<usize>()
        .unwrap();
    assert!(
        ids <= strings && ids * 10 > strings * 9 && ids < kinds.len(),
        "{ids} of {strings}"
    );
}

#[test]
fn fields_are_read() {
    let rows = ask(
        shop(),
        "select field(id, 'table'), field(id, 'size'), field(id, 'loadFactor'), field(id, 'none')
         from objects where class = 'java.util.HashMap' and field(id, 'size') > 0 order by id limit 1",
    );
    let size = number(&rows[0][1]);
    assert!(size > 0);
    assert_eq!(rows[0][2..], ["0.75", "null"]);
    let table = &rows[0][0];
    let nodes = one(
        shop(),
        &format!("select count(*) from refs where source_id = {table}"),
    );
    assert!(number(&nodes) > 0 && number(&nodes) <= size);
    // Static fields are read from class objects.
    let registry = ask(
        shop(),
        "select o.class from classes c
         join refs r on r.source_id = c.id and r.kind = 'static'
         join objects o on o.id = r.target_id where c.class = 'com.acme.shop.SessionRegistry'",
    );
    assert!(
        registry
            .iter()
            .any(|r| r[0] == "java.util.concurrent.ConcurrentHashMap")
    );
}

/// No table contains the agent's objects.
#[test]
fn the_agents_objects_are_not_shown() {
    let heap = sampled();
    assert!(!heap.own().is_empty());
    let objects = heap.snapshot().object_count() - heap.own().objects().len() as u64;
    assert_eq!(
        one(heap, "select count(*) from objects"),
        objects.to_string()
    );
    for sql in [
        "select count(*) from objects where class like 'heapdiff%'",
        "select count(*) from classes where class like 'heapdiff%'",
        "select count(*) from refs where source_class like 'heapdiff%' or target_class like 'heapdiff%'",
        "select count(*) from strings where value like 'heapdiff%'",
        "select count(*) from threads where class like 'heapdiff%'",
    ] {
        assert_eq!(one(heap, sql), "0", "{sql}");
    }
}

#[test]
fn samples_equal_those_of_the_agent() {
    let heap = sampled();
    let (samples, _) = heapdiff_diff::samples::Samples::from_snapshot(heap.snapshot(), heap.own());
    let samples = samples.unwrap();
    assert!(samples.live.len() > 100 && !samples.collected.is_empty());
    let rows = ask(
        heap,
        "select uid, bytes, thread, class, allocated_ms, frame from samples where collected_ms is null",
    );
    let expected: Vec<Vec<String>> = samples
        .live
        .iter()
        .map(|s| {
            let or_null = |text: &str| match text {
                "" => "null".to_owned(),
                text => text.to_owned(),
            };
            let leaf = samples.sites.frames(s.site).next();
            vec![
                s.uid.to_string(),
                s.size.to_string(),
                or_null(samples.name(s.thread)),
                samples.name(s.class).to_owned(),
                s.time_ms.to_string(),
                or_null(leaf.unwrap_or("")),
            ]
        })
        .collect();
    assert_eq!(rows, expected);
    // Each sample refers to the object that it describes.
    let joined = "select count(*) from samples join objects using (id)
                  where samples.class = objects.class and bytes = shallow_bytes and reachable";
    let allocated = samples.live.iter().filter(|s| !s.is_definition).count();
    assert_eq!(one(heap, joined), allocated.to_string());
    let definitions = "select count(*) from samples where is_definition and id is not null
                       and class like 'class %'";
    let defined = samples.live.len() - allocated;
    assert_eq!(one(heap, definitions), defined.to_string());
    let rows = ask(
        heap,
        "select uid, collected_ms, recent, chosen, id from samples where recent or chosen",
    );
    let expected: Vec<Vec<String>> = samples
        .collected
        .iter()
        .map(|c| {
            let (recent, chosen) = (c.recent.to_string(), c.chosen.to_string());
            let (uid, died) = (c.uid.to_string(), c.died_ms.to_string());
            vec![uid, died, recent, chosen, "null".to_owned()]
        })
        .collect();
    assert_eq!(rows, expected);
    let odd = "select count(*) from samples where collected_ms < allocated_ms";
    assert_eq!(one(heap, odd), "0");
    assert_eq!(one(shop(), "select count(*) from samples"), "0");
    assert_eq!(heap.doubt_of_samples(), None);
}
