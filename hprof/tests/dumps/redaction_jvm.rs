//! Tests that redaction removes the hashes of secrets. On every JDK found, a program passes secrets to the JDK classes
//! that store hashes. In the redacted dump, no field may contain these hashes.

use std::collections::{BTreeMap, HashSet};

use hprof::answers::{Content, Value};
use hprof::redaction::{Redaction, Rules};
use hprof::{ObjectIndex, Options, Silent, Snapshot, Source};
use testdata::jvm::{DumpOptions, Jdk, Launch};

/// Number of secrets, unless the variable `REDACTED_SECRETS` sets it.
const SECRETS: usize = 100;
/// Number of objects that are read in one batch.
const BATCH: usize = 1 << 14;

/// Returns the numbers that JDK tables may store for a hash. (Some tables mix the bits of a hash before they store it.)
fn derived(hash: i64) -> [u32; 6] {
    let hash = hash as u32;
    let spread = hash ^ hash >> 16;
    let weak = hash ^ hash >> 20 ^ hash >> 12;
    let [weak, shifted] = [weak ^ weak >> 7 ^ weak >> 4, hash ^ hash >> 20 ^ hash >> 12];
    [
        hash,
        spread,
        spread & 0x7fff_ffff,
        hash & 0x7fff_ffff,
        weak,
        shifted,
    ]
}

/// Returns how many of the `hashes` occur in each field. The key is the class and the field.
fn found(dump: Source, hashes: &HashSet<u32>) -> BTreeMap<String, usize> {
    let snapshot = Snapshot::of(dump, &Options::default(), &Silent).unwrap();
    let mut found: BTreeMap<String, HashSet<u32>> = BTreeMap::new();
    let all: Vec<ObjectIndex> = (0..snapshot.object_count() as u32)
        .map(ObjectIndex)
        .collect();
    for batch in all.chunks(BATCH) {
        for (&object, record) in batch.iter().zip(snapshot.read_all(batch)) {
            let fields = match record.unwrap().content {
                Content::Instance(fields) => fields,
                Content::Class(class) => class.statics,
                Content::Array(_) => continue,
            };
            for field in fields {
                let number = match field.value {
                    Some(Value::Int(number)) => number.cast_unsigned(),
                    Some(Value::Long(number)) => match u32::try_from(number) {
                        Ok(number) => number,
                        Err(_) => continue,
                    },
                    _ => continue,
                };
                if number > 0xffff && hashes.contains(&number) {
                    let name = format!("{}.{}", snapshot.name(object), field.name);
                    found.entry(name).or_default().insert(number);
                }
            }
        }
    }
    found
        .into_iter()
        .map(|(name, all)| (name, all.len()))
        .collect()
}

fn check(jdk: &Jdk, secrets: usize) {
    let classes = jdk.compile(&testdata::programs::hashes()).unwrap();
    let mut target = Launch::class(jdk, classes, "Hashes")
        .flag("-Djava.awt.headless=true")
        .arg(secrets.to_string())
        .start()
        .unwrap();
    let lines = target.lines_until_ready().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hashes.hprof");
    target.dump(&file, DumpOptions::default()).unwrap();
    drop(target);
    let printed = lines.iter().filter_map(|line| line.strip_prefix("HASH "));
    let hashes = printed.flat_map(|hash| derived(hash.parse().unwrap()));
    let hashes: HashSet<u32> = hashes.collect();
    let dump = Source::open(&file).unwrap();
    let mut out = Vec::new();
    let redaction = Redaction::new(&dump, Rules::default()).unwrap();
    redaction.write(&mut out, &Silent).unwrap();
    let before = found(dump, &hashes);
    let after = found(Source::from_bytes(out), &hashes);
    println!(
        "JDK {}: {} hashes, before {before:?}, after {after:?}",
        jdk.version(),
        hashes.len()
    );
    // A field that stores hashes contains one hash for each secret. A few numbers in the dump can equal a hash by
    // chance.
    let fields = before
        .values()
        .filter(|&&hashes| hashes >= secrets / 2)
        .count();
    assert!(fields > 10, "JDK {}: {before:?}", jdk.version());
    let left = after
        .iter()
        .filter(|(_, hashes)| **hashes > 2 + secrets / 200);
    let left: Vec<_> = left.collect();
    assert!(left.is_empty(), "JDK {}: {left:?}", jdk.version());
}

#[test]
fn no_hash_of_content_is_left() {
    let jdks = Jdk::all();
    assert!(!jdks.is_empty(), "no JDK found");
    let secrets = std::env::var("REDACTED_SECRETS");
    let secrets = secrets.map_or(SECRETS, |number| number.parse().unwrap());
    for jdk in &jdks {
        check(jdk, secrets);
    }
}
