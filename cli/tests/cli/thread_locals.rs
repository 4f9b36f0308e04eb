//! Tests that `show` and `sizeof` of a thread local name the values in the threads.

use std::path::Path;

use testdata::writer::{FieldType, HeapBuilder, Obj, Options, Value};

/// Returns a dump with four threads. Three of them have a value for `com.acme.Context.CURRENT`, and one has a value for
/// another thread local.
fn dump() -> Vec<u8> {
    let mut heap = HeapBuilder::new(Options::default());
    let boot = heap.boot();
    let object = Some(boot.object);
    let of = FieldType::Object;
    let local = heap.add_class(
        "java.lang.ThreadLocal",
        object,
        &[("hash", FieldType::Int)],
        &[],
    );
    let supplied = "java.lang.ThreadLocal$SuppliedThreadLocal";
    let supplied = heap.add_class(supplied, Some(local), &[], &[]);
    let map = "java.lang.ThreadLocal$ThreadLocalMap";
    let map = heap.add_class(map, object, &[("table", of)], &[]);
    let entry = [("referent", of), ("value", of)];
    let name = "java.lang.ThreadLocal$ThreadLocalMap$Entry";
    let entry_class = heap.add_class(name, object, &entry, &[]);
    let session = heap.add_class("com.acme.Session", object, &[("data", of)], &[]);
    let names = ["CURRENT", "OTHER", "UNUSED"].map(|name| (name, Value::NULL));
    let context = heap.add_class("com.acme.Context", object, &[], &names);
    let locals: [Obj; 3] = [(); 3].map(|()| heap.add_instance(supplied, &[Value::Int(7)]));
    for ((name, _), local) in names.iter().zip(locals) {
        heap.set_static(context, name, local);
    }
    let value = |heap: &mut HeapBuilder, thread: usize, local: Obj, field: &str, bytes: usize| {
        let zeros = testdata::writer::Elements::Zeros(FieldType::Byte, bytes);
        let data = heap.add_primitive_array(zeros);
        let session = heap.add_instance(session, &[data.into()]);
        let entry = heap.add_instance(entry_class, &[local.into(), session.into()]);
        let entries = heap.add_object_array(entry_class, [entry]);
        let map = heap.add_instance(map, &[entries.into()]);
        let worker = heap.add_thread(&format!("worker {thread}"), &[]);
        heap.set_field(worker.object, field, map);
    };
    let [current, other, _] = locals;
    value(&mut heap, 1, current, "threadLocals", 1 << 10);
    value(&mut heap, 2, current, "threadLocals", 1 << 20);
    value(&mut heap, 3, current, "inheritableThreadLocals", 1 << 10);
    value(&mut heap, 4, other, "threadLocals", 1 << 10);
    heap.build()
}

/// Returns the output of a command on the dump.
fn run(folder: &Path, code: i32, args: &[&str]) -> String {
    let done = crate::support::heapdiff(folder, args)
        .output()
        .expect("a run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&done.stdout) + &text(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{all}");
    all
}

#[test]
fn the_values_of_a_thread_local_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.hprof"), dump()).expect("a dump");
    let run = |code, args: &[&str]| run(folder.path(), code, args);
    let shown = run(0, &["show", "a.hprof", "com.acme.Context.CURRENT"]);
    let values = "  values   3 threads have a value of this ThreadLocal; the values retain 1.0 MiB together\n    com.acme.Session x 3\n    the largest value is com.acme.Session @ 0x";
    assert!(shown.contains(values), "{shown}");
    assert!(
        shown.contains(", which retains 1.0 MiB in thread \"worker 2\"\n"),
        "{shown}"
    );
    let next = "heapdiff show a.hprof 'values of com.acme.Context.CURRENT'\n";
    assert!(shown.contains(&format!("\n  next     {next}")), "{shown}");
    let shown = run(
        0,
        &["show", "a.hprof", "values of com.acme.Context.CURRENT"],
    );
    assert!(shown.contains(": 3 objects, "), "{shown}");
    assert!(shown.contains("\ncom.acme.Session @ 0x"), "{shown}");
    let sized = run(0, &["sizeof", "a.hprof", "com.acme.Context.CURRENT"]);
    let line = "\n3 threads have a value of this ThreadLocal; the values retain 1.0 MiB together: heapdiff sizeof a.hprof 'values of com.acme.Context.CURRENT'\n";
    assert!(sized.contains(line), "{sized}");
    let shown = run(0, &["show", "a.hprof", "com.acme.Context.OTHER"]);
    assert!(
        shown.contains("1 thread has a value of this ThreadLocal; the value retains 1.0 KiB\n"),
        "{shown}"
    );
    let shown = run(0, &["show", "a.hprof", "com.acme.Context.UNUSED"]);
    assert!(
        shown.contains("no thread has a value of this ThreadLocal\n"),
        "{shown}"
    );
    for command in ["show", "sizeof"] {
        for name in ["com.acme.Context.CURRENT", "com.acme.Context.UNUSED"] {
            let report = run(0, &[command, "a.hprof", name, "--format", "json"]);
            let report = serde_json::from_str(&report).expect("JSON");
            assert_eq!(crate::schema::faults(command, &report), [""; 0]);
        }
    }
    let failed = run(2, &["show", "a.hprof", "values of com.acme.Context.UNUSED"]);
    let none = "no thread has a value of the ThreadLocal com.acme.Context.UNUSED\n";
    assert!(failed.ends_with(none), "{failed}");
    let failed = run(2, &["paths", "a.hprof", "values of com.acme.Session"]);
    assert!(
        failed.ends_with("com.acme.Session is not a ThreadLocal\n"),
        "{failed}"
    );
}
