//! Tests repaired dumps: they have the objects of the damaged dump, they are whole, and they contain a name record that
//! leads to a warning.

use std::fs;
use std::path::Path;

use hprof::answers::{Histogram, PathOptions};
use hprof::bytes::piped::MARK as MARK_OF_PIPE;
use hprof::records::{Records, RootKind};
use hprof::redaction::{Redaction, Rules};
use hprof::repair::{Repair, Repaired};
use hprof::{Error, Options, Silent, Snapshot, Source, Warning};
use testdata::writer::{
    Elements, FieldType, FileOrder, Framing, Gzip, HeapBuilder, Options as Written, Place, Root,
    Value, compress,
};

/// Size of a record's header in bytes.
const HEAD: usize = 9;
const MARK: &str = "`heapdiff repair` wrote this dump from a damaged one";

/// Returns a dump with every kind of record. Of its two threads, one is alive.
fn dump(options: Written) -> Vec<u8> {
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    let fields = [("next", FieldType::Object), ("size", FieldType::Int)];
    let node = heap.add_class("com.acme.Node", Some(boot.object), &fields, &[]);
    let loader = heap.add_instance(boot.class_loader, &[]);
    heap.set_loader(node, loader);
    let mut next = Value::NULL;
    for i in 0..20 {
        next = heap.add_instance(node, &[next, Value::Int(i)]).into();
    }
    let numbers = heap.add_primitive_array(Elements::Long((0..30).collect()));
    let list = heap.add_object_array(boot.object, [numbers, numbers]);
    let worker = heap.add_class("com.acme.Worker", Some(boot.thread), &fields, &[]);
    let thread = heap.add_thread_of(worker, "alive", &[]);
    heap.set_field(thread.object, "eetop", Value::Long(0x7f00_1234));
    heap.add_thread("ended", &[]);
    heap.add_local(thread, 0, list);
    heap.add_root(Root::JniGlobal { global_ref: 9 }, numbers);
    heap.build()
}

fn formats() -> Vec<Written> {
    let small = Framing::Segments { bytes: 300 };
    let usual = Written::default;
    vec![
        Written {
            framing: small,
            ..usual()
        },
        Written {
            framing: Framing::Single,
            ..Written::bits_32()
        },
        Written {
            framing: small,
            classes: Place::End,
            roots: Place::Start,
            order: FileOrder::Shuffled(3),
            ..usual()
        },
        Written {
            framing: small,
            ..Written::android()
        },
    ]
}

/// A repaired dump.
struct Whole {
    bytes: Vec<u8>,
    repaired: Repaired,
    warnings: Vec<Warning>,
}

/// Repairs a dump. Returns `None` if nothing has to be repaired.
fn repair(source: &Source) -> Result<Option<Whole>, Error> {
    let repair = Repair::new(source, &Silent)?;
    let mut bytes = Vec::new();
    let written = repair.write(&mut bytes, &Silent).unwrap();
    assert_eq!(written, bytes.len() as u64);
    let repaired = *repair.repaired();
    Ok(repair.is_needed().then(|| Whole {
        bytes,
        repaired,
        warnings: repair.warnings().to_vec(),
    }))
}

fn histogram(bytes: &[u8]) -> Histogram {
    let source = Source::from_bytes(bytes.to_vec());
    Histogram::from_source(source, &Options::default(), &Silent).unwrap()
}

/// Returns name, number of objects and bytes of each class.
fn totals(histogram: &Histogram) -> Vec<(String, u64, u64)> {
    let classes = histogram.classes().iter();
    let totals = classes.zip(histogram.totals());
    let mut all: Vec<_> = totals
        .map(|((_, class), total)| (class.name.to_string(), total.all.objects, total.all.bytes))
        .collect();
    all.sort();
    all
}

/// Repairs a damaged dump, and checks that the output has the same objects, is whole, and is marked as a repaired dump.
#[track_caller]
fn check(damaged: &[u8]) -> Option<Whole> {
    let source = Source::from_bytes(damaged.to_vec());
    let whole = match repair(&source) {
        Ok(whole) => whole?,
        Err(Error::NoHeap { .. } | Error::NotADump(_) | Error::Header { .. }) => return None,
        Err(other) => panic!("{other}"),
    };
    let (before, after) = (histogram(damaged), histogram(&whole.bytes));
    assert_eq!(totals(&before), totals(&after));
    let is_empty = |w: &&Warning| w.message.starts_with("the dump contains no objects");
    let partial = after.warnings().iter().filter(|w| w.partial);
    let partial: Vec<&Warning> = partial.filter(|w| !is_empty(w)).collect();
    assert_eq!(partial.len(), 1, "{partial:?}");
    assert!(partial[0].message.starts_with(MARK), "{partial:?}");
    // Other programs read the records strictly.
    assert_strict(&whole.bytes);
    let again = Source::from_bytes(whole.bytes.clone());
    assert!(repair(&again).unwrap().is_none(), "it is not whole");
    Some(whole)
}

