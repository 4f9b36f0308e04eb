//! Reads recordings that were not written by a JVM, both valid and damaged ones.

use std::io::Write;
use std::panic::catch_unwind;

use flate2::Compression;
use flate2::write::GzEncoder;
use heapdiff_jfr::{Event, Fault, JfrError, Recording};
use testdata::recordings::{Chunk, Field, STARTED_MS, live_objects, plain, pooled, text, varint};
use testdata::writer::Rng;

fn read(bytes: Vec<u8>) -> Recording {
    Recording::from_bytes(bytes).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_profilers_recording_reads_back() {
    let bytes = [live_objects(0).finish(), live_objects(1).finish()].concat();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&bytes).expect("memory");
    for bytes in [bytes, packed.finish().expect("memory")] {
        let recording = read(bytes);
        assert!(!recording.is_partial(), "{:?}", recording.damage);
        assert_eq!((recording.chunks, recording.interval), (2, Some(1024)));
        assert_eq!(recording.of(Event::InBuffer).count(), 600);
        assert_eq!(recording.of(Event::Live).count(), 206);
        let first = *recording.of(Event::Live).next().expect("a sample");
        assert_eq!(first.time_ns, (STARTED_MS + 9_999) * 1_000_000);
        assert_eq!(first.allocated_ns, STARTED_MS * 1_000_000);
        let names = &recording.names;
        let stack = names.stack(first.stack);
        let frames: Vec<_> = stack
            .frames
            .iter()
            .map(|&f| names.frames()[f as usize])
            .map(|f| {
                let (class, method) = (names.text(f.class), names.text(f.method));
                format!("{class}.{method}:{}", f.line)
            })
            .collect();
        assert_eq!(frames, ["com.acme.Cache.load:22", "com.acme.Main.main:12"]);
        assert_eq!(&**names.text(first.class), "com.acme.Page");
        assert_eq!(&**names.text(first.thread), "main");
        assert_eq!(first.size, 48);
        let arrays = recording.of(Event::Live);
        let arrays = arrays.filter(|s| &**names.text(s.class) == "byte[]");
        assert_eq!(arrays.count(), 200);
    }
}

#[test]
fn chunks_that_two_dumps_share_count_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let [first, second] = [0, 1].map(|n| live_objects(n).finish());
    std::fs::write(path("1.jfr"), &first).expect("a file");
    std::fs::write(path("2.jfr"), [first, second].concat()).expect("a file");
    let mut recording = Recording::open(&path("1.jfr")).expect("a recording");
    recording.add(&path("2.jfr")).expect("a recording");
    assert_eq!((recording.chunks, recording.repeated), (2, 1));
    assert_eq!(recording.samples.len(), 806);
}

#[test]
fn files_that_are_not_recordings_are_refused() {
    let refused = |bytes: &[u8]| match Recording::from_bytes(bytes.to_vec()) {
        Ok(recording) => panic!("{recording:?}"),
        Err(error) => error,
    };
    assert_eq!(
        refused(b"JAVA PROFILE 1.0.2\0abc").to_string(),
        "not a JFR recording: it begins with \"JAVA PROFILE 1.0\""
    );
    assert!(matches!(refused(b""), JfrError::NotARecording(_)));
    assert!(matches!(refused(b"FLR"), JfrError::NotARecording(_)));
    let mut other = live_objects(0).finish();
    other[5] = 9;
    let JfrError::Unreadable(damage) = refused(&other) else {
        panic!("format 9");
    };
    assert_eq!(damage.offset, 4);
    assert_eq!(damage.fault, Fault::Version { major: 9, minor: 1 });
    // An async-profiler recording of a JVM that was killed: the header announces 1 GB, and no metadata was written.
    let mut killed = live_objects(0).finish();
    killed[8..16].copy_from_slice(&(1_u64 << 30).to_be_bytes());
    killed.truncate(4000);
    let JfrError::Unreadable(damage) = refused(&killed) else {
        panic!("a chunk that was cut");
    };
    let (size, there) = (1 << 30, 4000);
    assert_eq!(damage.fault, Fault::Cut { size, there });
}

#[test]
fn a_chunk_that_the_jvm_still_wrote_to_is_read() {
    let mut open = live_objects(0).finish();
    // The byte at this offset of the header is the number of flushes.
    open[64] = 3;
    // The file ends with bytes that were written after the last flush, so the header does not include them.
    open.extend(b"and more");
    let recording = read(open);
    assert_eq!(recording.samples.len(), 403);
    assert_eq!(recording.damage[0].offset, 64);
    assert_eq!(recording.damage[0].fault, Fault::Open);
    assert_eq!(recording.damage.len(), 2, "{:?}", recording.damage);
}

#[test]
fn a_truncated_recording_is_read_up_to_the_cut() {
    let first = live_objects(0).finish();
    let bytes = [first.clone(), live_objects(1).finish()].concat();
    for cut in 0..bytes.len() {
        match Recording::from_bytes(bytes[..cut].to_vec()) {
            Ok(recording) => {
                assert!(recording.chunks >= 1, "{cut}");
                assert_eq!(recording.is_partial(), cut != first.len(), "{cut}");
            }
            Err(_) => assert!(cut < first.len(), "{cut}"),
        }
    }
}

