//! Tests single objects, strings, selectors and threads, on heaps built for the test.

use std::borrow::Cow;

use hprof::answers::{Content, Frame, Line, Merge, PathOptions, SelectError, Selector, Value};
use hprof::records::RootKind;
use hprof::{ObjectId, ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::writer::{
    self, ClassId, Elements, FieldType, HeapBuilder, Obj, Ref, Root, StringForm, Value as Given,
};

fn open(heap: &HeapBuilder) -> Snapshot {
    Snapshot::of(
        Source::from_bytes(heap.try_build().unwrap().bytes),
        &Options::default(),
        &Silent,
    )
    .unwrap()
}

fn object(heap: &HeapBuilder, snapshot: &Snapshot, target: impl Into<Ref>) -> ObjectIndex {
    snapshot.find(ObjectId(heap.address(target))).unwrap()
}

fn forms() -> [writer::Options; 4] {
    let chars = |options| writer::Options {
        strings: StringForm::Chars,
        ..options
    };
    let (wide, narrow) = (writer::Options::default(), writer::Options::bits_32());
    [wide, narrow, chars(wide), chars(narrow)]
}

#[test]
fn fields_are_labelled_with_the_class_that_declares_them() {
    for options in forms() {
        let mut heap = HeapBuilder::new(options);
        let boot = heap.boot();
        let base = heap.add_class(
            "com.acme.Base",
            Some(boot.object),
            &[("id", FieldType::Long), ("next", FieldType::Object)],
            &[],
        );
        let fields = [
            ("flag", FieldType::Boolean),
            ("letter", FieldType::Char),
            ("ratio", FieldType::Float),
            ("exact", FieldType::Double),
            ("small", FieldType::Byte),
            ("short", FieldType::Short),
            ("count", FieldType::Int),
            ("id", FieldType::Object),
        ];
        let class = heap.add_class("com.acme.Sub", Some(base), &fields, &[]);
        let other = heap.add_instance(boot.object, &[]);
        let values = [
            Given::Boolean(true),
            Given::Char(0x20ac),
            Given::Float(1.5),
            Given::Double(-2.25),
            Given::Byte(-3),
            Given::Short(-300),
            Given::Int(i32::MIN),
            other.into(),
            Given::Long(i64::MIN),
            Given::Ref(Ref::Address(0x4444)),
        ];
        let given = heap.add_instance(class, &values);
        heap.set_trace(given, 7);
        let snapshot = open(&heap);
        let record = snapshot.read(object(&heap, &snapshot, given)).unwrap();
        assert_eq!((record.id.0, record.trace), (heap.address(given), 7));
        let Content::Instance(found) = &record.content else {
            panic!("{record:?}")
        };
        let names: Vec<String> = found
            .iter()
            .map(|f| format!("{}.{}", snapshot.classes()[f.class].name, f.name))
            .collect();
        assert_eq!(names[0], "com.acme.Sub.flag");
        assert_eq!(
            names[7..],
            ["com.acme.Sub.id", "com.acme.Base.id", "com.acme.Base.next"]
        );
        let values: Vec<Value> = found.iter().map(|f| f.value.unwrap()).collect();
        let at = object(&heap, &snapshot, other);
        let expected = [
            Value::Boolean(true),
            Value::Char(0x20ac),
            Value::Float(1.5),
            Value::Double(-2.25),
            Value::Byte(-3),
            Value::Short(-300),
            Value::Int(i32::MIN),
            Value::Object(ObjectId(heap.address(other)), Some(at)),
            Value::Long(i64::MIN),
            Value::Object(ObjectId(0x4444), None),
        ];
        assert_eq!(values, expected);
        assert_eq!(
            snapshot.allocation_traces().find(|t| t.0 == record.object),
            Some((record.object, 7))
        );
    }
}

#[test]
fn arrays_are_read_in_part() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let one = heap.add_instance(boot.object, &[]);
    let objects = heap.add_object_array(boot.object, [Ref::Null, one.into(), one.into()]);
    let ints = heap.add_primitive_array(Elements::Int((0..1000).collect()));
    let nothing = heap.add_primitive_array(Elements::NoData(FieldType::Long, 9));
    let snapshot = open(&heap);
    let array = |target: Obj| {
        let record = snapshot.read(object(&heap, &snapshot, target)).unwrap();
        match record.content {
            Content::Array(array) => array,
            other => panic!("{other:?}"),
        }
    };
    let found: Vec<Value> = array(ints).elements(990..2000).collect();
    assert_eq!(found, (990..1000).map(Value::Int).collect::<Vec<_>>());
    assert_eq!(array(ints).elements(2000..3000).len(), 0);
    assert_eq!(array(ints).bytes().len(), 4000);
    let found: Vec<_> = array(objects).elements(0..9).map(Value::object).collect();
    let one = Some(object(&heap, &snapshot, one));
    assert_eq!(found, [None, one, one]);
    let nothing = array(nothing);
    assert_eq!((nothing.len, nothing.bytes().len()), (9, 0));
    assert_eq!(nothing.elements(0..9).len(), 0);
    assert!(snapshot.read(ObjectIndex(u32::MAX)).is_err());
    assert!(
        snapshot
            .read(ObjectIndex(snapshot.object_count() as u32))
            .is_err()
    );
}

