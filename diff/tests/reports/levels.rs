//! Tests at which level of a structure the report locates growth. Some of the dumps have a second path to the same
//! objects.

use crate::common::{self, app::App};
use heapdiff_diff::Report;
use hprof::answers::Selector;
use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{self, ClassId, Elements, FieldType, Obj, Root, Value};

/// Adds a list of the JDK.
fn list_of(app: &mut App, class: ClassId, of: Vec<Obj>) -> Obj {
    let array = app.array(of);
    app.heap.add_instance(class, &[array.into()])
}

fn report(dumps: impl IntoIterator<Item = App>) -> Report {
    let dumps = dumps.into_iter();
    common::report(dumps.map(|app| Source::from_bytes(app.heap.build())))
}

/// Returns, for each suspect, the holder, the class and the numbers of objects.
fn told(report: &Report) -> Vec<(&str, &str, &[u64])> {
    let suspects = report.suspects.iter();
    suspects
        .map(|s| (&*s.holder, &*s.class, &s.objects[..]))
        .collect()
}

/// Returns a heap with the sessions of a server. Each session has a list with `attributes` attributes, and a list with
/// as many notes.
fn sessions(count: usize, attributes: usize) -> App {
    let mut app = App::new();
    let list = app.class("java.util.ArrayList", &["elementData"], &[]);
    let session = app.class("com.acme.Session", &["attributes", "notes"], &[]);
    let value = app.class("com.acme.Value", &["body"], &[]);
    let manager = app.class("com.acme.Manager", &[], &["sessions"]);
    let all: Vec<Obj> = (0..count)
        .map(|_| {
            let lists = [(); 2].map(|()| {
                let rows = app.rows(value, attributes, 100);
                list_of(&mut app, list, rows)
            });
            app.heap.add_instance(session, &lists.map(Into::into))
        })
        .collect();
    let all = list_of(&mut app, list, all);
    app.heap.set_static(manager, "sessions", all);
    app
}

#[test]
fn sessions_that_grew_mostly_in_number_are_one_suspect() {
    let grown = report([sessions(50, 2), sessions(550, 8)]);
    let holder = "com.acme.Manager.sessions";
    assert_eq!(told(&grown), [(holder, "com.acme.Session", &[50, 550][..])]);
    // The number of sessions grew less than the content of each session, so the report names the content.
    let larger = report([sessions(50, 2), sessions(60, 40)]);
    let holders: Vec<&str> = larger.suspects.iter().map(|s| &*s.holder).collect();
    assert_eq!(
        holders,
        ["com.acme.Session.attributes", "com.acme.Session.notes"]
    );
    let more = "the number of objects grew, and the number of holders changed from 50 to 60";
    let mut reasons = larger.suspects.iter().flat_map(|s| &s.reasons);
    assert!(reasons.any(|r| r == more), "{larger:#?}");
}

/// Returns a heap with a registry's list of entries of 1 KB. In some dumps, a thread is running a method of the list,
/// so that a local variable also holds the list. In other dumps, the thread is adding an entry, so that a local
/// variable also holds the list's array.
fn registry(entries: usize, inside: [bool; 2]) -> App {
    let mut app = App::new();
    let list = app.class("java.util.ArrayList", &["elementData"], &[]);
    let entry = app.class("com.acme.Entry", &["body"], &[]);
    let registry = app.class("com.acme.Registry", &[], &["entries"]);
    let rows = app.rows(entry, entries, 1000);
    let array = app.heap.add_object_array(app.boot.object, rows);
    let all = app.heap.add_instance(list, &[array.into()]);
    app.heap.set_static(registry, "entries", all);
    let thread = app.heap.add_thread("worker", &[]);
    for (object, inside) in [all, array].into_iter().zip(inside) {
        if inside {
            app.heap.add_local(thread, 0, object);
        }
    }
    app
}

