//! Tests every variant of the HPROF format that occurs in practice: the figures read from a dump must equal the figures
//! of the heap that was written.

use std::collections::BTreeMap;
use std::path::Path;

use hprof::answers::Histogram;
use hprof::records::RootKind;
use hprof::{ObjectId, Options, Silent, Snapshot, Source};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection};
use testdata::writer::{
    Body, ClassId, Elements, FieldType, FileOrder, Framing, Gzip, HeapBuilder, IdSize, JvmLayout,
    Obj, Options as Written, Place, Ref, Root, StringForm, Value, Version, tag,
};

/// A heap in which everything is reachable except the objects in `garbage`.
struct Zoo {
    heap: HeapBuilder,
    node: ClassId,
    nodes: Vec<Obj>,
    garbage: Vec<Obj>,
}

fn zoo(options: Written) -> Zoo {
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    let base = heap.add_class(
        "com.acme.Base",
        Some(boot.object),
        &[("flag", FieldType::Boolean), ("next", FieldType::Object)],
        &[],
    );
    let node = heap.add_class(
        "com.acme.Node",
        Some(base),
        &[
            ("value", FieldType::Long),
            ("name", FieldType::Object),
            ("small", FieldType::Short),
        ],
        &[
            ("head", Value::NULL),
            ("count", Value::Int(7)),
            ("open", Value::Boolean(true)),
        ],
    );
    heap.add_root(Root::StickyClass, node);
    let mut nodes = Vec::new();
    let mut next = Value::NULL;
    for i in 0..200 {
        let name = heap.add_string(&format!("node number {i}"));
        let this = heap.add_instance(
            node,
            &[
                Value::Long(i),
                name.into(),
                Value::Short(1),
                Value::Boolean(true),
                next,
            ],
        );
        next = this.into();
        nodes.push(this);
    }
    heap.set_static(node, "head", next);
    let mut arrays: Vec<Ref> = Vec::new();
    for kind in FieldType::PRIMITIVES {
        for len in [0, 1, 2, 3, 7, 8, 9, 255, 256, 1000] {
            arrays.push(heap.add_primitive_array(Elements::Zeros(kind, len)).into());
        }
    }
    for len in [0, 1, 2, 3, 300] {
        arrays.push(
            heap.add_object_array(node, nodes.iter().copied().cycle().take(len))
                .into(),
        );
    }
    let all = heap.add_object_array(boot.object, arrays);
    heap.add_root(Root::JniGlobal { global_ref: 77 }, all);
    let garbage = (0..30)
        .map(|i| match i % 2 {
            0 => heap.add_instance(node, &[]),
            _ => heap.add_primitive_array(Elements::Zeros(FieldType::Byte, 40)),
        })
        .collect();
    Zoo {
        heap,
        node,
        nodes,
        garbage,
    }
}

type Table = BTreeMap<String, (u64, u64)>;

/// Returns a class name as in Java source.
fn source_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let element = match (dimensions, element) {
        (0, name) => name.to_owned(),
        (_, "Z") => "boolean".into(),
        (_, "C") => "char".into(),
        (_, "F") => "float".into(),
        (_, "D") => "double".into(),
        (_, "B") => "byte".into(),
        (_, "S") => "short".into(),
        (_, "I") => "int".into(),
        (_, "J") => "long".into(),
        (_, class) => class[1..class.len() - 1].to_owned(),
    };
    element + &"[]".repeat(dimensions)
}

/// Returns the object count and bytes of each class, as computed by the writer of the dump. Class objects are left out,
/// because only the reader computes their sizes.
fn expected(heap: &HeapBuilder) -> Table {
    let mut table = Table::new();
    for object in heap.objects() {
        let name = source_name(heap.class_name(heap.class_of(object)));
        let line = table.entry(name).or_default();
        *line = (line.0 + 1, line.1 + heap.shallow_size(object));
    }
    table
}

fn table(classes: &hprof::records::Classes, totals: &[hprof::sizes::ClassTotal]) -> Table {
    let mut table = Table::new();
    for ((_, class), total) in classes.iter().zip(totals) {
        let all = total.all;
        if all.objects > 0 && &*class.name != "java.lang.Class" {
            let line = table.entry(class.name.to_string()).or_default();
            *line = (line.0 + all.objects, line.1 + all.bytes);
        }
    }
    table
}

