//! Tests each known leak with heaps in which its objects accumulate, for a version with the leak, a version without it, and
//! an unknown version.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is a failure")]

use heapdiff_diff::{Comparison, Filter, Report, Summary};
use hprof::{Options, Silent, Snapshot, Source};
use serde::Deserialize;
use testdata::writer::{self, Elements, FieldType, HeapBuilder, Obj, Root, Value};

#[derive(Deserialize)]
struct Entry {
    id: String,
    holders: Vec<String>,
    #[serde(default)]
    classes: Vec<String>,
    library: String,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    fixed_in: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    leak: Vec<Entry>,
}

fn entries() -> Vec<Entry> {
    let list: List = toml::from_str(include_str!("../src/known-leaks.toml")).unwrap();
    list.leak
}

/// Returns a heap in which a static field holds `count` objects of a class. `jar` is the file from which the class of the
/// field was loaded.
fn heap(holder: &str, class: &str, jar: Option<&str>, count: usize) -> Vec<u8> {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let object = heap.boot().object;
    let (owner, field) = holder.rsplit_once('.').unwrap();
    let owner = heap.add_class(owner, Some(object), &[], &[(field, Value::NULL)]);
    let loader = heap.boot().class_loader;
    let loader = heap.add_class("com.acme.Loader", Some(loader), &[], &[]);
    let loader = heap.add_class_loader(loader, "app");
    heap.add_root(Root::JniGlobal { global_ref: 1 }, loader);
    heap.set_loader(owner, loader);
    if let Some(jar) = jar {
        let path = heap.add_string(&format!("/app/lib/{jar}"));
        let mut wrap = |name: &str, field: &str, value: Obj| {
            let class = heap.add_class(name, Some(object), &[(field, FieldType::Object)], &[]);
            heap.add_instance(class, &[value.into()])
        };
        let url = wrap("java.net.URL", "path", path);
        let source = wrap("java.security.CodeSource", "location", url);
        let domain = wrap("java.security.ProtectionDomain", "codesource", source);
        heap.set_protection_domain(owner, domain);
    }
    let class = heap.add_class(class, Some(object), &[("content", FieldType::Object)], &[]);
    heap.set_loader(class, loader);
    let objects: Vec<Obj> = (0..count)
        .map(|_| {
            let content = heap.add_primitive_array(Elements::Byte(vec![1; 100]));
            heap.add_instance(class, &[content.into()])
        })
        .collect();
    let array = heap.add_object_array(object, objects);
    heap.set_static(owner, field, array);
    heap.build()
}

fn report(dumps: [Vec<u8>; 2]) -> Report {
    let mut options = Options::default();
    options.holders = true;
    let snapshots =
        dumps.map(|dump| Snapshot::of(Source::from_bytes(dump), &options, &Silent).unwrap());
    let summaries = snapshots
        .each_ref()
        .map(|snapshot| Summary::new(snapshot, String::new()).unwrap());
    let filter = Filter {
        recording: None,
        classes: &|_| true,
        suspects: 10,
    };
    let comparison = Comparison::new(&summaries, &snapshots[1]).unwrap();
    comparison.report(&filter)
}

/// Returns the id and the version of the known leak of the first suspect.
fn known(holder: &str, class: &str, jar: Option<&str>) -> Option<(String, Option<String>)> {
    let mut report = report([100, 2000].map(|count| heap(holder, class, jar, count)));
    let suspect = report.suspects.swap_remove(0);
    assert_eq!((&*suspect.holder, &*suspect.class), (holder, class));
    suspect.known.map(|known| (known.id, known.version))
}

#[test]
fn each_known_leak_is_named() {
    for entry in entries() {
        let class = entry
            .classes
            .first()
            .map_or("com.acme.Order", |class| class);
        for holder in &entry.holders {
            let unknown = Some((entry.id.clone(), None));
            assert_eq!(known(holder, class, None), unknown, "{}", entry.id);
            let other = known(holder, class, Some("other-1.0.jar"));
            assert_eq!(other, unknown, "{}", entry.id);
        }
    }
}

#[test]
fn versions_without_the_leak_are_not_named() {
    for entry in entries().iter().filter(|entry| entry.library != "jdk") {
        let class = entry
            .classes
            .first()
            .map_or("com.acme.Order", |class| class);
        let named = |version: &str| {
            let jar = format!("{}-{version}.jar", entry.library);
            known(&entry.holders[0], class, Some(&jar))
        };
        let first = entry.since.as_deref().unwrap_or("0.1");
        let leaks = Some((entry.id.clone(), Some(first.to_owned())));
        assert_eq!(named(first), leaks, "{}", entry.id);
        for fixed in &entry.fixed_in {
            assert_eq!(named(fixed), None, "{} {fixed}", entry.id);
        }
        if entry.since.is_some() {
            assert_eq!(named("0.0.1"), None, "{}", entry.id);
        }
    }
}

#[test]
fn other_objects_in_the_same_field_are_no_known_leak() {
    for entry in entries().iter().filter(|entry| !entry.classes.is_empty()) {
        let other = known(&entry.holders[0], "com.acme.Order", None);
        assert_eq!(other, None, "{}", entry.id);
    }
}
