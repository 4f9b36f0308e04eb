//! Tests holders and verdicts for heaps for which an earlier version named the wrong cause. The tests check fields of
//! the report, and that certain words are absent.

use crate::common::{self, app::App};
use heapdiff_diff::{Gates, Report, Suspect, Verdict};
use hprof::Source;
use testdata::sampled::{AgentHeap, Sampled};
use testdata::writer::{FieldType, Frame, HeapBuilder, Obj, Ref, ReferenceKind, Root, Value};

const OBJECT: FieldType = FieldType::Object;
const INT: FieldType = FieldType::Int;

fn report(dumps: impl IntoIterator<Item = HeapBuilder>) -> Report {
    let dumps = dumps.into_iter();
    common::report(dumps.map(|heap| Source::from_bytes(heap.build())))
}

fn first(dumps: impl IntoIterator<Item = HeapBuilder>) -> Suspect {
    let report = report(dumps);
    let first = report.suspects.first().cloned();
    first.unwrap_or_else(|| panic!("{report:#?}"))
}

/// Returns the names of all holders in alphabetical order.
fn holders(suspect: &Suspect) -> Vec<&str> {
    let also = suspect.also_held_by.iter().map(|name| &**name);
    let mut all: Vec<&str> = also.chain([&*suspect.holder]).collect();
    all.sort_unstable();
    all
}

/// Returns a heap with a table in a static field. The dump is taken `seconds` seconds after a fixed time.
fn table(seconds: u64, rows: usize, body: usize) -> HeapBuilder {
    let mut app = App::at(1_700_000_000_000 + seconds * 1000);
    let table = app.class("com.acme.Table", &[], &["rows"]);
    let row = app.class("com.acme.Row", &["body"], &[]);
    let rows = app.rows(row, rows, body);
    let rows = app.array(rows);
    app.heap.set_static(table, "rows", rows);
    app.heap
}

/// Returns a heap with direct buffers of 100,000 bytes. They are in a list that a local variable holds. The JDK has its
/// own list of the buffers' cleaners.
fn chunks(count: usize) -> HeapBuilder {
    let mut app = App::new();
    let object = app.boot.object;
    let long = FieldType::Long;
    let buffer = [("capacity", INT), ("address", long)];
    let buffer = app
        .heap
        .add_class("java.nio.Buffer", Some(object), &buffer, &[]);
    let fields = [("cleaner", OBJECT), ("att", OBJECT), ("fd", OBJECT)];
    let name = "java.nio.DirectByteBuffer";
    let direct = app.heap.add_class(name, Some(buffer), &fields, &[]);
    let fields = [("address", long), ("size", long), ("capacity", long)];
    let name = "java.nio.DirectByteBuffer$Deallocator";
    let action = app.heap.add_class(name, Some(object), &fields, &[]);
    let fields = [("next", OBJECT), ("prev", OBJECT), ("thunk", OBJECT)];
    let cleaner = app.heap.add_class(
        "jdk.internal.ref.Cleaner",
        Some(app.boot.phantom_reference),
        &fields,
        &[("first", Value::NULL)],
    );
    let (mut all, mut cleaners): (Vec<Obj>, Vec<Obj>) = Default::default();
    for _ in 0..count {
        let one = app.heap.add_instance(direct, &[]);
        let of_one = app.heap.add_reference_of(cleaner, one);
        let thunk = app.heap.add_instance(action, &[]);
        app.heap.set_field(one, "capacity", 100_000);
        app.heap.set_field(one, "cleaner", of_one);
        app.heap.set_field(of_one, "thunk", thunk);
        if let Some(&before) = cleaners.last() {
            app.heap.set_field(before, "next", of_one);
            app.heap.set_field(of_one, "prev", before);
        }
        all.push(one);
        cleaners.push(of_one);
    }
    app.heap.set_static(cleaner, "first", cleaners[0]);
    let owner = app.class("com.acme.Chunks", &["open"], &[]);
    let list = app.array(all);
    let owner_object = app.heap.add_instance(owner, &[list.into()]);
    let frames = [Frame::new(&app.heap, owner, "main", 7)];
    let thread = app.heap.add_thread("main", &frames);
    app.heap.add_local(thread, 0, owner_object);
    app.heap
}

