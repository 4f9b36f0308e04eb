//! Counts allocations in real JVMs and compares the counts with what the program allocates.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use heapdiff_sites::{CountedSite, Counts, attach};
use testdata::jvm::{Jdk, Launch, Selection, Target};
use testdata::programs;

use crate::library;

pub(crate) const TOKEN: &str = "test";

/// Returns every JVM into which the agent can be loaded. Some of these JVMs have no Java compiler (`javac`). The
/// environment variable `HEAPDIFF_COUNT_MAJORS` restricts the result to some Java versions.
pub(crate) fn jdks() -> Vec<Jdk> {
    let mut jdks = Jdk::all_for_agent();
    if let Ok(majors) = std::env::var("HEAPDIFF_COUNT_MAJORS") {
        jdks.retain(|jdk| majors.split(',').any(|m| m.parse() == Ok(jdk.major())));
        jdks.dedup_by_key(|jdk| jdk.major());
    }
    assert!(!jdks.is_empty(), "a JDK is needed");
    jdks
}

/// Returns the factor by which the number of allocations is multiplied. The environment variable `HEAPDIFF_COUNT_TIMES`
/// sets this factor; the default is 1.
fn times() -> u64 {
    let times = std::env::var("HEAPDIFF_COUNT_TIMES");
    times.map_or(1, |times| times.parse().unwrap())
}

/// Prints a row for the table that `cargo xtask counting` writes. Called after the test has found that the counts match
/// what the program allocated.
fn row(jdk: &Jdk, flags: &[&str], (t, n): (u64, u64), threads: &str) {
    let of = expected(t, n, USUAL);
    let objects: u64 = of.iter().map(|(.., objects, _)| objects).sum();
    let shown = flags
        .iter()
        .filter(|flag| !flag.contains("UnlockExperimental"));
    let shown: Vec<String> = shown.map(|flag| format!("`{flag}`")).collect();
    let setting = if shown.is_empty() {
        "usual".to_owned()
    } else {
        shown.join(" ")
    };
    println!(
        "counted: | {} | {setting} | {threads} | {objects} | {} |",
        jdk.version(),
        of.len()
    );
}

/// Starts a program in which `t` threads execute each allocating line `n` times. Half of the threads are virtual if the
/// JVM supports them.
fn started(jdk: &Jdk, of: (u64, u64), flags: &[&str]) -> Target {
    let kind = if jdk.major() >= 21 {
        "virtual"
    } else {
        "plain"
    };
    started_with(jdk, of, kind, flags)
}

fn started_with(jdk: &Jdk, (threads, n): (u64, u64), kind: &str, flags: &[&str]) -> Target {
    let classes = jdk.compile(&programs::agent("Counted.java")).unwrap();
    let mut target = Launch::class(jdk, classes, "Counted")
        .flags(["-Xmx256m", "-XX:+EnableDynamicAgentLoading"])
        .flags(flags)
        .arg(threads.to_string())
        .arg(n.to_string())
        .arg(kind)
        .timeout(Duration::from_secs(300))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    target
}

pub(crate) fn ask(target: &Target, options: &str) -> i32 {
    let answer = target.load_agent(&library(), options).unwrap();
    let code = answer.lines().find_map(|l| l.strip_prefix("return code:"));
    code.unwrap_or_else(|| panic!("{answer}"))
        .trim()
        .parse()
        .unwrap()
}

pub(crate) fn begin(target: &Target, options: &str) {
    let options = format!("{}seconds=60,{options}", attach::COUNT);
    assert_eq!(ask(target, &options), attach::DONE, "{}", target.errors());
}

/// Ends the running count and returns its result.
pub(crate) fn end(target: &Target) -> Counts {
    let options = format!("{}{TOKEN}", attach::COUNT_END);
    assert_eq!(ask(target, &options), attach::DONE, "{}", target.errors());
    shown(target, TOKEN)
}

