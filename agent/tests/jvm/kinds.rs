//! Tests that every way to allocate is sampled, following OpenJDK's HeapMonitor tests.

use std::collections::HashSet;

use heapdiff_sites::Line;
use testdata::jvm::Jdk;
use testdata::programs;

use crate::dumped::Dumped;
use crate::{cc, jdks, launch};

const N: usize = 200;

/// The name of a method, a type, and the number of objects of this type that a call of the method allocates.
const KINDS: &[(&str, &str, usize)] = &[
    ("newObject", "Kinds$Plain", 1),
    ("intArray", "int[]", 1),
    ("objectArray", "Kinds$Plain[]", 1),
    ("twoDimensions", "int[][]", 1),
    ("twoDimensions", "int[]", 3),
    ("threeDimensions", "int[][][]", 1),
    ("threeDimensions", "int[][]", 2),
    ("threeDimensions", "int[]", 6),
    ("cloned", "Kinds$Copy", 1),
    ("clonedArray", "int[]", 1),
    ("clonedObjects", "Kinds$Plain[]", 1),
    ("copyOf", "int[]", 1),
    ("reflection", "Kinds$Plain", 1),
    ("arrayReflection", "Kinds$Plain[]", 1),
    ("methodHandle", "Kinds$Plain", 1),
    ("deserialised", "Kinds$Saved", 1),
    ("lambda", "Kinds$$Lambda", 1),
    ("lambda", "java.lang.Integer", 0),
    ("boxed", "java.lang.Integer", 1),
    ("concatenated", "java.lang.String", 1),
    ("record", "Kinds$Point", 1),
    ("nullPointer", "java.lang.NullPointerException", 1),
    ("outOfBounds", "java.lang.ArrayIndexOutOfBoundsException", 1),
    ("thread", "java.lang.Thread", 1),
    ("viaJni", "Kinds$Plain", 1),
    ("arrayViaJni", "int[]", 1),
];

fn run(jdk: &Jdk, flags: &[&str]) -> Dumped {
    let folder = tempfile::tempdir().unwrap();
    let native = folder.path().join("libkinds.so");
    let source = programs::agent("kinds.c");
    cc(jdk, &source, &["-shared", "-fPIC"], &native);
    let mut target = launch(jdk, "Kinds", "interval=0,max_samples=2000000")
        // Without this flag, the JVM preallocates exceptions that it throws often.
        .flags(["-Xmx512m", "-XX:-OmitStackTraceInFastThrow"])
        .flags(flags)
        .arg(&native)
        .timeout(std::time::Duration::from_secs(240))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let dumped = Dumped::of(&target);
    let (well, errors) = target.finish_with_errors().unwrap();
    assert!(well, "{errors}");
    dumped
}

fn every_kind(dumped: &Dumped) {
    dumped.assert_complete();
    for &(method, kind, each) in KINDS {
        let through = format!("Kinds.{method}");
        let mut found = dumped.of_kind(&through, kind);
        // The JVM links the call site of a concatenation or a lambda at the first call. The linking also allocates
        // objects.
        let linking = "java.lang.invoke.MethodHandleNatives.linkCallSite";
        found.retain(|sample| !dumped.through(sample.site, linking));
        // On the first call of a method, the JVM creates some strings for the class's name and the constants.
        let more = if kind == "java.lang.String" { 20 } else { 0 };
        if !(each * N..=each * N + more).contains(&found.len()) {
            let odd: Vec<_> = found
                .iter()
                .map(|s| dumped.frames(s.site))
                .collect::<HashSet<_>>()
                .into_iter()
                .collect();
            panic!(
                "{method}: {} of {kind}, {} expected, below {odd:#?}",
                found.len(),
                each * N
            );
        }
        for sample in found {
            let referent = sample.referent.as_deref().unwrap();
            // Names of hidden classes in the dump have a suffix that the JVM adds.
            assert!(
                referent == kind || kind == "Kinds$$Lambda" && referent.starts_with(kind),
                "{method}: {referent}"
            );
            assert_eq!(sample.thread, "main");
        }
    }
    // The program allocates ten arrays of 2 MB outside of TLABs.
    let large = dumped.of_kind("Kinds.large", "byte[]");
    let sizes: Vec<i64> = large.iter().map(|sample| sample.size).collect();
    assert_eq!(sizes.len(), 10);
    assert!(sizes.iter().all(|size| (*size - (2 << 20)).abs() <= 24));
    // The uids of all samples are different.
    let uids: HashSet<i64> = dumped.samples.iter().map(|sample| sample.uid).collect();
    assert_eq!(uids.len(), dumped.samples.len());

    // Stacks that are deeper than the option `depth` are truncated, and are marked as truncated.
    let deep: Vec<_> = dumped
        .samples
        .iter()
        .filter(|s| s.kind == "Kinds$Deep")
        .collect();
    assert_eq!(deep.len(), 10);
    for sample in deep {
        let site = dumped.table.site(sample.site).unwrap();
        assert_eq!(site.frames.len(), 64);
        assert!(site.cut);
        assert!(
            dumped.frames(sample.site)[..60]
                .iter()
                .all(|frame| frame == "Kinds.down")
        );
    }
    // 500 threads allocate ten objects each.
    let of_threads: Vec<_> = dumped
        .samples
        .iter()
        .filter(|sample| sample.kind == "Kinds$OfThread")
        .collect();
    assert_eq!(of_threads.len(), 5000);
    let names: HashSet<&str> = of_threads.iter().map(|s| &*s.thread).collect();
    assert_eq!(names.len(), 500);
    assert!(names.contains("worker-0") && names.contains("worker-499"));
    let site = of_threads[0].site;
    let frames: Vec<_> = dumped.table.frames(site).collect();
    assert_eq!((frames[0].class, frames[0].method), ("Kinds", "inThread"));
    assert_eq!(frames[0].file, Some("Kinds.java"));
    let source = std::fs::read_to_string(programs::agent("Kinds.java")).unwrap();
    let line = source
        .lines()
        .position(|l| l.contains("new OfThread()"))
        .unwrap()
        + 1;
    assert_eq!(frames[0].line, Line::At(u32::try_from(line).unwrap()));
    assert!(frames.last().is_some_and(|frame| frame.method == "run"));
}

