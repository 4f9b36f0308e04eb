//! Runs the fuzz target for joins on a stable compiler, as `hprof/tests/fuzz_smoke.rs` does for dumps.

#![allow(clippy::print_stdout)]

use testdata::dumps::unpacked;
use testdata::recordings::live_objects;

#[test]
fn no_recording_harms_a_join() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let stored = ["recorded.jfr.gz", "joined.jfr.gz", "joined-async.jfr.gz"];
    let mut corpus: Vec<Vec<u8>> = stored.map(|name| unpacked(&folder.join(name))).into();
    corpus.push(live_objects(0).finish());
    corpus.push(b"[main];a.Main.main;a/B.c:7;byte[]_[i] 90\na.Main.main;a.Entry 3\n".to_vec());
    corpus.push(PROFILE.to_vec());
    let targets = [("join", heapdiff_join::fuzz::join as fn(&[u8]))];
    let runs = testdata::hostile::run_on(&corpus, "join", &targets, 5);
    println!("{runs} inputs");
}

/// A pprof profile with one sample of the class `a.E`.
const PROFILE: &[u8] = b"\x0a\x04\x08\x01\x10\x02\x12\x0b\x0a\x01\x01\x12\x01\x4d\x1a\x04\x08\x04\x10\x05\
\x22\x08\x08\x01\x22\x04\x08\x01\x10\x1f\x2a\x04\x08\x01\x10\x03\x32\x00\x32\x05alloc\x32\x05bytes\x32\x05a.B.c\
\x32\x05class\x32\x03a.E";