/// Returns the result of a count that has ended. The agent publishes the result in a file in memory. The file's name
/// contains `token`.
pub(crate) fn shown(target: &Target, token: &str) -> Counts {
    let sign = format!("/memfd:{}", attach::counts_file_name(token));
    let pid = target.jvm_pid().unwrap_or_else(|| target.pid());
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let file = files.flatten().map(|file| file.path()).find(|file| {
        let link = fs::read_link(file).unwrap_or_default();
        link.to_string_lossy().starts_with(&sign)
    });
    Counts::decode(&fs::read(file.expect("no counts")).unwrap()).unwrap()
}

/// Returns the number of objects and the bytes, by method and allocated class.
fn by_method(counts: &Counts) -> BTreeMap<(String, String), (u64, Option<u64>)> {
    let sites = counts
        .sites
        .iter()
        .filter(|site| site.class.starts_with("Counted"));
    let of = sites.map(|s| {
        (
            (s.method.clone(), s.allocated.clone()),
            (s.objects, s.bytes),
        )
    });
    let mut all = BTreeMap::new();
    for (key, (objects, bytes)) in of {
        let sum = all.entry(key).or_insert((0, Some(0)));
        sum.0 += objects;
        sum.1 = sum.1.zip(bytes).map(|(a, b): (u64, u64)| a + b);
    }
    all
}

/// Object layout of a JVM: offset of an array's first element, size of a reference, alignment of objects.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    base: u64,
    reference: u64,
    alignment: u64,
}

/// The object layout of a JVM without flags that change it.
pub(crate) const USUAL: Sizes = Sizes {
    base: 16,
    reference: 4,
    alignment: 8,
};

impl Sizes {
    /// Returns the size of an object with one `int` field.
    fn lambda(self) -> u64 {
        let header: u64 = if self.base == 24 { 16 } else { 12 };
        (header + 4).next_multiple_of(self.alignment)
    }

    pub(crate) fn array(self, element: u64, length: u64) -> u64 {
        (self.base + element * length).next_multiple_of(self.alignment)
    }
}

/// Returns the object layout of a JVM that does not compress references.
fn wide(jdk: &Jdk) -> Sizes {
    Sizes {
        // Before Java 15, a JVM without compressed references does not compress class pointers either.
        base: if jdk.major() < 15 { 24 } else { 16 },
        reference: 8,
        ..USUAL
    }
}

/// Returns the flags that select each collector of a JVM, including experimental and generational ones.
fn collectors(jdk: &Jdk) -> Vec<Vec<&'static str>> {
    let all: [&[&str]; 8] = [
        &["-XX:+UseSerialGC"],
        &["-XX:+UseParallelGC"],
        &["-XX:+UseG1GC"],
        &["-XX:+UseShenandoahGC"],
        &["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"],
        &["-XX:+UseZGC"],
        &["-XX:+UseZGC", "-XX:+ZGenerational"],
        &["-XX:+UseEpsilonGC", "-Xmx2g"],
    ];
    let all = all.iter().map(|flags| {
        let experimental = ["-XX:+UnlockExperimentalVMOptions"];
        [&experimental[..], flags].concat()
    });
    all.filter(|flags| {
        let run = Command::new(jdk.java())
            .args(flags)
            .arg("-version")
            .output();
        let run = run.unwrap();
        run.status.success() && !String::from_utf8_lossy(&run.stderr).contains("Ignoring option")
    })
    .collect()
}

