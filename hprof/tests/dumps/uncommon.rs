//! Tests dumps that were not written by HotSpot, names with characters outside ASCII, and files that contain no dump or
//! several dumps.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use hprof::answers::{Histogram, Selector};
use hprof::sizes::ClassTotal;
use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{
    ClassId, FieldType, FileOrder, Frame, Framing, HeapBuilder, Obj, Options as Written, Ref, Root,
    Value,
};

fn open(bytes: Vec<u8>) -> Snapshot {
    Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap()
}

/// Returns a heap with an instance of each class.
fn heap(classes: &[&str]) -> HeapBuilder {
    let mut heap = HeapBuilder::new(Written::default());
    let object = heap.boot().object;
    for name in classes {
        let class = heap.add_class(name, Some(object), &[], &[]);
        let instance = heap.add_instance(class, &[]);
        heap.add_root(Root::JniGlobal { global_ref: 1 }, instance);
    }
    heap
}

/// Replaces bytes by the same number of other bytes.
fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|&at| bytes[at..].starts_with(from))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[test]
fn names_in_modified_utf8_are_shown_and_found() {
    let stand_ins = ["acme.P11111", "acme.Q11", "acme.Q22", "acme.Z1Z"];
    let names: [(&[u8], &str); 4] = [
        (b"acme/\xed\xa0\xbd\xed\xb8\x80", "acme.\u{1f600}"),
        (b"acme/Q\xed\xa0", "acme.Q\\xed\\xa0"),
        (b"acme/Q\xed\xa1", "acme.Q\\xed\\xa1"),
        (b"acme/Z\xc0\x80", "acme.Z\\u0000"),
    ];
    let mut bytes = heap(&stand_ins).build();
    for (stand_in, (raw, _)) in stand_ins.iter().zip(names) {
        bytes = replaced(bytes, stand_in.replace('.', "/").as_bytes(), raw);
    }
    let snapshot = open(bytes);
    for (_, name) in names {
        let selector: Selector = name.parse().unwrap();
        let found = snapshot.select(&selector).unwrap();
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(snapshot.name(found[0]), name);
    }
}

#[test]
fn the_first_of_two_dumps_in_a_file_is_read_and_the_other_named() {
    let first = heap(&["acme.First"]).build();
    let second = heap(&["acme.Second", "acme.Third"]).build();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("both.hprof");
    fs::write(&path, [&first[..], &second].concat()).unwrap();
    let open = |dump| {
        let mut options = Options::default();
        options.dump = dump;
        Snapshot::open(&path, &options, &Silent)
    };
    let has = |s: &Snapshot, name| !s.classes().by_name(name).is_empty();
    let one = open(0).unwrap();
    assert!(has(&one, "acme.First") && !has(&one, "acme.Second"));
    let warnings: Vec<String> = one.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(&format!(
        "the file contains another dump, {} bytes after",
        first.len()
    )));
    assert!(!one.is_partial());
    let two = open(1).unwrap();
    assert!(has(&two, "acme.Second") && !has(&two, "acme.First"));
    assert!(two.warnings().is_empty(), "{:?}", two.warnings());
    let alone = self::open(second);
    assert_eq!(two.object_count(), alone.object_count());
    assert_eq!(two.histogram(), alone.histogram());
    assert!(alone.warnings().is_empty());
    let error = open(2).unwrap_err().to_string();
    assert!(
        error.contains("--dump 3") && error.ends_with("(it contains 2 in total)"),
        "{error}"
    );
}

