//! Tests incomplete dumps: their content is read, warnings name the missing parts, and live objects are not reported as
//! unreachable.

use hprof::answers::Histogram;
use hprof::graph::MissingRoots;
use hprof::records::RootKind;
use hprof::{Error, ObjectId, ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::writer::{
    Elements, FieldType, Framing, HeapBuilder, Obj, Options as Written, Root, Value,
};

fn open(bytes: &[u8]) -> Snapshot {
    let source = Source::from_bytes(bytes.to_vec());
    Snapshot::of(source, &Options::default(), &Silent).unwrap()
}

fn objects(bytes: &[u8]) -> u64 {
    let source = Source::from_bytes(bytes.to_vec());
    let histogram = Histogram::from_source(source, &Options::default(), &Silent).unwrap();
    histogram.totals().iter().map(|t| t.all.objects).sum()
}

fn warnings(snapshot: &Snapshot) -> String {
    let all = snapshot.warnings().iter().map(ToString::to_string);
    all.collect::<Vec<_>>().join("\n")
}

/// Returns a heap with a list of forty nodes and an array, both held by a thread.
fn list(options: Written) -> HeapBuilder {
    let mut heap = HeapBuilder::new(options);
    let object = heap.boot().object;
    let fields = [("next", FieldType::Object), ("size", FieldType::Int)];
    let node = heap.add_class(
        "com.acme.Node",
        Some(object),
        &fields,
        &[("head", Value::NULL)],
    );
    let mut next = Value::NULL;
    for i in 0..40 {
        next = heap.add_instance(node, &[next, Value::Int(i)]).into();
    }
    heap.set_static(node, "head", next);
    let numbers = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 100));
    let thread = heap.add_thread("main", &[]);
    heap.add_local(thread, 0, numbers);
    heap.add_root(Root::JniGlobal { global_ref: 1 }, numbers);
    heap
}

/// Returns the offset of the first heap record.
fn heap_record(bytes: &[u8], boundaries: &[usize]) -> usize {
    let mut at = boundaries.iter().copied();
    at.find(|&at| matches!(bytes[at], 0x0c | 0x1c)).unwrap()
}

/// Returns a dump whose last heap record has the length 0, as JDK 5 to 8 leave it, and the offset of that record.
fn without_length(options: Written) -> (Vec<u8>, usize) {
    let (mut bytes, boundaries) = list(options).build_with_offsets();
    let at = heap_record(&bytes, &boundaries);
    bytes[at + 5..at + 9].fill(0);
    (bytes, at)
}

#[test]
fn a_heap_record_of_length_0_is_read_to_the_end_of_the_file() {
    let single = Framing::Single;
    let segment = Framing::SegmentsWithoutEnd { bytes: 1 << 20 };
    for (framing, options) in [
        (single, Written::default()),
        (segment, Written::default()),
        (single, Written::bits_32()),
    ] {
        let options = Written { framing, ..options };
        let whole = list(options).build();
        let all = objects(&whole);
        let (bytes, _) = without_length(options);
        assert_eq!(objects(&bytes), all, "{framing:?}");
        let snapshot = open(&bytes);
        assert!(snapshot.is_partial());
        let said = warnings(&snapshot);
        assert!(
            said.contains("the length of its heap record is missing"),
            "{said}"
        );
        assert_eq!(
            snapshot.unreachable_bytes(),
            open(&whole).unreachable_bytes()
        );
        // Wherever the dump is cut, all objects before the cut are counted.
        let mut before = 0;
        for cut in (bytes.len() - 1500..bytes.len()).step_by(7) {
            let read = objects(&bytes[..cut]);
            assert!(read >= before && read <= all, "{read} at {cut}");
            before = read;
        }
        assert!(before > all / 2);
    }
}

