//! Tests reports on dumps in which most objects are unreachable.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use testdata::writer::{Elements, FieldType, HeapBuilder, Options, Root, Value};

use crate::support::heapdiff;

const SENTENCE: &str = " is unreachable, 61.9 KiB in 120 objects: 60.9 KiB byte[], \
                        960 B app.Request; 60 app.Request would hold 100.0% of them";

/// Writes a dump with 61 requests, which hold their bodies. Only the first request is reachable.
fn dump(file: &Path) {
    let mut heap = HeapBuilder::new(Options::default());
    let boot = heap.boot();
    let fields = [("body", FieldType::Object)];
    let request = heap.add_class("app.Request", Some(boot.object), &fields, &[]);
    for number in 0..61 {
        let body = heap.add_primitive_array(Elements::Byte(vec![1; 1024]));
        let object = heap.add_instance(request, &[Value::from(body)]);
        if number == 0 {
            heap.add_root(Root::JniGlobal { global_ref: 5 }, object);
        }
    }
    fs::write(file, heap.build()).expect("a dump");
}

#[test]
fn mostly_unreachable_dumps_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["a.hprof", "b.hprof"].map(|name| folder.path().join(name));
    files.iter().for_each(|file| dump(file));
    let text = |args: &[&str]| {
        let done = heapdiff(folder.path(), args).output().expect("a run");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout)
            .expect("text")
            .replace('\n', " ")
    };
    for args in [
        &["b.hprof"][..],
        &["a.hprof", "b.hprof"],
        &["top", "b.hprof", "--unreachable"],
    ] {
        let text = text(args);
        let named = if args.len() == 2 {
            "95 % of the last dump"
        } else {
            "95 % of the dump"
        };
        let sentence = format!("{named}{SENTENCE}");
        assert!(text.contains(&sentence), "{args:?}: {text}");
    }
    let args = ["a.hprof", "b.hprof", "--format", "json"];
    let report: Json = serde_json::from_str(&text(&args)).expect("JSON");
    assert_eq!(report["unreachable"]["holders"][0]["objects"], 60);
    let top: Json = serde_json::from_str(&text(&[
        "top",
        "b.hprof",
        "--unreachable",
        "--format",
        "json",
    ]))
    .expect("JSON");
    assert_eq!(top["objects"][0]["retained_objects"], 2);
    let page = folder.path().join("page.html");
    for dumps in [&["b.hprof"][..], &["a.hprof", "b.hprof"]] {
        let args = [dumps, &["-o", "page.html"]].concat();
        text(&args);
        let page = fs::read_to_string(&page).expect("a page");
        assert!(
            page.contains("60 app.Request would hold 100.0% of them"),
            "{page}"
        );
    }
}
