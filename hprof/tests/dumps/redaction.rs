//! Tests redacted dumps: they have the same objects, sizes and references, but no part of the secrets that the test put
//! into them.

use hprof::answers::{Content, Value};
use hprof::redaction::{Left, Redaction, Rules};
use hprof::{ObjectId, ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::writer::{
    self, Elements, FieldType, FileOrder, Frame, Framing, HeapBuilder, Place, Root, StringForm,
};

const SECRET: &str = "correct horse battery";
/// A number that must not remain in the copy if numbers are redacted.
const NUMBER: i64 = 0x0123_4567_89ab_cdef;

fn redacted(bytes: &[u8], numbers: bool) -> (Vec<u8>, Vec<String>) {
    let source = Source::from_bytes(bytes.to_vec());
    let rules = Rules {
        numbers,
        ..Rules::default()
    };
    let mut out = Vec::new();
    let done = Redaction::new(&source, rules)
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
    let redaction = Redaction::new(&source, rules).unwrap();
    redaction.check(&Silent).unwrap().left
}

/// Returns `text` in each encoding in which a dump may contain it.
fn forms(text: &str) -> [(&'static str, Vec<u8>); 3] {
    let units = || text.encode_utf16();
    [
        ("UTF-8", text.as_bytes().to_vec()),
        ("UTF-16BE", units().flat_map(u16::to_be_bytes).collect()),
        ("UTF-16LE", units().flat_map(u16::to_le_bytes).collect()),
    ]
}

/// Checks that the dump contains no recognizable part of the secret.
#[track_caller]
fn assert_not_found(bytes: &[u8], text: &str) {
    for part in [text, &text[..7], &text[8..13], &text[14..]] {
        for (form, wanted) in forms(part) {
            let at = bytes.windows(wanted.len()).position(|w| w == wanted);
            assert_eq!(at, None, "{part:?} as {form}");
        }
    }
}

/// Returns a dump with the secret in strings, arrays, names and other records, and with one name that a redaction
/// keeps.
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
    // Add two records: a string constant of the program, which HotSpot writes as a name, and a record of an unknown
    // kind.
    let id = match options.id_size {
        writer::IdSize::Four => 4,
        writer::IdSize::Eight => 8,
    };
    let mut name = vec![0xee; id];
    name.extend(SECRET.bytes());
    heap.add_record(Place::Start, 1, &name);
    heap.add_record(Place::Start, 0x77, SECRET.as_bytes());
    // A settings record has six bytes. This one has more.
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
fn planted_secrets_are_removed() {
    for options in options() {
        let dump = planted(options);
        for numbers in [false, true] {
            let (out, warnings) = redacted(&dump, numbers);
            assert_not_found(&out, SECRET);
            let number = NUMBER.to_be_bytes();
            let found = out.windows(8).filter(|w| *w == number).count();
            // The dump contains the number in a static field, in an instance and in a constant. The constant is always
            // removed, the other two only if `numbers` is true.
            assert_eq!(found, if numbers { 0 } else { 2 });
            assert_eq!(warnings, ["1 records of unknown kinds were skipped"]);
            let again = left(&out, numbers);
            assert!(again.is_clean(), "{again:?}");
            assert!(again.kept_names.count > 0);
            assert!(numbers || again.kept_numbers.count > 0);
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

/// Returns an object's ID, its length if it is an array, and the objects that it refers to.
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
fn equal_strings_stay_equal() {
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
fn data_that_cannot_be_parsed_is_not_copied() {
    let dump = planted(writer::Options::default());
    // Cut the dump at many offsets. The redacted dump must not contain the secret. In other copies of the dump, change
    // the byte at each of these offsets.
    let mut lost = 0;
    let mut of_cut = String::new();
    for at in (40..dump.len()).step_by(37) {
        let (out, warnings) = redacted(&dump[..at], false);
        of_cut += &warnings.join("\n");
        assert_not_found(&out, SECRET);
        let mut changed = dump.clone();
        changed[at] ^= 0x15;
        let (out, warnings) = redacted(&changed, false);
        lost += warnings.len();
        // The changed byte may give the secret the ID of the name of a class, and a redaction keeps such names. So test
        // only that the redacted dump has nothing that a redaction removes.
        let again = left(&out, false);
        assert!(again.is_clean(), "{at}: {warnings:?} {again:?}");
    }
    assert!(lost > 0, "some of these are damage");
    for part in [
        ": a record of kind 0x01 is truncated; the last ",
        ": the header of a record is truncated; the last ",
        " bytes of the file were replaced by zeros",
    ] {
        assert!(of_cut.contains(part), "{part}");
    }
}

/// Returns the classes with their objects and bytes.
fn histogram(bytes: &[u8]) -> Option<Vec<(String, u64, u64)>> {
    let source = Source::from_bytes(bytes.to_vec());
    let histogram =
        hprof::answers::Histogram::from_source(source, &Options::default(), &Silent).ok()?;
    let classes = histogram.classes().iter().zip(histogram.totals());
    let classes = classes.map(|((_, c), t)| (c.name.to_string(), t.all.objects, t.all.bytes));
    Some(classes.collect())
}

#[test]
fn records_before_damage_stay() {
    let mut damaged = 0;
    for options in options() {
        let dump = planted(options);
        for at in (40..dump.len()).step_by(127) {
            let mut changed = dump.clone();
            changed[at] ^= 0x15;
            let source = Source::from_bytes(changed.clone());
            let redaction = Redaction::new(&source, Rules::default()).unwrap();
            let mut out = Vec::new();
            let done = redaction.write(&mut out, &Silent).unwrap();
            let end = done.damaged_at.map_or(changed.len(), |at| at as usize);
            damaged += usize::from(end < changed.len());
            // The redacted dump has the same objects as the input cut at the damage.
            assert_eq!(histogram(&out), histogram(&changed[..end]), "{at}");
            let copied = out[end..].iter().skip(1).filter(|&&b| b != 0).count();
            assert_eq!(copied, 0, "{at}");
        }
    }
    assert!(damaged > 20, "{damaged}");
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
    assert!(
        warnings[2].contains(
            "bytes after the dump are not a dump; in the copy they are replaced by zeros"
        )
    );
    for (at, dump) in [(0, &one), (one.len(), &two)] {
        let alone = Source::from_bytes(out[at..at + dump.len()].to_vec());
        let alone = Snapshot::of(alone, &Options::default(), &Silent).unwrap();
        assert!(alone.warnings().iter().all(|w| !w.partial));
    }
}

/// Returns the records outside the heap: offset, kind and end.
fn records(dump: &[u8]) -> Vec<(usize, u8, usize)> {
    let mut at = "JAVA PROFILE 1.0.2".len() + 1 + 4 + 8;
    let mut records = Vec::new();
    while let Some(length) = dump.get(at + 5..at + 9) {
        let length = u32::from_be_bytes(length.try_into().unwrap());
        let end = at + 9 + length as usize;
        records.push((at, dump[at], end));
        at = end;
    }
    records
}

/// Returns a damaged copy of the dump. The header of the record at `record` has another length, so that this record
/// seems to end at `end`.
fn ending_at(dump: &[u8], record: usize, end: usize) -> Vec<u8> {
    let mut dump = dump.to_vec();
    let length = u32::try_from(end - record - 9).unwrap();
    dump[record + 5..record + 9].copy_from_slice(&length.to_be_bytes());
    dump
}

#[test]
fn nothing_after_a_wrong_length_is_copied() {
    let wide: Vec<u8> = SECRET.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let (mut names, mut arrays) = (0, 0);
    let mut all = String::new();
    for options in options() {
        let dump = planted(options);
        for (record, kind, end) in records(&dump) {
            for secret in [SECRET.as_bytes(), &wide] {
                let places = record + 9..(end + 1).saturating_sub(secret.len());
                for at in places.filter(|&at| dump[at..].starts_with(secret)) {
                    // The record now ends before the secret, where the next record should begin.
                    let (out, warnings) = redacted(&ending_at(&dump, record, at), false);
                    let copied = out[at..].iter().filter(|&&b| b != 0).count();
                    assert_eq!(copied, 0, "kind {kind:#x} at {at}");
                    assert!(!warnings.is_empty());
                    all += &warnings.join("\n");
                    *if kind == 1 { &mut names } else { &mut arrays } += 1;
                }
            }
        }
    }
    assert!(names > 4 && arrays > 20, "{names} names, {arrays} arrays");
    assert!(
        all.contains(": these bytes are not a record of a dump (kind 0x"),
        "{all}"
    );
}

#[test]
fn a_name_whose_wrong_length_includes_a_record_is_not_copied() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let class = heap.add_class("com.acme.Account", None, &[], &[]);
    let account = heap.add_instance(class, &[]);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, account);
    let mut dump = heap.build();
    let name = records(&dump)
        .into_iter()
        .find(|&(at, kind, end)| kind == 1 && dump[at + 9 + 8..end] == *b"com/acme/Account");
    let (at, _, end) = name.unwrap();
    // The record of another string constant is inserted after the name. The length of the name is changed, so that the
    // name includes this record.
    let constant = [
        &[1, 0, 0, 0, 0, 0, 0, 0, 8 + SECRET.len() as u8][..],
        &[0xee; 8],
        SECRET.as_bytes(),
    ];
    let constant = constant.concat();
    dump.splice(end..end, constant.iter().copied());
    let (out, warnings) = redacted(&ending_at(&dump, at, end + constant.len()), false);
    let header = "a name contains the header of another record";
    assert!(warnings.join("").contains(header), "{warnings:?}");
    assert_not_found(&out, SECRET);
    let copied = out[at..].iter().filter(|&&b| b != 0).count();
    assert_eq!(copied, 0);
}

#[test]
fn objects_with_too_many_fields_are_zero() {
    let dump = |fields: usize| {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let fields = vec![("number", FieldType::Long); fields];
        let mut class = heap.add_class("com.acme.Base", None, &fields, &[]);
        for number in 0..500 {
            class = heap.add_class(&format!("com.acme.Sub{number}"), Some(class), &[], &[]);
        }
        heap.build()
    };
    let said = |fields| redacted(&dump(fields), false).1.join("\n");
    let zeros = "classes have too many fields; their instances were replaced by zeros";
    assert!(said(60_000).contains(zeros), "{}", said(60_000));
    assert!(!said(1).contains(zeros));
}

#[test]
fn application_numbers_of_any_name_are_removed() {
    const NAMES: [&str; 9] = [
        "fromAccount",
        "maxCardNumber",
        "head",
        "startBalance",
        "index",
        "cap",
        "count",
        "size",
        "capacity",
    ];
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let numbers = |from: i64| (from..).map(|n| n * 0x0101_0101_0101);
    let fields = NAMES.map(|name| (name, FieldType::Long));
    let statics = NAMES.into_iter().zip(numbers(100));
    let statics: Vec<(&str, writer::Value)> = statics
        .map(|(name, n)| (name, writer::Value::Long(n)))
        .collect();
    let class = heap.add_class("com.acme.Transfer", Some(boot.object), &fields, &statics);
    let values: Vec<writer::Value> = numbers(10).take(9).map(writer::Value::Long).collect();
    let transfer = heap.add_instance(class, &values);
    let list = heap.add_class(
        "java.util.ArrayList",
        Some(boot.object),
        &[("size", FieldType::Int), ("modCount", FieldType::Int)],
        &[],
    );
    let own = heap.add_class(
        "com.acme.Transfers",
        Some(list),
        &[("maxCardNumber", FieldType::Int)],
        &[],
    );
    let zero = writer::Value::Int(0);
    let transfers = heap.add_instance(own, &[zero, zero, zero]);
    heap.set_field(transfers, "size", writer::Value::Int(0x0501_1235));
    heap.set_field(transfers, "modCount", writer::Value::Int(0x0502_1235));
    heap.set_field(transfers, "maxCardNumber", writer::Value::Int(0x0503_1235));
    let all = heap.add_object_array(boot.object, vec![transfer, transfers]);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, all);
    let dump = heap.build();
    let has = |bytes: &[u8], number: &[u8]| bytes.windows(number.len()).any(|w| w == number);
    for number in numbers(100).take(9).chain(numbers(10).take(9)) {
        assert!(has(&dump, &number.to_be_bytes()));
        let (out, _) = redacted(&dump, true);
        assert!(!has(&out, &number.to_be_bytes()), "{number:#x}");
    }
    let (out, _) = redacted(&dump, true);
    assert!(
        has(&out, &0x0501_1235_u32.to_be_bytes()),
        "the size of a list"
    );
    assert!(!has(&out, &0x0502_1235_u32.to_be_bytes()));
    assert!(!has(&out, &0x0503_1235_u32.to_be_bytes()));
    assert!(left(&out, true).is_clean() && !left(&dump, true).is_clean());
}

#[test]
fn hashes_of_content_are_zero() {
    const HASH: u32 = 0x5ec2_e7d1;
    let fields = [
        ("java.net.URL", "hashCode"),
        ("java.util.Locale", "hashCodeValue"),
        ("java.util.HashMap$Node", "hash"),
        ("com.acme.Key", "cachedHash"),
        ("com.acme.Key$Static", "<static> HASH_CODE"),
    ];
    for (class, field) in fields {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let boot = heap.boot();
        let value = writer::Value::Int(HASH.cast_signed());
        let object = match field.strip_prefix("<static> ") {
            Some(field) => {
                let class = heap.add_class(class, Some(boot.object), &[], &[(field, value)]);
                heap.add_instance(class, &[])
            }
            None => {
                let own = [(field, FieldType::Int)];
                let class = heap.add_class(class, Some(boot.object), &own, &[]);
                heap.add_instance(class, &[value])
            }
        };
        heap.add_root(Root::JniGlobal { global_ref: 1 }, object);
        let dump = heap.build();
        for numbers in [false, true] {
            let (out, _) = redacted(&dump, numbers);
            let found = out.windows(4).any(|w| w == HASH.to_be_bytes());
            assert!(!found, "{class}.{field}");
            assert_eq!(left(&dump, numbers).hashes.count, 1, "{class}.{field}");
            assert!(left(&out, numbers).is_clean());
        }
    }
}
