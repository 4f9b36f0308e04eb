//! Tests reports on a single dump. They name the objects that retain the most, and say nothing about growth.

use crate::common::{self, app::App};
use heapdiff_diff::{HeapReport, Suspect};
use hprof::Source;
use testdata::writer::{self, FieldType, Frame, Obj};

fn report(app: App) -> HeapReport {
    let report = common::alone(Source::from_bytes(app.heap.build()));
    // A report on a single dump must not say anything about growth.
    let words = ["grow", "more objects", "up from", "before", "leak"];
    for reason in report.suspects.iter().flat_map(|s| &s.reasons) {
        assert!(!words.iter().any(|w| reason.contains(w)), "{reason}");
    }
    assert!(report.explained_bytes <= report.snapshot.reachable_bytes);
    let all: u64 = report.suspects.iter().map(Suspect::retained).sum();
    assert!(
        all <= report.snapshot.reachable_bytes,
        "nothing is counted twice"
    );
    report
}

fn first(report: &HeapReport) -> &Suspect {
    report.suspects.first().unwrap()
}

fn has_reason(suspect: &Suspect, part: &str) -> bool {
    suspect.reasons.iter().any(|r| r.contains(part))
}

/// Puts a list with the given elements into a static field of a class.
fn list(app: &mut App, class: &str, field: &str, elements: Vec<Obj>) {
    let holder = app.class(class, &[], &[field]);
    let list = list_of(app, elements);
    app.heap.set_static(holder, field, list);
}

fn list_of(app: &mut App, elements: Vec<Obj>) -> Obj {
    let class = match app
        .heap
        .classes()
        .find(|&c| app.heap.class_name(c) == "java.util.ArrayList")
    {
        Some(class) => class,
        None => app.class("java.util.ArrayList", &["elementData"], &[]),
    };
    let data = app.array(elements);
    app.heap.add_instance(class, &[data.into()])
}

#[test]
fn many_in_one_field_are_one_suspect() {
    let mut app = App::new();
    let entry = app.class("com.acme.Entry", &["body"], &[]);
    let entries = app.rows(entry, 2000, 100);
    list(&mut app, "com.acme.Registry", "entries", entries);
    let report = report(app);
    let s = first(&report);
    assert_eq!(
        (&*s.holder, &*s.class, s.objects[0], s.holders),
        ("com.acme.Registry.entries", "com.acme.Entry", 2000, 1)
    );
    assert_eq!(s.root, "static com.acme.Registry");
    assert_eq!(s.path[0], "com.acme.Registry.entries");
    assert!(
        has_reason(
            s,
            "it consists of 2,000 objects of class com.acme.Entry, which retain 136 B each on average"
        ),
        "{s:?}"
    );
    assert!(!has_reason(s, "holders of class") && !has_reason(s, "one object"));
    // The class, the list and its array are in the suspect's path, but are not suspects themselves.
    let of_it = report
        .suspects
        .iter()
        .filter(|s| s.root == "static com.acme.Registry");
    assert_eq!(of_it.count(), 1);
    assert!(report.explained_bytes >= s.retained());
    assert_eq!(report.died, None);
}

