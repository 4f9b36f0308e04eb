//! Tests verdicts, and statements about holders, for heaps in which every object is known.

use crate::common::{self, app::loaded};
use heapdiff_diff::{Report, Suspect, Verdict};
use hprof::Source;
use testdata::writer::{self, ClassId, Elements, FieldType, HeapBuilder, Obj, Ref, Value};

const OBJECT: FieldType = FieldType::Object;

fn report(dumps: Vec<Vec<u8>>) -> Report {
    common::report(dumps.into_iter().map(Source::from_bytes))
}

/// Returns the suspect with this holder.
fn held_by<'a>(report: &'a Report, holder: &str) -> &'a Suspect {
    let found = report.suspects.iter().find(|s| s.holder == holder);
    found.unwrap_or_else(|| panic!("no {holder} in {:#?}", report.suspects))
}

fn has_reason(suspect: &Suspect, part: &str) -> bool {
    suspect.reasons.iter().any(|r| r.contains(part))
}

/// Builds the heap of an application.
struct App {
    heap: HeapBuilder,
    object: ClassId,
    loader: Obj,
    /// Number of global references so far.
    globals: u64,
}

impl App {
    fn new() -> Self {
        let (heap, boot, loader) = loaded();
        Self {
            heap,
            object: boot.object,
            loader,
            globals: 1,
        }
    }

    fn class(&mut self, name: &str, fields: &[(&str, FieldType)]) -> ClassId {
        let object = self.object;
        self.extend(name, object, fields)
    }

    fn extend(&mut self, name: &str, above: ClassId, fields: &[(&str, FieldType)]) -> ClassId {
        let class = self.heap.add_class(name, Some(above), fields, &[]);
        if name.starts_with("com.") {
            self.heap.set_loader(class, self.loader);
        }
        class
    }

    /// Adds a class with static fields.
    fn statics(&mut self, name: &str, statics: &[(&str, Value)]) -> ClassId {
        let object = self.object;
        let class = self.heap.add_class(name, Some(object), &[], statics);
        if name.starts_with("com.") {
            self.heap.set_loader(class, self.loader);
        } else {
            self.root(class);
        }
        class
    }

    fn root(&mut self, target: impl Into<Ref>) {
        self.globals += 1;
        let global_ref = self.globals;
        self.heap
            .add_root(writer::Root::JniGlobal { global_ref }, target);
    }

    fn bytes(&mut self, len: usize) -> Obj {
        self.heap.add_primitive_array(Elements::Byte(vec![7; len]))
    }

    fn array(&mut self, elements: Vec<Obj>) -> Obj {
        let object = self.object;
        self.heap.add_object_array(object, elements)
    }

    /// Adds `count` objects of a class, each with a payload of a hundred bytes.
    fn entries(&mut self, class: ClassId, count: usize) -> Vec<Obj> {
        let one = |_| {
            let payload = self.bytes(100);
            self.heap.add_instance(class, &[payload.into()])
        };
        (0..count).map(one).collect()
    }

    fn done(self) -> Vec<u8> {
        self.heap.build()
    }
}

/// Returns a dump in which each static field of the class `Registry` holds the given number of entries.
fn registry(counts: &[(&str, usize)]) -> Vec<u8> {
    let mut app = App::new();
    let entry = app.class("com.acme.Entry", &[("payload", OBJECT)]);
    let names: Vec<(&str, Value)> = counts.iter().map(|&(n, _)| (n, Value::NULL)).collect();
    let registry = app.statics("com.acme.Registry", &names);
    for &(name, count) in counts {
        let all = app.entries(entry, count);
        let all = app.array(all);
        app.heap.set_static(registry, name, all);
    }
    app.done()
}