#[test]
fn direct_buffers_are_held_by_the_list_of_the_application() {
    let suspect = first([900, 1800].map(chunks));
    assert_eq!(
        (&*suspect.holder, &*suspect.class),
        ("com.acme.Chunks.open", "java.nio.DirectByteBuffer"),
        "{suspect:#?}"
    );
    assert_eq!(suspect.detector.as_deref(), Some("direct-buffer"));
    assert_eq!(suspect.off_heap_bytes, [90_000_000, 180_000_000]);
    // Growth of 90 MB outside the heap exceeds a limit of 50 MB.
    let gates = Gates {
        growth: Some(50_000_000),
        suspect: false,
    };
    assert!(gates.fails_gate(&suspect));
}

/// Two local variables of one thread refer to the same strings. The thread's name is a string, too.
#[test]
fn a_thread_name_is_not_the_holder_of_shared_strings() {
    let heap = |count: usize| {
        let mut app = App::new();
        let main = app.class("com.acme.Main", &[], &[]);
        let frames = [Frame::new(&app.heap, main, "main", 7)];
        let thread = app.heap.add_thread("main", &frames);
        let all: Vec<Obj> = (0..count)
            .map(|at| app.heap.add_string(&format!("customer {at:06}")))
            .collect();
        for _ in ["by name", "by mail"] {
            let array = app.array(all.clone());
            app.heap.add_local(thread, 0, array);
        }
        app.heap
    };
    let report = report([600, 2800, 5000].map(heap));
    let strings = |s: &&Suspect| s.class == "java.lang.String";
    let strings = report.suspects.iter().find(strings).unwrap();
    assert_eq!(strings.growth.objects, 4400);
    assert_eq!(strings.holder, "(several paths)", "{report:#?}");
}

/// Returns a heap with a queue of tickets. Two fields of the queue lead to the tickets. An index holds the same
/// tickets.
fn queue(open: usize, closed: usize) -> HeapBuilder {
    let mut app = App::new();
    let queue = app.class("com.acme.Queue", &["open", "closed"], &["only"]);
    let index = app.class("com.acme.TicketIndex", &["all"], &["only"]);
    let ticket = app.class("com.acme.Ticket", &["body"], &[]);
    let [open, closed] = [open, closed].map(|count| app.rows(ticket, count, 100));
    let all = app.array([&open[..], &closed].concat());
    let index_object = app.heap.add_instance(index, &[all.into()]);
    app.heap.set_static(index, "only", index_object);
    let [open, closed] = [open, closed].map(|tickets| app.array(tickets));
    let only = app.heap.add_instance(queue, &[open.into(), closed.into()]);
    app.heap.set_static(queue, "only", only);
    app.heap
}

#[test]
fn two_fields_of_one_object_are_two_holders() {
    let all = [
        "com.acme.Queue.closed",
        "com.acme.Queue.open",
        "com.acme.TicketIndex.all",
    ];
    let one = first([1000, 3000, 5000].map(|closed| queue(1000, closed)));
    assert_eq!(holders(&one), all, "{one:#?}");
    assert_eq!(one.holder, "com.acme.Queue.closed");
    let both = first([1000, 2000, 3000].map(|each| queue(each, each)));
    assert_eq!(holders(&both), all, "{both:#?}");
}

/// The heap has a doubly linked list. A bounded cache also holds a hundred of the list's entries.
#[test]
fn a_cache_of_some_entries_is_not_the_holder_of_a_linked_list() {
    let heap = |count: usize, is_last: bool| {
        let mut app = App::new();
        let journal = app.class("com.acme.Journal", &["first", "last"], &["only"]);
        let recent = app.class("com.acme.ARecent", &["entries"], &["only"]);
        let entry = app.class("com.acme.Entry", &["next", "before", "body"], &[]);
        let entries: Vec<Obj> = (0..count)
            .map(|_| {
                let body = app.bytes(64).into();
                app.heap
                    .add_instance(entry, &[Value::NULL, Value::NULL, body])
            })
            .collect();
        for pair in entries.windows(2) {
            app.heap.set_field(pair[0], "next", pair[1]);
            app.heap.set_field(pair[1], "before", pair[0]);
        }
        let ends = [entries[0].into(), entries[count - 1].into()];
        let only = app.heap.add_instance(journal, &ends);
        app.heap.set_static(journal, "only", only);
        let cached = if is_last {
            &entries[count - 100..]
        } else {
            &entries[..100]
        };
        let cached = app.array(cached.to_vec());
        let only = app.heap.add_instance(recent, &[cached.into()]);
        app.heap.set_static(recent, "only", only);
        app.heap
    };
    for is_last in [true, false] {
        let suspect = first([1000, 3000, 5000].map(|count| heap(count, is_last)));
        assert_eq!(suspect.holder, "com.acme.Journal.first", "{suspect:#?}");
        assert!(holders(&suspect).contains(&"com.acme.ARecent.entries"));
    }
}

