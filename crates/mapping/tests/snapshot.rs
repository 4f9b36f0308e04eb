//! Tests that a mapping restores the names of classes, fields and frames, and that selectors accept the restored names.
//! Each test uses a dump, and the same dump with its index.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is a failure")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use heapdiff_mapping::Mapping;
use hprof::answers::{Histogram, Selected, Selector};
use hprof::{Options, Silent, Snapshot};
use testdata::dumps::unpacked;

/// The committed dumps are from `Orders.java`. This mapping treats the names in the dumps as obfuscated, and maps them
/// to invented original names.
const MAPPING: &str = "\
com.acme.book.Ledger -> Orders:
    java.util.List entries -> open
    int count -> taken
    20:40:void com.acme.book.Page.turn():7:7 -> main
    20:40:void work(java.lang.String[]):100 -> main
com.acme.book.Entry -> Orders$Order:
    long[] sums -> amounts
java.util.WeakHashMap -> java.util.HashMap:
";

fn options(mapped: bool) -> Options {
    let mapping = Mapping::new([MAPPING.as_bytes().to_vec()]).unwrap();
    let mut options = Options::default();
    options.mapping = mapped.then(|| Arc::new(mapping) as _);
    options
}

fn selected(snapshot: &Snapshot, selector: &str) -> Option<Selected> {
    let selector: Selector = selector.parse().unwrap();
    snapshot.resolve(&selector).ok()
}

/// Returns the names of classes and fields in a dump, and the text of its frames.
fn class_and_frame_names(snapshot: &Snapshot) -> (Vec<String>, Vec<String>) {
    let classes = snapshot.classes().iter().map(|(_, class)| {
        let fields = class.fields.iter().map(|f| &*f.name);
        let statics = class.statics.iter().map(|f| &*f.name);
        let names: Vec<&str> = fields.chain(statics).collect();
        format!("{} {}", class.name, names.join(" "))
    });
    let threads = snapshot.threads();
    let main = threads
        .iter()
        .find(|t| t.name.as_deref() == Some("main"))
        .unwrap();
    let frames = main
        .frames
        .iter()
        .map(|f| format!("{} {}", f.frame, f.locals.len()));
    (classes.collect(), frames.collect())
}

#[test]
fn names_come_from_the_mapping_with_and_without_an_index() {
    let packed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sampled-after.hprof.gz");
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("orders.hprof");
    fs::write(&dump, unpacked(&packed)).unwrap();
    let open = |mapped| Snapshot::open(&dump, &options(mapped), &Silent).unwrap();
    let (plain, mapped) = (open(false), open(true));
    let has = |(classes, frames): &(Vec<String>, Vec<String>), name: &str| {
        classes.iter().chain(frames).any(|line| line.contains(name))
    };
    let (before, after) = (
        class_and_frame_names(&plain),
        class_and_frame_names(&mapped),
    );
    for (name, was) in [
        ("com.acme.book.Ledger count entries", "Orders taken open"),
        ("com.acme.book.Entry sums", "Orders$Order amounts"),
        ("com.acme.book.Entry[]", "Orders$Order[]"),
        (
            "com.acme.book.Page.turn(Page.java:7) 0",
            "Orders.main(Orders.java:",
        ),
        (
            "com.acme.book.Ledger.work(Orders.java:100)",
            "Orders.main(Orders.java:",
        ),
    ] {
        let absent = name.ends_with("[]");
        assert!(
            has(&after, name) != absent && !has(&before, name),
            "{name}: {after:#?}"
        );
        assert!(has(&before, was) != absent && !has(&after, was), "{was}");
    }
    // The mapping says that other methods were inlined into the outermost method, so one frame becomes several. The
    // local variables stay with the frame of the outermost method.
    let locals = |class_and_frame_names: &(Vec<String>, Vec<String>)| -> Vec<String> {
        let counts = class_and_frame_names
            .1
            .iter()
            .map(|f| f.rsplit(' ').next().unwrap().to_owned());
        counts.filter(|count| count != "0").collect()
    };
    assert_eq!(locals(&after), locals(&before));
    // A selector accepts both the original name and the name in the dump.
    for (name, was) in [
        ("com.acme.book.Ledger", "Orders"),
        ("com.acme.book.Ledger.entries", "Orders.open"),
        ("class com.acme.book.Entry", "class Orders$Order"),
    ] {
        let found = selected(&mapped, name);
        assert!(found.is_some(), "{name}");
        assert_eq!(found, selected(&mapped, was), "{was}");
        assert_eq!(found, selected(&plain, was), "{was}");
        assert!(selected(&plain, name).is_none(), "{name}");
    }
    // JDK classes are recognized by their names in the dump, not by names in the mapping.
    let figures = |s: &Snapshot| {
        let totals: Vec<_> = s.totals().to_vec();
        (s.object_count(), totals, s.jvm(), s.layout().header)
    };
    assert_eq!(figures(&mapped), figures(&plain));

    // An index does not contain the mapping's names, so it is the same with and without a mapping.
    let index = |snapshot: &Snapshot| {
        let mut bytes = Vec::new();
        hprof::index::write(snapshot, &mut bytes).unwrap();
        bytes
    };
    let bytes = index(&mapped);
    assert!(bytes == index(&plain), "the indexes differ");
    let file = folder.path().join("orders.hdx");
    fs::write(&file, bytes).unwrap();
    let from_index = |mapped| Snapshot::from_index(&dump, &file, &options(mapped)).unwrap();
    assert_eq!(class_and_frame_names(&from_index(true)), after);
    assert_eq!(class_and_frame_names(&from_index(false)), before);
    let names = |histogram: &Histogram| {
        let classes = histogram.classes().iter().map(|(_, c)| c.name.to_string());
        let mut names: Vec<String> = classes
            .filter(|n| n.contains("rder") || n.contains("acme"))
            .collect();
        names.sort();
        names
    };
    let fresh = Histogram::open(&dump, &options(true), &Silent).unwrap();
    let indexed = Histogram::from_index(&dump, &file, &options(true)).unwrap();
    assert_eq!(names(&fresh), names(&indexed));
    assert!(names(&fresh).contains(&"com.acme.book.Ledger".to_owned()));
}
