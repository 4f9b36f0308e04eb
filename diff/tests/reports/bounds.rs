//! Tests the detection of limits: to which collection a limit belongs, and whether the size of the collection stays
//! within the limit.

use crate::common::{self, app::loaded};
use heapdiff_diff::{Report, Suspect, Verdict};
use hprof::Source;
use testdata::writer::{ClassId, Elements, FieldType, HeapBuilder, Obj, Value};

const OBJECT: FieldType = FieldType::Object;
const LONG: FieldType = FieldType::Long;
const INT: FieldType = FieldType::Int;

/// A heap in which the static field `com.acme.App.held` holds everything.
struct App {
    heap: HeapBuilder,
    loader: Obj,
    object: ClassId,
    app: ClassId,
}

impl App {
    fn new() -> Self {
        let (mut heap, boot, loader) = loaded();
        let fields = [("held", Value::NULL)];
        let app = heap.add_class("com.acme.App", Some(boot.object), &[], &fields);
        heap.set_loader(app, loader);
        Self {
            heap,
            loader,
            object: boot.object,
            app,
        }
    }

    fn class(&mut self, name: &str, above: ClassId, fields: &[(&str, FieldType)]) -> ClassId {
        let class = self.heap.add_class(name, Some(above), fields, &[]);
        if !name.starts_with("java.") {
            self.heap.set_loader(class, self.loader);
        }
        class
    }

    fn array(&mut self, elements: Vec<Obj>) -> Obj {
        let object = self.object;
        self.heap.add_object_array(object, elements)
    }

    fn payloads(&mut self, count: usize) -> Vec<Obj> {
        let quote = self.class("com.acme.Quote", self.object, &[("text", OBJECT)]);
        let one = |_| {
            let text = self.heap.add_primitive_array(Elements::Byte(vec![7; 100]));
            self.heap.add_instance(quote, &[text.into()])
        };
        (0..count).map(one).collect()
    }

    /// Adds a hash map with these values.
    fn map(&mut self, values: Vec<Obj>) -> Obj {
        let name = "java.util.concurrent.ConcurrentHashMap";
        let map = self.class(name, self.object, &[("table", OBJECT)]);
        let node = self.class(&format!("{name}$Node"), self.object, &[("val", OBJECT)]);
        let node = |v: Obj| self.heap.add_instance(node, &[v.into()]);
        let nodes: Vec<Obj> = values.into_iter().map(node).collect();
        let table = self.array(nodes);
        self.heap.add_instance(map, &[table.into()])
    }

    fn list(&mut self, values: Vec<Obj>) -> Obj {
        let list = self.class(
            "java.util.ArrayList",
            self.object,
            &[("elementData", OBJECT)],
        );
        let data = self.array(values);
        self.heap.add_instance(list, &[data.into()])
    }

    fn done(mut self, held: Obj) -> Vec<u8> {
        self.heap.set_static(self.app, "held", held);
        self.heap.build()
    }
}

/// Returns the first suspect in a comparison of three dumps with 1,000, 2,000 and 3,000 quotes.
fn suspect(heap: impl Fn(usize) -> Vec<u8>) -> Suspect {
    let dumps = [1000, 2000, 3000].map(|n| Source::from_bytes(heap(n)));
    let report: Report = common::report(dumps);
    let of = |s: &Suspect| s.growth.objects >= 2000;
    let found = report.suspects.iter().find(|s| of(s));
    found.cloned().unwrap_or_else(|| panic!("{report:#?}"))
}

fn has_reason(suspect: &Suspect, part: &str) -> bool {
    suspect.reasons.iter().any(|r| r.contains(part))
}

/// Returns a heap with a Caffeine cache. Caffeine's class has a field for the maximum only if the program set one.
fn caffeine(maximum: Option<i64>, nested: bool, count: usize) -> Vec<u8> {
    let mut app = App::new();
    let package = "com.github.benmanes.caffeine.cache";
    let bounded = format!("{package}.BoundedLocalCache");
    let bounded = app.class(&bounded, app.object, &[("data", OBJECT)]);
    let plain = app.class(&format!("{package}.SSA"), bounded, &[]);
    let full = app.class(&format!("{package}.SSMS"), bounded, &[("maximum", LONG)]);
    let quotes = app.payloads(count);
    let values = if nested {
        vec![app.list(quotes)]
    } else {
        quotes
    };
    let map = app.map(values);
    let cache = match maximum {
        Some(maximum) => app
            .heap
            .add_instance(full, &[Value::Long(maximum), map.into()]),
        None => app.heap.add_instance(plain, &[map.into()]),
    };
    app.done(cache)
}

