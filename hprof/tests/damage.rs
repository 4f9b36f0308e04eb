//! Tests damaged and hostile input. The result is an error, or a partial result with a warning. It is never a panic, a
//! hang, or memory out of proportion to the file.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Duration;

use hprof::answers::Histogram;
use hprof::{Error, Options, Silent, Snapshot, Source, Warning};
use testdata::writer::{
    Elements, FieldType, FileOrder, Framing, Gzip, HeapBuilder, IdSize, Options as Written, Rng,
    Root, StringForm, Value, compress,
};

mod limits;

use limits::{Cpu, Peak};

/// Returns a heap with every kind of record.
fn heap(options: Written) -> HeapBuilder {
    let mut heap = HeapBuilder::new(options);
    let boot = heap.boot();
    let node = heap.add_class(
        "com.acme.Node",
        Some(boot.object),
        &[
            ("next", FieldType::Object),
            ("name", FieldType::Object),
            ("size", FieldType::Int),
        ],
        &[("head", Value::NULL), ("count", Value::Long(3))],
    );
    let mut next = Value::NULL;
    for i in 0..40 {
        let name = heap.add_string(&format!("node {i}"));
        let this = heap.add_instance(node, &[next, name.into(), Value::Int(i)]);
        next = this.into();
    }
    heap.set_static(node, "head", next);
    let numbers = heap.add_primitive_array(Elements::Long((0..300).collect()));
    let list = heap.add_object_array(boot.object, [numbers, numbers]);
    let thread = heap.add_thread("main", &[]);
    heap.add_local(thread, 0, list);
    heap.add_root(Root::JniGlobal { global_ref: 9 }, list);
    heap
}

/// Returns small dumps in several formats.
fn variety() -> Vec<Vec<u8>> {
    let small = Framing::Segments { bytes: 700 };
    let shuffled = FileOrder::Shuffled(7);
    [
        Written {
            framing: small,
            ..Written::default()
        },
        Written {
            framing: Framing::Single,
            strings: StringForm::Chars,
            ..Written::bits_32()
        },
        Written {
            framing: small,
            order: shuffled,
            ..Written::default()
        },
        Written {
            framing: small,
            order: FileOrder::Runs(2),
            ..Written::default()
        },
        Written {
            framing: Framing::SegmentsWithoutEnd { bytes: 900 },
            ..Written::android()
        },
        Written {
            base_address: Some(0x1001),
            ..Written::default()
        },
    ]
    .map(|options| heap(options).build())
    .into()
}

fn real_dump() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/before.hprof.gz");
    let source = Source::open(&file).unwrap();
    source.to_vec()
}

/// Returns the snapshot and the histogram of a dump with their warnings, or the error.
fn analyse(bytes: &[u8]) -> Result<(Snapshot, Histogram), Error> {
    let mut options = Options::default();
    options.holders = true;
    let source = || Source::from_bytes(bytes.to_vec());
    // The work runs on a thread of rayon. So the many small steps on a small dump are not handed from thread to thread.
    let (histogram, snapshot) = rayon::scope(|_| {
        let histogram = Histogram::from_source(source(), &options, &Silent);
        (histogram, Snapshot::of(source(), &options, &Silent))
    });
    match (snapshot, histogram) {
        (Ok(snapshot), Ok(histogram)) => {
            assert_eq!(snapshot.classes().len(), histogram.classes().len());
            Ok((snapshot, histogram))
        }
        (Err(error), Err(_)) => Err(error),
        (snapshot, histogram) => panic!("{:?} but {:?}", snapshot.err(), histogram.err()),
    }
}

/// Maximum processor time for a damaged or hostile file, in a build without optimisation.
const MOST_CPU: Duration = Duration::from_secs(10);

/// Analyzes the bytes and checks the limits of memory and processor time.
fn within_limits(bytes: &[u8], what: &dyn std::fmt::Display) {
    let (peak, cpu) = (Peak::start(), Cpu::start());
    let outcome = analyse(bytes).map(|(snapshot, _)| snapshot.object_count());
    let took = cpu.took();
    // The limit allows the memory for two analyses, because each analysis has its own copy of the dump.
    let allowed = (64 << 20) + 64 * bytes.len() as u64;
    assert!(
        peak.bytes() <= allowed,
        "{what}: {} bytes, {allowed} allowed, {outcome:?}",
        peak.bytes()
    );
    assert!(took < MOST_CPU, "{what}: {took:?} of processor time");
}