#[test]
fn data_after_a_heap_record_of_length_0_is_not_part_of_it() {
    let options = Written {
        framing: Framing::Segments { bytes: 1 << 20 },
        ..Written::default()
    };
    let whole = list(options).build();
    let all = objects(&whole);
    // First, read the dump with the record that ends the heap dump.
    let (bytes, heap) = without_length(options);
    assert_eq!(objects(&bytes), all);
    assert!(!warnings(&open(&bytes)).contains("is not read"));
    // A second dump follows the first dump, which is complete or ends within a record.
    for cut in [bytes.len(), bytes.len() - 9, bytes.len() - 100] {
        let two = [&bytes[..cut], &whole].concat();
        let said = warnings(&open(&two));
        assert!(
            said.contains("the file contains another dump"),
            "{cut}: {said}"
        );
        let read = objects(&two);
        assert!(read <= all && read > all / 2, "{cut}: {read} of {all}");
    }
    // The dump begins with an empty heap record.
    let mut empty = whole[..heap].to_vec();
    empty.extend([0x1c, 0, 0, 0, 0, 0, 0, 0, 0]);
    empty.extend(&whole[heap..]);
    assert_eq!(objects(&empty), all);
    let said = warnings(&open(&empty));
    assert!(
        !said.contains("the length of its heap record is missing"),
        "{said}"
    );
    assert!(!open(&empty).is_partial(), "{said}");
}

fn is_reachable(snapshot: &Snapshot, object: ObjectIndex) -> bool {
    snapshot.retained_bytes(object).is_some()
}

/// HotSpot writes classes, then objects, then roots. A real dump that was truncated has all classes and no roots.
#[test]
fn all_classes_of_a_truncated_dump_are_roots() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/before.hprof.gz");
    let whole = Source::open(file.as_ref()).unwrap().to_vec();
    let text = "heapdiff treats all classes as GC roots";
    assert!(!warnings(&open(&whole)).contains(text));
    for parts in [5, 6, 7, 8, 9] {
        let snapshot = open(&whole[..whole.len() / 10 * parts]);
        let said = warnings(&snapshot);
        assert!(
            said.contains("the dump has no GC roots") && said.contains(text),
            "{said}"
        );
        let classes = snapshot.classes();
        let mut dumped = classes.iter().take(classes.dumped());
        assert!(dumped.all(|(class, _)| is_reachable(&snapshot, ObjectIndex(class.0))));
    }
    // A class of an application becomes a root of the kind `LoadedClass`.
    let snapshot = open(&whole[..whole.len() / 10 * 9]);
    let classes = snapshot.classes();
    let own = classes
        .iter()
        .find(|(_, c)| !c.loader.is_null() && c.element.is_none());
    let kind = snapshot.tree().root_kind(ObjectIndex(own.unwrap().0.0));
    assert_eq!(kind, Some(RootKind::LoadedClass));
}

/// Tests that objects held by a class are alive even if nothing leads to its loader.
#[test]
fn objects_held_by_classes_of_a_truncated_dump_are_reachable() {
    let unrooted = Unrooted::new(Written::default());
    let id = ObjectId(unrooted.heap.address(unrooted.held_by_class));
    let (whole, boundaries) = unrooted.heap.build_with_offsets();
    let place = |snapshot: &Snapshot| snapshot.find(id).unwrap();
    let snapshot = open(&whole);
    assert!(!is_reachable(&snapshot, place(&snapshot)));
    let heap = heap_record(&whole, &boundaries);
    let mut roots = boundaries
        .iter()
        .filter(|&&at| at > heap && whole[at] == 0x05);
    let first = *roots.next().unwrap();
    // Cut the dump so that it has no roots, some roots, and all roots.
    for cut in [first, *roots.next().unwrap(), whole.len() - 9] {
        let snapshot = open(&whole[..cut]);
        let is_alive = is_reachable(&snapshot, place(&snapshot));
        assert!(is_alive, "{cut} of {}", whole.len());
    }
}

#[test]
fn a_dump_is_read_if_it_has_a_heap_record_and_refused_if_not() {
    let (whole, boundaries) = list(Written::default()).build_with_offsets();
    let heap = heap_record(&whole, &boundaries) + 9;
    for cut in 31..whole.len() {
        let source = Source::from_bytes(whole[..cut].to_vec());
        let snapshot = Snapshot::of(source, &Options::default(), &Silent);
        if cut < heap {
            let refused = matches!(snapshot, Err(Error::NoHeap { next: None, .. }));
            assert!(refused, "cut at {cut} of {heap}");
        } else {
            assert!(snapshot.unwrap().is_partial(), "cut at {cut} of {heap}");
        }
    }
    // The error names the option that selects the next dump in the file.
    let two = [&whole[..heap - 9], &whole].concat();
    let error = Snapshot::of(Source::from_bytes(two), &Options::default(), &Silent);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("--dump 2"), "{error}");
}