#[test]
fn four_dumps_distinguish_all_trends() {
    // All other fields grow by more than the leak does.
    let series = [
        ("leak", [1000, 2000, 3000, 4000]),
        ("filled", [1000, 6000, 9000, 9000]),
        ("warm", [100, 7000, 7010, 7005]),
        ("jumped", [500, 500, 8000, 8000]),
        ("batch", [1000, 8000, 2000, 7500]),
        ("steady", [9000, 9000, 9010, 9005]),
        ("uneven", [1000, 1500, 1500, 2200]),
    ];
    let dump = |i: usize| registry(&series.map(|(name, counts)| (name, counts[i])));
    let report = report((0..4).map(dump).collect());
    let found: Vec<(&str, Verdict, Option<&str>)> = report
        .suspects
        .iter()
        .map(|s| {
            let field = s.holder.rsplit('.').next().unwrap();
            (field, s.verdict, s.trend.as_deref())
        })
        .collect();
    assert_eq!(
        found,
        [
            ("leak", Verdict::Leak, Some("steady")),
            ("uneven", Verdict::Growth, Some("uneven")),
            ("filled", Verdict::Cache, Some("plateau")),
            ("jumped", Verdict::Warmup, Some("jump")),
            ("warm", Verdict::Warmup, Some("warm-up")),
            ("batch", Verdict::Cache, Some("sawtooth")),
        ]
        .map(|f| f),
        "{:#?}",
        report.suspects
    );
    let leak = &report.suspects[0];
    assert_eq!(leak.objects, [1000, 2000, 3000, 4000]);
    assert!(has_reason(leak, "3 of 3 steps"), "{:?}", leak.reasons);
}

#[test]
fn two_dumps_of_a_filling_table_show_growth_only() {
    let report = report(vec![
        registry(&[("table", 1000)]),
        registry(&[("table", 3000)]),
    ]);
    let s = &report.suspects[0];
    assert_eq!((s.verdict, s.trend.as_deref()), (Verdict::Growth, None));
    assert!(
        has_reason(s, "two dumps cannot distinguish a leak from a cache"),
        "{:?}",
        s.reasons
    );
}

#[test]
fn objects_on_other_paths_in_one_dump_are_not_gone() {
    // In the second dump, a local variable of a thread refers to the entries in addition to the static field, so no
    // field dominates them.
    let heap = |count: usize, held: bool| {
        let mut app = App::new();
        let entry = app.class("com.acme.Entry", &[("payload", OBJECT)]);
        let registry = app.statics("com.acme.Registry", &[("entries", Value::NULL)]);
        let all = app.entries(entry, count);
        let all = app.array(all);
        app.heap.set_static(registry, "entries", all);
        let thread = app.heap.add_thread("main", &[]);
        if held {
            app.heap.add_local(thread, -1, all);
        }
        app.done()
    };
    let report = report(vec![
        heap(1000, false),
        heap(2000, true),
        heap(3000, false),
        heap(4000, false),
    ]);
    let s = held_by(&report, "com.acme.Registry.entries");
    assert_eq!(
        (s.verdict, s.trend.as_deref()),
        (Verdict::Leak, Some("steady")),
        "{s:#?}"
    );
    // The report finds the entries of the second dump below the local variable and counts them there. So it does not
    // interpolate their number from the other dumps.
    assert_eq!(s.objects, [1000, 2000, 3000, 4000]);
    assert!(!has_reason(s, "in dump 2"), "{:?}", s.reasons);
}

/// Returns a dump of a server with tenants. For each number in `sizes`, it has a tenant with a list of this number of
/// orders.
fn tenants(sizes: &[usize]) -> Vec<u8> {
    let mut app = App::new();
    let entry = app.class("com.acme.Order", &[("payload", OBJECT)]);
    let tenant = app.class("com.acme.Tenant", &[("orders", OBJECT)]);
    let list = app.extend(
        "java.util.ArrayList",
        app.object,
        &[("elementData", OBJECT), ("size", FieldType::Int)],
    );
    let server = app.statics("com.acme.Server", &[("tenants", Value::NULL)]);
    let one = |&size: &usize| {
        let all = app.entries(entry, size);
        let all = app.array(all);
        let size = i32::try_from(size).unwrap();
        let orders = app.heap.add_instance(list, &[all.into(), Value::Int(size)]);
        app.heap.add_instance(tenant, &[orders.into()])
    };
    let all: Vec<Obj> = sizes.iter().map(one).collect();
    let all = app.array(all);
    app.heap.set_static(server, "tenants", all);
    app.done()
}

#[test]
fn growth_in_a_thousand_lists_is_one_pattern() {
    let report = report(vec![tenants(&[4; 1000]), tenants(&[7; 1000])]);
    assert_eq!(report.suspects.len(), 1, "{:#?}", report.suspects);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.holder, &*s.class, s.holders, s.growth.objects),
        ("com.acme.Tenant.orders", "com.acme.Order", 1000, 3000)
    );
    assert!(
        has_reason(
            s,
            "spread over 1,000 objects of class java.util.ArrayList, which retain 952 bytes each on average (544 in the first dump)"
        ),
        "{:?}",
        s.reasons
    );
    assert!(!has_reason(s, "holds most of the bytes"), "{:?}", s.reasons);
}

