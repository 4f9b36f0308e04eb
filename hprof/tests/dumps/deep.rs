//! Tests which objects deep sizes count and follow, case by case.

use hprof::answers::DeepOptions;
use hprof::{ObjectId, ObjectIndex, Options, Refs, Silent, Snapshot, Source};
use testdata::writer::{self, FieldType, HeapBuilder, Obj, Ref, Root, Value};

fn open(heap: &HeapBuilder, refs: Refs) -> Snapshot {
    let mut options = Options::default();
    options.refs = refs;
    Snapshot::of(
        Source::from_bytes(heap.try_build().unwrap().bytes),
        &options,
        &Silent,
    )
    .unwrap()
}

fn at(heap: &HeapBuilder, snapshot: &Snapshot, target: impl Into<Ref>) -> ObjectIndex {
    snapshot.find(ObjectId(heap.address(target))).unwrap()
}

/// Returns the number of objects that a deep size counts.
fn reached(snapshot: &Snapshot, options: &DeepOptions, start: ObjectIndex) -> u64 {
    let mut deep = snapshot.deep(options, &Silent).unwrap();
    let set = deep.of_set(&[start]).total;
    assert_eq!(deep.of_one(start, u64::MAX), Some(set));
    set.objects
}

fn skipping() -> DeepOptions {
    let mut options = DeepOptions::default();
    options.skip_flyweights = true;
    options
}

/// Adds a class of boxes, and a class with a static field `cache` that holds an array with one box. Returns this box,
/// and a second box that is not in the array.
fn cached(heap: &mut HeapBuilder, name: &str, cache: &str) -> (Obj, Obj) {
    let object = heap.boot().object;
    let class = heap.add_class(name, Some(object), &[("value", FieldType::Int)], &[]);
    let shared = heap.add_instance(class, &[Value::Int(5)]);
    let own = heap.add_instance(class, &[Value::Int(5)]);
    let array = heap.add_object_array(object, [Ref::Null, shared.into()]);
    heap.add_class(cache, Some(object), &[], &[("cache", array.into())]);
    (shared, own)
}

#[test]
fn boxes_are_shared_if_the_cache_has_them() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let pairs = [
        cached(&mut heap, "java.lang.Byte", "java.lang.Byte$ByteCache"),
        cached(&mut heap, "java.lang.Short", "java.lang.Short$ShortCache"),
        cached(
            &mut heap,
            "java.lang.Integer",
            "java.lang.Integer$IntegerCache",
        ),
        cached(&mut heap, "java.lang.Long", "java.lang.Long$LongCache"),
        cached(
            &mut heap,
            "java.lang.Character",
            "java.lang.Character$CharacterCache",
        ),
    ];
    let object = heap.boot().object;
    let boolean = heap.add_class(
        "java.lang.Boolean",
        Some(object),
        &[("value", FieldType::Boolean)],
        &[
            ("TRUE", Value::Ref(Ref::Null)),
            ("FALSE", Value::Ref(Ref::Null)),
        ],
    );
    let [yes, no, own] =
        [true, false, true].map(|v| heap.add_instance(boolean, &[Value::Boolean(v)]));
    heap.set_static(boolean, "TRUE", yes);
    heap.set_static(boolean, "FALSE", no);
    let snapshot = open(&heap, Refs::Soft);
    let shared = pairs.iter().map(|p| p.0).chain([yes, no]);
    let mut expected: Vec<ObjectIndex> = shared.map(|o| at(&heap, &snapshot, o)).collect();
    expected.sort_unstable();
    assert_eq!(snapshot.flyweights().boxes, expected);
    for (shared, own) in pairs.into_iter().chain([(yes, own), (no, own)]) {
        let count = |options: &DeepOptions, o| reached(&snapshot, options, at(&heap, &snapshot, o));
        assert_eq!(count(&DeepOptions::default(), shared), 1);
        assert_eq!(count(&skipping(), shared), 0);
        assert_eq!(count(&skipping(), own), 1);
    }
}