#[test]
fn files_that_are_no_dump_are_named() {
    let cases: [(&[u8], &str); 5] = [
        (b"\0\x12portable heap dump\0\0\0\x06", "a PHD dump"),
        (
            b"// Version: J2RE 11 IBM J9 VM\n",
            "a classic (text) heap dump",
        ),
        (
            b"JAVA PROFILE 1.0.1, created Mon Nov  2 10:00:00 2015\n\nHeader for -agentlib:hprof",
            "a text HPROF file",
        ),
        (b"\x7fELF\x02\x01\x01", "a core"),
        (b"PK\x03\x04", "a zip archive"),
    ];
    for (bytes, what) in cases {
        let source = Source::from_bytes(bytes.repeat(4));
        let error = Snapshot::of(source, &Options::default(), &Silent).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// Returns a dump as `jhsdb jmap` writes it: the roots of all threads refer to trace 1, and the traces are numbered in
/// the order of the threads.
fn of_jhsdb(threads: &[&str], traces: u32) -> Snapshot {
    let mut heap = heap(&["acme.Work"]);
    let boot = heap.boot();
    let work = heap.classes().last().unwrap();
    for (thread, name) in (1..).zip(threads) {
        let name = heap.add_string(name);
        let object = heap.add_instance(boot.thread, &[]);
        heap.set_field(object, "name", name);
        heap.add_root(Root::ThreadObject { thread, trace: 1 }, object);
    }
    for thread in 1..=traces {
        let frame = Frame::new(&heap, work, &format!("run{thread}"), 7);
        heap.add_stack_trace(thread, &[frame]);
    }
    open(heap.build())
}

/// Returns the method in each thread's first frame.
fn methods(snapshot: &Snapshot) -> Vec<String> {
    let threads = snapshot.threads().into_iter();
    let first = threads.map(|t| Some(t.frames.first()?.frame.method.clone()));
    first.map(Option::unwrap_or_default).collect()
}

#[test]
fn threads_of_jhsdb_have_their_frames() {
    let threads = [
        "main",
        "Service Thread",
        "C2 CompilerThread0",
        "Common-Cleaner",
        "worker",
    ];
    assert_eq!(
        methods(&of_jhsdb(&threads, 3)),
        ["run1", "", "", "run2", "run3"]
    );
    assert_eq!(
        methods(&of_jhsdb(&threads, 5)),
        ["run1", "run2", "run3", "run4", "run5"]
    );
    // The assignment of stacks to threads is unknown, so no stack is shown.
    assert_eq!(methods(&of_jhsdb(&threads, 4)), [""; 5]);
}

/// The hprof agent writes a heap for each SIGQUIT and one at the end. Each of these heaps is from a later time than the
/// previous one.
#[test]
fn several_heaps_under_one_header_are_read_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heaps.hprof");
    let heap = |framing, instances| {
        let mut written = HeapBuilder::new(Written {
            framing,
            ..Written::default()
        });
        let object = written.boot().object;
        for _ in 0..instances {
            let instance = written.add_instance(object, &[]);
            written.add_root(Root::JniGlobal { global_ref: 1 }, instance);
        }
        written.build()
    };
    // Returns the records of a dump without its header.
    let records = |dump: &[u8]| {
        let header = dump.iter().position(|&b| b == 0).unwrap() + 13;
        dump[header..].to_vec()
    };
    for framing in [Framing::Single, Framing::Segments { bytes: 700 }] {
        let heaps = [100, 230, 40].map(|instances| heap(framing, instances));
        let mut file = heaps[0].clone();
        file.extend(records(&heaps[1]));
        file.extend(records(&heaps[2]));
        // Another dump with its own header.
        let last = heap(framing, 7);
        let next = file.len();
        file.extend(&last);
        fs::write(&path, file).unwrap();
        let alone = heaps.iter().chain([&last]).map(|h| open(h.clone()));
        for (dump, alone) in alone.enumerate() {
            let mut options = Options::default();
            options.dump = dump;
            let read = Snapshot::open(&path, &options, &Silent).unwrap();
            assert_eq!(read.object_count(), alone.object_count());
            assert_eq!(read.histogram(), alone.histogram());
            assert!(alone.warnings().is_empty(), "{:?}", alone.warnings());
            assert!(!read.is_partial(), "{:?}", read.warnings());
            let classes = Histogram::open(&path, &options, &Silent).unwrap();
            let all = |totals: &[ClassTotal]| totals.iter().map(|t| t.all).collect::<Vec<_>>();
            assert_eq!(all(classes.totals()), all(&read.histogram()));
            let warnings = read.warnings().iter();
            let warnings: Vec<String> = warnings.map(ToString::to_string).collect();
            let number = format!(
                "heapdiff reads dump {} of the file; add `--dump {}`",
                dump + 1,
                dump + 2
            );
            match (dump, &warnings[..]) {
                (0 | 1, [one]) => {
                    assert!(
                        one.contains("another, later heap") && one.contains(&number),
                        "{one}"
                    );
                }
                (2, [one]) => {
                    let at = format!("the file contains another dump, {next} bytes after");
                    assert!(one.contains(&at) && one.contains(&number), "{one}");
                }
                (dump, warnings) => assert_eq!((dump, warnings.len()), (3, 0), "{warnings:?}"),
            }
        }
        let mut options = Options::default();
        options.dump = 4;
        let error = Snapshot::open(&path, &options, &Silent).unwrap_err();
        assert!(error.to_string().starts_with("--dump 5: "), "{error}");
    }
}

/// Asserts that nothing is unreachable.
fn all_is_reachable(snapshot: &Snapshot) {
    assert_eq!(snapshot.unreachable_bytes(), 0);
}

#[test]
fn classes_of_a_loader_without_references_are_reachable() {
    // The loader's class is not a subclass of `java.lang.ClassLoader`, so only its ID shows that it is a loader.
    let mut heap = HeapBuilder::new(Written::default());
    let boot = heap.boot();
    let loaders = heap.add_class("app.Loader", Some(boot.object), &[], &[]);
    let loader = heap.add_instance(loaders, &[]);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, loader);
    // The same class also has instances that are not loaders, because they define no class.
    for _ in 0..100 {
        let other = heap.add_instance(loaders, &[]);
        heap.add_root(Root::JniGlobal { global_ref: 1 }, other);
    }
    let fields = [("all", Value::Ref(Ref::Null))];
    let cache = heap.add_class("plugin.Cache", Some(boot.object), &[], &fields);
    heap.set_loader(cache, loader);
    let items: Vec<Obj> = (0..1000)
        .map(|_| heap.add_instance(boot.object, &[]))
        .collect();
    let all = heap.add_object_array(boot.object_array, items);
    heap.set_static(cache, "all", all);
    let snapshot = open(heap.build());
    all_is_reachable(&snapshot);
    let loader = "app.Loader".parse::<Selector>().unwrap();
    let loader = snapshot.select(&loader).unwrap()[0];
    assert!(snapshot.retained_bytes(loader) > Some(1000 * 16));
}

