//! Tests the pass over the objects with unusual objects (truncated, without a class, with a class that does not fit).
//! Also tests the counters of the pass.

use super::append::check_numbers;
use crate::bytes::array::Store;
use crate::bytes::source::Source;
use crate::error::Error;
use crate::graph::build::{self, Built};
use crate::graph::plan::{Context, Plan};
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::options::{Options, Refs};
use crate::progress::Silent;
use crate::records::classes::Classes;
use crate::records::outline::Outline;
use crate::records::record;
use crate::sizes::shape::{self, InRow};
use testdata::writer::{
    self, Body, ClassId, FieldType, Framing, HeapBuilder, IdSize, Place, Ref, Root, Value,
};

const OBJECT: FieldType = FieldType::Object;
const PRIMITIVES: [FieldType; 8] = [
    FieldType::Boolean,
    FieldType::Char,
    FieldType::Float,
    FieldType::Double,
    FieldType::Byte,
    FieldType::Short,
    FieldType::Int,
    FieldType::Long,
];
const BASE: u64 = 0x1000_0000;

fn heap() -> HeapBuilder {
    HeapBuilder::new(writer::Options {
        framing: Framing::Single,
        base_address: Some(BASE),
        ..writer::Options::default()
    })
}

fn class(heap: &mut HeapBuilder, name: &str, references: usize) -> ClassId {
    let names: Vec<String> = (0..references).map(|i| format!("f{i}")).collect();
    let fields: Vec<(&str, FieldType)> = names.iter().map(|name| (name.as_str(), OBJECT)).collect();
    heap.add_class(name, None, &fields, &[])
}

/// Adds an instance whose fields take `bytes` bytes. All fields are references to `to`, and the last may be cut off.
fn add_instance(heap: &mut HeapBuilder, id: u64, class: u64, bytes: usize, to: u64) {
    let mut body = Body::new(IdSize::Eight);
    body.instance(id, 1, class, bytes as u32);
    body.raw(&to.to_be_bytes().repeat(bytes.div_ceil(8))[..bytes]);
    heap.add_sub_record(Place::End, body.bytes());
}

fn add_array(heap: &mut HeapBuilder, id: u64, class: u64, elements: &[u64]) {
    let mut body = Body::new(IdSize::Eight);
    body.object_array(id, 1, class, elements.len() as u32);
    for &element in elements {
        body.id(element);
    }
    heap.add_sub_record(Place::End, body.bytes());
}

fn built(heap: &HeapBuilder, options: Options) -> (Built, Classes) {
    let source = Source::from_bytes(heap.try_build().unwrap().bytes);
    let header = record::header(&source).unwrap();
    let outline = Outline::from_source(&source, &header);
    let mut plan = Plan::new(&source, &header, &outline);
    let store = Store::new(None);
    let context = Context::new(&source, &header, &outline, &options, &Silent, &store);
    let built = build::build(&context, &mut plan);
    (built.unwrap(), plan.classes)
}

fn build(heap: &HeapBuilder) -> (Built, Classes) {
    built(heap, Options::default())
}

fn telling_fields(heap: &HeapBuilder) -> (Built, Classes) {
    let options = Options {
        holders: true,
        ..Options::default()
    };
    built(heap, options)
}

/// Returns, for each object with references, which fields its adjacency list contains, as encoded in its shape. The
/// objects are in file order.
fn rows(built: &Built) -> Vec<InRow> {
    let shapes = built.scanned.inner_shapes.iter();
    shapes.map(|&shape| shape::row_layout(shape)).collect()
}

fn number(built: &Built, classes: &Classes, id: u64) -> u32 {
    let split = built.graph.split;
    let class = classes.by_id(ObjectId(id)).map_or(NONE, |class| class.0);
    if class < split.classes {
        class
    } else {
        built.map.by_id(id, split)
    }
}

#[test]
fn a_class_without_a_record_is_not_referred_to() {
    // Test once with ids that are addresses, so that references are recorded as slots, and once with other ids, so that
    // references are recorded as object numbers.
    for odd in [0, 1] {
        let mut heap = heap();
        let known = class(&mut heap, "Known", 2);
        // Add the classes of primitive arrays. They have lower numbers than classes without a record, such as
        // `unknown`.
        for kind in PRIMITIVES {
            heap.primitive_array_class(kind);
        }
        let unknown = BASE + 0x2000 + odd;
        let one = heap.add_instance(
            known,
            &[Ref::Address(unknown).into(), Ref::from(known).into()],
        );
        heap.add_root(Root::JniGlobal { global_ref: 1 }, one);
        heap.set_address(one, BASE + 0x1000 + odd);
        add_instance(&mut heap, BASE + 0x3000 + odd, unknown, 8, 0);
        let (built, classes) = build(&heap);
        assert_eq!(built.map.ranks().is_some(), odd == 0);
        let split = built.graph.split;
        let found = classes.by_id(ObjectId(unknown)).unwrap();
        // The class `unknown` has the lowest number of all classes without a class object.
        assert_eq!(found, ClassIndex(split.classes));
        let one = number(&built, &classes, heap.address(one));
        let held: Vec<u32> = built
            .graph
            .references(ObjectIndex(one))
            .map(|o| o.0)
            .collect();
        assert_eq!(held, [0], "ids + {odd}");
    }
}

