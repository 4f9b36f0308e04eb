//! Tests of the guesses about a dump that are made before the first pass over its objects. If the guesses are right, no
//! second pass is needed.

use std::sync::Mutex;

use crate::bytes::array::Store;
use crate::bytes::source::Source;
use crate::error::Result;
use crate::graph::HeapGraph;
use crate::graph::address::AddressMap;
use crate::graph::build::{self, Built};
use crate::graph::plan::{Context, Plan};
use crate::ids::ObjectIndex;
use crate::options::Options;
use crate::progress::Progress;
use crate::records::outline::Outline;
use crate::records::record;
use testdata::writer::{self, Elements, FieldType, Framing, HeapBuilder, Place, Root, Value};

/// Records the phases of an analysis in their order.
#[derive(Default)]
struct Phases(Mutex<Vec<&'static str>>);

impl Progress for Phases {
    fn phase(&self, name: &'static str, _: u64) {
        self.0.lock().unwrap().push(name);
    }
    fn advance(&self, _: u64) {}
}

impl Phases {
    fn passes(&self) -> usize {
        let phases = self.0.lock().unwrap();
        phases.iter().filter(|&&p| p == "reading objects").count()
    }
}

fn source(heap: &HeapBuilder) -> Source {
    Source::from_bytes(heap.try_build().unwrap().bytes)
}

fn plan(source: &Source) -> Plan {
    let header = record::header(source).unwrap();
    let outline = Outline::from_source(source, &header);
    Plan::new(source, &header, &outline)
}

/// The signature of [`build::build`] and [`build::measure`].
type Pass<T> = fn(&Context<'_>, &mut Plan) -> Result<T>;

/// Creates the [`Plan`] of a heap and runs `pass` with it. `pass` reads the objects of the heap one or more times and
/// corrects the plan. Returns the result of `pass`, the corrected plan, and how many times the objects were read.
fn passed<T>(heap: &HeapBuilder, pass: Pass<T>) -> (T, Plan, usize) {
    let source = source(heap);
    let header = record::header(&source).unwrap();
    let outline = Outline::from_source(&source, &header);
    let mut plan = Plan::new(&source, &header, &outline);
    let (options, phases, store) = (Options::default(), Phases::default(), Store::new(None));
    let context = Context::new(&source, &header, &outline, &options, &phases, &store);
    let found = pass(&context, &mut plan);
    (found.unwrap(), plan, phases.passes())
}

/// Builds the graph of a heap. Returns all results of the build, and the number of passes over the objects.
fn build(heap: &HeapBuilder) -> (Built, usize) {
    let (built, _, passes) = passed(heap, build::build);
    (built, passes)
}

const BASE: u64 = 0x1000_0000;

/// A heap with classes at `classes`, and arrays of the given sizes at other addresses, in this order in the file.
fn heap(options: writer::Options, classes: &[u64], arrays: &[(u64, usize)]) -> HeapBuilder {
    const NAMES: [&str; 3] = ["A", "B", "C"];
    let mut heap = HeapBuilder::new(options);
    for (name, &at) in NAMES.iter().zip(classes) {
        let class = heap.add_class(name, None, &[], &[]);
        heap.set_class_address(class, at);
    }
    for &(at, len) in arrays {
        let array = heap.add_primitive_array(Elements::Zeros(FieldType::Byte, len));
        heap.set_address(array, at);
    }
    let bytes = heap.primitive_array_class(FieldType::Byte);
    heap.set_class_address(bytes, BASE + 0x1_0000);
    heap
}

#[test]
fn the_alignment_is_that_of_classes_and_first_objects() {
    for options in [writer::Options::default(), writer::Options::bits_32()] {
        for (classes, first, expected) in [
            ([0x100, 0x200], 0x1000, 256),
            ([0x120, 0x200], 0x1000, 32),
            // The addresses of both class objects are multiples of 32, but not of 64.
            ([0x120, 0x160], 0x1000, 32),
            ([0x100, 0x200], 0x1010, 16),
            ([0x108, 0x208], 0x1010, 8),
        ] {
            let classes = classes.map(|at| BASE + at);
            let heap = heap(options, &classes, &[(BASE + first, 40)]);
            let found = plan(&source(&heap)).alignment;
            assert_eq!(found, expected, "{classes:x?} {first:x}");
        }
    }
}

#[test]
fn many_array_classes_are_counted_by_a_smaller_alignment() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build();
    let pool = pool.unwrap();
    // Each class needs 256 counters of 8 bytes on each of 4 threads, so 4096 classes need 32 MiB. The limit is 32 MiB
    // plus 4 times the file size.
    for (classes, expected) in [(3000, 256), (4090, 256), (4200, 256), (5500, 128)] {
        let mut heap = HeapBuilder::new(writer::Options::default());
        let mut class = heap.add_class("A", None, &[], &[]);
        heap.set_class_address(class, BASE);
        for i in 0..classes {
            if i % 20 == 0 {
                class = heap.add_class(&format!("A{i}"), None, &[], &[]);
                heap.set_class_address(class, BASE + (classes + i) * 256);
            }
            class = heap.array_class(class);
            heap.set_class_address(class, BASE + i * 256 + 256);
        }
        let source = source(&heap);
        let len = source.len();
        assert!(len > 250_000 && len < 900_000, "{len}");
        let found = pool.install(|| plan(&source).alignment);
        assert_eq!(found, expected, "{classes} classes, {} bytes", source.len());
    }
}

#[test]
fn objects_near_to_sampled_objects_need_one_pass() {
    const MB: u64 = 1 << 20;
    let middle = BASE + 16 * MB;
    let classes = [middle + 0x100, middle + 0x200];
    let at = |places: &[(u64, usize)]| {
        let all = [&[(middle, 100)], places].concat();
        heap(writer::Options::default(), &classes, &all)
    };
    for (what, heap, expected) in [
        ("above", at(&[(middle + MB - 4096, 10)]), 1),
        ("below", at(&[(middle - MB + 4096, 10)]), 1),
        ("far above", at(&[(middle + 3 * MB, 10)]), 2),
        (
            "as far as the file is long",
            at(&[
                (middle + MB, 3 << 20),
                (middle + 6 * MB, 10),
                (middle - 5 * MB, 10),
            ]),
            1,
        ),
    ] {
        let (built, passes) = build(&heap);
        assert_eq!(passes, expected, "{what}");
        let is_flat = built.map.ranks().is_some_and(|r| r.space.blocks.is_none());
        assert!(is_flat, "{what}");
    }
}

#[test]
fn class_objects_far_from_all_objects_are_referred_to() {
    for classes in [Place::Start, Place::End] {
        let options = writer::Options {
            classes,
            framing: Framing::Single,
            ..writer::Options::default()
        };
        let mut heap = HeapBuilder::new(options);
        let class = heap.add_class("A", None, &[], &[]);
        let far = heap.add_class("Far", None, &[], &[]);
        let array = heap.add_object_array(class, [far, class]);
        for (class, at) in [(class, BASE), (far, BASE + (900 << 20))] {
            heap.set_class_address(class, at);
        }
        heap.set_address(array, BASE + 0x1000);
        let array_class = heap.array_class(class);
        heap.set_class_address(array_class, BASE + 0x100);
        let phases = Phases::default();
        let graph = HeapGraph::build(&source(&heap), &Options::default(), &phases).unwrap();
        // Objects 0 to 2 are class objects. Object 3 is the array.
        let held: Vec<u32> = graph.references(ObjectIndex(3)).map(|o| o.0).collect();
        let classes: Vec<u32> = held.into_iter().filter(|&o| o < 3).collect();
        assert!(classes.starts_with(&[1, 0]), "{classes:?}");
    }
}

#[test]
fn classes_that_are_certain_roots_are_recognized() {
    for (sticky, passes, pinned) in [
        (true, 1, [true, true, false, false]),
        // Only the first pass finds out that no GC root refers to `Plain`, so a second pass is needed.
        (false, 2, [true, false, false, false]),
    ] {
        let mut heap = HeapBuilder::new(writer::Options {
            sticky_classes: sticky,
            ..writer::Options::default()
        });
        let rooted = heap.add_class("Rooted", None, &[], &[]);
        heap.add_root(Root::StickyClass, rooted);
        let plain = heap.add_class("Plain", None, &[], &[]);
        let loaded = heap.add_class("Loaded", None, &[], &[]);
        let hidden = heap.add_class("Plain$$Lambda+0x00007f0012345678", None, &[], &[]);
        let loader = heap.add_instance(rooted, &[]);
        heap.set_loader(loaded, loader);
        for class in [plain, loaded, hidden] {
            let object = heap.add_instance(class, &[]);
            heap.add_root(Root::JniGlobal { global_ref: 1 }, object);
        }
        for _ in 0..5 {
            let object = heap.add_instance(rooted, &[]);
            heap.add_root(Root::JniGlobal { global_ref: 1 }, object);
        }
        let (built, took) = build(&heap);
        // The objects of the file are in address order.
        assert!(matches!(built.map, AddressMap::Ordered(_)));
        assert_eq!((&built.pinned[..4], took), (&pinned[..], passes));
        // Classes without a record have no class object that could be unreachable, so they count as GC roots.
        assert!(built.pinned[4..].iter().all(|&pinned| pinned));
    }
}

#[test]
fn a_histogram_needs_a_second_pass_for_late_classes() {
    for (classes, expected) in [(Place::Start, 1), (Place::End, 2)] {
        let options = writer::Options {
            classes,
            framing: Framing::Single,
            ..writer::Options::default()
        };
        let heap = heap(options, &[BASE, BASE + 0x100], &[(BASE + 0x1000, 40)]);
        let (_, plan, passes) = passed(&heap, build::measure);
        assert_eq!(passes, expected);
        assert_eq!(plan.classes.dumped(), 3);
    }
}

#[test]
fn stack_chunks_are_counted_by_their_words() {
    let mut heap = HeapBuilder::new(writer::Options::default());
    let fields = [("size", FieldType::Int), ("parent", FieldType::Object)];
    let chunk = heap.add_class("jdk.internal.vm.StackChunk", None, &fields, &[]);
    for words in [10, 100, 10] {
        heap.add_instance(chunk, &[Value::Int(words), Value::NULL]);
    }
    let (built, _) = build(&heap);
    let stats = &built.scanned.stats;
    let counts: Vec<(u32, u64)> = stats.stack_chunks.iter().map(|(&w, &n)| (w, n)).collect();
    assert_eq!(counts, [(10, 2), (100, 1)]);
    assert_eq!(stats.classes[0].instances, 0);
    assert_eq!(built.scanned.leaf_shapes.len(), 3);
}
