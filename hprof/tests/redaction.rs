//! Redacted dumps: the same objects, sizes and references, and nothing that was planted.

#![allow(clippy::unwrap_used)]

use hprof::redaction::{Left, Redaction, Rules};
use hprof::{Content, ObjectId, ObjectIndex, Options, Silent, Snapshot, Source, Value};
use testdata::writer::{
    self, Elements, FieldType, FileOrder, Frame, Framing, HeapBuilder, Place, Root, StringForm,
};

const SECRET: &str = "correct horse battery";
/// A number that somebody may search for.
const NUMBER: i64 = 0x0123_4567_89ab_cdef;

fn redacted(bytes: &[u8], numbers: bool) -> (Vec<u8>, Vec<String>) {
    let source = Source::from_bytes(bytes.to_vec());
    let rules = Rules {
        numbers,
        ..Rules::default()
    };
    let mut out = Vec::new();
    let done = Redaction::of(&source, rules)
        .unwrap()
        .write(&mut out, &Silent)
        .unwrap();
    assert_eq!(done.bytes, source.len() as u64);
    assert_eq!(out.len(), source.len());
    let warnings = done.warnings.iter().map(|w| w.to_string()).collect();
    (out, warnings)
}

fn left(bytes: &[u8], numbers: bool) -> Left {
    let source = Source::from_bytes(bytes.to_vec());
    let rules = Rules {
        numbers,
        ..Rules::default()
    };
    let redaction = Redaction::of(&source, rules).unwrap();
    redaction.check(&Silent).unwrap().left
}

