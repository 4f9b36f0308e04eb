//! Fuzzes the repair of dumps. Run it with `cargo +nightly fuzz run repair`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::run_single_threaded(),
    |bytes: &[u8]| hprof::fuzz::repair(bytes)
);
