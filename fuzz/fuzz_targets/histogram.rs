//! `cargo +nightly fuzz run histogram`

#![no_main]

libfuzzer_sys::fuzz_target!(
    init: hprof::fuzz::on_this_thread(),
    |bytes: &[u8]| hprof::fuzz::histogram(bytes)
);
