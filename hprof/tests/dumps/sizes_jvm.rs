//! Compares shallow sizes with the JVM's own histogram. Runs on every JDK found, in several JVM modes with different
//! object layouts. The bytes of each class must be equal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hprof::{Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection};

/// JVM flags that change the layout of objects or their addresses, and the JDKs that have these flags.
struct Mode {
    name: &'static str,
    flags: &'static [&'static str],
    /// The first JDK with this mode.
    since: u32,
    /// The last JDK with this mode.
    until: u32,
}

const fn mode(name: &'static str, flags: &'static [&'static str]) -> Mode {
    Mode {
        name,
        flags,
        since: 0,
        until: u32::MAX,
    }
}

const MODES: &[Mode] = &[
    mode("compressed oops", &["-XX:+UseG1GC"]),
    mode("wide oops", &["-XX:+UseG1GC", "-XX:-UseCompressedOops"]),
    mode(
        "alignment 16",
        &["-XX:+UseG1GC", "-XX:ObjectAlignmentInBytes=16"],
    ),
    Mode {
        until: 26,
        ..mode(
            "wide class pointers",
            &["-XX:+UseSerialGC", "-XX:-UseCompressedClassPointers"],
        )
    },
    Mode {
        until: 26,
        ..mode(
            "wide oops and class pointers",
            &[
                "-XX:+UseSerialGC",
                "-XX:-UseCompressedClassPointers",
                "-XX:-UseCompressedOops",
            ],
        )
    },
    Mode {
        since: 24,
        ..mode(
            "compact headers",
            &[
                "-XX:+UseSerialGC",
                "-XX:+UnlockExperimentalVMOptions",
                "-XX:+UseCompactObjectHeaders",
            ],
        )
    },
    Mode {
        since: 24,
        ..mode(
            "compact headers, wide oops, alignment 16",
            &[
                "-XX:+UseParallelGC",
                "-XX:+UnlockExperimentalVMOptions",
                "-XX:+UseCompactObjectHeaders",
                "-XX:-UseCompressedOops",
                "-XX:ObjectAlignmentInBytes=16",
            ],
        )
    },
    mode("ZGC", &["-XX:+UseZGC"]),
    mode("Parallel", &["-XX:+UseParallelGC"]),
];

/// Objects and bytes of each class name.
type Table = BTreeMap<String, (u64, u64)>;

fn jvm(histogram: &testdata::jvm::Histogram) -> Table {
    let mut table = Table::new();
    for class in &histogram.classes {
        let total = table.entry(class.class.clone()).or_default();
        *total = (total.0 + class.instances, total.1 + class.bytes);
    }
    table
}

fn ours(classes: &hprof::records::Classes, totals: &[hprof::sizes::ClassTotal]) -> Table {
    let mut table = Table::new();
    for ((_, class), total) in classes
        .iter()
        .zip(totals)
        .filter(|(_, t)| t.all.objects > 0)
    {
        let line = table.entry(class.name.to_string()).or_default();
        *line = (line.0 + total.all.objects, line.1 + total.all.bytes);
    }
    table
}

/// Class objects of the primitive types and `void`, which have no class record.
const PRIMITIVE_MIRRORS: u64 = 9;

/// True if the figures of a class differ from the JVM's figures in a way that the following exceptions allow.
fn excepted(class: &str, ours: (u64, u64), jvm: (u64, u64), unlinked: u64) -> bool {
    match class {
        // The histogram counts class objects in the CDS archive that no class uses yet; the dump has only those of
        // loaded classes.
        "java.lang.Class" if ours.0 < jvm.0 => true,
        // A class that is loaded but not linked yet has no record in the dump, so the sizes of its static fields are
        // unknown.
        "java.lang.Class" => ours.0 == jvm.0 && ours.1 <= jvm.1 && jvm.1 - ours.1 <= unlinked * 256,
        _ => false,
    }
}

/// Adds filler arrays, which fill unused heap space, to `int[]`. Since JDK 19, the JVM's histogram lists them under
/// their own name, but a dump has them as `int[]`.
fn join_fillers(table: &mut Table) {
    if let Some(fillers) = table.remove("jdk.internal.vm.FillerElement[]") {
        let ints = table.entry("int[]".into()).or_default();
        *ints = (ints.0 + fillers.0, ints.1 + fillers.1);
    }
}

fn check(jdk: &Jdk, mode: &Mode, folder: &Path) -> Vec<String> {
    let label = format!("JDK {} {}", jdk.version(), mode.name);
    let classes = jdk.compile(&testdata::programs::layout_zoo()).unwrap();
    let mut target = Launch::class(jdk, classes, "LayoutZoo")
        .flag("-Xmx256m")
        .flags(mode.flags)
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let file = folder.join(format!("{}.hprof", label.replace([' ', ','], "-")));
    let before = jvm(&target.histogram(Selection::All).unwrap());
    let all = DumpOptions {
        selection: Selection::All,
        ..DumpOptions::default()
    };
    target.dump(&file, all).unwrap();
    let after = jvm(&target.histogram(Selection::All).unwrap());
    drop(target);

    let options = Options::default();
    let snapshot = Snapshot::open(&file, &options, &Silent).unwrap();
    let histogram = hprof::answers::Histogram::open(&file, &options, &Silent).unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut failures: Vec<String> = snapshot
        .warnings()
        .iter()
        .chain(&snapshot.layout_doubt())
        .map(|w| format!("{label}: {w}"))
        .collect();
    // The JVM reports the width of references in a system property. Heapdiff infers the width without this property,
    // and the test compares the two.
    let [mode] = snapshot.system_properties(["java.vm.compressedOopsMode"]);
    let stated = if mode.is_some() { 4 } else { 8 };
    if snapshot.layout().reference != stated || snapshot.jvm().is_none() {
        failures.push(format!("{label}: {mode:?}, but {:?}", snapshot.layout()));
    }
    let table = ours(snapshot.classes(), &snapshot.histogram());
    if table != ours(histogram.classes(), histogram.totals()) {
        failures.push(format!("{label}: snapshot and histogram disagree"));
    }

    let class = snapshot.class_class().unwrap();
    let mirrors = snapshot.histogram()[class.index()].all.objects;
    let unlinked = mirrors - snapshot.classes().dumped() as u64 - PRIMITIVE_MIRRORS;
    let (mut before, mut after) = (before, after);
    join_fillers(&mut before);
    join_fillers(&mut after);
    let names: BTreeSet<&String> = table.keys().chain(before.keys()).collect();
    let (mut compared, mut moved) = (0, 0);
    for name in names {
        let of = |table: &Table| table.get(name).copied().unwrap_or_default();
        if of(&before) != of(&after) {
            // The number of objects changed between two histograms of the JVM, because the diagnostic command itself
            // creates objects.
            moved += 1;
            continue;
        }
        compared += 1;
        let (ours, jvm) = (of(&table), of(&before));
        if ours != jvm && !excepted(name, ours, jvm, unlinked) {
            failures.push(format!("{label}: {name}: {ours:?}, the JVM says {jvm:?}"));
        }
    }
    println!(
        "{label}: {compared} classes compared, {moved} left out, {:?}",
        snapshot.layout()
    );
    if compared < 800 || moved > 40 {
        failures.push(format!(
            "{label}: only {compared} classes compared, {moved} left out"
        ));
    }
    failures
}

#[test]
fn class_bytes_equal_those_of_the_jvm() {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    let folder = tempfile::tempdir().unwrap();
    // Run one JVM of each version at a time.
    let failures: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = jdks
            .iter()
            .map(|jdk| {
                let folder = folder.path();
                scope.spawn(move || {
                    let has = |mode: &&Mode| (mode.since..=mode.until).contains(&jdk.major());
                    MODES
                        .iter()
                        .filter(has)
                        .flat_map(|mode| check(jdk, mode, folder))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        runs.into_iter()
            .flat_map(|run| run.join().unwrap())
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