/// The heap has hidden classes of one name. Each has a table in a static field. Only the loader of the classes holds
/// them.
#[test]
fn hidden_classes_of_one_name_are_not_warm_up() {
    let heap = |count: usize| {
        let mut app = App::new();
        let name = "jdk.internal.loader.ClassLoaders$AppClassLoader";
        let loader = app
            .heap
            .add_class(name, Some(app.boot.class_loader), &[], &[]);
        let loader = app.heap.add_class_loader(loader, "app");
        app.heap.add_root(Root::JniGlobal { global_ref: 2 }, loader);
        for at in 0..count {
            let name = format!("com.acme.Plan+0x{:016x}", 0x7f00_0000 + at * 64);
            let plan = app.class(&name, &[], &["table"]);
            app.heap.set_loader(plan, loader);
            let table = app.bytes(2000);
            app.heap.set_static(plan, "table", table);
        }
        app.heap
    };
    let suspect = first([300, 600].map(heap));
    assert_eq!(suspect.verdict, Verdict::Growth, "{suspect:#?}");
}

/// The heap has class loaders that define one class each. Either soft references or an array hold the loaders.
#[test]
fn softly_held_class_loaders_are_not_a_leak() {
    let heap = |count: usize, is_soft: bool| {
        let mut app = App::new();
        let registry = app.class("com.acme.Registry", &[], &["scripts"]);
        let class = app.heap.add_class(
            "com.acme.ScriptLoader",
            Some(app.boot.class_loader),
            &[],
            &[],
        );
        app.heap.set_loader(class, app.loader);
        let loaders: Vec<Obj> = (0..count)
            .map(|_| {
                let loader = app.heap.add_class_loader(class, "script");
                let script = app.class("com.acme.Script", &[], &["source"]);
                app.heap.set_loader(script, loader);
                let source = app.bytes(20_000);
                app.heap.set_static(script, "source", source);
                if is_soft {
                    app.heap.add_reference(ReferenceKind::Soft, loader)
                } else {
                    loader
                }
            })
            .collect();
        let loaders = app.array(loaders);
        app.heap.set_static(registry, "scripts", loaders);
        app.heap
    };
    let soft = first([40, 80, 120].map(|count| heap(count, true)));
    assert_eq!(soft.verdict, Verdict::Cache, "{soft:#?}");
    let strong = first([40, 80, 120].map(|count| heap(count, false)));
    assert_eq!(strong.verdict, Verdict::Leak, "{strong:#?}");
}

/// The sampled objects were allocated through different JDK methods and two generated classes.
#[test]
fn stacks_with_equal_visible_frames_are_merged() {
    const ADD: &str = "com.acme.Bean.add";
    const PUT: &str = "java.util.HashMap.put";
    let sites: [&[&str]; 4] = [
        &["java.util.HashMap.resize", PUT, ADD],
        &[
            "java.util.HashMap.treeify",
            "java.util.HashMap.putVal",
            PUT,
            ADD,
        ],
        &["com.acme.Bean$$EnhancerBySpringCGLIB$$1f2e3d.get", ADD],
        &["com.acme.Bean$$EnhancerBySpringCGLIB$$77.get", ADD],
    ];
    let heap = |count: usize| {
        let mut app = App::new();
        let registry = app.class("com.acme.Registry", &[], &["all"]);
        let arrays: Vec<Obj> = (0..count).map(|_| app.bytes(1000)).collect();
        let mut agent = AgentHeap::new(&sites);
        for (at, &array) in (1..).zip(&arrays) {
            agent.sample(Sampled::new(array, at, 1016, 1 + at as i32 % 4));
        }
        let all = app.array(arrays);
        app.heap.set_static(registry, "all", all);
        agent.add_to(&mut app.heap);
        app.heap
    };
    let suspect = first([200, 600].map(heap));
    assert_eq!(suspect.stacks.len(), 2, "{suspect:#?}");
}