fn objects(histogram: &Histogram) -> u64 {
    histogram.totals().iter().map(|t| t.all.objects).sum()
}

fn has_warning(warnings: &[Warning], text: &str) -> bool {
    warnings.iter().any(|w| w.message.contains(text))
}

#[test]
fn a_dump_cut_at_any_record_is_read_to_the_cut() {
    let _alone = limits::alone();
    for framing in [Framing::Segments { bytes: 700 }, Framing::Single] {
        let whole = heap(Written {
            framing,
            ..Written::default()
        });
        let (bytes, boundaries) = whole.build_with_offsets();
        let all = objects(&analyse(&bytes).unwrap().1);
        let mut before = 0;
        let heap = boundaries
            .iter()
            .find(|&&at| matches!(bytes[at], 0x0c | 0x1c));
        for &cut in boundaries.iter().filter(|&&b| b < bytes.len()) {
            if cut <= *heap.unwrap() {
                assert!(
                    matches!(analyse(&bytes[..cut]), Err(Error::NoHeap { .. })),
                    "{cut}"
                );
                continue;
            }
            let (snapshot, histogram) = analyse(&bytes[..cut]).unwrap();
            // If a dump is cut right before its end record, only that record is missing.
            assert!(
                snapshot.is_partial(),
                "cut at {cut}: {:?}",
                snapshot.warnings()
            );
            assert!(
                histogram.warnings().iter().any(|w| w.partial),
                "cut at {cut}"
            );
            let counted = objects(&histogram);
            assert!(
                counted >= before && counted <= all,
                "cut at {cut}: {counted}"
            );
            before = counted;
            assert!(snapshot.object_count() <= all);
            for warning in snapshot.warnings().iter().filter(|w| w.partial) {
                assert!(
                    warning.offset.is_none_or(|o| o <= cut as u64),
                    "cut at {cut}: {warning}"
                );
            }
        }
        assert_eq!(before, all);
    }
}

#[test]
fn a_dump_cut_anywhere_is_read_to_the_cut() {
    /// Offset of the first object in `real_dump`, which a JVM wrote.
    const HEAP: usize = 1_920_000;
    let _alone = limits::alone();
    let mut rng = Rng::new(11);
    for bytes in variety() {
        for _ in 0..150 {
            let cut = rng.below(bytes.len());
            within_limits(&bytes[..cut], &format_args!("cut at {cut}"));
        }
    }
    let real = real_dump();
    let whole = objects(&analyse(&real).unwrap().1);
    for _ in 0..12 {
        let cut = HEAP + rng.below(real.len() - HEAP);
        let (snapshot, histogram) = analyse(&real[..cut]).unwrap();
        assert!(snapshot.is_partial());
        // A cut dump has fewer objects. Classes come first in the file, so all of them are still there.
        let counted = objects(&histogram);
        assert!(counted < whole, "{counted} of {whole}");
        assert!(
            snapshot
                .warnings()
                .iter()
                .all(|w| w.offset.is_none_or(|o| o <= cut as u64))
        );
    }
}

/// In JDK 17 dumps the roots come last. If the dump is truncated, a warning must name the objects that are used as
/// roots.
#[test]
fn a_dump_without_roots_reports_the_assumed_roots() {
    let _alone = limits::alone();
    let built = heap(Written {
        sticky_classes: true,
        ..Written::default()
    });
    let (bytes, boundaries) = built.build_with_offsets();
    let whole = analyse(&bytes).unwrap().0;
    assert!(
        !has_warning(whole.warnings(), "roots"),
        "{:?}",
        whole.warnings()
    );
    let first_root = boundaries.iter().copied().find(|&at| bytes[at] == 0x05);
    // The byte 0x05 is the tag of a root only inside the heap, so search from the first heap record on.
    let heap_start = boundaries
        .iter()
        .copied()
        .find(|&at| bytes[at] == 0x1c)
        .unwrap();
    let first_root = boundaries
        .iter()
        .copied()
        .find(|&at| at > heap_start && bytes[at] == 0x05)
        .or(first_root)
        .unwrap();
    let (cut, histogram) = analyse(&bytes[..first_root]).unwrap();
    assert!(
        has_warning(cut.warnings(), "no GC roots") && has_warning(cut.warnings(), "all classes"),
        "{:?}",
        cut.warnings()
    );
    assert_eq!(objects(&histogram), cut.object_count());
    // Objects that static fields of the boot classes hold are still reachable. Objects that only the thread held are
    // not.
    let reachable = |s: &Snapshot| {
        s.histogram()
            .iter()
            .map(|t| t.reachable.objects)
            .sum::<u64>()
    };
    assert!(reachable(&cut) > 0 && reachable(&cut) < reachable(&whole));
}