#[test]
fn growth_in_one_list_of_many_is_no_pattern() {
    let mut after = [2; 100];
    after[42] = 3000;
    let report = report(vec![tenants(&[2; 100]), tenants(&after)]);
    let s = &report.suspects[0];
    assert!(has_reason(s, "one of 100 objects"), "{:?}", s.reasons);
    assert!(has_reason(s, "holds most of the bytes"), "{:?}", s.reasons);
    assert!(!has_reason(s, "spread over"));
}

#[test]
fn the_referrers_that_grow_are_named() {
    // Three arrays refer to the same messages. The arrays of `Index` and `Backlog` grow with the number of messages.
    // The array of `Slots` does not grow, because it has room for all messages from the start.
    let heap = |count: usize| {
        let mut app = App::new();
        let message = app.class("com.acme.Message", &[("payload", OBJECT)]);
        let all = app.entries(message, count);
        let holders = [
            ("com.acme.Index", "all", count),
            ("com.acme.Backlog", "open", count),
            ("com.acme.Slots", "ring", 8192),
        ];
        for (class, field, room) in holders {
            let holder = app.statics(class, &[(field, Value::NULL)]);
            app.root(holder);
            let object = app.object;
            let array = app
                .heap
                .add_object_array(object, vec![writer::Ref::Null; room]);
            for (i, &one) in all.iter().enumerate() {
                app.heap.set_element(array, i, one);
            }
            app.heap.set_static(holder, field, array);
        }
        app.done()
    };
    let report = report(vec![heap(2000), heap(7000)]);
    let s = report
        .suspects
        .iter()
        .find(|s| s.class == "com.acme.Message")
        .unwrap();
    let mut held: Vec<&str> = s.also_held_by.iter().map(|h| &**h).collect();
    held.push(&s.holder);
    held.sort_unstable();
    assert_eq!(
        held,
        [
            "com.acme.Backlog.open",
            "com.acme.Index.all",
            "com.acme.Slots.ring"
        ],
        "{s:#?}"
    );
    let sentence = "but only com.acme.Index.all and com.acme.Backlog.open grew: clear all these fields to free the objects";
    assert!(has_reason(s, sentence), "{:?}", s.reasons);
}

/// Each of two indexes holds the same customers in its nodes. So neither index dominates the customers.
#[test]
fn nodes_that_share_objects_are_not_a_separate_leak() {
    let heap = |count: usize| {
        let mut app = App::new();
        let customer = app.class("com.acme.Customer", &[("payload", OBJECT)]);
        let node = app.class("java.util.HashMap$Node", &[("value", OBJECT)]);
        let all = app.entries(customer, count);
        for (class, field) in [("com.acme.ByName", "index"), ("com.acme.ByMail", "index")] {
            let holder = app.statics(class, &[(field, Value::NULL)]);
            app.root(holder);
            let nodes = all
                .iter()
                .map(|&c| app.heap.add_instance(node, &[c.into()]));
            let nodes: Vec<Obj> = nodes.collect();
            let table = app.array(nodes);
            app.heap.set_static(holder, field, table);
        }
        app.done()
    };
    let report = report(vec![heap(2000), heap(6000)]);
    assert_eq!(report.suspects.len(), 1, "{:#?}", report.suspects);
    let s = &report.suspects[0];
    assert_eq!((&*s.class, s.growth.objects), ("com.acme.Customer", 4000));
    let mut both = vec![&*s.holder, &*s.also_held_by[0]];
    both.sort_unstable();
    assert_eq!(both, ["com.acme.ByMail.index", "com.acme.ByName.index"]);
    let alone = common::alone(Source::from_bytes(heap(6000)));
    let told = |r: &String| r.contains("holds the same objects, and its own size is");
    assert!(
        alone.suspects.iter().any(|s| s.reasons.iter().any(told)),
        "{alone:#?}"
    );
    // The nodes in the field `s.holder` are part of that field's content, so the report does not mention them as
    // another collection.
    let told = |field: &str| {
        has_reason(
            s,
            &format!("the collection in {field} holds the same objects and grew by"),
        )
    };
    assert!(
        told(&s.also_held_by[0]) && !told(&s.holder),
        "{:?}",
        s.reasons
    );
}