/// Checks that each record ends where the next one begins, and that the heap segments are contiguous. Also checks that
/// the last record ends the heap.
#[track_caller]
fn assert_strict(bytes: &[u8]) {
    let mut at = bytes.iter().position(|&b| b == 0).unwrap() + 13;
    let mut kinds = Vec::new();
    while at < bytes.len() {
        let length: [u8; 4] = bytes[at + 5..at + HEAD].try_into().unwrap();
        kinds.push(bytes[at]);
        at += HEAD + u32::from_be_bytes(length) as usize;
    }
    assert_eq!(at, bytes.len());
    assert!(matches!(kinds[..], [.., 0x0c | 0x2c]), "{kinds:?}");
    let first = kinds.iter().position(|kind| *kind == 0x1c);
    let heap = first.map_or(&[][..], |first| &kinds[first..kinds.len() - 1]);
    assert!(heap.iter().all(|kind| *kind == 0x1c), "{kinds:?}");
    let source = Source::from_bytes(bytes.to_vec());
    let records = Records::read(&source).unwrap();
    assert_eq!(records.for_each(|_| ()), []);
}

#[test]
fn a_dump_that_ends_anywhere_becomes_whole() {
    for options in formats() {
        let dump = dump(options);
        assert!(check(&dump).is_none(), "it was whole");
        let mut repaired = 0;
        for end in 0..dump.len() {
            repaired += usize::from(check(&dump[..end]).is_some());
        }
        // Without a heap record, nothing can be repaired.
        assert!(repaired > dump.len() / 2, "{options:?}: {repaired}");
    }
}

#[test]
fn a_dump_with_a_wrong_byte_anywhere_becomes_whole() {
    for options in formats() {
        let dump = dump(options);
        for at in 31..dump.len() {
            let mut damaged = dump.clone();
            damaged[at] ^= 0x55;
            hprof::fuzz::repair(&damaged);
        }
    }
}

#[test]
fn a_committed_dump_is_repaired() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/before.hprof.gz");
    let dump = testdata::dumps::unpacked(Path::new(path));
    assert!(check(&dump).is_none());
    let len = dump.len();
    for end in [
        len - 1,
        len - HEAD,
        len - HEAD - 3,
        len - 4000,
        len * 3 / 4,
        len / 2,
    ] {
        let whole = check(&dump[..end]).unwrap();
        let repaired = whole.repaired;
        assert!(repaired.lacks_end && repaired.lacks_roots());
        assert!(repaired.class_roots > 50, "{repaired:?}");
        assert!(repaired.left_out < 10_000 || end == len - 1, "{repaired:?}");
    }
    // In half of the dump there are no GC roots.
    let whole = check(&dump[..len / 2]).unwrap();
    assert_eq!(whole.repaired.roots, 0);
    assert!(whole.repaired.class_roots > 400 && whole.repaired.thread_roots > 3);
}

#[test]
fn missing_roots_are_added() {
    let dump = dump(formats()[0]);
    // The roots come last. Remove them all, and nothing else.
    let without_roots = |end: &usize| {
        let whole = repair(&Source::from_bytes(dump[..*end].to_vec()));
        whole.is_ok_and(|whole| whole.is_some_and(|whole| whole.repaired.roots == 0))
    };
    let end = (0..dump.len()).rev().find(without_roots).unwrap();
    let damaged = Source::from_bytes(dump[..end].to_vec());
    let whole = repair(&damaged).unwrap().unwrap();
    let open = |source: Source| Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let (before, after) = (open(damaged), open(Source::from_bytes(whole.bytes)));
    let class = |snapshot: &Snapshot, name: &str| {
        let index = snapshot.classes().by_name(name)[0];
        snapshot.classes()[index].id
    };
    // Classes of the boot loader are system classes, and other classes have the kind that heapdiff gives them.
    for (name, kind) in [
        ("java.lang.String", RootKind::StickyClass),
        ("com.acme.Node", RootKind::LoadedClass),
    ] {
        for snapshot in [&before, &after] {
            let object = snapshot.find(class(snapshot, name)).unwrap();
            let paths = snapshot
                .paths(&[object], &PathOptions::default(), &Silent)
                .unwrap();
            assert_eq!(
                paths.path(snapshot, object).unwrap().root,
                Some(kind),
                "{name}"
            );
        }
    }
    assert_eq!((before.threads().len(), after.threads().len()), (0, 1));
    assert_eq!(after.threads()[0].name.as_deref(), Some("alive"));
}

#[test]
fn a_second_repair_keeps_what_the_first_one_recorded() {
    let dump = dump(formats()[0]);
    let first = check(&dump[..dump.len() * 2 / 3]).unwrap();
    let second = check(&first.bytes[..first.bytes.len() - 1]).unwrap();
    let (first, second) = (first.repaired, second.repaired);
    assert!(second.lacks_end);
    assert_eq!(second.left_out, first.left_out + HEAD as u64 - 1);
    assert_eq!(second.class_roots, first.class_roots);
    assert_eq!(second.roots, first.roots);
}

