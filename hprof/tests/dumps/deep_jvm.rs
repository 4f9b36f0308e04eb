//! Compares shallow and deep sizes with the sizes that a program measures for its own objects. The program uses
//! Instrumentation and a walk over the fields of objects. Runs on every JDK found, in several JVM modes with different
//! object layouts. The sizes must be equal to the byte.

use std::path::Path;

use hprof::answers::{Deep, DeepOptions, Selector};
use hprof::{ObjectIndex, Options, Silent, Snapshot};
use testdata::jvm::{DumpOptions, Jdk, Launch, Selection};

/// A mode of a JVM: its name, the JVM flags, and the first JDK that supports them.
const MODES: [(&str, &[&str], u32); 6] = [
    ("compressed oops", &["-XX:+UseG1GC"], 0),
    (
        "wide oops",
        &["-XX:+UseSerialGC", "-XX:-UseCompressedOops"],
        0,
    ),
    (
        "alignment 16",
        &["-XX:+UseParallelGC", "-XX:ObjectAlignmentInBytes=16"],
        0,
    ),
    ("ZGC", &["-XX:+UseZGC"], 0),
    (
        "more cached boxes",
        &["-XX:+UseSerialGC", "-XX:AutoBoxCacheMax=1000"],
        0,
    ),
    (
        "compact headers",
        &[
            "-XX:+UseG1GC",
            "-XX:+UnlockExperimentalVMOptions",
            "-XX:+UseCompactObjectHeaders",
        ],
        24,
    ),
];

struct Measured<'a> {
    label: &'a str,
    snapshot: &'a Snapshot,
    deep: Deep<'a>,
    unshared: Deep<'a>,
    failures: Vec<String>,
}

impl Measured<'_> {
    fn check(&mut self, name: &str, objects: &[ObjectIndex], figures: &[u64]) {
        let shallow: u64 = objects
            .iter()
            .map(|&o| self.snapshot.shallow_bytes(o))
            .sum();
        let mut found = vec![shallow, self.deep.of_set(objects).total.bytes];
        if figures.len() > 2 {
            found.push(self.unshared.of_set(objects).total.bytes);
        }
        if let [one] = objects {
            let alone = self.deep.of_one(*one, u64::MAX).unwrap();
            assert_eq!(alone.bytes, found[1], "{name}");
        }
        if found != figures {
            let label = self.label;
            self.failures.push(format!(
                "{label}: {name}: {found:?}, the JVM says {figures:?}"
            ));
        }
    }
}

fn check(jdk: &Jdk, mode: &str, flags: &[&str], folder: &Path) -> Vec<String> {
    let label = format!("JDK {} {mode}", jdk.version());
    let classes = jdk.compile(&testdata::programs::deep_sizes()).unwrap();
    let agent = jdk.agent_jar("DeepSizes", "", folder).unwrap();
    let mut target = Launch::class(jdk, classes, "DeepSizes")
        .flag("-Xmx256m")
        .flag(format!("-javaagent:{}", agent.display()))
        // Without `DisableIntrinsic`, compiled code uses an intrinsic that computes the size of a class object without
        // its static fields.
        .flag("-XX:+UnlockDiagnosticVMOptions")
        .flag("-XX:DisableIntrinsic=_getObjectSize")
        .flags(flags)
        .start()
        .unwrap();
    let lines = target.lines_until_ready().unwrap();
    let file = folder.join(format!("{}.hprof", label.replace(' ', "-")));
    let all = DumpOptions {
        selection: Selection::All,
        ..DumpOptions::default()
    };
    target.dump(&file, all).unwrap();
    drop(target);
    let snapshot = Snapshot::open(&file, &Options::default(), &Silent).unwrap();
    std::fs::remove_file(&file).unwrap();
    let mut skipping = DeepOptions::default();
    skipping.skip_flyweights = true;
    let mut measured = Measured {
        label: &label,
        snapshot: &snapshot,
        deep: snapshot.deep(&DeepOptions::default(), &Silent).unwrap(),
        unshared: snapshot.deep(&skipping, &Silent).unwrap(),
        failures: Vec::new(),
    };
    let select = |name: String| snapshot.select(&Selector::Name(name)).unwrap();
    let mut zoo: Vec<ObjectIndex> = Vec::new();
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let figures = |from: usize| -> Vec<u64> {
            words[from..].iter().map(|w| w.parse().unwrap()).collect()
        };
        match words[0] {
            "SIZE" => {
                let objects = select(format!("DeepSizes$Zoo.{}", words[1]));
                measured.check(words[1], &objects, &figures(2));
                zoo.extend(objects);
            }
            "SET" => {
                zoo.sort_unstable();
                zoo.dedup();
                measured.check("all together", &zoo, &figures(1));
            }
            "STATICS" => {
                let class = Selector::ClassObject("DeepSizes$HasStatics".to_owned());
                let class = snapshot.select(&class).unwrap();
                measured.check("static fields", &class, &figures(1));
            }
            "UNTOLD" => {
                let objects = select("DeepSizes$Untold.interned".to_owned());
                let [shallow, deep, unshared] = figures(1)[..] else {
                    panic!("{line}");
                };
                // The JVM knows that the string is interned and does not count it. The dump does not show that, so
                // heapdiff counts it.
                assert_eq!(unshared, 0);
                measured.check(
                    "a string interned by a call",
                    &objects,
                    &[shallow, deep, deep],
                );
            }
            // Final fields are known only from class files. The test of the command line checks these cases.
            "FINAL" | "FINALSTATICS" | "TRANSIENT" | "BOTH" => {}
            other => panic!("{other}"),
        }
    }
    println!("{label}: {} sizes compared", lines.len());
    assert!(lines.len() > 140 && zoo.len() > 65, "{label}: {lines:?}");
    measured.failures
}

#[test]
fn deep_sizes_equal_those_that_the_program_measures() {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK found");
    let folder = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    for jdk in &jdks {
        for (mode, flags, since) in MODES {
            if jdk.major() >= since {
                failures.append(&mut check(jdk, mode, flags, folder.path()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