#[test]
fn strings_of_all_forms_are_decoded() {
    let texts = [
        "",
        "plain",
        "caf\u{e9}",
        "\u{20ac} 5",
        "\u{1f600}",
        "\u{4f60}\u{597d}",
    ];
    for options in forms() {
        let mut heap = HeapBuilder::new(options);
        let objects = texts.map(|t| heap.add_string(t));
        let other = heap.boot().object;
        let other = heap.add_instance(other, &[]);
        let snapshot = open(&heap);
        let numbers = objects.map(|o| object(&heap, &snapshot, o));
        let found = snapshot.strings(&numbers, 100);
        assert_eq!(found, texts.map(|t| Some(t.to_owned())));
        assert_eq!(snapshot.string(numbers[1], 3).unwrap(), "pla…");
        assert_eq!(snapshot.string(numbers[5], 1).unwrap(), "\u{4f60}…");
        assert_eq!(snapshot.string(numbers[1], 5).unwrap(), "plain");
        assert_eq!(snapshot.string(object(&heap, &snapshot, other), 5), None);
        assert_eq!(snapshot.string(ObjectIndex(u32::MAX), 5), None);
    }
}

#[test]
fn old_strings_share_arrays() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    // The class `java.lang.String` with the fields of JDK 6. The heap has no other class of this name.
    let object = heap.add_class("java.lang.Object", None, &[], &[]);
    let fields = [
        ("value", FieldType::Object),
        ("offset", FieldType::Int),
        ("count", FieldType::Int),
    ];
    let string = heap.add_class("java.lang.String", Some(object), &fields, &[]);
    let array = heap.add_primitive_array(Elements::Char("shared text".encode_utf16().collect()));
    let part = heap.add_instance(string, &[array.into(), 7.into(), 4.into()]);
    let beyond = heap.add_instance(string, &[array.into(), 7.into(), 400.into()]);
    let snapshot = open(&heap);
    let text = |o| {
        snapshot
            .string(self::object(&heap, &snapshot, o), 50)
            .unwrap()
    };
    assert_eq!(
        (text(part), text(beyond)),
        ("text".to_owned(), "text".to_owned())
    );
}

struct Shop {
    heap: HeapBuilder,
    entry: ClassId,
    entries: [Obj; 3],
}

fn shop() -> Shop {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let entry = heap.add_class(
        "com.acme.Entry",
        Some(boot.object),
        &[("name", FieldType::Object)],
        &[],
    );
    let statics = [
        ("cache", Given::NULL),
        ("empty", Given::NULL),
        ("lost", Given::Ref(Ref::Address(0x5550))),
        ("count", Given::Int(3)),
    ];
    let fields = [("own", FieldType::Int)];
    let shop = heap.add_class("com.acme.Shop", Some(boot.object), &fields, &statics);
    let entries = [0; 3].map(|_| heap.add_instance(entry, &[]));
    heap.set_static(shop, "cache", entries[1]);
    Shop {
        heap,
        entry,
        entries,
    }
}