/// Returns what the program allocates in one phase with `t` threads and `n` repetitions: method, class, number of
/// objects, and bytes of arrays.
pub(crate) fn expected(
    t: u64,
    n: u64,
    sizes: Sizes,
) -> Vec<(&'static str, &'static str, u64, Option<u64>)> {
    let sum = |each: &dyn Fn(u64) -> u64| Some(t * (0..n).map(each).sum::<u64>());
    let all = |bytes| Some(t * n * bytes);
    let r = sizes.reference;
    let quarter = |k| (0..n).filter(|i| i % 4 == k).count() as u64;
    let even = n.div_ceil(2);
    let other = quarter(2) + quarter(3);
    vec![
        ("object", "Counted$Small", t * n, None),
        ("bytes", "byte[]", t * n, sum(&|i| sizes.array(1, i % 100))),
        ("chars", "char[]", t * n, sum(&|i| sizes.array(2, i % 9))),
        ("ints", "int[]", t * n, sum(&|i| sizes.array(4, i % 7))),
        ("longs", "long[]", t * n, sum(&|i| sizes.array(8, i % 5))),
        (
            "references",
            "Counted$Kept[]",
            t * n,
            sum(&|i| sizes.array(r, i % 11)),
        ),
        ("twoSizes", "int[][]", t * n, all(sizes.array(r, 2))),
        (
            "twoSizes",
            "int[]",
            2 * t * n,
            sum(&|i| 2 * sizes.array(4, i % 3)),
        ),
        (
            "threeOfFour",
            "Counted$Kept[][][][]",
            t * n,
            all(sizes.array(r, 2)),
        ),
        (
            "threeOfFour",
            "Counted$Kept[][][]",
            2 * t * n,
            all(2 * sizes.array(r, 3)),
        ),
        (
            "threeOfFour",
            "Counted$Kept[][]",
            6 * t * n,
            all(6 * sizes.array(r, 4)),
        ),
        ("removed", "Counted$Removed", t * n, None),
        ("point", "Counted$Point", t * n, None),
        ("nested", "Counted$Pair", t * n, None),
        ("nested", "Counted$Small", t * even, None),
        (
            "nested",
            "java.lang.Object[]",
            t * even,
            Some(t * even * sizes.array(r, 2)),
        ),
        ("nested", "byte[]", t * n, all(sizes.array(1, 1))),
        ("branches", "Counted$Small", t * quarter(0), None),
        (
            "branches",
            "byte[]",
            t * quarter(1),
            Some(t * quarter(1) * sizes.array(1, 8)),
        ),
        ("branches", "Counted$Kept", t * 2 * other, None),
        ("branches", "Counted$1", t * other, None),
        ("cloned", "int[]", t * n, all(sizes.array(4, 9))),
        (
            "clonedObjects",
            "java.lang.String[]",
            t * even,
            Some(t * even * sizes.array(r, 2)),
        ),
        (
            "clonedObjects",
            "Counted$Kept[]",
            t * (n - even),
            Some(t * (n - even) * sizes.array(r, 3)),
        ),
        ("copy", "Counted$Shape", t * n, None),
        ("clone", "Counted$Circle", t * n, None),
        (
            "copies",
            "int[]",
            2 * t * n,
            sum(&|i| sizes.array(4, i % 5) + sizes.array(4, 2)),
        ),
        ("copies", "Counted$Kept[]", t * n, all(sizes.array(r, 5))),
        (
            "copies",
            "java.lang.Object[]",
            t * n,
            all(sizes.array(r, 2)),
        ),
        (
            "copies",
            "java.lang.String[]",
            t * n,
            all(sizes.array(r, 1)),
        ),
        ("levels", "Counted$Kept[][]", t * n, all(sizes.array(r, 2))),
        (
            "levels",
            "Counted$Kept[]",
            2 * t * n,
            all(2 * sizes.array(r, 3)),
        ),
        ("levels", "long[][][]", t * n, all(sizes.array(r, 4))),
        ("levels", "long[][]", 4 * t * n, all(4 * sizes.array(r, 0))),
        ("levels", "short[]", t * n, sum(&|i| sizes.array(2, i % 3))),
        ("levels", "Counted$Made[][]", t * n, all(sizes.array(r, 0))),
        ("levels", "int[]", 3 * t * n, all(3 * sizes.array(4, 2))),
        ("texts", "java.lang.String", 3 * t * n, None),
        ("reflected", "Counted$Made", t * n, None),
        (
            "reflectedArray",
            "Counted$Kept[]",
            t * n,
            all(sizes.array(r, 3)),
        ),
        ("lambda", "Counted$$Lambda", t * n, all(sizes.lambda())),
        ("keep", "Counted$Kept", n, None),
        ("all", "java.lang.Thread[]", 1, Some(sizes.array(r, t))),
    ]
}