#[test]
fn a_large_steady_field_is_not_a_suspect() {
    let heap = |leak| registry(&[("table", 50_000), ("leak", leak)]);
    let report = report(vec![heap(1000), heap(2000), heap(3000)]);
    let holders: Vec<&str> = report.suspects.iter().map(|s| &*s.holder).collect();
    assert_eq!(holders, ["com.acme.Registry.leak"]);
}

/// Returns a dump of a cache with `count` entries. The cache has a field with its limit.
fn bounded(field: &str, bound: i32, count: usize) -> Vec<u8> {
    let mut app = App::new();
    let entry = app.class("com.acme.Entry", &[("payload", OBJECT)]);
    let cache = app.class(
        "com.acme.Cache",
        &[("entries", OBJECT), (field, FieldType::Int)],
    );
    let server = app.statics("com.acme.Server", &[("cache", Value::NULL)]);
    let all = app.entries(entry, count);
    let all = app.array(all);
    let cache = app
        .heap
        .add_instance(cache, &[all.into(), Value::Int(bound)]);
    app.heap.set_static(server, "cache", cache);
    app.done()
}

#[test]
fn a_number_named_like_a_bound_is_a_hint() {
    let verdict = |field: &str, bound| {
        let report = report(vec![
            bounded(field, bound, 1000),
            bounded(field, bound, 3000),
        ]);
        let s = held_by(&report, "com.acme.Cache.entries");
        (
            s.verdict,
            has_reason(s, "com.acme.Cache.maxEntries is 4,000"),
        )
    };
    assert_eq!(verdict("maxEntries", 4000), (Verdict::Growth, true));
    // A number is not taken as a limit if the entries already exceed it, or if the name of its field does not suggest a
    // limit.
    assert_eq!(verdict("maxEntries", 2000), (Verdict::Growth, false));
    assert_eq!(verdict("served", 4000), (Verdict::Growth, false));
}

#[test]
fn a_bound_that_is_reached_is_reported() {
    let told = |counts: &[usize]| {
        let dumps = counts.iter().map(|&n| bounded("maxEntries", 4000, n));
        let report = report(dumps.collect());
        let s = held_by(&report, "com.acme.Cache.entries");
        let name = "com.acme.Cache.maxEntries is 4,000, and";
        let full = has_reason(
            s,
            &format!("the limit is reached: {name} 4,000 objects are held"),
        );
        (
            full,
            has_reason(s, "there may be a limit: com.acme.Cache.maxEntries"),
        )
    };
    assert_eq!(told(&[1000, 3000, 4000, 4000]), (true, false));
    assert_eq!(told(&[1000, 2000, 3000]), (false, true));
    // A limit does not count if the number of entries exceeds it.
    assert_eq!(told(&[3000, 4000, 5000]), (false, false));
}

/// The heap has twenty caches, each with its own limit.
#[test]
fn a_limit_of_each_of_several_caches_is_compared_with_their_mean() {
    let heap = |each: usize| {
        let mut app = App::new();
        let entry = app.class("com.acme.Entry", &[("payload", OBJECT)]);
        let fields = [("entries", OBJECT), ("maxEntries", FieldType::Int)];
        let cache = app.class("com.acme.Cache", &fields);
        let server = app.statics("com.acme.Server", &[("caches", Value::NULL)]);
        let one = |_| {
            let all = app.entries(entry, each);
            let all = app.array(all);
            let fields = [all.into(), Value::Int(400)];
            app.heap.add_instance(cache, &fields)
        };
        let caches: Vec<Obj> = (0..20).map(one).collect();
        let caches = app.array(caches);
        app.heap.set_static(server, "caches", caches);
        app.done()
    };
    let report = report([100, 200, 300].map(heap).to_vec());
    let s = held_by(&report, "com.acme.Cache.entries");
    let sentence = "there may be a limit: com.acme.Cache.maxEntries is 400, and each holder has 300 objects on average";
    assert!(has_reason(s, sentence), "{s:#?}");
}

/// Tomcat's `maxActive` is the highest number of sessions so far, not a limit.
#[test]
fn the_maximum_so_far_is_not_a_bound() {
    let verdict = |counts: [usize; 3], bounds: [i32; 3]| {
        let dumps = counts
            .iter()
            .zip(bounds)
            .map(|(&count, bound)| bounded("maxActive", bound, count));
        held_by(&report(dumps.collect()), "com.acme.Cache.entries").verdict
    };
    assert_eq!(
        verdict([1000, 2000, 3000], [1000, 2000, 3000]),
        Verdict::Leak
    );
    assert_eq!(
        verdict([1000, 2000, 3000], [1050, 2050, 3050]),
        Verdict::Leak
    );
    // If the value of `maxActive` is higher than the number of sessions, it may be a limit that the sessions never
    // reached.
    assert_eq!(
        verdict([1000, 2000, 3000], [5000, 5000, 5000]),
        Verdict::Growth
    );
}

