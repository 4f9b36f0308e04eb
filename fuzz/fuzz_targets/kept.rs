//! `cargo +nightly fuzz run kept`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heapdiff_diff::fuzz::kept(bytes));
