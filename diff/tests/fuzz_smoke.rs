//! Runs the fuzz target for comparisons on a stable compiler, as `hprof/tests/fuzz_smoke.rs` does for the reader.

#![allow(clippy::print_stdout)]

#[test]
fn no_pair_of_dumps_does_harm() {
    let runs = testdata::hostile::run(&[("diff", heapdiff_diff::fuzz::diff)], 10);
    println!("{runs} inputs");
}

#[test]
fn no_content_of_a_cached_summary_does_harm() {
    let runs = testdata::hostile::run(
        &[("kept", heapdiff_diff::fuzz::decode_mutated_summaries)],
        10,
    );
    println!("{runs} inputs");
}
