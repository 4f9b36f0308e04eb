//! Rewrites real classes. Checks them with the JVM's verifier and with the JDK's class file API. Also runs a rewritten
//! program that counts its allocations.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapdiff_bytecode::{Hooks, Name, Site, Sites, rewrite};
use testdata::jvm::{Jdk, Launch};
use testdata::programs;

/// The test rewrites only every n-th class; this is n. If `HEAPDIFF_ALL_CLASSES` is set, the test rewrites all classes.
const SAMPLED: usize = 12;
const PATIENCE: Duration = Duration::from_secs(300);

const HOOKS: Hooks<'static> = Hooks {
    owner: "test/lang/Hits",
    object: "object",
    array: "array",
    level: "level",
};
/// Hooks whose class is in the package `java.lang`, which every module can access.
const JDK_HOOKS: Hooks<'static> = Hooks {
    owner: "java/lang/Hits",
    ..HOOKS
};

/// Gives consecutive numbers to sites, and records the method and the allocated class of each site.
#[derive(Default)]
struct Numbers(Vec<(String, String)>);

impl Sites for Numbers {
    fn number(&mut self, _: Name<'_>, site: &Site<'_>) -> Option<i32> {
        self.0
            .push((site.method.to_string(), site.class.to_string()));
        i32::try_from(self.0.len() - 1).ok()
    }
}

/// Gives consecutive numbers to sites.
struct Next(i32);

impl Sites for Next {
    fn number(&mut self, _: Name<'_>, _: &Site<'_>) -> Option<i32> {
        self.0 += 1;
        Some(self.0 - 1)
    }
}

fn jdks() -> Vec<Jdk> {
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK from 17 on");
    jdks
}

fn hits(jdk: &Jdk) -> (PathBuf, Vec<u8>) {
    let folder = jdk.compile(&programs::bytecode("Hits.java")).unwrap();
    let bytes = fs::read(folder.join("test/lang/Hits.class")).unwrap();
    (folder, bytes)
}

/// A class in the JDK's runtime image.
struct Class<'a> {
    module: &'a str,
    path: &'a str,
    bytes: &'a [u8],
}

fn image(file: &[u8]) -> Vec<Class<'_>> {
    let mut rest = file;
    let mut take = |count: usize| {
        let (taken, after) = rest.split_at(count);
        rest = after;
        taken
    };
    let mut classes = Vec::new();
    let mut left = file.len();
    while left > 0 {
        let mut text = || {
            let length = take(2);
            let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
            str::from_utf8(take(length)).unwrap()
        };
        let (module, path) = (text(), text());
        let length = take(4).try_into().map(u32::from_be_bytes).unwrap();
        let bytes = take(usize::try_from(length).unwrap());
        left -= 2 + module.len() + 2 + path.len() + 4 + bytes.len();
        classes.push(Class {
            module,
            path,
            bytes,
        });
    }
    classes
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_jdks_classes_are_verified_and_run() {
    let every = match std::env::var_os("HEAPDIFF_ALL_CLASSES") {
        Some(_) => 1,
        None => SAMPLED,
    };
    for jdk in jdks() {
        let scratch = tempfile::tempdir().unwrap();
        let program = jdk.compile(&programs::bytecode("Classes.java")).unwrap();
        let all = scratch.path().join("all");
        let mut java = Launch::class(&jdk, &program, "Classes")
            .timeout(PATIENCE)
            .arg("write")
            .arg(&all)
            .start()
            .unwrap();
        java.wait_ready(1).unwrap();
        let all = fs::read(&all).unwrap();
        let classes = image(&all);

        let mut numbers = Next(0);
        let mut patched = BTreeMap::new();
        let mut names = String::new();
        let mut pairs = Vec::new();
        let (mut unchanged, mut left_alone) = (0, Vec::new());
        for class in classes.iter().skip(every / 2).step_by(every) {
            if class.path.ends_with("-info.class") {
                continue;
            }
            let told = format!("{}/{}", class.module, class.path);
            let rewritten = rewrite(class.bytes, &JDK_HOOKS, &mut numbers)
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            for left in &rewritten.left_alone {
                left_alone.push(format!("{told} {}: {}", left.method, left.reason));
            }
            assert!(rewritten.dropped.is_empty(), "{told}");
            let Some(bytes) = rewritten.bytes else {
                unchanged += 1;
                continue;
            };
            let folder = scratch.path().join("patch").join(class.module);
            write(&folder.join(class.path), &bytes);
            patched.insert(class.module, folder);
            let name = class.path.strip_suffix(".class").unwrap();
            names += &format!("{}\n", name.replace('/', "."));
            for bytes in [class.bytes, &bytes] {
                pairs.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                pairs.extend(bytes);
            }
        }
        let rewritten = names.lines().count();
        println!(
            "JDK {}: {rewritten} of {} classes rewritten, {unchanged} without allocations, {} sites, left alone: {left_alone:?}",
            jdk.version(),
            classes.len(),
            numbers.0
        );
        assert!(rewritten > classes.len() / every / 3);
        // Apart from very long methods, no method may stay unchanged.
        assert!(left_alone.len() * 1000 <= rewritten, "{left_alone:?}");

        let (_, hits) = hits(&jdk);
        let base = scratch.path().join("patch/java.base");
        write(&base.join("java/lang/Hits.class"), &renamed(&hits));
        patched.insert("java.base", base);
        let list = scratch.path().join("names");
        fs::write(&list, names).unwrap();
        let mut launch = Launch::class(&jdk, &program, "Classes")
            .timeout(PATIENCE)
            .flags([
                "-XX:+UnlockDiagnosticVMOptions",
                "-XX:+BytecodeVerificationLocal",
                "-XX:+BytecodeVerificationRemote",
                "--add-modules=ALL-SYSTEM",
            ]);
        for (module, folder) in &patched {
            launch = launch.flag(format!("--patch-module={module}={}", folder.display()));
        }
        let mut java = launch.arg("link").arg(&list).start().unwrap();
        let lines = java.lines_until_ready().unwrap();
        let wrong: Vec<_> = lines.iter().filter(|l| l.starts_with("WRONG")).collect();
        assert!(wrong.is_empty(), "{} {wrong:#?}", jdk.version());
        let last = lines.last().unwrap();
        let mut told = last.strip_prefix("LINKED ").unwrap().split(' ');
        let mut number = || told.next().unwrap().parse::<u64>().unwrap();
        let (linked, missing, hits) = (number(), number(), number());
        println!("JDK {}: {last}", jdk.version());
        assert!(linked * 100 > 95 * (linked + missing), "{last}");
        assert!(hits > 1000, "{last}");

        if jdk.major() >= 24 {
            same(&jdk, &pairs, &scratch.path().join("pairs"));
        }
    }
}