#[test]
fn caffeine_is_bounded_if_it_has_a_maximum() {
    let s = suspect(|n| caffeine(Some(10_000), false, n));
    assert_eq!(s.verdict, Verdict::Cache, "{s:#?}");
    assert!(has_reason(
        &s,
        "SSMS limits the number of elements: maximum is 10,000"
    ));
    assert!(!has_reason(&s, "extends LinkedHashMap"), "{s:#?}");
    // A cache whose entries expire, but are not limited in number, has no maximum.
    let s = suspect(|n| caffeine(None, false, n));
    assert_eq!(s.verdict, Verdict::Leak, "{s:#?}");
    assert!(!has_reason(&s, "limits the"), "{s:#?}");
    // If a list is an element of a bounded cache, the bound does not apply to the list.
    let s = suspect(|n| caffeine(Some(10_000), true, n));
    assert_eq!(s.verdict, Verdict::Leak, "{s:#?}");
    assert!(!has_reason(&s, "limits the"), "{s:#?}");
}

/// Returns a heap with Guava's cache. It also has a constant whose name looks like that of a maximum.
fn guava(max_weight: i64, weigher: &str, count: usize) -> Vec<u8> {
    let mut app = App::new();
    let weigher = app.class(weigher, app.object, &[]);
    let weigher = app.heap.add_instance(weigher, &[]);
    let constant = [("MAX_SEGMENTS", Value::Int(65_536))];
    let local = app.heap.add_class(
        "com.google.common.cache.LocalCache",
        Some(app.object),
        &[
            ("maxWeight", LONG),
            ("weigher", OBJECT),
            ("segments", OBJECT),
        ],
        &constant,
    );
    app.heap.set_loader(local, app.loader);
    let segment = "com.google.common.cache.LocalCache$Segment";
    let segment = app.class(segment, app.object, &[("table", OBJECT)]);
    let entry = "com.google.common.cache.LocalCache$StrongEntry";
    let entry = app.class(entry, app.object, &[("valueReference", OBJECT)]);
    let quotes = app.payloads(count);
    let entries = quotes
        .into_iter()
        .map(|q| app.heap.add_instance(entry, &[q.into()]));
    let entries: Vec<Obj> = entries.collect();
    let table = app.array(entries);
    let segment = app.heap.add_instance(segment, &[table.into()]);
    let segments = app.array(vec![segment]);
    let cache = app.heap.add_instance(
        local,
        &[Value::Long(max_weight), weigher.into(), segments.into()],
    );
    app.done(cache)
}

#[test]
fn a_constant_of_a_library_is_no_bound() {
    let one = "com.google.common.cache.CacheBuilder$OneWeigher";
    let s = suspect(|n| guava(10_000, one, n));
    assert_eq!(s.verdict, Verdict::Cache, "{s:#?}");
    assert!(has_reason(&s, "maxWeight is 10,000"), "{s:#?}");
    assert!(!has_reason(&s, "weights"), "{s:#?}");
    // In a cache that weighs its entries, an entry may weigh more than 1. So the report states the limit as a sum of
    // weights, not as a number of entries.
    let s = suspect(|n| guava(1_000_000, "com.acme.Bytes", n));
    assert!(
        has_reason(
            &s,
            "com.google.common.cache.LocalCache limits the sum of weights: maxWeight is 1,000,000"
        ),
        "{s:#?}"
    );
    let s = suspect(|n| guava(-1, one, n));
    assert_eq!(s.verdict, Verdict::Leak, "{s:#?}");
    assert!(!has_reason(&s, "MAX_SEGMENTS"), "{s:#?}");
}

