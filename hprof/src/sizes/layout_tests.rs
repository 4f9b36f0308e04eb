//! Tests of the inferred layout with handmade classes and measurements: each rule on both sides of its threshold.

use super::*;
use crate::bytes::source::Source;
use crate::graph::plan::Plan;
use crate::records::forked::{Forked, Recorded};
use crate::records::outline::Outline;
use crate::records::record;
use testdata::writer::FieldType::{Int, Long, Object};
use testdata::writer::{ClassId, FieldType, HeapBuilder, Options, Value};

/// Classes whose ids are addresses, and the measurements of a heap. The heap is empty at first.
struct World {
    classes: Classes,
    stats: Stats,
}

struct Class {
    name: &'static str,
    above: Option<usize>,
    fields: &'static [(&'static str, FieldType)],
    statics: &'static [(&'static str, Value)],
    at: u64,
}

const fn class(name: &'static str, at: u64, fields: &'static [(&'static str, FieldType)]) -> Class {
    Class {
        name,
        above: None,
        fields,
        statics: &[],
        at,
    }
}

const INT: &[(&str, FieldType)] = &[("a", Int)];
const LONG: &[(&str, FieldType)] = &[("a", Long)];

const MODEL: Model = Model {
    reference: 4,
    header: 12,
    array_header: 16,
    align: 8,
    order: Order::Packed,
};

impl World {
    fn new(made: &[Class]) -> Self {
        let mut heap = HeapBuilder::new(Options::default());
        let mut ids: Vec<ClassId> = Vec::new();
        for class in made {
            let above = class.above.map(|i| ids[i]);
            let id = heap.add_class(class.name, above, class.fields, class.statics);
            heap.set_class_address(id, class.at);
            ids.push(id);
        }
        let source = Source::from_bytes(heap.try_build().unwrap().bytes);
        let header = record::header(&source).unwrap();
        let outline = Outline::read(&source, &header, 0);
        let classes = Plan::new(&source, &header, &outline).classes;
        let stats = Stats::new(&classes, 8);
        Self { classes, stats }
    }

    fn class(&self, name: &str) -> ClassIndex {
        self.classes.by_name(name)[0]
    }

    /// Sets the number of instances of a class, the smallest distance from an instance to the next object, and the
    /// number of instances with this distance.
    fn measure(&mut self, name: &str, gap: u64, seen: u64, instances: u64) {
        let class = self.class(name);
        let stats = &mut self.stats.classes[class.index()];
        (stats.gap, stats.gap_seen, stats.instances) = (gap, seen, instances);
        stats.gap_at = 1 << 60;
        self.stats.address_bits |= 8;
    }

    fn gaps(&self) -> Vec<Gap> {
        let mirrors = Mirrors::new(&self.classes, &self.stats);
        let classes = self.classes.iter();
        classes
            .map(|(i, _)| Gap::new(&self.stats, i, &mirrors, &self.classes))
            .collect()
    }

    fn infer(&self) -> Sizes {
        Sizes::infer(&self.classes, &self.stats, 8, &LiveObjects::default())
    }

    fn chosen(&self) -> (u32, u32, Order) {
        let mirrors = Mirrors::new(&self.classes, &self.stats);
        let model = choose(
            &self.classes,
            &mut self.gaps(),
            None,
            &mirrors,
            &self.stats,
            8,
            8,
        );
        (model.0.reference, model.0.header, model.0.order)
    }
}

#[test]
fn fields_that_do_not_fit_show_that_ids_are_not_addresses() {
    let below = Class {
        above: Some(0),
        ..class("Below", 0x2000, LONG)
    };
    let classes = [class("Above", 0x1000, LONG), below];
    for (above, below, expected) in [
        (None, Some(15), true),
        (None, Some(16), false),
        // The fields have 16 bytes: the superclass's field is counted only once.
        (None, Some(20), false),
        // Exactly half of the classes is not a majority.
        (Some(8), Some(12), false),
        (Some(7), Some(12), true),
        (None, None, false),
    ] {
        let mut world = World::new(&classes);
        for (name, gap) in [("Above", above), ("Below", below)] {
            if let Some(gap) = gap {
                world.measure(name, gap, 5, 5);
            }
        }
        let found = are_ids_too_close(&world.classes, &world.gaps());
        assert_eq!(found, expected, "{above:?} {below:?}");
        assert_eq!(world.infer().modelled, expected);
        assert_eq!((world.infer().doubts().count() > 0), expected);
    }
}

#[test]
fn without_distances_the_usual_layout_is_assumed() {
    let mut world = World::new(&[class("A", 0x1000, LONG), class("B", 0x2000, INT)]);
    world.stats.address_bits = 8;
    let sizes = world.infer();
    let layout = sizes.layout;
    assert_eq!(layout.source, LayoutSource::Assumed);
    assert_eq!(layout.source.name(), "assumed");
    let parts = (layout.reference, layout.header, layout.array_header);
    assert_eq!((parts, layout.align), ((4, 12, 16), 8));
    assert_eq!(sizes.instance(world.class("A")), 24);
    assert_eq!(sizes.instance(world.class("B")), 16);
    assert_eq!(sizes.arrays[world.class("A").index()], (0, 0));

    world.measure("A", 24, 1, 1);
    let source = world.infer().layout.source;
    assert_eq!(source, LayoutSource::Addresses);
    assert_eq!(source.name(), "addresses");
}

#[test]
fn a_class_object_has_its_statics_and_ends_before_the_next() {
    let statics = Class {
        statics: &[
            ("a", Value::Long(1)),
            ("b", Value::Int(2)),
            ("<resolved_references>", Value::NULL),
        ],
        ..class("Statics", 0x2000, &[])
    };
    let classes = [
        class("java.lang.Class", 0x1000, &[("name", Object), ("id", Long)]),
        statics,
        class("Near", 0x3000, &[]),
        class("Nearest", 0x3008, &[]),
    ];
    let mut world = World::new(&classes);
    let sizes = |world: &World| {
        let sizes = world.infer();
        let of = |name| sizes.class_object(world.class(name));
        (of("java.lang.Class"), of("Statics"), of("Near"))
    };
    let own = world.infer().instance(world.class("java.lang.Class"));
    assert!(own >= 24);
    // Three cases: nothing was measured, addresses are not multiples of eight, and addresses are multiples of eight.
    for (bits, near) in [(0, own), (4, own), (8, 8)] {
        world.stats.address_bits = bits;
        assert_eq!(sizes(&world), (own, own + 16, near), "{bits}");
    }
}

#[test]
fn the_alignment_is_taken_from_sixteen_addresses() {
    const NAMES: [&str; 17] = [
        "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q",
    ];
    for (known, objects, expected) in [
        (15, 0, 8),
        (15, 1, 32),
        (16, 0, 32),
        (17, 0, 32),
        (1, 14, 8),
        (1, 15, 32),
        (2, 8, 8),
    ] {
        let classes: Vec<Class> = (1..=known)
            .map(|i| class(NAMES[i as usize - 1], i * 0x20, &[]))
            .collect();
        let mut world = World::new(&classes);
        world.stats.classes[0].instances = objects;
        world.stats.address_bits = if objects > 0 { 0x40 } else { 0 };
        let found = alignment(&world.classes, &world.stats);
        assert_eq!(found, expected, "{known} classes, {objects} objects");
        world.stats.address_bits |= 0x10;
        let finer = alignment(&world.classes, &world.stats);
        assert_eq!(finer, if expected == 8 { 8 } else { 16 });
    }
}

#[test]
fn stack_chunks_have_a_stack_and_its_bitmap() {
    let chunk = class(
        "jdk.internal.vm.StackChunk",
        0x1000,
        &[("size", Int), ("sp", Int)],
    );
    let mut world = World::new(&[chunk, class("A", 0x2000, &[])]);
    let class = world.class("jdk.internal.vm.StackChunk");
    world.stats.stack_chunks.extend([(10, 3), (100, 2)]);
    let number = world.classes.layout(class.0).array as usize;
    let mut sizes = world.infer();
    let own = sizes.instance(class);
    assert_eq!(sizes.arrays[class.index()], (own as u32, STACK));
    // The bitmap has one bit for each half word (4 bytes) of the stack. A stack of 10 words needs a bitmap of one word
    // (64 bits), and a stack of 100 words needs one of four words.
    assert_eq!(sizes.array(class, 10), own + 11 * 8);
    assert_eq!(sizes.array(class, 100), own + 104 * 8);
    let all = (5, 5 * own + (3 * 11 + 2 * 104) * 8);
    assert_eq!(sizes.arrays(class, number, &world.stats), all);
    // With references of 8 bytes, the bitmap has one bit for each word of the stack.
    sizes.layout.reference = 8;
    assert_eq!(sizes.array(class, 64), own + 65 * 8);
    assert_eq!(sizes.array(class, 65), own + 67 * 8);
}

#[test]
fn arrays_are_summed_by_residue_and_quotient() {
    let mut world = World::new(&[class("A", 0x1000, &[])]);
    let class = ClassIndex(world.classes.primitive_array(Kind::Int));
    let number = world.classes.layout(class.0).array;
    let lengths = [0, 1, 2, 7, 8, 9, 20, 1000];
    for len in lengths {
        world.stats.array(number, len);
    }
    let sizes = world.infer();
    let one_by_one = lengths.map(|len| sizes.array(class, len)).iter().sum();
    let all = sizes.arrays(class, number as usize, &world.stats);
    assert_eq!(all, (8, one_by_one));
}

#[test]
fn a_distance_seen_three_times_is_certain() {
    let gap = |bytes, seen, over_model| Gap {
        bytes,
        seen,
        instances: 9,
        over_model,
        marker: Marker::No,
        flattened: 0,
    };
    assert!(!gap(32, 2, true).is_certain());
    assert!(gap(32, 3, true).is_certain());
    assert!(!gap(u64::MAX, 3, true).is_certain());
    for (gap, settled) in [
        (gap(16, 1, false), 16),
        (gap(24, 1, false), 24),
        (gap(32, 2, true), 24),
        (gap(32, 3, true), 32),
        (gap(32, 3, false), 24),
        (gap(u64::MAX, 9, true), 24),
    ] {
        assert_eq!(gap.resolve_size(24), settled, "{gap:?}");
    }
}

#[test]
fn a_layout_needs_far_more_evidence_than_contradictions() {
    for (equal, nearer, farther, proven) in [
        (0, 0, 0, false),
        (1, 0, 0, true),
        (4, 1, 0, false),
        (5, 1, 0, true),
        (8, 2, 0, false),
        (9, 2, 0, true),
        (3, 0, 3, false),
        (4, 0, 3, true),
        (5, 1, 5, false),
    ] {
        let mut agreement = Agreement::default();
        for (count, measured) in [(equal, 24), (nearer, 16), (farther, 32)] {
            (0..count).for_each(|_| agreement.count(24, measured));
        }
        let counts = (agreement.equal, agreement.nearer, agreement.farther);
        assert_eq!(counts, (equal, nearer, farther));
        assert_eq!(agreement.is_exact_layout(), proven, "{counts:?}");
    }
}

#[test]
fn the_layout_that_fits_most_distances_is_chosen() {
    let classes = [class("Q", 0x1000, INT), class("P", 0x2000, INT)];
    // Without evidence, the first of the possible layouts is chosen.
    let mut world = World::new(&classes);
    assert_eq!(world.chosen(), (4, 12, Order::Packed));
    // The distance of 24 bytes is evidence for a header of 16 bytes, because a field of type `int` follows the header.
    world.measure("P", 24, 5, 5);
    assert_eq!(world.chosen(), (4, 16, Order::Packed));
    // One object whose distance to the next object is too small outweighs four objects at the expected distance.
    world.measure("P", 24, 20, 20);
    for (near, header) in [(4, 16), (6, 12)] {
        world.measure("Q", 16, 1, near);
        assert_eq!(world.chosen().1, header, "{near}");
    }
}

#[test]
fn adjacent_class_objects_bound_their_size() {
    let statics = Class {
        statics: &[("a", Value::Long(1)), ("<init_lock>", Value::NULL)],
        ..class("Statics", 0x1200, &[])
    };
    let many = Class {
        statics: &[("a", Value::Long(1)), ("b", Value::Long(1))],
        ..class("Many", 0x1800, &[])
    };
    let classes = [
        // The class object of A has the lowest address, 64. No class object precedes it, so 64 is not the size of a
        // class object.
        class("A", 0x40, &[]),
        class("java.lang.Class", 0x1000, &[]),
        statics,
        class("B", 0x1200 + 104, &[]),
        // Two distances are too small for a class object: the distance from C to D is smaller than a header, and the
        // distance from Many to E is smaller than the static fields of Many.
        class("C", 0x1700, &[]),
        class("D", 0x1708, &[]),
        many,
        class("E", 0x1808, &[]),
    ];
    let world = World::new(&classes);
    let mirrors = Mirrors::new(&world.classes, &world.stats);
    assert_eq!(mirrors.next(0x40), Some(0x1000));
    assert_eq!(mirrors.next(0x3f), Some(0x40));
    assert_eq!(mirrors.next(0x1808), None);
    // The distance from the class object of Statics to the class object of B is 104 bytes. A static field of type
    // `long` takes 8 of these bytes.
    assert_eq!(max_mirror_size(&world.classes, &MODEL, &mirrors), Some(96));

    let class = world.class("java.lang.Class");
    for (bytes, expected) in [(200, (96, 1)), (96, (96, 5)), (88, (88, 5))] {
        let mut gaps = world.gaps();
        gaps[class.index()] = Gap {
            bytes,
            seen: 5,
            instances: 5,
            over_model: true,
            marker: Marker::No,
            flattened: 0,
        };
        choose(
            &world.classes,
            &mut gaps,
            Some(class),
            &mirrors,
            &world.stats,
            8,
            8,
        );
        let found = &gaps[class.index()];
        assert_eq!((found.bytes, found.seen), expected);
    }
}

#[test]
fn arrays_show_the_size_of_the_header() {
    for (slack, header) in [(16, 12), (12, 8)] {
        let mut world = World::new(&[class("A", 0x1000, &[])]);
        world.stats.array_slack[Kind::Int as usize] = slack;
        assert_eq!(world.chosen(), (4, header, Order::Packed));
    }
    // Empty arrays of references do not show the width of references. Arrays with elements show this width.
    for (narrow, wide, reference) in [(16, 16, 4), (16, -24, 4), (56, 16, 8)] {
        let mut world = World::new(&[class("A", 0x1000, &[])]);
        world.stats.array_slack[Kind::Int as usize] = 16;
        world.stats.array_slack[Kind::Object as usize] = narrow;
        world.stats.array_slack_wide = wide;
        assert_eq!(world.chosen(), (reference, 12, Order::Packed));
    }
}

#[test]
fn the_variant_of_a_class_is_the_one_that_fits_its_distance() {
    // The class has no field `bottom`. If the JVM adds fields, an instance has 40 bytes. If the JVM adds no fields, it
    // has 24 bytes.
    let chunk = class(
        "jdk.internal.vm.StackChunk",
        0x1000,
        &[("size", Int), ("sp", Int)],
    );
    let mut world = World::new(&[chunk]);
    let name = "jdk.internal.vm.StackChunk";
    for (gap, size) in [(24, 24), (32, 24), (39, 24), (40, 40), (48, 40)] {
        world.measure(name, gap, 1, 1);
        let gaps = world.gaps();
        let laid = Layouts::new(&world.classes, &MODEL, &gaps, false).of(world.class(name));
        assert_eq!(MODEL.size(&laid), size, "{gap}");
    }
}

#[test]
fn subclasses_of_an_enlarged_class_are_enlarged() {
    let below = Class {
        above: Some(0),
        ..class("Below", 0x2000, INT)
    };
    let mut world = World::new(&[class("Above", 0x1000, LONG), below]);
    for (gap, surplus, size) in [
        // The subclass's field fills the hole before the long.
        (24, true, 24),
        (24, false, 24),
        (40, true, 48),
        (40, false, 24),
    ] {
        world.measure("Above", gap, 5, 5);
        let gaps = world.gaps();
        let mut layouts = Layouts::new(&world.classes, &MODEL, &gaps, surplus);
        let laid = layouts.of(world.class("Below"));
        assert_eq!(MODEL.size(&laid), size, "{gap} {surplus}");
    }
}

#[test]
fn the_distances_of_a_forked_dump_are_sizes() {
    let recorded = |reference, align| {
        Some(Recorded {
            name: 1,
            reference,
            align,
        })
    };
    // The class has a single instance. Its distance to the next object agrees with no layout.
    let mut world = World::new(&[class("Own", 0x1000, LONG)]);
    world.measure("Own", 48, 1, 1);
    let own = world.class("Own");
    assert_eq!(world.infer().instance(own), 24);
    for (recorded, align) in [(None, 16), (recorded(8, 16), 16), (recorded(8, 8), 8)] {
        world.classes.forked = Some(Forked {
            recorded,
            made_up: Vec::new(),
        });
        let sizes = world.infer();
        assert_eq!(sizes.instance(own), 48);
        assert_eq!(sizes.layout.align, align);
        let reference = recorded.map_or(4, |r: Recorded| r.reference);
        assert_eq!(sizes.layout.reference, reference, "{recorded:?}");
    }
}