#[test]
fn growth_after_a_large_import_is_not_warm_up() {
    // Growth is significant if it is at least 840,000 bytes.
    let import = first([200, 84_200, 88_200].map(|rows| table(0, rows, 100)));
    assert_eq!(import.verdict, Verdict::Growth, "{import:#?}");
    // If growth has ended, the verdict is warm-up.
    let over = first([200, 84_200, 84_210].map(|rows| table(0, rows, 100)));
    assert_eq!(over.verdict, Verdict::Warmup, "{over:#?}");
}

#[test]
fn a_table_that_was_level_for_a_short_time_is_not_a_leak() {
    let dumps = |counts: &[(u64, usize)]| {
        let dumps = counts.iter().map(|&(at, rows)| table(at, rows, 100));
        first(dumps.collect::<Vec<_>>()).verdict
    };
    let rising = [(0, 1000), (1000, 2000), (2000, 3000)];
    assert_eq!(dumps(&rising), Verdict::Leak);
    let short = [(2050, 3000), (2100, 3000)];
    assert_eq!(dumps(&[&rising[..], &short].concat()), Verdict::Growth);
    let long = [(4000, 3000), (6000, 3000)];
    assert_eq!(dumps(&[&rising[..], &long].concat()), Verdict::Cache);
}

/// Returns a heap with a cache. The cache has a limit, and keeps its entries in one array.
fn cache(limit: i32, entries: usize, body: usize) -> HeapBuilder {
    let mut app = App::new();
    let object = app.boot.object;
    let fields = [("entries", OBJECT), ("maxEntries", INT)];
    let cache = app
        .heap
        .add_class("com.acme.Cache", Some(object), &fields, &[]);
    app.heap.set_loader(cache, app.loader);
    let server = app.class("com.acme.Server", &[], &["cache"]);
    let entry = app.class("com.acme.Entry", &["body"], &[]);
    let entries = app.rows(entry, entries, body);
    let entries = app.array(entries);
    let cache = app
        .heap
        .add_instance(cache, &[entries.into(), Value::Int(limit)]);
    app.heap.set_static(server, "cache", cache);
    app.heap
}

/// Some caches add entries before they evict other entries, so they exceed the limit a little.
#[test]
fn a_few_entries_more_in_a_full_cache_are_no_growth() {
    for counts in [[20_000, 20_006, 20_012], [19_980, 19_990, 20_000]] {
        let full = first(counts.map(|entries| cache(20_000, entries, 4000)));
        assert_eq!(full.verdict, Verdict::Cache, "{full:#?}");
        let two = [counts[0], counts[2]].map(|entries| cache(20_000, entries, 4000));
        assert_eq!(first(two).verdict, Verdict::Cache);
    }
    // If the number of entries exceeds the limit by more than a little, the limit does not apply to the cache.
    let beyond = first([20_000, 20_300, 20_600].map(|entries| cache(20_000, entries, 100)));
    assert_eq!(beyond.verdict, Verdict::Growth, "{beyond:#?}");
}

/// The heap has a class with a constant and two lists. The list `users` grows.
#[test]
fn limits_in_bytes_or_of_another_list_are_ignored() {
    let verdict = |constant: &'static str| {
        let heap = |users: usize| {
            let mut app = App::new();
            let object = app.boot.object;
            let fields = ["users", "sessions"].map(|field| (field, Value::NULL));
            let statics = [&fields[..], &[(constant, Value::Int(4000))]].concat();
            let name = "com.acme.Registry";
            let registry = app.heap.add_class(name, Some(object), &[], &statics);
            app.heap.set_loader(registry, app.loader);
            let row = app.class("com.acme.Row", &["body"], &[]);
            for (field, count) in [("users", users), ("sessions", 20)] {
                let rows = app.rows(row, count, 100);
                let rows = app.array(rows);
                app.heap.set_static(registry, field, rows);
            }
            app.heap
        };
        first([1000, 2000, 3000].map(heap)).verdict
    };
    assert_eq!(verdict("MAX_USERS"), Verdict::Growth);
    assert_eq!(verdict("MAX_SESSIONS"), Verdict::Leak);
    assert_eq!(verdict("MAX_USER_BYTES"), Verdict::Leak);
}