#[test]
fn a_thread_in_a_collection_method_hides_no_growth() {
    let (none, list, array) = ([false; 2], [true, false], [false, true]);
    for inside in [
        [none, none, list],
        [none, list, none],
        [list, none, none],
        [none, none, array],
        [array, list, none],
        [list, array, none],
        [none, list, array],
    ] {
        let counts = [2000, 2600, 3150].into_iter().zip(inside);
        let report = report(counts.map(|(n, inside)| registry(n, inside)));
        let found = told(&report);
        assert_eq!(found.len(), 1, "{inside:?} {found:#?}");
        let expected = ("com.acme.Registry.entries", "com.acme.Entry");
        assert_eq!((found[0].0, found[0].1), expected, "{inside:?}");
        assert_eq!(found[0].2, [2000, 2600, 3150], "{inside:?}");
        let retained = &report.suspects[0].retained_bytes;
        assert_eq!(
            *retained,
            [2000, 2600, 3150].map(|n| n * 1032),
            "{inside:?}"
        );
    }
}

#[test]
fn objects_that_only_moved_did_not_grow() {
    for inside in [[true, false], [false, true]] {
        let moved = report([registry(2000, [false; 2]), registry(2000, inside)]);
        assert!(moved.suspects.is_empty(), "{:#?}", moved.suspects);
        let back = report([registry(2000, inside), registry(2000, [false; 2])]);
        assert!(back.suspects.is_empty(), "{:#?}", back.suspects);
    }
}

#[test]
fn figures_from_class_totals_are_marked() {
    // Each entry has 24 bytes. If there are only a few entries, they are too small a part of the heap to have a trie
    // node of their own.
    let heap = |entries: usize| {
        let mut app = App::new();
        let entry = app.class("com.acme.Entry", &["id", "next"], &[]);
        let registry = app.class("com.acme.Registry", &[], &["entries"]);
        let none = [Value::NULL, Value::NULL];
        let all: Vec<Obj> = (0..entries)
            .map(|_| app.heap.add_instance(entry, &none))
            .collect();
        let array = app.heap.add_object_array(app.boot.object, all);
        app.heap.set_static(registry, "entries", array);
        app
    };
    let reasons = |before| {
        let report = report([heap(before), heap(9000)]);
        let s = &report.suspects[0];
        assert_eq!(s.objects, [before as u64, 9000]);
        assert_eq!(
            s.retained_bytes,
            s.objects.iter().map(|n| n * 24).collect::<Vec<_>>()
        );
        s.reasons.join("; ")
    };
    let told = "in dump 1 these objects have no single holder";
    let few = reasons(5);
    assert!(few.contains(told), "{few}");
    for not_few in [0, 1000] {
        let reasons = reasons(not_few);
        assert!(!reasons.contains(told), "{reasons}");
    }
}

#[test]
fn interpolated_figures_are_marked() {
    // In the second dump a second table also holds each title. The strings in `others` are of the same class, so the
    // totals of the class String say nothing about the titles.
    let heap = |titles: usize, twice: bool| {
        let mut app = App::new();
        let index = app.class("com.acme.Index", &[], &["titles", "others", "more"]);
        let title = |app: &mut App| app.heap.add_string(&"title".repeat(20));
        let all: Vec<Obj> = (0..titles).map(|_| title(&mut app)).collect();
        let others: Vec<Obj> = (0..5000).map(|_| title(&mut app)).collect();
        for (field, of) in [("titles", all), ("others", others)] {
            let array = app.heap.add_object_array(app.boot.object, of.clone());
            app.heap.set_static(index, field, array);
            if twice {
                let more = app.heap.add_object_array(app.boot.object, of);
                app.heap.add_root(Root::JniGlobal { global_ref: 9 }, more);
            }
        }
        app
    };
    let told = |twice| {
        let counts = [(1000, false), (2000, twice), (3000, false)];
        let report = report(counts.map(|(titles, twice)| heap(titles, twice)));
        let found = report
            .suspects
            .iter()
            .find(|s| s.holder == "com.acme.Index.titles");
        let found = found.unwrap_or_else(|| panic!("{:#?}", report.suspects));
        assert_eq!(found.objects, [1000, 2000, 3000], "{found:#?}");
        let nowhere = |r: &String| r.contains("these objects have no single holder");
        assert!(!found.reasons.iter().any(nowhere), "{found:#?}");
        found
            .reasons
            .iter()
            .any(|r| r.contains("in dump 2 other paths held these objects, so the figures for this dump are interpolated from the dumps before and after it"))
    };
    assert!(told(true) && !told(false));
}

