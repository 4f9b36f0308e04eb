//! Dumps as other programs than HotSpot's own write them, names outside ASCII, files that are no dump or several.

#![allow(clippy::unwrap_used)]

use std::fs;

use hprof::{ClassTotal, Histogram, Options, Selector, Silent, Snapshot, Source};
use testdata::writer::{Frame, Framing, HeapBuilder, Options as Written, Root};

fn open(bytes: Vec<u8>) -> Snapshot {
    Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap()
}

/// A heap with an instance of each class.
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

/// Puts bytes in the place of others, as many.
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
        let options = Options {
            dump,
            ..Options::default()
        };
        Snapshot::open(&path, &options, &Silent)
    };
    let has = |s: &Snapshot, name| !s.classes().by_name(name).is_empty();
    let one = open(0).unwrap();
    assert!(has(&one, "acme.First") && !has(&one, "acme.Second"));
    let warnings: Vec<String> = one.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(&format!("another dump begins {} bytes after", first.len())));
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
        error.contains("no dump 3") && error.contains("holds 2"),
        "{error}"
    );
}

#[test]
fn files_that_are_no_dump_are_named() {
    let cases: [(&[u8], &str); 4] = [
        (b"\0\x12portable heap dump\0\0\0\x06", "a PHD file"),
        (
            b"JAVA PROFILE 1.0.1, created Mon Nov  2 10:00:00 2015\n\nHeader for -agentlib:hprof",
            "HPROF as text",
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

/// A dump as `jhsdb jmap` writes it: the roots of all threads name one trace, and the traces count other threads.
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

/// The method of each thread's first frame.
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
    // Which thread has which stack is not known: none is shown.
    assert_eq!(methods(&of_jhsdb(&threads, 4)), [""; 5]);
}

/// The hprof agent writes a heap for each SIGQUIT and one at the end, all under one header.
#[test]
fn of_several_heaps_under_one_header_the_first_is_read_and_the_others_by_number() {
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
    // The records of a dump without its header.
    let records = |dump: &[u8]| {
        let header = dump.iter().position(|&b| b == 0).unwrap() + 13;
        dump[header..].to_vec()
    };
    for framing in [Framing::Single, Framing::Segments { bytes: 700 }] {
        let heaps = [100, 230, 40].map(|instances| heap(framing, instances));
        let mut file = heaps[0].clone();
        file.extend(records(&heaps[1]));
        file.extend(records(&heaps[2]));
        // Another dump, with a header of its own.
        let last = heap(framing, 7);
        let next = file.len();
        file.extend(&last);
        fs::write(&path, file).unwrap();
        let alone = heaps.iter().chain([&last]).map(|h| open(h.clone()));
        for (dump, alone) in alone.enumerate() {
            let options = Options {
                dump,
                ..Options::default()
            };
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
            let number = format!("this is dump {}, `--dump {}`", dump + 1, dump + 2);
            match (dump, &warnings[..]) {
                (0 | 1, [one]) => {
                    assert!(
                        one.contains("under one header") && one.contains(&number),
                        "{one}"
                    );
                }
                (2, [one]) => {
                    let at = format!("another dump begins {next} bytes after");
                    assert!(one.contains(&at) && one.contains(&number), "{one}");
                }
                (dump, warnings) => assert_eq!((dump, warnings.len()), (3, 0), "{warnings:?}"),
            }
        }
        let options = Options {
            dump: 4,
            ..Options::default()
        };
        let error = Snapshot::open(&path, &options, &Silent).unwrap_err();
        assert!(error.to_string().contains("no dump 5"), "{error}");
    }
}