fn open(bytes: &[u8]) -> (Snapshot, Histogram) {
    let source = || Source::from_bytes(bytes.to_vec());
    let options = Options::default();
    (
        Snapshot::of(source(), &options, &Silent).unwrap(),
        Histogram::from_source(source(), &options, &Silent).unwrap(),
    )
}

/// Checks that the histogram, the counts, the sizes and the reachable objects equal those of the heap that was written.
fn check(what: &str, zoo: Zoo) -> Snapshot {
    let expected = expected(&zoo.heap);
    let heap = &zoo.heap;
    let dump = heap.try_build().unwrap();
    let (snapshot, histogram) = open(&dump.bytes);
    assert!(!snapshot.is_partial(), "{what}: {:?}", snapshot.warnings());
    assert_eq!(
        table(snapshot.classes(), &snapshot.histogram()),
        expected,
        "{what}"
    );
    assert_eq!(
        table(histogram.classes(), histogram.totals()),
        expected,
        "{what}"
    );
    let (classes, objects) = (heap.classes().count(), heap.objects().count());
    assert_eq!(
        snapshot.object_count(),
        (classes + objects) as u64,
        "{what}"
    );
    for object in heap.objects() {
        let id = ObjectId(heap.address(object));
        let found = snapshot.find(id).unwrap();
        assert_eq!(
            snapshot.shallow_bytes(found),
            heap.shallow_size(object),
            "{what}: {id}"
        );
        let garbage = zoo.garbage.contains(&object);
        assert_eq!(
            snapshot.retained_bytes(found).is_none(),
            garbage,
            "{what}: {id}"
        );
    }
    let reachable: u64 = snapshot
        .histogram()
        .iter()
        .map(|t| t.reachable.objects)
        .sum();
    assert_eq!(
        reachable,
        snapshot.object_count() - zoo.garbage.len() as u64,
        "{what}"
    );
    // The static field holds the head of the list.
    let head = snapshot
        .find(ObjectId(heap.address(*zoo.nodes.last().unwrap())))
        .unwrap();
    assert!(snapshot.retained_bytes(head).unwrap() > 0);
    assert_eq!(
        snapshot.classes().by_name("com.acme.Node").len(),
        1,
        "{what}"
    );
    assert_eq!(heap.class_name(zoo.node), "com.acme.Node");
    snapshot
}

#[test]
fn versions_widths_layouts_and_orders() {
    let framings = [
        Framing::Segments { bytes: 2000 },
        Framing::Single,
        Framing::Segments { bytes: 1 << 20 },
    ];
    let orders = [
        FileOrder::ByAddress,
        FileOrder::Runs(2),
        FileOrder::Shuffled(3),
    ];
    let layouts = [
        ("compressed", JvmLayout::COMPRESSED),
        ("alignment 16", JvmLayout::ALIGN_16),
        ("wide", JvmLayout::WIDE),
        ("wide classes", JvmLayout::WIDE_CLASSES),
        ("wide classes, later", JvmLayout::WIDE_CLASSES_JDK23),
        ("compact", JvmLayout::COMPACT),
    ];
    for framing in framings {
        for order in orders {
            for (name, layout) in layouts {
                let options = Written {
                    framing,
                    order,
                    layout,
                    ..Written::default()
                };
                let snapshot = check(&format!("{name} {framing:?} {order:?}"), zoo(options));
                let found = snapshot.layout();
                let found = (
                    u64::from(found.reference),
                    u64::from(found.header),
                    u64::from(found.align),
                );
                assert_eq!(
                    found,
                    (layout.reference, layout.header, layout.alignment),
                    "{name}"
                );
            }
            let old = Written {
                version: Version::V101,
                strings: StringForm::Chars,
                ..Written::bits_32()
            };
            check(
                &format!("32 bit {framing:?} {order:?}"),
                zoo(Written {
                    framing,
                    order,
                    ..old
                }),
            );
            let android = Written {
                framing,
                order,
                ..Written::android()
            };
            let snapshot = check(&format!("Android {framing:?} {order:?}"), zoo(android));
            assert_eq!(snapshot.header().version, "JAVA PROFILE 1.0.3");
            assert_eq!(snapshot.header().id_size, 4);
        }
    }
}