#[test]
fn flipped_bits_do_no_harm() {
    let _alone = limits::alone();
    let mut rng = Rng::new(23);
    for bytes in variety() {
        for round in 0..700 {
            let mut damaged = bytes.clone();
            let mut flipped = Vec::new();
            for _ in 0..=rng.below(4) {
                let at = rng.below(damaged.len());
                damaged[at] ^= 1 << rng.below(8);
                flipped.push(at);
            }
            within_limits(
                &damaged,
                &format_args!("round {round}, flipped at {flipped:?}"),
            );
        }
    }
    let real = real_dump();
    for round in 0..6 {
        let mut damaged = real.clone();
        for _ in 0..20 {
            let at = rng.below(damaged.len());
            damaged[at] ^= 1 << rng.below(8);
        }
        within_limits(&damaged, &format_args!("real dump, round {round}"));
    }
}

#[test]
fn large_numbers_in_every_place_do_no_harm() {
    let _alone = limits::alone();
    let mut rng = Rng::new(37);
    for bytes in variety() {
        for at in 0..bytes.len() {
            // Change each of the first 65 bytes, and about every eighth of the later bytes.
            if at > 64 && rng.below(8) != 0 {
                continue;
            }
            let mut damaged = bytes.clone();
            let end = (at + [1, 2, 4, 8][rng.below(4)]).min(damaged.len());
            let value = [0x00, 0x7f, 0x80, 0xff][rng.below(4)];
            damaged[at..end].fill(value);
            within_limits(&damaged, &format_args!("{value:#x} from {at} to {end}"));
        }
    }
}

#[test]
fn random_bytes_after_a_header_do_no_harm() {
    let _alone = limits::alone();
    let mut rng = Rng::new(41);
    for bytes in variety() {
        let header = bytes.iter().position(|&b| b == 0).unwrap() + 13;
        for round in 0..200 {
            let mut random = bytes[..header].to_vec();
            // Half of the random inputs begin with the header of a heap record, so that the random bytes after it are
            // read as sub-records.
            let len = rng.below(4000);
            if round % 2 == 0 {
                random.extend([0x1c, 0, 0, 0, 0]);
                random.extend((len as u32).to_be_bytes());
            }
            random.extend((0..len).map(|_| rng.next_u64() as u8));
            within_limits(&random, &format_args!("round {round}"));
        }
    }
}

#[test]
fn spliced_records_do_no_harm() {
    let _alone = limits::alone();
    let mut rng = Rng::new(43);
    let (bytes, boundaries) = heap(Written {
        framing: Framing::Segments { bytes: 700 },
        ..Written::default()
    })
    .build_with_offsets();
    for round in 0..400 {
        let mut spliced = bytes.clone();
        for _ in 0..3 {
            let piece = rng.below(boundaries.len() - 1);
            let piece = bytes[boundaries[piece]..boundaries[piece + 1]].to_vec();
            let at = boundaries[rng.below(boundaries.len())].min(spliced.len());
            if rng.below(2) == 0 {
                spliced.splice(at..at, piece);
            } else {
                let end = (at + piece.len()).min(spliced.len());
                spliced.splice(at..end, piece);
            }
        }
        within_limits(&spliced, &format_args!("round {round}"));
    }
}

#[test]
fn damaged_gzip_is_read_to_the_damage() {
    let _alone = limits::alone();
    let mut rng = Rng::new(47);
    let bytes = heap(Written {
        framing: Framing::Segments { bytes: 700 },
        ..Written::default()
    })
    .build();
    for gzip in [Gzip::Plain, Gzip::Blocks { bytes: 1000 }] {
        let packed = compress(&bytes, gzip).unwrap();
        for round in 0..200 {
            let mut damaged = packed.clone();
            match round % 2 {
                0 => damaged.truncate(20 + rng.below(packed.len() - 20)),
                _ => {
                    let at = rng.below(damaged.len());
                    damaged[at] ^= 1 << rng.below(8);
                }
            }
            within_limits(&damaged, &format_args!("{gzip:?}, round {round}"));
        }
        let half = &packed[..packed.len() * 2 / 3];
        let (snapshot, _) = analyse(half).unwrap();
        assert!(
            has_warning(snapshot.warnings(), "gzip"),
            "{:?}",
            snapshot.warnings()
        );
        assert!(snapshot.is_partial() && snapshot.object_count() > 20);
    }
}