#[test]
fn the_most_numerous_objects_are_named() {
    // If there are few tenants with many events each, the report names the events. If there are many tenants, it names
    // the tenants.
    let told = |tenants: usize, events: usize| {
        let mut app = App::new();
        let event = app.class("com.acme.Event", &["body"], &[]);
        let tenant = app.class("com.acme.Tenant", &["events"], &[]);
        let all: Vec<Obj> = (0..tenants)
            .map(|_| {
                let events = app.rows(event, events, 60);
                let events = list_of(&mut app, events);
                app.heap.add_instance(tenant, &[events.into()])
            })
            .collect();
        list(&mut app, "com.acme.Tenants", "all", all);
        let report = report(app);
        let s = first(&report);
        let spread = has_reason(
            s,
            "20 holders of class java.util.ArrayList retain 46.9 KiB each on average",
        );
        let inside = has_reason(
            s,
            "the field com.acme.Tenant.events of each object holds most of the bytes",
        );
        assert_eq!(inside, events >= 8 && !spread, "{s:?}");
        (
            s.holder.clone(),
            s.class.clone(),
            s.objects[0],
            s.holders,
            spread,
        )
    };
    let event = "com.acme.Event".to_owned();
    let events = "com.acme.Tenant.events".to_owned();
    assert_eq!(told(20, 500), (events, event, 10_000, 20, true));
    let tenant = "com.acme.Tenant".to_owned();
    let all = "com.acme.Tenants.all".to_owned();
    assert_eq!(told(2000, 5), (all.clone(), tenant.clone(), 2000, 1, false));
    assert_eq!(told(2000, 20), (all, tenant, 2000, 1, false));
}

/// An element of a document holds child elements and also attributes. Its retained bytes include those of its children
/// and attributes, which must not be counted twice.
#[test]
fn content_of_nested_nodes_is_counted_once() {
    let mut app = App::new();
    let element = app.class("com.acme.Element", &["children", "attributes", "text"], &[]);
    let attribute = app.class("com.acme.Attribute", &["value"], &[]);
    let mut level: Vec<Obj> = Vec::new();
    for width in [4096, 512, 64, 8, 1] {
        let below = level.len() / width;
        let mut children = level.into_iter();
        level = (0..width)
            .map(|_| {
                let held = children.by_ref().take(below).collect();
                let held = list_of(&mut app, held);
                let attributes = app.rows(attribute, 4, 60);
                let attributes = list_of(&mut app, attributes);
                let text = app.bytes(300);
                let fields = [held.into(), attributes.into(), text.into()];
                app.heap.add_instance(element, &fields)
            })
            .collect();
    }
    let page = app.class("com.acme.Page", &[], &["body"]);
    let body = level.remove(0);
    app.heap.set_static(page, "body", body);
    // The suspects cannot explain more than all reachable bytes.
    let report = report(app);
    let s = first(&report);
    assert_eq!(s.holder, "com.acme.Page.body", "{s:?}");
    assert!(
        s.retained() * 10 > report.snapshot.reachable_bytes * 9,
        "{s:?}"
    );
}

#[test]
fn one_object_that_holds_most_is_reported() {
    let mut app = App::new();
    let event = app.class("com.acme.Event", &["body"], &[]);
    let tenant = app.class("com.acme.Tenant", &["events"], &[]);
    let all: Vec<Obj> = (0..20)
        .map(|at| {
            let events = app.rows(event, if at == 7 { 4000 } else { 10 }, 60);
            let events = list_of(&mut app, events);
            app.heap.add_instance(tenant, &[events.into()])
        })
        .collect();
    list(&mut app, "com.acme.Tenants", "all", all);
    let report = report(app);
    let s = first(&report);
    assert_eq!((&*s.holder, s.objects[0]), ("com.acme.Tenant.events", 4190));
    assert!(
        has_reason(
            s,
            "one of 20 objects of class java.util.ArrayList holds most of the bytes"
        ),
        "{s:?}"
    );
}

#[test]
fn each_link_of_a_chain_is_counted() {
    let mut app = App::new();
    let link = app.class("com.acme.Link", &["body", "next"], &[]);
    let mut next: Option<Obj> = None;
    for _ in 0..3000 {
        let body = app.bytes(40);
        let one = app.heap.add_instance(link, &[body.into()]);
        if let Some(next) = next {
            app.heap.set_field(one, "next", next);
        }
        next = Some(one);
    }
    let holder = app.class("com.acme.Chain", &[], &["head"]);
    app.heap.set_static(holder, "head", next.unwrap());
    let report = report(app);
    let s = first(&report);
    assert_eq!(
        (&*s.holder, &*s.class, s.objects[0]),
        ("com.acme.Chain.head", "com.acme.Link", 3000)
    );
    assert!(
        has_reason(
            s,
            "it consists of a chain of 3,000 objects of class com.acme.Link"
        ),
        "{s:?}"
    );
    assert!(!has_reason(s, "at most"));
}

