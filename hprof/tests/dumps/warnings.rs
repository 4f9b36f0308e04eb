//! Checks that each warning is given for dumps with the problem that it reports, and for no other dumps.

use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{
    Elements, FieldType, Gzip, HeapBuilder, Obj, Options as Written, Place, Root, Value, compress,
};

struct Small {
    heap: HeapBuilder,
    nodes: Vec<Obj>,
}

/// Returns a heap with a list of twenty nodes.
fn small(options: Written) -> Small {
    let mut heap = HeapBuilder::new(options);
    let object = heap.boot().object;
    let fields = [("next", FieldType::Object), ("size", FieldType::Int)];
    let statics = [("head", Value::NULL)];
    let node = heap.add_class("com.acme.Node", Some(object), &fields, &statics);
    let mut nodes = Vec::new();
    let mut next = Value::NULL;
    for i in 0..20 {
        let this = heap.add_instance(node, &[next, Value::Int(i)]);
        next = this.into();
        nodes.push(this);
    }
    heap.set_static(node, "head", next);
    heap.add_primitive_array(Elements::Zeros(FieldType::Long, 100));
    Small { heap, nodes }
}

/// Returns the heap of [`small`] with the default options of the writer.
fn usual() -> Small {
    small(Written::default())
}

/// Checks that a dump raises exactly these warnings. `parts` has a part of the text of each warning.
fn only(bytes: Vec<u8>, parts: &[&str]) {
    let snapshot = Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap();
    let warnings: Vec<String> = snapshot
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect();
    let are_all_told = parts.iter().all(|p| warnings.iter().any(|w| w.contains(p)));
    assert!(
        are_all_told && warnings.len() == parts.len(),
        "{parts:?}: {warnings:#?}"
    );
}

/// Length of the closing record, which consists of a header only.
const CLOSING: usize = 9;

#[test]
fn truncated_and_unknown_records_are_reported() {
    let whole = usual().heap.build();
    only(whole.clone(), &[]);
    let followed = |more: &[u8], parts: &[&str]| only([&whole[..], more].concat(), parts);
    let header = "the file ends inside the header of a record (3 of 9 bytes are there): the rest of the dump is missing";
    followed(&[7, 0, 0], &[header]);
    let unknown = "1 records of unknown kinds were skipped";
    followed(&[0x77, 0, 0, 0, 0, 0, 0, 0, 0], &[unknown]);
    let later = "the file contains another, later heap at byte";
    followed(&[0x1c, 0, 0, 0, 0, 0, 0, 0, 1, 0xff], &[later]);
    let cut = |tag: u8, part: &str| {
        let record = [tag, 0, 0, 0, 0, 0, 0, 0, 50, 1, 2, 3, 4];
        followed(&record, &[part]);
    };
    cut(
        0x01,
        "a name (kind 0x01) is truncated: it needs 50 bytes, but the file has only 4 more; this record and the rest of the dump are missing",
    );
    cut(
        0x02,
        "a class name (kind 0x02) is truncated: it needs 50 bytes, but the file has only 4 more; this record and the rest of the dump are missing",
    );
    cut(
        0x07,
        "a record (kind 0x07) is truncated: it needs 50 bytes, but the file has only 4 more; the rest of the dump is missing",
    );
}