#[test]
fn selectors_name_objects() {
    let Shop {
        heap,
        entry,
        entries,
    } = shop();
    let snapshot = open(&heap);
    let numbers = entries.map(|e| object(&heap, &snapshot, e));
    let select = |text: &str| snapshot.select(&text.parse::<Selector>().unwrap());
    let address = format!("{:#x}", heap.address(entries[2]));
    assert_eq!(select(&address).unwrap(), [numbers[2]]);
    assert_eq!(select("com.acme.Entry").unwrap(), numbers);
    assert_eq!(select("/acme.*try$/").unwrap(), numbers);
    assert_eq!(select("com.acme.Shop.cache").unwrap(), [numbers[1]]);
    let class = object(&heap, &snapshot, entry);
    assert_eq!(select("class com.acme.Entry").unwrap(), [class]);
    let address = format!("{:#x}", heap.address(entry));
    assert_eq!(select(&address).unwrap(), [class]);
    let classes = select("java.lang.Class").unwrap();
    assert_eq!(classes.len(), snapshot.classes().dumped());
}

/// Returns a class's name. If the class is hidden, returns its name without the address.
fn printed(name: &str) -> Cow<'_, str> {
    match name.split_once('/') {
        Some((name, _)) => Cow::Owned(name.to_owned()),
        None => Cow::Borrowed(name),
    }
}

#[test]
fn printed_names_select_the_values_of_fields() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let field = [("open", FieldType::Object)];
    let base = heap.add_class("com.acme.Base", Some(boot.object), &field, &[]);
    let derived = heap.add_class("com.acme.Derived", Some(base), &field, &[]);
    let unset = heap.add_class("com.acme.Unset", Some(boot.object), &field, &[]);
    let lambda = "com.acme.Base$$Lambda+0x00007f0012345678";
    let lambda = heap.add_class(lambda, Some(boot.object), &[], &[]);
    let [one, two, hidden] = [0; 3].map(|_| heap.add_instance(lambda, &[]));
    let of_base = heap.add_instance(base, &[Given::Ref(one.into())]);
    // The fields of the class itself come first, then those of its superclass.
    let values = [Given::Ref(hidden.into()), Given::Ref(two.into())];
    let of_derived = heap.add_instance(derived, &values);
    let empty = heap.add_instance(unset, &[Given::NULL]);
    let array = heap.add_object_array(base, [of_base, of_derived]);
    let jobs = [("jobs", Given::Ref(array.into()))];
    heap.add_class("com.acme.Registry", Some(boot.object), &[], &jobs);
    let frame = writer::Frame::new(&heap, base, "run", 42);
    let worker = heap.add_thread("worker 1", &[frame]);
    heap.add_local(worker, 0, array);
    heap.add_local(worker, 0, empty);
    let snapshot = open(&heap);
    let numbers = |objects: &[Obj]| -> Vec<ObjectIndex> {
        let numbers = objects.iter().map(|&o| object(&heap, &snapshot, o));
        let mut numbers: Vec<ObjectIndex> = numbers.collect();
        numbers.sort_unstable();
        numbers
    };
    let select = |text: &str| {
        let selector: Selector = text.parse().unwrap();
        let selected = snapshot.resolve_printed(&selector, &printed)?;
        snapshot.selected(&selector, selected)
    };
    assert_eq!(select("com.acme.Base.open").unwrap(), numbers(&[one, two]));
    assert_eq!(select("com.acme.Derived.open").unwrap(), numbers(&[hidden]));
    assert_eq!(
        select("com.acme.Base[*]").unwrap(),
        numbers(&[of_base, of_derived])
    );
    let lambdas = numbers(&[one, two, hidden]);
    assert_eq!(select("com.acme.Base$$Lambda").unwrap(), lambdas);
    let class = select("class com.acme.Base$$Lambda").unwrap();
    assert_eq!(class, [object(&heap, &snapshot, lambda)]);
    // Printed paths begin with `static`.
    for of_static in ["com.acme.Registry.jobs", "static com.acme.Registry.jobs"] {
        assert_eq!(select(of_static).unwrap(), numbers(&[array]));
    }
    let local = "local variable of com.acme.Base.run";
    assert_eq!(select(local).unwrap(), numbers(&[array, empty]));
    assert_eq!(select("worker 1").unwrap(), numbers(&[worker.object]));
    let error = |text: &str| select(text).unwrap_err().to_string();
    assert_eq!(
        error("com.acme.Unset.open"),
        "com.acme.Unset.open is null in each of the 1 instances of the class"
    );
    assert_eq!(
        error("local variable of com.acme.Base.stop"),
        "no thread was in com.acme.Base.stop when the dump was taken"
    );
    assert_eq!(
        error("worker 2"),
        "this dump has no class worker 2; did you mean worker 1?"
    );
}