/// A cache consists of sixteen lists. Together these have more entries than the cache's limit, but each of them has
/// fewer.
#[test]
fn a_limit_that_all_lists_together_exceed_is_ignored() {
    let heap = |limit: i32, entries: usize| {
        let mut app = App::new();
        let object = app.boot.object;
        let fields = [("parts", OBJECT), ("maxSize", INT)];
        let cache = app
            .heap
            .add_class("com.acme.Cache", Some(object), &fields, &[]);
        app.heap.set_loader(cache, app.loader);
        let list = app.class("java.util.ArrayList", &["elementData"], &[]);
        let entry = app.class("com.acme.Entry", &["body"], &[]);
        let entries = app.rows(entry, entries, 100);
        let lists: Vec<Obj> = entries
            .chunks(entries.len().div_ceil(16))
            .map(|entries| {
                let data = app.array(entries.to_vec());
                app.heap.add_instance(list, &[data.into()])
            })
            .collect();
        let lists = app.array(lists);
        let cache = app
            .heap
            .add_instance(cache, &[lists.into(), Value::Int(limit)]);
        let server = app.class("com.acme.Server", &[], &["cache"]);
        app.heap.set_static(server, "cache", cache);
        app.heap
    };
    let verdict = |limit| first([1000, 2000, 3000].map(|entries| heap(limit, entries))).verdict;
    assert_eq!(verdict(4000), Verdict::Growth);
    assert_eq!(verdict(1000), Verdict::Leak);
}

/// Returns a heap with a cache of sixteen segments. Each segment is an object with one map. `limits` are fields of the
/// cache.
fn segmented(limits: &[(&str, i32)], entries: usize) -> HeapBuilder {
    let mut app = App::new();
    let object = app.boot.object;
    let mut fields = vec![("segments", OBJECT)];
    fields.extend(limits.iter().map(|&(name, _)| (name, INT)));
    let cache = app
        .heap
        .add_class("com.acme.Cache", Some(object), &fields, &[]);
    app.heap.set_loader(cache, app.loader);
    let segment = app.class("com.acme.Cache$Segment", &["map"], &[]);
    let map = app.class("java.util.HashMap", &["table"], &[]);
    let node = app.class("java.util.HashMap$Node", &["value"], &[]);
    let entry = app.class("com.acme.Entry", &["body"], &[]);
    let rows = app.rows(entry, entries, 100);
    let segments: Vec<Obj> = rows
        .chunks(entries.div_ceil(16))
        .map(|rows| {
            let node = |&row: &Obj| app.heap.add_instance(node, &[row.into()]);
            let nodes: Vec<Obj> = rows.iter().map(node).collect();
            let nodes = app.array(nodes);
            let map = app.heap.add_instance(map, &[nodes.into()]);
            app.heap.add_instance(segment, &[map.into()])
        })
        .collect();
    let mut values: Vec<Value> = vec![app.array(segments).into()];
    values.extend(limits.iter().map(|&(_, limit)| Value::Int(limit)));
    let cache = app.heap.add_instance(cache, &values);
    let server = app.class("com.acme.Server", &[], &["cache"]);
    app.heap.set_static(server, "cache", cache);
    app.heap
}

#[test]
fn a_limit_of_a_cache_applies_to_its_segments() {
    let filling = |limits: &[(&str, i32)]| {
        let suspect = first([1000, 2000, 3000].map(|entries| segmented(limits, entries)));
        assert_eq!(suspect.holder, "com.acme.Cache$Segment.map");
        suspect.verdict
    };
    assert_eq!(filling(&[("maxSize", 4000)]), Verdict::Growth);
    // None of the following numbers is a limit on entries. The first one was exceeded, the second one is a limit in
    // bytes, and the third one is a limit on segments.
    assert_eq!(filling(&[("maxSize", 2000)]), Verdict::Leak);
    assert_eq!(filling(&[("maxBytes", 4000)]), Verdict::Leak);
    assert_eq!(filling(&[("maxSegments", 4000)]), Verdict::Leak);
}

