//! Fuzzes the redaction of dumps. Run it with `cargo +nightly fuzz run redaction`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::run_single_threaded(),
    |bytes: &[u8]| hprof::fuzz::redaction(bytes)
);