#[test]
fn late_classes_widen_the_range_if_their_ids_are_addresses() {
    for (odd, in_range) in [(0, true), (4, false)] {
        let mut heap = HeapBuilder::new(writer::Options {
            framing: Framing::Single,
            classes: Place::End,
            base_address: Some(BASE),
            ..writer::Options::default()
        });
        let known = class(&mut heap, "Known", 1);
        let far = class(&mut heap, "Far", 0);
        heap.set_class_address(far, BASE + (64 << 20) + odd);
        let one = heap.add_instance(known, &[Ref::from(far).into()]);
        let (built, classes) = build(&heap);
        assert_eq!(built.map.ranks().is_some(), in_range, "{odd}");
        let one = number(&built, &classes, heap.address(one));
        let held: Vec<u32> = built
            .graph
            .references(ObjectIndex(one))
            .map(|o| o.0)
            .collect();
        assert_eq!(held, [number(&built, &classes, heap.address(far))]);
    }
}

#[test]
fn two_objects_with_one_id_have_no_distance() {
    let mut heap = heap();
    let known = class(&mut heap, "Known", 1);
    let id = heap.address(known);
    for at in [0x1000, 0x1000, 0x1040] {
        add_instance(&mut heap, BASE + at, id, 8, 0);
    }
    let (built, _) = build(&heap);
    let stats = &built.scanned.stats.classes[0];
    assert_eq!((stats.gap, stats.gap_seen, stats.instances), (0x40, 1, 3));
}

#[test]
fn stack_traces_are_recorded_in_every_segment() {
    let mut heap = HeapBuilder::new(writer::Options {
        framing: Framing::Segments { bytes: 200 },
        ..writer::Options::default()
    });
    let [leaf, inner] = [("Leaf", 0), ("Inner", 1)].map(|(name, n)| class(&mut heap, name, n));
    let mut expected = Vec::new();
    for n in 0..40 {
        for (class, is_leaf) in [(leaf, true), (inner, false)] {
            let values: &[Value] = if is_leaf {
                &[]
            } else {
                &[Ref::from(leaf).into()]
            };
            let object = heap.add_instance(class, values);
            // Serial number 1 means that the stack is unknown.
            let trace = n % 4;
            heap.set_trace(object, trace);
            if trace > 1 {
                expected.push((n, is_leaf, trace));
            }
        }
    }
    let (built, _) = build(&heap);
    assert!(built.scanned.pieces.len() > 5);
    let mut sites = built.scanned.sites.clone();
    sites.sort_unstable_by_key(|&(number, is_leaf, _)| (number, !is_leaf));
    assert_eq!(sites, expected);
    assert_eq!(built.scanned.stats.real_serials, expected.len() as u64);
}

#[test]
fn a_referent_may_be_the_last_field() {
    let mut heap = heap();
    let fields = [("referent", OBJECT)];
    let reference = heap.add_class("java.lang.ref.Reference", None, &fields, &[]);
    let weak = heap.add_class("java.lang.ref.WeakReference", Some(reference), &[], &[]);
    let held = heap.add_instance(reference, &[]);
    let object = heap.add_instance(weak, &[held.into()]);
    let options = || Options {
        refs: Refs::All,
        ..Options::default()
    };
    let (built, classes) = built(&heap, options());
    let [object, held] = [object, held].map(|o| number(&built, &classes, heap.address(o)));
    let found: Vec<u32> = built
        .graph
        .references(ObjectIndex(object))
        .map(|o| o.0)
        .collect();
    assert_eq!(found, [held]);
    // If an object's record ends before the field `referent`, the object has no referent.
    let weak = heap.address(weak);
    add_instance(&mut heap, BASE + 0x5000, weak, 7, BASE + 0x1000);
    let (built, classes) = self::built(&heap, options());
    let cut = number(&built, &classes, BASE + 0x5000);
    assert_eq!(built.graph.references(ObjectIndex(cut)).count(), 0);
}