/// The heap has 62 sockets. A table holds each socket directly, and a list holds it through its channel. A field of a
/// worker also refers to one socket.
#[test]
fn the_path_of_most_objects_is_named() {
    let heap = |sockets: usize| {
        let mut app = App::new();
        let socket = app.class("com.acme.Socket", &["body"], &[]);
        let channel = app.class("com.acme.Channel", &["socket"], &[]);
        let server = app.class("com.acme.Server", &[], &["channels"]);
        let registry = app.class("com.acme.Registry", &[], &["table"]);
        // The worker must not be named as the holder, although its name comes first, its path is the shortest, and its
        // socket is the largest.
        let worker = app.class("com.acme.AWorker", &[], &["last"]);
        let mut all = app.rows(socket, sockets - 1, 20_000);
        all.extend(app.rows(socket, 1, 30_000));
        let channels: Vec<Obj> = all
            .iter()
            .map(|&s| app.heap.add_instance(channel, &[s.into()]))
            .collect();
        let channels = app.heap.add_object_array(app.boot.object, channels);
        app.heap.set_static(server, "channels", channels);
        app.heap.set_static(worker, "last", all[sockets - 1]);
        let table = app.heap.add_object_array(app.boot.object, all);
        app.heap.set_static(registry, "table", table);
        app
    };
    let report = report([heap(6), heap(62)]);
    let s = &report.suspects[0];
    assert_eq!(
        (&*s.class, &s.objects[..]),
        ("com.acme.Socket", &[6, 62][..])
    );
    assert!(!s.path.iter().any(|p| p.contains("AWorker")), "{s:#?}");
    assert_eq!(s.holder, "com.acme.Registry.table", "{s:#?}");
    let both = "the objects are reachable through com.acme.Registry.table and com.acme.Channel.socket: clearing only \
                one of them frees nothing";
    assert!(s.reasons.iter().any(|r| r == both), "{s:#?}");
    assert!(
        !s.also_held_by.iter().any(|h| h.contains("AWorker")),
        "{s:#?}"
    );
}

/// Returns a heap of a theatre. The application has its own class for tables. Each field of the theatre holds such a
/// table. The table in the last field grows.
fn theatre(fields: &'static [&'static str], bookings: usize, nodes: bool) -> App {
    let mut app = App::new();
    let booking = app.class("com.acme.Booking", &["body"], &[]);
    let table = app.class("com.acme.Table", &["keys", "values"], &[]);
    let node = app.class("com.acme.Table$Node", &["value"], &[]);
    let theatre = app.class("com.acme.Theatre", fields, &["instance"]);
    let mut tables: Vec<Value> = Vec::new();
    for i in 0..fields.len() {
        let count = if i + 1 == fields.len() { bookings } else { 100 };
        let mut rows = app.rows(booking, count, 200);
        if nodes {
            let row = |r: &Obj| app.heap.add_instance(node, &[(*r).into()]);
            rows = rows.iter().map(row).collect();
        }
        let keys = app.heap.add_primitive_array(Elements::Long(vec![7; count]));
        let of = if nodes { node } else { app.boot.object };
        let values = app.heap.add_object_array(of, rows);
        let table = app.heap.add_instance(table, &[keys.into(), values.into()]);
        tables.push(table.into());
    }
    let all = app.heap.add_instance(theatre, &tables);
    app.heap.set_static(theatre, "instance", all);
    app
}