#[test]
fn frames_select_the_objects_of_their_local_variables() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let job = heap.add_class("com.acme.Job", Some(boot.object), &[], &[]);
    let [first, second, third] = [0; 3].map(|_| heap.add_instance(boot.object, &[]));
    let frame = |heap: &HeapBuilder, method, line| writer::Frame::new(heap, job, method, line);
    let frames = [
        frame(&heap, "wait", -3),
        frame(&heap, "run", 42),
        frame(&heap, "main", 7),
    ];
    let one = heap.add_thread("worker 1", &frames);
    let frames = [frame(&heap, "run", 50)];
    let two = heap.add_thread("worker 2", &frames);
    heap.add_local(one, 1, first);
    heap.add_local(one, 2, second);
    heap.add_local(two, 0, third);
    let snapshot = open(&heap);
    let [first, second, third] = [first, second, third].map(|o| object(&heap, &snapshot, o));
    let select = |text: &str| snapshot.select(&text.parse::<Selector>().unwrap());
    assert_eq!(select("com.acme.Job.run").unwrap(), [first, third]);
    for prefix in ["", "at ", "local variable of ", "a local variable of "] {
        let select = |frame: &str| select(&format!("{prefix}{frame}")).unwrap();
        assert_eq!(select("com.acme.Job.run(Job.java:42)"), [first]);
        assert_eq!(select("com.acme.Job.run (Job.java:50)"), [third]);
        assert_eq!(select("com.acme.Job.main(Job.java:7)"), [second]);
    }
    let with_class = "java.lang.Object, a local variable of com.acme.Job.run(Job.java:50)";
    assert_eq!(select(with_class).unwrap(), [third]);
    let error = |text: &str| select(text).unwrap_err().to_string();
    assert_eq!(
        error("com.acme.Job.run(Job.java:43)"),
        "no thread was in com.acme.Job.run(Job.java:43) when the dump was taken; did you mean \
         com.acme.Job.run(Job.java:42) or com.acme.Job.run(Job.java:50)?"
    );
    assert_eq!(
        error("local variable of com.acme.Job.wait(Native Method)"),
        "no local variable of com.acme.Job.wait(Native Method) refers to an object"
    );
    assert_eq!(
        error("com.acme.Job.stop(Job.java:60)"),
        "no thread was in com.acme.Job.stop(Job.java:60) when the dump was taken"
    );
    // No thread was running in a method `stop`, so `stop` may also be a misspelt field.
    assert_eq!(error("com.acme.Job.stop"), "com.acme.Job has no field stop");
}