#[test]
fn objects_that_do_not_go_with_their_class_are_counted_as_its_instances() {
    let mut heap = heap();
    let plain = class(&mut heap, "Plain", 1);
    let array = heap.array_class(plain);
    let root = heap.add_instance(plain, &[Ref::Address(BASE + 0x5000).into()]);
    let [plain, array] = [plain, array].map(|class| heap.address(class));
    let root = heap.address(root);
    for at in [0, 1] {
        add_instance(&mut heap, BASE + 0x5000 + at * 0x100, array, 8, 0);
        add_array(&mut heap, BASE + 0x6000 + at * 0x100, plain, &[root]);
    }
    for tells in [false, true] {
        let (built, classes) = if tells {
            telling_fields(&heap)
        } else {
            build(&heap)
        };
        let [plain, array] = [plain, array].map(|id| classes.by_id(ObjectId(id)).unwrap());
        let counts = [plain, array].map(|c| built.scanned.stats.classes[c.index()].instances);
        assert_eq!(counts, [3, 2]);
        // The last two objects are arrays, but their class is not an array class. Their shapes (encoded classes) show
        // that they are arrays only if the shapes also show which fields are null.
        let shapes = &built.scanned.inner_shapes;
        assert_eq!(shapes.len(), 3);
        let expected = if tells {
            [
                plain.0,
                shape::with_elements(plain.0),
                shape::with_elements(plain.0),
            ]
        } else {
            [plain.0; 3]
        };
        assert_eq!(shapes[..], expected);
    }
}

#[test]
fn null_and_truncated_fields_are_in_the_shape() {
    let mut heap = heap();
    let one = class(&mut heap, "One", 1);
    let three = class(&mut heap, "Three", 3);
    let held = heap.add_instance(one, &[Ref::from(three).into()]);
    let to = Value::from(held);
    heap.add_instance(three, &[to, Value::NULL, to]);
    heap.add_instance(three, &[to, to, to]);
    let id = heap.address(held);
    let [one, three] = [one, three].map(|class| heap.address(class));
    add_instance(&mut heap, BASE + 0x5000, three, 8, id);
    add_instance(&mut heap, BASE + 0x5100, three, 23, id);
    // These instance records are too short even for the first field.
    add_instance(&mut heap, BASE + 0x5200, three, 4, id);
    add_instance(&mut heap, BASE + 0x5300, one, 4, id);
    let (built, _) = telling_fields(&heap);
    let nulls = [0, 0b010, 0, 0b110, 0b100].map(InRow::FieldsBut);
    assert_eq!(rows(&built), nulls);
    assert_eq!(built.scanned.leaf_shapes.len(), 2);
    // `short_bodies` is the number of missing reference fields that the last pass over the objects found.
    assert_eq!(built.scanned.stats.short_bodies, 2 + 1 + 3 + 1);
}

#[test]
fn with_many_fields_nulls_are_listed_and_cuts_reported() {
    const FIELDS: usize = 20;
    let mut heap = heap();
    let many = class(&mut heap, "Many", FIELDS);
    let held = class(&mut heap, "Held", 0);
    // Only in a damaged file can the class of an array have fields.
    let array = class(&mut heap, "[LHeld;", FIELDS);
    let to = heap.address(held);
    heap.add_instance(many, &[Ref::from(held).into()]);
    let [many, array] = [many, array].map(|class| heap.address(class));
    add_instance(&mut heap, BASE + 0x5000, many, FIELDS * 8, to);
    add_instance(&mut heap, BASE + 0x5200, many, 7 * 8, to);
    add_instance(&mut heap, BASE + 0x5400, array, 7 * 8, to);
    let (built, classes) = telling_fields(&heap);
    let all = InRow::FieldsBut(0);
    assert_eq!(rows(&built), [all, all, InRow::First(7), all]);
    let numbers = [0x5000, 0x5200, 0x5400].map(|at| number(&built, &classes, BASE + at));
    let rows = numbers.map(|n| built.graph.references(ObjectIndex(n)).count());
    assert_eq!(rows, [FIELDS, 7, 7]);
}

#[test]
fn a_warning_has_the_bytes_that_are_not_read() {
    let mut heap = heap();
    let known = class(&mut heap, "Known", 0);
    heap.add_instance(known, &[]);
    heap.add_sub_record(Place::End, &[0x77; 11]);
    let (built, _) = build(&heap);
    let warnings: Vec<String> = built
        .scanned
        .warnings
        .iter()
        .map(|w| w.to_string())
        .collect();
    assert_eq!(warnings.len(), 1);
    let text = "heapdiff skips the last 11 bytes of the segment";
    assert!(warnings[0].contains(text), "{warnings:?}");
}

#[test]
fn numbers_beyond_32_bits_are_refused() {
    let most = NONE as usize;
    let refused = |classes, objects, references, has_room| match check_numbers(
        classes, objects, references, has_room,
    ) {
        Ok(()) => None,
        Err(Error::Limit { what, count, limit }) => {
            assert_eq!(limit, u64::from(NONE) - 1);
            Some((what, count))
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(refused(10, most - 21, most - 1, true), None);
    let objects = Some(("objects", u64::from(NONE)));
    assert_eq!(refused(10, most - 20, 0, true), objects);
    assert_eq!(refused(1, 5, 0, false), Some(("objects", 7)));
    let references = Some(("references", u64::from(NONE)));
    assert_eq!(refused(10, 5, most, true), references);
}