#[test]
fn application_containers_are_looked_through() {
    for nodes in [false, true] {
        let several = &["seats", "prices", "bookings"];
        let grown = report([3000, 9000].map(|n| theatre(several, n, nodes)));
        let found = told(&grown);
        let expected = (
            "com.acme.Theatre.bookings",
            "com.acme.Booking",
            &[3000, 9000][..],
        );
        assert_eq!(found, [expected], "{nodes}");
        // If only one field refers to instances of the class `Table`, the class was written for that field. So it does
        // not count as a container.
        let grown = report([3000, 9000].map(|n| theatre(&["bookings"], n, nodes)));
        let holder = &grown.suspects[0].holder;
        assert_eq!(holder, "com.acme.Table.values", "{nodes}");
    }
}

#[test]
fn thread_locals_and_variables_have_source_names() {
    let heap = |count: usize, local: bool, own: bool| {
        let mut app = App::new();
        let list = app.class("java.util.ArrayList", &["elementData"], &[]);
        let entry = app.class("com.acme.Entry", &["body"], &[]);
        let context = app.class("com.acme.Context", &["spans"], &["CURRENT"]);
        let main = app.class("com.acme.Main", &[], &[]);
        let rows = app.rows(entry, count, 500);
        let mut all = list_of(&mut app, list, rows);
        if own {
            all = app.heap.add_instance(context, &[all.into()]);
        }
        let frames = [
            writer::Frame::new(&app.heap, list, "add", 12),
            writer::Frame::new(&app.heap, main, "run", 34),
        ];
        let thread = app.heap.add_thread("worker 7", &frames);
        if local {
            app.heap.add_local(thread, 0, all);
            app.heap.add_local(thread, 1, all);
        } else {
            let object = Some(app.boot.object);
            let key = app.class("java.lang.ThreadLocal", &[], &[]);
            let key = app.heap.add_instance(key, &[]);
            app.heap.set_static(context, "CURRENT", key);
            let name = "java.lang.ThreadLocal$ThreadLocalMap$Entry";
            let fields = [
                ("referent", FieldType::Object),
                ("value", FieldType::Object),
            ];
            let slot = app.heap.add_class(name, object, &fields, &[]);
            let slot = app.heap.add_instance(slot, &[key.into(), all.into()]);
            let table = app.heap.add_object_array(app.boot.object, [slot]);
            app.heap.add_local(thread, 1, table);
        }
        app
    };
    let of = |local, own| {
        let report = report([1000, 3000].map(|n| heap(n, local, own)));
        let s = &report.suspects[0];
        assert_eq!(&*s.class, "com.acme.Entry");
        let named = s.root.ends_with(" \"worker 7\"");
        assert!(named, "{}", s.root);
        if !local {
            let fix = s.likely_fix.as_deref();
            let expected = "call remove() of com.acme.Context.CURRENT in a finally block at the end of each task";
            assert_eq!(fix, Some(expected), "{s:#?}");
            let field = s.thread_local.as_deref();
            assert_eq!(field, Some("com.acme.Context.CURRENT"), "{s:#?}");
        }
        s.holder.clone()
    };
    assert_eq!(of(true, false), "local variable of com.acme.Main.run");
    assert_eq!(of(false, false), "com.acme.Context.CURRENT");
    // If an application field also holds the objects, it has precedence.
    assert_eq!(of(true, true), "com.acme.Context.spans");
    assert_eq!(of(false, true), "com.acme.Context.spans");
}