/// Returns a heap with a pool of buffers. Workers have taken some of the buffers from the pool.
fn pool(free: usize, lent: usize) -> HeapBuilder {
    let mut app = App::new();
    let buffer = app.class("com.acme.Buffer", &["bytes"], &[]);
    for (class, field, count) in [
        ("com.acme.Pool", "free", free),
        ("com.acme.Workers", "busy", lent),
    ] {
        let owner = app.class(class, &[], &[field]);
        let buffers = app.rows(buffer, count, 16_000);
        let buffers = app.array(buffers);
        app.heap.set_static(owner, field, buffers);
    }
    app.heap
}

#[test]
fn buffers_returned_to_a_pool_are_not_a_leak() {
    let back = report([(20, 180), (80, 120), (140, 60)].map(|(free, lent)| pool(free, lent)));
    assert!(back.suspects.is_empty(), "{back:#?}");
    let more = first([(20, 180), (80, 180), (140, 180)].map(|(free, lent)| pool(free, lent)));
    assert_eq!(more.verdict, Verdict::Leak, "{more:#?}");
}

#[test]
fn filling_a_few_slots_of_an_array_is_not_a_leak() {
    let slots = |used: usize| {
        let mut app = App::new();
        let table = app.class("com.acme.Slots", &[], &["sessions"]);
        let other = app.class("com.acme.Other", &[], &["all"]);
        let session = app.class("com.acme.Session", &["body"], &[]);
        let array = app
            .heap
            .add_object_array(app.boot.object, vec![Ref::Null; 32]);
        for (at, session) in app.rows(session, used, 10_000).into_iter().enumerate() {
            app.heap.set_element(array, at, session);
        }
        app.heap.set_static(table, "sessions", array);
        let all = app.bytes(10_000_000);
        app.heap.set_static(other, "all", all);
        app.heap
    };
    for counts in [[3, 5, 7], [19, 21, 23]] {
        let suspect = first(counts.map(slots));
        assert_eq!(suspect.verdict, Verdict::Growth, "{suspect:#?}");
    }
    let five = first([3, 5, 7, 9, 11].map(slots));
    assert_eq!(five.verdict, Verdict::Leak, "{five:#?}");
}

/// The number of arrays does not change. Half of the arrays become larger, and the other half become smaller.
#[test]
fn objects_are_not_called_larger_if_some_shrank() {
    let heap = |sizes: [usize; 2]| {
        let mut app = App::new();
        let files = app.class("com.acme.Files", &[], &["open"]);
        let file = app.class("com.acme.File", &["body"], &[]);
        let open = sizes.map(|size| app.rows(file, 25, size)).concat();
        let open = app.array(open);
        app.heap.set_static(files, "open", open);
        app.heap
    };
    let suspect = first([[1000, 1000], [1, 10_000]].map(heap));
    let mut reasons = suspect.reasons.iter();
    assert!(reasons.all(|r| !r.contains("larger")), "{suspect:#?}");
}

#[test]
fn a_known_leak_pattern_is_not_called_a_filling_cache() {
    let heap = |field: &'static str| {
        move |count| {
            let mut app = App::new();
            let bus = app.class("com.acme.Bus", &[], &[field]);
            let view = app.class("com.acme.View", &["body"], &[]);
            let views = app.rows(view, count, 100);
            let views = app.array(views);
            app.heap.set_static(bus, field, views);
            app.heap
        }
    };
    let has_doubt = |s: &Suspect| s.reasons.iter().any(|r| r.starts_with("two dumps"));
    let pattern = first([300, 900].map(heap("listeners")));
    assert_eq!(pattern.detector.as_deref(), Some("listener"));
    assert!(!has_doubt(&pattern), "{pattern:#?}");
    let other = first([300, 900].map(heap("views")));
    assert!(has_doubt(&other), "{other:#?}");
}