pub(crate) fn assert_exact(counts: &Counts, (t, n): (u64, u64), sizes: Sizes, which: &str) {
    let found = by_method(counts);
    for (method, class, objects, bytes) in expected(t, n, sizes) {
        let (is, of) = found
            .get(&(method.to_owned(), class.to_owned()))
            .unwrap_or_else(|| panic!("{which}: {method} {class} is missing in {found:#?}"));
        assert_eq!(*is, objects, "{which}: {method} {class}");
        match bytes {
            Some(bytes) => assert_eq!(*of, Some(bytes), "{which}: bytes of {method} {class}"),
            None => assert!(of.is_some_and(|of| of >= 8 * objects), "{which}: {method}"),
        }
    }
    // Three kinds of allocations are not counted: arrays of a negative length, allocations that throw, and those in a
    // method that was running when the count began.
    for method in ["negative", "badCopies", "main"] {
        assert!(!found.keys().any(|(m, _)| m == method), "{which}: {method}");
    }
    // If a class defines its own `clone` method, a call of this method is not counted.
    for class in ["Counted$Circle", "Counted$Single"] {
        let of_copy = ("copy".to_owned(), class.to_owned());
        assert!(!found.contains_key(&of_copy), "{which}: {class}");
    }
    let mut names = counts.sites.iter().map(|site| &site.allocated);
    assert!(names.all(|name| !name.starts_with('(')), "{which}");
    assert_eq!(
        (counts.uncounted, counts.left_alone, counts.refused),
        (0, 0, 0),
        "{counts:#?}"
    );
}

/// If only classes in sampled stacks are counted, fewer classes are rewritten. This requires that the agent samples.
#[test]
fn only_classes_in_sampled_stacks_are_counted() {
    for jdk in jdks() {
        let mut target = started(&jdk, (4, 100), &[]);
        let classes = |options: &str| {
            let code = ask(&target, &format!("{}{options}", attach::COUNT_CLASSES));
            code - attach::CLASSES
        };
        let all = classes("include=^Counted");
        let none = classes("sampled=on");
        assert_eq!(none, attach::NO_SAMPLES - attach::CLASSES);
        assert_eq!(ask(&target, "interval=0"), attach::DONE);
        target.advance(2).unwrap();
        let code = ask(&target, &format!("{}sampled=on", attach::COUNT_CLASSES));
        let sampled = code - attach::CLASSES;
        assert!((1..all).contains(&sampled), "{sampled} of {all}");
        begin(&target, "sampled=on");
        target.advance(3).unwrap();
        let counts = end(&target);
        let found = by_method(&counts);
        let small = ("object".to_owned(), "Counted$Small".to_owned());
        assert_eq!(found[&small].0, 400, "{counts:#?}");
        assert!(
            i32::try_from(counts.classes).unwrap() <= sampled,
            "{counts:#?}"
        );
    }
}

/// Checks the counts of two phases of the program. The other phases before, between and after them are not counted.
fn phase(jdk: &Jdk, (t, n): (u64, u64), sizes: Sizes, flags: &[&str]) {
    let of = (t, n * times());
    let which = format!("JDK {} {flags:?} {of:?}", jdk.version());
    let mut target = started(jdk, of, flags);
    target.advance(2).unwrap();
    for (round, next) in [3, 5].into_iter().enumerate() {
        begin(&target, "");
        target.advance(next).unwrap();
        let counts = end(&target);
        assert_exact(&counts, of, sizes, &format!("{which}, round {round}"));
        let source = fs::read_to_string(programs::agent("Counted.java")).unwrap();
        let line = source.lines().position(|l| l.contains("new Removed(i).v"));
        let site = counts.sites.iter().find(|s| s.method == "removed").unwrap();
        assert_eq!(
            site.line,
            line.and_then(|l| u32::try_from(l + 1).ok()),
            "{which}"
        );
        assert!(counts.classes > 0 && !counts.jdk);
        // For the class whose objects the program keeps, compute the expected bytes from the JVM's own histogram.
        let kept = counts.sites.iter().find(|s| s.method == "keep").unwrap();
        if round == 0 {
            let histogram = target.histogram(Selection::Live).unwrap();
            let per_object = histogram.bytes("Counted$Kept") / histogram.instances("Counted$Kept");
            assert_eq!(kept.bytes, Some(per_object * of.1), "{which}");
        }
        // No count runs during the next phase, so the next result must not contain this phase.
        target.advance(next + 1).unwrap();
        let threads = match (t, jdk.major()) {
            (2.., 21..) => format!("{}, half of them virtual", t),
            _ => t.to_string(),
        };
        row(jdk, flags, of, &threads);
    }
    assert_eq!(
        ask(&target, &format!("{}x", attach::COUNT_END)),
        attach::COUNTS_NOT
    );
    let (well, errors) = target.finish_with_errors().unwrap();
    assert!(well, "{which}: {errors}");
}

