//! Tests of whole dumps. The expected bytes are written by hand, or a simple independent loop reads the records of the
//! dump.

use std::io::Read;

use super::super::format::IdSize;
use super::super::graph::{self, NodeKind};
use super::super::heap::{Options, StringForm};
use super::super::record::Framing;
use super::super::thread::Frame;
use super::super::{Boot, JvmLayout, ReferenceKind};
use super::*;

fn small() -> Options {
    Options {
        framing: Framing::Single,
        sticky_classes: false,
        timestamp_ms: 0x0102_0304_0506,
        ..Options::bits_32()
    }
}

#[test]
fn a_whole_dump_byte_by_byte() {
    let mut heap = HeapBuilder::new(small());
    let class = heap.add_class("a.B", None, &[("f", FieldType::Int)], &[]);
    heap.set_class_address(class, 0x20);
    let object = heap.add_instance(class, &[Value::Int(7)]);
    heap.set_address(object, 0x40);
    heap.add_root(Root::Unknown, object);
    let (bytes, boundaries) = heap.build_with_offsets();
    #[rustfmt::skip]
    let parts: &[&[u8]] = &[
        b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\x01\x02\x03\x04\x05\x06",
        b"\x01\0\0\0\0\0\0\0\x05\0\x10\0\0f",
        b"\x01\0\0\0\0\0\0\0\x07\0\x10\0\x10a/B",
        b"\x02\0\0\0\0\0\0\0\x10\0\0\0\x01\0\0\0\x20\0\0\0\x01\0\x10\0\x10",
        b"\x05\0\0\0\0\0\0\0\x0c\0\0\0\x01\0\0\0\0\0\0\0\0",
        b"\x0c\0\0\0\0\0\0\0\x4a",
        b"\x20\0\0\0\x20\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
          \0\0\0\x04\0\0\0\0\0\x01\0\x10\0\0\x0a",
        b"\x21\0\0\0\x40\0\0\0\x01\0\0\0\x20\0\0\0\x04\0\0\0\x07",
        b"\xff\0\0\0\x40",
    ];
    assert_eq!(bytes, parts.concat());
    let ends: Vec<usize> = parts
        .iter()
        .scan(0, |at, part| {
            *at += part.len();
            Some(*at)
        })
        .collect();
    assert_eq!(boundaries, ends);
}

/// Reads all records, and returns their tags and the concatenated bytes of the heap records.
fn walk(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut at = 19 + 4 + 8;
    let (mut tags, mut heap) = (Vec::new(), Vec::new());
    while at < bytes.len() {
        let tag = bytes[at];
        let length = bytes[at + 5..at + 9].try_into().expect("four bytes");
        let length = u32::from_be_bytes(length) as usize;
        tags.push(tag);
        if [tag::HEAP_DUMP, tag::HEAP_DUMP_SEGMENT].contains(&tag) {
            heap.extend_from_slice(&bytes[at + 9..at + 9 + length]);
        }
        at += 9 + length;
    }
    assert_eq!(at, bytes.len(), "the last record ends with the file");
    (tags, heap)
}

fn varied(options: Options) -> (HeapBuilder, Boot) {
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    let acme = heap.add_class(
        "com.acme.Cache",
        Some(boot.object),
        &[("map", FieldType::Object), ("hits", FieldType::Long)],
        &[("instance", Value::NULL)],
    );
    let loader = heap.add_class_loader(boot.class_loader, "app");
    heap.set_loader(acme, loader);
    let text = heap.add_string("grüße ☺");
    let cache = heap.add_instance(acme, &[text.into()]);
    heap.set_field(cache, "hits", 3i64);
    heap.set_static(acme, "instance", cache);
    for kind in [
        ReferenceKind::Soft,
        ReferenceKind::Weak,
        ReferenceKind::Phantom,
        ReferenceKind::Finalizer,
        ReferenceKind::Finalizer,
    ] {
        heap.add_reference(kind, text);
    }
    let frames = [Frame::new(&heap, acme, "put", 12)];
    let thread = heap.add_thread("main", &frames);
    heap.add_local(thread, 0, cache);
    heap.add_object_array(boot.string, [text, text]);
    for kind in FieldType::PRIMITIVES {
        heap.add_primitive_array(Elements::Zeros(kind, 5));
    }
    (heap, boot)
}

