//! `cargo +nightly fuzz run snapshot`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hprof::fuzz::snapshot(bytes));