/// Tests small files that are made to take very much memory or time.
#[test]
fn amplifying_dumps_stay_within_their_limits() {
    let _alone = limits::alone();
    // One long name for all classes and fields.
    let mut heap = HeapBuilder::new(Written::default());
    let long = "x".repeat(60_000);
    let fields: Vec<(&str, FieldType)> = vec![(&*long, FieldType::Object); 3000];
    for _ in 0..300 {
        heap.add_class(&long, None, &fields[..10], &[]);
    }
    let base = heap.add_class("Base", None, &fields, &[]);
    // Subclasses of a class with many fields. The records of their instances are too short for these fields.
    let below: Vec<_> = (0..400)
        .map(|i| heap.add_class(&format!("Sub{i}"), Some(base), &[], &[]))
        .collect();
    let instance = heap.address(below[399]);
    for i in 0..20_000_u64 {
        let mut short = vec![0x21];
        short.extend((0x9_0000_0000 + i * 16).to_be_bytes());
        short.extend(1_u32.to_be_bytes());
        short.extend(instance.to_be_bytes());
        short.extend(0_u32.to_be_bytes());
        heap.add_sub_record(testdata::writer::Place::End, &short);
    }
    // Thousands of array classes, all aligned to 256 bytes.
    let object = heap.boot().object;
    let classes: Vec<_> = (0..2000)
        .map(|i| {
            let class = heap.add_class(&format!("A{i}"), Some(object), &[], &[]);
            heap.array_class(class)
        })
        .collect();
    for (i, class) in classes.into_iter().enumerate() {
        heap.set_class_address(class, 0xa_0000_0000 + i as u64 * 256);
    }
    let bytes = heap.build();
    within_limits(&bytes, &"amplifying dump");
    // IDs that are far apart, so that a bitmap of the addresses would be large.
    let mut sparse = HeapBuilder::new(Written::default());
    let object = sparse.boot().object;
    for i in 0..50_u64 {
        let this = sparse.add_instance(object, &[]);
        sparse.set_address(this, 0x1000_0000 + i * (1 << 26));
    }
    within_limits(&sparse.build(), &"sparse ids");
    // Two kinds of content that become much larger when decompressed: data that is not a dump, and a dump whose arrays
    // contain only zeros. Each is compressed in blocks and as one gzip member.
    let zeros = vec![0; 48 << 20];
    let mut hollow = HeapBuilder::new(Written::default());
    hollow.boot();
    for _ in 0..3 {
        hollow.add_primitive_array(Elements::Byte(vec![0; 4 << 20]));
    }
    let hollow = hollow.build();
    for gzip in [Gzip::Plain, Gzip::Blocks { bytes: 8 << 20 }] {
        for (bytes, most) in [(&zeros, 128 << 20), (&hollow, 256 << 20)] {
            let packed = compress(bytes, gzip).unwrap();
            assert!(packed.len() < bytes.len() / 100);
            let (peak, cpu) = (Peak::start(), Cpu::start());
            assert_eq!(analyse(&packed).is_ok(), bytes != &zeros);
            assert!(peak.bytes() < most, "{gzip:?}: {} bytes", peak.bytes());
            assert!(cpu.took() < MOST_CPU, "{gzip:?}: {:?}", cpu.took());
        }
    }
}

#[test]
fn a_file_that_is_not_a_dump_is_an_error() {
    let _alone = limits::alone();
    let bytes = heap(Written {
        id_size: IdSize::Eight,
        ..Written::default()
    })
    .build();
    for wrong in [
        &b""[..],
        b"J",
        b"JAVA PROFILE 1.0.2",
        b"\x1f\x8b\x08",
        b"\x1f\x8b\x08\0\0\0\0\0\0\0",
        &bytes[..20],
    ] {
        assert!(analyse(wrong).is_err(), "{wrong:?}");
    }
    // If the file contains only a header, the error does not mention that another dump follows in the file.
    assert!(matches!(
        analyse(&bytes[..31]),
        Err(Error::NoHeap { next: None, .. })
    ));
}