/// Returns a heap with a queue that consists of nodes and has a capacity. If `nested` is true, the queue has one
/// element, which holds a list.
fn queue(capacity: i32, nested: bool, count: usize) -> Vec<u8> {
    let mut app = App::new();
    let name = "java.util.concurrent.LinkedBlockingQueue";
    let fields = [("capacity", INT), ("head", OBJECT)];
    let queue = app.class(name, app.object, &fields);
    let node = [("item", OBJECT), ("next", OBJECT)];
    let node = app.class(&format!("{name}$Node"), app.object, &node);
    let quotes = app.payloads(count);
    let items = if nested {
        vec![app.list(quotes)]
    } else {
        quotes
    };
    let mut head: Option<Obj> = None;
    for item in items {
        let next = head.map_or(Value::NULL, Value::from);
        head = Some(app.heap.add_instance(node, &[item.into(), next]));
    }
    let head = head.map_or(Value::NULL, Value::from);
    let queue = app.heap.add_instance(queue, &[Value::Int(capacity), head]);
    app.done(queue)
}

#[test]
fn a_queue_bounds_only_its_own_elements() {
    let s = suspect(|n| queue(10_000, false, n));
    assert_eq!(s.verdict, Verdict::Cache, "{s:#?}");
    assert!(has_reason(&s, "capacity is 10,000"), "{s:#?}");
    for (capacity, nested) in [(i32::MAX, false), (10_000, true)] {
        let s = suspect(|n| queue(capacity, nested, n));
        assert_eq!(s.verdict, Verdict::Leak, "{s:#?}");
        assert!(!has_reason(&s, "capacity"), "{s:#?}");
    }
}

/// Returns a heap with a weak map, and another object that keeps the map's keys alive.
fn weak(count: usize) -> Vec<u8> {
    let mut app = App::new();
    let boot = app.heap.boot();
    let map = app.class("java.util.WeakHashMap", app.object, &[("table", OBJECT)]);
    let entry = app.class(
        "java.util.WeakHashMap$Entry",
        boot.weak_reference,
        &[("value", OBJECT)],
    );
    let mut keys = Vec::new();
    let quotes = app.payloads(count);
    let mut entries = Vec::new();
    for quote in quotes {
        let key = app.heap.add_primitive_array(Elements::Byte(vec![1; 8]));
        keys.push(key);
        let entry = app.heap.add_reference_of(entry, key);
        app.heap.set_field(entry, "value", quote);
        entries.push(entry);
    }
    let table = app.array(entries);
    let map = app.heap.add_instance(map, &[table.into()]);
    let keys = app.array(keys);
    let both = app.array(vec![map, keys]);
    app.done(both)
}

#[test]
fn a_weak_map_whose_keys_are_held_is_no_cache() {
    let s = suspect(weak);
    assert_eq!(s.verdict, Verdict::Growth, "{s:#?}");
    assert!(has_reason(&s, "look for the holders of the keys"), "{s:#?}");
}

/// Returns a heap with entries. The entries refer to their values either through a subclass of soft references, or
/// through plain objects.
fn soft_values(soft: bool, count: usize) -> Vec<u8> {
    let mut app = App::new();
    let boot = app.heap.boot();
    let value = app.class("com.acme.cache.SoftValue", boot.soft_reference, &[]);
    let plain = app.class("com.acme.cache.Plain", app.object, &[("value", OBJECT)]);
    let entry = app.class("com.acme.cache.Entry", app.object, &[("value", OBJECT)]);
    let quotes = app.payloads(count);
    let mut entries = Vec::new();
    for quote in quotes {
        let held = if soft {
            app.heap.add_reference_of(value, quote)
        } else {
            app.heap.add_instance(plain, &[quote.into()])
        };
        entries.push(app.heap.add_instance(entry, &[held.into()]));
    }
    let table = app.array(entries);
    app.done(table)
}

/// Returns a heap with entries. Each entry has a key and a soft reference to its value. The references have no
/// reference queue, so nothing can remove the entries.
fn soft_entries(queue: &str, count: usize) -> Vec<u8> {
    let mut app = App::new();
    let boot = app.heap.boot();
    let queue = app.class(queue, app.object, &[]);
    let queue = app.heap.add_instance(queue, &[]);
    let entry = app.class(
        "com.acme.Entry",
        app.object,
        &[("key", OBJECT), ("value", OBJECT)],
    );
    let quotes = app.payloads(3 * count);
    let mut entries = Vec::new();
    for quotes in quotes.chunks(3) {
        let value = app.array(quotes[1..].to_vec());
        let held = app.heap.add_reference_of(boot.soft_reference, value);
        app.heap.set_field(held, "queue", queue);
        entries.push(
            app.heap
                .add_instance(entry, &[quotes[0].into(), held.into()]),
        );
    }
    let table = app.array(entries);
    app.done(table)
}

