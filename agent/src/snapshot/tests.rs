//! Passes the references of an invented heap to the writer, and reads the resulting dump with the dump reader.

use std::fs::{self, File};
use std::io;

use heapdiff_sites::attach;
use hprof::answers::{Content, Value};
use hprof::{ObjectId, Options, Silent, Snapshot, Source};

use super::image::{ClassInfo, FieldInfo, FrameInfo, Gathered, Image, ThreadInfo, kind_of};
use super::target::{Output, Target};
use super::values::ValueObject;
use super::watch::Ended;
use super::writer::{Kind, Reference, Tally, Writer};
use super::{Progress, first_unlocked};

const BASE: u64 = 0x1000;

/// A file in memory.
#[derive(Default, Clone)]
struct Bytes(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Output for Bytes {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at).unwrap();
        self.0.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn field(name: &str, signature: &str, is_static: bool) -> FieldInfo {
    FieldInfo {
        name: name.to_owned(),
        kind: kind_of(signature),
        is_static,
    }
}

/// Returns eight classes, whose ids ascend in steps of 64. The next id after the classes belongs to a thread.
fn gathered() -> Gathered {
    let class = |number: u64, signature: &str, superclass: Option<usize>| ClassInfo {
        address: BASE + 64 * number,
        signature: signature.to_owned(),
        linked: !signature.starts_with('['),
        superclass,
        ..ClassInfo::default()
    };
    let mut classes = vec![
        class(0, "Ljava/lang/Object;", None),
        class(1, "Ljava/lang/Class;", Some(0)),
        class(2, "[Ljava/lang/Object;", Some(0)),
        class(3, "[I", Some(0)),
        class(4, "La/Named;", None),
        class(5, "La/Base;", Some(0)),
        class(6, "La/Leaf;", Some(5)),
        class(7, "Ljava/lang/Thread;", Some(0)),
    ];
    classes[4].fields = vec![field("LOCK", "Ljava/lang/Object;", true)];
    classes[5].fields = vec![
        field("count", "J", true),
        field("name", "Ljava/lang/Object;", false),
        field("small", "B", false),
    ];
    classes[6].interfaces = vec![4];
    classes[6].loader = BASE + 600;
    classes[6].fields = vec![
        field("next", "La/Leaf;", false),
        field("first", "La/Leaf;", true),
        field("number", "I", false),
    ];
    let frame = FrameInfo {
        class: 6,
        method: "run".to_owned(),
        signature: "()V".to_owned(),
        file: Some("Leaf.java".to_owned()),
        line: 7,
    };
    Gathered {
        threads: vec![ThreadInfo {
            address: BASE + 512,
            frames: vec![frame],
            own: false,
        }],
        others: vec![BASE + 600],
        base: BASE,
        next: BASE + 640,
        taken_ms: 1_700_000_000_000,
        classes,
        ..Gathered::default()
    }
}

/// A heap walk over invented objects.
struct Walk {
    writer: Writer<Bytes>,
    file: Bytes,
}

impl Walk {
    fn new() -> Self {
        let image = Image::new(&gathered());
        let file = Bytes::default();
        file.0.borrow_mut().extend_from_slice(&image.start);
        Self {
            writer: Writer::new(image, file.clone()),
            file,
        }
    }

    /// Reports a reference to an object of a class. Returns the object's id.
    fn add_reference(&mut self, kind: Kind, from: u64, index: u32, to: &To) -> u64 {
        let mut id = to.id;
        let reference = Reference {
            kind,
            index,
            thread: 0,
            depth: 0,
            method: 0,
            location: -1,
            class: BASE + 64 * to.class,
            size: to.size,
            length: to.length,
            from,
            value: None,
            of_value: None,
        };
        self.writer.reference(&reference, &mut id).unwrap();
        id
    }

    /// Reports a reference to a value object, or a reference from a value object. Value objects have no tags.
    fn add_value(
        &mut self,
        kind: Kind,
        (from, of_value): (u64, Option<ValueObject>),
        index: u32,
        (to, value): (&To, Option<ValueObject>),
    ) {
        let mut id = to.id;
        let reference = Reference {
            kind,
            index,
            thread: 0,
            depth: 0,
            method: 0,
            location: -1,
            class: BASE + 64 * to.class,
            size: to.size,
            length: to.length,
            from,
            value,
            of_value,
        };
        self.writer.reference(&reference, &mut id).unwrap();
        assert_eq!(id, to.id, "no tag is set");
    }

    /// Reports that the heap walk visits the object.
    fn visit(&mut self, object: u64, class: u64) {
        self.add_reference(Kind::Class, object, 0, &To::class(class));
    }
}

/// The target of a reference.
struct To {
    id: u64,
    class: u64,
    size: u64,
    length: Option<u32>,
}

impl To {
    fn class(number: u64) -> Self {
        Self::known(BASE + 64 * number, 1)
    }

    fn known(id: u64, class: u64) -> Self {
        Self {
            id,
            class,
            size: 64,
            length: None,
        }
    }

    fn new(class: u64, size: u64, length: Option<u32>) -> Self {
        Self {
            id: 0,
            class,
            size,
            length,
        }
    }
}

#[test]
fn a_written_heap_is_read_back() {
    let mut walk = Walk::new();
    let thread = To::known(BASE + 512, 7);
    walk.add_reference(Kind::Thread, 0, 0, &thread);
    let leaf = walk.add_reference(Kind::JniGlobal, 0, 0, &To::new(6, 32, None));
    walk.add_reference(Kind::SystemClass, 0, 0, &To::class(0));
    walk.visit(leaf, 6);
    // JVMTI's field indexes: 0 is the field of the interface, 1 to 3 are fields of the superclass, 4 to 6 are fields of
    // the class itself.
    let array = walk.add_reference(Kind::Field, leaf, 2, &To::new(2, 40, Some(5)));
    walk.add_reference(Kind::Field, leaf, 4, &To::known(leaf, 6));
    let mut primitive = |index, kind, value: &[u8]| {
        let told = walk.writer.primitive(false, leaf, index, kind, value);
        told.unwrap();
    };
    primitive(3, kind_of("B"), &[0xf9]);
    primitive(6, kind_of("I"), &70_000_i32.to_be_bytes());
    walk.visit(array, 2);
    let ints = walk.add_reference(Kind::Element, array, 3, &To::new(3, 24, Some(2)));
    walk.visit(ints, 3);
    let elements: Vec<u8> = [1_i32, -2].into_iter().flat_map(i32::to_le_bytes).collect();
    walk.writer.array(ints, kind_of("I"), &elements).unwrap();
    walk.visit(BASE + 512, 7);
    let class = BASE + 64 * 6;
    walk.add_reference(Kind::Static, class, 5, &To::known(leaf, 6));
    let text = walk.add_reference(Kind::Constant, class, 9, &To::new(0, 16, None));
    walk.visit(text, 0);
    let count = 9_i64.to_be_bytes();
    let told = walk
        .writer
        .primitive(true, BASE + 64 * 5, 0, kind_of("J"), &count);
    told.unwrap();
    walk.writer.finish().unwrap();
    let bytes = walk.file.0.borrow().clone();
    let snapshot = Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap();
    assert!(!snapshot.is_partial(), "{:?}", snapshot.warnings());
    let object = |id| snapshot.find(ObjectId(id)).unwrap();
    let Content::Instance(values) = snapshot.read(object(leaf)).unwrap().content else {
        panic!("no instance");
    };
    let value = |name: &str| {
        values
            .iter()
            .find(|v| v.name == name)
            .unwrap()
            .value
            .unwrap()
    };
    assert_eq!(value("number"), Value::Int(70_000));
    assert_eq!(value("small"), Value::Byte(-7));
    assert_eq!(value("next").object(), Some(object(leaf)));
    assert_eq!(value("name").object(), Some(object(array)));
    let Content::Array(parts) = snapshot.read(object(array)).unwrap().content else {
        panic!("no array");
    };
    let parts: Vec<_> = parts.elements(0..parts.len).map(Value::object).collect();
    assert_eq!(parts, [None, None, None, Some(object(ints)), None]);
    let Content::Array(numbers) = snapshot.read(object(ints)).unwrap().content else {
        panic!("no array");
    };
    let numbers: Vec<_> = numbers.elements(0..2).collect();
    assert_eq!(numbers, [Value::Int(1), Value::Int(-2)]);
    let by_name = |name: &str| snapshot.classes().by_name(name)[0];
    let first = snapshot.static_value(by_name("a.Leaf"), "first");
    assert_eq!(first.unwrap().object(), Some(object(leaf)));
    let count = snapshot.static_value(by_name("a.Base"), "count");
    assert_eq!(count, Some(Value::Long(9)));
    let constants = snapshot.static_value(by_name("a.Leaf"), "<resolved_references>");
    assert!(constants.unwrap().object().is_some());
    // In a dump that the agent writes, an object's size is the distance from its id to the next id.
    assert_eq!((array - leaf, ints - array), (32, 40));
    let threads = snapshot.threads();
    assert_eq!(threads.len(), 1);
    assert!(threads[0].frames[0].frame.to_string().contains("run"));
}

#[test]
fn value_objects_are_identified_by_their_place() {
    let mut walk = Walk::new();
    let array = walk.add_reference(Kind::JniGlobal, 0, 0, &To::new(2, 40, Some(3)));
    walk.visit(array, 2);
    let place = |address, offset| {
        Some(ValueObject {
            address,
            offset,
            class: 0x900,
        })
    };
    // Two flattened values in the array, and a value object to which two elements refer.
    let (first, second, buffered) = (place(0x7000, 16), place(0x7000, 24), place(0x8000, 0));
    let leaf = To::new(6, 32, None);
    for (index, value) in (0..).zip([first, buffered, buffered]) {
        walk.add_value(Kind::Element, (array, None), index, (&leaf, value));
    }
    for (value, next) in [(first, second), (buffered, buffered), (second, None)] {
        let class = To::class(6);
        walk.add_value(Kind::Class, (0, value), 0, (&class, None));
        if next.is_some() {
            walk.add_value(Kind::Field, (0, value), 4, (&leaf, next));
        }
    }
    walk.add_reference(Kind::Known, BASE + 64 * 6, 0, &To::class(2));
    let tally = walk.writer.tally();
    assert_eq!(tally.seen, tally.visited);
    walk.writer.finish().unwrap();
    let bytes = walk.file.0.borrow().clone();
    let snapshot = Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap();
    let object = |id| snapshot.find(ObjectId(id)).unwrap();
    let buffered = array + 40;
    let Content::Array(parts) = snapshot.read(object(array)).unwrap().content else {
        panic!("no array");
    };
    let parts: Vec<_> = parts.elements(0..parts.len).map(Value::object).collect();
    assert_eq!(parts, [1, buffered, buffered].map(|id| Some(object(id))));
    for (from, to) in [(1, Some(2)), (buffered, Some(buffered)), (2, None)] {
        let Content::Instance(values) = snapshot.read(object(from)).unwrap().content else {
            panic!("no instance");
        };
        let next = values.iter().find(|v| v.name == "next").unwrap();
        assert_eq!(next.value.unwrap().object(), to.map(object), "{from}");
    }
    assert_eq!(snapshot.shallow_bytes(object(1)), 0);
}

#[test]
fn the_walk_ends_when_all_seen_objects_were_visited() {
    let mut walk = Walk::new();
    let is_over = |walk: &Walk| walk.writer.tally().seen == walk.writer.tally().visited;
    let leaf = walk.add_reference(Kind::JniGlobal, 0, 0, &To::new(6, 32, None));
    assert!(!is_over(&walk));
    walk.visit(leaf, 6);
    assert!(!is_over(&walk), "its class was seen");
    walk.add_reference(Kind::Known, BASE + 64 * 6, 0, &To::class(5));
    assert!(!is_over(&walk), "and the class above it");
    walk.add_reference(Kind::Constant, BASE + 64 * 5, 1, &To::class(5));
    assert!(is_over(&walk));
    // The heap walk visits the class objects of array classes, but reports no references from them.
    walk.add_reference(Kind::SystemClass, 0, 0, &To::class(3));
    assert!(is_over(&walk));
    assert_eq!(walk.writer.tally().late, 0);
}

#[test]
fn a_late_class_is_counted_and_the_file_is_complete() {
    let mut walk = Walk::new();
    let mut object = 0;
    let unknown = To::new(1, 100, None);
    let new = Reference {
        kind: Kind::JniGlobal,
        index: 0,
        thread: 0,
        depth: 0,
        method: 0,
        location: -1,
        class: 0,
        size: 24,
        length: None,
        from: 0,
        value: None,
        of_value: None,
    };
    walk.writer.reference(&new, &mut object).unwrap();
    walk.add_reference(Kind::Class, object, 0, &unknown);
    walk.add_reference(Kind::SystemClass, 0, 0, &To::new(1, 100, None));
    walk.writer.finish().unwrap();
    assert_eq!(walk.writer.tally().late, 1);
    let bytes = walk.file.0.borrow().clone();
    let snapshot = Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap();
    assert!(!snapshot.is_partial(), "{:?}", snapshot.warnings());
    let object = snapshot.find(ObjectId(object)).unwrap();
    let class = snapshot.class(object).unwrap();
    assert_eq!(&*class.name, "loaded.while.the.snapshot.began");
}

#[test]
fn large_arrays_are_segments_of_their_own() {
    let mut walk = Walk::new();
    let length = 3 << 20;
    let array = walk.add_reference(
        Kind::JniGlobal,
        0,
        0,
        &To::new(2, 8 * u64::from(length), Some(length)),
    );
    walk.visit(array, 2);
    walk.add_reference(Kind::Element, array, length - 1, &To::known(array, 2));
    let ints = walk.add_reference(Kind::JniGlobal, 0, 0, &To::new(3, 4 << 20, Some(1 << 20)));
    walk.visit(ints, 3);
    let elements = vec![1; 4 << 20];
    walk.writer.array(ints, kind_of("I"), &elements).unwrap();
    walk.writer.finish().unwrap();
    let bytes = walk.file.0.borrow().clone();
    let snapshot = Snapshot::of(Source::from_bytes(bytes), &Options::default(), &Silent).unwrap();
    assert!(!snapshot.is_partial(), "{:?}", snapshot.warnings());
    let find = |id| snapshot.find(ObjectId(id)).unwrap();
    assert_eq!(snapshot.array_length(find(array)), Some(length));
    assert_eq!(snapshot.array_length(find(ints)), Some(1 << 20));
}

/// Runs functions in place of forked child processes, one after another. Each function writes to a file. Then it ends
/// in the way that the element of `ends` with the same index describes. Returns the result, the number of functions
/// that ran, and the file's content.
fn children(ends: &[Ended], sent: bool) -> (Result<Tally, (i32, String)>, usize, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump");
    let mut target = Target::File(File::create(&path).unwrap());
    target.append(b"start").unwrap();
    let mut made = 0;
    let child = |mut target: Target| {
        made += 1;
        target.append(format!(", by {made}").as_bytes()).unwrap();
        let tally = Tally {
            visited: made as u64,
            ..Tally::default()
        };
        let progress = Progress {
            callbacks: 1,
            sent,
            busy: false,
            tally,
        };
        let ended = match &ends[made - 1] {
            Ended::Code(code) => Ended::Code(*code),
            _ => Ended::Locked,
        };
        Ok((target, ended, progress))
    };
    let result = first_unlocked(target, child, |target| target.truncate_to(5));
    (result, made, fs::read_to_string(path).unwrap())
}

#[test]
fn a_child_that_waits_for_a_lock_is_replaced() {
    for locked in 0..10 {
        let mut ends: Vec<Ended> = (0..locked).map(|_| Ended::Locked).collect();
        ends.push(Ended::Code(0));
        let (result, made, file) = children(&ends, false);
        assert_eq!(result.unwrap().visited, locked + 1);
        assert_eq!((made, file), (ends.len(), format!("start, by {made}")));
    }
}

#[test]
fn the_agent_gives_up_after_ten_waiting_children() {
    let ends: Vec<Ended> = (0..11).map(|_| Ended::Locked).collect();
    let (result, made, _) = children(&ends, false);
    let (code, why) = result.unwrap_err();
    assert_eq!((code, made), (attach::FAILED, 10));
    assert!(
        why.contains("waited for a thread that exists only in the JVM"),
        "{why}"
    );
}

#[test]
fn pipe_output_and_other_failures_are_not_retried() {
    let (result, made, _) = children(&[Ended::Locked, Ended::Code(0)], true);
    assert!(result.is_err_and(|(_, why)| why.contains("waited for a thread")));
    assert_eq!(made, 1);
    let (result, made, _) = children(&[Ended::Locked, Ended::Code(70), Ended::Code(0)], false);
    assert!(result.is_err_and(|(_, why)| why.contains("ended with code 70")));
    assert_eq!(made, 2);
}
