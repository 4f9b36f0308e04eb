//! Tests the JVM's system properties, and what they reveal about its object layout.

use hprof::{Options, Silent, Snapshot, Source};
use testdata::writer::{self, FieldType, HeapBuilder, JvmLayout};

const HOTSPOT: [(&str, &str); 3] = [
    ("java.vm.name", "OpenJDK 64-Bit Server VM"),
    ("java.specification.version", "17"),
    ("java.vm.version", "17.0.15+6"),
];
const MODE: (&str, &str) = ("java.vm.compressedOopsMode", "Zero based");

/// Opens a heap with this layout, whose JVM has these properties.
fn open(options: writer::Options, properties: &[(&str, &str)]) -> Snapshot {
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    heap.set_system_properties(properties);
    // Enough objects with references, so that the distances between objects reveal the width of references.
    let pair = heap.add_class(
        "com.acme.Pair",
        Some(boot.object),
        &[("left", FieldType::Object), ("right", FieldType::Object)],
        &[],
    );
    for _ in 0..100 {
        let left = heap.add_instance(boot.object, &[]);
        heap.add_instance(pair, &[left.into(), left.into()]);
        heap.add_object_array(boot.object, [left, left, left]);
    }
    let source = Source::from_bytes(heap.build());
    Snapshot::of(source, &Options::default(), &Silent).unwrap()
}

fn laid_out(layout: JvmLayout) -> writer::Options {
    writer::Options {
        layout,
        ..writer::Options::default()
    }
}

#[test]
fn properties_are_read_from_every_bucket() {
    let many: Vec<(String, String)> = (0..30)
        .map(|i| (format!("k{i}"), format!("v{i}")))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(k, v)| (&**k, &**v)).collect();
    let snapshot = open(writer::Options::default(), &many);
    for (key, value) in many {
        assert_eq!(snapshot.system_properties([key])[0].as_deref(), Some(value));
    }
    assert_eq!(snapshot.system_properties(["k30"])[0], None);
    let [last, none, first] = snapshot.system_properties(["k29", "k", "k0"]);
    assert_eq!(
        (last.as_deref(), none, first.as_deref()),
        (Some("v29"), None, Some("v0"))
    );
}

#[test]
fn a_jvm_that_contradicts_the_distances_raises_doubt() {
    let compressed = [&HOTSPOT[..], &[MODE]].concat();
    let doubt = |layout, properties: &[(&str, &str)]| {
        let snapshot = open(laid_out(layout), properties);
        assert_eq!(u64::from(snapshot.layout().reference), layout.reference);
        let doubt = snapshot.layout_doubt();
        assert!(
            doubt
                .as_ref()
                .is_none_or(|d| !d.partial && d.offset.is_none())
        );
        assert!(!snapshot.is_partial());
        doubt.map(|d| d.message)
    };
    assert_eq!(doubt(JvmLayout::COMPRESSED, &compressed), None);
    assert_eq!(doubt(JvmLayout::WIDE, &HOTSPOT), None);
    assert_eq!(
        doubt(JvmLayout::WIDE, &compressed).as_deref(),
        Some(
            "sizes may be wrong: the JVM has java.vm.compressedOopsMode=Zero based, which means references of 4 bytes, but the object addresses in the dump fit references of 8 bytes"
        )
    );
    assert_eq!(
        doubt(JvmLayout::COMPRESSED, &HOTSPOT).as_deref(),
        Some(
            "sizes may be wrong: the JVM has no java.vm.compressedOopsMode, which means references of 8 bytes, but the object addresses in the dump fit references of 4 bytes"
        )
    );
}

#[test]
fn a_jvm_without_properties_raises_no_doubt() {
    for properties in [
        &[][..],
        // Other JVMs and old versions of HotSpot do not set `java.vm.compressedOopsMode`.
        &[
            ("java.vm.name", "Eclipse OpenJ9 VM"),
            ("java.specification.version", "17"),
        ],
        &[
            ("java.vm.name", "OpenJDK 64-Bit Server VM"),
            ("java.specification.version", "1.8"),
        ],
        &[("java.specification.version", "17")],
    ] {
        let snapshot = open(laid_out(JvmLayout::COMPRESSED), properties);
        assert_eq!(snapshot.layout_doubt(), None, "{properties:?}");
    }
    assert_eq!(
        open(writer::Options::bits_32(), &HOTSPOT).layout_doubt(),
        None
    );
}

#[test]
fn a_jvm_that_contradicts_the_assumed_layout_raises_doubt() {
    let doubt = |properties: &[(&str, &str)]| {
        let mut heap = HeapBuilder::new(laid_out(JvmLayout::COMPRESSED));
        heap.boot();
        heap.set_system_properties(properties);
        let objects: Vec<_> = heap.objects().collect();
        for (i, object) in (0..).zip(objects) {
            heap.set_address(object, 0x100_0001 + 3 * i);
        }
        let source = Source::from_bytes(heap.build());
        let snapshot = Snapshot::of(source, &Options::default(), &Silent).unwrap();
        snapshot.layout_doubt().map(|d| d.message)
    };
    let told = doubt(&HOTSPOT).unwrap_or_default();
    let ends = "but heapdiff assumes references of 4 bytes";
    assert!(told.ends_with(ends), "{told}");
    assert_eq!(doubt(&[&HOTSPOT[..], &[MODE]].concat()), None);
}