#[test]
fn every_allocation_at_interval_zero() {
    for jdk in jdks() {
        every_kind(&run(&jdk, &[]));
    }
}

#[test]
fn every_allocation_is_sampled_in_the_interpreter() {
    for jdk in jdks() {
        every_kind(&run(&jdk, &["-Xint"]));
    }
}

#[test]
fn virtual_threads() {
    for jdk in jdks().iter().filter(|jdk| jdk.major() >= 21) {
        let mut target = launch(jdk, "Virtual", "interval=0").start().unwrap();
        target.wait_ready(1).unwrap();
        let dumped = Dumped::of(&target);
        dumped.assert_complete();
        let items = dumped.of_kind("Virtual.item", "Virtual$Item");
        assert_eq!(items.len(), 1000);
        let unnamed = items
            .iter()
            .filter(|s| s.thread == "(virtual thread)")
            .count();
        assert_eq!(unnamed, 500);
        let names: HashSet<&str> = items.iter().map(|s| &*s.thread).collect();
        assert_eq!(names.len(), 51);
        assert!(names.contains("job-98"));
        // The frames are those of the virtual thread, not of its carrier.
        assert!(items.iter().all(|s| dumped.through(s.site, "Virtual.work")));
        assert!(
            !items
                .iter()
                .any(|s| dumped.frames(s.site).iter().any(|f| f.contains("ForkJoin")))
        );
        assert!(target.finish().unwrap());
    }
}

/// Allocates 8 million objects of 32 bytes, and arrays of 1,000 to 100,000 ints. Checks that the number of samples of
/// the objects and of the arrays is within 10 % of the number that the interval predicts.
fn volumes(jdk: &Jdk, threads: &str, flags: &[&str]) {
    let mut target = launch(jdk, "Volumes", "interval=64k")
        .flags(["-Xmx256m"])
        .flags(flags)
        .arg(threads)
        .timeout(std::time::Duration::from_secs(240))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let dumped = Dumped::of(&target);
    dumped.assert_complete();
    for (method, objects, low, high) in [
        // The header of an object has 8, 12 or 16 bytes.
        ("objects", 8_000_000.0, 24, 32),
        ("ints1000", 60_000.0, 4_012, 4_016),
        ("ints10000", 6_000.0, 40_012, 40_016),
        ("ints100000", 3_000.0, 400_012, 400_016),
    ] {
        let taken = dumped.taken(&format!("Volumes.{method}"));
        #[allow(clippy::cast_precision_loss, reason = "small")]
        let taken = taken as f64;
        let expected = |size| objects * dumped.sampling.probability(size).unwrap();
        assert!(
            taken > 0.9 * expected(low) && taken < 1.1 * expected(high),
            "JDK {} {flags:?} {threads} threads, {method}: {taken} samples, {} expected",
            jdk.version(),
            expected(low)
        );
    }
    assert!(target.finish().unwrap());
}

#[test]
fn the_number_of_samples_matches_the_interval() {
    for jdk in jdks() {
        volumes(&jdk, "1", &[]);
        volumes(&jdk, "4", &[]);
    }
}

#[test]
fn the_number_of_samples_matches_in_the_interpreter() {
    for jdk in jdks() {
        volumes(&jdk, "1", &["-Xint"]);
    }
}

#[test]
fn the_number_of_samples_matches_with_each_compiler() {
    for jdk in jdks() {
        volumes(&jdk, "2", &["-XX:TieredStopAtLevel=1"]);
        volumes(&jdk, "2", &["-XX:-TieredCompilation"]);
    }
}