#[test]
fn damage_does_no_harm() {
    let chunk = live_objects(0).finish();
    let mut rng = Rng::new(7);
    for run in 0..5000 {
        let mut bytes = chunk.clone();
        for _ in 0..=rng.below(4) {
            // The metadata is at the end of the chunk.
            let at = match rng.below(3) {
                0 => rng.below(bytes.len()),
                1 => rng.below(100),
                _ => bytes.len() - 1 - rng.below(2400),
            };
            match rng.below(3) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes[at] = 0xff,
                _ => bytes[at] = rng.next_u64() as u8,
            }
        }
        let done = catch_unwind(|| heapdiff_jfr::fuzz(&bytes));
        assert!(done.is_ok(), "run {run}");
    }
}

/// Reads a chunk with one event of a type that the caller describes.
fn hostile(describe: impl FnOnce(&mut Chunk), event: &[u8]) -> Recording {
    let mut chunk = Chunk::new(0);
    describe(&mut chunk);
    chunk.event("jdk.ObjectAllocationSample", &[event]);
    read(chunk.finish())
}

#[test]
fn recursive_types_are_refused() {
    let recording = hostile(
        |chunk| {
            chunk.describe("a.Loop", &[plain("self", "a.Loop"), plain("n", "int")]);
            let fields = [plain("startTime", "long"), plain("loop", "a.Loop")];
            chunk.describe("jdk.ObjectAllocationSample", &fields);
        },
        &[1, 2],
    );
    let fault = &recording.damage[0].fault;
    assert!(matches!(fault, Fault::Limit { .. }), "{fault}");
}

#[test]
fn exponentially_nested_types_are_refused() {
    let names = ["a.A", "a.B", "a.C", "a.D", "a.E", "a.F"];
    let recording = hostile(
        |chunk| {
            chunk.describe("a.A", &[]);
            for pair in names.windows(2) {
                chunk.describe(pair[1], &[plain("x", pair[0]); 200]);
            }
            chunk.describe("jdk.ObjectAllocationSample", &[plain("f", "a.F")]);
        },
        &[1],
    );
    let fault = &recording.damage[0].fault;
    assert!(matches!(fault, Fault::Limit { .. }), "{fault}");
}

#[test]
fn an_array_is_as_long_as_its_bytes() {
    let array = |of| Field {
        array: true,
        ..plain("many", of)
    };
    for (of, fields) in [
        ("a.Empty", &[][..]),
        ("a.Full", &[plain("n", "int")]),
        (
            "a.Nested",
            &[Field {
                array: true,
                ..plain("in", "a.Nested")
            }],
        ),
    ] {
        let recording = hostile(
            |chunk| {
                chunk.describe(of, fields);
                chunk.describe(
                    "jdk.ObjectAllocationSample",
                    &[array(of), plain("weight", "long")],
                );
            },
            &[&varint(i64::MAX)[..], &[5; 20]].concat(),
        );
        // If the elements' type has no fields, the elements take no bytes. Then the rest of the event can be read,
        // however many elements there are.
        assert_eq!(
            recording.samples.len(),
            usize::from(of == "a.Empty"),
            "{of}"
        );
        assert_eq!(recording.is_partial(), of != "a.Empty", "{of}");
    }
}

#[test]
fn empty_events_end_a_chunk() {
    let mut chunk = live_objects(0).finish();
    // Set the size of the first event to zero, encoded in four bytes.
    chunk[68..72].copy_from_slice(&[0x80, 0x80, 0x80, 0]);
    let Err(JfrError::Unreadable(damage)) = Recording::from_bytes(chunk) else {
        panic!("no event can be found");
    };
    assert_eq!((damage.offset, damage.fault), (68, Fault::EventSize(0)));
}

#[test]
fn cyclic_constants_are_not_followed() {
    let mut chunk = Chunk::new(0);
    chunk.describe("jdk.types.Symbol", &[plain("string", "java.lang.String")]);
    chunk.describe("java.lang.Class", &[pooled("name", "jdk.types.Symbol")]);
    let fields = [
        pooled("objectClass", "java.lang.Class"),
        plain("weight", "long"),
    ];
    chunk.describe("jdk.ObjectAllocationSample", &fields);
    // The string constant with the key 1 is invalid. Instead of a text, it contains a reference to a string constant:
    // to itself.
    chunk.constant("java.lang.String", 1, &[&[2, 1]]);
    chunk.constant("jdk.types.Symbol", 1, &[&[2, 1]]);
    chunk.constant("java.lang.String", 2, &[&text("a/B")]);
    chunk.constant("jdk.types.Symbol", 2, &[&[2, 2]]);
    for key in [1, 2] {
        chunk.constant("java.lang.Class", key, &[&varint(key)]);
    }
    for class in [1, 2, 3] {
        chunk.event("jdk.ObjectAllocationSample", &[&[class, 9]]);
    }
    let recording = read(chunk.finish());
    let classes = recording.samples.iter();
    let classes: Vec<_> = classes.map(|s| &**recording.names.text(s.class)).collect();
    assert_eq!(classes, ["", "a.B", ""]);
}