#[test]
fn a_tree_is_held_by_the_field_with_its_root() {
    // The nodes of this tree have arrays of pages. Each page refers to a node of the next level, or to a leaf of the
    // tree.
    let mut app = App::new();
    let node = app.class("com.acme.Node", &["children"], &[]);
    let leaf = app.class("com.acme.Leaf", &["body"], &[]);
    let page = app.class("com.acme.Page", &["of"], &[]);
    let mut level: Vec<Obj> = app.rows(leaf, 1024, 300);
    while level.len() > 1 {
        let nodes = level.chunks(4).map(|four| {
            let pages = four
                .iter()
                .map(|&of| app.heap.add_instance(page, &[of.into()]));
            let pages: Vec<Obj> = pages.collect();
            let children = app.heap.add_object_array(page, pages);
            app.heap.add_instance(node, &[children.into()])
        });
        level = nodes.collect();
    }
    let holder = app.class("com.acme.Store", &[], &["root"]);
    app.heap.set_static(holder, "root", level[0]);
    let report = report(app);
    let s = first(&report);
    assert_eq!(s.holder, "com.acme.Store.root", "{s:#?}");
    assert!(s.retained() <= report.snapshot.reachable_bytes, "{s:#?}");
    let of_it = report
        .suspects
        .iter()
        .filter(|s| s.root == "static com.acme.Store");
    assert_eq!(of_it.count(), 1);
}

#[test]
fn a_tree_is_not_called_a_chain() {
    // The heap has a binary tree.
    let mut app = App::new();
    let node = app.class("com.acme.Node", &["left", "right", "body"], &[]);
    let nodes: Vec<Obj> = (0..2047)
        .map(|_| {
            let body = app.bytes(100);
            app.heap.add_instance(
                node,
                &[writer::Value::NULL, writer::Value::NULL, body.into()],
            )
        })
        .collect();
    for at in 0..1023 {
        app.heap.set_field(nodes[at], "left", nodes[2 * at + 1]);
        app.heap.set_field(nodes[at], "right", nodes[2 * at + 2]);
    }
    let holder = app.class("com.acme.Store", &[], &["root"]);
    app.heap.set_static(holder, "root", nodes[0]);
    let tree = report(app);
    let s = first(&tree);
    assert!(
        has_reason(
            s,
            "one of 2,047 objects of class com.acme.Node holds all others, 144 B each on average"
        ) && !has_reason(s, "chain"),
        "{s:?}"
    );
    // The heap has nested arrays.
    let mut app = App::new();
    let cells: Vec<Obj> = (0..60)
        .map(|_| {
            let cells = (0..60).map(|_| app.array(Vec::new()));
            let cells: Vec<Obj> = cells.collect();
            app.array(cells)
        })
        .collect();
    let grid = app.array(cells);
    let holder = app.class("com.acme.Grid", &[], &["cells"]);
    app.heap.set_static(holder, "cells", grid);
    let grid = report(app);
    let s = first(&grid);
    assert!(
        has_reason(
            s,
            "one of 3,661 objects of class java.lang.Object[] holds all others, 19 B each on average"
        ) && !has_reason(s, "chain"),
        "{s:?}"
    );
    // One of several siblings is as large as all others together.
    let mut app = App::new();
    let event = app.class("com.acme.Event", &["body"], &[]);
    let mut events = app.rows(event, 400, 50);
    events.extend(app.rows(event, 1, 400 * 200));
    list(&mut app, "com.acme.Log", "events", events);
    let siblings = report(app);
    for s in &siblings.suspects {
        assert!(
            !has_reason(s, "chain") && !has_reason(s, "holds all others"),
            "{s:?}"
        );
    }
    let parts = "401 objects of class byte[] retain 271 B each on average, in small parts";
    assert!(
        siblings.suspects.iter().any(|s| has_reason(s, parts)),
        "{siblings:?}"
    );
}

