//! Fuzzes the comparison of dumps. Run it with `cargo +nightly fuzz run diff`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::run_single_threaded(),
    |bytes: &[u8]| heapdiff_diff::fuzz::diff(bytes)
);