#[test]
fn truncated_and_missing_heaps_are_reported() {
    let whole = usual().heap.build();
    only(whole.clone(), &[]);
    let begin = whole.iter().position(|&b| b == 0).unwrap() + 13;
    let source = Source::from_bytes(whole[..begin].to_vec());
    let error = Snapshot::of(source, &Options::default(), &Silent).unwrap_err();
    let empty =
        "the dump contains no objects: it was truncated or damaged before its first heap record";
    assert_eq!(error.to_string(), empty);
    let nothing = [&whole[..begin], &[0x0c, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let snapshot = Snapshot::of(Source::from_bytes(nothing), &Options::default(), &Silent).unwrap();
    let zero = "the dump contains no objects (no heap record): all figures are zero";
    assert!(snapshot.warnings().iter().any(|w| w.message == zero));
    let all = "GC roots may be missing, so heapdiff treats all classes as GC roots";
    let closing = whole.len() - CLOSING;
    let unclosed = "the dump is truncated: its closing record is missing";
    only(whole[..closing].to_vec(), &[unclosed, all]);
    // If the heap record is truncated, the part of it that exists is read.
    let inside =
        "more; objects and GC roots in the rest of the record are missing from all figures";
    let walked = "heapdiff skips the last 8 bytes of the segment, from the start of this record, so the objects in them are missing from all figures";
    only(whole[..closing - 1].to_vec(), &[inside, walked, all]);
}

#[test]
fn assumed_roots_are_reported() {
    let options = Written {
        sticky_classes: false,
        ..Written::default()
    };
    let rootless =
        "the dump has no GC roots (the JVM writes them last, so a truncated dump has none)";
    let unnamed = "the dump has no system classes among its GC roots, so heapdiff treats all classes of the boot loader as GC roots";
    only(small(options).heap.build(), &[rootless]);
    let mut rooted = small(options);
    let root = Root::JniGlobal { global_ref: 1 };
    rooted.heap.add_root(root, rooted.nodes[0]);
    only(rooted.heap.build(), &[unnamed]);
    only(usual().heap.build(), &[]);
}

#[test]
fn records_that_cannot_be_parsed_are_reported() {
    let with = |sub_record: &[&[u8]], parts: &[&str]| {
        let mut small = usual();
        small.heap.add_sub_record(Place::End, &sub_record.concat());
        only(small.heap.build(), parts);
    };
    let id = 0x9_0000_0000_u64.to_be_bytes();
    let [one, three, thousand] = [1_u32, 3, 1000].map(u32::to_be_bytes);
    let all = "GC roots may be missing, so heapdiff treats all classes as GC roots";
    with(
        &[&[0x23], &id, &one, &three, &[99], &[0; 3]],
        &[
            "a primitive array has the unknown element type 99. heapdiff skips the last",
            all,
        ],
    );
    with(
        &[&[0x22], &id, &one, &thousand, &id],
        &[
            "an object array needs 8000 bytes, but the heap segment ends after",
            all,
        ],
    );
    with(
        &[&[0x77]],
        &[
            "a record in a heap segment has the unknown kind 0x77. heapdiff skips the last 1 bytes of the segment, from \
           the start of this record, so the objects in them are missing from all figures",
            all,
        ],
    );
    with(&[&[0x23], &id, &one, &three, &[8], &[0; 3]], &[]);
}

#[test]
fn duplicate_ids_and_ids_that_are_not_addresses_are_reported() {
    only(usual().heap.build(), &[]);
    let mut copied = usual();
    copied.heap.set_copies(copied.nodes[7], 3);
    let objects = "2 objects have the id of an earlier object; references to these ids are counted for the earlier object";
    only(copied.heap.build(), &[objects]);
    let mut twice = usual();
    let [first, second] = ["com.acme.A", "com.acme.B"].map(|name| {
        let object = twice.heap.boot().object;
        twice.heap.add_class(name, Some(object), &[], &[])
    });
    let id = twice.heap.address(second);
    twice.heap.set_class_address(first, id);
    let classes = "1 class records have the id of an earlier class and were ignored";
    only(twice.heap.build(), &[classes]);
    let mut numbered = usual();
    let all: Vec<Obj> = numbered.heap.objects().collect();
    for (i, object) in (0..).zip(all) {
        numbered.heap.set_address(object, 0x100_0001 + 3 * i);
    }
    let numbers = "object ids in this dump are numbers, not addresses";
    let longer = "arrays may be longer than in this dump: the hprof agent of JDK 8";
    only(numbered.heap.build(), &[longer, numbers]);
}

#[test]
fn fields_beyond_their_record_or_the_file_are_reported() {
    let with = |fields: usize, subclasses: usize, length: u32, parts: &[&str]| {
        let fields: Vec<(&str, FieldType)> = vec![("same", FieldType::Object); fields];
        let mut small = usual();
        let object = small.heap.boot().object;
        let base = small.heap.add_class("Base", Some(object), &fields, &[]);
        for i in 0..subclasses {
            let name = format!("Sub{i}");
            small.heap.add_class(&name, Some(base), &[], &[]);
        }
        let class = small.heap.address(base).to_be_bytes();
        let id = 0x9_0000_0000_u64.to_be_bytes();
        let (serial, bytes) = (1_u32.to_be_bytes(), length.to_be_bytes());
        let body = vec![0; length as usize];
        let instance = [&[0x21][..], &id, &serial, &class, &bytes, &body].concat();
        small.heap.add_sub_record(Place::End, &instance);
        only(small.heap.build(), parts);
    };
    let short = "1 reference fields count as null, because the records of their objects end before these fields";
    with(1, 0, 8, &[]);
    with(1, 0, 0, &[short]);
    let oversized = "classes inherit more fields than fit into the file; references from their objects were not followed";
    with(3000, 2000, 3000 * 8, &[oversized]);
}

#[test]
fn another_dump_in_the_file_is_reported() {
    let whole = usual().heap.build();
    let another = "the file contains another dump";
    only([&whole[..], &whole].concat(), &[another]);
    let packed = compress(&whole, Gzip::Plain).unwrap();
    only(packed, &[]);
}

#[test]
fn truncated_gzip_data_is_reported() {
    let whole = usual().heap.build();
    let packed = compress(&whole, Gzip::Blocks { bytes: 1000 }).unwrap();
    only(packed.clone(), &[]);
    let source = Source::from_bytes(packed[..packed.len() * 2 / 3].to_vec());
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    let gzip = "the gzip data is truncated or damaged in the block that starts here";
    let mut warnings = snapshot.warnings().iter();
    assert!(warnings.any(|w| w.message.starts_with(gzip)));
}

#[test]
fn bytes_after_complete_gzip_data_are_no_damage() {
    let whole = usual().heap.build();
    let note = "bytes after the gzip data";
    let damage = "the gzip data is truncated or damaged";
    for gzip in [Gzip::Plain, Gzip::Blocks { bytes: 1000 }] {
        let packed = compress(&whole, gzip).unwrap();
        let with = |more: &[u8]| [&packed[..], more].concat();
        let zeros_then_bytes = [&[0; 100][..], b"tail"].concat();
        for more in [&b"trailing"[..], b"x", &zeros_then_bytes] {
            only(with(more), &[note]);
            let source = Source::from_bytes(with(more));
            let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
            assert!(!snapshot.is_partial());
        }
        only(with(&[0; 100]), &[]);
        only(with(&packed), &["the file contains another dump"]);
        // The second gzip member is truncated: half of it is missing, or nearly all of it.
        for cut in [2, 10, packed.len() / 2] {
            let source = Source::from_bytes(with(&packed[..cut]));
            let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
            let warnings = snapshot.warnings();
            assert!(warnings.iter().any(|w| w.message.starts_with(damage)));
            assert!(snapshot.is_partial(), "{cut}");
        }
    }
    // The header of the second of two gzip members is damaged, so the dump is incomplete.
    let (first, second) = whole.split_at(whole.len() / 2);
    let mut joined = compress(first, Gzip::Blocks { bytes: 1 << 20 }).unwrap();
    let at = joined.len();
    joined.extend(compress(second, Gzip::Plain).unwrap());
    joined[at] = 0;
    let source = Source::from_bytes(joined);
    let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
    assert!(snapshot.is_partial());
}

#[test]
fn a_dump_that_was_compressed_twice_is_read() {
    let whole = usual().heap.build();
    let packed = |times: u32| {
        let mut bytes = whole.clone();
        for _ in 0..times {
            bytes = compress(&bytes, Gzip::Plain).unwrap();
        }
        bytes
    };
    only(packed(1), &[]);
    only(packed(2), &["the dump was compressed twice with gzip"]);
    let blocks = compress(&whole, Gzip::Blocks { bytes: 1000 }).unwrap();
    let again = compress(&blocks, Gzip::Plain).unwrap();
    only(again.clone(), &["the dump was compressed twice with gzip"]);
    let folder = tempfile::tempdir().unwrap();
    let refusal = |bytes: &[u8]| {
        let path = folder.path().join("x.hprof.gz");
        std::fs::write(&path, bytes).unwrap();
        Source::open(&path).unwrap_err().to_string()
    };
    let more = refusal(&packed(3));
    assert!(
        more.contains("more than 2 times; run `gunzip` first"),
        "{more}"
    );
    let other = compress(&compress(&[7; 5000], Gzip::Plain).unwrap(), Gzip::Plain).unwrap();
    assert!(refusal(&other).contains("contains no heap dump"));
    // The dump is compressed twice, and the end of the outer gzip layer is missing.
    let cut = Source::from_bytes(again[..again.len() - 20].to_vec());
    let snapshot = Snapshot::of(cut, &Options::default(), &Silent).unwrap();
    assert!(snapshot.is_partial());
}

#[test]
fn virtual_threads_in_older_forked_dumps_are_reported() {
    // An earlier agent of heapdiff wrote dumps in a forked process. In such a dump, the IDs of class objects begin at
    // `base`.
    let forked = |base, threads: i32| {
        let mut heap = HeapBuilder::new(Written {
            base_address: Some(base),
            ..Written::default()
        });
        let object = heap.boot().object;
        for number in 0..400 {
            heap.add_class(&format!("com.acme.C{number}"), Some(object), &[], &[]);
        }
        let fields = [("state", FieldType::Int)];
        let class = heap.add_class("java.lang.VirtualThread", Some(object), &fields, &[]);
        for state in 0..threads {
            let thread = heap.add_instance(class, &[Value::Int(state)]);
            heap.add_root(Root::JniGlobal { global_ref: 1 }, thread);
        }
        heap.build()
    };
    let told =
        "the stacks of 3 virtual threads are missing, because an older agent wrote this dump";
    only(forked(0x7_0000_0000, 3), &[told]);
    only(forked(0x7_0000_0000, 0), &[]);
    only(forked(0x6_0000_0000, 3), &[]);
}