#[test]
fn class_objects_that_are_instances_reach_their_statics() {
    for (has_references, is_twice) in [(true, true), (false, true), (true, false)] {
        let mut heap = HeapBuilder::new(Written::default());
        let boot = heap.boot();
        let fields = [("all", Value::Ref(Ref::Null))];
        let cache = heap.add_class("app.Cache", Some(boot.object), &[], &fields);
        let loader = heap.add_class_loader(boot.class_loader, "app");
        heap.add_root(Root::JniGlobal { global_ref: 1 }, loader);
        heap.set_loader(cache, loader);
        let item = heap.add_instance(boot.object, &[]);
        let all = heap.add_object_array(boot.object_array, [item]);
        heap.set_static(cache, "all", all);
        let twice = heap.add_instance(boot.class, &[]);
        if has_references {
            let name = heap.add_string("app.Cache");
            heap.set_field(twice, "name", name);
        }
        if is_twice {
            heap.set_address(twice, heap.address(cache));
        }
        heap.add_root(Root::JniGlobal { global_ref: 2 }, twice);
        let snapshot = open(heap.build());
        all_is_reachable(&snapshot);
        let warnings: Vec<String> = snapshot
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        let note = "1 class objects are also recorded as instances of java.lang.Class, so each counts as two objects";
        let expected: &[&str] = if is_twice { &[note] } else { &[] };
        assert_eq!(warnings, expected);
    }
}

/// Returns the instance size of a class in a snapshot and in a histogram.
fn size_of(bytes: &[u8], class: &str) -> [u64; 2] {
    let source = || Source::from_bytes(bytes.to_vec());
    let snapshot = open(bytes.to_vec());
    let histogram = Histogram::from_source(source(), &Options::default(), &Silent).unwrap();
    let of = |classes: &hprof::records::Classes, totals: &[ClassTotal]| {
        let index = classes.by_name(class)[0];
        let all = &totals[index.index()].all;
        all.bytes / all.objects
    };
    [
        of(snapshot.classes(), &snapshot.histogram()),
        of(histogram.classes(), histogram.totals()),
    ]
}

