//! Fuzzes the histogram of a dump. Run it with `cargo +nightly fuzz run histogram`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::run_single_threaded(),
    |bytes: &[u8]| hprof::fuzz::histogram(bytes)
);