/// Checks with the JDK's class file API that the two classes of each pair differ only by the hook calls.
fn same(jdk: &Jdk, pairs: &[u8], file: &Path) {
    fs::write(file, pairs).unwrap();
    let mut java = Launch::source(jdk, programs::bytecode("Same.java"))
        .timeout(PATIENCE)
        .arg(file)
        .arg(JDK_HOOKS.owner)
        .start()
        .unwrap();
    let lines = java.lines_until_ready().unwrap();
    println!("JDK {}: {lines:?}", jdk.version());
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("SAME ") && last.ends_with(" 0"),
        "{lines:#?}"
    );
}

/// Moves the class with the hooks to the package `java.lang`. The new name of the class has the same length as its old
/// name.
fn renamed(hits: &[u8]) -> Vec<u8> {
    let mut bytes = hits.to_vec();
    let (old, new) = (HOOKS.owner.as_bytes(), JDK_HOOKS.owner.as_bytes());
    let places: Vec<_> = (0..bytes.len() - old.len())
        .filter(|&at| bytes[at..].starts_with(old))
        .collect();
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

/// Rewrites an application's classes and writes them to the folder `into`.
fn program(from: &Path, into: &Path, numbers: &mut Numbers) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let rewritten = rewrite(&bytes, &HOOKS, numbers).unwrap();
        assert!(rewritten.left_alone.is_empty() && rewritten.dropped.is_empty());
        let new = rewritten.bytes.as_deref().unwrap_or(&bytes);
        write(&into.join(path.file_name().unwrap()), new);
    }
}

#[test]
fn a_rewritten_program_counts_right_and_behaves_the_same() {
    for jdk in jdks() {
        let (hits, _) = hits(&jdk);
        let plain = jdk
            .compile(&programs::bytecode("Allocations.java"))
            .unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let mut numbers = Numbers::default();
        program(&plain, scratch.path(), &mut numbers);
        fs::create_dir_all(scratch.path().join("test/lang")).unwrap();
        let class = "test/lang/Hits.class";
        fs::copy(hits.join(class), scratch.path().join(class)).unwrap();

        let run = |classes: &Path, flags: &[&str]| {
            let launch = Launch::class(&jdk, classes, "Allocations").flag("-Xverify:all");
            launch
                .flags(flags)
                .start()
                .unwrap()
                .lines_until_ready()
                .unwrap()
        };
        let before = run(&plain, &[]);
        for flags in [&["-Xint"][..], &["-XX:TieredStopAtLevel=1"], &[]] {
            let after = run(scratch.path(), flags);
            let (hit, rest): (Vec<_>, Vec<_>) =
                after.iter().partition(|line| line.starts_with("HIT "));
            assert_eq!(rest, before.iter().collect::<Vec<_>>(), "{}", jdk.version());
            let mut counted: BTreeMap<_, (i64, i64)> = BTreeMap::new();
            for line in hit {
                let mut told = line.split(' ').skip(1).map(|n| n.parse::<i64>().unwrap());
                let mut number = || told.next().unwrap();
                let site = usize::try_from(number()).unwrap();
                let sum = counted.entry(numbers.0[site].clone()).or_default();
                *sum = (sum.0 + number(), sum.1 + number());
            }
            let mut expected = 0;
            for line in before.iter().filter(|line| line.starts_with("EXPECT ")) {
                let told: Vec<_> = line.split(' ').collect();
                let key = (told[1].to_owned(), told[2].to_owned());
                let want = (told[3].parse().unwrap(), told[4].parse().unwrap());
                let got = counted.get(&key).copied().unwrap_or_default();
                assert_eq!(got, want, "{line} on {} {flags:?}", jdk.version());
                expected += 1;
            }
            assert!(expected > 25);
        }
    }
}
