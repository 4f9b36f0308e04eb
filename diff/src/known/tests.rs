//! Tests the list of known leaks. Each leak is also tested with heaps in which its objects accumulate, for a version
//! with the leak, a version without it, and an unknown version.

use hprof::{Options, Silent, Source};
use testdata::writer::{self, ClassId, Elements, FieldType, HeapBuilder, Obj, Root, Value};

use super::*;
use crate::{Comparison, Filter, Report, Summary};

fn entry(since: Option<&str>, fixed_in: &[&str]) -> Entry {
    Entry {
        id: "X-1".to_owned(),
        holders: vec!["a.Cache.all".to_owned()],
        classes: vec!["a.Entry".to_owned(), "a.Page".to_owned()],
        library: "cache".to_owned(),
        since: since.map(str::to_owned),
        fixed_in: fixed_in.iter().map(|&v| v.to_owned()).collect(),
        cause: String::new(),
        fix: String::new(),
        link: String::new(),
    }
}

#[test]
fn the_list_is_complete() {
    let list = parse(TEXT).unwrap();
    assert!(list.leak.len() >= 10, "{}", list.leak.len());
    for entry in &list.leak {
        assert!(!entry.holders.is_empty(), "{}", entry.id);
        for text in [&entry.cause, &entry.fix] {
            assert!(
                !text.is_empty() && !text.ends_with('.'),
                "{}: {text}",
                entry.id
            );
        }
        assert!(entry.link.starts_with("https://"), "{}", entry.id);
        for version in entry.fixed_in.iter().chain(&entry.since) {
            assert!(!numbers(version).is_empty(), "{}: {version}", entry.id);
        }
        let is_id = |other: &&Entry| other.id == entry.id;
        assert_eq!(list.leak.iter().filter(is_id).count(), 1, "{}", entry.id);
    }
    assert!(parse("[[leak]]\nid = 'a'\nholder = 'b'").is_err());
}

#[test]
fn a_fix_applies_to_its_line_and_to_later_versions() {
    let one = entry(Some("4.1.0"), &["4.1.28"]);
    for (version, leaks) in [
        ("4.0.56.Final", false),
        ("4.1.0", true),
        ("4.1.27.Final", true),
        ("4.1.28.Final", false),
        ("4.1.100", false),
        ("4.2.0.RC1", false),
    ] {
        assert_eq!(one.leaks_in(version), leaks, "{version}");
    }
    let lines = entry(None, &["8.0.312", "11.0.13", "17"]);
    for (version, leaks) in [
        ("1.8.0_202", true),
        ("1.8.0_312", false),
        ("11.0.12", true),
        ("11.0.13+8", false),
        ("12.0.2", true),
        ("17-ea", false),
        ("17.0.5", false),
        ("25.0.3", false),
    ] {
        assert_eq!(lines.leaks_in(version), leaks, "{version}");
    }
    assert!(entry(None, &[]).leaks_in("9.9"));
}

#[test]
fn jars_have_versions() {
    let version = |jar| version_in(jar, "netty-common");
    assert_eq!(
        version("netty-common-4.1.28.Final.jar"),
        Some("4.1.28.Final")
    );
    assert_eq!(version("netty-common-native-4.1.jar"), None);
    assert_eq!(version("netty-common.jar"), None);
    assert_eq!(version("classes/"), None);
    assert_eq!(version(""), None);
}

#[test]
fn a_suspect_matches_by_holder_and_class() {
    let mut one = entry(None, &[]);
    let mut suspect = Suspect {
        holder: "a.Cache.all".to_owned(),
        class: "a.Page".to_owned(),
        ..Suspect::default()
    };
    assert!(one.matches(&suspect));
    suspect.holder = "a.Cache.allPages".to_owned();
    assert!(!one.matches(&suspect));
    suspect.path = vec!["b.App.cache".to_owned(), "a.Cache.all".to_owned()];
    assert!(one.matches(&suspect));
    suspect.class = "b.Order".to_owned();
    assert!(!one.matches(&suspect));
    one.classes.clear();
    assert!(!one.matches(&suspect));
    suspect.holder = "a.Cache.all".to_owned();
    assert!(one.matches(&suspect));
}

/// Returns a heap in which a static field holds `count` objects of a class. `jar` is the file from which the class of
/// the field was loaded.
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
        set_jar(&mut heap, owner, jar);
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

/// Sets the file from which a class was loaded.
fn set_jar(heap: &mut HeapBuilder, class: ClassId, jar: &str) {
    let object = heap.boot().object;
    let path = heap.add_string(&format!("/app/lib/{jar}"));
    let mut wrap = |name: &str, field: &str, value: Obj| {
        let class = heap.add_class(name, Some(object), &[(field, FieldType::Object)], &[]);
        heap.add_instance(class, &[value.into()])
    };
    let url = wrap("java.net.URL", "path", path);
    let source = wrap("java.security.CodeSource", "location", url);
    let domain = wrap("java.security.ProtectionDomain", "codesource", source);
    heap.set_protection_domain(class, domain);
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
    for entry in &LIST.leak {
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
    for entry in LIST.leak.iter().filter(|entry| entry.library != "jdk") {
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

/// Two class loaders have the library. Nearly all objects belong to one of them.
#[test]
fn the_version_is_that_of_the_accumulating_objects() {
    let entry = entry(None, &["2.0"]);
    for (counts, version) in [
        ([100, 3], Some("1.0")),
        ([3, 100], Some("2.0")),
        ([50, 50], None),
    ] {
        let mut heap = HeapBuilder::new(writer::Options::default());
        for (jar, count) in ["cache-1.0.jar", "cache-2.0.jar"].into_iter().zip(counts) {
            add_library(&mut heap, jar, count);
        }
        let source = Source::from_bytes(heap.build());
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        let found = super::version(&snapshot, &entry, "a.Page");
        assert_eq!(found.as_deref(), version, "{counts:?}");
    }
}

/// Adds the classes `a.Cache` and `a.Page` of a class loader, and `count` pages.
fn add_library(heap: &mut HeapBuilder, jar: &str, count: usize) {
    let object = heap.boot().object;
    let loader = heap.boot().class_loader;
    let loader = heap.add_class("com.acme.Loader", Some(loader), &[], &[]);
    let loader = heap.add_class_loader(loader, jar);
    for name in ["a.Cache", "a.Page"] {
        let class = heap.add_class(name, Some(object), &[], &[]);
        heap.set_loader(class, loader);
        set_jar(heap, class, jar);
        if name == "a.Page" {
            let pages: Vec<Obj> = (0..count).map(|_| heap.add_instance(class, &[])).collect();
            let pages = heap.add_object_array(object, pages);
            heap.add_root(Root::JniGlobal { global_ref: 2 }, pages);
        }
    }
}

#[test]
fn other_objects_in_the_same_field_are_no_known_leak() {
    for entry in LIST.leak.iter().filter(|entry| !entry.classes.is_empty()) {
        let other = known(&entry.holders[0], "com.acme.Order", None);
        assert_eq!(other, None, "{}", entry.id);
    }
}