#[test]
fn class_ids_beside_instances_are_no_addresses() {
    // A native image writes the `java.lang.Class` of each class as an instance. The ID of the class is its address plus
    // 1.
    for order in [FileOrder::ByAddress, FileOrder::Shuffled(1)] {
        let mut heap = HeapBuilder::new(Written {
            order,
            ..Written::default()
        });
        let boot = heap.boot();
        let classes: Vec<ClassId> = (0..10)
            .map(|n| heap.add_class(&format!("app.C{n}"), Some(boot.object), &[], &[]))
            .collect();
        for class in classes {
            let hub = heap.add_instance(boot.class, &[]);
            heap.set_class_address(class, heap.address(hub) + 1);
            heap.add_root(Root::JniGlobal { global_ref: 1 }, hub);
        }
        let size = heap.instance_size(boot.class);
        // The selector also returns class objects; they are removed here.
        let hubs = |bytes: &[u8]| {
            let snapshot = open(bytes.to_vec());
            let selector = "java.lang.Class".parse::<Selector>().unwrap();
            let all = snapshot.select(&selector).unwrap();
            let class = snapshot.class_class();
            let hubs = all.into_iter().filter(|&o| snapshot.class_of(o) == class);
            hubs.map(|o| snapshot.shallow_bytes(o))
                .collect::<Vec<u64>>()
        };
        assert_eq!(hubs(&heap.build()), [size; 10]);
    }
}

#[test]
fn an_array_inside_of_a_loader_does_not_bound_the_loader() {
    // For each loader, ART writes an array with the loader's classes. The ID of the array is the address of the loader
    // plus 4.
    let mut heap = HeapBuilder::new(Written::android());
    let boot = heap.boot();
    let fields = [("name", FieldType::Object), ("id", FieldType::Long)];
    let loaders = heap.add_class(
        "dalvik.system.PathClassLoader",
        Some(boot.object),
        &fields,
        &[],
    );
    let mut own = Vec::new();
    for _ in 0..3 {
        let loader = heap.add_instance(loaders, &[]);
        let classes = heap.add_object_array(boot.object_array, [loader]);
        heap.set_address(classes, heap.address(loader) + 4);
        own.push(loader);
        for _ in 0..20 {
            own.push(heap.add_instance(boot.object, &[]));
        }
    }
    let all = heap.add_object_array(boot.object_array, own);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, all);
    let size = heap.instance_size(loaders);
    assert_eq!(
        size_of(&heap.build(), "dalvik.system.PathClassLoader"),
        [size; 2]
    );
}

#[test]
fn a_truncated_array_has_its_bounds() {
    /// Number of elements to which HotSpot truncates a `long[]`.
    const CUT: u32 = (u32::MAX - 18) / 8;
    let array = 1_u64 << 40;
    let next = array + 16 + 560_000_000 * 8;
    let mut heap = heap(&["acme.Holder"]);
    let object = heap.boot().object;
    let after = heap.add_instance(object, &[]);
    heap.set_address(after, next);
    let whole = heap.build();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut-array.hprof");
    // The record of the array precedes the end record. The elements of the array are a hole in the sparse file, so they
    // take no space on the disk.
    let (before, end) = whole.split_at(whole.len() - 9);
    let mut file = fs::File::create(&path).unwrap();
    let mut header = vec![0x1c, 0, 0, 0, 0];
    header.extend((18 + CUT * 8).to_be_bytes());
    header.push(0x23);
    header.extend(array.to_be_bytes());
    header.extend([0; 4]);
    header.extend(CUT.to_be_bytes());
    header.push(11);
    file.write_all(&[before, &header].concat()).unwrap();
    file.seek(SeekFrom::Current(i64::from(CUT) * 8)).unwrap();
    file.write_all(end).unwrap();
    drop(file);
    let snapshot = Snapshot::open(&path, &Options::default(), &Silent).unwrap();
    let histogram = Histogram::open(&path, &Options::default(), &Silent).unwrap();
    fs::remove_file(&path).unwrap();
    let least = "the JVM truncated long[] 0x10000000000 after 536,870,909 elements: its real size is at least 4,294,967,288 bytes";
    let most = ", and at most 4,480,000,016 (where the next object begins)";
    for (warnings, text) in [
        (snapshot.warnings(), format!("{least}{most}. ")),
        (histogram.warnings(), format!("{least}. ")),
    ] {
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].partial && warnings[0].message.starts_with(&text),
            "{warnings:?}"
        );
    }
}
