//! The agent's Java classes. This folder contains the source of each class and the class file that javac produces from
//! it.
//!
//! `javac` of JDK 17 compiles the sources of one folder (this one, `labels`, `scan` or `queue`):
//!
//! ```sh
//! javac -g:none -nowarn -Xlint:-options -source 11 -target 11 --patch-module java.base=. -d OUT *.java
//! ```
//!
//! The classes are compiled for JDK 11, the oldest JDK that the agent supports. They are compiled as part of
//! `java.base`, because `--release 11` gives no access to `Unsafe`. A test checks that javac produces exactly the class
//! files in this folder.
//!
//! A constant that depends on the JVM is a placeholder in the source ([`heapdiff_bytecode::fill()`]), because constants
//! are faster than fields set by the agent. Names of methods that depend on the JVM are placeholders, too.

use heapdiff_bytecode::{Damage, fill};

/// Class file of `java.lang.HeapdiffCounts`, which counts allocations.
const COUNTS: &[u8] = include_bytes!("HeapdiffCounts.class");
/// Class file of `java.lang.HeapdiffUsage`, which counts uses of collections.
const USAGE: &[u8] = include_bytes!("HeapdiffUsage.class");
/// Class file of `heapdiff.SampleRef` for JDK 16 and later, which have `Reference.refersTo`.
const SCAN: &[u8] = include_bytes!("scan/SampleRef.class");
/// Class file of `heapdiff.SampleRef` with a reference queue, for earlier JDKs and for the option `reaper=queue`.
const QUEUE: &[u8] = include_bytes!("queue/SampleRef.class");
/// Class file of `heapdiff.Labels`, which has native methods for the labels of threads.
pub(crate) const LABELS: &[u8] = include_bytes!("labels/Labels.class");

/// Returns the class file of the class that counts allocations. `numbers` and `names` replace its placeholders, in
/// order.
pub(crate) fn counts(numbers: &[i64; 12], names: &[(&str, &str)]) -> Result<Vec<u8>, Damage> {
    fill(COUNTS, numbers, names)
}

/// Returns the class file of the class that counts uses of collections. `numbers` and `names` replace its placeholders,
/// in order.
pub(crate) fn usage(numbers: &[i64; 4], names: &[(&str, &str)]) -> Result<Vec<u8>, Damage> {
    fill(USAGE, numbers, names)
}

/// Returns the class file of the class whose objects are samples. If `is_queue` is true, returns the variant with a
/// reference queue.
pub(crate) fn sample_ref(is_queue: bool) -> Result<Vec<u8>, Damage> {
    fill(if is_queue { QUEUE } else { SCAN }, &[], &[])
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::process::Command;

    use heapdiff_bytecode::{INT_PLACEHOLDER, LONG_PLACEHOLDER};
    use testdata::jvm::Jdk;

    use super::*;

    const COUNTS_SOURCE: &str = include_str!("HeapdiffCounts.java");
    const USAGE_SOURCE: &str = include_str!("HeapdiffUsage.java");

    /// Checks that a source defines constants with these values.
    fn defines(source: &str, constants: &[(&str, i64)]) {
        let source = source.replace('_', "");
        for (name, value) in constants {
            let line = format!(" {} = {value};", name.replace('_', ""));
            assert!(source.contains(&line), "{name} = {value}");
        }
    }

    pub(crate) fn counts_define(constants: &[(&str, i64)]) {
        defines(COUNTS_SOURCE, constants);
    }

    pub(crate) fn usage_defines(constants: &[(&str, i64)]) {
        defines(USAGE_SOURCE, constants);
    }

    #[test]
    fn javac_makes_these_classes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/java");
        let java_lang: &[_] = &[
            ("java/lang", "HeapdiffCounts", COUNTS),
            ("java/lang", "HeapdiffUsage", USAGE),
        ];
        let scan: &[_] = &[("heapdiff", "SampleRef", SCAN)];
        let queue: &[_] = &[("heapdiff", "SampleRef", QUEUE)];
        let labels: &[_] = &[("heapdiff", "Labels", LABELS)];
        let javac = Jdk::with_major(17).unwrap().javac();
        for (folder, classes) in [
            (folder.clone(), java_lang),
            (folder.join("scan"), scan),
            (folder.join("queue"), queue),
            (folder.join("labels"), labels),
        ] {
            let out = tempfile::tempdir().unwrap();
            let sources = classes.iter().map(|(_, name, _)| format!("{name}.java"));
            let run = Command::new(&javac)
                .current_dir(&folder)
                .args(["-g:none", "-nowarn", "-Xlint:-options"])
                .args(["-source", "11", "-target", "11"])
                .args(["--patch-module", "java.base=.", "-d"])
                .arg(out.path())
                .args(sources)
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{errors}");
            for (package, name, checked_in) in classes {
                let made = out.path().join(package).join(format!("{name}.class"));
                let made = std::fs::read(made).unwrap();
                assert!(made == *checked_in, "compile {name}.java again");
            }
        }
    }

    /// Checks that each placeholder is replaced by a value.
    #[test]
    fn all_placeholders_are_filled() {
        let has = |class: &[u8], bytes: &[u8]| class.windows(bytes.len()).any(|w| w == bytes);
        let long = LONG_PLACEHOLDER.to_be_bytes();
        let int = INT_PLACEHOLDER.to_be_bytes();
        let numbers = [7_000_001; 12];
        let counts = counts(&numbers, &[]).unwrap();
        let usage = usage(&[7_000_001; 4], &[]).unwrap();
        for class in [&counts, &usage] {
            assert!(!has(class, &long[..7]) && !has(class, &int[..2]));
            assert!(has(class, &7_000_001_i64.to_be_bytes()));
        }
        for class in [sample_ref(false), sample_ref(true)] {
            let class = class.unwrap();
            assert!(!has(&class, &long[..7]) && !has(&class, &int[..3]));
        }
        // Methods whose names are replaced.
        assert!(has(COUNTS, b"\x01\x00\x0dcurrentThread"));
        assert!(has(USAGE, b"\x01\x00\x16compareAndSetReference"));
    }
}