#[test]
fn a_redacted_dump_keeps_the_mark() {
    let dump = dump(formats()[0]);
    let whole = check(&dump[..dump.len() * 2 / 3]).unwrap();
    let source = Source::from_bytes(whole.bytes.clone());
    let mut out = Vec::new();
    let redaction = Redaction::new(&source, Rules::default()).unwrap();
    redaction.write(&mut out, &Silent).unwrap();
    let warnings = |bytes: &[u8]| histogram(bytes).warnings().to_vec();
    assert_eq!(warnings(&out), warnings(&whole.bytes));
}

#[test]
fn later_dumps_of_a_file_are_repaired() {
    let dump = dump(formats()[0]);
    let two = [&dump[..], &dump[..dump.len() / 2]].concat();
    let whole = repair(&Source::from_bytes(two)).unwrap().unwrap();
    assert!(whole.bytes.starts_with(&dump), "the first dump is whole");
    assert_strict(&whole.bytes[dump.len()..]);
    let none = [&dump[..], b"JAVA PROFILE 1.0"].concat();
    let whole = repair(&Source::from_bytes(none)).unwrap().unwrap();
    assert!(whole.bytes == dump);
}

#[test]
fn compressed_dumps_are_repaired() {
    let dump = dump(formats()[0]);
    for gzip in [Gzip::Plain, Gzip::Blocks { bytes: 1000 }] {
        let packed = compress(&dump, gzip).unwrap();
        let mut repaired = 0;
        for end in (packed.len() / 2..packed.len()).step_by(7) {
            if let Some(whole) = check(&packed[..end]) {
                // If the file ends between two gzip blocks, no part of the compressed data is damaged.
                let parts = whole.repaired.parts;
                assert!(parts == 1 || gzip != Gzip::Plain && parts == 0);
                repaired += 1;
            }
        }
        assert!(repaired > 5, "{gzip:?}: {repaired}");
    }
}

#[test]
fn a_base_and_its_segments_become_the_merged_dump() {
    let folder = tempfile::tempdir().unwrap();
    let dump = dump(formats()[0]);
    let mut heap = Vec::new();
    let mut at = dump.iter().position(|&b| b == 0).unwrap() + 13;
    while at < dump.len() {
        if dump[at] == 0x1c {
            heap.push(at);
        }
        let length: [u8; 4] = dump[at + 5..at + HEAD].try_into().unwrap();
        at += HEAD + u32::from_be_bytes(length) as usize;
    }
    let (middle, end) = (heap[heap.len() / 2], dump.len() - HEAD);
    let base = folder.path().join("x.hprof");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("x.hprof", &dump[..heap[1] + 50]);
    write("x.hprof.p0", &dump[heap[0]..middle]);
    write("x.hprof.p1", &dump[middle..end]);
    for path in [base.clone(), folder.path().join("x.hprof.p1")] {
        let source = Source::open(&path).unwrap();
        let whole = repair(&source).unwrap().unwrap();
        assert!(whole.bytes == dump);
        assert_eq!(whole.repaired, Repaired::default());
    }
    // A truncated segment.
    write("x.hprof.p1", &dump[middle..end - 30]);
    let source = Source::open(&base).unwrap();
    let whole = repair(&source).unwrap().unwrap();
    assert_strict(&whole.bytes);
    assert!(whole.repaired.parts == 1 && whole.repaired.lacks_end);
    let joined = Histogram::from_source(source, &Options::default(), &Silent).unwrap();
    assert_eq!(totals(&joined), totals(&histogram(&whole.bytes)));
}

/// Returns the bytes that the guard of heapdiff's agent sends through a pipe: magic bytes ([`MARK_OF_PIPE`]), and then
/// the bytes of `dump`, but with zeros instead of the `length` bytes at offset `at`. These bytes come later, followed
/// by their offset and length.
fn transfer(dump: &[u8], at: usize, length: usize) -> Vec<u8> {
    let mut sent = [MARK_OF_PIPE, dump].concat();
    sent[MARK_OF_PIPE.len() + at..][..length].fill(0);
    sent.extend_from_slice(&dump[at..at + length]);
    sent.extend_from_slice(&(at as u64).to_be_bytes());
    sent.extend_from_slice(&(length as u64).to_be_bytes());
    sent
}

#[test]
fn a_transfer_through_a_pipe_becomes_a_dump() {
    let dump = dump(formats()[0]);
    let sent = transfer(&dump, 100, 200);
    for all in [sent.clone(), compress(&sent, Gzip::Plain).unwrap()] {
        let source = Source::from_bytes(all);
        let whole = repair(&source).unwrap().unwrap();
        assert!(whole.bytes == dump && whole.warnings.is_empty());
        assert_eq!(whole.repaired, Repaired::default());
    }
    // The process that writes the dump was killed before the end.
    let sent = transfer(&dump, 100, 0);
    let source = Source::from_bytes(sent[..dump.len() - 30].to_vec());
    let whole = repair(&source).unwrap().unwrap();
    assert!(whole.warnings[0].message.contains("did not arrive"));
    assert_strict(&whole.bytes);
    assert!(whole.repaired.lacks_end);
}