/// A heap with objects that no GC root holds: the head of a list, two objects in a cycle, a class loader.
struct Unrooted {
    heap: HeapBuilder,
    head: Obj,
    pair: Obj,
    loader: Obj,
    /// The object that a static field of the loader's class holds.
    held_by_class: Obj,
}

impl Unrooted {
    fn new(options: Written) -> Self {
        let mut heap = HeapBuilder::new(options);
        let object = heap.boot().object;
        let fields = [("next", FieldType::Object)];
        let node = heap.add_class("com.acme.Node", Some(object), &fields, &[]);
        let mut head = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 1000));
        for _ in 0..20 {
            head = heap.add_instance(node, &[head.into()]);
        }
        let pair = heap.add_instance(node, &[Value::NULL]);
        let other = heap.add_instance(node, &[pair.into()]);
        heap.set_field(pair, "next", other);
        let loaders = heap.add_class(
            "com.acme.Loader",
            Some(object),
            &[("of", FieldType::Object)],
            &[],
        );
        let loader = heap.add_instance(loaders, &[Value::NULL]);
        let plugin = heap.add_class(
            "com.acme.Plugin",
            Some(object),
            &[],
            &[("all", Value::NULL)],
        );
        heap.set_loader(plugin, loader);
        let all = heap.add_primitive_array(Elements::Zeros(FieldType::Long, 50));
        heap.set_static(plugin, "all", all);
        let _ = heap.add_thread("main", &[]);
        Self {
            heap,
            head,
            pair,
            loader,
            held_by_class: all,
        }
    }

    fn build(self) -> Built {
        let ids = [self.head, self.pair, self.loader].map(|o| ObjectId(self.heap.address(o)));
        Built {
            bytes: self.heap.build(),
            ids,
        }
    }
}

/// A dump of an [`Unrooted`] heap, and the IDs of its list head, pair and loader.
struct Built {
    bytes: Vec<u8>,
    ids: [ObjectId; 3],
}

impl Built {
    fn open(&self) -> (Snapshot, [ObjectIndex; 3]) {
        let snapshot = open(&self.bytes);
        let places = self.ids.map(|id| snapshot.find(id).unwrap());
        (snapshot, places)
    }

    /// Checks that roots are assumed for a dump that lacks roots, and that warnings report this.
    fn check(&self, missing: MissingRoots) {
        let (snapshot, [head, pair, loader]) = self.open();
        assert_eq!(snapshot.missing_roots(), Some(missing));
        assert!(snapshot.is_partial() && !snapshot.shows_parked_frames());
        let kind = Some(missing.root_kind());
        for root in [head, loader] {
            assert_eq!(snapshot.tree().root_kind(root), kind);
        }
        assert!(snapshot.retained_bytes(head).unwrap() > 8000);
        assert!(!is_reachable(&snapshot, pair), "a cycle");
        let (_, roots) = snapshot.assumed_roots().unwrap();
        assert!(roots.objects >= 2 && roots.bytes > 8000, "{roots:?}");
        let said = warnings(&snapshot);
        for part in [
            "some unreachable objects count as reachable",
            "Live objects count as unreachable if only objects of their own cycle refer to them",
            missing.root_kind().name(),
        ] {
            assert!(said.contains(part), "{said}");
        }
        self.check_index(&snapshot);
    }

    /// Checks that an index has the same roots and warnings as the dump.
    fn check_index(&self, snapshot: &Snapshot) {
        let folder = tempfile::tempdir().unwrap();
        let [dump, index] = ["dump.hprof", "dump.hdx"].map(|name| folder.path().join(name));
        std::fs::write(&dump, &self.bytes).unwrap();
        let options = Options::default();
        let opened = Snapshot::open(&dump, &options, &Silent).unwrap();
        let mut file = std::fs::File::create(&index).unwrap();
        hprof::index::write(&opened, &mut file).unwrap();
        let again = Snapshot::from_index(&dump, &index, &options).unwrap();
        assert_eq!(again.assumed_roots(), snapshot.assumed_roots());
        assert_eq!(again.warnings(), snapshot.warnings());
        assert!(again.tree().roots().eq(snapshot.tree().roots()));
    }

    /// Checks that a dump with all its roots gets no assumed roots.
    fn check_whole(&self) {
        let (snapshot, places) = self.open();
        assert_eq!(snapshot.missing_roots(), None);
        assert_eq!(snapshot.assumed_roots(), None);
        assert!(snapshot.shows_parked_frames());
        assert!(places.iter().all(|&o| !is_reachable(&snapshot, o)));
        let said = warnings(&snapshot);
        assert!(!said.contains("referrer"), "{said}");
    }
}