#[test]
fn soft_references_make_a_cache() {
    let heap = |count: usize, soft: bool| {
        let mut app = App::new();
        let boot = app.heap.boot();
        let image = app.class("com.acme.Image", &[("payload", OBJECT)]);
        let cache = app.statics("com.acme.Images", &[("all", Value::NULL)]);
        let all = app.entries(image, count);
        let wrap = |one| {
            if soft {
                app.heap.add_reference_of(boot.soft_reference, one)
            } else {
                one
            }
        };
        let all: Vec<Obj> = all.into_iter().map(wrap).collect();
        let all = app.array(all);
        app.heap.set_static(cache, "all", all);
        app.done()
    };
    for (soft, verdict) in [(true, Verdict::Cache), (false, Verdict::Leak)] {
        let dumps = [1000, 2000, 3000].map(|n| heap(n, soft));
        let report = report(dumps.to_vec());
        let s = held_by(&report, "com.acme.Images.all");
        assert_eq!(s.verdict, verdict, "{s:#?}");
        assert_eq!(
            has_reason(
                s,
                "only soft references (java.lang.ref.SoftReference) hold the content: the JVM clears them"
            ),
            soft
        );
    }
}

#[test]
fn a_map_that_may_remove_its_eldest_is_not_always_a_cache() {
    let heap = |count: usize, own: bool| {
        let mut app = App::new();
        let map = app.extend("java.util.HashMap", app.object, &[("table", OBJECT)]);
        let linked = app.extend("java.util.LinkedHashMap", map, &[]);
        let lru = app.extend("com.acme.Cache$1", linked, &[]);
        let node = app.class("java.util.HashMap$Node", &[("value", OBJECT)]);
        let entry = app.class("com.acme.Entry", &[("payload", OBJECT)]);
        let cache = app.statics("com.acme.Cache", &[("map", Value::NULL)]);
        let all = app.entries(entry, count).into_iter();
        let nodes = all.map(|e| app.heap.add_instance(node, &[e.into()]));
        let nodes: Vec<Obj> = nodes.collect();
        let table = app.array(nodes);
        let of = if own { lru } else { linked };
        let map = app.heap.add_instance(of, &[table.into()]);
        app.heap.set_static(cache, "map", map);
        app.done()
    };
    for (own, verdict) in [(true, Verdict::Growth), (false, Verdict::Leak)] {
        let report = report([1000, 2000, 3000].map(|n| heap(n, own)).to_vec());
        let s = held_by(&report, "com.acme.Cache.map");
        assert_eq!(
            (s.verdict, &*s.class),
            (verdict, "com.acme.Entry"),
            "{s:#?}"
        );
        assert_eq!(
            has_reason(
                s,
                "extends LinkedHashMap: it may be a cache that removes its eldest entry"
            ),
            own
        );
    }
    // The verdict on a cache that is full and stays level is `cache`.
    let report = report([1000, 2000, 3000, 3000].map(|n| heap(n, true)).to_vec());
    let s = held_by(&report, "com.acme.Cache.map");
    assert_eq!(s.verdict, Verdict::Cache, "{s:#?}");
}

#[test]
fn an_array_that_is_mostly_empty_is_no_leak() {
    let heap = |slots: usize, used: usize| {
        let mut app = App::new();
        let ring = app.statics("com.acme.Ring", &[("slots", Value::NULL)]);
        let one = app.bytes(8);
        let object = app.object;
        let array = app
            .heap
            .add_object_array(object, vec![writer::Ref::Null; slots]);
        (0..used).for_each(|i| app.heap.set_element(array, i, one));
        app.heap.set_static(ring, "slots", array);
        app.done()
    };
    for (used, verdict) in [(1000, Verdict::Cache), (30_000, Verdict::Growth)] {
        let report = report(vec![heap(8_000, 1000), heap(32_000, used)]);
        let s = held_by(&report, "com.acme.Ring.slots");
        assert_eq!(s.verdict, verdict, "{s:#?}");
        let empty = "31,000 of 32,000 slots are empty: the array was created with this size, or needed it earlier";
        assert_eq!(has_reason(s, empty), used == 1000);
    }
}