#[test]
fn soft_values_without_a_queue_leave_their_entries() {
    let s = suspect(|n| soft_entries("java.lang.ref.ReferenceQueue$Null", n));
    assert_eq!(s.verdict, Verdict::Leak, "{s:#?}");
    assert!(
        has_reason(&s, "because these have no reference queue"),
        "{s:#?}"
    );
    let s = suspect(|n| soft_entries("java.lang.ref.ReferenceQueue", n));
    assert_eq!(s.verdict, Verdict::Cache, "{s:#?}");
    assert!(!has_reason(&s, "have no reference queue"), "{s:#?}");
}

#[test]
fn soft_values_make_a_cache() {
    let s = suspect(|n| soft_values(true, n));
    assert_eq!(s.verdict, Verdict::Cache, "{s:#?}");
    assert!(has_reason(
        &s,
        "soft references (com.acme.cache.SoftValue) hold most of the content: the JVM clears them"
    ));
    let s = suspect(|n| soft_values(false, n));
    assert_eq!(s.verdict, Verdict::Leak, "{s:#?}");
    assert!(!has_reason(&s, "soft references"), "{s:#?}");
    assert!(
        !has_reason(&s, "look for the holders of the keys"),
        "{s:#?}"
    );
}

/// Returns a heap with a class that has two lists, and a constant that limits only one of them.
fn two_lists(constant: &str, value: i32, count: usize) -> Vec<u8> {
    let (mut heap, boot, loader) = loaded();
    let statics = [
        ("users", Value::NULL),
        ("sessions", Value::NULL),
        (constant, Value::Int(value)),
    ];
    let owner = heap.add_class("com.acme.Registry", Some(boot.object), &[], &statics);
    heap.set_loader(owner, loader);
    let row = heap.add_class("com.acme.Row", Some(boot.object), &[("body", OBJECT)], &[]);
    heap.set_loader(row, loader);
    for (field, count) in [("users", count), ("sessions", 20)] {
        let rows: Vec<Obj> = (0..count)
            .map(|_| {
                let body = heap.add_primitive_array(Elements::Byte(vec![7; 100]));
                heap.add_instance(row, &[body.into()])
            })
            .collect();
        let list = heap.add_object_array(boot.object, rows);
        heap.set_static(owner, field, list);
    }
    heap.build()
}

#[test]
fn a_limit_belongs_to_the_collection_that_it_names() {
    let hint = |constant: &'static str| {
        let dumps = [1000, 2000, 3000].map(|n| Source::from_bytes(two_lists(constant, 4000, n)));
        let report = common::report(dumps);
        let s = report.suspects.into_iter().next().unwrap();
        assert_eq!(s.holder, "com.acme.Registry.users");
        has_reason(&s, "there may be a limit")
    };
    assert!(hint("MAX_USERS"));
    assert!(!hint("MAX_SESSIONS"));
    assert!(!hint("MAX_USER_BYTES"));
}

/// Returns a heap with a limited cache whose entries are spread over 16 lists.
fn segments(limit: i32, count: usize) -> Vec<u8> {
    let mut app = App::new();
    let cache = app.class(
        "com.acme.Cache",
        app.object,
        &[("segments", OBJECT), ("maxSize", INT)],
    );
    let quotes = app.payloads(count);
    let segments: Vec<Obj> = quotes
        .chunks(count.div_ceil(16))
        .map(|quotes| app.list(quotes.to_vec()))
        .collect();
    let segments = app.array(segments);
    let cache = app
        .heap
        .add_instance(cache, &[segments.into(), Value::Int(limit)]);
    app.done(cache)
}

#[test]
fn a_limit_of_a_whole_cache_is_compared_with_all_segments() {
    let s = suspect(|n| segments(4000, n));
    let sentence =
        "there may be a limit: com.acme.Cache.maxSize is 4,000, and 3,000 objects are held";
    assert!(s.reasons.iter().any(|r| r == sentence), "{s:#?}");
}