#[test]
fn a_report_states_how_much_the_suspects_explain() {
    // The heap has a suspect that holds 1 KB for each entry. Static fields of other classes hold further objects.
    let heap = |entries: usize, others: usize| {
        let mut app = registry(entries, [false; 2]);
        for i in 0..others {
            let name = format!("com.acme.Other{i}");
            let other = app.class(&name, &[], &["all"]);
            let bytes = app.bytes(5000);
            app.heap.set_static(other, "all", bytes);
        }
        app
    };
    let explained = |dumps: [App; 2]| {
        let report = report(dumps);
        let largest = report.snapshots.iter().map(|s| s.reachable_bytes).max();
        assert_eq!(
            report.noise_bytes,
            largest.map_or(0, |bytes| bytes / 2000).max(16 << 10)
        );
        let all = [
            report.delta.shallow_bytes.unsigned_abs(),
            report.explained_bytes,
        ];
        (all, report.unexplained_bytes(), report.suspects.len())
    };
    let ([grown, part], rest, suspects) = explained([heap(1000, 0), heap(3000, 0)]);
    assert_eq!((part, rest, suspects), (2000 * 1032, 0, 1));
    assert!(grown >= part && grown - part < 16 << 10);
    let ([grown, part], rest, suspects) = explained([heap(1000, 0), heap(1000, 300)]);
    assert_eq!((part, suspects), (0, 0));
    assert!(rest == grown && grown > 300 * 5000);
    // If objects elsewhere shrank, the whole heap grew less than the suspect. Then the growth that the suspect explains
    // is limited to the growth of the heap.
    let ([grown, part], rest, suspects) = explained([heap(1000, 300), heap(3000, 0)]);
    assert_eq!((part, rest, suspects), (grown, 0, 1));
    let ([_, part], rest, _) = explained([heap(3000, 300), heap(1000, 0)]);
    assert_eq!((part, rest), (0, 0));
}

#[test]
fn objects_of_one_field_are_one_suspect_for_all_classes() {
    // The heap has messages of three classes. Both a queue and an index hold each message, so no field holds them
    // alone.
    let heap = |count: usize| {
        let mut app = App::new();
        let queue = app.class("com.acme.Queue", &[], &["messages"]);
        let index = app.class("com.acme.ZIndex", &[], &["table"]);
        let mut all: Vec<Obj> = Vec::new();
        for name in ["com.acme.Order", "com.acme.Offer", "com.acme.Bill"] {
            let class = app.class(name, &["body"], &[]);
            all.extend(app.rows(class, count, 300));
        }
        for (class, field) in [(queue, "messages"), (index, "table")] {
            let array = app.heap.add_object_array(app.boot.object, all.clone());
            app.heap.set_static(class, field, array);
        }
        app
    };
    let report = report([heap(300), heap(1200)]);
    let holders: Vec<&str> = report.suspects.iter().map(|s| &*s.holder).collect();
    assert_eq!(
        holders,
        ["com.acme.Queue.messages"],
        "{:#?}",
        report.suspects
    );
    let s = &report.suspects[0];
    // An entry has 16 bytes. Its body has a header of 16 bytes and 304 bytes of content.
    assert_eq!(s.growth.retained_bytes, 3 * 900 * (16 + 320));
    assert_eq!(report.explained_bytes, 3 * 900 * (16 + 320));
}

