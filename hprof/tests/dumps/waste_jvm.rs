//! Compares wasted memory with the figures that a program measures for its own objects. The program uses
//! Instrumentation, and tries how short the tables of JDK collections can be. Runs on every JDK found. The figures must
//! be equal to the byte.

use hprof::answers::{Hold, WasteKind, WasteOptions};
use hprof::{ClassIndex, Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch};

fn check(jdk: &Jdk, flags: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let classes = jdk.compile(&testdata::programs::waste()).unwrap();
    let attributes = "Can-Redefine-Classes: true\n";
    let jar = jdk.agent_jar("Waste", attributes, folder.path()).unwrap();
    let mut target = Launch::class(jdk, classes, "Waste")
        .flag("-Xmx256m")
        .flag(format!("-javaagent:{}", jar.display()))
        .flags(flags)
        .start()
        .unwrap();
    let lines = target.lines_until_ready().unwrap();
    let file = folder.path().join("waste.hprof");
    target.dump(&file, DumpOptions::default()).unwrap();
    drop(target);
    let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
    let held = snapshot.classes().by_name("Waste$Held")[0];
    let passes = |class: ClassIndex| snapshot.classes()[class].loader.is_null();
    let options = WasteOptions {
        groups: 3,
        except: &[],
        passes: &passes,
    };
    let waste = snapshot.waste(&options, &Silent).unwrap();
    let mut failures = Vec::new();
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let ["WASTE", kind, field, objects, bytes] = words[..] else {
            panic!("{line}");
        };
        let kind = WasteKind::ALL
            .into_iter()
            .find(|k| k.name() == kind)
            .unwrap();
        let statics = snapshot.classes()[held].statics.iter();
        let place = statics.zip(0..).find(|(s, _)| &*s.name == field).unwrap().1;
        let holders = waste.of(kind).holders.iter();
        let mut own = holders.filter(|h| h.hold == Hold::Static(held, place));
        let found = own.next().map_or((0, 0), |h| (h.objects, h.bytes_to_win));
        if found != (objects.parse().unwrap(), bytes.parse().unwrap()) {
            failures.push(format!("JDK {}: {found:?}: {line}", jdk.version()));
        }
    }
    assert!(lines.len() > 25, "{lines:?}");
    println!(
        "JDK {}: {} kinds of waste compared",
        jdk.version(),
        lines.len()
    );
    failures
}

#[test]
fn waste_equals_the_counts_of_the_program() {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    let modes: [&[&str]; 2] = [
        &["-XX:+UseG1GC"],
        &["-XX:+UseSerialGC", "-XX:-UseCompressedOops"],
    ];
    let both = |jdk| modes.map(|flags| check(jdk, flags)).concat();
    let failures: Vec<String> = jdks.iter().flat_map(both).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
