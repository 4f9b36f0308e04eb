//! `cargo +nightly fuzz run diff`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heapdiff_diff::fuzz::diff(bytes));