#[test]
fn classes_and_roots_at_either_end() {
    for classes in [Place::Start, Place::End] {
        for roots in [Place::Start, Place::End] {
            for order in [
                FileOrder::ByAddress,
                FileOrder::Runs(3),
                FileOrder::Shuffled(5),
            ] {
                let framing = Framing::Segments { bytes: 1500 };
                let options = Written {
                    classes,
                    roots,
                    order,
                    framing,
                    ..Written::default()
                };
                check(
                    &format!("classes {classes:?}, roots {roots:?}, {order:?}"),
                    zoo(options),
                );
            }
        }
    }
}

#[test]
fn gzip_in_one_stream_and_in_blocks() {
    for gzip in [
        Gzip::Plain,
        Gzip::Blocks { bytes: 3000 },
        Gzip::Blocks { bytes: 1 << 20 },
    ] {
        check(
            &format!("{gzip:?}"),
            zoo(Written {
                gzip,
                ..Written::default()
            }),
        );
    }
    // Two gzip members, as `cat` joins them, without a comment that gives the block size. Zeros follow the last member.
    let bytes = zoo(Written::default()).heap.build();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut joined = testdata::writer::compress(first, Gzip::Plain).unwrap();
    joined.extend(testdata::writer::compress(second, Gzip::Plain).unwrap());
    joined.extend([0; 100]);
    let (snapshot, _) = open(&joined);
    assert!(snapshot.warnings().is_empty(), "{:?}", snapshot.warnings());
    assert_eq!(snapshot.object_count(), open(&bytes).0.object_count());
}

