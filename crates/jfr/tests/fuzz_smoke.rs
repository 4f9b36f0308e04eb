//! Runs the fuzz target for recordings on a stable compiler, as `hprof/tests/fuzz_smoke.rs` does for dumps.

#![allow(clippy::print_stdout)]

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use testdata::recordings::live_objects;

#[test]
fn no_recording_does_harm() {
    let one = live_objects(0).finish();
    let two = [one.clone(), live_objects(1).finish()].concat();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recorded.jfr.gz");
    let packed = File::open(kept).expect("the kept recording");
    let mut real = Vec::new();
    GzDecoder::new(packed)
        .read_to_end(&mut real)
        .expect("a whole file");
    let targets = [("recording", heapdiff_jfr::fuzz as fn(&[u8]))];
    let corpus = [one, two, real];
    let runs = testdata::hostile::run_on(&corpus, "recording", &targets, 5);
    println!("{runs} inputs");
}
