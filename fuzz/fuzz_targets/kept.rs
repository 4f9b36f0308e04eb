//! Fuzzes the decoding of summary files. Run it with `cargo +nightly fuzz run kept`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::run_single_threaded(),
    |bytes: &[u8]| heapdiff_diff::fuzz::decode_mutated_summaries(bytes)
);