#[test]
fn the_jvms_own_gzip() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/before.hprof.gz");
    let snapshot = Snapshot::open(&kept, &Options::default(), &Silent).unwrap();
    assert!(snapshot.warnings().is_empty() && snapshot.object_count() > 10_000);
    let folder = tempfile::tempdir().unwrap();
    for jdk in Jdk::all_for_scenarios() {
        let classes = jdk.compile(&testdata::programs::layout_zoo()).unwrap();
        let mut target = Launch::class(&jdk, classes, "LayoutZoo")
            .flag("-Xmx128m")
            .start()
            .unwrap();
        target.wait_ready(1).unwrap();
        let file = folder.path().join("dump.hprof.gz");
        target
            .dump(
                &file,
                DumpOptions {
                    selection: Selection::Live,
                    gzip: Some(1),
                },
            )
            .unwrap();
        let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
        assert!(snapshot.warnings().is_empty(), "{:?}", snapshot.warnings());
        let node = snapshot.classes().by_name("LayoutZoo$Leaf")[0];
        assert_eq!(snapshot.histogram()[node.index()].reachable.objects, 20);
        // The data of the JVM's file gives the same result if it is compressed as one gzip member.
        let plain = Source::open(&file).unwrap().to_vec();
        let packed = testdata::writer::compress(&plain, Gzip::Plain).unwrap();
        assert_eq!(open(&packed).0.object_count(), snapshot.object_count());
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn one_huge_heap_dump_record_is_split() {
    let mut zoo = zoo(Written {
        framing: Framing::Single,
        ..Written::default()
    });
    let boot = zoo.heap.boot();
    let mut held: Vec<Ref> = Vec::new();
    for _ in 0..200 {
        held.push(
            zoo.heap
                .add_primitive_array(Elements::Zeros(FieldType::Byte, 100_000))
                .into(),
        );
        held.push(zoo.heap.add_string("between").into());
    }
    let all = zoo.heap.add_object_array(boot.object, held);
    zoo.heap.add_root(Root::Unknown, all);
    check("20 MB in one record", zoo);
}

#[test]
fn every_kind_of_root_retains_its_object() {
    let kinds = [
        (Root::Unknown, RootKind::Unknown),
        (Root::JniGlobal { global_ref: 5 }, RootKind::JniGlobal),
        (
            Root::JniLocal {
                thread: 1,
                frame: 0,
            },
            RootKind::JniLocal,
        ),
        (
            Root::JavaFrame {
                thread: 1,
                frame: -1,
            },
            RootKind::JavaFrame,
        ),
        (Root::NativeStack { thread: 1 }, RootKind::NativeStack),
        (Root::ThreadBlock { thread: 1 }, RootKind::ThreadBlock),
        // A GC root in a frame of a thread that is not in the dump.
        (
            Root::JavaFrame {
                thread: 99,
                frame: 2,
            },
            RootKind::JavaFrame,
        ),
        (Root::MonitorUsed, RootKind::Monitor),
        (Root::InternedString, RootKind::InternedString),
        (Root::Finalizing, RootKind::Finalizing),
        (Root::Debugger, RootKind::Debugger),
        (Root::ReferenceCleanup, RootKind::ReferenceCleanup),
        (Root::VmInternal, RootKind::VmInternal),
        (
            Root::JniMonitor {
                thread: 1,
                depth: 3,
            },
            RootKind::JniMonitor,
        ),
    ];
    for options in [Written::default(), Written::android()] {
        let mut heap = HeapBuilder::new(options);
        let thread = heap.add_thread("main", &[]);
        let held: Vec<Obj> = kinds
            .iter()
            .map(|(root, _)| {
                let object = heap.add_string("held");
                heap.add_root(*root, object);
                object
            })
            .collect();
        let unreachable = heap.add_string("not held");
        heap.add_root(Root::Unreachable, unreachable);
        // Android writes this record, with the name of the heap to which the next objects belong.
        let mut info = Body::new(options.id_size);
        info.u1(0xfe).u4(1).id(0x10_0000);
        heap.add_sub_record(Place::Start, info.bytes());
        let (snapshot, _) = open(&heap.try_build().unwrap().bytes);
        assert!(!snapshot.is_partial(), "{:?}", snapshot.warnings());
        let id = |object: Obj| ObjectId(heap.address(object));
        let find = |object: Obj| snapshot.find(id(object)).unwrap();
        for ((_, kind), object) in kinds.iter().zip(held) {
            assert!(snapshot.tree().is_reachable(find(object)), "{kind:?}");
        }
        assert!(snapshot.tree().is_reachable(find(thread.object)));
        assert!(!snapshot.tree().is_reachable(find(unreachable)));
    }
}

#[test]
fn android_arrays_without_data_have_their_length() {
    let mut heap = HeapBuilder::new(Written::android());
    let boot = heap.boot();
    let ints = heap.add_primitive_array(Elements::NoData(FieldType::Int, 1000));
    let strings = heap.add_string("a");
    let strings = heap.add_object_array(boot.string, [strings]);
    for object in [ints, strings] {
        heap.add_root(Root::VmInternal, object);
    }
    let (snapshot, _) = open(&heap.try_build().unwrap().bytes);
    let find = |object: Obj| snapshot.find(ObjectId(heap.address(object))).unwrap();
    assert_eq!(snapshot.array_length(find(ints)), Some(1000));
    assert_eq!(snapshot.shallow_bytes(find(ints)), heap.shallow_size(ints));
    assert_eq!(snapshot.name(find(ints)), "int[]");
    assert_eq!(snapshot.name(find(strings)), "java.lang.String[]");
}

#[test]
fn dangling_references_are_ignored() {
    let mut zoo = zoo(Written::default());
    zoo.heap
        .set_field(zoo.nodes[3], "name", Ref::Address(0x7_0000_0004));
    zoo.heap
        .set_field(zoo.nodes[4], "name", Ref::Address(0xdead_beef_0000));
    zoo.heap.set_field(zoo.nodes[5], "name", Ref::Address(8));
    let missing = zoo.nodes[100];
    let expected = zoo.heap.objects().count() + zoo.heap.classes().count() - 1;
    zoo.heap.set_copies(missing, 0);
    let (snapshot, _) = open(&zoo.heap.try_build().unwrap().bytes);
    assert_eq!(snapshot.object_count(), expected as u64);
    assert!(snapshot.find(ObjectId(zoo.heap.address(missing))).is_none());
    // The node that refers to the missing node is still reachable.
    let below = snapshot
        .find(ObjectId(zoo.heap.address(zoo.nodes[101])))
        .unwrap();
    assert!(snapshot.tree().is_reachable(below));
}

#[test]
fn objects_and_classes_with_the_same_id_are_counted() {
    let mut zoo = zoo(Written::default());
    zoo.heap.set_copies(zoo.nodes[7], 3);
    let expected = zoo.heap.objects().count() + zoo.heap.classes().count() + 2;
    let (snapshot, histogram) = open(&zoo.heap.try_build().unwrap().bytes);
    assert_eq!(snapshot.object_count(), expected as u64);
    let counted: u64 = histogram.totals().iter().map(|t| t.all.objects).sum();
    assert_eq!(counted, expected as u64);
    assert!(snapshot.warnings().iter().any(|w| {
        w.message
            .starts_with("2 objects have the id of an earlier object")
    }));

    let mut heap = HeapBuilder::new(Written::default());
    let boot = heap.boot();
    let first = heap.add_class(
        "com.acme.Twin",
        Some(boot.object),
        &[("a", FieldType::Int)],
        &[],
    );
    let loader = heap.add_class_loader(boot.class_loader, "other");
    let second = heap.add_class(
        "com.acme.Twin",
        Some(boot.object),
        &[("b", FieldType::Long), ("c", FieldType::Long)],
        &[],
    );
    heap.set_loader(second, loader);
    for class in [first, second] {
        for _ in 0..20 {
            let object = heap.add_instance(class, &[]);
            heap.add_root(Root::Unknown, object);
        }
    }
    let (snapshot, _) = open(&heap.try_build().unwrap().bytes);
    let twins = snapshot.classes().by_name("com.acme.Twin");
    assert_eq!(twins.len(), 2);
    let totals = snapshot.histogram();
    let bytes: Vec<u64> = twins.iter().map(|t| totals[t.index()].all.bytes).collect();
    assert_eq!(
        bytes,
        [
            20 * heap.instance_size(first),
            20 * heap.instance_size(second)
        ]
    );

    // Give two classes the same ID, so that the dump has two records of one class.
    let id = heap.address(second);
    heap.set_class_address(first, id);
    let (snapshot, _) = open(&heap.try_build().unwrap().bytes);
    assert!(snapshot.warnings().iter().any(|w| {
        w.message
            .starts_with("1 class records have the id of an earlier class")
    }));
}

#[test]
fn allocation_sites_are_read_if_the_dump_has_them() {
    let mut zoo = zoo(Written::default());
    let trace = zoo.heap.add_stack_trace(0, &[]);
    zoo.heap.set_trace(zoo.nodes[1], trace);
    check("a real serial", zoo);
}

#[test]
fn unknown_and_rare_records_are_skipped() {
    let mut zoo = zoo(Written::default());
    for place in [Place::Start, Place::End] {
        zoo.heap.add_record(place, 0x77, b"of the future");
        zoo.heap.add_record(place, tag::HEAP_SUMMARY, &[0; 24]);
        zoo.heap.add_record(place, tag::CPU_SAMPLES, &[0; 8]);
        zoo.heap.add_record(place, tag::CONTROL_SETTINGS, &[0; 6]);
        zoo.heap.add_record(place, tag::ALLOC_SITES, &[0; 34]);
        zoo.heap.add_record(place, tag::START_THREAD, &[0; 36]);
        zoo.heap.add_record(place, tag::END_THREAD, &[0; 4]);
    }
    zoo.heap.unload_class(zoo.node);
    let snapshot = check("rare records", zoo);
    assert!(
        snapshot
            .warnings()
            .iter()
            .any(|w| w.message == "2 records of unknown kinds were skipped")
    );
}

#[test]
fn objects_of_unknown_classes_are_counted() {
    let mut zoo = zoo(Written::default());
    let mut records = Body::new(zoo.heap.options().id_size);
    records.instance(0x7_7000_0000, 1, 0x6_6000_0000, 0);
    records
        .object_array(0x7_7000_0100, 1, 0x6_6000_0100, 2)
        .id(0)
        .id(0);
    let bytes = records.into_bytes();
    zoo.heap.add_sub_record(Place::End, &bytes);
    let expected = zoo.heap.objects().count() + zoo.heap.classes().count() + 2;
    let (snapshot, histogram) = open(&zoo.heap.try_build().unwrap().bytes);
    assert_eq!(snapshot.object_count(), expected as u64);
    assert_eq!(
        table(snapshot.classes(), &snapshot.histogram()),
        table(histogram.classes(), histogram.totals())
    );
    let array = snapshot.find(ObjectId(0x7_7000_0100)).unwrap();
    assert_eq!(snapshot.name(array), "(unknown class 0x660000100)[]");
    assert_eq!(snapshot.array_length(array), Some(2));
}

/// The dump has more array classes than fit in a table that is indexed by shape (encoded class and array length).
#[test]
fn arrays_of_many_unknown_classes_are_counted() {
    let arrays = 6_000;
    let mut zoo = zoo(Written::default());
    let mut records = Body::new(zoo.heap.options().id_size);
    for i in 0..arrays {
        let (id, class) = (0x7_7000_0000 + i * 0x20, 0x6_6000_0000 + i * 0x100);
        let length = i as u32 % 2;
        let array = records.object_array(id, 1, class, length);
        if length == 1 {
            array.id(0x7_7000_0000);
        }
    }
    let bytes = records.into_bytes();
    zoo.heap.add_sub_record(Place::End, &bytes);
    let (snapshot, histogram) = open(&zoo.heap.try_build().unwrap().bytes);
    let totals = table(snapshot.classes(), &snapshot.histogram());
    assert_eq!(totals, table(histogram.classes(), histogram.totals()));
    let unknown = totals
        .iter()
        .filter(|(name, _)| name.starts_with("(unknown class"));
    let counts: Vec<u64> = unknown.map(|(_, total)| total.0).collect();
    assert_eq!(counts, vec![1; arrays as usize]);
}

/// The IDs of this dump are not addresses, so all sizes come from an assumed object layout.
#[test]
fn ids_that_are_not_addresses_give_modelled_sizes() {
    let (true_sizes, _) = open(&zoo(Written::default()).heap.try_build().unwrap().bytes);
    assert!(
        true_sizes.warnings().is_empty(),
        "{:?}",
        true_sizes.warnings()
    );
    let mut zoo = zoo(Written::default());
    let objects: Vec<Obj> = zoo.heap.objects().collect();
    for (i, object) in objects.into_iter().enumerate() {
        zoo.heap.set_address(object, 0x100_0001 + 3 * i as u64);
    }
    let (snapshot, histogram) = open(&zoo.heap.try_build().unwrap().bytes);
    assert_eq!(
        snapshot.layout().source,
        hprof::sizes::LayoutSource::Assumed
    );
    let mut expected = table(true_sizes.classes(), &true_sizes.totals());
    // In the assumed layout, the fields of a subclass do not fill the gap behind the fields of its superclass.
    let nodes = expected.get_mut("com.acme.Node").unwrap();
    nodes.1 = nodes.0 * 40;
    assert_eq!(table(snapshot.classes(), &snapshot.totals()), expected);
    for warnings in [snapshot.warnings(), histogram.warnings()] {
        let messages: Vec<&str> = warnings.iter().map(|w| &*w.message).collect();
        let [numbers, longer] = messages[..] else {
            panic!("{warnings:?}")
        };
        assert!(numbers.contains("object ids in this dump are numbers, not addresses"));
        assert!(longer.starts_with("object arrays may be longer than in this dump"));
    }
    let expected = zoo.heap.objects().count() + zoo.heap.classes().count();
    assert_eq!(snapshot.object_count(), expected as u64);
    let head = ObjectId(zoo.heap.address(zoo.nodes[199]));
    assert!(snapshot.tree().is_reachable(snapshot.find(head).unwrap()));
}

/// Returns the record that the hprof agent writes beside a heap: for each class its live objects and their bytes, with
/// the class object.
fn alloc_sites(heap: &HeapBuilder, sizes: &Table) -> Vec<u8> {
    const CLASS_OBJECT: u64 = 392;
    let mut rows = Vec::new();
    for (class, serial) in heap.classes().zip(1_u32..) {
        if let Some(&(objects, bytes)) = sizes.get(heap.class_name(class)) {
            let (objects, bytes) = (objects as u32 + 1, (bytes + CLASS_OBJECT) as u32);
            rows.push(0);
            for word in [serial, 1, bytes, objects, bytes, objects] {
                rows.extend(word.to_be_bytes());
            }
        }
    }
    let mut body = vec![0; 30];
    body.extend((rows.len() as u32 / 25).to_be_bytes());
    body.extend(rows);
    let mut record = vec![0x06, 0, 0, 0, 0];
    record.extend((body.len() as u32).to_be_bytes());
    record.extend(body);
    record
}

#[test]
fn allocation_sites_of_the_hprof_agent_show_the_layout() {
    for layout in [
        JvmLayout::COMPRESSED,
        JvmLayout::WIDE_CLASSES,
        JvmLayout::BITS_32,
    ] {
        let mut heap = HeapBuilder::new(Written {
            id_size: if layout == JvmLayout::BITS_32 {
                IdSize::Four
            } else {
                IdSize::Eight
            },
            layout,
            ..Written::default()
        });
        let boot = heap.boot();
        for of in 0..12 {
            let fields = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
            let fields: Vec<_> = fields
                .into_iter()
                .zip([FieldType::Object, FieldType::Int].into_iter().cycle())
                .take(of)
                .collect();
            let class =
                heap.add_class(&format!("com.acme.Of{of}"), Some(boot.object), &fields, &[]);
            let values: Vec<Value> = fields
                .iter()
                .map(|(_, kind)| match kind {
                    FieldType::Int => Value::Int(1),
                    _ => Value::NULL,
                })
                .collect();
            for _ in 0..100 + of {
                let object = heap.add_instance(class, &values);
                heap.add_root(Root::JniGlobal { global_ref: 1 }, object);
            }
        }
        let of_acme = |(snapshot, _): &(Snapshot, Histogram)| -> Table {
            let all = table(snapshot.classes(), &snapshot.totals());
            all.into_iter()
                .filter(|(name, _)| name.starts_with("com.acme."))
                .collect()
        };
        let told = |open: &(Snapshot, Histogram)| open.0.warnings()[0].message.clone();
        let true_sizes = of_acme(&open(&heap.try_build().unwrap().bytes));
        let objects: Vec<Obj> = heap.objects().collect();
        for (i, object) in objects.into_iter().enumerate() {
            heap.set_address(object, 0x100_0001 + 3 * i as u64);
        }
        let bytes = heap.try_build().unwrap().bytes;
        let without = open(&bytes);
        assert_eq!(
            of_acme(&without) == true_sizes,
            layout == JvmLayout::COMPRESSED
        );
        let model = "heapdiff assumes a 64-bit JVM with compressed references (";
        let agreed = "heapdiff uses the layout that fits 12 of 12 classes in the allocation sites of the dump (";
        assert!(told(&without).contains(model) && !told(&without).contains(agreed));
        let with = open(&[bytes.clone(), alloc_sites(&heap, &true_sizes)].concat());
        assert_eq!(of_acme(&with), true_sizes, "{layout:?}");
        assert!(
            told(&with).contains(agreed) && !told(&with).contains(model),
            "{}",
            told(&with)
        );
        // A class with an unusual layout gets the size that the record states.
        let mut own = true_sizes.clone();
        let (objects, larger) = own["com.acme.Of11"];
        own.insert("com.acme.Of11".to_owned(), (objects, larger + objects * 16));
        let with = open(&[bytes.clone(), alloc_sites(&heap, &own)].concat());
        assert_eq!(of_acme(&with), own);
        // Sizes that fit no layout are ignored.
        let odd = true_sizes
            .iter()
            .map(|(name, &(n, bytes))| (name.clone(), (n, bytes * 3 + n * n)));
        let with = open(&[bytes, alloc_sites(&heap, &odd.collect())].concat());
        assert_eq!(of_acme(&with), of_acme(&without));
    }
}
