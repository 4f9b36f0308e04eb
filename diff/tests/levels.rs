//! The level at which growth is named, and dumps in which the same objects hang elsewhere.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod common;

use heapdiff_diff::Report;
use hprof::Source;
use testdata::writer::{self, Boot, ClassId, Elements, FieldType, HeapBuilder, Obj, Root, Value};

/// A heap with a loader for the application's classes.
struct App {
    heap: HeapBuilder,
    boot: Boot,
    loader: Obj,
}

impl App {
    fn new() -> Self {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let class = heap.add_class("com.acme.Loader", Some(boot.class_loader), &[], &[]);
        let loader = heap.add_class_loader(class, "app");
        heap.add_root(Root::JniGlobal { global_ref: 1 }, loader);
        Self { heap, boot, loader }
    }

    fn class(&mut self, name: &str, fields: &[&str], statics: &[&str]) -> ClassId {
        let object = FieldType::Object;
        let fields: Vec<(&str, FieldType)> = fields.iter().map(|&f| (f, object)).collect();
        let statics: Vec<(&str, Value)> = statics.iter().map(|&f| (f, Value::NULL)).collect();
        let class = self
            .heap
            .add_class(name, Some(self.boot.object), &fields, &statics);
        if !name.starts_with("java.") {
            self.heap.set_loader(class, self.loader);
        }
        class
    }

    fn bytes(&mut self, count: usize) -> Obj {
        self.heap
            .add_primitive_array(Elements::Byte(vec![1; count]))
    }

    /// So many objects of a class with one field, each with a body of so many bytes.
    fn rows(&mut self, class: ClassId, count: usize, body: usize) -> Vec<Obj> {
        let row = |app: &mut Self| {
            let body = app.bytes(body);
            app.heap.add_instance(class, &[body.into()])
        };
        (0..count).map(|_| row(self)).collect()
    }

    /// A list of the runtime's.
    fn list(&mut self, class: ClassId, of: Vec<Obj>) -> Obj {
        let array = self.heap.add_object_array(self.boot.object, of);
        self.heap.add_instance(class, &[array.into()])
    }
}

fn report(dumps: impl IntoIterator<Item = App>) -> Report {
    let dumps = dumps.into_iter();
    common::report(dumps.map(|app| Source::from_bytes(app.heap.build())))
}

/// Holder, class and numbers of each suspect.
fn told(report: &Report) -> Vec<(&str, &str, &[u64])> {
    let suspects = report.suspects.iter();
    suspects
        .map(|s| (&*s.holder, &*s.class, &s.objects[..]))
        .collect()
}

/// A server's sessions; each has attributes of so many bytes and as many notes.
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
                app.list(list, rows)
            });
            app.heap.add_instance(session, &lists.map(Into::into))
        })
        .collect();
    let all = app.list(list, all);
    app.heap.set_static(manager, "sessions", all);
    app
}

#[test]
fn sessions_that_grew_in_number_more_than_in_size_are_one_suspect() {
    let grown = report([sessions(50, 2), sessions(550, 8)]);
    let holder = "com.acme.Manager.sessions";
    assert_eq!(told(&grown), [(holder, "com.acme.Session", &[50, 550][..])]);
    // What each of them holds grew more than their number: that is named.
    let larger = report([sessions(50, 2), sessions(60, 40)]);
    let holders: Vec<&str> = larger.suspects.iter().map(|s| &*s.holder).collect();
    assert_eq!(
        holders,
        ["com.acme.Session.attributes", "com.acme.Session.notes"]
    );
}

/// A registry's list of entries of a kilobyte. Where a thread is inside the list, its local variable holds it too;
/// where it is adding to it, the array.
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
fn a_thread_inside_a_collection_hides_no_growth() {
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
fn what_only_hangs_elsewhere_did_not_grow() {
    for inside in [[true, false], [false, true]] {
        let moved = report([registry(2000, [false; 2]), registry(2000, inside)]);
        assert!(moved.suspects.is_empty(), "{:#?}", moved.suspects);
        let back = report([registry(2000, inside), registry(2000, [false; 2])]);
        assert!(back.suspects.is_empty(), "{:#?}", back.suspects);
    }
}

#[test]
fn figures_from_the_totals_of_a_class_are_told_as_such() {
    // Entries of 24 bytes; a few are too small a part of the heap to be seen as a step of their own.
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
    let told = "in dump 1 no one place holds these objects";
    let few = reasons(5);
    assert!(few.contains(told), "{few}");
    for not_few in [0, 1000] {
        let reasons = reasons(not_few);
        assert!(!reasons.contains(told), "{reasons}");
    }
}

#[test]
fn interpolated_figures_are_told_as_such() {
    // In the second dump each title is held by a second table as well. There are strings in other places, so
    // that the totals of their class say nothing of these.
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
        found
            .reasons
            .iter()
            .any(|r| r.contains("in dump 2 other paths"))
    };
    assert!(told(true) && !told(false));
}