#[test]
fn every_allocation_is_counted() {
    for jdk in jdks() {
        phase(&jdk, (1, 5000), USUAL, &[]);
        phase(&jdk, (8, 3000), USUAL, &[]);
        phase(&jdk, (200, 100), USUAL, &[]);
    }
}

#[test]
fn counts_are_exact_with_each_compiler_and_without_one() {
    for jdk in jdks() {
        phase(&jdk, (2, 500), USUAL, &["-Xint"]);
        phase(&jdk, (4, 5000), USUAL, &["-XX:TieredStopAtLevel=1"]);
        phase(&jdk, (4, 5000), USUAL, &["-XX:-TieredCompilation"]);
    }
}

#[test]
fn with_each_collector() {
    for jdk in jdks() {
        for flags in collectors(&jdk) {
            let is_z = flags.contains(&"-XX:+UseZGC");
            let sizes = if is_z { wide(&jdk) } else { USUAL };
            phase(&jdk, (4, 1000), sizes, &flags);
        }
    }
}

/// Counts allocations in ten thousand virtual threads, which share a few carrier threads.
#[test]
fn in_ten_thousand_virtual_threads() {
    for jdk in jdks().iter().filter(|jdk| jdk.major() >= 21) {
        let of = (10_000, 20);
        let mut target = started_with(jdk, of, "only-virtual", &[]);
        begin(&target, "");
        target.advance(2).unwrap();
        let which = format!("JDK {}, virtual threads", jdk.version());
        assert_exact(&end(&target), of, USUAL, &which);
        row(jdk, &[], of, "10,000, all virtual");
        assert!(target.finish().unwrap());
    }
}

/// Counts allocations in JDK collections, which one thread uses in interpreted and compiled code.
#[test]
fn allocations_in_jdk_collections_are_counted() {
    for jdk in jdks() {
        let n = 50_000;
        let mut target = started(&jdk, (1, n), &[]);
        target.advance(2).unwrap();
        for next in [3, 4] {
            begin(
                &target,
                "jdk=on,include=^java\\.util\\.(LinkedList|TreeMap|ArrayList)$",
            );
            target.advance(next).unwrap();
            let counts = end(&target);
            let of = |class: &str, allocated: &str| {
                let is_of = |s: &&CountedSite| s.class == class && s.allocated == allocated;
                let sites = counts.sites.iter().filter(is_of);
                sites.fold((0, 0), |(objects, bytes), site| {
                    (objects + site.objects, bytes + site.bytes.unwrap())
                })
            };
            let which = format!("JDK {}: {counts:#?}", jdk.version());
            assert!(counts.jdk, "{which}");
            assert_eq!(
                of("java.util.LinkedList", "java.util.LinkedList$Node").0,
                n,
                "{which}"
            );
            assert_eq!(
                of("java.util.TreeMap", "java.util.TreeMap$Entry").0,
                n,
                "{which}"
            );
            let array = USUAL.array(USUAL.reference, n);
            let arrays = |class| of(class, "java.lang.Object[]");
            assert_eq!(arrays("java.util.LinkedList"), (1, array), "{which}");
            // `ArrayList` grows its array by half each time. It copies the array with a method that the JIT compiler
            // replaces by an intrinsic.
            let room = std::iter::successors(Some(10), |room| Some(room + room / 2));
            let room: Vec<u64> = room
                .scan(0, |before, room| {
                    let is_grown = *before < n;
                    *before = room;
                    is_grown.then_some(room)
                })
                .collect();
            let bytes = room.iter().map(|room| USUAL.array(USUAL.reference, *room));
            let grown = (room.len() as u64, bytes.sum());
            assert_eq!(arrays("java.util.ArrayList"), grown, "{which}");
            assert!(
                counts
                    .sites
                    .iter()
                    .all(|s| s.class.starts_with("java.util."))
            );
        }
        assert!(target.finish().unwrap());
    }
}

