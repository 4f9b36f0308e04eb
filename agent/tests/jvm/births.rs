//! Checks the counts for every way to create an object. Each object is counted exactly once, except objects in
//! [`UNCOUNTED`]. Objects in [`IN_THE_JDK`] are counted only if JDK classes are counted.

use std::time::Duration;

use testdata::jvm::Jdk;
use testdata::programs;

use crate::count_on::Dumped;
use crate::counted;
use crate::{cc, launch};

/// Number of objects that the program creates in each way.
const N: u64 = 200;

/// Objects that are counted in application classes. Each entry contains the name of a method, the class of the objects
/// that the method creates, and their number. The method creates them itself or by a call of the JDK.
const COUNTED: &[(&str, &str, u64)] = &[
    ("newObject", "Kinds$Plain", N),
    ("intArray", "int[]", N),
    ("objectArray", "Kinds$Plain[]", N),
    ("twoDimensions", "int[][]", N),
    ("twoDimensions", "int[]", 3 * N),
    ("threeDimensions", "int[][][]", N),
    ("threeDimensions", "int[][]", 2 * N),
    ("threeDimensions", "int[]", 6 * N),
    ("copy", "Kinds$Copy", N),
    ("clonedArray", "int[]", N),
    ("clonedObjects", "Kinds$Plain[]", N),
    ("copyOf", "int[]", N),
    ("reflection", "Kinds$Plain", N),
    ("arrayReflection", "Kinds$Plain[]", N),
    ("lambda", "Kinds$$Lambda", N),
    ("concatenated", "java.lang.String", N),
    ("record", "Kinds$Point", N),
    ("large", "byte[]", 10),
    ("thread", "java.lang.Thread", N),
    ("down", "Kinds$Deep", 10),
    ("inThread", "Kinds$OfThread", 5000),
];

/// Objects that are not counted. Each entry contains the name of a method and the class of the objects. The objects are
/// created by a constructor reference, by JNI, or by the JVM when it throws an exception.
const UNCOUNTED: &[(&str, &str)] = &[
    ("methodHandle", "Kinds$Plain"),
    ("nullPointer", "java.lang.NullPointerException"),
    ("outOfBounds", "java.lang.ArrayIndexOutOfBoundsException"),
    ("viaJni", "Kinds$Plain"),
    ("arrayViaJni", "int[]"),
];

/// Objects that JDK methods create for the program. Each entry contains the class and the name of the JDK method, the
/// class of the objects, and their number.
const IN_THE_JDK: &[(&str, &str, &str, u64)] =
    &[("java.io.ObjectStreamClass", "newInstance", "Kinds$Saved", N)];

fn dumped(jdk: &Jdk, count: &str, flags: &[&str]) -> Dumped {
    let folder = tempfile::tempdir().unwrap();
    let native = folder.path().join("libkinds.so");
    cc(
        jdk,
        &programs::agent("kinds.c"),
        &["-shared", "-fPIC"],
        &native,
    );
    let options = format!("count={count},interval=100m");
    let mut target = launch(jdk, "Kinds", &options)
        .flags(["-Xmx512m", "-XX:-OmitStackTraceInFastThrow"])
        .flags(flags)
        .arg(&native)
        .timeout(Duration::from_secs(240))
        .start()
        .unwrap();
    target.wait_ready(1).unwrap();
    let dumped = Dumped::after_now(&target);
    let (well, errors) = target.finish_with_errors().unwrap();
    assert!(well, "{errors}");
    dumped
}

/// Returns the JVMs to test. The program uses a record, so these are JVMs of JDK 17 or later.
fn jdks() -> Vec<Jdk> {
    let mut jdks = counted::jdks();
    jdks.retain(|jdk| jdk.major() >= 17);
    jdks
}

/// Returns how many objects of the class `allocated` were created by the method `method` of `class` or of its nested
/// classes.
fn born(dumped: &Dumped, class: &str, method: &str, allocated: &str) -> u64 {
    let within = format!("{class}$");
    let of = |c: &str, m: &str, a: &str| {
        (c == class || c.starts_with(&within)) && m == method && a == allocated
    };
    let sites = dumped.sites.iter().filter(|((c, m, _, a), _)| of(c, m, a));
    sites.map(|(_, (objects, _))| objects).sum()
}

fn each_once(jdk: &Jdk, count: &str, flags: &[&str]) {
    let dumped = dumped(jdk, count, flags);
    let which = format!("JDK {}, count={count} {flags:?}", jdk.version());
    for &(method, allocated, objects) in COUNTED {
        let found = born(&dumped, "Kinds", method, allocated);
        assert_eq!(found, objects, "{which}: {method} {allocated}");
    }
    for &(method, allocated) in UNCOUNTED {
        let found = born(&dumped, "Kinds", method, allocated);
        assert_eq!(found, 0, "{which}: {method} {allocated}");
    }
    let with_jdk = count == "jdk";
    // Strings are counted in the method that concatenates them, not in the JDK's method that creates them.
    let joined = born(
        &dumped,
        "java.lang.StringConcatHelper",
        "newString",
        "java.lang.String",
    );
    assert_eq!(joined, 0, "{which}");
    for &(class, method, allocated, objects) in IN_THE_JDK {
        let found = born(&dumped, class, method, allocated);
        let expected = if with_jdk { objects } else { 0 };
        assert_eq!(found, expected, "{which}: {class}.{method} {allocated}");
    }
    // Only the listed methods create objects of these classes. So check the total number of objects of each class, in
    // whatever method they are counted.
    for (allocated, objects) in [
        ("Kinds$Copy", N + 1),
        ("Kinds$Point", N),
        ("Kinds$Deep", 10),
        ("Kinds$OfThread", 5000),
        ("Kinds$Saved", 1 + if with_jdk { N } else { 0 }),
        ("Kinds$Plain", 2 * N),
    ] {
        let sites = dumped.sites.iter().filter(|(site, _)| site.3 == allocated);
        let found: u64 = sites.map(|(_, of)| of.0).sum();
        assert_eq!(found, objects, "{which}: {allocated} in all");
    }
    let objects: u64 = COUNTED.iter().map(|(.., objects)| objects).sum();
    let flags: String = flags.iter().map(|flag| format!(" `{flag}`")).collect();
    println!(
        "counted: | {} | every way to create an object, `count={count}`{flags} | 501 | {objects} | {} |",
        jdk.version(),
        COUNTED.len()
    );
}

#[test]
fn each_allocation_is_counted_once() {
    for jdk in jdks() {
        for flags in [&[][..], &["-Xint"]] {
            each_once(&jdk, "on", flags);
        }
    }
}

#[test]
fn each_allocation_is_counted_once_with_jdk_classes() {
    for jdk in jdks() {
        for flags in [&[][..], &["-XX:TieredStopAtLevel=1"]] {
            each_once(&jdk, "jdk", flags);
        }
    }
}