/// The forms in which the secret may be found.
fn forms(text: &str) -> [(&'static str, Vec<u8>); 3] {
    let units = || text.encode_utf16();
    [
        ("UTF-8", text.as_bytes().to_vec()),
        ("UTF-16BE", units().flat_map(u16::to_be_bytes).collect()),
        ("UTF-16LE", units().flat_map(u16::to_le_bytes).collect()),
    ]
}

/// No part of the secret that a person would know again is there.
#[track_caller]
fn assert_not_found(bytes: &[u8], text: &str) {
    for part in [text, &text[..7], &text[8..13], &text[14..]] {
        for (form, wanted) in forms(part) {
            let at = bytes.windows(wanted.len()).position(|w| w == wanted);
            assert_eq!(at, None, "{part:?} as {form}");
        }
    }
}

/// A heap with the secret wherever a heap may have it, and one name that stays.
fn planted(options: writer::Options) -> Vec<u8> {
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    let class = heap.add_class(
        "com.acme.Account",
        Some(boot.object),
        &[
            ("name", FieldType::Object),
            ("pin", FieldType::Long),
            ("size", FieldType::Int),
        ],
        &[
            ("all", writer::Value::NULL),
            ("last", writer::Value::Long(NUMBER)),
        ],
    );
    heap.add_constant(class, 1, writer::Value::Long(NUMBER));
    let text = heap.add_string(SECRET);
    heap.set_field(text, "hash", writer::Value::Int(0x5ec2e7));
    let wide = heap.add_string(&format!("{SECRET} \u{20ac}"));
    let account = heap.add_instance(
        class,
        &[
            text.into(),
            writer::Value::Long(NUMBER),
            writer::Value::Int(3),
        ],
    );
    let (first, second) = SECRET.split_at(8);
    let mut all = vec![text, wide, account];
    let bytes = |text: &str| text.bytes().collect();
    for part in [SECRET, first, second, &SECRET.repeat(100)] {
        all.push(heap.add_primitive_array(Elements::Byte(bytes(part))));
        let units = part.encode_utf16().collect();
        all.push(heap.add_primitive_array(Elements::Char(units)));
    }
    let words = SECRET.as_bytes().chunks(8).map(|word| {
        word.iter()
            .fold(0_i64, |value, &byte| value << 8 | i64::from(byte))
    });
    all.push(heap.add_primitive_array(Elements::Long(words.collect())));
    let ints = SECRET.bytes().map(i32::from).collect();
    all.push(heap.add_primitive_array(Elements::Int(ints)));
    let array = heap.add_object_array(boot.object, all);
    heap.set_static(class, "all", array);
    let frame = Frame::new(&heap, class, "open", 42);
    let thread = heap.add_thread(SECRET, &[frame]);
    heap.add_root(
        Root::JavaFrame {
            thread: thread.serial,
            frame: 0,
        },
        account,
    );
    if options.version == writer::Version::V102 {
        heap.set_system_properties(&[
            ("java.vm.version", "17.0.15+6"),
            ("user.name", SECRET),
            (SECRET, "x"),
        ]);
    }
    // A constant of the program's, which HotSpot has among its names; a kind of record that nobody knows.
    let id = match options.id_size {
        writer::IdSize::Four => 4,
        writer::IdSize::Eight => 8,
    };
    let mut name = vec![0xee; id];
    name.extend(SECRET.bytes());
    heap.add_record(Place::Start, 1, &name);
    heap.add_record(Place::Start, 0x77, SECRET.as_bytes());
    // Settings are six bytes, and here there are more.
    heap.add_record(Place::End, 0x0e, SECRET.as_bytes());
    heap.build()
}

fn options() -> Vec<writer::Options> {
    let usual = writer::Options::default;
    vec![
        usual(),
        writer::Options::bits_32(),
        writer::Options::android(),
        writer::Options {
            framing: Framing::Single,
            classes: Place::End,
            roots: Place::Start,
            ..usual()
        },
        writer::Options {
            strings: StringForm::Chars,
            framing: Framing::Segments { bytes: 100 },
            order: FileOrder::Shuffled(7),
            ..usual()
        },
    ]
}

#[test]
fn nothing_that_was_planted_is_found() {
    for options in options() {
        let dump = planted(options);
        for numbers in [false, true] {
            let (out, warnings) = redacted(&dump, numbers);
            assert_not_found(&out, SECRET);
            let number = NUMBER.to_be_bytes();
            let found = out.windows(8).filter(|w| *w == number).count();
            // The static field and the instance's; the constant is gone either way.
            assert_eq!(found, if numbers { 0 } else { 2 });
            assert_eq!(warnings, ["records of unknown kinds, passed over: 1"]);
            let again = left(&out, numbers);
            assert!(again.is_clean(), "{again:?}");
            assert!(again.kept_names.count > 0 && again.kept_numbers.count > 0);
            let before = left(&dump, numbers);
            assert!(!before.is_clean());
            let all = [
                before.texts,
                before.arrays,
                before.unused_names,
                before.hashes,
                before.unknown,
            ];
            assert!(all.iter().all(|l| l.count > 0), "{before:?}");
            assert_eq!(before.numbers.count > 0, numbers);
        }
    }
}

/// An object's id, its length if it is an array, and what it refers to.
fn references(snapshot: &Snapshot, object: ObjectIndex) -> (ObjectId, u32, Vec<ObjectIndex>) {
    let record = snapshot.read(object).unwrap();
    let (len, values): (u32, Vec<Value>) = match &record.content {
        Content::Instance(fields) => (0, fields.iter().filter_map(|f| f.value).collect()),
        Content::Array(array) => (array.len, array.elements(0..array.len).collect()),
        Content::Class(_) => (0, Vec::new()),
    };
    let targets = values.into_iter().filter_map(Value::object);
    (record.id, len, targets.collect())
}

#[test]
fn objects_sizes_and_references_stay() {
    for options in options() {
        let dump = planted(options);
        let open = |bytes: Vec<u8>| {
            Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap()
        };
        let before = open(dump.clone());
        for numbers in [false, true] {
            let after = open(redacted(&dump, numbers).0);
            assert_eq!(after.object_count(), before.object_count());
            for object in 0..before.object_count() as u32 {
                let object = ObjectIndex(object);
                assert_eq!(references(&after, object), references(&before, object));
                assert_eq!(after.name(object), before.name(object));
                assert_eq!(after.shallow_bytes(object), before.shallow_bytes(object));
                assert_eq!(after.retained_bytes(object), before.retained_bytes(object));
            }
            assert_eq!(after.warnings(), before.warnings());
            assert_eq!(after.jvm(), before.jvm());
            let frames = |snapshot: &Snapshot| -> Vec<String> {
                let threads = snapshot.threads();
                let frames = threads.iter().flat_map(|t| &t.frames);
                frames.map(|f| f.frame.to_string()).collect()
            };
            assert_eq!(frames(&after), frames(&before));
            assert_eq!(frames(&after), ["com.acme.Account.open(Account.java:42)"]);
            let thread = after.threads()[0].name.clone().unwrap();
            assert!(!thread.contains("horse") && thread.chars().count() == SECRET.len());
        }
    }
}

#[test]
fn equal_texts_stay_equal() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let texts = ["Ann Lee", "Bob Roy", "Ann Lee", "main"].map(|text| heap.add_string(text));
    let ids = texts.map(|text| heap.address(text));
    let all = heap.add_object_array(boot.object, texts);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, all);
    let (out, _) = redacted(&heap.build(), false);
    let snapshot = Snapshot::of(Source::from_bytes(out), &Options::default(), &Silent).unwrap();
    let text = |id| {
        snapshot
            .string(snapshot.find(ObjectId(id)).unwrap(), 100)
            .unwrap()
    };
    let [ann, bob, ann_again, main] = ids.map(text);
    assert!(ann == ann_again && ann != bob && ann != "Ann Lee");
    assert_eq!(main, "main", "everybody knows it");
}

#[test]
fn what_cannot_be_understood_is_not_copied() {
    let dump = planted(writer::Options::default());
    // Cut anywhere, or with a byte changed: whatever is left of the secret is where a reader would find it.
    let mut lost = 0;
    for at in (40..dump.len()).step_by(37) {
        let (out, _) = redacted(&dump[..at], false);
        assert_not_found(&out, SECRET);
        let mut changed = dump.clone();
        changed[at] ^= 0x15;
        let (out, warnings) = redacted(&changed, false);
        lost += warnings.len();
        // A name may be one of a class's by its changed number.
        let again = left(&out, false);
        assert!(again.is_clean(), "{at}: {again:?}");
    }
    assert!(lost > 0, "some of these are damage");
}

#[test]
fn every_dump_of_a_file_is_redacted() {
    let one = planted(writer::Options::default());
    let two = planted(writer::Options::bits_32());
    let mut file = [&one[..], &two].concat();
    file.extend(b"JAVA PROFILE 1.0.2\0\0\0\0\x07");
    file.extend(SECRET.bytes());
    let (out, warnings) = redacted(&file, true);
    assert_not_found(&out, SECRET);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[2].contains("no dump follows that can be read"));
    for (at, dump) in [(0, &one), (one.len(), &two)] {
        let alone = Source::from_bytes(out[at..at + dump.len()].to_vec());
        let alone = Snapshot::of(alone, &Options::default(), &Silent).unwrap();
        assert!(alone.warnings().iter().all(|w| !w.partial));
    }
}
