//! Checks that the dumps stored in the repository can be regenerated, and that they reveal nothing about the machine.

use std::fs;
use std::path::{Path, PathBuf};
use testdata::dumps::unpacked;
use testdata::jvm::Jdk;

const SESSIONS: &str = "com/acme/shop/SessionRegistry";

fn check(dumps: &[PathBuf], class: &str) {
    for dump in dumps {
        let bytes = unpacked(dump);
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            bytes.starts_with(b"JAVA PROFILE 1.0."),
            "{}",
            dump.display()
        );
        assert!(text.contains(class), "{}", dump.display());
        let checkout = env!("CARGO_MANIFEST_DIR").trim_end_matches("testdata");
        assert!(
            !text.contains(checkout),
            "{} names {checkout}",
            dump.display()
        );
    }
}

#[test]
fn committed_dumps_are_complete_and_small() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dumps = [
        folder.join("before.hprof.gz"),
        folder.join("after.hprof.gz"),
    ];
    check(&dumps, SESSIONS);
    let sizes = dumps
        .iter()
        .filter_map(|dump| fs::metadata(dump).ok())
        .map(|meta| meta.len());
    assert!(sizes.sum::<u64>() < 4_000_000);
}

#[test]
fn committed_dumps_with_the_agent_are_complete_and_small() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dumps = ["before", "after"].map(|name| folder.join(format!("sampled-{name}.hprof.gz")));
    check(&dumps, "heapdiff/SampleRef");
    for dump in &dumps {
        assert!(fs::metadata(dump).is_ok_and(|meta| meta.len() < 1_000_000));
    }
}

#[test]
fn committed_dumps_can_be_recreated() {
    if Jdk::all_for_scenarios().is_empty() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kept-dumps");
    let dumps = testdata::dumps::make_dumps(&folder, 1).unwrap_or_else(|error| panic!("{error}"));
    check(&dumps, SESSIONS);
    fs::remove_dir_all(&folder).expect("the folder was just made");
}