#[test]
fn names_are_accepted_as_printed_in_reports() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let field = [("all", FieldType::Object)];
    let job = heap.add_class("com.acme.Job", Some(boot.object), &field, &[]);
    let held = heap.add_instance(job, &[]);
    let other = heap.add_instance(job, &[]);
    let short = heap.add_object_array(job, [held]);
    let long = heap.add_object_array(job, [held, other]);
    let worker = heap.add_thread("worker 1", &[]);
    let dotted = heap.add_thread("com.acme.Job.loop", &[]);
    heap.add_local(worker, -1, held);
    let address = |o: Obj| format!("{:#x}", heap.address(o));
    let (at_other, class_at) = (address(other), format!("{:#x}", heap.address(job)));
    let snapshot = open(&heap);
    let [held, other, short, long] =
        [held, other, short, long].map(|o| object(&heap, &snapshot, o));
    let [worker, dotted] = [worker, dotted].map(|t| object(&heap, &snapshot, t.object));
    let class = object(&heap, &snapshot, job);
    let select = |text: &str| snapshot.select(&text.parse::<Selector>().unwrap());
    let both = vec![held, other];
    let threads = vec![worker, dotted];
    let cases: [(&str, Vec<ObjectIndex>); 20] = [
        (&format!("com.acme.Job @ {at_other}"), vec![other]),
        (
            &format!("[1] = com.acme.Job @ {at_other} \"text\""),
            vec![other],
        ),
        (&format!("class com.acme.Job @ {class_at}"), vec![class]),
        ("class com.acme.Job x 2", vec![class]),
        ("(system class) class com.acme.Job x 2", vec![class]),
        ("com.acme.Job x 2", both.clone()),
        ("com.acme.Job (several paths)", both.clone()),
        (".next = com.acme.Job x 2 (a chain)", both.clone()),
        ("(JNI global) com.acme.Job", both.clone()),
        ("com.acme.Job <class>", both.clone()),
        ("com.acme…Job", both),
        ("com.acme.Job[1]", vec![short]),
        ("com.acme.Job[2]", vec![long]),
        ("\"worker 1\"", vec![worker]),
        ("wor…1", vec![worker]),
        ("thread java.lang.Thread \"worker 1\"", vec![worker]),
        ("(thread) java.lang.Thread", threads.clone()),
        ("threads", threads),
        ("com.acme.Job.loop", vec![dotted]),
        ("java.lang.Thread (local variable)", vec![held]),
    ];
    for (name, objects) in cases {
        assert_eq!(select(name), Ok(objects), "{name}");
    }
    for name in [
        "(several paths)",
        "<local variable>",
        "GC roots",
        "JNI global",
    ] {
        assert_eq!(
            select(name).unwrap_err().to_string(),
            format!(
                "{name} is not the name of an object; use the class that the report prints beside it"
            )
        );
    }
    let error = |text: &str| select(text).unwrap_err().to_string();
    assert_eq!(
        error("com.acme.Jb x 2"),
        "this dump has no class com.acme.Jb; did you mean com.acme.Job?"
    );
    assert_eq!(
        error("com.acme.Job[3]"),
        "this dump has no class com.acme.Job[3]; did you mean com.acme.Job[] or com.acme.Job?"
    );
}

#[test]
fn selectors_without_a_match_give_the_reason() {
    let Shop { heap, entries, .. } = shop();
    let snapshot = open(&heap);
    let error = |text: &str| {
        snapshot
            .select(&text.parse::<Selector>().unwrap())
            .unwrap_err()
    };
    let id = |o| ObjectId(heap.address(o));
    let between = id(entries[0]).0 + 1;
    let expected = SelectError::NoObject {
        id: ObjectId(between),
        before: Some(id(entries[0])),
        after: Some(id(entries[1])),
    };
    assert_eq!(error(&format!("{between:#x}")), expected);
    let messages = [
        (
            "com.acme.Entri",
            "this dump has no class com.acme.Entri; did you mean com.acme.Entry?",
        ),
        (
            "entry",
            "this dump has no class entry; did you mean com.acme.Entry?",
        ),
        (
            "com.acme.Shop",
            "com.acme.Shop has no instances in this dump",
        ),
        (
            "com.acme.Shop.cach",
            "com.acme.Shop has no field cach; did you mean cache?",
        ),
        ("com.acme.Shop.empty", "com.acme.Shop.empty is null"),
        (
            "com.acme.Shop.count",
            "com.acme.Shop.count does not hold an object: it is of type int",
        ),
        (
            "com.acme.Shop.lost",
            "com.acme.Shop.lost refers to 0x5550, but this dump has no object at this address",
        ),
        (
            "com.acme.Shop.own",
            "com.acme.Shop.own does not hold an object: it is of type int",
        ),
        ("/nothing/", "no class in this dump matches /nothing/"),
        (
            "class com.acme.Nothing",
            "this dump has no class com.acme.Nothing",
        ),
    ];
    for (text, message) in messages {
        assert_eq!(error(text).to_string(), message);
    }
}

