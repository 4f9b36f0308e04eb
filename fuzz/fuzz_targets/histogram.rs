//! `cargo +nightly fuzz run histogram`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hprof::fuzz::histogram(bytes));