#[test]
fn segments_split_between_sub_records_and_hold_the_same() {
    let options = Options::default();
    let framing = |framing| Options { framing, ..options };
    let whole = walk(&varied(framing(Framing::Single)).0.build());
    let split = walk(&varied(framing(Framing::Segments { bytes: 100 })).0.build());
    assert_eq!(whole.1, split.1);
    assert_eq!(whole.0.last(), Some(&tag::HEAP_DUMP));
    assert_eq!(split.0.last(), Some(&tag::HEAP_DUMP_END));
    let segments = split.0.iter().filter(|&&t| t == tag::HEAP_DUMP_SEGMENT);
    assert!(segments.count() > 10);
    let endless = Framing::SegmentsWithoutEnd { bytes: 100 };
    let endless = walk(&varied(framing(endless)).0.build());
    assert_eq!(endless.0.last(), Some(&tag::HEAP_DUMP_SEGMENT));
}

#[test]
fn objects_follow_each_other_without_gaps() {
    for layout in [
        JvmLayout::COMPRESSED,
        JvmLayout::ALIGN_16,
        JvmLayout::WIDE,
        JvmLayout::WIDE_CLASSES,
        JvmLayout::COMPACT,
    ] {
        let (heap, _) = varied(Options {
            layout,
            ..Options::default()
        });
        let objects = heap.objects().map(Ref::from);
        let mut all: Vec<(u64, u64)> = objects
            .chain(heap.classes().map(Ref::from))
            .map(|target| (heap.address(target), heap.shallow_size(target)))
            .collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert_eq!(pair[0].0 + pair[0].1, pair[1].0);
            assert_eq!(pair[1].0 % layout.alignment, 0);
        }
    }
}

#[test]
fn strings_take_the_form_of_their_jvm() {
    let find = |strings, needle: &[u8]| {
        let mut heap = HeapBuilder::new(Options {
            strings,
            ..Options::default()
        });
        heap.add_string("é");
        heap.add_string("☺");
        let bytes = heap.build();
        bytes.windows(needle.len()).any(|part| part == needle)
    };
    // The bytes are the length, the type and the contents of an array.
    assert!(find(StringForm::Bytes, b"\0\0\0\x01\x08\xe9"));
    assert!(find(StringForm::Bytes, b"\0\0\0\x02\x08\x3a\x26"));
    assert!(find(StringForm::Chars, b"\0\0\0\x01\x05\x26\x3a"));
}

#[test]
fn shuffled_and_repeated_objects() {
    let mut heap = HeapBuilder::new(Options {
        order: FileOrder::Shuffled(1),
        ..small()
    });
    let class = heap.add_class("A", None, &[], &[]);
    for _ in 0..20 {
        heap.add_instance(class, &[]);
    }
    let twice = heap.add_instance(class, &[]);
    heap.set_copies(twice, 2);
    let never = heap.add_instance(class, &[]);
    heap.set_copies(never, 0);
    let (address, absent) = (heap.address(twice), heap.address(never));
    let (_, bytes) = walk(&heap.build());
    // The class comes first. The instances follow. The instances have no fields, so each consists of its tag, ID, stack
    // trace serial, class and length.
    let ids: Vec<u64> = bytes[43..]
        .chunks(17)
        .map(|record| {
            assert_eq!(record[0], 0x21);
            let id = record[1..5].try_into().expect("four bytes");
            u64::from(u32::from_be_bytes(id))
        })
        .collect();
    assert_eq!(ids.len(), 22);
    assert!(!ids.is_sorted());
    assert_eq!(ids.iter().filter(|&&id| id == address).count(), 2);
    assert!(!ids.contains(&absent));
}