#[test]
fn one_large_array_is_reported_as_one_object() {
    let mut app = App::new();
    let holder = app.class("com.acme.Image", &[], &["pixels"]);
    let pixels = app.bytes(4 << 20);
    app.heap.set_static(holder, "pixels", pixels);
    let report = report(app);
    let s = first(&report);
    assert_eq!(
        (&*s.holder, &*s.class, s.objects[0]),
        ("com.acme.Image.pixels", "byte[]", 1)
    );
    assert!(
        has_reason(
            s,
            "one object of class byte[] takes most of the bytes: its own size is 4.0 MiB"
        ),
        "{s:?}"
    );
    assert!(!has_reason(s, "it consists of"));
}

#[test]
fn an_object_of_many_small_parts_is_reported() {
    let mut app = App::new();
    let names: Vec<String> = (0..200).map(|i| format!("part{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let context = app.class("com.acme.Context", &names, &[]);
    let parts: Vec<_> = (0..200).map(|_| app.bytes(8000).into()).collect();
    let one = app.heap.add_instance(context, &parts);
    let holder = app.class("com.acme.App", &[], &["context"]);
    app.heap.set_static(holder, "context", one);
    let report = report(app);
    let s = first(&report);
    assert_eq!(&*s.holder, "com.acme.App.context");
    assert!(
        has_reason(
            s,
            "one object of class com.acme.Context dominates many small objects"
        ),
        "{s:?}"
    );
}

#[test]
fn a_few_large_objects_are_reported() {
    let mut app = App::new();
    let table = app.class("com.acme.Table", &["a", "b"], &[]);
    let tables: Vec<Obj> = (0..2)
        .map(|_| {
            let [a, b] = [app.bytes(300_000), app.bytes(300_000)];
            app.heap.add_instance(table, &[a.into(), b.into()])
        })
        .collect();
    list(&mut app, "com.acme.Tables", "all", tables);
    let report = report(app);
    let s = first(&report);
    assert_eq!(
        (&*s.holder, s.objects[0]),
        ("com.acme.Tables.all", 2),
        "{s:?}"
    );
}

#[test]
fn a_small_heap_has_no_large_holder() {
    let report = report(App::new());
    assert_eq!(report.suspects, []);
    assert_eq!((report.least_bytes, report.explained_bytes), (16 << 10, 0));
    assert!(!report.classes.is_empty());
}

/// Adds a thread that holds a list in a local variable of the method `Job.run`. `above` are the frames of the methods
/// that this method called.
fn thread(app: &mut App, above: &[(&str, &str)]) {
    let job = app.class("com.acme.Job", &[], &[]);
    let mut frames: Vec<Frame> = Vec::new();
    for (class, method) in above {
        let known = app
            .heap
            .classes()
            .find(|&c| app.heap.class_name(c) == *class);
        let class = match known {
            Some(class) => class,
            None => app.class(class, &[], &[]),
        };
        frames.push(Frame::new(&app.heap, class, method, 7));
    }
    frames.push(Frame::new(&app.heap, job, "run", 42));
    let thread = app.heap.add_thread("worker-3", &frames);
    let row = app.class("com.acme.Row", &["body"], &[]);
    let rows = app.rows(row, 3000, 60);
    let rows = list_of(app, rows);
    let depth = i32::try_from(above.len()).unwrap();
    app.heap.add_local(thread, depth, rows);
    // A running thread also has a local variable that refers to the thread itself.
    app.heap.add_local(thread, depth, thread.object);
    app.heap.add_thread("idle", &frames);
}

#[test]
fn the_thread_whose_allocation_failed_is_named() {
    const ERROR: &str = "java.lang.OutOfMemoryError";
    let died = |above: &[(&str, &str)]| {
        let mut app = App::new();
        thread(&mut app, above);
        report(app).died
    };
    let told = died(&[(ERROR, "<init>")]).unwrap();
    assert_eq!(told.thread.as_deref(), Some("worker-3"));
    assert_eq!(told.frames, ["com.acme.Job.run(Job.java:42)"]);
    // If the program itself creates an OutOfMemoryError, the stack has more frames on top of the constructor.
    let made = [
        ("java.lang.Throwable", "fillInStackTrace"),
        ("java.lang.Throwable", "<init>"),
        (ERROR, "<init>"),
    ];
    assert_eq!(died(&made), None);
    assert_eq!(died(&[("com.acme.Job", "read")]), None);
}

#[test]
fn memory_of_a_thread_is_named_by_its_method() {
    let mut app = App::new();
    thread(&mut app, &[("com.acme.Job", "read")]);
    let report = report(app);
    let s = first(&report);
    assert_eq!(
        (&*s.holder, &*s.class),
        ("local variable of com.acme.Job.run", "com.acme.Row"),
        "{s:?}"
    );
    let [thread] = &report.threads[..] else {
        panic!("{:?}", report.threads);
    };
    assert_eq!(thread.name.as_deref(), Some("worker-3"));
    let local = thread.local.as_ref().unwrap();
    assert_eq!(local.frame, "com.acme.Job.run(Job.java:42)");
    assert_eq!(s.root, "thread java.lang.Thread \"worker-3\"");
    assert_eq!(local.class, "java.util.ArrayList");
    assert!(local.retained_bytes <= thread.retained_bytes && local.retained_bytes > 200_000);
}

#[test]
fn threads_of_a_pool_are_no_accumulation() {
    // Each of a few threads holds one buffer in a local variable. The report names the method and not each thread.
    let mut app = App::new();
    let job = app.class("com.acme.Job", &[], &[]);
    for at in 0..12 {
        let frame = Frame::new(&app.heap, job, "run", 42);
        let thread = app.heap.add_thread(&format!("worker-{at}"), &[frame]);
        let buffer = app.bytes(50_000);
        app.heap.add_local(thread, 0, buffer);
    }
    let report = report(app);
    let s = first(&report);
    assert_eq!(
        (&*s.holder, &*s.class, s.objects[0]),
        ("local variable of com.acme.Job.run", "byte[]", 12)
    );
    assert_eq!((s.holders, report.threads.len()), (12, 12));
}

#[test]
fn threads_that_the_program_creates_accumulate() {
    let mut app = App::new();
    let object = app.boot.thread;
    let upload = app.heap.add_class(
        "com.acme.Upload",
        Some(object),
        &[("block", FieldType::Object)],
        &[],
    );
    app.heap.set_loader(upload, app.loader);
    for at in 0..180 {
        let thread = app.heap.add_thread_of(upload, &format!("upload-{at}"), &[]);
        let block = app.bytes(5000);
        app.heap.set_field(thread.object, "block", block);
    }
    let report = report(app);
    let s = first(&report);
    assert_eq!(
        (&*s.holder, &*s.class, s.objects[0]),
        ("thread", "com.acme.Upload", 180),
        "{s:?}"
    );
    let stacks =
        "with the default of 1 MiB each, their stacks reserve 180.0 MiB outside of the heap";
    assert!(has_reason(s, stacks), "{s:?}");
}

#[test]
fn waste_is_reported_by_kind_and_holder() {
    let mut app = App::new();
    let entry = app.class("com.acme.Entry", &["body"], &[]);
    let entries = app.rows(entry, 2000, 100);
    list(&mut app, "com.acme.Registry", "entries", entries);
    let report = report(app);
    let waste = report.waste.first().unwrap();
    assert_eq!(waste.kind, "duplicate_arrays");
    assert_eq!(waste.holder.as_deref(), Some("com.acme.Entry.body"));
    assert!(
        waste.bytes_to_win > 200_000 && waste.objects == 2000,
        "{waste:?}"
    );
}
