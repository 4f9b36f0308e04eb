//! The fuzz target for recordings on a stable compiler, as `hprof/tests/fuzz_smoke.rs` is for dumps.

#![allow(clippy::print_stdout)]

use testdata::recordings::live_objects;

#[test]
fn no_recording_does_harm() {
    let one = live_objects(0).finish();
    let two = [one.clone(), live_objects(1).finish()].concat();
    let corpus = [one, two];
    let targets = [("recording", heapdiff_jfr::fuzz as fn(&[u8]))];
    let runs = testdata::hostile::run_on(&corpus, "recording", &targets, 5);
    println!("{runs} inputs");
}