#[test]
fn enum_constants_are_shared_with_their_content() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let fields = [("name", FieldType::Object)];
    let ancestor = heap.add_class("java.lang.Enum", Some(boot.object), &fields, &[]);
    let colour = heap.add_class("Colour", Some(ancestor), &[], &[]);
    let body = heap.add_class("Colour$1", Some(colour), &[], &[]);
    // An `Enum` that another loader defined is not the JDK's class.
    let loader = heap.add_instance(boot.class_loader, &[]);
    let other = heap.add_class("java.lang.Enum", Some(boot.object), &fields, &[]);
    heap.set_loader(other, loader);
    let name = heap.add_instance(boot.object, &[]);
    let constants = [colour, body, other].map(|class| heap.add_instance(class, &[name.into()]));
    let array = heap.add_object_array(boot.object, constants);
    let snapshot = open(&heap, Refs::Soft);
    let index = |o: Obj| at(&heap, &snapshot, o);
    let mut enums = vec![index(constants[0]), index(constants[1])];
    enums.sort_unstable();
    assert_eq!(snapshot.flyweights().enums, enums);
    assert_eq!(reached(&snapshot, &DeepOptions::default(), index(array)), 5);
    // Three objects are counted: the array, the constant whose class extends the other `Enum`, and the name, which this
    // constant also reaches.
    assert_eq!(reached(&snapshot, &skipping(), index(array)), 3);
    assert_eq!(reached(&snapshot, &skipping(), index(constants[0])), 0);
}

#[test]
fn strings_are_interned_if_the_dump_shows_it() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let [resolved, pooled, rooted, own] = ["a", "b", "c", "a"].map(|text| heap.add_string(text));
    let constants = heap.add_object_array(
        boot.object,
        [Ref::Null, resolved.into(), boot.string.into()],
    );
    let class = heap.add_class(
        "com.acme.Main",
        Some(boot.object),
        &[],
        &[("<resolved_references>", constants.into())],
    );
    heap.add_constant(class, 7, pooled);
    heap.add_root(Root::InternedString, rooted);
    let snapshot = open(&heap, Refs::Soft);
    let index = |o: Obj| at(&heap, &snapshot, o);
    let mut expected = [resolved, pooled, rooted].map(index);
    expected.sort_unstable();
    assert_eq!(snapshot.flyweights().interned, expected);
    for string in [resolved, pooled, rooted] {
        assert_eq!(reached(&snapshot, &skipping(), index(string)), 0);
    }
    // The string `own` is not interned, so two objects are counted: the string and its array.
    assert_eq!(reached(&snapshot, &skipping(), index(own)), 2);
    // A deep size counts only objects to which fields refer. The class's resolved references are not in one of its
    // fields.
    let class = at(&heap, &snapshot, class);
    assert_eq!(reached(&snapshot, &DeepOptions::default(), class), 1);
}

#[test]
fn classes_are_counted_on_request() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let held = heap.add_instance(boot.object, &[]);
    let holder = heap.add_object_array(boot.object, [Ref::from(held), Ref::Class(boot.string)]);
    let class = heap.add_class(
        "com.acme.Main",
        Some(boot.object),
        &[("own", FieldType::Object)],
        &[
            ("holder", holder.into()),
            ("other", Value::Ref(Ref::Class(boot.string))),
        ],
    );
    let instance = heap.add_instance(class, &[Value::Ref(Ref::Class(class))]);
    let snapshot = open(&heap, Refs::Soft);
    let count = |options: &DeepOptions, target: Ref| {
        reached(&snapshot, options, at(&heap, &snapshot, target))
    };
    let plain = DeepOptions::default();
    assert_eq!(count(&plain, instance.into()), 1);
    assert_eq!(count(&plain, holder.into()), 2);
    assert_eq!(count(&plain, Ref::Class(class)), 3);
    let mut skip = DeepOptions::default();
    skip.skip_static = true;
    assert_eq!(count(&skip, Ref::Class(class)), 1);
    let mut stop = DeepOptions::default();
    stop.stop_at = vec![regex::Regex::new("^java.lang.Class$").unwrap()];
    assert_eq!(count(&stop, Ref::Class(class)), 1);
    let mut without = DeepOptions::default();
    without.except = vec![at(&heap, &snapshot, held)];
    assert_eq!(count(&without, Ref::Class(class)), 2);
    // No object has this number.
    let mut deep = snapshot.deep(&plain, &Silent).unwrap();
    let total = deep.of_set(&[ObjectIndex(u32::MAX)]).total;
    assert_eq!(total, hprof::sizes::Total::default());
}

#[test]
fn objects_on_stacks_are_not_in_fields_of_threads() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let boot = heap.boot();
    let thread = heap.add_instance(boot.thread, &[]);
    heap.add_root(
        Root::ThreadObject {
            thread: 1,
            trace: 1,
        },
        thread,
    );
    let local = heap.add_instance(boot.object, &[]);
    heap.add_root(
        Root::JavaFrame {
            thread: 1,
            frame: 0,
        },
        local,
    );
    let snapshot = open(&heap, Refs::Soft);
    let thread = at(&heap, &snapshot, thread);
    assert_eq!(snapshot.retained_objects(thread), Some(2));
    assert_eq!(reached(&snapshot, &DeepOptions::default(), thread), 1);
}