#[test]
fn android_names_have_dots() {
    let mut heap = HeapBuilder::new(Options::android());
    let boot = heap.boot();
    heap.array_class(boot.string_array);
    heap.add_primitive_array(Elements::NoData(FieldType::Int, 1000));
    let bytes = heap.build();
    for name in ["java.lang.String[][]", "int[]"] {
        assert!(
            bytes
                .windows(name.len())
                .any(|part| part == name.as_bytes())
        );
    }
    assert!(bytes.starts_with(b"JAVA PROFILE 1.0.3\0\0\0\0\x04"));
}

#[test]
fn compressed_dumps_hold_the_same() {
    let with = |gzip| {
        let options = Options {
            gzip,
            ..Options::default()
        };
        varied(options).0.build()
    };
    let plain = with(Gzip::None);
    for gzip in [Gzip::Plain, Gzip::Blocks { bytes: 1000 }] {
        let packed = with(gzip);
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(packed.as_slice())
            .read_to_end(&mut unpacked)
            .expect("a good stream");
        assert_eq!(unpacked, plain);
    }
    let blocks = with(Gzip::Blocks { bytes: 1000 });
    // The first bytes are the magic bytes, the method (deflate) and the flag FCOMMENT. The comment begins at byte 10.
    assert_eq!(blocks[..4], [0x1f, 0x8b, 8, 0x10]);
    assert!(blocks[10..].starts_with(b"HPROF BLOCKSIZE=1000\0"));
    let members = blocks.windows(3).filter(|w| *w == [0x1f, 0x8b, 8]).count();
    assert!(members >= plain.len().div_ceil(1000));
}

#[test]
fn mistakes_are_named() {
    fn error(describe: impl Fn(&mut HeapBuilder, super::super::ClassId)) -> String {
        let mut heap = HeapBuilder::new(Options::bits_32());
        let class = heap.add_class("a.B", None, &[("f", FieldType::Int)], &[]);
        describe(&mut heap, class);
        heap.try_build().expect_err("a mistake").to_string()
    }
    let unknown = error(|heap, class| {
        let object = heap.add_instance(class, &[]);
        heap.set_field(object, "g", 1);
    });
    assert_eq!(unknown, "a.B has no field g");
    let kind = error(|heap, class| {
        heap.add_instance(class, &[Value::Long(1)]);
    });
    assert_eq!(kind, "the value for a.B.f is of another type");
    let many = error(|heap, class| {
        heap.add_instance(class, &[Value::Int(1), Value::Int(1)]);
    });
    assert_eq!(many, "2 values for the 1 fields of a.B");
    let wide = error(|heap, class| {
        let object = heap.add_instance(class, &[]);
        heap.set_address(object, 1 << 32);
    });
    assert_eq!(
        wide,
        "the address 0x100000000 is too large for an object id"
    );
}

#[test]
fn a_graph_keeps_its_edges_in_order() {
    let edges = [(0, 1), (0, 2), (1, 1), (1, 0), (1, 0)];
    let mut options = small();
    options.id_size = IdSize::Eight;
    let dump = graph::dump(3, &edges, &[0], NodeKind::Mixed, options);
    let id = |node: usize| dump.addresses[node].to_be_bytes();
    let found = |parts: &[[u8; 8]]| {
        let needle = parts.concat();
        dump.bytes.windows(needle.len()).any(|part| part == needle)
    };
    assert!(found(&[id(1), id(2)]));
    assert!(found(&[id(1), id(0), id(0)]));
    assert_eq!(dump.addresses.len(), 3);
    assert_eq!(dump.addresses[0] + dump.sizes[0], {
        // Node 1 directly follows node 0. There is no class object between them, because the class of node 1 already
        // exists.
        dump.addresses[1]
    });
}