fn without_system_classes() -> Written {
    Written {
        sticky_classes: false,
        ..Written::default()
    }
}

#[test]
fn objects_without_referrers_are_roots_in_a_dump_by_jhsdb() {
    let mut jhsdb = Unrooted::new(without_system_classes());
    let local = Root::JniLocal {
        thread: 1,
        frame: -1,
    };
    let string = jhsdb.heap.add_string("local");
    jhsdb.heap.add_root(local, string);
    let jhsdb = jhsdb.build();
    let said = warnings(&jhsdb.open().0);
    assert!(
        said.contains("no Java frames, no JNI globals") && said.contains("unknown (no referrer)"),
        "{said}"
    );
    assert!(
        !said.contains("no frames of parked virtual threads"),
        "{said}"
    );
    assert!(!said.contains("frames not in this dump"), "{said}");
    jhsdb.check(MissingRoots::Frames);
    // jhsdb never writes these kinds of roots, so each of them shows that another program wrote the dump.
    let frame = Root::JavaFrame {
        thread: 1,
        frame: -1,
    };
    for root in [frame, Root::JniGlobal { global_ref: 7 }] {
        let mut whole = Unrooted::new(without_system_classes());
        let string = whole.heap.add_string("held");
        whole.heap.add_root(root, string);
        whole.build().check_whole();
    }
    Unrooted::new(Written {
        sticky_classes: true,
        ..Written::default()
    })
    .build()
    .check_whole();
}

/// Builds the heap of a JVM of this version, with a virtual thread.
fn with_virtual_thread(version: &str, is_root: bool, has_stack: bool) -> Built {
    let mut unrooted = Unrooted::new(Written {
        sticky_classes: true,
        ..Written::default()
    });
    let heap = &mut unrooted.heap;
    heap.set_system_properties(&[("user.dir", "/"), ("java.vm.version", version)]);
    let boot = heap.boot();
    let stack = [("parent", FieldType::Object), ("size", FieldType::Int)];
    let stacks = heap.add_class("jdk.internal.vm.StackChunk", Some(boot.object), &stack, &[]);
    if has_stack {
        heap.add_instance(stacks, &[Value::NULL, Value::Int(4)]);
    }
    let threads = heap.add_class("java.lang.VirtualThread", Some(boot.thread), &[], &[]);
    if is_root {
        heap.add_thread_of(threads, "virtual", &[]);
    } else {
        heap.add_instance(threads, &[]);
    }
    unrooted.build()
}

#[test]
fn objects_without_referrers_are_roots_if_frames_are_missing() {
    for version in ["19.0.2+7-44", "20.0.1+9-29", "21.0.8+9-LTS", "21"] {
        with_virtual_thread(version, false, true).check(MissingRoots::ParkedThreads);
    }
    let (snapshot, _) = with_virtual_thread("21.0.8+9-LTS", false, true).open();
    let said = warnings(&snapshot);
    assert!(
        said.contains("parked virtual threads (1 of them), because JDK 19 to 21 do not write these frames (this is 21.0.8+9-LTS)"),
        "{said}"
    );
    assert!(
        said.contains("no frames of parked virtual threads"),
        "{said}"
    );
    assert!(
        said.contains("parked virtual threads, frames not in this dump"),
        "{said}"
    );
    assert!(!said.contains("no Java frames, no JNI globals"), "{said}");
    assert!(!said.contains("unknown (no referrer)"), "{said}");
    for version in [
        "17.0.15+6",
        "22.0.2+9-70",
        "25+36",
        "openj9-0.41.0",
        "",
        "210.1",
    ] {
        with_virtual_thread(version, false, true).check_whole();
    }
    // A truncated dump also lacks the frames of parked virtual threads.
    let cut = with_virtual_thread("21.0.8+9-LTS", false, true);
    let snapshot = open(&cut.bytes[..cut.bytes.len() - 9]);
    assert_eq!(snapshot.missing_roots(), Some(MissingRoots::ParkedThreads));
    // The following two dumps lack nothing: in the first, the thread is a root and has frames; in the second, the
    // thread was never parked and has no stack in the heap.
    with_virtual_thread("21.0.8+9-LTS", true, true).check_whole();
    with_virtual_thread("21.0.8+9-LTS", false, false).check_whole();
}