#[test]
fn threads_have_names_frames_and_locals() {
    for options in forms() {
        let mut heap = HeapBuilder::new(options);
        let boot = heap.boot();
        let class = heap.add_class("com.acme.Worker$Inner", Some(boot.object), &[], &[]);
        let held = heap.add_instance(boot.object, &[]);
        let frames = [
            writer::Frame::new(&heap, class, "native", -3),
            writer::Frame::new(&heap, class, "work", 42),
            writer::Frame::new(&heap, class, "compiled", -2),
            writer::Frame {
                source: None,
                ..writer::Frame::new(&heap, class, "unknown", -1)
            },
        ];
        let worker = heap.add_thread("worker 1", &frames);
        heap.set_field(worker.object, "daemon", Given::Boolean(true));
        heap.add_local(worker, 1, held);
        heap.add_local(worker, 1, held);
        heap.add_local(worker, -1, held);
        heap.add_root(
            Root::ThreadBlock {
                thread: worker.serial,
            },
            held,
        );
        let nameless = heap.add_thread("", &[]);
        heap.set_field(nameless.object, "name", Given::NULL);
        let snapshot = open(&heap);
        let threads = snapshot.threads();
        assert_eq!(threads.len(), 2);
        let thread = &threads[0];
        assert_eq!(thread.name.as_deref(), Some("worker 1"));
        assert_eq!((thread.daemon, thread.is_virtual), (Some(true), false));
        let texts: Vec<String> = thread.frames.iter().map(|f| f.frame.to_string()).collect();
        let expected = [
            "com.acme.Worker$Inner.native(Native Method)",
            "com.acme.Worker$Inner.work(Worker.java:42)",
            "com.acme.Worker$Inner.compiled(Worker.java, compiled)",
            "com.acme.Worker$Inner.unknown(Unknown Source)",
        ];
        assert_eq!(texts, expected);
        let frames = |serial| {
            let frames = snapshot.traces().frames(serial).into_iter();
            frames.map(|frame| frame.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(frames(worker.trace), expected);
        assert_eq!(frames(12345), [""; 0]);
        let lines: Vec<Line> = snapshot
            .traces()
            .frames(worker.trace)
            .iter()
            .map(|f: &Frame| f.line)
            .collect();
        assert_eq!(lines[1..3], [Line::Number(42), Line::Compiled]);
        let held = object(&heap, &snapshot, held);
        assert_eq!(thread.frames[1].locals.len(), 1);
        assert_eq!(thread.frames[1].locals[0].object, held);
        assert_eq!(thread.other_locals[0].kind, RootKind::JavaFrame);
        assert_eq!(threads[1].name, None);
        let roots = snapshot.gc_roots().iter();
        assert_eq!(
            roots.filter(|r| snapshot.find(r.id) == Some(held)).count(),
            4
        );
    }
}

#[test]
fn threads_of_newer_jvms_have_other_fields_and_may_be_virtual() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let object = heap.add_class("java.lang.Object", None, &[], &[]);
    let fields = [("value", FieldType::Object), ("coder", FieldType::Byte)];
    let string = heap.add_class("java.lang.String", Some(object), &fields, &[]);
    let holder = heap.add_class(
        "java.lang.Thread$FieldHolder",
        Some(object),
        &[("daemon", FieldType::Boolean)],
        &[],
    );
    let fields = [("name", FieldType::Object), ("holder", FieldType::Object)];
    let thread = heap.add_class("java.lang.Thread", Some(object), &fields, &[]);
    let base = heap.add_class("java.lang.BaseVirtualThread", Some(thread), &[], &[]);
    let virtual_thread = heap.add_class("java.lang.VirtualThread", Some(base), &[], &[]);
    let name = |heap: &mut HeapBuilder, text: &str| {
        let bytes = heap.add_primitive_array(Elements::Byte(text.as_bytes().to_vec()));
        heap.add_instance(string, &[bytes.into(), Given::Byte(0)])
    };
    let first = name(&mut heap, "platform");
    let details = heap.add_instance(holder, &[Given::Boolean(true)]);
    let platform = heap.add_instance(thread, &[first.into(), details.into()]);
    let root = Root::ThreadObject {
        thread: 1,
        trace: 1,
    };
    heap.add_root(root, platform);
    let second = name(&mut heap, "parked");
    let parked = heap.add_instance(virtual_thread, &[second.into()]);
    heap.add_root(Root::JniGlobal { global_ref: 8 }, parked);
    let snapshot = open(&heap);
    let threads = snapshot.threads();
    let found: Vec<_> = threads
        .iter()
        .map(|t| (t.serial, t.name.as_deref(), t.daemon, t.is_virtual))
        .collect();
    let expected = [
        (Some(1), Some("platform"), Some(true), false),
        (None, Some("parked"), Some(true), true),
    ];
    assert_eq!(found, expected);
}

/// An outer map holds a service, and the service holds an inner map of the same class with five items. Each line of the
/// merged paths leads to all five items. The outer map and the inner map have separate lines.
#[test]
fn a_map_in_a_map_has_its_own_lines() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let object = Some(boot.object);
    let [next, value] = ["next", "value"].map(|name| (name, FieldType::Object));
    let node = heap.add_class("com.acme.Node", object, &[next, value], &[]);
    let map = heap.add_class("com.acme.Map", object, &[("head", FieldType::Object)], &[]);
    let service = heap.add_class(
        "com.acme.Service",
        object,
        &[("items", FieldType::Object)],
        &[],
    );
    let item = heap.add_class("com.acme.Item", object, &[], &[]);
    let list = |heap: &mut HeapBuilder, values: &[Obj]| {
        let head = values.iter().rev().fold(Given::NULL, |next, &value| {
            let node = heap.add_instance(node, &[next, Given::Ref(value.into())]);
            Given::Ref(node.into())
        });
        heap.add_instance(map, &[head])
    };
    let items: Vec<Obj> = (0..5).map(|_| heap.add_instance(item, &[])).collect();
    let inner = list(&mut heap, &items);
    let service = heap.add_instance(service, &[Given::Ref(inner.into())]);
    let other = heap.add_instance(boot.object, &[]);
    let outer = list(&mut heap, &[other, service]);
    let statics = [("beans", Given::Ref(outer.into()))];
    heap.add_class("com.acme.Context", object, &[], &statics);
    let snapshot = open(&heap);
    let selected = snapshot.select(&"com.acme.Item".parse().unwrap()).unwrap();
    let paths = snapshot
        .paths(&selected, &PathOptions::default(), &Silent)
        .unwrap();
    let tree = paths.merged(&snapshot, Merge::Class, 100);
    let lines = tree.nodes.iter().map(|line| {
        let class = snapshot.name(line.object);
        (class, line.objects, line.folded, line.targets)
    });
    let line = |class: &str, objects, folded| (format!("com.acme.{class}"), objects, folded, 5);
    let mut expected = vec![
        line("Map", 1, false),
        line("Node", 2, true),
        line("Service", 1, false),
        line("Map", 1, false),
        line("Node", 5, true),
        line("Item", 5, false),
    ];
    let mut lines: Vec<_> = lines.collect();
    let first = lines.remove(0);
    assert_eq!((first.0.as_str(), first.3), ("class com.acme.Context", 5));
    assert_eq!(lines.remove(0), expected.remove(0));
    assert_eq!(lines, expected);
    // At most `limit` lines are listed. The fields `hidden` of the tree and of its lines have the numbers of lines that
    // are not listed.
    for limit in 0..=7 {
        let tree = paths.merged(&snapshot, Merge::Class, limit);
        let hidden: u64 = tree.nodes.iter().map(|n| n.hidden.0).sum();
        assert_eq!(tree.nodes.len(), limit);
        assert_eq!(hidden + tree.hidden.0, 7 - limit as u64);
    }
}