/// Counts allocations while the JVM checks JNI calls and verifies all bytecode. Also counts in JVMs with other object
/// layouts.
#[test]
fn counts_are_exact_with_jni_checks_and_other_layouts() {
    for jdk in jdks() {
        let mut flags = vec!["-Xcheck:jni", "-Xverify:all"];
        phase(&jdk, (2, 500), USUAL, &flags);
        flags = vec!["-XX:ObjectAlignmentInBytes=16"];
        let sixteen = Sizes {
            alignment: 16,
            ..USUAL
        };
        phase(&jdk, (2, 500), sixteen, &flags);
        flags = vec!["-XX:-UseCompressedOops"];
        phase(&jdk, (2, 500), wide(&jdk), &flags);
    }
}

/// After many counts, no class contains hooks any more. The test shows this with one more count. Its filter matches no
/// class, so it would count only objects at hooks that earlier counts have left.
#[test]
fn counters_are_removed_after_a_count() {
    for jdk in jdks() {
        let mut target = started(&jdk, (2, 500), &[]);
        for round in 0..6 {
            begin(&target, "jdk=on,include=^(Counted|java\\.util\\.)");
            if round % 5 == 0 {
                target.advance(round / 5 * 2 + 2).unwrap();
            }
            let counts = end(&target);
            assert!(counts.classes > 40 && counts.jdk, "{counts:?}");
            assert_eq!(
                round % 5 == 0,
                counts.sites.iter().any(|s| s.class == "Counted")
            );
            if round % 5 == 0 {
                begin(&target, "jdk=on,include=^nothing$");
                target.advance(round / 5 * 2 + 3).unwrap();
                let none = end(&target);
                assert_eq!((none.sites.len(), none.classes), (0, 0), "{none:?}");
            }
        }
        let (well, errors) = target.finish_with_errors().unwrap();
        assert!(well, "{errors}");
    }
}

/// If nobody ends a count, the agent removes its hooks some time after its planned end. Then another count can begin.
#[test]
fn a_count_that_nobody_stops_ends_by_itself() {
    let jdk = &jdks()[0];
    let mut target = started(jdk, (2, 500), &[]);
    assert_eq!(
        ask(&target, &format!("{}seconds=1", attach::COUNT)),
        attach::DONE
    );
    let again = format!("{}seconds=1", attach::COUNT);
    assert_eq!(ask(&target, &again), attach::COUNTS_ALREADY);
    for wrong in ["seconds=x", "include=(", "other=1"] {
        let options = format!("{}{wrong}", attach::COUNT);
        assert_eq!(ask(&target, &options), attach::BAD_OPTIONS, "{wrong}");
    }
    std::thread::sleep(Duration::from_secs(33));
    let ended = format!("{}{TOKEN}", attach::COUNT_END);
    assert_eq!(ask(&target, &ended), attach::COUNTS_NOT);
    assert!(target.prints("did not read the counts", 1));
    begin(&target, "");
    target.advance(2).unwrap();
    assert_exact(
        &end(&target),
        (2, 500),
        USUAL,
        "after one that nobody ended",
    );
    assert!(target.finish().unwrap());
}