#[test]
fn each_thread_local_has_its_own_suspect() {
    // Ten threads have no values of thread locals at first. Later, each has values of two thread locals.
    let heap = |with_values: bool| {
        let mut app = App::new();
        let object = app.boot.object;
        let map = app.class("java.lang.ThreadLocal$ThreadLocalMap", &["table"], &[]);
        let fields = [
            ("referent", FieldType::Object),
            ("value", FieldType::Object),
        ];
        let entry = "java.lang.ThreadLocal$ThreadLocalMap$Entry";
        let entry = app.heap.add_class(entry, Some(object), &fields, &[]);
        let key = app.class("java.lang.ThreadLocal", &[], &[]);
        let owner = app.class("com.acme.Locals", &[], &["AUDIT", "BUFFER"]);
        let values = ["com.acme.Audit", "com.acme.Buffer"].map(|c| app.class(c, &["body"], &[]));
        let keys = ["AUDIT", "BUFFER"].map(|field| {
            let key = app.heap.add_instance(key, &[]);
            app.heap.set_static(owner, field, key);
            key
        });
        let frame = app.class("com.acme.Main", &[], &[]);
        for at in 0..10 {
            let frames = [writer::Frame::new(&app.heap, frame, "run", 7)];
            let thread = app.heap.add_thread(&format!("req-{at}"), &frames);
            let mut slots = Vec::new();
            if with_values {
                for ((class, key), bytes) in values.into_iter().zip(keys).zip([40_000, 20_000]) {
                    let body = app.bytes(bytes);
                    let value = app.heap.add_instance(class, &[body.into()]);
                    slots.push(app.heap.add_instance(entry, &[key.into(), value.into()]));
                }
            }
            let table = app.heap.add_object_array(entry, slots);
            let map = app.heap.add_instance(map, &[table.into()]);
            app.heap.add_local(thread, 0, map);
        }
        app
    };
    let report = report([false, true].map(heap));
    let found = report.suspects.iter().map(|s| {
        let fix = s.likely_fix.as_deref().unwrap_or_default();
        assert!(fix.contains(&s.holder), "{s:#?}");
        assert_eq!(s.thread_local.as_deref(), Some(&*s.holder), "{s:#?}");
        (
            &*s.holder,
            &*s.class,
            s.objects[1],
            s.retained_bytes[1] / 10_000,
        )
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("com.acme.Locals.AUDIT", "com.acme.Audit", 10, 40),
            ("com.acme.Locals.BUFFER", "com.acme.Buffer", 10, 20),
        ]
    );
}

#[test]
fn a_clojure_var_is_named_as_clojure_prints_it() {
    let heap = |count: usize| {
        let mut app = App::new();
        let text = |app: &mut App, text: &str| app.heap.add_string(text);
        let symbol = app.class("clojure.lang.Symbol", &["ns", "name"], &[]);
        let namespace = app.class("clojure.lang.Namespace", &["name"], &[]);
        let var = app.class("clojure.lang.Var", &["ns", "sym", "root"], &[]);
        let list = app.class("java.util.ArrayList", &["elementData"], &[]);
        let order = app.class("shop.core.Order", &["body"], &[]);
        let code = app.class("shop.core$book", &[], &["const__0", "const__1"]);
        let name = text(&mut app, "shop.core");
        let name = app
            .heap
            .add_instance(symbol, &[writer::Value::NULL, name.into()]);
        let namespace = app.heap.add_instance(namespace, &[name.into()]);
        for (field, var_name, count) in [("const__0", "orders", count), ("const__1", "users", 9)] {
            let name = text(&mut app, var_name);
            let name = app
                .heap
                .add_instance(symbol, &[writer::Value::NULL, name.into()]);
            let orders = app.rows(order, count, 100);
            let data = app.array(orders);
            let list = app.heap.add_instance(list, &[data.into()]);
            let fields = [namespace.into(), name.into(), list.into()];
            let var = app.heap.add_instance(var, &fields);
            app.heap.set_static(code, field, var);
        }
        app
    };
    let report = report([1000, 3000].map(heap));
    let suspect = &report.suspects[0];
    assert_eq!(suspect.holder, "#'shop.core/orders", "{suspect:#?}");
    let held = "#'shop.core/orders holds 2,000 more shop.core.Order ";
    assert!(suspect.headline.starts_with(held), "{suspect:#?}");
    // The printed name of the holder can be used as a selector. It then selects the list.
    let dump = Source::from_bytes(heap(3000).heap.build());
    let dump = Snapshot::of(dump, &Options::default(), &Silent).unwrap();
    let selector = suspect.holder.parse::<Selector>().unwrap();
    let list = dump.select(&selector).unwrap();
    let class = dump.class_of(list[0]).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(&*dump.classes()[class].name, "java.util.ArrayList");
    let absent = "#'shop.core/carts".parse::<Selector>().unwrap();
    assert!(dump.select(&absent).is_err());
}
