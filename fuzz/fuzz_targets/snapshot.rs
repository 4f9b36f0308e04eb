//! Fuzzes the whole analysis of a dump. Run it with `cargo +nightly fuzz run snapshot`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::run_single_threaded(),
    |bytes: &[u8]| hprof::fuzz::snapshot(bytes)
);
